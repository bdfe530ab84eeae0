"""The notes that stand for removed history, by kind."""

from __future__ import annotations

from .base import Draft, NoteWriter
from .checkpoint import Checkpoint
from .digest import Digest
from .extracts import Extracts
from .structured import Structured

__all__ = ["NAMES", "Draft", "NoteWriter", "get"]

_WRITERS: dict[str, NoteWriter] = {writer.name: writer for writer in (Checkpoint(), Extracts(), Structured(), Digest())}
NAMES = tuple(_WRITERS)


def get(name: str) -> NoteWriter:
    """The writer of a kind of note (one of ``NAMES``).

    Examples
    --------
    >>> get("extracts").name
    'extracts'
    """
    return _WRITERS[name]
