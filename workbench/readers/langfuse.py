"""Langfuse traces: a trace with its observations, lists of observations or of traces, as the export and the API give them.

What an observation holds is what the watched SDK said, as an object, as JSON text, or as JSON text of JSON text; spans that
came in by OpenTelemetry keep their attributes in the metadata, which often tell more.
"""

from __future__ import annotations

from typing import Any

from ..model import Transcript, join_text
from .base import Match, ReaderInfo
from .fields import epoch_ms, json_text, mapping, shallow, string
from .source import Document
from .span_attributes import Attributes, ask_of, kind_of, model_name, result_of
from .span_build import read_spans
from .span_items import Found, Item, Memory
from .span_messages import decoded, read_input, read_output
from .span_usage import counted
from .spans import Ask, Kind, Span

_KINDS: dict[str, Kind] = {"GENERATION": "llm", "TOOL": "tool", "RETRIEVER": "tool", "AGENT": "agent"}
_TYPES = frozenset({*_KINDS, "SPAN", "EVENT", "CHAIN", "EMBEDDING", "EVALUATOR", "GUARDRAIL"})
#: Names of token counts. What is not here (sound, text, money) is part of one that is, or no count of tokens.
_USAGE = {
    "input": ("input", "input_tokens", "prompt_tokens", "promptTokens", "inputUsage"),
    "output": ("output", "output_tokens", "completion_tokens", "completionTokens", "outputUsage"),
    "read": ("input_cache_read", "cache_read_input_tokens", "input_cached_tokens", "input_cached", "prompt_details.cache_read", "cached_content_token_count"),
    "write": ("input_cache_creation", "cache_creation_input_tokens", "input_cache_write", "prompt_details.cache_write"),
    "write_1h": ("input_cache_creation_1h",),
    "reasoning": ("output_reasoning", "output_reasoning_tokens", "completion_details.reasoning", "reasoning_tokens", "thoughts_token_count"),
    "total": ("total", "total_tokens", "totalTokens", "totalUsage"),
}


class LangfuseReader:
    """Reader of Langfuse traces."""

    info = ReaderInfo("langfuse", "Langfuse traces: observations, with the messages of any SDK")

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        head = [document.value] if isinstance(document.value, dict) else document.head(50)
        held = [observation for value in head for observation in _observations(value)][:100]
        own = [value for value in held if _is_observation(value)]
        if own and len(own) * 2 > len(held):
            return Match(0.97, (f"observations of a trace ({', '.join(sorted({string(value.get('type')) for value in own})[:4])})",))
        if head and sum(_is_trace(value) for value in head) * 2 > len(head):
            return Match(0.9, ("a trace with input, output and scores",))
        return None

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. The observations of one trace are its records; of lines or an array it is these."""
        spans: list[Span] = []
        titles: dict[str, str] = {}
        memory = Memory()
        value = document.value
        if isinstance(value, dict):
            held = _observations(value)
            total = max(1, len(held))
            spans = [_span(number, item, value, memory) for number, item in enumerate(held, 1)]
            _about(value, titles, spans, 1)
        else:
            total = document.total
            for record in document.rows():
                held = _observations(record.value)
                known = [_span(record.number, item, record.value, memory) for item in held]
                _about(record.value, titles, known, record.number)
                if not known:
                    document.report(record.number, "observation", f"record {record.number}: no observation in it")
                    document.skipped.append(record.number)
                spans += known
        return read_spans(document, self.info.name, spans, total=total, titles=titles)


READER = LangfuseReader()


def _observations(value: Any) -> list[Any]:
    """The observations in a value: it is one, or holds a list of them, which may be JSON text."""
    if not isinstance(value, dict):
        return []
    if _is_observation(value):
        return [value]
    for held in (value, mapping(value.get("trace")), mapping(value.get("data"))):
        listed = decoded(held.get("observations"))
        if isinstance(listed, list):
            return listed
    listed = value.get("data")
    if isinstance(listed, list):
        return [item for held in listed for item in (_observations(held) or ([held] if _is_trace(held) else []))]
    return []


def _is_observation(value: Any) -> bool:
    held = mapping(value)
    return (
        held.get("type") in _TYPES if isinstance(held.get("type"), str) and {"parentObservationId", "traceId", "trace_id", "startTime"} & held.keys() else False
    )


def _is_trace(value: Any) -> bool:
    held = mapping(mapping(value).get("trace")) or mapping(value)
    return "input" in held and "output" in held and "timestamp" in held and bool({"scores", "projectId", "observations", "sessionId"} & held.keys())


def _about(value: Any, titles: dict[str, str], spans: list[Span], number: int) -> None:
    """Take a trace's own name; one without observations is the request that it tells of."""
    trace = mapping(mapping(value).get("trace")) or mapping(value)
    if _is_observation(trace) or not _is_trace(trace):
        return
    id = string(trace.get("id"))
    titles[id] = string(trace.get("name"))
    if not spans:
        ask = Ask(read_input(trace.get("input")).items, read_output(trace.get("output")).items)
        start = epoch_ms(trace.get("timestamp"))
        spans.append(Span(number, id, "", id, titles[id], "agent", start, start, "", string(trace.get("sessionId")), ask if ask.sent or ask.got else None))


