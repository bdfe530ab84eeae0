"""The checkpoint of agent_runtime_kernel: the goal, a count, and three fixed lines. Rules: four_systems.md §2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ledger import View
from ..systems import agent_runtime_kernel as kernel
from ..systems.mapping.common import request_row
from ..systems.mapping.kernel import as_message
from .base import Draft


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Says what was asked first and how much is gone. Only the goal is in anybody's words."""

    name: str = "checkpoint"
    summary: str = "The first request as goal, how many messages are gone, and three fixed lines (agent_runtime_kernel)."

    def write(self, view: View, rows: Sequence[int], most_chars: int) -> Draft:
        """Write it. The goal is the first user message before the newest person's, even if that is not replaced."""
        first = view.memo.get("first user", lambda: _first_user(view))
        goal = [] if first is None else [as_message(view.messages[first])]
        text = kernel.checkpoint(goal, len(rows))
        said = first is not None and goal[0].text and most_chars > text.index("goal: ") + len("goal: ")
        return Draft(text[:most_chars], (int(view.indices[first]),) if first is not None and said else ())


def _first_user(view: View) -> int | None:
    end = request_row(view)
    rows = range(view.lead, len(view.messages) if end is None else end)
    return next((row for row in rows if as_message(view.messages[row]).role == "user"), None)
