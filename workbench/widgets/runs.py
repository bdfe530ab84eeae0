"""Strips as a bounded number of runs: what crosses to the browser when whole rows would be too much. Pure functions.

A run is a style (fate × 16 + kind, as in ``static/strip_layout.js``) and its tokens. Sums by style are exact. Up to `MOST` segments cross
as they are; of more, neighbours of one style are one run, and where that is not enough, what lies within less than a pixel is put together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..ledger import KIND, View
from ..policies.base import Added, Edited, Note, Selection
from ..policies.compare import item_kinds, outside_kinds
from ..tokens.base import Ints
from .wire import DRAWN, varints

MOST = 2_000  # runs of a strip
NOTE, ADDED = 4, 5  # two more fates: what is no message of the history


@dataclass(frozen=True)
class Segments:
    """A strip before it is made smaller: one row per kind inside a message, in the order drawn.

    Parameters
    ----------
    owner : int array
        Row of the view, or place in the items; -1 for what stands outside the messages.
    """

    owner: Ints
    kind: Ints
    size: Ints


def history_segments(view: View) -> Segments:
    """The rows of a view; made once."""
    return view.memo.get("segments", lambda: _segments(view, view.kinds))


def sent_segments(selection: Selection) -> tuple[Segments, Ints]:
    """What is sent, and the style of each segment."""
    table = item_kinds(selection)
    fates = np.zeros(len(selection.items) + 1, np.int64)  # the last is for what stands outside
    for at in np.flatnonzero(selection.item_rows < 0).tolist():
        item = selection.items[at]
        fates[at] = 1 if type(item) is Edited else NOTE if type(item) is Note else ADDED
        if type(item) is Note:  # a block of its own, framing and all
            table[at] = 0
            table[at, KIND["note"]] = selection.item_tokens[at]
        else:
            assert type(item) is Edited or type(item) is Added
    made = _segments(selection.request.view, table)
    return made, made.kind + 16 * fates[made.owner]


def history_styles(segments: Segments, fates: npt.NDArray[np.uint8] | None = None) -> Ints:
    """The style of each segment of a history: all of it kept, or by a selection's fates."""
    if fates is None:
        return segments.kind
    return segments.kind + 16 * np.append(fates, 0).astype(np.int64)[segments.owner]


def _segments(view: View, kinds: Ints) -> Segments:
    outside = outside_kinds(view)[DRAWN]
    fixed = np.flatnonzero(outside)
    table = kinds[:, DRAWN]
    owner, column = np.nonzero(table)
    return Segments(
        owner=np.concatenate([np.full(len(fixed), -1), owner]),
        kind=DRAWN[np.concatenate([fixed, column])],
        size=np.concatenate([outside[fixed], table[owner, column]]),
    )


def pack_runs(styles: Ints, sizes: Ints, owner: Ints, most: int = MOST) -> bytes:
    """Runs as varints: twice the style, plus 1 where another message begins; then the tokens."""
    if len(styles) <= most:
        begins = np.diff(owner, prepend=-2) != 0
    else:
        styles, sizes = merge_runs(styles, sizes, most)
        begins = np.zeros(len(styles), bool)
    return varints(np.stack([2 * styles + begins, sizes], axis=1).ravel().tolist())


def merge_runs(styles: Ints, sizes: Ints, most: int = MOST) -> tuple[Ints, Ints]:
    """Runs of the same sums by style, at most so many.

    Examples
    --------
    >>> [column.tolist() for column in merge_runs(np.array([2, 2, 3, 2]), np.array([5, 1, 4, 7]))]
    [[2, 3, 2], [6, 4, 7]]
    >>> [column.tolist() for column in merge_runs(np.array([2, 3] * 4), np.array([5, 1] * 4), most=4)]
    [[2, 3, 2, 3], [10, 2, 10, 2]]
    """
    styles, sizes = _joined(styles, sizes)
    bins = most
    while len(styles) > most:
        bins //= 2
        middle = np.cumsum(sizes) - sizes / 2
        cell = np.minimum(bins - 1, middle * bins // max(1, int(sizes.sum()))).astype(np.int64)
        order = np.lexsort((styles, cell))  # stable: cells stay where they are, inside one its styles come together
        found = _joined(styles[order], sizes[order])
        if len(found[0]) <= most or bins == 1:
            return found
    return styles, sizes


def _joined(styles: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    if not len(styles):
        return styles, sizes
    first = np.flatnonzero(np.diff(styles, prepend=styles[0] - 1))
    return styles[first], np.add.reduceat(sizes, first)
