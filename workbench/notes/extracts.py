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
        """Write it. It quotes each message of whose words a character stands within the bound, and one without words whose label does."""
        text = scv.header(len(rows))
        quotes = []
        for row in rows:
            message = as_messages(view, (view.messages[row],))[0]
            line = scv.extract(message)
            if len(text) + said_at(message, line) <= most_chars:
                quotes.append(int(view.indices[row]))
            text += line
            if len(text) >= most_chars:
                break
        return Draft(text[:most_chars], tuple(quotes))


def said_at(message: scv.Message, line: str) -> int:
    """How many characters of a message's line must stand in a note that holds its words: its label and one, or the label if it says nothing.

    Examples
    --------
    >>> [said_at(message, scv.extract(message)) for message in (scv.Message("user", "hello"), scv.Message("user", ""))]
    [7, 6]
    """
    said = min(len(message.content), scv.EXTRACT_CHARS)
    return len(line) - 1 - said + (said > 0)
