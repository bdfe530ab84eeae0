"""Where the contexts of an agentd are kept: a `Store` takes a checkpoint wholly or not at all.

`SqliteStore` (agentd_sqlite.py) keeps them in a file, `MemoryStore` as long as the program runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..errors import WorkbenchError


class StoreError(WorkbenchError):
    """A store cannot be opened, read or written; it holds what it held."""


@dataclass(frozen=True, slots=True)
class Record:
    """A stored context: its id and its JSON, which nobody has checked. `data` is None if the store cannot read it."""

    id: str
    data: bytes | None


class Store(Protocol):
    """What a registry needs to outlive its program."""

    def save(self, changed: Mapping[str, bytes], removed: Collection[str]) -> None:
        """Write these records and take those ids out, all or nothing. It is kept for good when this returns.

        Raises
        ------
        StoreError
            Nothing was changed.
        """

    def load(self) -> list[Record]:
        """All records in the order of their ids' bytes, those that cannot be read too.

        Raises
        ------
        StoreError
            The store as a whole cannot be read.
        """


class MemoryStore:
    """A store that ends with the program."""

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}

    def save(self, changed: Mapping[str, bytes], removed: Collection[str]) -> None:
        """Write and take out; what is both is written."""
        kept = {name: data for name, data in self._records.items() if name not in removed}
        self._records = kept | dict(changed)

    def load(self) -> list[Record]:
        """All records by id."""
        return [Record(name, self._records[name]) for name in sorted(self._records)]
