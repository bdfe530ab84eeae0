"""Opens SQLite files that others made. Such a file is hostile input: its schema is code, and it can be made to run for ever or to unpack to very much.

The file is copied with its write-ahead log, so that the original is never written (not even its log is), and the copy is opened read-only with
``query_only`` and ``trusted_schema=OFF``. Only true tables are read: no views, no virtual tables, no generated columns.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import ReadError
from .source import Document

#: Bytes of a file with its log, and of one value in it.
MAX_FILE = 1 << 31
MAX_VALUE = 1 << 29
_MAX_TABLES = 2_000
#: So many steps of SQLite's machine for each byte of the file (and at least so many) are more than any scan takes.
_STEPS_PER_BYTE, _MIN_STEPS, _EVERY = 50, 20_000_000, 100_000


class _Clock:
    """Ends what takes too many steps. The connection holds it, so it does not hold the database."""

    def __init__(self) -> None:
        self.steps = self.most = 0

    def step(self) -> bool:
        self.steps += _EVERY
        return self.steps > self.most


class Database:
    """A copy of an SQLite file, open for reading. It is removed with this object.

    Parameters
    ----------
    path : path
        The file. A log (``-wal``) beside it is read too, unless it is a link.

    Raises
    ------
    ReadError
        It is damaged, encrypted or too large.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._clock = _Clock()
        folder = tempfile.mkdtemp(prefix="workbench-")  # nobody else may read it
        held: list[sqlite3.Connection] = []
        self._remove = weakref.finalize(self, _removed, folder, held)
        try:
            held.append(self._copied(path, folder))
            self._connection = held[0]
            self.tables: dict[str, tuple[str, ...]] = self._schema()
        except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
            self.close()
            raise ReadError(f"{self.name} is an SQLite database that cannot be read ({_reason(error)}); copy or export it again") from None
        except ReadError:
            self.close()
            raise

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the copy and remove it; what is read after that is nothing."""
        self._remove()

    def _copied(self, path: Path, folder: str) -> sqlite3.Connection:
        log = path.with_name(path.name + "-wal")
        with_log = log.is_file() and not log.is_symlink()
        self.size = path.stat().st_size + (log.stat().st_size if with_log else 0)
        if self.size > MAX_FILE:
            raise ReadError(f"{self.name}: larger than {MAX_FILE:,} bytes; export the part that you want to see")
        copy = Path(folder, "copy.db")
        shutil.copyfile(path, copy)
        if with_log:
            shutil.copyfile(log, copy.with_name("copy.db-wal"))
        connection = sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True, check_same_thread=False, cached_statements=0)
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("PRAGMA mmap_size=0")
        for limit, most in ((sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE), (sqlite3.SQLITE_LIMIT_ATTACHED, 0), (sqlite3.SQLITE_LIMIT_VDBE_OP, 100_000)):
            connection.setlimit(limit, most)
        self._clock.most = max(_MIN_STEPS, _STEPS_PER_BYTE * self.size)
        connection.set_progress_handler(self._clock.step, _EVERY)
        return connection

    def _schema(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table. A table is what has a root page of its own: a view and a virtual table have none."""
        found: dict[str, tuple[str, ...]] = {}
        rows = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND sql LIKE 'CREATE TABLE %' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        for (name,) in rows.fetchmany(_MAX_TABLES):
            if isinstance(name, str):
                about = self._connection.execute(f"PRAGMA table_info({_quoted(name)})").fetchall()  # generated columns are not in it
                found[name] = tuple(row[1] for row in about)
        return found

    def rows(self, table: str, columns: Sequence[str], *, order: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a table. A table that is damaged further on gives what stands before.

        Parameters
        ----------
        table, columns, order
            Names in `tables`; a column that the table does not have gives None.

        Raises
        ------
        ReadError
            It is damaged, or takes longer or holds more than its size can explain.
        """
        there = self.tables[table]
        asked = ", ".join(_quoted(name) if name in there else "NULL" for name in columns)
        sorted_by = ", ".join(_quoted(name) for name in order if name in there)
        left = self.size
        self._clock.steps = 0
        try:
            for row in self._connection.execute(f"SELECT {asked} FROM {_quoted(table)}{f' ORDER BY {sorted_by}' if sorted_by else ''}"):
                # What is stored takes its room in the file; a default that was added later takes none, in any number of rows.
                left -= sum(len(value) for value in row if isinstance(value, str | bytes))
                if left < 0:
                    raise ReadError(f"{self.name}: its table {table[:40]!r} holds more than the file can store; it is not read further")
                yield row
        except (sqlite3.Error, OverflowError) as error:
            raise ReadError(f"{self.name}: its table {table[:40]!r} is damaged ({_reason(error)})") from None


def database(document: Document) -> Database:
    """The database that a document is, opened once for all who ask.

    Raises
    ------
    ReadError
        It cannot be read.
    """
    if "sqlite" not in document.opened:
        document.opened["sqlite"] = Database(document.path)
    found: Database = document.opened["sqlite"]
    return found


def tables(document: Document) -> dict[str, tuple[str, ...]] | None:
    """The columns of each table of a document, for detection; None if it cannot be read."""
    try:
        return database(document).tables
    except ReadError:
        return None


def _removed(folder: str, held: list[sqlite3.Connection]) -> None:
    for connection in held:
        connection.close()
    shutil.rmtree(folder, ignore_errors=True)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\x00", "") + '"'


def _reason(error: Exception) -> str:
    text = str(error).replace("\n", " ")[:80]
    return "it takes too long" if text == "interrupted" else text if text.isprintable() and text else type(error).__name__
