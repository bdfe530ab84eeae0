"""Anthropic Messages: requests, responses, lists of messages, request/response pairs, streams."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ..model import Transcript
from .anthropic_blocks import OWN_TYPES
from .anthropic_messages import Conversation, key_of, lead_of
from .anthropic_stream import EVENTS, assembled
from .base import Match, ReaderInfo
from .build import Builder
from .exchanges import Exchange, Step, match_pairs, pairs, runs
from .fields import listing, mapping, string
from .source import Document

#: What stands in messages of other APIs only.
_OTHER_BLOCKS = frozenset(("image_url", "input_audio", "file", "refusal", "input_text", "output_text", "input_image", "input_file", "tool-call", "tool-result"))
_OTHER_KEYS = ("tool_calls", "tool_call_id", "function_call", "parts", "parentUuid", "payload")
_BLOCKS = OWN_TYPES | {"document", "web_search_tool_result", "web_fetch_tool_result", "mcp_tool_result", "search_result"}


class AnthropicReader:
    """Reader of Anthropic Messages in every shape in which they are saved."""

    info = ReaderInfo("anthropic", "Anthropic Messages: requests, responses, lists, request/response pairs", "support_session.json")

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        of_pairs, match = match_pairs(document, _is_pair, "the Messages API")
        if of_pairs:
            return match
        if isinstance(document.value, dict):
            return _of_object(document.value)
        head = document.head(200)
        if head and sum(value.get("type") in EVENTS for value in head if isinstance(value.get("type"), str)) * 2 > len(head):
            return Match(0.95, ("events of a streamed response",))
        held = [match for value in head if isinstance(value.get("messages"), list) and (match := _of_object(value))]
        if held and len(held) * 2 > len(head):
            return max(held, key=lambda match: match.confidence)
        return _of_messages(head)

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. Pairs that do not belong together, and lines with a conversation each, are runs of their own."""
        exchanges = [exchange for exchange in pairs(document) if isinstance(exchange.request.get("messages"), list)]
        if exchanges:
            return _read_pairs(document, exchanges)
        if isinstance(document.value, dict):
            return [_read_object(document, document.value)]
        values = list(document.objects())
        if sum(string(value.get("type")) in EVENTS for _, value in values) * 2 > len(values):
            return [_read_events(document)]
        talks = [number for number, value in values if isinstance(value.get("messages"), list)]
        if talks and len(talks) * 2 > len(document.records):
            return _read_conversations(document, talks)
        return [_read_messages(document, [(record.number, record.value) for record in document.records])]


READER = AnthropicReader()


def _types(messages: Iterable[Any]) -> set[str]:
    return {string(mapping(block).get("type")) for message in messages for block in listing(mapping(message).get("content"))[:50]}


def _is_response(value: dict[str, Any]) -> bool:
    return (
        value.get("type") == "message" and value.get("role") == "assistant" and isinstance(value.get("content"), list) and not _types([value]) & _OTHER_BLOCKS
    )


def _is_pair(exchange: Exchange) -> bool:
    messages = exchange.request.get("messages")
    if not isinstance(messages, list):
        return False
    response = exchange.response
    if response is not None and "choices" not in response:
        return _is_response(response) or response.get("type") == "error" or "system" in exchange.request
    return response is None and (
        _of_object(exchange.request) is not None if not exchange.events else exchange.events[0].get("type") in ("message_start", "error")
    )


def _of_object(value: dict[str, Any]) -> Match | None:
    if _is_response(value):
        return Match(0.95, ("type: message, with content blocks",))
    messages = value.get("messages")
    if not isinstance(messages, list):
        return None
    match = _of_messages([item for item in messages[:200] if isinstance(item, dict)])
    if match is not None and match.confidence >= 0.9:
        return match
    named = sorted({"anthropic_version", "stop_sequences", "context_management"} & value.keys())
    if isinstance(value.get("system"), str | list) and not any(mapping(item).get("role") in ("system", "tool", "developer") for item in messages):
        named.insert(0, "system text beside the messages")
    if any("input_schema" in mapping(tool) for tool in listing(value.get("tools"))):
        named.append("tools with input_schema")
    return Match(0.88, (", ".join(named),)) if named and not any(key in mapping(item) for item in messages for key in _OTHER_KEYS) else match


def _of_messages(head: Sequence[dict[str, Any]]) -> Match | None:
    known = [value for value in head if value.get("role") in ("user", "assistant") and "content" in value]
    if not known or len(known) * 2 <= len(head):
        return None
    types = _types(known)
    if types & _OTHER_BLOCKS or any(value.get("role") in ("tool", "function") or any(key in value for key in _OTHER_KEYS) for value in head):
        return None
    if own := types & _BLOCKS:
        return Match(0.93, (f"content blocks {', '.join(sorted(own)[:4])}",))
    if any("source" in mapping(block) for value in known for block in listing(value.get("content"))):
        return Match(0.93, ("pictures with a source",))
    if any(_is_response(value) or string(value.get("id")).startswith("msg_") for value in known):
        return Match(0.9, ("responses with type: message",))
    return Match(0.5, ("messages of users and assistants only",)) if types - {""} else Match(0.35, ("messages with role and content",))


