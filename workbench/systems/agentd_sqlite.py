"""The contexts of an agentd in one SQLite file.

A checkpoint is one transaction with a write-ahead log, flushed to the disk before it counts: a program killed at any moment
leaves the last complete one. Two programs may use one file; who would overwrite what the other wrote in the meantime is refused.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from .agentd_store import Record, StoreError

SCHEMA = 1
APPLICATION = 0x61677464  # "agtd": tells our files from those of other programs

# Ids and states are bytes, so that no text is too odd to be kept and ids stand in the order of their bytes. `generation` counts
# checkpoints and `writer` names the open store that wrote: so a store sees what others wrote since it last looked.
_TABLES = (
    "CREATE TABLE contexts (id BLOB PRIMARY KEY NOT NULL, state BLOB NOT NULL, generation INTEGER NOT NULL, writer TEXT NOT NULL)",
    "CREATE TABLE counter (generation INTEGER NOT NULL)",
    "INSERT INTO counter VALUES (0)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {SCHEMA}",
)
_WRITE = "INSERT OR REPLACE INTO contexts (id, state, generation, writer) VALUES (?, ?, ?, ?)"
_NO_DATABASE = "{} is not a database; give the path of a database or of a new file"
_SMALLEST = 512  # bytes of a database that is not empty

# What could not be done, and what to do.
_OPEN = ("cannot be opened", "check that its folder exists and that both can be written")
_WRITTEN = ("cannot be written", "nothing was changed: make room or give the right to write, and try again")
_READ = ("cannot be read", "replace it by a copy")

#: What is raised where a page is damaged; SQLite quotes a damaged schema in its message, which then may be no UTF-8.
_DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)

_OVERTAKEN = "SELECT 1 FROM contexts WHERE id = ? AND generation > ? AND writer <> ?"


class SqliteStore:
    """A store in a file, which only its owner can read.

    Parameters
    ----------
    path : str or path
        The file; it is made if there is none.
    timeout : float
        Seconds to wait while another program writes.

    Raises
    ------
    StoreError
        The file is no database, another program's, of a newer version, or cannot be made or opened.
    """

    def __init__(self, path: str | Path, timeout: float = 5.0) -> None:
        self.path = Path(path).absolute()
        self._name = "".join(letter if letter.isprintable() else "\ufffd" for letter in self.path.name)
        self._writer = secrets.token_hex(8)
        try:
            self._create_file()
            # mode=rw: SQLite would make a missing file readable to others.
            self._db = sqlite3.connect(f"{self.path.as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None)
        except (OSError, ValueError, sqlite3.Error) as error:
            self._refuse(_OPEN, error)
        try:
            with self._reported(_OPEN):
                self._prepare(timeout)
        except BaseException:
            self._db.close()
            raise

    def save(self, changed: Mapping[str, bytes], removed: Collection[str]) -> None:
        """Write and take out in one transaction; see `Store.save`.

        Raises
        ------
        StoreError
            The disk is full, the file cannot be written, or another program wrote one of these contexts since this store
            was opened or last loaded. Nothing was changed.
        """
        with self._reported(_WRITTEN), self._transaction("IMMEDIATE"):
            for name in [*changed, *removed]:
                if self._db.execute(_OVERTAKEN, (_key(name), self._seen, self._writer)).fetchone():
                    raise StoreError(f"{self._name}: another program has changed a context that is to be written; load the store and apply the change again")
            generation = self._generation() + 1
            self._db.execute("UPDATE counter SET generation = ?", (generation,))
            self._db.executemany("DELETE FROM contexts WHERE id = ?", ((_key(name),) for name in removed))
            self._db.executemany(_WRITE, ((_key(name), data, generation, self._writer) for name, data in changed.items()))

    def load(self) -> list[Record]:
        """All records by id, one at a time, so that a damaged page hides none on others; see `Store.load`.

        Raises
        ------
        StoreError
            The list of contexts cannot be read.
        """
        with self._reported(_READ), self._transaction("DEFERRED", end="ROLLBACK"):
            records = [self._read(row, key or b"") for row, key in self._rows()]
            self._seen = self._generation()
        return records

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._db.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _create_file(self) -> None:
        # A file that is there is not opened here: closing it would drop the locks that SQLite holds on it in this process.
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            found = self.path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise StoreError(f"{self._name} is not a file; give the path of a file") from None
            if 0 < found.st_size < _SMALLEST:  # SQLite would take it for empty and write over it
                raise StoreError(_NO_DATABASE.format(self._name)) from None

    def _prepare(self, timeout: float) -> None:
        self._db.execute("PRAGMA trusted_schema = OFF")
        with self._transaction("DEFERRED", end="ROLLBACK"):  # so that all is read of one moment
            ours = self._is_ours()
        if not ours:
            with self._transaction("IMMEDIATE"):
                if not self._is_ours():  # another program may have been first
                    for statement in _TABLES:
                        self._db.execute(statement)
        if self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)
        self._use_log(timeout)
        self._db.execute("PRAGMA synchronous = FULL")
        self._seen = self._generation()

    def _use_log(self, timeout: float) -> None:
        """Turn the write-ahead log on; for this SQLite itself does not wait while another program reads or writes."""
        until = time.monotonic() + timeout
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise
            time.sleep(0.01)

    def _is_ours(self) -> bool:
        """Whether the file holds contexts already; False if it is empty."""
        application, version, tables = (self._number(query) for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master"))
        if application == APPLICATION and version == SCHEMA:
            return True
        if application == APPLICATION and version > SCHEMA:
            raise StoreError(f"{self._name} was written by a newer workbench (schema {version}, this one knows {SCHEMA}); update the workbench")
        if application or version or tables:
            raise StoreError(f"{self._name} is the database of another program; give another path")
        return False

    def _generation(self) -> int:
        return self._number("SELECT generation FROM counter")

    def _number(self, query: str) -> int:
        row = self._db.execute(query).fetchone()
        if row is None or not isinstance(row[0], int):
            raise sqlite3.DatabaseError("a number is missing")
        return row[0]

    def _rows(self) -> list[tuple[int, bytes | None]]:
        """Row and id of each record, from the index, which no large record can spoil; without it from the table."""
        query = "SELECT rowid, CAST(id AS BLOB) FROM contexts {} ORDER BY id"
        try:
            return self._db.execute(query.format("")).fetchall()
        except _DAMAGE:
            return self._db.execute(query.format("NOT INDEXED")).fetchall()

    def _read(self, row: int, key: bytes) -> Record:
        try:
            name = key.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return Record(key.decode("utf-8", "backslashreplace"), None)
        try:
            found = self._db.execute("SELECT CAST(state AS BLOB) FROM contexts WHERE rowid = ?", (row,)).fetchone()
        except _DAMAGE:
            return Record(name, None)
        return Record(name, found[0] if found else None)

    @contextmanager
    def _transaction(self, kind: str, end: str = "COMMIT") -> Iterator[None]:
        try:
            self._db.execute(f"BEGIN {kind}")
            yield
            self._db.execute(end)
        except BaseException:
            if self._db.in_transaction:  # a full disk may have ended it already
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _reported(self, failed: tuple[str, str]) -> Iterator[None]:
        try:
            yield
        except (OSError, OverflowError, sqlite3.Error, UnicodeDecodeError) as error:
            self._refuse(failed, error)

    def _refuse(self, failed: tuple[str, str], error: Exception) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_NOTADB:
            raise StoreError(_NO_DATABASE.format(self._name)) from error
        if (code is not None and code & 0xFF == sqlite3.SQLITE_CORRUPT) or isinstance(error, UnicodeDecodeError):
            raise StoreError(f"{self._name} is damaged; replace it by a copy") from error
        if _is_busy(error):
            raise StoreError(f"{self._name} is in use by another program; try again") from error
        why = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
        raise StoreError(f"{self._name} {failed[0]}: {why}; {failed[1]}") from error


def _is_busy(error: Exception) -> bool:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF == sqlite3.SQLITE_BUSY


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
