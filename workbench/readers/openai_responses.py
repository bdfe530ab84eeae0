"""OpenAI Responses: items, response objects, request/response pairs (streamed ones too), compactions.

With ``previous_response_id`` a request holds only what is new: what the model saw is then the chain of the responses
before it, and is not known where the file does not hold them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import COMPACT_SUMMARY, Transcript, join_text
from .base import Match, ReaderInfo
from .build import Builder, DraftCall
from .exchanges import Exchange, Step, leading, match_pairs, pairs, runs
from .fields import epoch_ms, listing, mapping, string, tool_specs
from .responses_items import TYPES, Items, content_parts, key_of
from .source import Document
from .usage import inclusive

_CONTENT = frozenset({"input_text", "output_text", "input_image", "input_file"})
#: Types that other formats use for something else, so that they prove nothing.
_WEAK = frozenset({"reasoning", "agent_message", *(name for name in TYPES if name.startswith(("compaction", "context_")))})
_LISTS = ("input", "output", "items", "data")


class ResponsesReader:
    """Reads OpenAI Responses."""

    info = ReaderInfo("openai-responses", "OpenAI Responses API: items, response objects, request/response pairs")

    def detect(self, document: Document) -> Match | None:
        """Looks for item types, content types and the object name of the API."""
        of_pairs, match = match_pairs(document, _is_exchange, "the Responses API")
        if of_pairs:
            return match
        if isinstance(document.value, dict):
            return _detect_object(document.value)
        head = document.head(200)
        if not head:
            return None
        whole = sum(_is_whole(value) for value in head)
        if whole * 2 > len(head):
            return Match(0.95, ("response objects or stream events of the Responses API",))
        known = sum(_is_item(value) for value in head)
        if known >= 0.8 * len(head) and (marks := _marks(head)):
            return Match(0.9 if marks & TYPES else 0.85, (f"items of the Responses API ({', '.join(sorted(marks)[:4])})",))
        return None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per conversation."""
        exchanges = pairs(document) or _exchanges(document)
        if not exchanges:
            return [_read_items(document)]
        found = runs(exchanges, sent=_sent, got=_got, id_of=_id_of, previous_of=_previous_of, lead_of=_lead_of)
        others = sum(len(steps) for steps in found[1:])
        transcripts = []
        for number, steps in enumerate(found):
            builder = Builder(self.info.name, document, total=len(steps) if number else document.total - others)
            if len(found) > 1:  # each run needs a name of its own
                builder.id = string(_final(steps[0].exchange).get("id")) or f"{document.path.stem}-{number}"
            _Run(builder).read(steps)
            if number == 0:
                _rest(document, exchanges, builder)
            transcripts.append(builder.build(shared=number > 0))
        return transcripts


READER = ResponsesReader()


def _is_exchange(exchange: Exchange) -> bool:
    response = mapping(exchange.response)
    named = string(response.get("object")).startswith("response") or isinstance(response.get("output"), list)
    streamed = any(string(event.get("type")).startswith("response.") for event in exchange.events[:3])
    return named or streamed or ("messages" not in exchange.request and isinstance(exchange.request.get("input"), str | list))


def _detect_object(value: dict[str, Any]) -> Match | None:
    if string(value.get("object")).startswith("response") or string(value.get("type")).startswith("response."):
        return Match(0.97, ("object: response",))
    if _is_item(value) and (marks := _marks([value])):
        return Match(0.85, (f"an item of the Responses API ({', '.join(sorted(marks)[:4])})",))
    for name in _LISTS:
        held = [item for item in listing(value.get(name))[:200] if isinstance(item, dict)]
        if held and sum(map(_is_item, held)) >= 0.8 * len(held) and (marks := _marks(held)):
            return Match(0.9, (f"{name}: items of the Responses API ({', '.join(sorted(marks)[:4])})",))
    if "messages" not in value and "model" in value and isinstance(value.get("input"), str | list):
        return Match(0.8, ("a request with input and model",))
    return None


def _is_whole(value: dict[str, Any]) -> bool:
    """Say whether a record is a response object, a request, or an event of a stream."""
    if string(value.get("object")) in ("response", "response.compaction"):
        return True
    if string(value.get("type")).startswith("response.") and not isinstance(value.get("payload"), dict):
        return True
    return "messages" not in value and "role" not in value and "model" in value and isinstance(value.get("input"), str | list)


def _is_item(value: dict[str, Any]) -> bool:
    type_ = value.get("type")
    if type_ in (None, "message"):
        return isinstance(value.get("role"), str) and isinstance(value.get("content"), str | list)
    return isinstance(type_, str) and type_ in TYPES


def _marks(values: Sequence[dict[str, Any]]) -> set[str]:
    """Type names that no other format uses."""
    found = {value["type"] for value in values if isinstance(value.get("type"), str)} & (TYPES - _WEAK)
    for value in values:
        found |= {part["type"] for part in listing(value.get("content"))[:20] if isinstance(part, dict) and isinstance(part.get("type"), str)} & _CONTENT
        if value.get("type") == "reasoning" and ("encrypted_content" in value or isinstance(value.get("summary"), list)):
            found.add("reasoning")
    return found


