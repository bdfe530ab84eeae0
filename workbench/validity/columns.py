"""A list of messages as columns: what the rules look at, so that each of them is a few array operations.

How a list is packed
--------------------
The rules judge the list that a plain writer makes of ours, in our order and with nothing mended:

- A note is sent with the role that its origin's word means (`sent_as`): ``system`` as system, ``assistant`` as
  assistant, every other word (``user``, ``history_note``) as user.
- A hidden row (empty, or for display only) is not sent.
- Anthropic: system messages that the list begins with become the ``system`` parameter. Results that stand in a row and
  the user's text directly after them are one user message. Other messages stay apart, as they stand.
- OpenAI: each result is an item or message of its own. An assistant message without text is sent with ``null`` where it
  has calls, else with ``""``; both are accepted.
- Reasoning is sent only to the provider that made it. A call without an id gets one that is made for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..model import HIDDEN, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SYSTEM, USER, ASSISTANT, TOOL, NOT_SENT = range(5)
_ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL, "note": USER}
_WORDS: Mapping[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant", "model": "assistant"}
LONGEST_SAID = 80  # characters of an id in a text
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


class Mark:
    """Bits that say what a message is, beyond its role."""

    EMPTY_TEXT = 1  # holds a text of no characters
    BLANK = 2  # all its texts are white space
    NOTHING = 4  # holds no part that is sent
    ENDS_IN_SPACE = 8
    ENDS_IN_REASONING = 16  # sealed reasoning with nothing after it
    UNSIGNED = 32  # readable reasoning without a signature
    NOTE = 64


def sent_as(word: str) -> Role:
    """The role with which a note is sent, from its origin's word for it.

    Examples
    --------
    >>> sent_as("history_note"), sent_as("system"), sent_as("user")
    ('user', 'system', 'user')
    """
    return _WORDS.get(word, "user")


@dataclass(frozen=True, eq=False)
class Columns:
    """Messages as columns, with their calls and results as events.

    Parameters
    ----------
    index : int array, shape (n,)
        ``Message.index``; -1 for what is not in the transcript.
    role : int array, shape (n,)
        The role with which it is sent: SYSTEM, USER, ASSISTANT, TOOL or NOT_SENT.
    marks : int array, shape (n,)
        Bits of `Mark`.
    start, size : int array, shape (n,)
        The events of a message: ``start : start + size``.
    event_row, event_id : int array, shape (e,)
        The row of each event, in order, and its call's id (place in `ids`; 0 is no id).
    is_result, server_side : bool array, shape (e,)
        A result, or a call; run by the provider itself, so that the result stands in the same response.
    ids : mapping
        Every id to its number.
    """

    index: Ints
    role: Ints
    marks: Ints
    start: Ints
    size: Ints
    event_row: Ints
    event_id: Ints
    is_result: Bools
    server_side: Bools
    ids: Mapping[str, int] = field(repr=False)

    @classmethod
    def of(cls, messages: Sequence[Message], roles: Sequence[Role] | None = None, ids: Mapping[str, int] | None = None) -> Columns:
        """Make them.

        Parameters
        ----------
        roles : sequence of str, optional
            The role with which each is sent. Default: its own; a note goes as user.
        ids : mapping, optional
            Ids that have a number already.
        """
        known = {"": 0, **(ids or {})}
        roles = [message.role for message in messages] if roles is None else roles
        events: list[tuple[int, int, bool, bool]] = []
        rows: list[tuple[int, int, int, int, int]] = []
        for row, (message, role) in enumerate(zip(messages, roles, strict=True)):
            first = len(events)
            for part in message.parts:
                if type(part) is ToolCall:
                    events.append((row, known.setdefault(part.id, len(known)), False, part.server_side))
                elif type(part) is ToolResult:
                    events.append((row, known.setdefault(part.call_id, len(known)), True, message.role != "tool"))
            code = NOT_SENT if HIDDEN in message.flags else _ROLES[role]
            rows.append((message.index, code, _marks(message), first, len(events) - first))
        table = np.array(rows, np.int64).reshape(-1, 5).T
        event = np.array(events, np.int64).reshape(-1, 4).T
        return cls(table[0], table[1], table[2], table[3], table[4], event[0], event[1], event[2].astype(bool), event[3].astype(bool), known)

    def take(self, rows: Ints) -> Columns:
        """The columns of some rows, in this order; a row may come twice."""
        start, size = self.start[rows], self.size[rows]
        new_start = np.cumsum(size) - size
        events = np.repeat(start - new_start, size) + np.arange(int(size.sum()))
        row = np.repeat(np.arange(len(rows)), size)
        return Columns(
            self.index[rows],
            self.role[rows],
            self.marks[rows],
            new_start,
            size,
            row,
            self.event_id[events],
            self.is_result[events],
            self.server_side[events],
            self.ids,
        )

    def then(self, more: Columns) -> Columns:
        """These rows, then those of `more`, which was made with the ids of these."""

        def joined(name: str, shift: int = 0) -> npt.NDArray[np.int64]:
            return np.concatenate((getattr(self, name), getattr(more, name) + shift if shift else getattr(more, name)))

        plain = {name: joined(name) for name in ("index", "role", "marks", "size", "event_id", "is_result", "server_side")}
        return Columns(**plain, start=joined("start", len(self.event_row)), event_row=joined("event_row", len(self.index)), ids=more.ids)  # type: ignore[arg-type]

    @cached_property
    def id_texts(self) -> tuple[str, ...]:
        """The ids by number."""
        return tuple(self.ids)

    @cached_property
    def talk(self) -> Ints:
        """Rows that are sent as messages, without the system messages that the list begins with."""
        rows = np.flatnonzero(self.role != NOT_SENT)
        others = np.flatnonzero(self.role[rows] != SYSTEM)
        return rows[others[0] :] if len(others) else rows[:0]

    def has(self, mark: int) -> Bools:
        """Which rows have a mark, shape (n,)."""
        found: Bools = (self.marks & mark) != 0
        return found

    def name(self, row: int) -> str:
        """How a text names a row: ``#12``, or what it is where it has no index."""
        index = int(self.index[row])
        return f"#{index}" if index >= 0 else "the note" if self.marks[row] & Mark.NOTE else "the added text"

    def messages(self, *rows: int) -> tuple[int, ...]:
        """The indices of some rows, those of the transcript only."""
        return tuple(index for index in (int(self.index[row]) for row in rows) if index >= 0)

    def call_id(self, event: int) -> str:
        """The id of an event, for a text: bounded, and one line."""
        return " ".join(self.id_texts[int(self.event_id[event])][:LONGEST_SAID].split()) or "(no id)"

    @cached_property
    def matched(self) -> tuple[Ints, Ints]:
        """For each event its partner and what came before it, both shape (e,).

        The first holds, for a call, the event that answers it, and for a result the call that it answers: -1 if there is
        none. The second holds, for a result that is no answer, the earlier result of the same id: -1 if there is none.

        The rule is that of ``turns.tool_pairs``: a result answers the newest call of its id before it, once; where a
        source has no ids, the oldest call that waits.
        """
        number = self._numbers
        order = np.lexsort((np.arange(len(number)), number))
        group, result = number[order], self.is_result[order]
        partner = np.full(len(number), -1, np.int64)
        earlier = np.full(len(number), -1, np.int64)
        if len(order) > 1:
            follows = group[1:] == group[:-1]
            answers = follows & result[1:] & ~result[:-1]
            again = follows & result[1:] & result[:-1]
            partner[order[1:][answers]] = order[:-1][answers]
            partner[order[:-1][answers]] = order[1:][answers]
            earlier[order[1:][again]] = order[:-1][again]
        return partner, earlier

    @property
    def _numbers(self) -> Ints:
        """The ids' numbers, with one of its own for each pair without an id."""
        number = self.event_id.copy()
        waiting: list[int] = []
        for event in np.flatnonzero(number == 0).tolist():
            number[event] = -event - 1
            if not self.is_result[event]:
                waiting.append(event)
            elif waiting:
                number[event] = number[waiting.pop(0)]
        return number


def _marks(message: Message) -> int:
    marks = Mark.NOTE if message.role == "note" else 0
    texts = sent = 0
    blank = True
    last: Part | None = None
    for last in message.parts:
        if type(last) is Text:
            texts += 1
            sent += 1
            if not last.text:
                marks |= Mark.EMPTY_TEXT
            elif not last.text.isspace():  # stops at the first character that is none
                blank = False
        elif type(last) is not Reasoning or last.opaque_bytes:
            sent += 1
        elif last.text:
            marks |= Mark.UNSIGNED
    if texts and blank and not marks & Mark.EMPTY_TEXT:
        marks |= Mark.BLANK
    if not sent:
        marks |= Mark.NOTHING
    if type(last) is Text and last.text[-1:].isspace():
        marks |= Mark.ENDS_IN_SPACE
    elif type(last) is Reasoning and last.opaque_bytes:
        marks |= Mark.ENDS_IN_REASONING
    return marks


def fits_anthropic(call_id: str) -> bool:
    """Whether Anthropic takes an id."""
    return _ANTHROPIC_ID.fullmatch(call_id) is not None
