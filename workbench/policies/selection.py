"""An answer, and the one place where it is made and checked."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import PolicyError
from ..ledger import View
from ..model import Message
from ..tokens.base import Ints
from ..validity import Finding, Provider
from .findings import counts, findings, own_provider
from .items import FATES, Edited, Event, Fate, Item, Kept, Note, SideCall, Step, Stretch

if TYPE_CHECKING:
    import pandas as pd

    from .base import Policy, Request


_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Table:
    """Items in their order, each counted, of which a selection sends some stretches.

    Parameters
    ----------
    sums : int array, shape (len(items) + 1,)
        Tokens of the items before each.
    kept : bool
        True if item ``i`` is the `Kept` of the view's row ``i``.
    """

    items: Sequence[Item]
    sums: Ints
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """The items `start` to before `stop` of a table."""

    table: Table
    start: int
    stop: int

    @property
    def tokens(self) -> int:
        """Tokens of its items."""
        return int(self.table.sums[self.stop] - self.table.sums[self.start])


@dataclass(frozen=True)
class Selection:
    """What one request carries, and why. Made by `make_selection`, or by `make_of_spans`.

    Parameters
    ----------
    spans : tuple of Span
        What is sent, in the order sent, as stretches of tables: a long history is one of them.
    fate_codes : uint8 array, shape (n,)
        One `Fate` per row of the request's view.
    before_tokens, after_tokens : int
        Fixed part and rows, in the ledger's counter; reserve and margin are not in them.
    own_before, own_after : int
        The same in the policy's own estimate.
    state : mapping
        What a persistent policy remembers: frozen, JSON-serialisable. Empty for a view policy.
    """

    policy: Policy
    request: Request
    spans: tuple[Span, ...]
    fate_codes: npt.NDArray[np.uint8]
    before_tokens: int
    after_tokens: int
    own_before: int
    own_after: int
    steps: Sequence[Step] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    event: Event | None = None
    side_calls: tuple[SideCall, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(f"{number:,} {name}" for name, number in self.counts.items() if number)
        return f"<Selection {self.policy!r}: {self.before_tokens:,} → {self.after_tokens:,} tokens; {counts or 'no messages'}>"

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """What is sent, in order: `Kept`, `Edited`, `Note` or `Added`."""
        return tuple(itertools.chain.from_iterable(span.table.items[span.start : span.stop] for span in self.spans))

    @cached_property
    def item_tokens(self) -> Ints:
        """Tokens of each item, shape (len(items),)."""
        return np.concatenate([_NONE, *(np.diff(span.table.sums[span.start : span.stop + 1]) for span in self.spans)])

    @cached_property
    def item_rows(self) -> Ints:
        """The view's row of each `Kept`, shape (len(items),); -1 for all other items."""
        rows = (np.arange(span.start, span.stop) if span.table.kept else np.full(span.stop - span.start, -1) for span in self.spans)
        return np.concatenate([_NONE, *rows])

    @cached_property
    def fates(self) -> tuple[str, ...]:
        """Kept, edited, summarized or dropped: one word per row, in order."""
        return tuple(FATES[code] for code in self.fate_codes.tolist())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Messages by fate; they sum to all rows."""
        return dict(zip(FATES, np.bincount(self.fate_codes, minlength=len(FATES)).tolist(), strict=True))

    @cached_property
    def fate_tokens(self) -> dict[str, int]:
        """Tokens of the source's rows by fate; they sum to all rows' tokens."""
        sums = np.bincount(self.fate_codes, weights=self.request.view.tokens, minlength=len(FATES))
        return dict(zip(FATES, sums.astype(np.int64).tolist(), strict=True))

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """The notes, in the order sent."""
        return tuple(item for item in self.items if type(item) is Note)

    @cached_property
    def note_tokens(self) -> tuple[int, ...]:
        """Tokens of each note, in the order sent."""
        return tuple(int(self.item_tokens[at]) for at in np.flatnonzero(self.item_rows < 0) if type(self.items[at]) is Note)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """What is sent, in order."""
        every = self.request.view.ledger.transcript.messages
        return tuple(every[item.index] if isinstance(item, Kept) else item.message for item in self.items)

    @cached_property
    def indices(self) -> tuple[int, ...]:
        """Indices of the kept and edited messages, in the order sent."""
        return tuple(item.index for item in self.items if type(item) is Kept or type(item) is Edited)

    @property
    def over_window(self) -> int:
        """By how many tokens the request is over its window; 0 if it is not.

        It is over when the counted tokens and the reserve are more than the window holds: the safety margin is there
        for the error of the estimate, so using it is no breach.
        """
        budget = self.request.budget
        return max(0, self.after_tokens + budget.reserve_output_tokens - budget.max_tokens)

    @cached_property
    def quoted(self) -> int:
        """How many of the summarized messages have words of theirs in a note."""
        rows = self.request.view.row_of
        return len({index for note in self.notes for index in note.quotes if self.fate_codes[rows[index]] == Fate.SUMMARIZED})

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the list that is sent, and with its size. See `findings.findings`."""
        return findings(self)

    @cached_property
    def alarms(self) -> tuple[Finding, ...]:
        """The findings that matter to the transcript's own provider; all others are for who would send it elsewhere."""
        return tuple(finding for finding in self.findings if counts(finding, self.provider))

    @property
    def provider(self) -> Provider | None:
        """The transcript's own provider, if its format or its model names one."""
        return own_provider(self)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per message of the history. See `frames.selection`."""
        from .. import frames

        return frames.selection(self)

    def explain(self, index: int) -> str:
        """Say why message `index` has its fate.

        Raises
        ------
        PolicyError
            The message is not in the chosen thread and history.
        """
        row = _row(self.request.view, index)
        said = [step.text for step in self.steps if index in step.messages]
        return f"#{index} is {self.fates[row]}: " + ("; ".join(said) if said else "no rule of this policy touched it.")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self)}


def row_indices(view: View) -> tuple[int, ...]:
    """``Message.index`` of each row as Python integers; made once, so that a note's `covers` only slices it."""
    return view.memo.get("row_indices", lambda: tuple(view.indices.tolist()))


