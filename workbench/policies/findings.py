"""What is wrong with a selection: its size, its pins, and what providers say to the list that it sends.

What no policy changes (the columns of the history, and what the history has to be blamed for itself) is made once for a
view, so that a new selection costs a few array operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..ledger import View
from ..validity import LEVELS, PROVIDERS, About, Columns, Finding, Provider, check_columns, provider_of, sent_as
from .items import Edited, Fate, Item, Kept, Note

if TYPE_CHECKING:
    from .selection import Selection


def findings(selection: Selection) -> tuple[Finding, ...]:
    """All findings of a selection: those of this policy first judged by their rule, those of the history marked so."""
    view, model, own = selection.request.view, selection.request.model, own_provider(selection)
    known = view.memo.get(("findings", model), lambda: _of_history(view, About(model, own, open_end=True)))
    about = About(model, own, open_end=_goes_on(selection))
    return (*_of_size(selection), *(known.get(finding, finding) for finding in check_columns(_sent(selection), PROVIDERS, about)))


def own_provider(selection: Selection) -> Provider | None:
    """The transcript's own provider, if its format or its model names one."""
    return provider_of(selection.request.view.ledger.transcript.source.format, selection.request.model)


def counts(finding: Finding, own: Provider | None) -> bool:
    """Whether a finding matters to a transcript's own provider. What only others would refuse, or nobody, does not."""
    return finding.provider in ("any", own) and LEVELS[finding.rule] != "notice"


def _of_history(view: View, about: About) -> dict[Finding, Finding]:
    """What the whole history has to be blamed for, each to itself marked so."""
    found = check_columns(_columns(view), PROVIDERS, about)
    return {finding: replace(finding, in_source=True) for finding in found}


def _columns(view: View) -> Columns:
    return view.memo.get("columns", lambda: Columns.of(view.messages))


def _sent(selection: Selection) -> Columns:
    """The columns of what is sent."""
    whole = _columns(selection.request.view)
    order = selection.item_rows
    new = np.flatnonzero(order < 0)
    if not len(new):
        return whole.take(order)
    items = [item for item in (selection.items[at] for at in new.tolist()) if not isinstance(item, Kept)]
    more = Columns.of([item.message for item in items], [sent_as(item.role) if type(item) is Note else item.message.role for item in items], whole.ids)
    order = order.copy()
    order[new] = len(whole.role) + np.arange(len(new))
    return whole.then(more).take(order)


def _goes_on(selection: Selection) -> bool:
    """Whether the list ends as the history does, so that the next message comes after it."""
    rows = selection.request.view.indices
    last: Item | None = selection.items[-1] if selection.items else None
    return not len(rows) or (isinstance(last, Kept | Edited) and last.index == rows[-1])


def _of_size(selection: Selection) -> Iterator[Finding]:
    if selection.over_window:
        yield Finding("any", "over_window", (), f"over window by {selection.over_window:,} tokens")
    grown = selection.after_tokens - selection.before_tokens
    if grown > 0:
        yield Finding("any", "grew", (), f"the request grew by {grown:,} tokens")
    rows = selection.request.view.row_of
    lost = tuple(index for index in sorted(selection.request.pins) if index in rows and selection.fate_codes[rows[index]] > Fate.EDITED)
    if lost:
        yield Finding("any", "pin_removed", lost, f"pinned, but removed: {', '.join(f'#{index}' for index in lost)}")
    asked = next((turn.user for turn in reversed(selection.request.view.turns) if turn.user is not None), None)
    if asked is not None and selection.fate_codes[rows[asked]] > Fate.EDITED:
        yield Finding("any", "last_user_removed", (asked,), f"the newest user message, #{asked}, is removed")