def _exchanges(document: Document) -> list[Exchange]:
    """Response objects, requests and streams seen as pairs of which one half is missing."""
    if isinstance(document.value, dict):
        value = document.value
        if _is_item(value):  # a file of one line
            return []
        for name in ("items", "data"):
            if isinstance(value.get(name), list) and not isinstance(value.get("input"), str | list):
                value = {**value, "input": value[name]}
        return [_half(1, value)]
    head = document.head(200)
    if not head or sum(map(_is_whole, head)) * 2 <= len(head):
        return []
    found: list[Exchange] = []
    stream: list[dict[str, Any]] = []
    for number, value in document.objects():
        if string(value.get("type")).startswith("response."):
            stream.append(value)
            if value["type"] in _ENDS:
                found.append(Exchange(number, {}, None, tuple(stream)))
                stream = []
        elif _is_whole(value):
            found.append(_half(number, value))
    if stream:
        found.append(Exchange(document.records[-1].number, {}, None, tuple(stream)))
    return found


def _half(number: int, value: dict[str, Any]) -> Exchange:
    if string(value.get("type")).startswith("response."):
        return Exchange(number, {}, None, (value,))
    if isinstance(value.get("output"), list) or string(value.get("object")).startswith("response"):
        names = ("input", "instructions", "model", "tools", "previous_response_id", "conversation")
        return Exchange(number, {name: value[name] for name in names if name in value}, value)
    return Exchange(number, value)


_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


def _final(exchange: Exchange) -> dict[str, Any]:
    """The response object of a pair; of a stream, what its last event holds or what its items add up to."""
    if exchange.response is not None:
        return exchange.response
    held: dict[str, Any] = {}
    done: list[Any] = []
    text: list[str] = []
    for event in exchange.events:
        if isinstance(event.get("response"), dict):
            held = event["response"]
        if event.get("type") == "response.output_item.done":
            done.append(event.get("item"))
        elif event.get("type") == "response.output_text.delta" and isinstance(event.get("delta"), str):
            text.append(event["delta"])
    if text and not done:  # a stream of which only the text was kept
        done = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "".join(text)}]}]
    if done and not listing(held.get("output")):  # some servers leave the last event's list empty
        held = {**held, "output": done}
    return held


def _inputs(request: dict[str, Any]) -> list[Any]:
    value = request.get("input")
    return [{"role": "user", "content": value}] if isinstance(value, str) else listing(value)


def _keys(items: Sequence[Any]) -> list[Hashable]:
    return [key for item in items if (key := key_of(item)) is not None]


def _sent(exchange: Exchange) -> list[Hashable]:
    return _keys(_inputs(exchange.request))


def _got(exchange: Exchange) -> list[Hashable]:
    return _keys(listing(_final(exchange).get("output")))


def _lead(inputs: Sequence[Any]) -> int:
    return leading(inputs, lambda item: string(item.get("role")))


def _lead_of(exchange: Exchange) -> int:
    return _lead(_inputs(exchange.request))


def _id_of(exchange: Exchange) -> Hashable:
    return string(_final(exchange).get("id")) or None


def _previous_of(exchange: Exchange) -> Hashable:
    return string(exchange.request.get("previous_response_id")) or None


def _rest(document: Document, exchanges: Sequence[Exchange], builder: Builder) -> None:
    """Account for the records that are part of a stream, and for those that are no pair."""
    numbers = {exchange.number for exchange in exchanges}
    for record in document.records:
        if record.number not in numbers:
            streamed = isinstance(record.value, dict) and string(record.value.get("type")).startswith("response.")
            if streamed:
                builder.account(record.number, "metadata")
            else:
                builder.skip(record.number, "pair", f"record {record.number}: no request and response")


def _read_items(document: Document) -> Transcript:
    builder = Builder(READER.info.name, document)
    items = Items(builder)
    some = any(isinstance(record.value, dict) and _is_item(record.value) for record in document.rows())
    for record in document.rows():
        if some:
            items.add(record.value, record.number)
        else:
            builder.skip(record.number, "item", f"record {record.number}: not an item of the Responses API")
    return builder.build()


