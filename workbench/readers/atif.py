"""ATIF (Agent Trajectory Interchange Format) 1.0 to 1.8, as Harbor and others write it.

A step of the agent is one response with its tool calls; the results stand in the same step. Steps that were copied from an earlier document are context:
they were paid there. A document that goes on in another file, and subagents in files beside it, are read with it; the records of those files are counted
after its own (``meta["side_files"]`` says from where).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import COMPACT_SUMMARY, MAIN, META, SYNTHETIC, Compaction, Media, Part, Reasoning, Role, Text, ToolCall, ToolResult, Transcript, Usage
from .base import Match, ReaderInfo
from .beside import open_beside
from .build import Builder, DraftMessage
from .fields import epoch_ms, json_text, listing, mapping, size_of, string, tool_call, tool_specs
from .media import from_url
from .source import Document
from .usage import inclusive, tokens

_MOST_FILES = 200
_MOST_LEVELS = 20
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}


class AtifReader:
    """Reads ATIF trajectories."""

    info = ReaderInfo("atif", "ATIF trajectories (Harbor): one document, or one a line")

    def detect(self, document: Document) -> Match | None:
        """Looks for the schema's version, or for steps with its sources."""
        values = [document.value] if isinstance(document.value, dict) else document.head(20)
        known = [match for value in values if (match := _detect(value)) is not None]
        return max(known, key=lambda match: match.confidence) if len(known) * 2 > len(values) else None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per trajectory. Of a single document the records are its steps, else the documents."""
        value = document.value
        if isinstance(value, dict):
            builder = Builder(self.info.name, document, total=len(value["steps"]) if isinstance(value.get("steps"), list) else 1)
            _read(builder, document, value, lambda place: place)
            return [builder.build()]
        found = [(number, value) for number, value in document.objects() if isinstance(value.get("steps"), list)]
        known = {number for number, _ in found}
        transcripts = []
        for at, (number, value) in enumerate(found or [(0, {})]):
            builder = Builder(self.info.name, document, total=1 if at else document.total - max(len(found) - 1, 0))
            if number:
                builder.account(number, "metadata")
                _read(builder, document, value, lambda _, number=number: number)  # type: ignore[misc]
            if len(found) > 1 and not builder.id:
                builder.id = f"{document.path.stem}-{at}"
            for record in document.records if at == 0 else ():
                if record.number not in known:
                    builder.skip(record.number, "trajectory", f"record {record.number}: no trajectory (there are no steps in it)")
            transcripts.append(builder.build(shared=at > 0))
        return transcripts


READER = AtifReader()


def _detect(value: dict[str, Any]) -> Match | None:
    steps = [step for step in listing(value.get("steps"))[:50] if isinstance(step, dict)]
    version = value.get("schema_version")
    if isinstance(version, str) and version.upper().startswith("ATIF") and isinstance(value.get("steps"), list):
        return Match(0.98, (f"schema_version {version[:20]}",))
    if steps and all(string(step.get("source")) in _ROLES and "step_id" in step for step in steps):
        return Match(0.8, ("steps with step_id and source",))
    return None


def _read(builder: Builder, document: Document, value: dict[str, Any], record_of: Callable[[int], int]) -> None:
    agent = mapping(value.get("agent"))
    builder.id = string(value.get("trajectory_id"), value.get("session_id"))
    builder.meta |= {
        "agent": string(agent.get("name")),
        "version": string(agent.get("version")),
        "model": string(agent.get("model_name")),
        "session": string(value.get("session_id")),
        "schema": string(value.get("schema_version")),
        "notes": string(value.get("notes")),
    }
    builder.tools += tool_specs(agent.get("tool_definitions"))
    trajectory = _Trajectory(builder, document, _Files())
    trajectory.read(value, record_of)
    trajectory.go_on(value)
    trajectory.unreferenced()
    files = trajectory.files
    if files.opened:
        builder.meta["side_files"] = tuple(files.opened)
    if files.missing:
        first, names = next(iter(files.missing.values())), ", ".join(repr(name[:40]) for name in [*files.missing][:5])
        builder.report(first, "missing_subagent", f"{len(files.missing):,} subagents or continuations are neither in it nor beside it: {names}")


@dataclass(slots=True)
class _Files:
    """What was opened beside the document, and what could not be."""

    names: set[str] = field(default_factory=set)
    opened: list[tuple[str, int]] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Trajectory:
    """Reads the steps of one trajectory, and of the documents that it goes on in, into one thread."""

    builder: Builder
    document: Document
    files: _Files
    thread: str = MAIN
    level: int = 0
    model: str = ""
    #: Embedded trajectories of the root that no step has named yet, by id.
    embedded: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: What was said in this thread, to know a copied step again.
    said: dict[tuple[str, str], int] = field(default_factory=dict)
    copied: list[int] = field(default_factory=list)
    #: Of its own responses, and of those of its subagents too.
    own: list[Usage | None] = field(default_factory=list)
    usage: list[Usage | None] = field(default_factory=list)
    documents: int = 0
    last: int = -1
    spoken: set[str] = field(default_factory=set)
    #: The place in `builder.compactions` of one whose summary is still to come.
    open: int | None = None

    def read(self, value: dict[str, Any], record_of: Callable[[int], int]) -> None:
        self.documents += 1
        self.model = string(mapping(value.get("agent")).get("model_name")) or self.model
        for place, child in enumerate(listing(value.get("subagent_trajectories"))):
            if isinstance(child, dict):
                self.embedded.setdefault(string(child.get("trajectory_id"), child.get("session_id")) or f"subagent-{place}", child)
        if not isinstance(value.get("steps"), list):
            self.builder.skip(record_of(1), "steps", "a trajectory without a list of steps")
        for place, step in enumerate(listing(value.get("steps")), 1):
            record = record_of(place)
            if isinstance(step, dict):
                self._step(step, record, place)
            elif step is not None or place not in self.document.skipped:
                self.builder.skip(record, "step", f"step {place}: not an object")
        index = mapping(mapping(value.get("agent")).get("extra")).get("continuation_index")
        if self.level == 0 and self.documents == 1 and tokens(index):
            # It goes on from one that is not at hand: it begins with what a compaction left.
            self.builder.compactions.insert(0, Compaction(-1, "continuation", thread=self.thread))
        self._totals(value)

    def _step(self, step: dict[str, Any], record: int, place: int) -> None:
        builder, source = self.builder, string(step.get("source"))
        role = _ROLES.get(source)
        flags: list[str] = []
        if role is None:
            builder.report(record, "source", f"step {place}: unknown source {source[:40]!r}, taken as text that no person wrote")
            role, flags = "user", [META]
        ts = epoch_ms(step.get("timestamp"))
        results = [result for result in listing(mapping(step.get("observation")).get("results")) if isinstance(result, dict)]
        parts = _content(step.get("message"))
        if role == "system" and _compacts(step, results):
            self._compaction(results, record, ts)
            return
        calls = _calls(step) if role == "assistant" else []
        whole: list[Part] = [*_reasoning(step), *parts, *calls] if role == "assistant" else [*parts]
        if step.get("is_copied_context") is True:
            self._copied(role, whole, results, record, ts)
            return
        if role != "assistant":
            if role == "system" and self.spoken - {"system"}:
                flags = [META]
            draft = builder.message(role, whole, record, thread=self.thread, ts=ts, flags=flags)
            if role == "user" and self.open is not None:
                self._summary(draft)
            self._remember(draft)
            self._results(results, (), record, ts)
            return
        self.open = None
        call = None
        if step.get("llm_call_count") != 0:
            call = self._call(step, record, place, ts)
        else:
            flags = [SYNTHETIC]
        draft = builder.message(role, whole, record, thread=self.thread, ts=ts, call=call, flags=flags)
        self._remember(draft)
        self._results(results, calls, record, ts)

    def _call(self, step: dict[str, Any], record: int, place: int, ts: int | None) -> int:
        metrics = mapping(step.get("metrics"))
        more = {**mapping(step.get("extra")), **mapping(metrics.get("extra"))}
        usage, why = inclusive(
            {
                "prompt_tokens": metrics.get("prompt_tokens"),
                "completion_tokens": metrics.get("completion_tokens"),
                "cached_input_tokens": metrics.get("cached_tokens"),
                "cache_creation_input_tokens": more.get("cache_creation_input_tokens"),
                "reasoning_output_tokens": more.get("reasoning_tokens"),
            }
        )
        if why:
            self.builder.report(record, "usage", f"step {place}: {why}")
        if (several := tokens(step.get("llm_call_count"))) is not None and several > 1:
            self.builder.report(record, "calls", f"step {place}: its usage is the sum of {several:,} requests")
        self.own.append(usage)
        self.usage.append(usage)
        return self.builder.call(
            string(more.get("response_id"), more.get("request_id")),
            thread=self.thread,
            model=string(step.get("model_name")) or self.model or None,
            usage=usage,
            stop_reason=string(more.get("finish_reason"), more.get("stop_reason")) or None,
            ts=ts,
        ).index

    def _results(self, results: list[dict[str, Any]], calls: Sequence[ToolCall], record: int, ts: int | None) -> None:
        """A message for each result. One that names no call is the call's if there is but one of each, else text that the harness put in."""
        names = {call.id: call.name for call in calls}
        for result in results:
            id_ = string(result.get("source_call_id"))
            if not id_ and len(calls) == len(results) == 1:
                id_ = calls[0].id
            parts = _content(result.get("content"))
            if id_:
                error = True in (result.get("is_error"), mapping(result.get("extra")).get("is_error"))
                found = ToolResult(id_, names.get(id_), tuple(parts), error)
                self._remember(self.builder.message("tool", [found], record, thread=self.thread, ts=ts))
            elif parts:
                self._remember(self.builder.message("user", parts, record, thread=self.thread, ts=ts, flags=[META]))
            for ref in listing(result.get("subagent_trajectory_ref")):
                self._subagent(mapping(ref), id_, record)

    # -- compaction

    def _compaction(self, results: list[dict[str, Any]], record: int, ts: int | None) -> None:
        """A step that says that the context was replaced; what it holds, or else the user's step after it, is the summary."""
        builder = self.builder
        builder.account(record, "compactions", self.thread)
        builder.compactions.append(Compaction(self.last, "summary", thread=self.thread, raw=(record,)))
        self.open = len(builder.compactions) - 1
        parts = [part for result in results for part in _content(result.get("content"))]
        if parts:
            draft = builder.message("user", parts, record, thread=self.thread, ts=ts)
            self._summary(draft)
            self._remember(draft)
        for result in results:
            for ref in listing(result.get("subagent_trajectory_ref")):
                self._subagent(mapping(ref), string(result.get("source_call_id")), record)

    def _summary(self, draft: DraftMessage) -> None:
        if self.open is not None:
            draft.flags |= {COMPACT_SUMMARY}
            held = self.builder.compactions[self.open]
            self.builder.compactions[self.open] = replace(held, summary=draft.index)
            self.open = None

    def _copied(self, role: Role, parts: list[Part], results: list[dict[str, Any]], record: int, ts: int | None) -> None:
        """A step that another document has paid for: known again, or context that was made elsewhere."""
        builder = self.builder
        known = self.said.get(_mark(role, parts))
        if known is not None:
            builder.extend(builder.messages[known], [], record)
            self.copied.append(known)
            return
        flags = [META] if role == "user" and "user" in self.spoken else []
        draft = builder.message(role, parts, record, thread=self.thread, ts=ts, flags=flags)
        if role == "user" and self.open is not None:
            self._summary(draft)
        self._remember(draft)
        self._results(results, [part for part in parts if type(part) is ToolCall], record, ts)

    def _remember(self, draft: DraftMessage) -> None:
        self.said.setdefault(_mark(draft.role, draft.parts), draft.index)
        self.last = draft.index
        self.spoken.add(draft.role)

    # -- other documents

    def go_on(self, value: dict[str, Any]) -> None:
        """Read the documents in which this one goes on."""
        while value.get("continued_trajectory_ref"):
            name = string(value["continued_trajectory_ref"])
            document = self._open(name)
            if document is None:
                self.files.missing.setdefault(name, len(listing(value.get("steps"))))
                if self.open is not None:
                    self.builder.compactions[self.open] = replace(self.builder.compactions[self.open], kind="continuation")
                return
            value = document.value
            builder, offset = self.builder, self._append(document)
            if self.open is None:
                builder.compactions.append(Compaction(self.last, "continuation", thread=self.thread))
                self.open = len(builder.compactions) - 1
            at, self.copied = self.open, []
            builder.compactions[at] = replace(builder.compactions[at], kind="continuation")
            self.read(value, lambda place, offset=offset: offset + place)  # type: ignore[misc]
            builder.compactions[at] = replace(builder.compactions[at], kept=tuple(dict.fromkeys(self.copied)))

    def _open(self, name: str) -> Document | None:
        if name in self.files.names or len(self.files.names) >= _MOST_FILES:
            return None
        self.files.names.add(name)
        document = open_beside(self.document.path, name)
        return document if document is not None and isinstance(document.value, dict) and isinstance(document.value.get("steps"), list) else None

    def _append(self, document: Document) -> int:
        """Count the steps of a further document after those so far, and say from where."""
        builder = self.builder
        offset = builder.total or 0
        builder.total = offset + len(document.value["steps"])
        self.files.opened.append((document.name, offset + 1))
        for diagnostic in document.diagnostics:
            builder.report(None, diagnostic.code, f"{document.name}: {diagnostic.text}")
        return offset

    def _subagent(self, ref: Mapping[str, Any], call: str, record: int) -> None:
        id_, session, name = string(ref.get("trajectory_id")), string(ref.get("session_id")), string(ref.get("trajectory_path"))
        child = self.embedded.pop(id_, None) if id_ else None
        if child is None and not name and session:
            child = self.embedded.pop(session, None)
        if child is not None:
            self._child(child, id_ or session, call, lambda _: record)
            self.builder.move_records({record: self.thread})  # a step is a record, and what it embeds is a part of it
            return
        document = self._open(name) if name else None
        if document is None:
            if name not in self.files.names or name not in {opened for opened, _ in self.files.opened}:
                self.files.missing.setdefault(id_ or name or session or "without a name", record)
            return
        offset = self._append(document)
        self._child(document.value, session or id_, call, lambda place: offset + place)

    def _child(self, value: dict[str, Any], id_: str, call: str, record_of: Callable[[int], int]) -> None:
        builder = self.builder
        if self.level >= _MOST_LEVELS:
            builder.report(None, "nesting", f"subagents nested deeper than {_MOST_LEVELS}; the rest is left out")
            return
        base = id_ or string(value.get("trajectory_id"), value.get("session_id")) or "subagent"
        name = builder.new_thread(base, "subagent", parent=self.thread, spawned_by=call or None)
        child = _Trajectory(builder, self.document, self.files, name, self.level + 1, self.model, self.embedded)
        child.read(value, record_of)
        child.go_on(value)
        self.usage += child.usage

    def unreferenced(self) -> None:
        """Embedded trajectories that no step names are subagents all the same."""
        while self.embedded:
            id_, child = next(iter(self.embedded.items()))
            del self.embedded[id_]
            self._child(child, id_, "", lambda _: 1)
            self.builder.move_records({1: MAIN})

    def _totals(self, value: dict[str, Any]) -> None:
        """Compare with what the document itself says; subagents and earlier documents are in its numbers or not."""
        final = mapping(value.get("final_metrics"))
        stated = (tokens(final.get("total_prompt_tokens")), tokens(final.get("total_completion_tokens")))
        if None in stated:
            return
        total, own = Usage.sum(self.usage), Usage.sum(self.own)
        sums = {(found.prompt or 0, found.output or 0) for found in (total, own)}
        if stated not in sums:
            text = f"final_metrics says {stated[0]:,} tokens in and {stated[1]:,} out; the steps at hand sum to {own.prompt or 0:,} and {own.output or 0:,}"
            self.builder.report(None, "totals", text)


