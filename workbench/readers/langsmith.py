"""LangSmith runs: lists, lines or trees of them, as its API and its exports give them.

A run of type ``llm`` is a request with its answer; a chain or a graph holds others, and a tool's run what it gave back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..model import Transcript
from .base import Match, ReaderInfo
from .fields import epoch_ms, listing, mapping, string, tool_specs
from .source import Document
from .span_attributes import model_name
from .span_build import read_spans
from .span_items import Memory
from .span_messages import decoded, id_of, items_of, read_input, read_output
from .span_usage import counted
from .spans import Ask, Kind, Span

_KINDS: dict[str, Kind] = {"llm": "llm", "tool": "tool", "retriever": "tool"}
_TYPES = frozenset({*_KINDS, "chain", "prompt", "parser", "embedding"})
_MOST_LEVELS = 200


class LangSmithReader:
    """Reader of LangSmith's runs."""

    info = ReaderInfo("langsmith", "LangSmith runs: JSON or lines, flat or in trees")

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        head = [document.value] if isinstance(document.value, dict) else document.head(50)
        runs = [run for value in head for run in _held(value)][:100]
        own = sum(map(_is_run, runs))
        return Match(0.95, (f"{own} of the first {len(runs)} records are runs with a run_type",)) if own and own * 2 > len(runs) else None

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. The runs of one object are its records; of lines or an array it is these."""
        memory = Memory()
        spans: list[Span] = []
        titles: dict[str, str] = {}
        if isinstance(document.value, dict):
            runs = [run for held in _held(document.value) for run in _tree(held)]
            numbered = [*enumerate(runs, 1)]
            total = max(1, len(runs))
        else:
            numbered = []
            total = document.total
            for record in document.rows():
                found = [run for held in _held(record.value) for run in _tree(held)]
                numbered += [(record.number, run) for run in found]
                if not found:
                    document.report(record.number, "run", f"record {record.number}: no run in it")
                    document.skipped.append(record.number)
        for number, run in numbered:
            span = _span(number, run, memory)
            spans.append(span)
            if not span.parent:
                titles[span.trace] = span.name
        return read_spans(document, self.info.name, spans, total=total, titles=titles)


READER = LangSmithReader()


def _is_run(value: Any) -> bool:
    held = mapping(value)
    kind = held.get("run_type")
    return isinstance(kind, str) and kind in _TYPES and bool({"inputs", "outputs", "dotted_order", "trace_id", "parent_run_id"} & held.keys())


def _held(value: Any) -> list[Any]:
    """The runs in a value: it is one, or holds a list of them."""
    held = mapping(value)
    if "run_type" in held:
        return [value]
    return next((held[key] for key in ("runs", "data") if isinstance(held.get(key), list)), [])


def _tree(run: Any) -> Iterator[dict[str, Any]]:
    """A run and those inside it, which know their parent by the place where they stand."""
    open_ = [(run, "", "", 0)]
    while open_:
        held, parent, trace, level = open_.pop()
        if not isinstance(held, dict):
            continue
        own = string(held.get("id"))
        trace = string(held.get("trace_id"), trace, own)
        yield {**held, "parent_run_id": string(held.get("parent_run_id"), parent), "trace_id": trace}
        if level < _MOST_LEVELS:
            open_ += [(inner, own, trace, level + 1) for inner in reversed(listing(held.get("child_runs")))]


def _span(number: int, run: dict[str, Any], memory: Memory) -> Span:
    metadata = mapping(mapping(run.get("extra")).get("metadata"))
    kind = _KINDS.get(string(run.get("run_type")), "")
    name, failed = string(run.get("name")), bool(run.get("error"))
    return Span(
        number,
        string(run.get("id")),
        string(run.get("parent_run_id")),
        string(run.get("trace_id")),
        name,
        kind,
        epoch_ms(run.get("start_time")),
        epoch_ms(run.get("end_time")),
        string(metadata.get("lc_agent_name"), metadata.get("langgraph_node")) if kind != "tool" else "",
        string(metadata.get("thread_id"), metadata.get("session_id"), metadata.get("conversation_id")),
        _ask(run, metadata, memory) if kind == "llm" else None,
        _result(run, name, failed) if kind == "tool" else None,
        failed and kind == "llm",
    )


def _ask(run: dict[str, Any], metadata: Any, memory: Memory) -> Ask:
    inputs, outputs = decoded(run.get("inputs")), decoded(run.get("outputs"))
    batch = mapping(inputs).get("messages")
    sent = read_input(batch[0] if isinstance(batch, list) and batch and isinstance(batch[0], list) else inputs, memory)
    got = read_output(outputs)
    params = mapping(mapping(run.get("extra")).get("invocation_params"))
    ask = Ask(sent.items, got.items, sent.system, sent.tools or tool_specs(params.get("tools")))
    answer = _answer(outputs)
    told = mapping(answer.get("response_metadata"))
    ask.model = model_name(string(told.get("model_name"), metadata.get("ls_model_name"), params.get("model"), params.get("model_name")))
    ask.usage, ask.fault = _usage(run, outputs, answer)
    ask.stop = string(told.get("finish_reason"), told.get("stop_reason"))
    return ask


def _answer(outputs: Any) -> dict[str, Any]:
    """The message of an answer in LangChain's form; empty if there is none."""
    first = mapping(outputs).get("generations")
    for _ in range(2):
        first = first[0] if isinstance(first, list) and first else first
    message = mapping(mapping(first).get("message"))
    return dict(mapping(message.get("kwargs")) or mapping(message.get("data")) or message)


def _usage(run: dict[str, Any], outputs: Any, answer: dict[str, Any]) -> Any:
    """What the answer says it used, else the run's own counts."""
    for given in (answer.get("usage_metadata"), mapping(outputs).get("usage_metadata")):
        held = mapping(given)
        if held:
            sent, made = mapping(held.get("input_token_details")), mapping(held.get("output_token_details"))
            raw = {
                "input": held.get("input_tokens"), "output": held.get("output_tokens"), "total": held.get("total_tokens"),
                "read": sent.get("cache_read"), "write": sent.get("cache_creation"), "reasoning": made.get("reasoning"),
            }  # fmt: skip
            return counted({name: value for name, value in raw.items() if value is not None})
    details = mapping(run.get("prompt_token_details"))
    raw = {
        "input": run.get("prompt_tokens"), "output": run.get("completion_tokens"), "total": run.get("total_tokens"),
        "read": details.get("cache_read"), "write": details.get("cache_creation"), "reasoning": mapping(run.get("completion_token_details")).get("reasoning"),
    }  # fmt: skip
    known = {name: value for name, value in raw.items() if value is not None}
    return counted(known) if known.get("input") or known.get("output") else (None, None)


def _result(run: dict[str, Any], name: str, failed: bool) -> Any:
    """What a tool gave back: a tool's message, or any value."""
    outputs = decoded(run.get("outputs"))
    given = next((outputs[key] for key in ("output", "content", "result") if outputs.get(key) is not None), outputs) if isinstance(outputs, dict) else outputs
    asked = mapping(decoded(run.get("inputs")))
    call_id = id_of(asked.get("tool_call_id")) or id_of(mapping(mapping(run.get("extra")).get("metadata")).get("tool_call_id"))
    if given is None and run.get("error"):
        given = string(run["error"])
    message = given if isinstance(given, dict) and ("lc" in given or given.get("type") == "tool") else {"role": "tool", "content": given}
    item = next(iter(items_of(message, "tool")), None)
    result = item.result if item is not None else None
    if result is None:
        return None
    return replace(result, call_id=result.call_id or call_id, name=result.name or name or None, is_error=result.is_error or failed)
