"""What crosses to the browser: rows once, and one small payload per selection. Pure functions, no widget.

A step is 2 bits a message for the fates, and a few bytes for each edited message, note and added text. Numbers are
LEB128 varints: a size below 128 takes one byte. ``static/common.js`` holds the readers of these forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..ledger import KIND, View
from ..model import KINDS, ToolCall, ToolResult
from ..policies.base import Added, Edited, Note, Selection
from .texts import clean

#: Order of the kinds inside one message's width: how a response is usually written.
DRAWN = np.array([KIND[name] for name in ("system", "tools", "user", "note", "reasoning", "assistant", "tool_call", "tool_result", "media", "framing")])
_MAX_NAMES = 2_000
_ROLES = ("system", "user", "assistant", "tool", "note")


def pack_fates(codes: npt.NDArray[np.uint8]) -> bytes:
    """Pack fates (0 to 3) four to a byte, the first in the lowest bits.

    Examples
    --------
    >>> pack_fates(np.array([1, 2, 3, 0, 1], np.uint8)).hex()
    '3901'
    """
    padded = np.zeros(-(-len(codes) // 4) * 4, np.uint8)
    padded[: len(codes)] = codes
    four = padded.reshape(-1, 4)
    return (four[:, 0] | four[:, 1] << 2 | four[:, 2] << 4 | four[:, 3] << 6).astype(np.uint8).tobytes()


def varints(numbers: Iterable[int]) -> bytes:
    """Write non-negative integers as LEB128.

    Examples
    --------
    >>> varints([5, 300]).hex()
    '05ac02'
    """
    out = bytearray()
    for number in numbers:
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)
    return bytes(out)


def zigzag(numbers: npt.NDArray[np.int64]) -> list[int]:
    """Map integers to non-negative ones, small to small: 0, -1, 1, -2 become 0, 1, 2, 3."""
    mapped: list[int] = ((numbers << 1) ^ (numbers >> 63)).tolist()
    return mapped


@dataclass(frozen=True, slots=True)
class Insert:
    """A note or an added text, and where it stands.

    Parameters
    ----------
    place : int
        How many kept and edited messages are sent before it.
    at : int
        The row of the view after which a list of the whole history shows it: the last one it covers, else the row
        sent before it; -1 if it stands before everything.
    first, last : int
        First and last row that it covers; -1 if it covers none.
    """

    is_note: bool
    place: int
    at: int
    tokens: int
    first: int
    last: int
    covers: int
    quotes: int


@dataclass(frozen=True, slots=True)
class Sent:
    """The list that is sent, in rows of the view.

    Parameters
    ----------
    rows : int array
        Row of each kept or edited message, in the order sent.
    edits : list of int
        New tokens of each edited message, in the order sent.
    """

    rows: npt.NDArray[np.int64]
    edits: list[int]
    inserts: list[Insert]


def sent(selection: Selection) -> Sent:
    """Describe the items of a selection by rows and sizes."""
    row_of = selection.request.view.row_of
    rows, tokens = selection.item_rows.copy(), selection.item_tokens
    edits: list[int] = []
    inserts: list[Insert] = []
    for at in np.flatnonzero(rows < 0).tolist():  # only what is not kept as it is: a drag must not walk the history
        item = selection.items[at]
        if type(item) is Edited:
            rows[at] = row_of[item.index]
            edits.append(int(tokens[at]))
            continue
        assert type(item) is Note or type(item) is Added
        covers = item.covers if type(item) is Note else ()
        quotes = item.quotes if type(item) is Note else ()
        first, last = (row_of[min(covers)], row_of[max(covers)]) if len(covers) else (-1, -1)
        place = at - len(inserts)
        stands = last if last >= 0 else next((int(row) for row in rows[:at][::-1] if row >= 0), -1)
        inserts.append(Insert(type(item) is Note, place, stands, int(tokens[at]), first, last, len(covers), len(quotes)))
    return Sent(rows[rows >= 0], edits, inserts)


def pack_sent(what: Sent, fates: npt.NDArray[np.uint8]) -> dict[str, bytes]:
    """Pack the list that is sent. The order of its rows is left out where it is the order of the history."""
    implied = np.flatnonzero(fates <= 1)
    order = b"" if np.array_equal(implied, what.rows) else varints([len(what.rows), *zigzag(np.diff(what.rows, prepend=0))])
    inserts = varints(
        number
        for item in what.inserts
        for number in (int(item.is_note), item.place, item.at + 1, item.tokens, item.first + 1, max(item.last, 0), item.covers, item.quotes)
    )
    return {"order": order, "edits": varints(what.edits), "inserts": inserts}


def pack_rows(view: View) -> dict[str, object]:
    """What a view's rows are: sent once. Segments are the kinds inside one row, in the order drawn.

    Returns
    -------
    dict
        ``n``; ``fixed``: [kind, tokens] of the fixed part that stands in no row; ``index``, ``segment_tokens``,
        ``turns``: int32; ``segments``, ``segment_kind``, ``role``: uint8; ``name``: uint16, place in ``names`` plus 1;
        ``cuts``: rows before which a real compaction stands.
    """
    table = view.kinds[:, DRAWN]
    row, column = np.nonzero(table)
    names: dict[str, int] = {}
    name = np.array([_name(message.parts, names) for message in view.messages], np.uint16)
    outside = view.fixed_kinds - view.kinds[: view.lead].sum(axis=0)
    turns = np.array([view.row_of[turn.messages[0]] for turn in view.turns if turn.user is not None], np.int32)
    return {
        "n": len(view.indices),
        "fixed": [[code, int(outside[code])] for code in DRAWN.tolist() if outside[code]],
        "index": view.indices.astype(np.int32).tobytes(),
        "segments": np.bincount(row, minlength=len(view.indices)).astype(np.uint8).tobytes(),
        "segment_kind": DRAWN[column].astype(np.uint8).tobytes(),
        "segment_tokens": table[row, column].astype(np.int32).tobytes(),
        "role": np.array([_ROLES.index(message.role) for message in view.messages], np.uint8).tobytes(),
        "turns": turns.tobytes(),
        "name": name.tobytes(),
        "names": list(names),
        "cuts": cuts(view),
        "kinds": list(KINDS),
    }


def _name(parts: Sequence[object], names: dict[str, int]) -> int:
    """Place of the first tool's name in a table that grows, plus 1; 0 without a tool or when the table is full."""
    for part in parts:
        if (type(part) is ToolCall or type(part) is ToolResult) and part.name:
            short = clean(part.name)[:80]
            if short not in names and len(names) >= _MAX_NAMES:
                return 0
            return names.setdefault(short, len(names)) + 1
    return 0


def cuts(view: View) -> list[int]:
    """Rows of a view before which a real compaction stands, in order."""
    found = set()
    compactions = view.ledger.transcript.compacted(view.thread)
    for item in compactions[-1:] if view.history == "live" else compactions:
        old = np.flatnonzero((view.indices <= item.after) | (view.indices == (-1 if item.summary is None else item.summary)))
        found.add(int(old[-1]) + 1 if len(old) else 0)
    return sorted(found)