@dataclass(slots=True)
class _Run:
    """One conversation, read pair by pair."""

    builder: Builder
    items: Items = field(init=False)
    #: Key and message of each item of the run that has a key, in the order of `runs`.
    places: list[tuple[Hashable, int | None]] = field(default_factory=list)
    #: What a response and all before it are, by the response's id.
    chain: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.items = Items(self.builder)

    def read(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._step(step)

    def _step(self, step: Step) -> None:
        exchange, builder = step.exchange, self.builder
        request, response, number = exchange.request, _final(exchange), exchange.number
        if not request.keys() & {"input", "previous_response_id", "conversation"} and "output" not in response:
            builder.skip(number, "pair", f"record {number}: neither input nor output in it")
            return
        builder.account(number, "metadata")
        compact = response.get("object") == "response.compaction"
        if not compact:
            self._fixed(request, number)
        repeated = [place for at in step.context if (place := self.places[at][1]) is not None]
        new = self._request(request, step.repeats, number)
        previous = _previous_of(exchange)
        context: tuple[int, ...] | None = tuple(dict.fromkeys((*repeated, *new)))
        if previous is not None or request.get("conversation"):
            before = self.chain.get(str(previous))
            context = None if before is None else (*before, *new)
        if response.get("error"):
            builder.report(number, "error", f"record {number}: the provider answered with an error ({_error(response)})")
        if not response or ("output" not in response and "usage" not in response):
            return
        usage, why = inclusive(response.get("usage"))
        if why:
            builder.report(number, "usage", f"record {number}: {why}")
        call = builder.call(
            string(response.get("id")),
            model=string(response.get("model"), request.get("model")) or None,
            usage=usage,
            stop_reason=string(mapping(response.get("incomplete_details")).get("reason"), response.get("status")) or None,
            ts=epoch_ms(response.get("created_at")),
            context=context,
            kind="compaction" if compact else "response",
        )
        builder.account(number, "calls")
        self.items.begin(call)
        output = listing(response.get("output"))
        (self._compacted if compact else self._output)(output, call, number)
        self.items.close()
        if compact:
            self.chain[call.id] = (*(builder.compactions[-1].kept if builder.compactions else ()), *call.produced)
        elif context is not None:
            self.chain[call.id] = (*context, *call.produced)

    def _fixed(self, request: dict[str, Any], number: int) -> None:
        builder = self.builder
        told, offered = string(request.get("instructions")), tool_specs(request.get("tools"))
        if told and not builder.system:
            builder.system.append(told)
        known = {spec.name for spec in builder.tools}
        builder.tools += [spec for spec in offered if spec.name not in known]
        if request.get("prompt") or not request.keys() & {"input", "previous_response_id", "conversation"}:
            builder.prefix = None  # its text is with the provider, or there is an answer only
        else:
            inputs = _inputs(request)
            lead = [join_text(content_parts(item.get("content"))) for item in inputs[: _lead(inputs)]]
            builder.request_prefix([text for text in (told, *lead) if text], offered, number)

    def _request(self, request: dict[str, Any], repeats: int, number: int) -> list[int]:
        """Read what is new in a request: items from place `repeats` on, counted over those that have a key."""
        new: list[int] = []
        self.items.close()
        at = 0
        for place, item in enumerate(_inputs(request), 1):
            key = key_of(item)
            if key is None and self._again(item):
                continue
            if at >= repeats:
                message = self.items.add(item, number, place=f", input {place}")
                if message is not None:
                    new.append(message.index)
                if key is not None:
                    self.places.append((key, None if message is None else message.index))
            at += key is not None
        self.items.close()
        return list(dict.fromkeys(new))

    def _again(self, item: Any) -> bool:
        value = mapping(item)
        return bool({string(value.get("id")), string(value.get("encrypted_content"))} & self.items.ids)

    def _output(self, output: Sequence[Any], call: DraftCall, number: int) -> None:
        for place, item in enumerate(output, 1):
            message = self.items.add(item, number, ts=call.ts, place=f", output {place}")
            key = key_of(item)
            if key is not None:
                self.places.append((key, None if message is None else message.index))

    def _compacted(self, output: Sequence[Any], call: DraftCall, number: int) -> None:
        """Read what a compact call returned: the user's messages are copies, the compaction item is new."""
        builder = self.builder
        known: dict[Hashable, list[int]] = {}
        for key, held in self.places:
            if held is not None:
                known.setdefault(key, []).append(held)
        last = next((item for item in reversed(builder.calls[: call.index]) if item.kind == "response"), None)
        kept: list[int] = []
        found = len(builder.compactions)
        for place, item in enumerate(output, 1):
            key = key_of(item)
            copies = known.get(key)
            if copies:
                index: int | None = copies.pop(0)
            else:
                message = self.items.add(item, number, ts=call.ts, place=f", output {place}")
                self.items.begin(call)
                index = None if message is None else message.index
            if index is not None and COMPACT_SUMMARY not in builder.messages[index].flags:
                kept.append(index)
            if key is not None:
                self.places.append((key, index))
        for at in range(found, len(builder.compactions)):
            before = None if last is None or last.usage is None else last.usage.total
            builder.compactions[at] = replace(builder.compactions[at], kept=tuple(kept), tokens_before=before, trigger="manual")


def _error(response: dict[str, Any]) -> str:
    error = response["error"]
    return (string(mapping(error).get("message"), mapping(error).get("code"), error) or type(error).__name__)[:100]
