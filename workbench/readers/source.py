"""Opens a file once and hands its records to the readers.

The file is read, never written, and nothing in it is followed as a path. Records are cut at line feeds only:
U+2028, U+0085 and a bare carriage return are content.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..errors import ReadError
from ..model import Diagnostic
from .jsontext import NotJson, member, parse, sound, split
from .packed import unpacked

#: Beginnings of files that are no text but that a reader may open by itself: the document's kind, and what to call it.
_KINDS = {
    b"PK\x03\x04": ("zip", "a zip archive"),
    b"PK\x05\x06": ("zip", "a zip archive"),
    b"SQLite format 3\x00": ("sqlite", "an SQLite database"),
    b"PAR1": ("parquet", "a Parquet file"),
}
#: The kinds of a document that is text, parsed here.
TEXT_KINDS = frozenset({"json", "jsonl"})
#: What a file can begin with that no text does.
_MAGIC = (
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\x7fELF", "a program"),
)
#: No plain text begins so: what is compressed, of another encoding, or no text.
_NOT_PLAIN = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, *(magic for magic, _ in _MAGIC))
#: Lines that are looked at to see that a file is one of lines, and bytes that are read ahead of them.
_FIRST_LINES, _BUFFER = 20, 1 << 18
MAX_DIAGNOSTICS = 1_000


@dataclass(slots=True)
class Record:
    """A line of a JSONL file, or an element of a JSON array. `number` is 1-based: the line's, or the element's."""

    number: int
    value: Any


@dataclass(slots=True)
class Document:
    """A file, read and parsed, not yet understood.

    Parameters
    ----------
    kind : {"jsonl", "json", "zip", "sqlite", "parquet", "folder"}
        ``json`` if the whole file is one JSON value. Of the last four nothing is read here: a reader that knows one opens `path`.
    value : object
        The whole value of a ``json`` file; None for ``jsonl``.
    records : list of Record
        The lines of a ``jsonl`` file, or the elements of an array. Empty for an object.
    total : int
        Records in the source, damaged ones included.
    skipped : list of int
        Numbers of the damaged ones.
    diagnostics : list of Diagnostic
        What was wrong, in order.
    rest : iterator or None
        Lines that are not parsed yet, if only the head was asked for; `complete` and `stream` parse them.
    opened : dict
        What readers of a file that is no text opened to detect it, for those who read it: see `database`.
    """

    path: Path
    kind: str
    size: int
    value: Any = None
    records: list[Record] = field(default_factory=list)
    total: int = 0
    skipped: list[int] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    encoding: str = "utf-8"
    rest: Iterator[tuple[int, bytes]] | None = None
    opened: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.path.name or str(self.path)

    @property
    def what(self) -> str:
        """What it is, if it is no text; else ``""``."""
        return "a directory" if self.kind == "folder" else next((what for kind, what in _KINDS.values() if kind == self.kind), "")

    def report(self, line: int | None, code: str, text: str) -> None:
        """Add a diagnostic. Beyond a thousand they are dropped; `skipped` still counts every damaged record."""
        if len(self.diagnostics) < MAX_DIAGNOSTICS:
            self.diagnostics.append(Diagnostic(line, code, text))

    def complete(self) -> None:
        """Parse what is not parsed yet into `records`."""
        if self.rest is not None:
            rest, self.rest = self.rest, None
            self.records += [Record(number, value) for number, value in _parsed(self, rest, "line")]

    def stream(self) -> Iterator[tuple[int, Any]]:
        """Number and value of every record once, without keeping those that are not parsed yet.

        A long file takes half the memory so. `total`, `skipped` and `diagnostics` are complete when it ends.
        """
        parsed = ((record.number, record.value) for record in self.records)
        if self.rest is None:
            return parsed
        rest, self.rest = self.rest, None
        return chain(parsed, _parsed(self, rest, "line"))

    def rows(self) -> list[Record]:
        """The records; of an object the object itself, as it may be a file of one line."""
        return [Record(1, self.value)] if isinstance(self.value, dict) else self.records

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and value of every record that is an object."""
        return ((record.number, record.value) for record in self.records if isinstance(record.value, dict))

    def head(self, n: int = 200) -> list[dict[str, Any]]:
        """The first records that are objects: what detection looks at."""
        found = []
        for _, value in self.objects():
            found.append(value)
            if len(found) >= n:
                break
        return found


