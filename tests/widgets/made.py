"""A small real policy with a parameter of every type, for tests of the widgets: it keeps the newest messages that fit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.errors import BudgetError
from workbench.model import Message, Text
from workbench.policies.base import Note, PolicyInfo, Request, Selection, Step, check_params, kept_items, make_selection, param


@dataclass(frozen=True)
class Newest:
    """Keep the newest messages that fit, and put one note in front."""

    info: ClassVar[PolicyInfo] = PolicyInfo("test.newest", "newest messages", "Keeps the newest messages that fit, and puts one note in front.")
    promises: ClassVar[frozenset[str]] = frozenset({"budget"})

    limit: int | None = param(None, label="Limit", help="Tokens that may be used.", unit="tokens", low=0, high=2_000_000, follows="available")
    share: float = param(1.0, label="Share", help="Of the limit.", low=0.1, high=1.0, step=0.1)
    tag: str = param("note", label="Tag", help="How the note begins.")
    loud: bool = param(False, label="Loud", help="Write the note in capitals.")
    place: str = param("front", label="Place", help="Where the note stands.", choices=("front", "back"))
    pause: float = param(0.0, label="Pause", help="Seconds that one selection takes.", low=0.0, high=1.0)

    def __post_init__(self) -> None:
        check_params(self)

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        time.sleep(self.pause)
        view, items = request.view, kept_items(request.view)
        limit = int((request.budget.available if self.limit is None else self.limit) * self.share)
        if view.fixed > limit:
            raise BudgetError(view.fixed, limit, "fixed part is too large", detail=f"fixed part {view.fixed:,} > {limit:,}")
        tail = np.cumsum(view.tokens[view.lead :][::-1])
        keep = int(np.searchsorted(tail, limit - view.fixed - 40, "right"))
        cut = len(items) - keep if keep < len(tail) else view.lead
        gone = view.indices[view.lead : cut].tolist()
        text = f"[{self.tag}] {len(gone)} earlier messages"
        message = Message(-1, "", "note", (Text(text.upper() if self.loud else text),))
        note = [Note(message, gone, gone[:1], "user")] if gone else []
        rest = items[cut:]
        chosen = (*items[: view.lead], *note, *rest) if self.place == "front" else (*items[: view.lead], *rest, *note)
        steps = [Step(f"{len(gone)} messages do not fit in {limit:,} tokens.", gone)] if gone else []
        return make_selection(self, request, chosen, own=(view.total, view.total), steps=steps)


@dataclass(frozen=True)
class Everything:
    """Removes nothing, whatever the budget."""

    info: ClassVar[PolicyInfo] = PolicyInfo("test.everything", "everything", "Removes nothing.", limit="nothing is ever removed")
    promises: ClassVar[frozenset[str]] = frozenset()

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        return make_selection(self, request, kept_items(request.view), own=(request.view.total, request.view.total))
