"""Sessions of Google's Agent Development Kit, in both spellings of their fields: a session, a list of them, or events alone.

An event of a model is one response. A rewind makes what it takes back a branch, and agents that work in branches of their own are subagents. A
compaction names a span of time: the events in it give way to its summary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import COMPACT_SUMMARY, ERROR, MAIN, META, Compaction, Role, Text, Transcript, Usage
from .base import Match, ReaderInfo
from .build import Builder
from .fields import epoch_ms, listing, mapping, string
from .gemini_parts import Parts, apart, get
from .source import Document
from .usage import gemini as usage_of
from .usage import tokens

_CAMEL = ("interactionId", "modelVersion", "finishReason", "usageMetadata")
_SNAKE = ("interaction_id", "model_version", "finish_reason", "usage_metadata")


#: Actions that change what is in the context.
_STEERING = frozenset({"rewindBeforeInvocationId", "rewind_before_invocation_id", "compaction"})


class AdkReader:
    """Reads Google ADK."""

    info = ReaderInfo("google-adk", "Google ADK sessions and events, as JSON or JSONL")

    def detect(self, document: Document) -> Match | None:
        """Looks for sessions with an app and events, or for events with an author and an invocation."""
        head = [document.value] if isinstance(document.value, dict) else document.head(100)
        if sum(_session_of(value) is not None for value in head) * 2 > len(head):
            named = any(get(held, "appName") is not None for value in head if (held := _session_of(value)) is not None)
            return Match(0.97 if named else 0.9, ("sessions with " + ("the name of an app and " if named else "") + "events of authors",))
        if sum(map(_is_event, head)) * 2 > len(head):
            return Match(0.95, ("events with an author and an invocation",))
        return None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per session. Of one session the records are its events; of a list of them, the sessions."""
        value = document.value
        if isinstance(value, dict) and (session := _session_of(value)) is not None:
            events = listing(session["events"])
            builder = Builder(self.info.name, document, total=len(events))
            _read(builder, session, [(at, event) for at, event in enumerate(events, 1) if event is not None or at not in document.skipped])
            return [builder.build()]
        rows = document.rows()
        head = rows[:200]
        if sum(_session_of(record.value) is not None for record in head) * 2 <= len(head):
            builder = Builder(self.info.name, document)
            _read(builder, {}, [(record.number, record.value) for record in rows])
            return [builder.build()]
        sessions = [(record.number, held) for record in rows if (held := _session_of(record.value)) is not None]
        known = {number for number, _ in sessions}
        transcripts = []
        for at, (number, session) in enumerate(sessions):
            builder = Builder(self.info.name, document, total=1 if at else document.total - len(sessions) + 1)
            builder.account(number, "metadata")
            _read(builder, session, [(number, event) for event in session["events"]])
            builder.id = builder.id or f"{document.path.stem}-{at}"
            for record in rows if at == 0 else ():
                if record.number not in known:
                    builder.skip(record.number, "session", f"record {record.number}: no session with events")
            transcripts.append(builder.build(shared=at > 0))
        return transcripts


READER = AdkReader()


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict) and isinstance(value.get("author"), str) and (get(value, "invocationId") is not None or isinstance(value.get("actions"), dict))
    )


def _session_of(value: Any) -> dict[str, Any] | None:
    """The session that a record is or holds."""
    for held in (value, mapping(value).get("session")):
        if isinstance(held, dict) and isinstance(held.get("events"), list):
            events = [event for event in held["events"][:50] if event is not None]
            if any(map(_is_event, events)) or (not events and get(held, "appName") is not None and get(held, "userId") is not None):
                return held
    return None


def _read(builder: Builder, session: Mapping[str, Any], events: list[tuple[int, Any]]) -> None:
    builder.id = string(session.get("id"), get(session, "sessionId"))
    builder.meta |= {"agent": string(get(session, "appName")), "title": string(get(session, "displayName"))}
    branches = {branch for _, event in events if isinstance(event, dict) and (branch := string(event.get("branch")))}
    _Session(builder, alone=len(branches) < 2).read(events)


