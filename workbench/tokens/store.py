"""Counts that are known already, by the hash of the text: in memory, and on wish in a file. Never the texts."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

#: Raise it when a counter's result for the same text and id changes: old files are then not used.
_VERSION = b"1"
_ASK = 500  # keys in one query
_PIECE = 1 << 18  # characters that are hashed at once


def digest(text: str) -> bytes:
    """The content hash of a text: the first half of its SHA-256. Lone surrogates have their own.

    SHA-256 because hashing is most of what a second count costs, and processors have instructions for it.

    Examples
    --------
    >>> digest("a").hex()
    'ca978112ca1bbdcafac231b39a23dc4d'
    >>> digest("\\ud835") == digest("\\ud835") != digest("\\ufffd")
    True
    """
    if len(text) <= _PIECE:
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
    made = hashlib.sha256()
    for at in range(0, len(text), _PIECE):  # a very long text is not copied as a whole
        made.update(text[at : at + _PIECE].encode("utf-8", "surrogatepass"))
    return made.digest()[:16]


class CountCache:
    """Counts by counter and content hash. Safe between threads and processes.

    A count is one integer: twice the tokens, plus one if the number is an estimate.

    Parameters
    ----------
    capacity : int
        Entries of a counter that are held in memory, about 120 bytes each. When half of them are new, those that were
        not used meanwhile go.
    path : path, optional
        A SQLite file for hashes and counts, made with mode 0600. If it fails in any way, memory alone is used.
    """

    def __init__(self, capacity: int = 1_000_000, path: str | os.PathLike[str] | None = None) -> None:
        self._half = max(1, capacity // 2)
        # Two generations make a least-recently-used cache of plain dicts: what is asked for moves to the young one.
        self._young: dict[str, dict[bytes, int]] = {}
        self._old: dict[str, dict[bytes, int]] = {}
        self._lock = threading.Lock()
        self._file = None if path is None else _open(Path(path))

    def __len__(self) -> int:
        return sum(len(part) for part in (*self._young.values(), *self._old.values()))

    @property
    def on_disk(self) -> bool:
        """True while the file is in use."""
        return self._file is not None

    def get(self, counter_id: str, digests: Iterable[bytes]) -> dict[bytes, int]:
        """The known ones among some hashes."""
        with self._lock:
            young = self._young.get(counter_id, {})
            keys = dict.fromkeys(digests)
            found = {key: young[key] for key in keys if key in young}
            if len(found) < len(keys):
                old = self._old.get(counter_id, {})
                again = {key: old.pop(key) for key in keys if key in old}
                again |= self._read_file(counter_id, [key for key in keys if key not in found and key not in again])
                self._add(counter_id, again)
                found |= again
        return found

    def put(self, counter_id: str, counts: Mapping[bytes, int]) -> None:
        """Remember some counts."""
        with self._lock:
            self._add(counter_id, counts)
            if self._file is not None:
                tail = _tail(counter_id)
                try:
                    with self._file:
                        self._file.executemany("INSERT OR IGNORE INTO counts VALUES (?, ?)", [(key + tail, value) for key, value in counts.items()])
                except sqlite3.Error:
                    self._drop_file()

    def close(self) -> None:
        """Close the file. Memory goes on."""
        with self._lock:
            self._drop_file()

    def _add(self, counter_id: str, counts: Mapping[bytes, int]) -> None:
        rest = list(counts.items())
        while rest:
            young = self._young.setdefault(counter_id, {})
            room = self._half - len(young)
            young.update(rest[:room])
            if room <= len(rest):
                self._old[counter_id], self._young[counter_id] = young, {}
            rest = rest[room:]

    def _read_file(self, counter_id: str, keys: list[bytes]) -> dict[bytes, int]:
        rows: dict[bytes, int] = {}
        if self._file is None:
            return rows
        tail = _tail(counter_id)
        try:
            for at in range(0, len(keys), _ASK):
                some = [key + tail for key in keys[at : at + _ASK]]
                marks = ",".join("?" * len(some))
                for key, value in self._file.execute(f"SELECT key, value FROM counts WHERE key IN ({marks})", some):
                    rows[bytes(key[:16])] = int(value)
        except (sqlite3.Error, TypeError, ValueError):
            self._drop_file()
            return {}
        return rows

    def _drop_file(self) -> None:
        if self._file is not None:
            with suppress(sqlite3.Error):
                self._file.close()
            self._file = None

    def after_fork(self) -> None:
        """In a child process: a SQLite connection must not cross a fork, and the lock may be held by a thread that is not here."""
        self._lock = threading.Lock()
        self._file = None


def _tail(counter_id: str) -> bytes:
    return hashlib.blake2b(counter_id.encode("utf-8", "surrogatepass"), digest_size=8, salt=_VERSION).digest()


def _open(path: Path) -> sqlite3.Connection | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # before SQLite makes it with the mode of the umask
        os.chmod(path, 0o600)
        file = sqlite3.connect(path, timeout=2, check_same_thread=False)
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        file.execute("CREATE TABLE IF NOT EXISTS counts (key BLOB PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID")
        file.execute("SELECT key, value FROM counts LIMIT 1").fetchone()
    except (sqlite3.Error, OSError, ValueError):
        return None
    return file


_shared = CountCache()


def shared() -> CountCache:
    """The cache of this process."""
    return _shared


def use_file(path: str | os.PathLike[str] | None) -> bool:
    """Keep the counts of this process in a SQLite file as well, or in memory only (None).

    Returns
    -------
    bool
        True if the file is in use. What fails falls back to memory.
    """
    global _shared
    _shared.close()
    _shared = CountCache(path=path)
    return _shared.on_disk


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _shared.after_fork())
