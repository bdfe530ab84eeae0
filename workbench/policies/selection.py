"""An answer, and the one place where it is made and checked."""

from __future__ import annotations

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
from .items import FATES, Edited, Event, Fate, Item, Kept, Note, SideCall, Step

if TYPE_CHECKING:
    import pandas as pd

    from .base import Policy, Request


@dataclass(frozen=True)
class Selection:
    """What one request carries, and why. Made by `make_selection`.

    Parameters
    ----------
    items : tuple of Kept, Edited, Note or Added
        In the order sent.
    fate_codes : uint8 array, shape (n,)
        One `Fate` per row of the request's view.
    before_tokens, after_tokens : int
        Fixed part and rows, in the ledger's counter; reserve and margin are not in them.
    own_before, own_after : int
        The same in the policy's own estimate.
    item_tokens, item_rows : int array, shape (len(items),)
        Tokens of each item, and the view's row of each `Kept`; -1 for all other items.
    state : mapping
        What a persistent policy remembers: frozen, JSON-serialisable. Empty for a view policy.
    """

    policy: Policy
    request: Request
    items: tuple[Item, ...]
    fate_codes: npt.NDArray[np.uint8]
    before_tokens: int
    after_tokens: int
    own_before: int
    own_after: int
    item_tokens: Ints
    item_rows: Ints
    steps: Sequence[Step] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    event: Event | None = None
    side_calls: tuple[SideCall, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(f"{number:,} {name}" for name, number in self.counts.items() if number)
        return f"<Selection {self.policy!r}: {self.before_tokens:,} → {self.after_tokens:,} tokens; {counts or 'no messages'}>"

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


def kept_items(view: View) -> tuple[Kept, ...]:
    """One `Kept` per row of a view; made once, so that a selection only slices it."""
    return view.memo.get("kept_items", lambda: tuple(Kept(index) for index in view.indices.tolist()))


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
    counted = view.tokens[rows] if len(view.tokens) else np.zeros(len(items), np.int64)  # -1 takes any row's, and is set next
    if tokens is not None:
        counted[new] = tokens[new]
        new &= tokens < 0
    if new.any():
        counted[new] = view.ledger.count_messages([_new_message(items[at]) for at in np.flatnonzero(new).tolist()])
    outside = view.fixed - int(view.tokens[: view.lead].sum())  # leading system rows stand in the items
    after = outside + int(counted.sum())
    own_before, own_after = own or (view.total, after)
    return Selection(
        policy=policy,
        request=request,
        items=items,
        fate_codes=derive_fates(view, items) if fates is None else fates,
        before_tokens=view.total,
        after_tokens=after,
        own_before=own_before,
        own_after=own_after,
        item_tokens=counted,
        item_rows=rows,
        steps=steps,
        state=dict(state or {}),
        event=event,
        side_calls=side_calls,
    )


def _new_message(item: Item) -> Message:
    assert not isinstance(item, Kept)
    return item.message


def _row(view: View, index: int) -> int:
    row = view.row_of.get(index)
    if row is None:
        raise PolicyError(f"message {index} is not in thread {view.thread!r}, history {view.history!r}; choose one of its rows")
    return row