@dataclass(slots=True)
class _Session:
    """One session, read event by event.

    Parameters
    ----------
    alone : bool
        All agents work in one branch, which is the main thread.
    """

    builder: Builder
    alone: bool
    parts: Parts = field(default_factory=Parts)
    #: The first message of each invocation, or what would have been it.
    starts: dict[str, int] = field(default_factory=dict)
    #: When each message was said, in seconds, as compactions compare it.
    said: list[float | None] = field(default_factory=list)
    #: Messages of each thread that no summary stands for, in order, and those of the main thread that were not taken back.
    alive: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    main: list[int] = field(default_factory=list)
    #: The span of time that each summary stands for, by its message.
    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    #: Compactions that were not taken back: place in `builder.compactions`, and what was alive before.
    compacted: list[tuple[int, list[int]]] = field(default_factory=list)
    #: Pieces of a streamed answer whose whole has not come yet: by author, the records and events.
    pieces: dict[str, list[tuple[int, dict[str, Any]]]] = field(default_factory=dict)

    def read(self, events: list[tuple[int, Any]]) -> None:
        """Read all events: the record of each, and the event."""
        account = self.builder.account
        for place, (number, event) in enumerate(events, 1):
            if not (type(event) is dict and type(event.get("content")) is dict) and not _is_event(event):
                self.builder.skip(number, "event", f"event {place}: not an event")
                continue
            author = string(event.get("author"))
            if event.get("partial") is True:
                account(number, "metadata")
                self.pieces.setdefault(author, []).append((number, event))
                continue
            if self.pieces and mapping(event.get("content")).get("parts") and (streamed := self.pieces.pop(author, None)):
                for number_, _ in streamed:
                    account(number_, "messages")
            self._event(event, number, place, author)
        for author, streamed in self.pieces.items():  # cut off before its end: the pieces are all there is
            parts = [part for _, piece in streamed for part in listing(mapping(piece.get("content")).get("parts"))]
            number, last = streamed[0][0], streamed[-1][1]
            self._event({**last, "content": {"role": "model", "parts": _joined(parts)}}, number, len(events), author)
            for number, _ in streamed:
                self.builder.account(number, "messages")

    def _event(self, event: dict[str, Any], number: int, place: int, author: str) -> None:
        builder, actions = self.builder, mapping(event.get("actions"))
        seconds = event.get("timestamp")
        ts = epoch_ms(seconds)
        first = len(builder.messages)
        thread = MAIN if self.alone else self._thread(event)
        if not _STEERING.isdisjoint(actions):
            if before := string(get(actions, "rewindBeforeInvocationId")):
                self._rewind(before, number, place)
            if isinstance(held := actions.get("compaction"), dict):
                self._compaction(held, event, number, place, thread, ts)
        content = event.get("content")
        if type(content) is dict and content.get("parts"):
            self._content(event, content, number, place, author, thread, ts)
        else:
            builder.account(number, "metadata", thread)
            self._bare(event, number, place, author, thread, ts)
        invocation = event.get("invocationId") or event.get("invocation_id")
        if type(invocation) is str:
            self.starts.setdefault(invocation, first)
        at = _number(seconds)
        for index in range(first, len(builder.messages)):
            self.said.append(at)
            self.alive[thread].append(index)
            if thread == MAIN:
                self.main.append(index)

    def _content(self, event: dict[str, Any], content: Mapping[str, Any], number: int, place: int, author: str, thread: str, ts: int | None) -> None:
        builder, id_ = self.builder, string(event.get("id"))
        parts = self.parts.of(content["parts"])
        if self.parts.faults:
            for fault in dict.fromkeys(self.parts.faults):
                builder.report(number, "content", f"event {place}: {fault}")
            self.parts.faults.clear()
        if author != "user" and (content.get("role") == "model" or not string(content.get("role"))):
            self._call(event, number, place, thread, ts)
            builder.message("assistant", parts, number, id=id_, thread=thread, ts=ts, call=len(builder.calls) - 1)
            return
        results, rest = apart(parts)
        for result in results:
            builder.message("tool", [result], number, id=id_, thread=thread, ts=ts)
        if rest or not results:
            role: Role = "system" if content.get("role") == "system" else "user"
            builder.message(role, rest, number, id=id_, thread=thread, ts=ts, flags=() if author == "user" else (META,))

    def _bare(self, event: dict[str, Any], number: int, place: int, author: str, thread: str, ts: int | None) -> None:
        """An event without content: what was spoken, an error, or something that only the program reads."""
        builder, id_ = self.builder, string(event.get("id"))
        roles: tuple[tuple[str, Role], ...] = (("inputTranscription", "user"), ("outputTranscription", "assistant"))
        for name, role in roles:
            text = string(mapping(get(event, name)).get("text"))
            if text and mapping(get(event, name)).get("finished") is not False:
                call = self._call(event, number, place, thread, ts) if role == "assistant" else None
                builder.message(role, [Text(text)], number, id=id_, thread=thread, ts=ts, call=call)
                return
        code, told = string(get(event, "errorCode")), string(get(event, "errorMessage"))
        if code or told:
            builder.report(number, "error", f"event {place}: {author or 'an agent'} failed ({(code or told)[:60]!r})")
            call = self._call(event, number, place, thread, ts)
            builder.message("assistant", [Text(told)] if told else [], number, id=id_, thread=thread, ts=ts, call=call, flags=(ERROR,))
        elif get(event, "usageMetadata") is not None and not isinstance(mapping(event.get("actions")).get("compaction"), dict):
            self._call(event, number, place, thread, ts)
            builder.account(number, "calls", thread)

    def _call(self, event: dict[str, Any], number: int, place: int, thread: str, ts: int | None, kind: Any = "response") -> int:
        id_, model, stop, raw = (event.get(name) for name in (_SNAKE if "invocation_id" in event else _CAMEL))
        usage, why = usage_of(raw) if raw is not None else (None, None)
        if why:
            self.builder.report(number, "usage", f"event {place}: {why}")
        elif usage is not None and (stated := tokens(get(mapping(raw), "totalTokenCount"))) is not None and stated != (sent := _added(usage)):
            self.builder.report(number, "usage_total", f"event {place}: the stated total is {stated:,} tokens, its parts add up to {sent:,}")
        return self.builder.call(
            string(id_, event.get("id")),
            thread=thread,
            model=string(model) or None,
            usage=usage,
            stop_reason=string(stop) or None,
            ts=ts,
            kind=kind,
        ).index

    # -- trees and compaction

    def _thread(self, event: dict[str, Any]) -> str:
        """A branch such as ``root.child`` is a subagent, which sees nothing of its sisters."""
        branch = string(event.get("branch"))
        if "." not in branch:
            return MAIN
        above = branch
        while "." in above and (above := above.rpartition(".")[0]) not in self.builder.threads:
            pass
        return self.builder.thread(branch, "subagent", parent=above if above in self.builder.threads else MAIN)

    def _rewind(self, invocation: str, number: int, place: int) -> None:
        """Everything from the first event of an invocation on was taken back, compactions too."""
        builder, start = self.builder, self.starts.get(invocation)
        if start is None:
            builder.report(number, "rewind", f"event {place}: rewinds to {invocation[:40]!r}, which is not there")
            return
        gone: list[int] = []
        while self.main and self.main[-1] >= start:
            gone.append(self.main.pop())
        if not gone:
            return
        thread = builder.new_thread("branch", "branch")
        for index in reversed(gone):
            builder.move(builder.messages[index], thread)
        while self.compacted and (builder.compactions[self.compacted[-1][0]].summary or 0) >= start:
            at, before = self.compacted.pop()
            builder.compactions[at] = replace(builder.compactions[at], thread=thread)
            self.alive[MAIN] = before
        self.alive[MAIN] = [index for index in self.alive[MAIN] if index < start]

    def _compaction(self, held: dict[str, Any], event: dict[str, Any], number: int, place: int, thread: str, ts: int | None) -> None:
        """A summary takes the place of the events in a span of time, and of the summaries of spans inside it."""
        builder = self.builder
        start, end = (_number(get(held, name)) for name in ("startTimestamp", "endTimestamp"))
        call = self._call(event, number, place, thread, ts, "compaction") if get(event, "usageMetadata") is not None else None
        parts = self.parts.of(mapping(get(held, "compactedContent")).get("parts"))
        self.parts.faults.clear()
        draft = builder.message("assistant", parts, number, id=string(event.get("id")), thread=thread, ts=ts, call=call, flags=(COMPACT_SUMMARY,))
        before = self.alive[thread]
        if start is None or end is None:
            builder.report(number, "compaction", f"event {place}: a compaction without its span of time; what it stands for is not known")
            kept = []
        else:
            kept = [index for index in before if self._stays(index, start, end)]
            self.spans[draft.index] = (start, end)
        if thread == MAIN:
            self.compacted.append((len(builder.compactions), before))
        self.alive[thread] = [*kept]
        after = draft.index - 1 if thread == MAIN else max(before, default=-1)
        builder.compactions.append(Compaction(after, "summary", "auto", summary=draft.index, kept=tuple(kept), thread=thread, call=call, raw=(number,)))

    def _stays(self, index: int, start: float, end: float) -> bool:
        """Say whether a message is still sent after a compaction of that span: a summary if its own span is not inside."""
        span = self.spans.get(index)
        if span is not None:
            return not (start <= span[0] and span[1] <= end)
        at = self.said[index]
        return at is None or not start <= at <= end


def _added(usage: Usage) -> int:
    """The total, of the buckets that Gemini knows: a look at each response, so it is short."""
    return (usage.input_uncached or 0) + (usage.cache_read or 0) + (usage.output or 0)


def _number(value: Any) -> float | None:
    if type(value) is float:
        return value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _joined(parts: list[Any]) -> list[Any]:
    """Parts of a stream: texts that follow each other are one."""
    found: list[Any] = []
    for part in parts:
        held = mapping(found[-1] if found else None)
        if "text" in held and isinstance(mapping(part).get("text"), str) and bool(part.get("thought")) == bool(held.get("thought")):
            found[-1] = {**held, **part, "text": string(held["text"]) + part["text"]}
        else:
            found.append(part)
    return found
