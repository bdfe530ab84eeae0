"""Which thread each line of a Claude Code session stands in: main, a subagent's, or an abandoned branch.

Lines name their parent, and forks are of two kinds. Going back to an earlier prompt, or asking again for an answer,
leaves a branch behind. Parallel tool calls fork as well: each result names the line of its own call, while the next
call's line names the line before it; those belong together. So forks are looked for between prompts and responses
only: all lines of a response are one node, and results, notices and progress belong to the node they hang on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import MAIN
from .source import Record

_COMMAND = ("<command-name>", "<command-message>", "<local-command-", "<bash-")


@dataclass(slots=True)
class Threads:
    """Threads of the lines of a file.

    Parameters
    ----------
    of : dict of int to str
        Thread by record number; lines that are not in it stand in the main one.
    kinds : dict of str to (kind, parent)
        Every thread but the main one, in the order of their first lines.
    agents : dict of str to str
        Agent id by thread, where the lines carry one.
    prompts : dict of str to str
        The spawning prompt by subagent thread, where it is text.
    """

    of: dict[int, str] = field(default_factory=dict)
    kinds: dict[str, tuple[str, str]] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)


def response_key(row: dict[str, Any]) -> tuple[str, Any] | None:
    """What makes lines one response: the message's id and the request's; None if there is no id."""
    message = row.get("message")
    if type(message) is dict and type(id_ := message.get("id")) is str and id_:
        request = row.get("requestId")
        return id_, request if type(request) is str else None
    return None


def threads(records: Sequence[Record]) -> Threads:
    """Assign every line that is an object to its thread."""
    found = Threads()
    rows = [(record.number, record.value) for record in records if type(record.value) is dict]
    parents: set[Any] = set()
    sidechains = forks = False
    for _, row in rows:
        sidechains = sidechains or row.get("isSidechain") is True
        parent = row.get("parentUuid")
        if type(parent) is str:
            forks = forks or parent in parents
            parents.add(parent)
        elif type(row.get("logicalParentUuid")) is str:
            forks = True  # what follows a compaction hangs on two lines
    if sidechains:
        _subagents(rows, found)
    if forks:
        _branches(rows, found)
    return found


def _talks(row: dict[str, Any]) -> bool:
    return row.get("type") in ("user", "assistant") and type(row.get("message")) is dict


def _subagents(rows: list[tuple[int, dict[str, Any]]], found: Threads) -> None:
    """Assign sidechain lines by agent id, by parent, or to the sidechain before them."""
    by_uuid: dict[Any, str] = {}
    by_agent: dict[str, str] = {}
    newest = ""
    main = False
    for number, row in rows:
        uuid = row.get("uuid")
        if row.get("isSidechain") is not True:
            main = main or _talks(row)
            continue
        parent, agent = row.get("parentUuid"), row.get("agentId")
        thread = by_uuid.get(parent, "") if type(parent) is str else ""
        if not _talks(row) and agent not in by_agent:
            if not thread:
                continue
        elif type(agent) is str and agent:
            thread = by_agent.get(agent) or (agent if agent not in found.kinds and agent != MAIN else f"agent {agent}")
            by_agent[agent] = thread
            found.agents[thread] = agent
        elif not thread:
            starts = row.get("type") == "user" and not _is_result(row)
            thread = f"sidechain-{len(found.kinds) + 1}" if starts or not newest else newest
        if thread not in found.kinds:
            found.kinds[thread] = ("subagent", MAIN)
        if thread not in found.prompts and row.get("type") == "user" and type(message := row.get("message")) is dict:
            found.prompts[thread] = prompt_text(message.get("content"))
        found.of[number] = newest = thread
        if type(uuid) is str:
            by_uuid[uuid] = thread
    if not main and len(found.kinds) == 1:  # the file of one subagent: here its thread is the main one
        found.of.clear()
        found.kinds.clear()
        found.prompts.clear()


def prompt_text(content: Any) -> str:
    """Text of a user line, for comparing it with the prompt of a call."""
    if type(content) is list:
        texts = [block.get("text") for block in content if type(block) is dict and block.get("type") == "text"]
        content = texts[0] if texts else ""
    return content.strip() if type(content) is str else ""


def _is_result(row: dict[str, Any]) -> bool:
    message = row.get("message")
    content = message.get("content") if type(message) is dict else None
    if type(content) is list:
        for block in content:
            if type(block) is dict and block.get("type") == "tool_result":
                return True
    return False


@dataclass(slots=True)
class _Node:
    """A prompt or a whole response."""

    parent: int
    answer: bool
    command: bool
    last: int
    thread: str
    answered: bool = False


def _branches(rows: list[tuple[int, dict[str, Any]]], found: Threads) -> None:
    nodes: list[_Node] = []
    node_of: dict[str, int] = {}  # by uuid of a line
    by_key: dict[tuple[str, Any], int] = {}
    at: list[int] = []  # by line
    with_children: set[int] = set()
    forked = False
    before = ""
    of = found.of
    for number, row in rows:
        uuid, kind = row.get("uuid"), row.get("type")
        if type(uuid) is not str:
            at.append(-1)
            continue
        parent = row.get("parentUuid") or row.get("logicalParentUuid")
        up = node_of.get(parent, -1) if type(parent) is str else -1
        thread = of.get(number, MAIN) if of else MAIN
        if up >= 0 and nodes[up].thread != thread:
            up = -1
        node, key, new = up, None, False
        if kind == "assistant":
            key = response_key(row)
            if key is not None:
                node = by_key.get(key, -1)
                new = node < 0
            else:  # without an id it is a further line of the response only if it follows on it
                new = not (up >= 0 and before == "assistant" and at[-1] == up)
        elif kind == "user" and row.get("isMeta") is not True and row.get("isCompactSummary") is not True and not _is_result(row):
            known = node_of.get(uuid, -1)
            new = known < 0 or nodes[known].answer
            node = known  # a prompt that a compaction kept is written again
        if new:
            node = len(nodes)
            nodes.append(_Node(up, kind == "assistant", kind == "user" and _is_command(row), number, thread))
            forked = forked or (up >= 0 and up in with_children)
            with_children.add(up)
            if key is not None:
                by_key[key] = node
        before = kind if type(kind) is str else ""
        at.append(node)
        if node >= 0:
            nodes[node].last = number
            node_of[uuid] = node
        else:
            node_of.pop(uuid, None)
    if forked:
        _assign(rows, nodes, at, found)


def _is_command(row: dict[str, Any]) -> bool:
    message = row.get("message")
    return prompt_text(message.get("content") if type(message) is dict else None).startswith(_COMMAND)


def _assign(rows: list[tuple[int, dict[str, Any]]], nodes: list[_Node], at: list[int], found: Threads) -> None:
    children: dict[int, list[int]] = {}
    for index in range(len(nodes) - 1, -1, -1):  # a parent stands before its children
        node = nodes[index]
        node.answered = node.answered or node.answer
        if node.parent >= 0:
            up = nodes[node.parent]
            up.last = max(up.last, node.last)
            up.answered = up.answered or node.answered
            children.setdefault(node.parent, []).append(index)
    gone: set[int] = set()
    for siblings in children.values():
        if len(siblings) > 1:
            live = max(siblings, key=lambda index: nodes[index].last)
            gone.update(index for index in siblings if index != live and _abandoned(nodes[index], nodes[live]))
    if not gone:
        return
    branches = 0
    for index, node in enumerate(nodes):
        if index in gone:
            branches += 1
            thread = f"branch-{branches}"
            parent = nodes[node.parent].thread
            node.thread = thread
            found.kinds[thread] = ("branch", parent)
        elif node.parent >= 0:
            node.thread = nodes[node.parent].thread
    for (number, _), index in zip(rows, at, strict=True):
        if index >= 0 and nodes[index].thread != MAIN:
            found.of[number] = nodes[index].thread


def _abandoned(node: _Node, live: _Node) -> bool:
    """Say whether a sibling of the live node was left behind.

    A prompt beside a response may have been sent while the response was running, so it is a branch only if both were
    answered. A local command that nobody answered is no branch either.
    """
    if node.answer == live.answer:
        return node.answered or not node.command
    return node.answered and live.answered
