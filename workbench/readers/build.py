"""Collects what a reader finds and freezes it into a `Transcript`.

Messages get their index in the order in which they are begun, so a merged message stands where its first record
stands. Every record is accounted for once, in the first class that fits: message, call, compaction, metadata, skipped.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from ..model import (
    MAIN,
    Call,
    Compaction,
    Diagnostic,
    Message,
    Part,
    Prefix,
    Records,
    Role,
    Source,
    Thread,
    ToolSpec,
    Transcript,
    Usage,
)
from .source import MAX_DIAGNOSTICS, Document

Class = Literal["messages", "calls", "compactions", "metadata", "skipped"]
_CLASSES: tuple[Class, ...] = ("messages", "calls", "compactions", "metadata", "skipped")
_NO_FLAGS: frozenset[str] = frozenset()
_RANK = {name: rank for rank, name in enumerate(_CLASSES)}


@dataclass(slots=True)
class DraftMessage:
    """A message that may still grow: parts, records and flags are added while reading.

    Its slots are those of `Message`, so that `_frozen_message` can turn it into one.
    """

    index: int
    role: Role
    parts: list[Part]
    id: str
    thread: str
    parent: int | None
    ts: int | None
    call: int | None
    flags: frozenset[str]
    raw: tuple[int, ...]


@dataclass(slots=True)
class DraftCall:
    """A call that may still grow: a later record of the same response replaces its usage. Its slots are those of `Call`."""

    index: int
    id: str
    thread: str
    model: str | None
    usage: Usage | None
    stop_reason: str | None
    ts: int | None
    produced: tuple[int, ...]
    context: tuple[int, ...] | None
    kind: Literal["response", "compaction"]
    prefix: Prefix | None


@dataclass(slots=True)
class Builder:
    """One transcript in the making.

    Parameters
    ----------
    total : int, optional
        Records of this run; by default all of the document's.
    prefix : Prefix, optional
        What the request that is read now holds before its conversation; `call` keeps it. See `request_prefix`.
    """

    format: str
    document: Document
    total: int | None = None
    id: str = ""
    messages: list[DraftMessage] = field(default_factory=list)
    calls: list[DraftCall] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    threads: dict[str, Thread] = field(default_factory=lambda: {MAIN: Thread(MAIN)})
    tools: list[ToolSpec] = field(default_factory=list)
    system: list[str] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    prefix: Prefix | None = None
    _class: dict[int, Class] = field(default_factory=dict)
    _record_thread: dict[int, str] = field(default_factory=dict)
    _unknown: dict[str, list[int]] = field(default_factory=dict)

    def message(
        self,
        role: Role,
        parts: Iterable[Part],
        record: int,
        *,
        id: str = "",
        thread: str = MAIN,
        ts: int | None = None,
        call: int | None = None,
        flags: Iterable[str] = (),
        parent: int | None = None,
    ) -> DraftMessage:
        """Begin a message and account for its record. A list of parts is taken over, not copied."""
        held = parts if type(parts) is list else [*parts]
        draft = DraftMessage(len(self.messages), role, held, id, thread, parent, ts, call, frozenset(flags) if flags else _NO_FLAGS, (record,))
        self.messages.append(draft)
        if call is not None:
            self.calls[call].produced += (draft.index,)
        self._class[record] = "messages"  # the first class, so it always fits
        if thread != MAIN:
            self._record_thread.setdefault(record, thread)
        return draft

    def extend(self, message: DraftMessage, parts: Iterable[Part], record: int) -> None:
        """Add parts from a further record to a message."""
        message.parts.extend(parts)
        if record not in message.raw:
            message.raw += (record,)
        self.account(record, "messages", message.thread)

    def call(
        self,
        id: str = "",
        *,
        thread: str = MAIN,
        model: str | None = None,
        usage: Usage | None = None,
        stop_reason: str | None = None,
        ts: int | None = None,
        context: tuple[int, ...] | None = None,
        kind: Literal["response", "compaction"] = "response",
    ) -> DraftCall:
        """Begin a provider request. Its messages name it by ``call=draft.index``."""
        prefix = self.prefix if kind == "response" else None  # a compaction has instructions of its own
        draft = DraftCall(len(self.calls), id, thread, model, usage, stop_reason, ts, (), context, kind, prefix)
        self.calls.append(draft)
        return draft

    def request_prefix(self, system: Iterable[str], tools: Iterable[ToolSpec], record: int) -> None:
        """Say what a request holds before its conversation. What is as it was before is one object with it.

        A change of the system text is reported once: the transcript shows the first, each call has its own.
        """
        before, held, offered = self.prefix, tuple(system), tuple(tools)
        if before is not None:
            held = before.system if held == before.system else held
            offered = before.tools if repr(offered) == repr(before.tools) else offered  # the order of keys counts: a cache looks at bytes
            if held is not before.system and not any(item.code == "system" for item in self.diagnostics):
                self.report(record, "system", f"record {record}: the system text changes between requests; the first is shown, each call keeps its own")
            if held is before.system and offered is before.tools:
                return
        self.prefix = Prefix(held, offered)

    def thread(self, id: str, kind: Literal["main", "subagent", "branch"], *, parent: str | None = MAIN, spawned_by: str | None = None) -> str:
        """Make a thread known, once, and return its id."""
        if id not in self.threads:
            self.threads[id] = Thread(id, kind, parent, spawned_by)
        return id

    def new_thread(self, name: str, kind: Literal["subagent", "branch"], *, parent: str | None = MAIN, spawned_by: str | None = None) -> str:
        """Make a further thread, whose id is the name or, if that is taken, the name with a number."""
        id, at = name, len(self.threads)
        while id in self.threads:
            id, at = f"{name}-{at}", at + 1
        return self.thread(id, kind, parent=parent, spawned_by=spawned_by)

    def count_to(self, last: int) -> None:
        """Leave records with higher numbers out of the count: places in a second list that tells of the same things."""
        self._class = {record: class_ for record, class_ in self._class.items() if record <= last}
        self._record_thread = {record: thread for record, thread in self._record_thread.items() if record <= last}

    def forget(self, records: Container[int]) -> None:
        """Leave the counting of these records to another run of the document, which holds them too."""
        self._class = {record: class_ for record, class_ in self._class.items() if record not in records}
        self._record_thread = {record: thread for record, thread in self._record_thread.items() if record not in records}

    def move(self, message: DraftMessage, thread: str) -> None:
        """Put a message, its call and its records into another thread: a branch that was given up."""
        message.thread = thread
        self._record_thread.update(dict.fromkeys(message.raw, thread))
        if message.call is not None:
            self.calls[message.call].thread = thread

    def account(self, record: int, as_: Class, thread: str | None = None) -> None:
        """Account for a record. The first class in the order of `Records` that ever fits it counts."""
        if record not in self._class or _RANK[as_] < _RANK[self._class[record]]:
            self._class[record] = as_
        if thread is not None and thread != MAIN:
            self._record_thread.setdefault(record, thread)

    def move_records(self, threads: Mapping[int, str]) -> None:
        """Put records that were accounted for into other threads; messages are moved by `move`."""
        self._record_thread.update({record: thread for record, thread in threads.items() if record in self._class})

    def rename_thread(self, old: str, new: str) -> None:
        """Let everything in a thread stand in another one."""
        for message in self.messages:
            if message.thread == old:
                message.thread = new
        for call in self.calls:
            if call.thread == old:
                call.thread = new
        self._record_thread = {record: new if thread == old else thread for record, thread in self._record_thread.items()}
        del self.threads[old]

    def unknown(self, record: int, type_: str, thread: str | None = None) -> None:
        """Account for a record of a type that this reader does not know: metadata, reported once per type."""
        self.account(record, "metadata", thread)
        self._unknown.setdefault(str(type_)[:60], []).append(record)

    def skip(self, record: int, code: str, text: str) -> None:
        """Account for a record that cannot be used, and say why."""
        self.account(record, "skipped")
        self.report(record, code, text)

    def report(self, record: int | None, code: str, text: str) -> None:
        """Add a diagnostic."""
        if len(self.diagnostics) < MAX_DIAGNOSTICS:
            self.diagnostics.append(Diagnostic(record, code, text))

    def build(self, *, shared: bool = False) -> Transcript:
        """Freeze everything.

        Parameters
        ----------
        shared : bool
            True for all but the first run of a document: what was wrong with the file itself belongs to the first.
        """
        document = self.document
        if not shared:
            for number in document.skipped:
                self.account(number, "skipped")
        for type_, records in self._unknown.items():
            times = f"{len(records):,} records" if len(records) > 1 else "1 record"
            self.report(records[0], "unknown_record", f"{times} of unknown type {type_!r} (first: {records[0]}), kept as metadata")
        total = document.total if self.total is None else self.total
        classes = [*self._class.values()]
        counts = {name: classes.count(name) for name in _CLASSES}
        missing = total - sum(counts.values())
        if missing > 0:
            counts["skipped"] += missing
            self.report(None, "unread", f"{missing:,} records were not understood")
        in_thread = dict.fromkeys(self.threads, 0)
        for thread in self._record_thread.values():
            in_thread[thread] += 1
        in_thread[MAIN] += len(self._class) - len(self._record_thread)
        self._check_times()
        threads = tuple(Thread(t.id, t.kind, t.parent, t.spawned_by, in_thread[t.id]) for t in self.threads.values())
        diagnostics = (*([] if shared else document.diagnostics), *self.diagnostics)
        return Transcript(
            id=self.id or document.path.stem,
            source=Source(self.format, str(document.path), document.size),
            messages=tuple(map(_frozen_message, self.messages)),
            calls=tuple(map(_frozen_call, self.calls)),
            compactions=tuple(self.compactions),
            tools=tuple(self.tools),
            system=tuple(self.system),
            threads=threads,
            diagnostics=tuple(sorted(diagnostics, key=lambda item: -1 if item.line is None else item.line)),
            records=Records(**counts),
            meta=_frozen(self.meta),
        )

    def _check_times(self) -> None:
        newest: dict[str, int] = {}
        for message in self.messages:
            if message.ts is None:
                continue
            if message.ts < newest.get(message.thread, message.ts):
                self.report(message.raw[0], "timestamps", "timestamps are not monotonic; the order of the file is kept")
                return
            newest[message.thread] = message.ts


def _frozen_message(draft: DraftMessage) -> Message:
    """Turn a draft into the message itself: both classes have the same slots, so nothing is built a second time.

    Building ten thousand frozen objects anew takes as long as parsing a fifth of the file that they came from.
    """
    draft.parts = tuple(draft.parts)  # type: ignore[assignment]
    draft.__class__ = Message  # type: ignore[assignment]
    return draft  # type: ignore[return-value]


def _frozen_call(draft: DraftCall) -> Call:
    """Turn a draft into the call itself; see `_frozen_message`."""
    draft.__class__ = Call  # type: ignore[assignment]
    return draft  # type: ignore[return-value]


def _frozen(meta: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType({key: value for key, value in meta.items() if value not in (None, "")})
