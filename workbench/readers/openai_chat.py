"""OpenAI Chat Completions: lists of messages, whole requests, fine-tuning rows, request/response pairs, streams."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import ToolSpec, Transcript, join_text
from .base import Match, ReaderInfo
from .build import Builder
from .chat_messages import ROLES, Messages, key_of, merged, parts_of, role_of
from .exchanges import Exchange, Step, leading, match_pairs, pairs, runs
from .fields import epoch_ms, listing, mapping, string, tool_specs
from .responses_items import TYPES
from .source import Document
from .usage import inclusive

#: Content blocks that only this API has, and those of other APIs.
_OWN = frozenset({"image_url", "input_audio", "file", "refusal"})
_OTHERS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "input_text", "output_text", "input_image", "input_file"})
#: Keys of envelopes in which other formats keep a message.
_ENVELOPES = frozenset({"payload", "sessionId", "parentUuid", "uuid", "record_type", "parts"})


class ChatReader:
    """Reads OpenAI Chat Completions."""

    info = ReaderInfo("openai-chat", "OpenAI Chat Completions: messages as JSON or JSONL, conversations, request/response pairs", "research_chat.json")

    def detect(self, document: Document) -> Match | None:
        """Looks for messages with roles, and for what only this API has in them."""
        of_pairs, match = match_pairs(document, _is_pair, "Chat Completions")
        if of_pairs:
            return match
        value = document.value
        if isinstance(value, list) and not value and document.total == 0:
            return Match(0.3, ("an empty list",))
        if isinstance(value, dict):
            return _detect_value(value)
        head = document.head(200)
        if sum(_is_response(item) for item in head) * 2 > len(head):
            return Match(0.95, ("object: chat.completion",))
        matches = [_detect_value(item) for item in head if _conversation(item) is not None]
        if matches and len(matches) * 2 > len(head):
            best = max((match for match in matches if match), key=lambda match: match.confidence, default=None)
            return None if best is None else Match(best.confidence, (f"records with messages: {best.reasons[0]}",))
        return _detect_messages(head)

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per conversation."""
        exchanges = [exchange for exchange in pairs(document) if _is_pair(exchange)] or _logged(document)
        if exchanges:
            return read_exchanges(document, exchanges)
        value = document.value
        if isinstance(value, dict) and (_conversation(value) is not None or not role_of(value)):  # else a message: a file of one line
            return [_read_object(document, value)]
        talks = [(number, talk) for number, value in document.objects() if (talk := _conversation(value)) is not None]
        lists: list[tuple[int, _Talk]] = [(record.number, (record.value, {})) for record in document.records if isinstance(record.value, list)]
        if (len(talks) + len(lists)) * 2 > len(document.rows()):
            return _read_conversations(document, sorted([*talks, *lists], key=lambda item: item[0]))
        return [_read_messages(document)]


READER = ChatReader()

_Talk = tuple[list[Any], dict[str, Any]]


def _conversation(value: dict[str, Any]) -> _Talk | None:
    """The messages of a record that is a whole conversation, and the request that holds them."""
    for held in (value, mapping(value.get("body"))):
        if isinstance(held.get("messages"), list):
            return held["messages"], dict(held)
    request = mapping(value.get("input"))
    if isinstance(request.get("messages"), list):  # a row for preference tuning
        return [*request["messages"], *listing(value.get("preferred_output"))], {**value, **request}
    return None


def _is_response(value: dict[str, Any]) -> bool:
    choices = value.get("choices")
    if not isinstance(choices, list):
        return string(value.get("object")).startswith("chat.completion")
    return isinstance(value.get("usage"), dict) if not choices else bool({"message", "delta"} & mapping(choices[0]).keys())


def _is_pair(exchange: Exchange) -> bool:
    if not isinstance(exchange.request.get("messages"), list):
        return False
    response = exchange.response
    if response is None:
        return not exchange.events or any("choices" in event for event in exchange.events[:3])
    return _is_response(response) or ("content" not in response and "output" not in response)


def _detect_value(value: dict[str, Any]) -> Match | None:
    if _is_response(value):
        return Match(0.95, ("object: chat.completion",))
    talk = _conversation(value)
    if talk is None:
        return _detect_messages([value]) if _is_message(value) else None
    messages, request = talk
    if not messages:
        return Match(0.3, ("an empty list of messages",))
    if "system" in request or "anthropic_version" in request:
        return None
    return _detect_messages([item for item in messages[:200] if isinstance(item, dict)])


