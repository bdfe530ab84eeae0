"""Gemini CLI: recorded chats, old (one JSON object) and new (an append-only log), saved checkpoints, and subagents' files.

A subagent's chat stands in a folder beside the session's file that is named as the session's id. Its records are
counted in the session's total, in the thread of the subagent; their numbers go on where the session's own end
(``meta["side_files"]`` says from where).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import COMPACT_SUMMARY, HIDDEN, MAIN, META, SYNTHETIC, Compaction, Media, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Transcript
from .base import Match, ReaderInfo
from .build import Builder, DraftMessage
from .fields import epoch_ms, listing, mapping, string, tool_call
from .gemini_cli_files import side_files
from .gemini_cli_log import Log, Replaced, Slot
from .gemini_parts import Parts, apart, get, is_part, result_of
from .source import Document
from .usage import gemini as usage_of
from .usage import tokens

_MODEL = ("gemini", "model", "assistant")
#: Rows that the program shows and does not send.
_SHOWN = ("info", "warning", "error")
_TYPES = ("user", *_MODEL, *_SHOWN)
_MARKS = frozenset({"$set", "$rewindTo"})
#: How texts begin that the program writes in the user's name.
_HARNESS = ("This is the Gemini CLI. We are setting up the context", "<session_context>", "<state_snapshot>")


class GeminiCliReader:
    """Reader of Gemini CLI's chats."""

    info = ReaderInfo("gemini-cli", "Gemini CLI chats (JSON and JSONL), checkpoints, with subagents")
    streams = True

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        value = document.value
        if isinstance(value, dict):
            messages, history = value.get("messages"), _history(value)
            if "sessionId" in value and "projectHash" in value:
                return Match(0.96, ("an object with sessionId and projectHash",))
            if isinstance(messages, list) and any(mapping(item).get("type") == "gemini" for item in messages[:50]):
                return Match(0.93, ("messages of type gemini",))
            if {"sessionId", "startTime"} <= value.keys() and isinstance(messages, list) and any(map(_is_row, messages[:50])):
                return Match(0.9, ("a session's messages with a type and content",))
            if history is not None and any(is_part(part) for item in history[:20] for part in listing(mapping(item).get("parts"))[:5]):
                return Match(0.93, ("a history of contents with parts",))
        head = [record.value for record in document.rows()[:200] if isinstance(record.value, dict)]
        marks = [key for key in ("$set", "$rewindTo") if any(key in row for row in head)]
        if any("sessionId" in row and "projectHash" in row for row in head[:3]):
            return Match(0.96, ("a header with sessionId and projectHash", *marks))
        rows = sum(map(_is_row, head))
        if head and (rows + sum(not _MARKS.isdisjoint(row) for row in head)) * 2 > len(head) and (marks or any(row.get("type") == "gemini" for row in head)):
            return Match(0.9, (f"{rows} of the first {len(head)} records are messages of Gemini CLI", *marks))
        return None

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. A file is one session."""
        chat = _Chat(Builder(self.info.name, document))
        last = chat.file(document, MAIN, 0)
        builder, meta = chat.builder, chat.builder.meta
        builder.total = _total(document)
        about = chat.about
        builder.id = meta["session"] = string(about.get("sessionId"))
        meta.update(title=string(about.get("summary")), model=string(mapping(about.get("meta")).get("model")))
        chat.side_files(document, builder.id, last)
        return [builder.build()]


READER = GeminiCliReader()


def _is_row(value: Any) -> bool:
    row = mapping(value)
    return row.get("type") in _TYPES and "content" in row and "message" not in row


def _history(value: dict[str, Any]) -> list[Any] | None:
    """The contents of a saved checkpoint."""
    return next((value[key] for key in ("history", "clientHistory") if isinstance(value.get(key), list)), None)


def _total(document: Document) -> int:
    value = document.value
    if not isinstance(value, dict):
        return document.total
    messages = value.get("messages") if isinstance(value.get("messages"), list) else _history(value)
    return document.total if messages is None else len(messages)


def _log_of(document: Document) -> Log:
    value, log = document.value, Log()
    messages = None
    if isinstance(value, dict):
        messages = value.get("messages") if isinstance(value.get("messages"), list) else _history(value)
    if messages is None:
        log.records(iter([(1, value)]) if isinstance(value, dict) else document.stream())
        return log
    log.about |= {key: held for key, held in value.items() if key not in ("messages", "history", "clientHistory")}
    for number, message in enumerate(messages, 1):
        if message is not None or number not in document.skipped:
            log.message(number, message)
    return log


@dataclass(slots=True)
class _Chat:
    """A session and its subagents, read into one builder."""

    builder: Builder
    parts: Parts = field(default_factory=Parts)
    about: dict[str, Any] = field(default_factory=dict)
    answered: dict[str, DraftMessage] = field(default_factory=dict)
    spawned: dict[str, tuple[str, str]] = field(default_factory=dict)
    room: int = 2_000_000

    def file(self, document: Document, thread: str, offset: int) -> int:
        """Read a file into a thread; `offset` is added to the numbers of its records. Returns the last number."""
        builder, log = self.builder, _log_of(document)
        if thread == MAIN:
            self.about = log.about
        for number in log.beside:
            builder.account(number + offset, "metadata", thread)
        for number, why in log.odd:
            builder.account(number + offset, "skipped", thread)
            builder.report(number + offset if thread == MAIN else None, "record", f"record {number}: {why}")
        replaced: list[Replaced] = []
        newest = -1
        for step in log.steps:
            if isinstance(step, Replaced):
                step.after = newest
                replaced.append(step)
                continue
            where = thread
            if step.rewound:
                where = builder.thread(f"{'' if thread == MAIN else f'{thread}/'}rewound-{step.rewound}", "branch", parent=thread)
            self._slot(step, where, offset)
            newest = step.indices[-1] if step.indices and where == thread else newest
        for step in replaced:
            self._replaced(step, thread, offset)
        return offset + max([_total(document), log.last, *document.skipped[-1:]])

    def _slot(self, slot: Slot, thread: str, offset: int) -> None:
        builder, value, number = self.builder, slot.value, slot.numbers[0] + offset
        kind, content, ts = value.get("type"), value.get("content"), value.get("timestamp")
        if type(kind) is not str:
            kind = string(value.get("role"))
        if content is None:
            content = value.get("parts")
        ts = epoch_ms(value.get("ts") if ts is None else ts)
        first = len(builder.messages)
        if kind in _MODEL:
            self._answer(slot, content, number, thread, ts)
        elif kind == "user" or (not kind and content is not None):
            self._said(slot, content, number, thread, ts)
        elif kind in _SHOWN:
            builder.account(number, "metadata", thread)
            if kind == "error":
                text = " ".join(part.text for part in self.parts.of(content) if type(part) is Text)
                builder.report(number, "error", f"record {number}: the session reports an error ({text[:100].splitlines()[0] if text.strip() else ''})")
        elif kind:
            builder.unknown(number, kind, thread)
        else:
            builder.skip(number, "message", f"record {number}: a message without a type and content")
        if self.parts.faults:
            for fault in dict.fromkeys(self.parts.faults):
                builder.report(number, "content", f"record {number}: {fault}")
            self.parts.faults.clear()
        made = range(first, len(builder.messages))
        slot.indices += made
        if len(slot.numbers) > 1:
            again = tuple(number + offset for number in slot.numbers[1:])
            if made:
                builder.messages[first].raw += again
            for number in again:
                builder.account(number, "messages" if made else "metadata", thread)

    def _said(self, slot: Slot, content: Any, number: int, thread: str, ts: int | None) -> None:
        """What the user said. A history that replaced another one holds results as the API does: those are known already."""
        results, rest = apart(self.parts.of(content))
        for result in results:
            known = self.answered.get(result.call_id) if result.call_id else None
            if known is not None:
                self.builder.extend(known, (), number)
                slot.indices.append(known.index)
            else:
                self._result(result, number, thread, ts, slot.id)
        if not rest and results:
            return
        flags = {META} if rest and type(rest[0]) is Text and rest[0].text.lstrip().startswith(_HARNESS) else set()
        flags |= set() if any(type(part) is not Text or part.text.strip() for part in rest) else {HIDDEN}
        self.builder.message("user", rest, number, id=slot.id, thread=thread, ts=ts, flags=flags)

    def _result(self, result: ToolResult, number: int, thread: str, ts: int | None, id_: str) -> None:
        draft = self.builder.message("tool", [result], number, id=id_, thread=thread, ts=ts)
        if result.call_id:
            self.answered[result.call_id] = draft

    def _answer(self, slot: Slot, content: Any, number: int, thread: str, ts: int | None) -> None:
        builder, value = self.builder, slot.value
        parts: list[Part] = [Reasoning(text) for thought in listing(value.get("thoughts")) if (text := _thought(thought))]
        parts += [Text(content)] if type(content) is str and content else self.parts.of(content)
        asked = {part.id for part in parts if type(part) is ToolCall}
        calls: list[tuple[str, Mapping[str, Any]]] = []
        for place, call in enumerate(map(mapping, listing(value.get("toolCalls"))), 1):
            # A result stands inside its call: without an id both get the same one.
            id_ = string(call.get("id")) or f"{slot.id or number}:{place}"
            if id_ not in asked:
                parts.append(tool_call(id_, call.get("name"), call.get("args")))
            calls.append((id_, call))
            if agent := string(call.get("agentId")):
                self.spawned.setdefault(agent, (id_, thread))
        usage = self._usage(value.get("tokens"), number)
        model = string(value.get("model"))
        made = slot.made and usage is None and not model and not calls
        at = None if made else builder.call(slot.id, thread=thread, model=model or None, usage=usage, ts=ts).index
        flags = {SYNTHETIC} if made else set() if parts else {HIDDEN}
        builder.message("assistant", parts, number, id=slot.id, thread=thread, ts=ts, call=at, flags=flags)
        for id_, call in calls:
            result = self._outcome(id_, call)
            if result is not None and id_ not in self.answered:
                self._result(result, number, thread, epoch_ms(call.get("timestamp")) or ts, "")

    def _usage(self, raw: Any, number: int) -> Any:
        usage, why = usage_of(raw)
        if why:
            self.builder.report(number, "usage", f"record {number}: {why}")
        elif usage is not None:
            total, stated = usage.total, tokens(mapping(raw).get("total"))
            if not total:
                return None  # the program writes zeros where it was told nothing
            if stated and stated != total:
                self.builder.report(number, "usage_total", f"record {number}: the stated total is {stated:,} tokens, its parts add up to {total:,}")
        return usage

    def _outcome(self, id_: str, call: Mapping[str, Any]) -> ToolResult | None:
        """The result that a call holds: text, a part, or parts, of which some may answer other calls."""
        held, name = call.get("result"), string(call.get("name")) or None
        if held is None or held == []:
            return None
        parts: list[Text | Media | Opaque] = []
        failed = string(call.get("status")) in ("error", "cancelled")
        for value in held if isinstance(held, list) else [held]:
            answer = get(value, "functionResponse") if isinstance(value, dict) else None
            if isinstance(answer, dict):
                if string(answer.get("id")) in ("", id_) or not isinstance(held, list) or len(held) == 1:
                    result = result_of(answer)
                    parts += result.parts
                    failed = failed or result.is_error
                continue
            parts += [part for part in self.parts.of(value) if isinstance(part, Text | Media | Opaque)]
        return ToolResult(id_, name, tuple(parts), failed)

    def _replaced(self, step: Replaced, thread: str, offset: int) -> None:
        """A history that replaced another one: a compression, or results that were masked."""
        builder, messages = self.builder, self.builder.messages
        summary: DraftMessage | None = None
        if step.dropped:
            said = [messages[index] for slot in step.new for index in slot.indices if messages[index].role == "user" and index > step.after]
            summary = next((message for message in said if COMPACT_SUMMARY not in message.flags and not message.flags & {HIDDEN}), None)
        if summary is not None:
            summary.flags = (summary.flags - {META}) | {COMPACT_SUMMARY}
        where = thread if summary is None else summary.thread
        kept: set[int] = set()
        if self.room > 0:  # each history may be all that was before it
            kept = {index for slot in (*step.kept, *step.new) for index in slot.indices if index <= step.after and messages[index].thread == where}
            self.room -= len(kept)
        kind = "edit" if not step.dropped else "trim" if summary is None else "summary"
        after = step.after
        while after >= 0 and messages[after].thread != where:
            after -= 1
        at = None if summary is None else summary.index
        number = step.number + offset
        builder.account(number, "compactions", thread)
        builder.compactions.append(Compaction(after, kind, None, None, None, at, tuple(sorted(kept)), where, None, (number,)))

    def side_files(self, document: Document, session: str, offset: int) -> None:
        """Read the subagents' chats."""
        builder = self.builder
        files, faults = side_files(document.path, session)
        for fault in faults:
            builder.report(None, "side_file", fault)
        opened: list[tuple[str, int]] = []
        for file in files:
            thread = file.agent if file.agent not in builder.threads else f"agent {file.agent}"
            builder.thread(thread, "subagent", parent=MAIN)
            first, offset = offset, self.file(file.document, thread, offset)
            for number in file.document.skipped:
                builder.account(first + number, "skipped", thread)
            for diagnostic in file.document.diagnostics:
                builder.report(None, diagnostic.code, f"{file.document.name}: {diagnostic.text}")
            opened.append((file.document.name, first + 1))
            builder.total = (builder.total or 0) + _total(file.document)
        for thread, held in builder.threads.items():
            if held.kind == "subagent":
                call, parent = self.spawned.get(thread.removeprefix("agent "), ("", MAIN))
                builder.threads[thread] = replace(held, parent=parent if parent != thread else MAIN, spawned_by=call or None)
        if opened:
            builder.meta["side_files"] = tuple(opened)


def _thought(value: Any) -> str:
    held = mapping(value)
    return "\n".join(text for key in ("subject", "description") if (text := string(held.get(key)))) or string(value)
