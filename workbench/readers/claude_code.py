"""Claude Code sessions: one JSON object a line, a tree of prompts, responses and results, with their subagents.

Layouts of subagents, all read: lines marked ``isSidechain`` in the session's own file; ``agent-ID.jsonl`` beside it;
``SESSION/subagents/agent-ID.jsonl``. The records of side files are counted in the session's total and stand in the
thread of their agent; their numbers go on where the session's own end (``meta["side_files"]`` says from where).
"""

from __future__ import annotations

from typing import Any

from ..model import MAIN, Thread, ToolCall, Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .claude_code_files import SideFile, side_files
from .claude_code_rows import METADATA, Session
from .claude_code_tree import Threads, threads
from .fields import mapping, string
from .source import Document, Record

_TYPES = METADATA | {"user", "assistant", "system"}
_HEAD = 1_000
_SURE = frozenset({"sessionId", "uuid", "parentUuid", "leafUuid", "isSidechain", "messageId", "requestId"})


class ClaudeCode:
    """Reader of Claude Code's session files."""

    info = ReaderInfo("claude-code", "Claude Code session (JSONL), with subagents", "coding_agent.jsonl")

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        rows = [record.value for record in _records(document)[:400] if type(record.value) is dict]
        if any(type(message := row.get("message")) is dict and "parts" in message for row in rows):
            return None  # Qwen Code has the same envelope and other messages
        sure = weak = 0
        for row in rows:
            message = row.get("message")
            if "payload" in row or ("session_id" in row and "sessionId" not in row):
                continue  # Codex, and the stream of `claude -p`
            known = row.get("type") in _TYPES if type(row.get("type")) is str else type(message) is dict and "role" not in row
            if known and _SURE & row.keys():
                sure += 1
            elif known and type(message) is dict and row.get("type") in ("user", "assistant"):
                weak += 1
        if not sure and not weak:
            return None
        share = f"{sure + weak} of the first {len(rows)} records have Claude Code's types"
        if sure + weak < len(rows) / 2:
            return Match(0.4, (share,))
        if sure:
            return Match(0.96, (share, "with " + ", ".join(sorted(_SURE & {key for row in rows for key in row}))))
        return Match(0.7, (share, "each with a message inside"))

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. A file is one session."""
        records = _records(document)
        builder = Builder(self.info.name, document, max(document.total, len(records)))
        session = Session(builder)
        found = threads(records)
        _open_threads(builder, found, {MAIN: MAIN})
        session.lines(records, found.of)
        _about(builder, records)
        agents = {agent: thread for thread, agent in found.agents.items() if thread in builder.threads}
        asked = dict(found.prompts)
        calls: dict[str, str] = {}
        main_is_agent = bool(found.agents) and not agents
        if not main_is_agent:
            _read_side_files(builder, session, document, agents, asked, calls)
        session.finish()
        _link(builder, session, agents, asked, calls)
        if main_is_agent:
            builder.id = next(iter(found.agents.values()))
        return [builder.build()]


def _records(document: Document) -> list[Record]:
    value = document.value
    if type(value) is not dict:
        return document.records
    lines = value.get("loglines")  # the web export wraps the lines
    return [Record(number, line) for number, line in enumerate(lines, 1)] if type(lines) is list else [Record(1, value)]


def _open_threads(builder: Builder, found: Threads, names: dict[str, str]) -> None:
    """Make the threads of a file known; `names` says how they are called in the transcript."""
    for thread, (kind, parent) in found.kinds.items():
        names.setdefault(thread, thread)
        builder.thread(names[thread], "branch" if kind == "branch" else "subagent", parent=names.get(parent, parent))


def _about(builder: Builder, records: list[Record]) -> None:
    """Take the session's id, version and place from the first lines that have them; they stand in nearly every line."""
    wanted = {"sessionId": "session", "cwd": "cwd", "gitBranch": "git_branch", "version": "version", "slug": "slug"}
    for record in records[:_HEAD]:
        if type(record.value) is dict:
            for key in [key for key in wanted if string(record.value.get(key))]:
                builder.meta[wanted.pop(key)] = record.value[key]
    builder.id = builder.meta.get("session", "")