def _span(number: int, value: Any, whole: Any, memory: Memory) -> Span:
    held = mapping(value)
    trace = mapping(mapping(whole).get("trace")) or mapping(whole)
    metadata = decoded(held.get("metadata"))
    attributes = decoded(mapping(metadata).get("attributes"))
    known = Attributes(attributes if isinstance(attributes, dict) and shallow(attributes) else {})
    name, type_ = string(held.get("name")), string(held.get("type")).upper()
    kind = _KINDS.get(type_, "")
    if type_ in ("SPAN", "CHAIN", "") and (told := kind_of(known)) in ("tool", "agent"):
        kind = told
    failed = string(held.get("level")).upper() == "ERROR"
    return Span(
        number,
        string(held.get("id")),
        string(held.get("parentObservationId"), held.get("parent_observation_id")),
        string(held.get("traceId"), held.get("trace_id"), trace.get("id")),
        name,
        kind,
        epoch_ms(held.get("startTime", held.get("start_time"))),
        epoch_ms(held.get("endTime", held.get("end_time"))),
        known.text("gen_ai.agent.name", "agent_name", "agent.name") or (name if kind == "agent" else ""),
        string(trace.get("sessionId"), trace.get("session_id"), known.text("gen_ai.conversation.id", "session.id")),
        _ask(held, known, memory) if kind in ("llm", "agent") else None,
        _result(held, known, failed) if kind == "tool" else None,
        failed and kind == "llm",
    )


def _ask(held: Any, known: Attributes, memory: Memory) -> Ask:
    """A request: from the observation's own fields, and from the attributes where they tell more."""
    ask = ask_of(known)
    sent, got = read_input(held.get("input"), memory), read_output(held.get("output"))
    ask.sent = _better(ask.sent, sent)
    ask.got = _better(ask.got, got)
    ask.system, ask.tools = ask.system or sent.system, ask.tools or sent.tools
    ask.model = model_name(string(held.get("model"), held.get("providedModelName")) or ask.model)
    usage, fault = _usage(held)
    if usage is not None:
        ask.usage, ask.fault = usage, fault
    return ask


def _better(told: list[Item], own: Found) -> list[Item]:
    """The attributes' messages, unless the observation itself tells more and knows who said it."""
    more = sum(len(item.parts) for item in own.items) > sum(len(item.parts) for item in told)
    named = {item.role for item in told} <= {item.role for item in own.items}
    return own.items if not told or (more and named and not any(map(_is_repr, own.items))) else told


def _is_repr(item: Item) -> bool:
    """Say whether a message is the text of a Python object: it says its role in words."""
    return item.role == "user" and join_text(item.parts).startswith(("role='", "Message(role='"))


def _usage(held: Any) -> Any:
    for given in (held.get("usageDetails"), held.get("usage_details"), held.get("usage"), held):
        counts = decoded(given)
        if isinstance(counts, dict):
            raw = {name: next((counts[key] for key in keys if _is_count(counts.get(key))), None) for name, keys in _USAGE.items()}
            if counts is held:  # its input and output are what was said
                raw = {
                    name: next((held[key] for key in keys if key.endswith(("Tokens", "Usage")) and _is_count(held.get(key))), None)
                    for name, keys in _USAGE.items()
                }
            if raw["input"] or raw["output"] or raw["total"]:
                return counted({name: value for name, value in raw.items() if value is not None})
    return None, None


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _result(held: Any, known: Attributes, failed: bool) -> Any:
    given = decoded(held.get("output"))
    told = result_of(known, name=string(held.get("name")), failed=failed)
    if given is None or told.parts:
        return told
    text = given if isinstance(given, str) else json_text(given)
    return result_of(Attributes({**_named(told), "output.value": text}), failed=failed)


def _named(result: Any) -> dict[str, Any]:
    return {"gen_ai.tool.call.id": result.call_id, "gen_ai.tool.name": result.name or ""}
