"""Turn groups and tool-call pairs: the two ways in which messages belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .model import COMPACT_SUMMARY, HIDDEN, META, SYNTHETIC, Message, ToolCall, ToolResult

_NOT_A_PERSON = frozenset({META, COMPACT_SUMMARY, HIDDEN, SYNTHETIC})


def starts_turn(message: Message) -> bool:
    """Say whether a person wrote this message, so that it starts a turn group.

    A tool result, a note, a row that the harness put in and the summary of a compaction do not. The prompt that
    spawned a subagent counts as a person's in that subagent's thread.

    Examples
    --------
    >>> from workbench.model import Message, Text
    >>> starts_turn(Message(0, "", "user", (Text("hello"),)))
    True
    >>> starts_turn(Message(0, "", "user", (Text("recap"),), flags=frozenset({"compact_summary"})))
    False
    """
    return message.role == "user" and not (message.flags & _NOT_A_PERSON)


@dataclass(frozen=True, slots=True)
class TurnGroup:
    """A person's message and everything up to the next one.

    Parameters
    ----------
    index : int
        Place among the turn groups, from 0.
    messages : tuple of int
        ``Message.index`` of each, in order.
    user : int or None
        The message that started it; None for what stands before the first person's message.
    """

    index: int
    messages: tuple[int, ...]
    user: int | None


def turn_groups(messages: Sequence[Message], lead: int | None = None) -> tuple[TurnGroup, ...]:
    """Cut a history into turn groups.

    Leading system messages are the fixed part and belong to none. What else stands before the first person's
    message is a group of its own without a user.

    Parameters
    ----------
    lead : int, optional
        How many of the first messages are the fixed part. Default: all system messages that the history begins with. After
        a compaction it may begin with a later one, which is an ordinary row.
    """
    groups: list[tuple[int | None, list[int]]] = []
    if lead is None:
        lead = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    for message in messages[lead:]:
        if starts_turn(message):
            groups.append((message.index, []))
        elif not groups:
            groups.append((None, []))
        groups[-1][1].append(message.index)
    return tuple(TurnGroup(number, tuple(indices), user) for number, (user, indices) in enumerate(groups))


@dataclass(frozen=True, slots=True)
class Pair:
    """A tool call and its result.

    Parameters
    ----------
    id : str
        The call's id.
    call : int or None
        Message that holds the call; None for an orphan result.
    result : int or None
        Message that holds the first result; None for a call without an answer.
    duplicates : tuple of int
        Messages that hold further results of the same call.
    """

    id: str
    call: int | None
    result: int | None
    duplicates: tuple[int, ...] = ()


def tool_pairs(messages: Sequence[Message]) -> tuple[Pair, ...]:
    """Pair every tool call with its result, by id; by order where a source has no ids.

    Never by neighbourhood: parallel calls may be answered in any order and much later. An id that is used again
    after its call was answered starts a new pair.

    Returns
    -------
    tuple of Pair
        In the order of the calls; orphan results stand where they occur.
    """
    rows: list[list[object]] = []  # [id, call, result, duplicates]
    newest: dict[str, int] = {}
    unnamed: list[int] = []
    for message in messages:
        for part in message.parts:
            if type(part) is ToolCall:
                rows.append([part.id, message.index, None, []])
                if part.id:
                    newest[part.id] = len(rows) - 1
                else:
                    unnamed.append(len(rows) - 1)
            elif type(part) is ToolResult:
                at = newest.get(part.call_id) if part.call_id else (unnamed.pop(0) if unnamed else None)
                if at is None:
                    rows.append([part.call_id, None, message.index, []])
                    if part.call_id:
                        newest[part.call_id] = len(rows) - 1
                elif rows[at][2] is None:
                    rows[at][2] = message.index
                else:
                    rows[at][3].append(message.index)  # type: ignore[attr-defined]
    return tuple(Pair(row[0], row[1], row[2], tuple(row[3])) for row in rows)  # type: ignore[arg-type]


def called_names(messages: Sequence[Message]) -> dict[int, str]:
    """For each message that holds a tool result, the name of the tool that its call names.

    Formats may leave the name out of the result. An orphan result is not in it.

    Returns
    -------
    dict
        ``Message.index`` of the result's message → name.
    """
    called = {(message.index, call.id): call.name for message in messages for call in message.calls}
    found = {}
    for pair in tool_pairs(messages):
        if pair.call is not None:
            for result in (pair.result, *pair.duplicates):
                if result is not None:
                    found[result] = called[pair.call, pair.id]
    return found
