"""The bounded extracts of scv: a header, and one line with the end of each message. Rules: four_systems.md §3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ledger import View
from ..systems import scv
from ..systems.mapping.scv import as_messages
from .base import Draft


@dataclass(frozen=True, slots=True)
class Extracts:
    """Oldest first, a line for each message until the bound is reached."""

    name: str = "extracts"
    summary: str = "One line with the end of each message, oldest first, until the bound (scv)."

    def write(self, view: View, rows: Sequence[int], most_chars: int) -> Draft:
        """Write it. It quotes each message whose line begins within the bound."""
        text = scv.header(len(rows))
        quotes = []
        for row in rows:
            if len(text) < most_chars:
                quotes.append(int(view.indices[row]))
            text += scv.extract(as_messages(view, (view.messages[row],))[0])
            if len(text) >= most_chars:
                break
        return Draft(text[:most_chars], tuple(quotes))
