"""Gemini API contents: lists of them, requests, responses, request/response pairs, whole or streamed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import Role, Text, Transcript
from .base import Match, ReaderInfo
from .build import Builder, DraftMessage
from .exchanges import Exchange, Step, match_pairs, pairs, runs
from .fields import epoch_ms, listing, mapping, string
from .gemini_parts import Parts, apart, get, is_part, key_of, tool_specs
from .source import Document
from .usage import gemini as usage_of
from .usage import tokens

_ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "gemini": "assistant",
    "assistant": "assistant",
    "function": "tool",
    "tool": "tool",
    "system": "system",
}


class GoogleGenaiReader:
    """Reader of the Gemini API's contents in every shape in which they are saved."""

    info = ReaderInfo("google-genai", "Gemini API: contents, requests, responses, request/response pairs")

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        of_pairs, match = match_pairs(document, _is_pair, "the Gemini API")
        if of_pairs:
            return match
        head = [document.value] if isinstance(document.value, dict) else document.head(200)
        if not head:
            return None
        if sum(isinstance(value.get("contents"), list) and any(map(_is_content, value["contents"][:20])) for value in head) * 2 > len(head):
            return Match(0.93, ("requests with contents of parts",))
        if sum(_is_response(value) for value in head) * 2 > len(head):
            return Match(0.95, ("responses with candidates",))
        own = sum(map(_is_content, head))
        if own * 2 > len(head):
            sure = any(value.get("role") == "model" for value in head)
            return Match(0.92 if sure else 0.6, (f"{own} of the first {len(head)} records have a role and parts",))
        return None

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. Pairs that do not belong together, and lines with a conversation each, are runs of their own."""
        exchanges = [exchange for exchange in pairs(document) if "contents" in exchange.request]
        if exchanges:
            return _read_pairs(document, exchanges)
        value = document.value
        if isinstance(value, dict) and isinstance(value.get("contents"), list):
            return [_read_request(document, value)]
        requests = [record.number for record in document.records if isinstance(record.value, dict) and isinstance(record.value.get("contents"), list)]
        if requests and len(requests) * 2 > len(document.records):
            return _read_requests(document, requests)
        return [_read_contents(document)]


READER = GoogleGenaiReader()


def _is_content(value: Any) -> bool:
    if not isinstance(value, dict) or not {"uuid", "sessionId", "id", "type"}.isdisjoint(value):
        return False
    parts = value.get("parts")
    return string(value.get("role")) in ("", *_ROLES) and isinstance(parts, list) and (not parts or any(map(is_part, parts)))


def _is_response(value: Any) -> bool:
    held = mapping(value)
    candidates = held.get("candidates")
    if not isinstance(candidates, list):
        return get(held, "usageMetadata") is not None and get(held, "modelVersion") is not None
    return get(held, "usageMetadata") is not None or any("content" in mapping(candidate) for candidate in candidates)


def _is_pair(exchange: Exchange) -> bool:
    contents = exchange.request.get("contents")
    items = contents if isinstance(contents, list) else [contents]
    return any(isinstance(item, str) or _is_content(item) or is_part(item) for item in items[:20])


def contents_of(value: Any) -> list[tuple[int, str, Any]]:
    """Place, role and parts of each content. Contents of the model that follow each other are one answer.

    Examples
    --------
    >>> contents_of([{"role": "user", "parts": [1]}, {"role": "model", "parts": [2]}, {"role": "model", "parts": [3]}])
    [(1, 'user', [1]), (2, 'assistant', [2, 3])]
    """
    found: list[tuple[int, str, Any]] = []
    for place, item in enumerate(value if isinstance(value, list) else [value], 1):
        held = mapping(item)
        role: str = _ROLES.get(string(held.get("role")), "user")
        parts = held.get("parts", held.get("content")) if "role" in held or "parts" in held else item
        parts = [*parts] if isinstance(parts, list) else [parts]
        if role == "assistant" and parts and all(get(mapping(part), "functionResponse") is not None for part in parts):
            role = "tool"  # some clients send results in the model's name
        if role == "assistant" and found and found[-1][1] == "assistant":
            found[-1][2].extend(parts)
        else:
            found.append((place, role, parts))
    return found


@dataclass(slots=True)
class Talk:
    """One conversation, read content by content."""

    builder: Builder
    parts: Parts = field(default_factory=Parts)

    def add(self, role: str, content: Any, number: int, *, place: str = "", ts: int | None = None, call: int | None = None, id: str = "") -> list[DraftMessage]:
        """Add a content: the results in it, then what is said beside them."""
        parts = self.parts.of(content)
        for fault in dict.fromkeys(self.parts.faults):
            self.builder.report(number, "content", f"record {number}{place}: {fault}")
        self.parts.faults.clear()
        if role == "assistant":
            return [self.builder.message("assistant", parts, number, id=id, ts=ts, call=call)]
        results, rest = apart(parts)
        found = [self.builder.message("tool", [result], number, id=id, ts=ts) for result in results]
        if rest or not found:
            found.append(self.builder.message("system" if role == "system" else "user", rest, number, id=id, ts=ts))
        return found

    def about(self, request: dict[str, Any], number: int) -> None:
        """Take what a request holds beside its contents."""
        builder = self.builder
        config = mapping(request.get("config"))
        told = self.told(request) or self.told(config)
        tools = tool_specs(request.get("tools")) or tool_specs(config.get("tools"))
        known = {spec.name for spec in builder.tools}
        builder.tools += [spec for spec in tools if spec.name not in known]
        builder.system += [] if builder.system else told
        builder.request_prefix(told, tools, number)
        builder.meta.setdefault("model", string(request.get("model")))

    def told(self, request: Mapping[str, Any]) -> list[str]:
        """System text of a request."""
        value = get(request, "systemInstruction")
        return [part.text for _, _, parts in contents_of(value) for part in self.parts.of(parts) if type(part) is Text] if value is not None else []

    def answer(self, response: dict[str, Any], number: int, context: list[int] | None, *, model: str = "", place: str = "") -> DraftMessage | None:
        """Add a response. The first of several candidates is read."""
        builder, candidates = self.builder, listing(response.get("candidates"))
        candidate = mapping(next(iter(candidates), None))
        raw = get(response, "usageMetadata")
        usage, why = usage_of(raw)
        stated = tokens(get(mapping(raw), "totalTokenCount"))
        if why:
            builder.report(number, "usage", f"record {number}: {why}")
        elif usage is not None and stated is not None and stated != usage.total:
            builder.report(number, "usage_total", f"record {number}: the stated total is {stated:,} tokens, its parts add up to {usage.total or 0:,}")
        if response.get("error"):
            builder.report(number, "error", f"record {number}: the provider answered with an error")
        if blocked := string(get(mapping(get(response, "promptFeedback")), "blockReason")):
            builder.report(number, "error", f"record {number}: the prompt was refused ({blocked[:60]})")
        if usage is None and not candidate:
            return None
        if len(candidates) > 1:
            builder.report(number, "choices", f"record {number}: {len(candidates):,} candidates; the first one is read")
        call = builder.call(
            string(get(response, "responseId")),
            model=string(get(response, "modelVersion"), model) or None,
            usage=usage,
            stop_reason=string(get(candidate, "finishReason")) or None,
            ts=epoch_ms(get(response, "createTime")),
            context=None if context is None else tuple(context),
        )
        builder.account(number, "calls")
        content = mapping(candidate.get("content"))
        if "parts" not in content:
            return None
        return self.add("assistant", content["parts"], number, place=place, ts=call.ts, call=call.index, id=call.id)[0]


def joined(chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The response whose stream these chunks are: parts one after the other, texts joined, the newest of all else.

    Examples
    --------
    >>> one, two = ({"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in ("He", "llo"))
    >>> joined([one, two])["candidates"][0]["content"]["parts"]
    [{'text': 'Hello'}]
    """
    whole: dict[str, Any] = {}
    parts: list[Any] = []
    texts: list[list[str]] = []  # of each part, what its text is joined from
    candidate: dict[str, Any] = {}
    for chunk in chunks:
        whole |= {key: value for key, value in chunk.items() if key != "candidates" and value is not None}
        first = mapping(next(iter(listing(chunk.get("candidates"))), None))
        candidate |= {key: value for key, value in first.items() if key != "content" and value is not None}
        for part in listing(mapping(first.get("content")).get("parts")):
            before = mapping(parts[-1]) if parts else {}
            if texts and texts[-1] and _is_text(part) and part.get("thought") == before.get("thought") and get(before, "thoughtSignature") is None:
                parts[-1] = {**before, **part}
                texts[-1].append(part["text"])
            else:
                parts.append(part)
                texts.append([part["text"]] if _is_text(part) else [])
    parts = [{**part, "text": "".join(held)} if held else part for part, held in zip(parts, texts, strict=True)]
    if candidate or parts:
        whole["candidates"] = [{**candidate, "content": {"role": "model", "parts": parts}}]
    return whole


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str) and not any(isinstance(value, dict) for value in part.values())


