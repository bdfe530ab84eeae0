"""Which thread each line of a Claude Code session stands in: main, a subagent's, or an abandoned branch.

A subagent's line is known when it is read. A branch is known only at the end. Messages name their parent, and forks are
of two kinds: going back to an earlier prompt, or asking again for an answer, leaves a branch behind; parallel tool
calls fork as well, as each result names the line of its own call. Those belong together. So forks are looked for
between prompts and responses only, and results and notices belong to the prompt or response that they hang on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, HIDDEN, META, Text
from .build import DraftMessage

#: How the lines of local commands begin: prompts that nobody has to answer.
_LOCAL = ("<command-name>", "<command-message>", "<local-command-", "<bash-")
_NOT_SAID = frozenset({META, HIDDEN, COMPACT_SUMMARY})


@dataclass(slots=True)
class Tree:
    """The lines of one file.

    Parameters
    ----------
    main : str
        What the file's main thread is called in the transcript.
    prefix : str
        Put before the names of its other threads.
    kinds : list of str
        Every subagent's thread, in the order of their first lines.
    agents : dict of str to str
        Thread by agent id, where the lines carry one.
    spoke : bool
        Whether anything was said outside of sidechains.
    """

    main: str
    prefix: str = ""
    kinds: list[str] = field(default_factory=list)
    agents: dict[str, str] = field(default_factory=dict)
    spoke: bool = False
    _by_uuid: dict[str, str] = field(default_factory=dict)
    _newest: str = ""

    def place(self, row: dict[str, Any], talks: bool, starts: bool) -> str:
        """The thread of a sidechain's line: by agent id, by parent, or that of the sidechain before it.

        Parameters
        ----------
        talks, starts : bool
            Whether it is a message, and one that can start a subagent.
        """
        parent, agent, uuid = row.get("parentUuid"), row.get("agentId"), row.get("uuid")
        thread = self._by_uuid.get(parent, "") if type(parent) is str else ""
        if type(agent) is str and agent and (talks or agent in self.agents):
            thread = self.agents.get(agent, "")
            if not thread:
                thread = self.prefix + agent
                if thread in self.kinds or thread == self.main:
                    thread = f"{self.prefix}agent {agent}"
                self.agents[agent] = thread
        elif not thread:
            if not talks:
                return self.main
            thread = f"{self.prefix}sidechain-{len(self.kinds) + 1}" if starts or not self._newest else self._newest
        if thread not in self.kinds:
            self.kinds.append(thread)
        self._newest = thread
        if type(uuid) is str:
            self._by_uuid[uuid] = thread
        return thread

    def only(self) -> str | None:
        """The one subagent's thread, if the file holds nothing else: there its thread is the main one."""
        return self.kinds[0] if len(self.kinds) == 1 and not self.spoke else None


@dataclass(slots=True)
class Branch:
    """An abandoned branch: its thread, the thread it left, and its messages."""

    id: str
    parent: str
    messages: list[DraftMessage] = field(default_factory=list)


def branches(messages: Sequence[DraftMessage], start: int, prefix: str) -> list[Branch]:
    """Find the abandoned branches among the messages from `start` on."""
    parents = [message.parent for message in messages[start:] if message.parent is not None]
    if len(set(parents)) == len(parents):  # nothing forks
        return []
    nodes: dict[int, _Node] = {}
    at: list[int] = [-1] * start  # by message: the node that it is or hangs on
    for index, message in enumerate(messages[start:], start):
        up = message.parent
        node = at[up] if up is not None and up < index and messages[up].thread == message.thread else -1
        if _is_node(message, messages[index - 1] if index else None):
            nodes[index] = _Node(node, message.role == "assistant", _is_command(message), message.raw[-1], message.thread)
            node = index
        elif node >= 0:
            nodes[node].last = max(nodes[node].last, message.raw[-1])
        at.append(node)
    left = _leave(nodes, prefix)
    for index, message in enumerate(messages[start:], start):
        if at[index] >= 0 and (branch := left.get(nodes[at[index]].thread)) is not None:
            branch.messages.append(message)
    return [*left.values()]


def _is_node(message: DraftMessage, before: DraftMessage | None) -> bool:
    if message.role == "assistant":
        return not message.flags & _NOT_SAID
    # What a person says beside results hangs on the call, as they do.
    beside = before is not None and before.role == "tool" and before.raw == message.raw
    return message.role == "user" and not beside and not message.flags & _NOT_SAID


def _is_command(message: DraftMessage) -> bool:
    first = message.parts[0] if message.parts else None
    return message.role == "user" and type(first) is Text and first.text.startswith(_LOCAL)


@dataclass(slots=True)
class _Node:
    """A prompt or a whole response."""

    parent: int
    answer: bool
    command: bool
    last: int
    thread: str
    answered: bool = False


def _leave(nodes: dict[int, _Node], prefix: str) -> dict[str, Branch]:
    """Give every abandoned node and what hangs on it a thread of its own."""
    children: dict[int, list[int]] = {}
    for index in reversed(nodes):  # a parent stands before its children
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
    left: dict[str, Branch] = {}
    for index, node in nodes.items():
        if index in gone:
            branch = Branch(f"{prefix}branch-{len(left) + 1}", nodes[node.parent].thread)
            node.thread = branch.id
            left[branch.id] = branch
        elif node.parent >= 0:
            node.thread = nodes[node.parent].thread
    return left


def _abandoned(node: _Node, live: _Node) -> bool:
    """Say whether a sibling of the live node was left behind.

    A prompt beside a response may have been sent while the response was running, so it is a branch only if both were
    answered. A local command that nobody answered is no branch either.
    """
    if node.answer == live.answer:
        return node.answered or not node.command
    return node.answered and live.answered
