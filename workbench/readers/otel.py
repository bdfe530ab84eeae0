"""OpenTelemetry traces of model calls: OTLP JSON, and lists of exported spans, as OpenInference and Phoenix write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model import Transcript
from .base import Match, ReaderInfo
from .fields import epoch_ms, json_text, listing, mapping, shallow, string
from .jsontext import NotJson, parse
from .source import Document
from .span_attributes import Attributes, ask_of, kind_of, result_of
from .span_build import read_spans
from .span_items import Memory
from .spans import Span

#: What the resources of a trace are called by the tools that write them.
_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_WRAPPERS = ("data", "spans", "trace", "traces")
_OWN = ("gen_ai.", "openinference.", "llm.", "ai.", "traceloop.", "input.value", "output.value")
_MOST_LEVELS = 4


class OtelReader:
    """Reader of spans that follow the conventions for generative AI."""

    info = ReaderInfo("otel-genai", "OpenTelemetry GenAI and OpenInference spans: OTLP JSON, lists of exported spans")

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        head = [document.value] if isinstance(document.value, dict) else document.head(50)
        wrapped = bool(head) and sum(_wraps(value) for value in head) * 2 > len(head)
        spans = [span for value in head for _, span, _ in _spans(value, 1)][:200]
        if not spans or len(spans) * 2 < len(head):
            return Match(0.9, ("OTLP: resourceSpans",)) if wrapped else None
        names = [name for span in spans for name in _attributes(span.get("attributes"))]
        own = sorted({prefix.rstrip(".") for prefix in _OWN if any(name.startswith(prefix) or name == prefix.rstrip(".") for name in names)})
        if own:
            return Match(0.97, (f"{'OTLP: resourceSpans' if wrapped else 'exported spans'} with attributes of {', '.join(own[:3])}",))
        return Match(0.9, ("OTLP: resourceSpans",)) if wrapped else Match(0.6, ("exported spans",))

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. The spans of one object are its records; of lines or an array it is these."""
        found: list[Span] = []
        numbers: set[int] = set()
        memory = Memory()
        if isinstance(document.value, dict):
            spans = list(_spans(document.value, 1))
            total, numbered = max(1, len(spans)), [(at, span, resource) for at, (_, span, resource) in enumerate(spans, 1)]
        else:
            numbered = [item for record in document.rows() for item in _spans(record.value, record.number)]
            total = document.total
        for number, value, _ in numbered:
            numbers.add(number)
            found.append(_span(number, value, memory))
        if not isinstance(document.value, dict):
            for record in document.rows():
                if record.number not in numbers and not _wraps(record.value):
                    document.report(record.number, "span", f"record {record.number}: no span in it")
                    document.skipped.append(record.number)
                elif record.number not in numbers:
                    found.append(Span(record.number))
        elif not numbered:
            found.append(Span(1))
        return read_spans(document, self.info.name, found, total=total)


READER = OtelReader()


def _wraps(value: Any) -> bool:
    """Say whether a value is OTLP: spans by resource and scope."""
    held = mapping(mapping(value).get("trace")) or mapping(value)
    return any(isinstance(held.get(name), list) for name in _RESOURCES)


def _spans(value: Any, number: int, level: int = 0) -> Iterator[tuple[int, dict[str, Any], Any]]:
    """The spans in a value, with the number of its record."""
    if isinstance(value, list):
        for item in value if level < _MOST_LEVELS else ():
            yield from _spans(item, number, level + 1)
        return
    if not isinstance(value, dict):
        return
    if _is_span(value):
        yield number, value, None
        return
    resources = next((value[name] for name in _RESOURCES if isinstance(value.get(name), list)), None)
    if resources is not None:
        for resource in map(mapping, resources):
            scopes: list[Any] = next((resource[name] for name in _SCOPES if isinstance(resource.get(name), list)), [])
            for scope in map(mapping, scopes):
                for span in listing(scope.get("spans")):
                    if isinstance(span, dict):
                        yield number, span, resource.get("resource")
        return
    if level < _MOST_LEVELS:
        for name in _WRAPPERS:
            if isinstance(value.get(name), list | dict):
                yield from _spans(value[name], number, level + 1)
                return