def rows_between(view: View, start: int, stop: int) -> Stretch[int]:
    """``Message.index`` of the rows `start` to before `stop`, without a copy: for a note's `covers`."""
    return Stretch(row_indices(view.whole), start, stop)


def kept_items(view: View) -> tuple[Kept, ...]:
    """One `Kept` per row of a view; made once, so that a selection only slices it."""
    return view.memo.get("kept_items", lambda: tuple(Kept(index) for index in view.indices.tolist()))


def rows_table(view: View) -> Table:
    """All rows of a view as a table of `Kept`; one for the view and all its beginnings."""
    return view.shared("rows table", lambda whole: Table(kept_items(whole), whole.sums, True))


def new_table(view: View, items: Sequence[Item]) -> Table:
    """New items as a table; their texts are counted here."""
    return Table(items, np.concatenate([[0], np.cumsum(view.ledger.count_messages([_new_message(item) for item in items]))]))


def derive_fates(view: View, items: Iterable[Item]) -> npt.NDArray[np.uint8]:
    """The fates that a list of items gives to the rows of a view, shape (n,).

    Kept or edited if it is in the items; else summarized if a note covers it; else dropped.
    """
    fates = np.full(len(view.indices), Fate.DROPPED, np.uint8)
    sent: dict[int, Fate] = {}
    for item in items:
        if type(item) is Note:
            for index in item.covers:
                fates[_row(view, index)] = Fate.SUMMARIZED
        elif type(item) is Kept:
            sent.setdefault(item.index, Fate.KEPT)
        elif type(item) is Edited:
            sent[item.index] = Fate.EDITED
    for index, fate in sent.items():
        fates[_row(view, index)] = fate
    return fates


