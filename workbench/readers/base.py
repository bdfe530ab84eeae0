"""What a reader is, and how it reports what it saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..model import Transcript
from .source import Document


@dataclass(frozen=True, slots=True)
class ReaderInfo:
    """For lists and help. `example` names a sample transcript, or is empty."""

    name: str
    summary: str
    example: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """How sure a reader is that a document is of its format.

    Parameters
    ----------
    confidence : float
        0 to 1. 0.9 and more: marks that no other format has; about 0.5: fits, and so may others.
    reasons : tuple of str
        What was seen, in plain words.
    """

    confidence: float
    reasons: tuple[str, ...]


class Reader(Protocol):
    """Reads one format. Add one by an entry point in the group ``workbench.readers``.

    A reader that has a true attribute ``streams`` gets a document of which only the head is parsed and takes the records
    from `Document.stream`, once; any other gets all of them in `Document.records`. One with an attribute ``kinds`` (a set of
    `Document.kind`) is asked about documents of those kinds only; any other about text: ``json`` and ``jsonl``.
    """

    @property
    def info(self) -> ReaderInfo:
        """Name and summary; a plain attribute will do."""
        ...

    def detect(self, document: Document) -> Match | None:
        """Say whether the content looks like this format; None if not. Looks at content, never at the name."""
        ...

    def read(self, document: Document) -> list[Transcript]:
        """Read every run in the document. Never raises for a damaged record: it becomes a diagnostic."""
        ...
