"""What a note is: a text that stands for removed history, written by one of several kinds of writer.

A policy says which messages a note replaces and how long it may be; the kind of note is a parameter, so that any of
them can be tried under any policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..ledger import View


@dataclass(frozen=True, slots=True)
class Draft:
    """A note's text.

    Parameters
    ----------
    quotes : sequence of int
        ``Message.index`` of each message whose words the text holds, in order.
    """

    text: str
    quotes: Sequence[int] = ()


class NoteWriter(Protocol):
    """Writes the text that replaces a part of a history. It is a pure function of what it is given."""

    @property
    def name(self) -> str:
        """As typed: ``extracts``."""
        ...

    @property
    def summary(self) -> str:
        """One line for a picker."""
        ...

    def write(self, view: View, rows: Sequence[int], most_chars: int) -> Draft:
        """Write the note.

        Parameters
        ----------
        view : View
            The whole history: a note may look at what it does not replace.
        rows : sequence of int
            Rows of the view that the note replaces, oldest first.
        most_chars : int
            The text has at most so many characters.
        """
        ...
