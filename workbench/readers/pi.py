"""Sessions of pi and of OpenClaw, which writes the same files: one entry a line, from version 2 on a tree.

Entries name their parent, and the newest line is the leaf: what leads to it is the conversation, everything else a
branch that was left. A compaction points at the first entry that it kept. The first version has no ids: there the order
is the path, and a compaction counts entries from 0, the header included.

What a subagent said stands inside the result of the call that started it: a thread of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, ERROR, HIDDEN, MAIN, META, SYNTHETIC, Part, Role, Text, Transcript
from .base import Match, ReaderInfo
from .build import Builder, DraftMessage
from .fields import epoch_ms, listing, mapping, string
from .pi_parts import bash_text, parts_of, result_of, usage_of
from .pi_tree import Entry, settle
from .source import Document

_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage", "branchSummary", "compactionSummary"})
_OWN_ROLES = _ROLES - {"user", "assistant"}
_METADATA = frozenset({"session", "model_change", "thinking_level_change", "custom", "label", "session_info"})
_OWN_TYPES = frozenset({"model_change", "thinking_level_change", "custom_message", "branch_summary", "session_info"})


class PiReader:
    """Reader of pi's session files."""

    info = ReaderInfo("pi", "pi and OpenClaw sessions (JSONL, a tree with compactions)")
    streams = True

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`. A file whose header is lost is known by roles and usage that only pi writes."""
        head = [record.value for record in document.rows()[:200] if isinstance(record.value, dict)]
        if not head or any("sessionId" in value or "payload" in value for value in head[:5]):
            return None
        header = any(value.get("type") == "session" and "id" in value and ("timestamp" in value or "cwd" in value) for value in head[:3])
        own = sum(_is_own(value) for value in head)
        if header and (own or len(head) == 1):
            return Match(0.95, (f"a session header, and {own} of the first {len(head)} entries are pi's",))
        return Match(0.8, (f"{own} of the first {len(head)} entries have roles, calls or usage as pi writes them",)) if own * 2 > len(head) else None

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. A file is one session."""
        return [_Session(Builder(self.info.name, document)).read()]


READER = PiReader()


def _is_own(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    if kind == "message":
        message = mapping(value.get("message"))
        role, content = message.get("role"), message.get("content")
        blocks = [block for block in content[:20] if isinstance(block, dict)] if isinstance(content, list) else []
        if not isinstance(role, str) or role not in _ROLES or any(block.get("type") in ("tool_use", "tool_result") for block in blocks):
            return False
        return role in _OWN_ROLES or "cacheRead" in mapping(message.get("usage")) or any(block.get("type") == "toolCall" for block in blocks) or role == "user"
    if kind == "compaction":
        return "firstKeptEntryId" in value or "firstKeptEntryIndex" in value
    return isinstance(kind, str) and kind in _OWN_TYPES


@dataclass(slots=True)
class _Session:
    """One file, read line by line. Nothing in a line makes it raise."""

    builder: Builder
    entries: list[Entry] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    model: str = ""
    numbers: list[int] = field(default_factory=list)
    uneven: int = 0

    def read(self) -> Transcript:
        builder, document = self.builder, self.builder.document
        rows = iter([(1, document.value)]) if isinstance(document.value, dict) else document.stream()
        for number, row in rows:
            self.numbers.append(number)
            if isinstance(row, dict):
                self._row(number, row)
            else:
                builder.skip(number, "record", f"record {number}: not an object")
        if self.uneven:
            builder.report(None, "usage_total", f"the stated total of {self.uneven:,} responses is not the sum of its parts; the parts are shown")
        settle(builder, self.entries, self.index, sorted({*self.numbers, *document.skipped}))
        return builder.build()

    def _row(self, number: int, row: dict[str, Any]) -> None:
        builder, kind = self.builder, row.get("type")
        if kind == "session":
            self._header(row)
            builder.account(number, "metadata")
            return
        entry = Entry(number, self._parent(row, number))
        if kind == "message":
            message = row.get("message")
            if not isinstance(message, dict):
                builder.skip(number, "message", f"record {number}: it has no message")
            elif not self._message(number, row, message, entry):
                return
        elif kind == "custom_message":
            entry.message = self._said(number, row, row.get("content"), (META,))
        elif kind == "branch_summary":
            entry.message = self._said(number, row, row.get("summary"), (META,))
        elif kind == "compaction":
            entry.compaction = row
            builder.account(number, "compactions")
            if string(row.get("summary")):
                entry.message = self._said(number, row, row["summary"], (COMPACT_SUMMARY,))
        elif isinstance(kind, str) and kind in _METADATA:
            builder.account(number, "metadata")
            self._about(kind, row)
        else:
            builder.unknown(number, str(kind))
        self._add(entry, row)

    def _parent(self, row: dict[str, Any], number: int) -> int:
        """The entry that an entry goes on from: the one it names, else the one before it. -1 if it starts anew."""
        named, before = row.get("parentId"), len(self.entries) - 1
        if "parentId" not in row:
            return before
        if named is None:
            return -1
        if isinstance(named, str):
            at = self.index.get(named, self.asked.get(named, -1))  # some OpenClaw results name the call
            if at >= 0:
                return at
            if named != self.builder.id:
                self.builder.report(
                    number, "parent", f"record {number}: its parent {named[:40]!r} is not in the file; it is taken to follow the entry before it"
                )
        return before

    def _add(self, entry: Entry, row: dict[str, Any]) -> None:
        at, id_ = len(self.entries), row.get("id")
        self.entries.append(entry)
        if isinstance(id_, str) and id_:
            self.index[id_] = at
        if entry.message is not None:
            for part in entry.message.parts:
                if (call := getattr(part, "id", "")) and call not in self.index:
                    self.asked[call] = at

    def _header(self, row: dict[str, Any]) -> None:
        """The file's own header; that of a second session in the same file says nothing new."""
        meta, builder = self.builder.meta, self.builder
        if "session" in meta:
            return
        meta["session"] = builder.id = string(row.get("id"))
        meta.update(cwd=string(row.get("cwd")), forked_from=string(row.get("branchedFrom"), row.get("parentSession")))
        if told := string(row.get("systemPrompt")):
            builder.system.append(told)
        self._about("model_change", row)

    def _about(self, kind: str, row: dict[str, Any]) -> None:
        if kind == "model_change" and (model := string(row.get("modelId"))):
            self.model = self.builder.meta["model"] = model
        elif kind == "session_info" and (name := string(row.get("name"))):
            self.builder.meta["title"] = name

    def _said(
        self, number: int, row: dict[str, Any], content: Any, flags: tuple[str, ...], role: Role = "user", thread: str = MAIN, call: int | None = None
    ) -> DraftMessage:
        faults: list[str] = []
        parts = parts_of(content, faults)
        for fault in faults:
            self.builder.report(number, "content", f"record {number}: {fault}")
        if not parts and HIDDEN not in flags:
            flags = (*flags, HIDDEN)
        return self.builder.message(role, parts, number, id=string(row.get("id")), thread=thread, ts=_time(row), call=call, flags=flags)

    def _message(self, number: int, row: dict[str, Any], message: dict[str, Any], entry: Entry) -> bool:
        """Read a message into an entry. False if the same entry stood before."""
        builder, role, content = self.builder, message.get("role"), message.get("content")
        if self._again(number, row, message):
            return False
        if role == "assistant":
            entry.message = self._answer(number, row, message)
        elif role == "toolResult":
            entry.message = self._result(number, row, message)
            entry.agents = self._agents(number, message)
        elif role == "bashExecution":
            hidden = (HIDDEN,) if message.get("excludeFromContext") is True else ()
            entry.message = self._said(number, row, bash_text(message), (META, *hidden))
        elif role in ("custom", "hookMessage"):
            entry.message = self._said(number, row, content, (META,))
        elif role in ("branchSummary", "compactionSummary"):
            entry.message = self._said(number, row, message.get("summary"), (META,))
        elif role == "system":
            entry.message = self._said(number, row, content, (), "system")
        elif role == "user" or content is not None:
            if role != "user":
                builder.report(number, "role", f"record {number}: a message of the unknown role {str(role)[:40]!r} is taken as the user's")
            entry.message = self._said(number, row, content, ())
        else:
            builder.skip(number, "message", f"record {number}: a message without a role and content")
        return True

    def _again(self, number: int, row: dict[str, Any], message: dict[str, Any]) -> bool:
        """Take a line that stands in the file twice, as after a resume."""
        id_ = row.get("id")
        at = self.index.get(id_) if isinstance(id_, str) else None
        held = self.entries[at].message if at is not None else None
        if held is None or held.ts != _time(row) or held.parts != _read_alone(message):
            return False
        self.builder.extend(held, (), number)
        return True

    def _result(self, number: int, row: dict[str, Any], message: dict[str, Any], thread: str = MAIN) -> DraftMessage:
        return self.builder.message("tool", (result_of(message),), number, id=string(row.get("id")), thread=thread, ts=_time(row))

    def _agents(self, number: int, message: dict[str, Any]) -> tuple[str, ...]:
        """Read what subagents said, which the result of their call holds beside what the model reads of it."""
        builder, call = self.builder, string(message.get("toolCallId"))
        found: list[str] = []
        for place, run in enumerate(map(mapping, listing(mapping(message.get("details")).get("results"))), 1):
            said = [held for held in listing(run.get("messages")) if isinstance(held, dict) and held.get("role") in ("user", "assistant", "toolResult")]
            if not said:
                continue
            name = f"agent {call or number}" + (f"/{place}" if place > 1 else "")
            thread = builder.thread(name if name not in builder.threads else f"{name} of record {number}", "subagent", spawned_by=call or None)
            if said[0].get("role") != "user" and (task := string(run.get("task"))):
                self._said(number, {}, task, (), "user", thread)
            for held in said:
                row = {"message": held}
                if held["role"] == "assistant":
                    self._answer(number, row, held, thread)
                elif held["role"] == "toolResult":
                    self._result(number, row, held, thread)
                else:
                    self._said(number, row, held.get("content"), (), "user", thread)
            found.append(thread)
        if found:
            builder.move_records({number: MAIN})
        return tuple(found)

    def _answer(self, number: int, row: dict[str, Any], message: dict[str, Any], thread: str = MAIN) -> DraftMessage:
        """A response. A copy that OpenClaw makes of what it sent to a channel is not one."""
        builder, model, stop = self.builder, string(message.get("model")), string(message.get("stopReason"))
        if message.get("provider") == "openclaw":
            return self._said(number, row, message.get("content"), (SYNTHETIC, HIDDEN), "assistant", thread)
        usage, fault, uneven = usage_of(message.get("usage"))
        self.uneven += uneven
        if fault:
            builder.report(number, "usage", f"record {number}: {fault}")
        ts = _time(row)
        model = model or self.model
        call = builder.call(string(message.get("responseId")), thread=thread, model=model or None, usage=usage, stop_reason=stop or None, ts=ts)
        draft = self._said(number, row, message.get("content"), (ERROR,) if stop == "error" else (), "assistant", thread, call.index)
        if not draft.parts and (why := string(message.get("errorMessage"))) and stop == "error":
            draft.parts.append(Text(why))
        return draft


def _read_alone(message: dict[str, Any]) -> list[Part]:
    """The parts that a message becomes."""
    role = message.get("role")
    if role == "toolResult":
        return [result_of(message)]
    content = bash_text(message) if role == "bashExecution" else message.get("summary" if role in ("branchSummary", "compactionSummary") else "content")
    return parts_of(content, [])


def _time(row: dict[str, Any]) -> int | None:
    ts = epoch_ms(row.get("timestamp"))
    return epoch_ms(mapping(row.get("message")).get("timestamp")) if ts is None else ts