def _read_contents(document: Document) -> Transcript:
    """A list of contents, or of responses."""
    builder = Builder(READER.info.name, document)
    talk = Talk(builder)
    open_: DraftMessage | None = None
    stream: list[tuple[int, dict[str, Any]]] = []
    for record in document.rows():
        number, value = record.number, record.value
        if _is_response(value):
            same = stream and get(value, "responseId") is not None and get(value, "responseId") == get(stream[-1][1], "responseId")
            if not same:
                _stream(talk, stream)
                stream = []
            stream.append((number, value))
            open_ = None
            continue
        _stream(talk, stream)
        stream = []
        if not isinstance(value, dict) or not {"parts", "role"} & value.keys():
            builder.skip(number, "record", f"record {number}: not a content")
            continue
        ((_, role, content),) = contents_of(value)
        if role == "assistant" and open_ is not None:
            builder.extend(open_, talk.parts.of(content), number)
            talk.parts.faults.clear()
            continue
        ts = epoch_ms(value.get("timestamp", value.get("ts")))
        if role == "assistant":
            call = builder.call(model=string(value.get("model")) or None, ts=ts)
            open_ = talk.add(role, content, number, ts=ts, call=call.index)[0]
        else:
            talk.add(role, content, number, ts=ts)
            open_ = None
    _stream(talk, stream)
    return builder.build()