def make_selection(
    policy: Policy,
    request: Request,
    items: Sequence[Item],
    *,
    own: tuple[int, int] | None = None,
    rows: Ints | None = None,
    fates: npt.NDArray[np.uint8] | None = None,
    tokens: Ints | None = None,
    steps: Sequence[Step] = (),
    state: Mapping[str, Any] | None = None,
    event: Event | None = None,
    side_calls: tuple[SideCall, ...] = (),
) -> Selection:
    """Make a `Selection`: derive its fates and count its new texts.

    A policy that passes `rows` and `fates` pays for its new texts only; without them every item is looked at.

    Parameters
    ----------
    own : tuple of int, optional
        Tokens before and after in the policy's own estimate, without reserve and margin. Default: the counter's, for a
        policy that has no estimate of its own.
    rows : int array, optional
        Shape (len(items),). The view's row of each `Kept`; -1 for all other items.
    fates : uint8 array, optional
        Shape (n,). Must equal `derive_fates`.
    tokens : int array, optional
        Shape (len(items),). The counted tokens of each item that is new, where they are known; -1 where it is to be counted.

    Raises
    ------
    PolicyError
        An item names a message that is not in the view.
    """
    view = request.view
    items = tuple(items)
    if rows is None:
        rows = np.fromiter((_row(view, item.index) if type(item) is Kept else -1 for item in items), np.int64, len(items))
    new = rows < 0
    counted = np.full(len(items), -1) if tokens is None else tokens.copy()
    missing = new & (counted < 0)
    if missing.any():
        counted[missing] = view.ledger.count_messages([_new_message(items[at]) for at in np.flatnonzero(missing).tolist()])
    fates = derive_fates(view, items) if fates is None else fates
    spans = _as_spans(view, items, rows, np.where(new, counted, 0))
    return make_of_spans(policy, request, spans, fates, own=own, steps=steps, state=state, event=event, side_calls=side_calls)


def make_of_spans(
    policy: Policy,
    request: Request,
    spans: Iterable[Span],
    fates: npt.NDArray[np.uint8],
    *,
    own: tuple[int, int] | None = None,
    steps: Sequence[Step] = (),
    state: Mapping[str, Any] | None = None,
    event: Event | None = None,
    side_calls: tuple[SideCall, ...] = (),
) -> Selection:
    """Make a `Selection` of stretches: it costs as much as there are of them, however long they are.

    Parameters
    ----------
    spans : iterable of Span
        In the order sent; empty ones are left out. See `rows_table` and `new_table`.
    fates : uint8 array, shape (n,)
        Must equal `derive_fates`.
    """
    view = request.view
    spans = tuple(span for span in spans if span.start < span.stop)
    outside = view.fixed - int(view.sums[view.lead])  # leading system rows stand in the items
    after = outside + sum(span.tokens for span in spans)
    before = view.total
    own_before, own_after = own or (before, after)
    return Selection(
        policy=policy,
        request=request,
        spans=spans,
        fate_codes=fates,
        before_tokens=before,
        after_tokens=after,
        own_before=own_before,
        own_after=own_after,
        steps=steps,
        state=dict(state or {}),
        event=event,
        side_calls=side_calls,
    )


def _as_spans(view: View, items: tuple[Item, ...], rows: Ints, tokens: Ints) -> Iterable[Span]:
    """Neighbours that are neighbours in the history are one stretch; all new items stand in a table of their own."""
    if not len(items):
        return
    table = rows_table(view)
    new = rows < 0
    made = Table([items[at] for at in np.flatnonzero(new).tolist()], np.concatenate([[0], np.cumsum(tokens[new])]))
    places = np.where(new, np.cumsum(new) - 1, rows)
    ends = np.flatnonzero((new[1:] != new[:-1]) | (places[1:] != places[:-1] + 1)) + 1
    for start, stop in itertools.pairwise([0, *ends.tolist(), len(items)]):
        first = int(places[start])
        yield Span(made if new[start] else table, first, first + stop - start)


def _new_message(item: Item) -> Message:
    assert not isinstance(item, Kept)
    return item.message


def _row(view: View, index: int) -> int:
    row = view.row_of.get(index)
    if row is None:
        raise PolicyError(f"message {index} is not in thread {view.thread!r}, history {view.history!r}; choose one of its rows")
    return row