def _detect_messages(head: Sequence[dict[str, Any]]) -> Match | None:
    known = [item for item in head if _is_message(item)]
    if not known or len(known) * 2 <= len(head):
        return None
    if any("role" not in item for item in known):
        if not any(item.get("type") in ("human", "ai") for item in known):
            return None
        return Match(0.35, ("messages with a type in the place of a role",))
    blocks = {string(mapping(part).get("type")) for item in known for part in listing(item.get("content"))[:20]}
    if blocks & _OTHERS:
        return Match(0.3, ("messages with roles, but blocks of another API",))
    marks = {key for item in known for key in ("tool_calls", "tool_call_id", "function_call", "reasoning_content") if item.get(key)}
    marks |= {f"role {item['role']}" for item in known if item["role"] in ("tool", "function", "developer", "system")}
    marks |= blocks & _OWN
    if marks:
        return Match(0.85, (f"messages with {', '.join(sorted(marks)[:4])}",))
    return Match(0.6, ("messages with role and content",))


def _is_message(value: dict[str, Any]) -> bool:
    type_ = value.get("type")
    if value.keys() & _ENVELOPES or role_of(value) not in ROLES or (isinstance(type_, str) and type_ in TYPES):
        return False
    return "content" in value or "tool_calls" in value or "function_call" in value or role_of(value) == "tool"


def _logged(document: Document) -> list[Exchange]:
    """Records that hold a request and its response side by side, response objects, and chunks of streams."""
    values = [(1, document.value)] if isinstance(document.value, dict) else list(document.objects())
    found: list[Exchange] = []
    chunks: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    for number, value in values:
        talk = _conversation(value)
        if talk is not None and isinstance(value.get("response"), dict) and _is_response(value["response"]):
            found.append(Exchange(number, talk[1], value["response"]))
        elif talk is None and _is_response(value):
            if (
                string(value.get("id")) in chunks
                or value.get("object") == "chat.completion.chunk"
                or "delta" in mapping(next(iter(listing(value.get("choices"))), None))
            ):
                chunks.setdefault(string(value.get("id")), (number, []))[1].append(value)
            else:
                found.append(Exchange(number, {}, value))
    found += [Exchange(number, {}, None, tuple(events)) for number, events in chunks.values()]
    if (len(found) + sum(len(events) for _, events in chunks.values()) - len(chunks)) * 2 <= len(values):
        return []
    return sorted(found, key=lambda exchange: exchange.number)


def _fixed(builder: Builder, request: dict[str, Any]) -> None:
    known = {spec.name for spec in builder.tools}
    builder.tools += [spec for spec in _tools(request) if spec.name not in known]
    builder.meta.setdefault("model", string(request.get("model")))
    builder.meta.setdefault("title", string(request.get("title")))


def _tools(request: dict[str, Any]) -> list[ToolSpec]:
    return [spec for key in ("tools", "functions") for spec in tool_specs(request.get(key))]


def _read_object(document: Document, value: dict[str, Any]) -> Transcript:
    """One conversation; its records are its messages."""
    talk = _conversation(value)
    if talk is None:
        builder = Builder(READER.info.name, document)
        builder.skip(1, "messages", "there is no list of messages in it")
        return builder.build()
    messages, request = talk
    builder = Builder(READER.info.name, document, total=len(messages))
    _fixed(builder, request)
    reader = Messages(builder, string(request.get("model")) or None)
    for number, message in enumerate(messages, 1):
        if message is not None or number not in document.skipped:
            reader.add(message, number)
    return builder.build()


def _read_conversations(document: Document, talks: Sequence[tuple[int, _Talk]]) -> list[Transcript]:
    transcripts = []
    used = {number for number, _ in talks}
    for at, (number, (messages, request)) in enumerate(talks):
        builder = Builder(READER.info.name, document, total=1 if at else document.total - len(talks) + 1)
        if len(talks) > 1:
            builder.id = string(request.get("custom_id"), request.get("id")) or f"{document.path.stem}-{at}"
        builder.account(number, "metadata")
        _fixed(builder, request)
        reader = Messages(builder, string(request.get("model")) or None)
        for place, message in enumerate(messages, 1):
            reader.add(message, number, place=f", message {place}")
        if at == 0:
            for record in document.records:
                if record.number not in used:
                    builder.skip(record.number, "conversation", f"record {record.number}: no messages in it")
        transcripts.append(builder.build(shared=at > 0))
    return transcripts


def _read_messages(document: Document) -> Transcript:
    builder = Builder(READER.info.name, document)
    reader = Messages(builder)
    some = any(isinstance(record.value, dict) and role_of(record.value) in ROLES for record in document.rows())
    for record in document.rows():
        value = record.value
        if some and isinstance(value, dict) and not role_of(value) and not isinstance(value.get("role"), list | dict):
            _fixed(builder, value)
            builder.unknown(record.number, string(value.get("type")) or "without a role")
        else:
            reader.add(value, record.number)
    return builder.build()


