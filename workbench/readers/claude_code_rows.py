"""Turns the lines of Claude Code sessions into messages, calls and compactions.

One response stands in several lines, a block each, with the usage repeated: they are merged, and the last line's usage
counts. A tool result is a line of type user. What else is in the file is metadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, ERROR, HIDDEN, META, SYNTHETIC, Part, Text, ToolResult
from .anthropic_blocks import Blocks, CompactionBlock, mark_of, marks_of
from .build import Builder, DraftCall, DraftMessage
from .claude_code_compact import BOUNDARIES, Compacted, from_boundary, frozen
from .claude_code_tree import Tree, branches
from .fields import epoch_ms, mapping, string
from .usage import anthropic as usage_of

#: Types of lines that are not part of the conversation.
METADATA = frozenset(
    (
        "agent-name",
        "agent-setting",
        "ai-title",
        "atis-latch",
        "attachment",
        "bridge-session",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "frame-link",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "relocated",
        "result",
        "started",
        "summary",
        "worktree-state",
    )
)
#: How texts begin that the harness writes in a person's name.
_HARNESS = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "[Request interrupted by user", "Caveat: The messages below were")


@dataclass(slots=True)
class _Response:
    message: DraftMessage
    call: DraftCall | None
    marks: tuple[int, ...]  # of the blocks of all lines so far
    uuid: str
    last: tuple[int, ...] = ()
    usage: int | None = None  # its mark


@dataclass(slots=True)
class Session:
    """Reads lines one by one into a builder. Nothing in a line makes it raise.

    Parameters
    ----------
    spawned : dict
        By agent id: the call whose result names it, the thread of that result, and its record.
    last : int
        Number of the last record so far.
    """

    builder: Builder
    blocks: Blocks = field(default_factory=lambda: Blocks({}, []))
    spawned: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    compactions: list[Compacted] = field(default_factory=list)
    last: int = 0
    _hanging: list[tuple[int, int]] = field(default_factory=list)
    _responses: dict[Any, _Response] = field(default_factory=dict)
    _open: dict[str, _Response] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _index: dict[str, int] = field(default_factory=dict)
    _lines: dict[str, int] = field(default_factory=dict)  # by uuid a mark of the message: keeping it doubles the memory
    _compacted: dict[str, Compacted] = field(default_factory=dict)

    def lines(self, records: Iterable[tuple[int, Any]], tree: Tree, offset: int = 0) -> None:
        """Read the lines of a file, by number and value; `offset` is added to the numbers."""
        main, builder, number, start = tree.main, self.builder, self.last, len(self.builder.messages)
        for line, row in records:
            number = line + offset
            if type(row) is not dict:
                builder.skip(number, "record", f"record {line}: not an object")
                continue
            kind = row.get("type")
            if kind is None:
                kind = mapping(row.get("message")).get("role")
                if kind not in ("user", "assistant"):
                    builder.skip(number, "record", f"record {line}: no type and no message")
                    continue
            thread = main
            if row.get("isSidechain") is True:
                thread = tree.place(row, kind in ("user", "assistant") and type(row.get("message")) is dict, kind == "user" and not _is_result(row))
                if thread not in builder.threads:
                    builder.thread(thread, "subagent", parent=main)
            elif kind == "assistant" or kind == "user":
                tree.spoke = True
            if kind == "assistant":
                self._assistant(number, row, thread)
            elif kind == "user":
                self._user(number, row, thread)
            elif kind == "system":
                self._system(number, row, thread)
            elif type(kind) is str and kind in METADATA:
                self._metadata(number, row, kind, thread)
            else:
                builder.unknown(number, str(kind), thread)
                self._passes(number, row)
        self.last = max(self.last, number)
        self._settle(tree, start)

    def _settle(self, tree: Tree, start: int) -> None:
        """Put what only the end of a file tells where it belongs: a file of one subagent, and abandoned branches."""
        builder, messages, only = self.builder, self.builder.messages, tree.only()
        if only is not None:
            builder.rename_thread(only, tree.main)
        moved: dict[int, str] = {}
        for branch in branches(messages, start, tree.prefix):
            builder.thread(branch.id, "branch", parent=branch.parent)
            for message in branch.messages:
                builder.move(message, branch.id)
                moved |= dict.fromkeys(message.raw, branch.id)
        if moved:
            kinds = set(moved.values())
            moved |= {number: messages[at].thread for number, at in self._hanging if messages[at].thread in kinds}
            builder.move_records(moved)
        self._hanging.clear()
        if moved or only is not None:
            for done in self.compactions:
                number = done.raw[0] if done.summary is None else messages[done.summary].raw[0]
                done.thread = moved.get(number, tree.main if done.thread == only else done.thread)
            for agent, (call, thread, number) in self.spawned.items():
                self.spawned[agent] = (call, moved.get(number, tree.main if thread == only else thread), number)

    def _line(self, number: int, row: dict[str, Any]) -> dict[str, Any] | None:
        """The message of a line; None if there is nothing in it."""
        message = row.get("message")
        return message if type(message) is dict else self._odd_message(number, message)

    def _known(self, number: int, uuid: Any, mark: int, thread: str) -> bool:
        """Say whether a line stood before, by its uuid and the mark of its message."""
        if type(uuid) is not str:
            return False
        if self._lines.get(uuid) == mark and self._again(number, uuid, thread):
            return True
        self._lines[uuid] = mark
        return False

    def _assistant(self, number: int, row: dict[str, Any], thread: str) -> None:
        message = self._line(number, row)
        if message is None:
            return
        id_, content, usage, stop = message.get("id"), message.get("content"), message.get("usage"), message.get("stop_reason")
        # The blocks are known by marks: keeping them would keep the whole file.
        marks = marks_of(content)
        spent = None if usage is None else mark_of(usage)
        uuid = row.get("uuid")
        if self._known(number, uuid, hash((marks, spent, id_ if type(id_) is str else None, stop if type(stop) is str else None)), thread):
            return
        if type(uuid) is not str:
            uuid = ""
        if type(id_) is str and id_:
            request = row.get("requestId")
            key = (id_, request if type(request) is str else None)
            response = self._responses.get(key)
        else:
            key, response = None, self._unnamed(row, thread)
        if response is None:
            response = self._begin(number, row, message, thread, uuid, marks)
            if key is not None:
                self._responses[key] = response
        else:
            self._extend(response, number, content, marks)
            response.uuid = uuid
        if uuid:
            self._index[uuid] = response.message.index
        if key is None:
            self._open[thread] = response
        elif self._open:
            self._open.pop(thread, None)
        call = response.call
        if call is not None:
            if spent is not None and spent != response.usage:
                response.usage = spent
                known, fault = usage_of(usage)
                if fault is not None:
                    self.builder.report(number, "usage", f"record {number}: {fault}")
                if known is not None:
                    call.usage = known
            if type(stop) is str:
                call.stop_reason = stop
        if self.blocks.faults:
            self._faults(number)

    def _odd_message(self, number: int, message: Any) -> dict[str, Any] | None:
        """A message that is only text is taken as its content; anything else is none."""
        if type(message) is not str:
            self.builder.skip(number, "message", f"record {number}: it has no message")
            return None
        self.builder.report(number, "message", f"record {number}: the message is text, not an object")
        return {"content": message}

    def _unnamed(self, row: dict[str, Any], thread: str) -> _Response | None:
        """The response that a line without an id goes on with: the one before it, unless that was complete."""
        response = self._open.get(thread)
        if response is None or (response.call is not None and response.call.usage is not None):
            return None
        parent = row.get("parentUuid")
        return response if parent is None or not response.uuid or parent == response.uuid else None

    def _begin(self, number: int, row: dict[str, Any], message: dict[str, Any], thread: str, uuid: str, marks: tuple[int, ...]) -> _Response:
        builder, model, content = self.builder, message.get("model"), message.get("content")
        ts = epoch_ms(row.get("timestamp"))
        if self._compacted and thread in self._compacted:
            self._compacted[thread].repeating = False
        parts = self.blocks.parts(content)
        flags: tuple[str, ...] = ()
        call: DraftCall | None = None
        if model == "<synthetic>":
            flags = (SYNTHETIC,)
        else:
            id_ = message.get("id") or row.get("requestId")
            call = builder.call(id_ if type(id_) is str else "", thread=thread, model=model if type(model) is str else None, ts=ts)
        if row.get("isApiErrorMessage") is True:
            flags = (*flags, ERROR)
        if self.blocks.compacted:
            parts = self._without_compactions(parts, number, thread, ts, call)
        at = None if call is None else call.index
        parent = self._message(row.get("parentUuid") or row.get("logicalParentUuid"))
        draft = builder.message("assistant", parts, number, id=uuid, thread=thread, ts=ts, call=at, flags=flags, parent=parent)  # type: ignore[arg-type]
        self._newest[thread] = draft.index
        return _Response(draft, call, marks, uuid)

    def _extend(self, response: _Response, number: int, content: Any, marks: tuple[int, ...]) -> None:
        """Add the blocks of a further line. One that repeats what is there, or begins with it, adds only the rest."""
        seen, start = response.marks, 0
        if marks[: len(seen)] == seen:
            start = len(seen)
        elif marks == response.last:
            start = len(marks)
        fresh = content[start:] if type(content) is list else [content][start:]
        response.last = marks
        response.marks = (*seen, *marks[start:])
        draft = response.message
        parts = self.blocks.parts(fresh) if fresh and fresh != [None] else []
        if self.blocks.compacted:
            parts = self._without_compactions(parts, number, draft.thread, draft.ts, response.call)
        self.builder.extend(draft, parts, number)  # type: ignore[arg-type]

    def _without_compactions(
        self, parts: list[Part | CompactionBlock], number: int, thread: str, ts: int | None, call: DraftCall | None
    ) -> list[Part | CompactionBlock]:
        """Take out compaction blocks: each is a message of its own before the rest of its response."""
        rest: list[Part | CompactionBlock] = []
        for part in parts:
            if type(part) is not CompactionBlock:
                rest.append(part)
                continue
            at = None if call is None else call.index
            done = Compacted(thread, self._newest.get(thread, -1), trigger="server", raw=(number,), call=at)
            draft = self.builder.message("assistant", part.parts, number, thread=thread, ts=ts, call=at, flags=(COMPACT_SUMMARY,))
            done.summary = self._newest[thread] = draft.index
            self.compactions.append(done)
            self._compacted[thread] = done
        return rest

    def _user(self, number: int, row: dict[str, Any], thread: str) -> None:
        message, uuid = self._line(number, row), row.get("uuid")
        if message is None or self._known(number, uuid, hash(marks_of(message.get("content"))), thread):
            return
        if type(uuid) is not str:
            uuid = ""
        ts, parent, builder = epoch_ms(row.get("timestamp")), self._message(row.get("parentUuid") or row.get("logicalParentUuid")), self.builder
        parts = self.blocks.parts(message.get("content"))
        draft = None
        results: list[ToolResult] = []
        rest: list[Part] = []
        for part in parts:
            if type(part) is ToolResult:
                draft = builder.message("tool", (part,), number, id=uuid, thread=thread, ts=ts, parent=parent)
                results.append(part)
            elif type(part) is CompactionBlock:
                rest += part.parts
            else:
                rest.append(part)  # type: ignore[arg-type]
        if draft is not None:
            self._newest[thread] = draft.index
            if row.get("toolUseResult") is not None:
                self._agent(row["toolUseResult"], results, thread, number)
            if self._compacted and thread in self._compacted:
                self._compacted[thread].repeating = False
        if rest or draft is None:
            draft = self._said(number, row, rest, thread, uuid, ts, parent)
        if uuid:
            self._index[uuid] = draft.index
        if self._open:
            self._open.pop(thread, None)
        if self.blocks.faults:
            self._faults(number)

    def _said(self, number: int, row: dict[str, Any], parts: list[Part], thread: str, uuid: str, ts: int | None, parent: int | None) -> DraftMessage:
        """What a line of type user says beside results."""
        flags = _flags(row, parts)
        draft = self.builder.message("user", parts, number, id=uuid, thread=thread, ts=ts, flags=flags, parent=parent)
        before = self._newest.get(thread, -1)
        self._newest[thread] = draft.index
        if COMPACT_SUMMARY in flags:
            self._summary(draft, before, thread)
        elif META not in flags and thread in self._compacted:
            self._compacted[thread].repeating = False
        return draft

    def _agent(self, about: Any, results: list[ToolResult], thread: str, number: int) -> None:
        """Note which subagent a call started: the structured result names it."""
        agent = about.get("agentId") if type(about) is dict else None
        if type(agent) is str and agent:
            self.spawned.setdefault(agent, (results[0].call_id, thread, number))

    def _again(self, number: int, uuid: str, thread: str) -> bool:
        """Take a line whose uuid was there before: the same line once more, or one that a compaction kept."""
        done = self._compacted.get(thread)
        index = self._index.get(uuid)
        if index is None:
            return False
        if done is not None and done.repeating and index <= done.after:
            done.kept.add(index)
        self.builder.extend(self.builder.messages[index], (), number)
        return True

    def _summary(self, draft: DraftMessage, before: int, thread: str) -> None:
        done = self._compacted.get(thread)
        if done is None or done.summary is not None or not done.repeating:
            done = Compacted(thread, before, raw=draft.raw)
            self.compactions.append(done)
            self._compacted[thread] = done
        done.summary = draft.index

    def _system(self, number: int, row: dict[str, Any], thread: str) -> None:
        subtype = row.get("subtype")
        if subtype not in BOUNDARIES:
            self._metadata(number, row, "system", thread)
            return
        done = from_boundary(row, number, thread, self._newest.get(thread, -1))
        self.compactions.append(done)
        if done.kind != "edit":
            self._compacted[thread] = done
        self.builder.account(number, "compactions", thread)
        self._passes(number, row)
        self._open.pop(thread, None)

    def _metadata(self, number: int, row: dict[str, Any], kind: str, thread: str) -> None:
        self.builder.account(number, "metadata", thread)
        read = _TITLES.get(kind)
        if read is not None and (title := string(row.get(read[1]))):
            rank, meta = read[0], self.builder.meta
            if rank >= meta.get("_title_rank", 0):
                meta["title"], meta["_title_rank"] = title, rank
        self._passes(number, row)

    def _passes(self, number: int, row: dict[str, Any]) -> None:
        """A line that is no message stands between a message and its parent: look through it."""
        uuid, named = row.get("uuid"), row.get("parentUuid") or row.get("logicalParentUuid")
        parent = self._message(named)
        if parent is not None:
            self._hanging.append((number, parent))
            if type(uuid) is str:
                self._index.setdefault(uuid, parent)

    def _message(self, uuid: Any) -> int | None:
        """Index of the message that a line's uuid stands for."""
        return self._index.get(uuid) if type(uuid) is str else None

    def _faults(self, number: int) -> None:
        for fault in dict.fromkeys(self.blocks.faults):
            self.builder.report(number, "content", f"record {number}: {fault}")
        self.blocks.faults.clear()

    def finish(self) -> None:
        """Freeze the compactions, now that all messages are known."""
        self.builder.meta.pop("_title_rank", None)
        self.builder.compactions += frozen(self.compactions, self.builder.messages, self._index)


_TITLES = {"summary": (1, "summary"), "ai-title": (2, "aiTitle"), "custom-title": (3, "customTitle")}


def _is_result(row: dict[str, Any]) -> bool:
    content = mapping(row.get("message")).get("content")
    return type(content) is list and any(type(block) is dict and block.get("type") == "tool_result" for block in content)


def _flags(row: dict[str, Any], parts: list[Part]) -> set[str]:
    flags = set()
    if row.get("isCompactSummary") is True:
        return {COMPACT_SUMMARY}
    if row.get("isVisibleInTranscriptOnly") is True:
        flags.add(HIDDEN)
    origin = row.get("origin")
    if row.get("isMeta") is True or (type(origin) is dict and origin.get("kind", "human") != "human"):
        flags.add(META)
    first = parts[0] if parts else None
    if first is None or (len(parts) == 1 and type(first) is Text and not first.text.strip()):
        flags.add(HIDDEN)
    elif type(first) is Text and first.text.startswith(_HARNESS):
        flags.add(META)
    return flags
