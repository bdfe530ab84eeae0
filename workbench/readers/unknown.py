"""Says what an unknown source holds and which reader came nearest to it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ..errors import ReadError
from .base import Match, Reader
from .source import Document, open_document

_MOST_NAMES = 1_000
#: So many files of a folder are opened, none of them larger than so many bytes.
_MOST_FILES, _MOST_BYTES = 12, 1 << 24
_HEAD = 50

Detect = Callable[[Document], tuple[tuple[str, Match], ...]]


def seen(document: Document) -> str:
    """What was seen in a document, in a few words; keys and names are shown as text, shortened."""
    if document.kind == "folder":
        names = [name for name, _ in islice(_entries(document.path), 5)]
        return f"a directory of {', '.join(map(shown, names[:4])) + (', …' if len(names) > 4 else '') if names else 'no files'}"
    if document.what:
        return document.what
    value = document.value if isinstance(document.value, dict) else next((value for _, value in document.objects()), None)
    if value is None:
        return "no objects in it"
    return "first keys: " + ", ".join(shown(str(key)) for key in [*value][:6])


def shown(name: str) -> str:
    """A name from a source, as text for a message of one line."""
    return repr(name[:30])[1:-1]


def nearest(document: Document, readers: Mapping[str, Reader], opens: Callable[[Reader, Document], bool]) -> str:
    """Which reader makes the most of a document that none knows, and how much; ``""`` if none reads anything.

    Readers are tried on the records that are parsed already.
    """
    if document.kind == "folder" or document.size > _MOST_BYTES:
        return ""
    best, most, total = "", 0, 0
    for name, reader in readers.items():
        if not opens(reader, document):
            continue
        records = [*document.records]
        copy = replace(document, records=records, total=len(records) or 1, skipped=[], diagnostics=[], rest=None)
        try:
            found = reader.read(copy)
        except ReadError:
            continue
        read = sum(item.records.messages + item.records.calls for item in found)
        if read and read >= most:  # of two that read as much it is the later one, which is the more general
            best, most, total = name, read, sum(item.records.total for item in found)
    return f"nearest is {best}, which would read {most:,} of {total:,} records" if best else ""


def inside(folder: Path, detect: Detect) -> str:
    """What the files of a folder are, where the folder itself is no session: how many of which format, and the first of each."""
    formats: Counter[str] = Counter()
    first: dict[str, str] = {}
    looked = 0
    for name, path in _files(folder):
        if looked >= _MOST_FILES:
            break
        looked += 1
        try:
            matches = detect(open_document(path, head=_HEAD))
        except ReadError:
            continue
        if matches:
            formats[matches[0][0]] += 1
            first.setdefault(matches[0][0], name)
    if not formats:
        return ""
    counted = ", ".join(
        f"{number:,} {'is' if number == 1 else 'are'} {format} ({shown(first[format])}{', …' if number > 1 else ''})"
        for format, number in formats.most_common()
    )
    return f"of its first {looked:,} files {counted}: read one of them"


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Files of a folder, those of its own before those of the folders in it. Links are not followed."""
    entries = list(_entries(folder))
    yield from ((name, Path(entry.path)) for name, entry in entries if _is_small(entry))
    for name, entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from ((f"{name}/{inner}", Path(below.path)) for inner, below in _entries(Path(entry.path)) if _is_small(below))


def _is_small(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False) and 0 < entry.stat(follow_symlinks=False).st_size <= _MOST_BYTES
    except OSError:
        return False


def _entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """What is in a folder, by name; nothing if it cannot be listed."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(islice(found, _MOST_NAMES), key=lambda entry: entry.name)
    except OSError:
        return
    yield from ((entry.name, entry) for entry in entries if not entry.name.startswith("."))