def _read_side_files(builder: Builder, session: Session, document: Document, agents: dict[str, str], asked: dict[str, str], calls: dict[str, str]) -> None:
    files, faults = side_files(document.path, string(builder.meta.get("session")), session.spawned.keys())
    for fault in faults:
        builder.report(None, "side_file", fault)
    opened: list[tuple[str, int]] = []
    offset = max([document.total, *(record.number for record in document.records[-1:]), *document.skipped[-1:]])
    for file in files:
        thread = _read_side_file(builder, session, file, offset, agents, asked)
        if call := string(file.about.get("toolUseId")):
            calls[thread] = call
        opened.append((file.document.name, offset + 1))
        offset += max([file.document.total, *(record.number for record in _records(file.document)[-1:]), *file.document.skipped[-1:]])
    if opened:
        builder.meta["side_files"] = tuple(opened)
    missing = [(number, agent) for agent, (_, _, number) in session.spawned.items() if agent not in agents]
    if missing:
        names = ", ".join(repr(agent[:40]) for _, agent in missing[:5])
        builder.report(missing[0][0], "missing_subagent", f"{len(missing):,} subagents have no lines here and no file beside it: {names}")


def _read_side_file(builder: Builder, session: Session, file: SideFile, offset: int, agents: dict[str, str], asked: dict[str, str]) -> str:
    document, records = file.document, _records(file.document)
    thread = agents.setdefault(file.agent, file.agent if file.agent not in builder.threads else f"agent {file.agent}")
    builder.thread(thread, "subagent")
    found = threads(records)
    names = {MAIN: thread, **{name: f"{thread}/{name}" for name in found.kinds}}
    _open_threads(builder, found, names)
    asked |= {names[name]: prompt for name, prompt in found.prompts.items()}
    asked.setdefault(thread, next((text for record in records if (text := _prompt(record.value))), ""))
    for number in document.skipped:
        builder.account(offset + number, "skipped", thread)
    for diagnostic in document.diagnostics:
        builder.report(None, diagnostic.code, f"{document.name}: {diagnostic.text}")
    session.lines(records, found.of, names, offset)
    builder.total = (builder.total or 0) + max(document.total, len(records))
    return thread


def _prompt(row: Any) -> str:
    content = mapping(mapping(row).get("message")).get("content")
    return content.strip() if type(content) is str and mapping(row).get("type") == "user" else ""


def _link(builder: Builder, session: Session, agents: dict[str, str], asked: dict[str, str], calls: dict[str, str]) -> None:
    """Say which call started each subagent: by the result that names it, by its own notes, or by the prompt."""
    if len(builder.threads) == 1:
        return
    thread_of: dict[str, str] = {}
    by_prompt: dict[str, list[str]] = {}
    for message in builder.messages:
        for part in message.parts:
            if type(part) is ToolCall and part.id:
                thread_of.setdefault(part.id, message.thread)
                prompt = mapping(part.arguments).get("prompt")
                if type(prompt) is str:
                    by_prompt.setdefault(prompt.strip(), []).append(part.id)
    named = {agents[agent]: (call, thread) for agent, (call, thread, _) in session.spawned.items() if agent in agents}
    taken = {call for call, _ in named.values()} | set(calls.values())
    for id_, thread in builder.threads.items():
        if thread.kind != "subagent":
            continue
        call, parent = named.get(id_, ("", ""))
        call = call or calls.get(id_, "")
        if not call:
            call = next((one for one in by_prompt.get(asked.get(id_, ""), ()) if one not in taken), "")
            taken.add(call)
        parent = parent or thread_of.get(call, "") or thread.parent or MAIN
        builder.threads[id_] = Thread(id_, "subagent", parent if parent != id_ else MAIN, call or None)


READER = ClaudeCode()