def open_document(path: str | os.PathLike[str], *, head: int | None = None) -> Document:
    """Read a file and parse its records.

    Parameters
    ----------
    head : int, optional
        Of a file of lines parse only so many, which is enough to find its format.

    Raises
    ------
    ReadError
        It does not exist, is empty or binary, or has no readable record.
    """
    file = Path(path)
    kind, size = _kind_of(file)
    if kind not in TEXT_KINDS:
        return Document(file, kind, size)
    start = _lines_from(file)
    document = _read_whole(file) if start is None else Document(file, "jsonl", size, rest=_lines(file, start))
    if document.rest is not None:
        _each(document, document.rest if head is None else islice(document.rest, head), "line")
        if head is None or not document.records:
            document.complete()
    if document.kind == "jsonl" or isinstance(document.value, list):
        _check(document)
    return document


def _kind_of(file: Path) -> tuple[str, int]:
    """Kind and size by the first bytes: what is no text may be too large to read as a whole."""
    try:
        if file.is_dir():
            return "folder", 0
        if file.exists() and not file.is_file():  # a pipe may never end, and a device never does
            raise ReadError(f"{file.name} is a pipe or a device, not a file: save what it gives to a file and read that")
        with file.open("rb") as opened:
            head = opened.read(16)
        kind = next((kind for magic, (kind, _) in _KINDS.items() if head.startswith(magic)), "jsonl")
        return kind, file.stat().st_size
    except FileNotFoundError:
        raise ReadError(f"{file}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None


def _lines_from(file: Path) -> int | None:
    """Where the lines of a file begin that is plainly one of lines; None if it has to be looked at as a whole.

    So a long file is never in memory beside what is parsed of it: texts alone can take twice the bytes of their file.
    """
    complete = first_complete = False
    start = 0
    try:
        with file.open("rb") as opened:
            for number, line in enumerate(islice(opened, _FIRST_LINES)):
                if number == 0:
                    start = len(codecs.BOM_UTF8) if line.startswith(codecs.BOM_UTF8) else 0
                    line = line[start:]
                    if line[:1] == b"[" or not line.strip() or line.startswith(_NOT_PLAIN) or (line[:1] != b"{" and b"\x00" in line):
                        return None
                # Between two values of one JSON text there is a comma, so an object that ends with its line and is
                # followed by another one is a line of its own; so is whatever is followed by anything, at the beginning.
                if complete and (line.startswith(b"{") or (first_complete and number == 1 and line.strip())):
                    return start
                complete = line.startswith(b"{") and _is_json(line)
                first_complete = complete if number == 0 else first_complete
    except OSError as error:
        raise _unreadable(file, error) from None
    return None


def _is_json(line: bytes) -> bool:
    try:
        parse(line)
    except NotJson:
        return False
    return True


def _lines(file: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every line, read as they are asked for."""
    try:
        with file.open("rb", buffering=_BUFFER) as opened:
            opened.seek(start)
            yield from enumerate(opened, 1)
    except OSError as error:
        raise _unreadable(file, error) from None


def _read_whole(file: Path) -> Document:
    """Read a file at once: one JSON value, or lines that are compressed, or of another encoding, or damaged at their beginning."""
    data = _bytes_of(file)
    text = _utf8(data, file)
    document = Document(file, "json", len(data), encoding="utf-16" if text is not data and not data.startswith(codecs.BOM_UTF8) else "utf-8")
    del data  # a file in another encoding would stay in memory beside its text
    if text.isspace() or not text:
        raise ReadError(f"{file.name} is empty: nothing to read; give a file that holds a transcript")
    if not _whole(document, text):
        document.kind = "jsonl"
        # The lines are handed out one by one: splitting would hold a second copy of the whole text.
        document.rest = enumerate(io.BytesIO(text), 1)
    return document


def _unreadable(file: Path, error: Exception) -> ReadError:
    return ReadError(f"{file.name}: cannot be read ({getattr(error, 'strerror', None) or error})")


def _bytes_of(file: Path) -> bytes:
    try:
        data = unpacked(file.read_bytes(), file.name)
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None
    if not data:
        raise ReadError(f"{file.name} is empty: nothing to read; give a file that holds a transcript")
    for magic, what in _MAGIC:
        if data.startswith(magic):
            raise ReadError(f"{file.name} is {what}, not text: no reader opens it; unpack or export it first")
    return data


def _utf8(data: bytes, file: Path) -> bytes:
    """Drop a byte order mark; turn UTF-16 into UTF-8; refuse what is not text."""
    if data.startswith(codecs.BOM_UTF8):
        return data[3:]
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return data[2:].decode(name, "surrogatepass" if len(data) % 2 == 0 else "replace").encode("utf-8", "replace")
    head = data[:4096]
    if b"\x00" in head:
        # Text without a mark whose every second byte is zero is UTF-16 too; all else with zero bytes is binary.
        for at, name in ((1, "utf-16-le"), (0, "utf-16-be")):
            if len(head) > 3 and not any(head[at::2]) and all(head[1 - at :: 2]):
                return data.decode(name, "replace").encode("utf-8", "replace")
        if head.lstrip()[:1] in (b"{", b"[") and head[1:2] != b"\x00":
            return data  # lines of JSON, some overwritten with zeros as after a power cut: those are reported, the rest loads
        raise ReadError(f"{file.name} is a binary file: no reader opens it; give a JSON or JSONL transcript")
    return data


def _whole(document: Document, text: bytes) -> bool:
    """Read the file as one JSON value, if it is one."""
    body = text.strip()
    first = body[:1]
    if first not in (b"[", b"{"):
        return False
    if first == b"{":
        line = body.split(b"\n", 1)[0]
        if len(line) < len(body):
            try:
                parse(line)
            except NotJson:
                pass
            else:
                return False
    try:
        parsed = parse(body)
    except NotJson as why:
        if _some_line_parses(body) if first == b"{" else _lines_of_lists(body):
            return False
        return _salvage_array(document, body, str(why)) if first == b"[" else _salvage_object(document, body, str(why))
    document.value = parsed.value
    if isinstance(parsed.value, list):
        if parsed.faults:  # say which element it was
            return _salvage_array(document, body, "")
        document.records = [Record(number, value) for number, value in enumerate(parsed.value, 1)]
        document.total = len(document.records)
    else:
        document.total = 1
        for fault in parsed.faults:
            document.report(None, "json", f"{document.name}: {fault}")
    return True


def _lines_of_lists(body: bytes) -> bool:
    """Say whether the first two lines are lists of their own, so that the file is lines and not one list."""
    lines = body.split(b"\n", 2)[:2]
    if len(lines) < 2 or not all(len(line) > 1 and line.startswith(b"[") for line in lines):
        return False
    for line in lines:
        try:
            parse(line)
        except NotJson:
            continue
        return True
    return False


def _some_line_parses(body: bytes) -> bool:
    """Say whether a line among the first is an object of its own, so that the file is lines and not one object."""
    for line in body.split(b"\n", 20)[:20]:
        if line.startswith(b"{"):
            try:
                parse(line)
            except NotJson:
                continue
            return True
    return False


def _salvage_array(document: Document, body: bytes, why: str) -> bool:
    """Read the elements of an array one by one."""
    elements, finished = split(body)
    if not finished and elements and elements[0][:1] != b"{":
        return False  # not a list of records: lines that begin with a bracket, for example
    _each(document, enumerate(elements, 1), "record")
    if not finished:
        document.report(document.total, "json", f"the list is not finished ({why})")
    document.value = [record.value for record in document.records]
    return True


def _salvage_object(document: Document, body: bytes, why: str) -> bool:
    """Read the members of an object one by one, and the elements of a damaged list among them."""
    pieces, finished = split(body)
    value: dict[str, Any] = {}
    for piece in pieces:
        part = member(piece)
        if part is None:
            continue
        try:
            value[part[0]] = parse(part[1]).value
        except NotJson:
            if part[1][:1] == b"[":
                _each(document, enumerate(split(part[1])[0], 1), f"{part[0]}: record")
                good = {record.number: record.value for record in document.records}
                value[part[0]] = [good.get(number) for number in range(1, document.total + 1)]
                document.records = []
    if not any(isinstance(held, list) and held for held in value.values()):
        return False
    document.value = value
    document.report(None, "json", f"{document.name}: {'damaged' if finished else 'not finished'} ({why})")
    return True


def _each(document: Document, pieces: Iterator[tuple[int, bytes]], word: str) -> None:
    document.total = 0
    document.records = [Record(number, value) for number, value in _parsed(document, pieces, word)]


def _parsed(document: Document, pieces: Iterator[tuple[int, bytes]], word: str) -> Iterator[tuple[int, Any]]:
    """Parse pieces one by one; a damaged one is reported and left out."""
    good = 0
    try:
        for number, piece in pieces:
            try:
                yield number, sound(piece)
                good += 1
                continue
            except NotJson:
                if piece.isspace():
                    continue
            document.total += 1
            try:
                parsed = parse(piece)
            except NotJson as why:
                document.skipped.append(number)
                document.report(number, "json", f"{word} {number}: not JSON ({why})")
                continue
            for fault in parsed.faults:
                document.report(number, "json", f"{word} {number}: {fault}")
            yield number, parsed.value
    finally:
        document.total += good


def _check(document: Document) -> None:
    if document.records or document.total == 0:  # an empty list is a conversation in which nothing was said
        return
    first = document.diagnostics[0].text if document.diagnostics else "nothing was understood"
    raise ReadError(f"{document.name}: none of its {document.total:,} records can be read; {first}")
