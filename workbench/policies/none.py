"""none: send everything. What the other policies are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Fate, PolicyInfo, Request, Selection, Step, kept_items, make_selection, row_indices


@dataclass(frozen=True)
class NoPolicy:
    """Keeps every message at any budget; a request that is over the window becomes a finding."""

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="none",
        title="No policy",
        summary="Sends the whole history, whatever the window.",
        evidence="by construction",
        limit="nothing is ever removed",
    )
    promises: ClassVar[frozenset[str]] = frozenset({"pairs", "last_user", "idempotent", "monotone"})

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        """Keep everything. It has no estimate of its own."""
        view = request.view
        count = len(view.indices)
        steps = (Step(f"all {count:,} messages are sent: {view.total:,} tokens; no budget is looked at", row_indices(view)),) if count else ()
        return make_selection(
            self,
            request,
            kept_items(view),
            rows=np.arange(count),
            fates=np.full(count, Fate.KEPT, np.uint8),
            steps=steps,
        )