def _read_object(document: Document, value: dict[str, Any]) -> Transcript:
    """A request, a saved conversation, or one response."""
    messages = value.get("messages")
    if not isinstance(messages, list):
        return _read_messages(document, [(1, value)])
    builder = Builder(READER.info.name, document, total=len(messages))
    conversation = Conversation(builder)
    conversation.request(value, 1)
    builder.meta.setdefault("title", string(value.get("title"), value.get("name")))
    for number, message in enumerate(messages, 1):
        if message is not None or number not in document.skipped:
            conversation.add(message, number)
    response = value.get("response")
    if isinstance(response, dict) and _is_response(response):
        conversation.answer(response, max(1, len(messages)))
    return builder.build()


def _read_messages(document: Document, values: Sequence[tuple[int, Any]]) -> Transcript:
    builder = Builder(READER.info.name, document, total=max(document.total, len(values)))
    conversation = Conversation(builder)
    for number, value in values:
        if isinstance(value, dict) and not isinstance(value.get("role"), str) and {"system", "tools"} & value.keys():
            conversation.request(value, number)
            builder.account(number, "metadata")
        else:
            conversation.add(value, number)
    return builder.build()


def _read_events(document: Document) -> Transcript:
    builder = Builder(READER.info.name, document)
    conversation = Conversation(builder)
    stream: list[tuple[int, dict[str, Any]]] = []
    for record in document.records:
        if not isinstance(record.value, dict):
            builder.skip(record.number, "record", f"record {record.number}: not an event")
            continue
        if record.value.get("type") == "message_start":
            _stream(conversation, stream)
            stream = []
        stream.append((record.number, record.value))
    _stream(conversation, stream)
    return builder.build()


def _stream(conversation: Conversation, stream: list[tuple[int, dict[str, Any]]]) -> None:
    response = assembled(event for _, event in stream)
    if response is not None:
        conversation.answer(response, stream[0][0])
    for number, _ in stream:
        conversation.builder.account(number, "metadata" if response is None else "messages")


def _read_conversations(document: Document, talks: list[int]) -> list[Transcript]:
    transcripts: list[Transcript] = []
    held = set(talks)
    for record in document.records:
        if record.number not in held:
            continue
        first = not transcripts
        value = record.value
        builder = Builder(READER.info.name, document, total=document.total - len(talks) + 1 if first else 1)
        builder.id = string(value.get("custom_id"), value.get("id")) or (f"{document.path.stem}-{len(transcripts)}" if len(talks) > 1 else "")
        builder.account(record.number, "metadata")
        conversation = Conversation(builder)
        conversation.request(value, record.number)
        for place, message in enumerate(value["messages"], 1):
            conversation.add(message, record.number, f", message {place}")
        if first:
            for other in document.records:
                if other.number not in held:
                    builder.skip(other.number, "conversation", f"record {other.number}: no messages in it")
        transcripts.append(builder.build(shared=not first))
    return transcripts


def _answer(exchange: Exchange) -> dict[str, Any] | None:
    return exchange.response if exchange.response is not None else assembled(exchange.events)


def _read_pairs(document: Document, exchanges: Sequence[Exchange]) -> list[Transcript]:
    answers = {exchange.number: _answer(exchange) for exchange in exchanges}

    def sent(exchange: Exchange) -> list[Hashable]:
        return [key_of(message) for message in exchange.request["messages"]]

    def got(exchange: Exchange) -> list[Hashable]:
        answer = answers[exchange.number]
        return [key_of({**answer, "role": "assistant"})] if answer is not None and "content" in answer else []

    found = runs(exchanges, sent=sent, got=got, lead_of=lambda exchange: lead_of(exchange.request["messages"]))
    others = sum(len(steps) for steps in found[1:])
    total = 1 if isinstance(document.value, dict) else document.total
    transcripts = []
    for at, steps in enumerate(found):
        builder = Builder(READER.info.name, document, total=len(steps) if at else total - others)
        if len(found) > 1:
            builder.id = string(mapping(answers[steps[0].exchange.number]).get("id")) or f"{document.path.stem}-{at}"
        if at == 0:
            for record in document.records:
                if record.number not in answers:
                    builder.skip(record.number, "pair", f"record {record.number}: no request with messages")
        _read_run(builder, steps, answers)
        transcripts.append(builder.build(shared=at > 0))
    return transcripts


def _read_run(builder: Builder, steps: Sequence[Step], answers: dict[int, dict[str, Any] | None]) -> None:
    conversation = Conversation(builder)
    places: list[list[int]] = []  # messages of each item of the run, in the order of `runs`
    for step in steps:
        exchange, number = step.exchange, step.exchange.number
        builder.account(number, "metadata")
        conversation.request(exchange.request, number)
        conversation.prefix(exchange.request, number)
        context = [index for at in step.context for index in places[at]]
        for place, message in enumerate(exchange.request["messages"][step.repeats :], step.repeats + 1):
            places.append(conversation.add(message, number, f", message {place}"))
            context += places[-1]
        answer = answers[number]
        if answer is None or "content" not in answer or answer.get("error") is not None:
            why = string(mapping(mapping(answer).get("error")).get("type")) or "no response"
            builder.report(number, "response", f"record {number}: the request has no complete answer ({why})")
        if answer is not None and "content" in answer:
            model = string(exchange.request.get("model")) or None
            places.append(conversation.answer(answer, number, model=model, context=conversation.seen(context), place=", response"))
            builder.account(number, "calls")