def _reasoning(step: dict[str, Any]) -> list[Reasoning]:
    text = string(step.get("reasoning_content"))
    return [Reasoning(text)] if text else []


def _calls(step: dict[str, Any]) -> list[ToolCall]:
    calls = [call for call in listing(step.get("tool_calls")) if isinstance(call, dict)]
    return [tool_call(call.get("tool_call_id"), call.get("function_name"), call.get("arguments")) for call in calls]


def _compacts(step: dict[str, Any], results: list[dict[str, Any]]) -> bool:
    """Say whether a step is the mark of a compaction: it says so, or all that it holds are the summarising subagents of Terminus."""
    if string(mapping(mapping(step.get("extra")).get("context_management")).get("type")) == "compaction":
        return True
    refs = [mapping(ref) for result in results for ref in listing(result.get("subagent_trajectory_ref"))]
    return bool(refs) and all("summarization" in string(ref.get("trajectory_path"), ref.get("session_id"), ref.get("trajectory_id")) for ref in refs)


def _content(value: Any) -> list[Text | Media]:
    """Text, or a list of parts: text, pictures and sounds, which ATIF names by their path."""
    if isinstance(value, str):
        return [Text(value)] if value else []
    found: list[Text | Media] = []
    for part in listing(value):
        held = mapping(part)
        kind, source = string(held.get("type")), mapping(held.get("source"))
        if kind in ("image", "audio", "video", "document"):
            found.append(from_url(kind, string(source.get("path"), source.get("url")), source.get("media_type")))
        elif text := string(held.get("text")) if held else string(part):
            found.append(Text(text))
    if isinstance(value, dict):
        found.append(Text(json_text(value)))
    return found


def _mark(role: str, parts: list[Part]) -> tuple[str, str]:
    """What a copied step is known by: its text and the ids of its calls."""
    marks = [part.text if type(part) is Text else f"{part.id} {part.name}" if type(part) is ToolCall else "" for part in parts]
    return role, "\n".join(filter(None, marks)) or str(size_of(repr(parts)))
