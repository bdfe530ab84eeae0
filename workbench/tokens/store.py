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


def digest(text: str) -> bytes:
    """The content hash of a text: BLAKE2b, 16 bytes. Lone surrogates have their own.

    Examples
    --------
    >>> digest("a").hex()
    '27c35e6e9373877f29e562464e46497e'
    >>> digest("\\ud835") == digest("\\ud835") != digest("\\ufffd")
    True
    """
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class CountCache:
    """Counts by counter and content hash. Safe between threads and processes.

    A count is one integer: twice the tokens, plus one if the number is an estimate.

    Parameters
    ----------
    capacity : int
        Entries held in memory, about 150 bytes each. When half of it is new, what was not used since goes.
    path : path, optional
        A SQLite file for hashes and counts, made with mode 0600. If it fails in any way, memory alone is used.
    """

    def __init__(self, capacity: int = 1_000_000, path: str | os.PathLike[str] | None = None) -> None:
        self._half = max(1, capacity // 2)
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._file = None if path is None else _open(Path(path))

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    @property
    def on_disk(self) -> bool:
        """True while the file is in use."""
        return self._file is not None

    def get(self, counter_id: str, digests: Iterable[bytes]) -> dict[bytes, int]:
        """The known ones among some hashes."""
        tail = _tail(counter_id)
        found: dict[bytes, int] = {}
        absent = []
        with self._lock:
            for key in dict.fromkeys(digests):
                full = key + tail
                value = self._young.get(full)
                if value is None:
                    value = self._old.get(full)
                    if value is None:
                        absent.append(key)
                        continue
                    self._add(full, value)
                found[key] = value
            for key, value in self._read_file(absent, tail):
                self._add(key + tail, value)
                found[key] = value
        return found

    def put(self, counter_id: str, counts: Mapping[bytes, int]) -> None:
        """Remember some counts."""
        tail = _tail(counter_id)
        rows = [(key + tail, value) for key, value in counts.items()]
        with self._lock:
            for key, value in rows:
                self._add(key, value)
            if self._file is not None:
                try:
                    with self._file:
                        self._file.executemany("INSERT OR IGNORE INTO counts VALUES (?, ?)", rows)
                except sqlite3.Error:
                    self._drop_file()

    def close(self) -> None:
        """Close the file. Memory goes on."""
        with self._lock:
            self._drop_file()

    def _add(self, key: bytes, value: int) -> None:
        # Two generations make a least-recently-used cache of plain dicts: what is asked for moves to the young one.
        if len(self._young) >= self._half and key not in self._young:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def _read_file(self, keys: list[bytes], tail: bytes) -> list[tuple[bytes, int]]:
        rows: list[tuple[bytes, int]] = []
        if self._file is None:
            return rows
        try:
            for at in range(0, len(keys), _ASK):
                some = [key + tail for key in keys[at : at + _ASK]]
                marks = ",".join("?" * len(some))
                rows += [(bytes(key[:16]), int(value)) for key, value in self._file.execute(f"SELECT key, value FROM counts WHERE key IN ({marks})", some)]
        except (sqlite3.Error, TypeError, ValueError):
            self._drop_file()
            return []
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
