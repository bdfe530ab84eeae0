"""Claude Code sessions: one JSON object a line, a tree of prompts, responses and results, with their subagents.

Layouts of subagents, all read: lines marked ``isSidechain`` in the session's own file; ``agent-ID.jsonl`` beside it;
``SESSION/subagents/agent-ID.jsonl``. The records of side files are counted in the session's total and stand in the
thread of their agent; their numbers go on where the session's own end (``meta["side_files"]`` says from where).
"""

from __future__ import annotations

from typing import Any

from ..model import MAIN, Text, Thread, ToolCall, Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .claude_code_files import SideFile, side_files
from .claude_code_rows import METADATA, Session
from .claude_code_tree import Tree
from .fields import mapping, string
from .source import Document

_TYPES = METADATA | {"user", "assistant", "system"}
_SURE = frozenset({"sessionId", "uuid", "parentUuid", "leafUuid", "isSidechain", "messageId", "requestId"})


class ClaudeCode:
    """Reader of Claude Code's session files."""

    info = ReaderInfo("claude-code", "Claude Code session (JSONL), with subagents", "coding_agent.jsonl")
    streams = True  # it takes the lines one by one: see `Document.stream`

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        rows = _head(document, 400)
        web = type(document.value) is dict and type(document.value.get("loglines")) is list
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
            return Match(0.6, ("an export of the web version without lines",)) if web and not rows else None
        share = f"{sure + weak} of the first {len(rows)} records have Claude Code's types"
        if sure + weak < len(rows) / 2:
            return Match(0.4, (share,))
        if web:
            return Match(0.96, (share, "in an export of the web version (loglines)"))
        if sure:
            return Match(0.96, (share, "with " + ", ".join(sorted(_SURE & {key for row in rows for key in row}))))
        return Match(0.7, (share, "each with a message inside"))

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. A file is one session."""
        builder = Builder(self.info.name, document)
        session, tree = Session(builder), Tree(MAIN)
        _about(builder, document)
        lines = _lines(document)
        session.lines(document.stream() if lines is None else lines, tree)
        builder.total = document.total if lines is None else len(lines)
        session.last = max([session.last, builder.total, *document.skipped[-1:]])
        agents = dict(tree.agents)
        calls: dict[str, str] = {}
        if tree.only() is None:
            _read_side_files(builder, session, document, agents, calls)
        else:
            builder.id = next(iter(tree.agents), "")
        session.finish()
        link(builder, session, agents, calls)
        return [builder.build()]


def _lines(document: Document) -> list[tuple[int, Any]] | None:
    """The lines of a file that is one object: of one line, or the export of the web version, which wraps them."""
    if type(document.value) is not dict:
        return None
    lines = document.value.get("loglines")
    return [*enumerate(lines if type(lines) is list else [document.value], 1)]


def _head(document: Document, size: int) -> list[dict[str, Any]]:
    """The first lines that are objects."""
    lines = _lines(document)
    values = [line for _, line in lines[:size]] if lines is not None else [record.value for record in document.records[:size]]
    return [value for value in values if type(value) is dict]


def _about(builder: Builder, document: Document) -> None:
    """Take the session's id, version and place from the first lines that have them; they stand in nearly every line."""
    wanted = {"sessionId": "session", "cwd": "cwd", "gitBranch": "git_branch", "version": "version", "slug": "slug"}
    for row in _head(document, 200):
        for key in [key for key in wanted if string(row.get(key))]:
            builder.meta[wanted.pop(key)] = row[key]
    builder.id = builder.meta.get("session", "")


def _read_side_files(builder: Builder, session: Session, document: Document, agents: dict[str, str], calls: dict[str, str]) -> None:
    """Read the files of subagents; their threads are added to `agents`, the calls that their notes name to `calls`."""
    files, faults = side_files(document.path, string(builder.meta.get("session")), session.spawned.keys())
    for fault in faults:
        builder.report(None, "side_file", fault)
    opened: list[tuple[str, int]] = []
    offset = session.last
    for file in files:
        opened.append((file.document.name, offset + 1))
        thread = _read_side_file(builder, session, file, offset, agents)
        if call := string(file.about.get("toolUseId")):
            calls[thread] = call
        offset = session.last
    if opened:
        builder.meta["side_files"] = tuple(opened)
    missing = [(number, agent) for agent, (_, _, number) in session.spawned.items() if agent not in agents]
    if missing:
        names = ", ".join(repr(agent[:40]) for _, agent in missing[:5])
        builder.report(missing[0][0], "missing_subagent", f"{len(missing):,} subagents have no lines here and no file beside it: {names}")


def _read_side_file(builder: Builder, session: Session, file: SideFile, offset: int, agents: dict[str, str]) -> str:
    document, lines = file.document, _lines(file.document)
    thread = agents.setdefault(file.agent, file.agent if file.agent not in builder.threads else f"agent {file.agent}")
    builder.thread(thread, "subagent")
    session.lines(document.stream() if lines is None else lines, Tree(thread, f"{thread}/"), offset)
    for number in document.skipped:
        builder.account(offset + number, "skipped", thread)
        session.last = max(session.last, offset + number)
    for diagnostic in document.diagnostics:
        builder.report(None, diagnostic.code, f"{document.name}: {diagnostic.text}")
    builder.total = (builder.total or 0) + (document.total if lines is None else len(lines))
    return thread


def link(builder: Builder, session: Session, agents: dict[str, str], calls: dict[str, str]) -> None:
    """Say which call started each subagent: by the result that names it, by its own notes, or by the prompt."""
    if len(builder.threads) == 1:
        return
    thread_of: dict[str, str] = {}
    by_prompt: dict[str, list[str]] = {}
    asked: dict[str, str] = {}
    for message in builder.messages:
        for part in message.parts:
            if type(part) is ToolCall and part.id:
                thread_of.setdefault(part.id, message.thread)
                prompt = mapping(part.arguments).get("prompt")
                if type(prompt) is str:
                    by_prompt.setdefault(prompt.strip(), []).append(part.id)
            elif type(part) is Text and message.role == "user":
                asked.setdefault(message.thread, part.text.strip())
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