def _stream(talk: Talk, stream: list[tuple[int, dict[str, Any]]]) -> None:
    if not stream:
        return
    draft = talk.answer(joined([value for _, value in stream]), stream[0][0], None)
    for number, _ in stream:
        talk.builder.account(number, "metadata" if draft is None else "messages")


def _read_request(document: Document, value: dict[str, Any]) -> Transcript:
    """One request; its records are its contents."""
    contents = value["contents"]
    builder = Builder(READER.info.name, document, total=len(contents))
    talk = Talk(builder)
    _fill(talk, value, [*range(1, len(contents) + 1)], document.skipped)
    for key in ("response", "output"):
        if _is_response(value.get(key)):
            talk.answer(value[key], max(1, len(contents)), [*range(len(builder.messages))])
    return builder.build()


def _fill(talk: Talk, value: dict[str, Any], numbers: Sequence[int], skipped: Sequence[int], *, place: bool = False) -> None:
    talk.about(value, numbers[0] if numbers else 1)
    for at, role, parts in contents_of(value["contents"]):
        number = numbers[at - 1]
        if value["contents"][at - 1] is None and number in skipped:
            continue
        call = talk.builder.call(model=string(value.get("model")) or None).index if role == "assistant" else None
        talk.add(role, parts, number, place=f", content {at}" if place else "", call=call)
    if not place:
        seen = 0
        for at, _, _ in [*contents_of(value["contents"]), (len(numbers) + 1, "", None)]:
            for number in range(seen + 1, at):  # contents that were joined with the one before them
                talk.builder.account(number, "messages")
            seen = at


def _read_requests(document: Document, requests: Sequence[int]) -> list[Transcript]:
    """Lines with a conversation each, as for tuning."""
    transcripts: list[Transcript] = []
    held = set(requests)
    for record in document.records:
        if record.number not in held:
            continue
        first, value = not transcripts, record.value
        builder = Builder(READER.info.name, document, total=document.total - len(requests) + 1 if first else 1)
        builder.id = string(value.get("id")) or (f"{document.path.stem}-{len(transcripts)}" if len(requests) > 1 else "")
        builder.account(record.number, "metadata")
        _fill(Talk(builder), value, [record.number] * len(value["contents"]), (), place=True)
        if first:
            for other in document.records:
                if other.number not in held:
                    builder.skip(other.number, "conversation", f"record {other.number}: no contents in it")
        transcripts.append(builder.build(shared=not first))
    return transcripts


def _answer(exchange: Exchange) -> dict[str, Any]:
    return exchange.response if exchange.response is not None else joined(exchange.events)


def _read_pairs(document: Document, exchanges: Sequence[Exchange]) -> list[Transcript]:
    reader = Parts()

    def key(role: str, parts: Any) -> Hashable:
        return key_of(role, reader.of(parts))

    def got(exchange: Exchange) -> list[Hashable]:
        content = mapping(mapping(next(iter(listing(_answer(exchange).get("candidates"))), None)).get("content"))
        return [key("assistant", content["parts"])] if "parts" in content else []

    found = runs(exchanges, sent=lambda exchange: [key(role, parts) for _, role, parts in contents_of(exchange.request["contents"])], got=got)
    others = sum(len(steps) for steps in found[1:])
    total = 1 if isinstance(document.value, dict) else document.total
    numbers = {exchange.number for exchange in exchanges}
    transcripts = []
    for at, steps in enumerate(found):
        builder = Builder(READER.info.name, document, total=len(steps) if at else total - others)
        if len(found) > 1:
            builder.id = string(get(_answer(steps[0].exchange), "responseId")) or f"{document.path.stem}-{at}"
        if at == 0:
            for record in document.records:
                if record.number not in numbers:
                    builder.skip(record.number, "pair", f"record {record.number}: no request with contents")
        _read_run(Talk(builder), steps)
        transcripts.append(builder.build(shared=at > 0))
    return transcripts


def _read_run(talk: Talk, steps: Sequence[Step]) -> None:
    places: list[list[int]] = []  # messages of each item of the run, in the order of `runs`
    for step in steps:
        exchange, number = step.exchange, step.exchange.number
        talk.builder.account(number, "metadata")
        talk.about(exchange.request, number)
        context = [index for at in step.context for index in places[at]]
        for place, role, parts in contents_of(exchange.request["contents"])[step.repeats :]:
            places.append([draft.index for draft in talk.add(role, parts, number, place=f", content {place}")])
            context += places[-1]
        response = _answer(exchange)
        draft = talk.answer(response, number, context, model=string(exchange.request.get("model")), place=", response")
        if "parts" in mapping(mapping(next(iter(listing(response.get("candidates"))), None)).get("content")):
            places.append([] if draft is None else [draft.index])