def _messages_of(exchange: Exchange) -> list[Any]:
    return listing(exchange.request.get("messages"))


def _lead_of(exchange: Exchange) -> int:
    return leading(_messages_of(exchange), role_of)


def _told(message: dict[str, Any]) -> str:
    return join_text(parts_of(message, "system"))


def _answer(exchange: Exchange) -> dict[str, Any]:
    return exchange.response if exchange.response is not None else merged(exchange.events) if exchange.events else {}


def _choice(response: dict[str, Any]) -> dict[str, Any]:
    return dict(mapping(next(iter(listing(response.get("choices"))), None)))


def _sent(exchange: Exchange) -> list[Hashable]:
    return [key_of(message) for message in _messages_of(exchange)]


def _got(exchange: Exchange) -> list[Hashable]:
    message = _choice(_answer(exchange)).get("message")
    return [key_of({**message, "role": "assistant"})] if isinstance(message, dict) else []


def read_exchanges(document: Document, exchanges: Sequence[Exchange], format: str = "openai-chat") -> list[Transcript]:
    """One transcript for each conversation that requests and their responses are of."""
    found = runs(exchanges, sent=_sent, got=_got, lead_of=_lead_of)
    others = sum(len(steps) for steps in found[1:])
    total = 1 if isinstance(document.value, dict) else document.total
    transcripts = []
    for at, steps in enumerate(found):
        builder = Builder(format, document, total=len(steps) if at else total - others)
        if len(found) > 1:
            builder.id = string(_answer(steps[0].exchange).get("id")) or f"{document.path.stem}-{at}"
        _Run(builder).read(steps)
        if at == 0:
            _rest(document, exchanges, builder)
        transcripts.append(builder.build(shared=at > 0))
    return transcripts


def _rest(document: Document, exchanges: Sequence[Exchange], builder: Builder) -> None:
    """Account for the further chunks of streams, and for records that are no pair."""
    numbers = {exchange.number for exchange in exchanges}
    for record in document.records:
        if record.number not in numbers:
            if isinstance(record.value, dict) and _is_response(record.value):
                builder.account(record.number, "messages")
            else:
                builder.skip(record.number, "pair", f"record {record.number}: no request and response")


@dataclass(slots=True)
class _Run:
    """One conversation, read pair by pair."""

    builder: Builder
    reader: Messages = field(init=False)
    #: Message of each item of the run, in the order of `runs`.
    places: list[int | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reader = Messages(self.builder)

    def read(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._step(step.exchange, step)

    def _step(self, exchange: Exchange, step: Step) -> None:
        builder, number, request, response = self.builder, exchange.number, exchange.request, _answer(exchange)
        builder.account(number, "metadata")
        _fixed(builder, request)
        if request:  # a response alone does not say what it answers
            told = [text for message in _messages_of(exchange)[: _lead_of(exchange)] if (text := _told(message))]
            builder.request_prefix(told, _tools(request), number)
        else:
            builder.prefix = None
        context = [place for at in step.context if (place := self.places[at]) is not None]
        for place, message in enumerate(_messages_of(exchange)[step.repeats :], step.repeats + 1):
            draft = self.reader.add(message, number, place=f", message {place}")
            self.places.append(None if draft is None else draft.index)
            context += [] if draft is None else [draft.index]
        if response.get("error"):
            builder.report(number, "error", f"record {number}: the provider answered with an error")
        choice = _choice(response)
        message = choice.get("message")
        usage, why = inclusive(response.get("usage"))
        if why:
            builder.report(number, "usage", f"record {number}: {why}")
        if not isinstance(message, dict) and usage is None:
            return
        call = builder.call(
            string(response.get("id")),
            model=string(response.get("model"), request.get("model")) or None,
            usage=usage,
            stop_reason=string(choice.get("finish_reason")) or None,
            ts=epoch_ms(response.get("created")),
            context=tuple(context) if exchange.request else None,
        )
        builder.account(number, "calls")
        if len(listing(response.get("choices"))) > 1:
            builder.report(number, "choices", f"record {number}: {len(response['choices']):,} choices; the first one is read")
        if isinstance(message, dict):
            draft = self.reader.add({**message, "role": "assistant"}, number, call=call.index, ts=call.ts, place=", response")
            if draft is not None:
                draft.id = draft.id or call.id
            self.places.append(None if draft is None else draft.index)