def _is_span(value: dict[str, Any]) -> bool:
    if "spanId" in value and "traceId" in value and ("attributes" in value or "startTimeUnixNano" in value):
        return True
    context = mapping(value.get("context"))
    named = {"span_id", "trace_id"} <= context.keys() or "context.span_id" in value or {"span_id", "trace_id"} <= value.keys()
    return named and ("attributes" in value or any(key.startswith("attributes.") for key in value))


def _any(value: Any) -> Any:
    """An OTLP value: it says its type, and writes whole numbers as text."""
    held = mapping(value)
    for name in ("stringValue", "string_value", "boolValue", "bool_value", "doubleValue", "double_value", "bytesValue"):
        if name in held:
            return held[name]
    whole = held.get("intValue", held.get("int_value"))
    if whole is not None:
        return int(whole) if isinstance(whole, str) and len(whole) < 20 and whole.lstrip("-").isdigit() and whole.isascii() else whole
    items = mapping(held.get("arrayValue", held.get("array_value")))
    if items:
        return [_any(item) for item in listing(items.get("values"))]
    pairs = mapping(held.get("kvlistValue", held.get("kvlist_value")))
    return {string(mapping(pair).get("key")): _any(mapping(pair).get("value")) for pair in listing(pairs.get("values"))} if pairs else None


def _attributes(value: Any) -> dict[str, Any]:
    """Attributes by name, from OTLP's list of pairs, an object, or JSON text of one."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = parse(value.encode("utf-8", "surrogatepass")).value
        except NotJson:
            return {}
    if isinstance(value, dict):
        return value if shallow(value) else {key: json_text(held) for key, held in value.items()}
    found = {}
    for pair in map(mapping, listing(value)):
        if isinstance(pair.get("key"), str):
            found[pair["key"]] = _any(pair.get("value")) if shallow(pair.get("value")) else json_text(pair.get("value"))
    return found


def _nano(value: Any) -> int | None:
    """A time: in nanoseconds, as OTLP counts, or in any other way."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 25:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value > 10**16:
        value = value // 1_000_000
    return epoch_ms(value)


def _events(value: Any) -> list[dict[str, Any]]:
    found = []
    for event in map(mapping, listing(value)):
        found.append({**_attributes(event.get("attributes")), "event.name": string(event.get("name"))})
    return found


def _span(number: int, value: dict[str, Any], memory: Memory) -> Span:
    attributes = _attributes(value.get("attributes"))
    flat = {key[len("attributes.") :]: held for key, held in value.items() if key.startswith("attributes.")}  # a row of a data frame
    held = Attributes({**attributes, **flat})
    context = mapping(value.get("context"))
    name = string(value.get("name"))
    kind = kind_of(held, name)
    if not kind and string(value.get("span_kind")).upper() in ("LLM", "TOOL", "AGENT"):
        kind = {"LLM": "llm", "TOOL": "tool", "AGENT": "agent"}[value["span_kind"].upper()]  # type: ignore[assignment]
    status = value.get("status")
    code = mapping(status).get("code", mapping(status).get("status_code", value.get("status_code", status)))
    failed = code == 2 or (isinstance(code, str) and code.upper().endswith("ERROR"))
    return Span(
        number,
        string(value.get("spanId"), context.get("span_id"), value.get("context.span_id"), value.get("span_id")),
        string(value.get("parentSpanId"), value.get("parent_id"), value.get("parent_span_id")),
        string(value.get("traceId"), context.get("trace_id"), value.get("context.trace_id"), value.get("trace_id")),
        name,
        kind,
        _nano(value.get("startTimeUnixNano", value.get("start_time", value.get("start_time_unix_nano")))),
        _nano(value.get("endTimeUnixNano", value.get("end_time", value.get("end_time_unix_nano")))),
        held.text("gen_ai.agent.name", "agent_name", "agent.name"),
        held.text("gen_ai.conversation.id", "session.id"),
        ask_of(held, _events(value.get("events")), memory) if kind in ("llm", "agent") else None,
        result_of(held, failed=failed) if kind == "tool" else None,
        failed and kind == "llm",
    )
