"""Takes apart what is compressed: zip archives, gzip and zstd files. Everything is bounded, for an archive may be a bomb.

The standard library's ``zipfile`` (before Python 3.14) reads no zstd members, which newer tools write: so members are taken out here by hand, and zstd
is unpacked by pyarrow, which is a dependency anyway.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from ..errors import ReadError

MAX_MEMBERS = 100_000
#: Bytes, unpacked, of one member or file, and of all that is taken out of one archive.
MAX_MEMBER = 1 << 29
MAX_TOTAL = 1 << 31
#: Beyond so many bytes no text becomes more than so many times smaller by packing; a bomb does.
_SMALL, _MAX_RATIO = 1 << 26, 250
_STORED, _DEFLATED, _ZSTD, _ZSTD_OLD = 0, 8, 93, 20
_PIECE, _CHUNK = 1 << 16, 1 << 20
_MAX_STREAMS = 10_000


class Archive:
    """A zip archive, open for reading.

    Parameters
    ----------
    path : path
        The file. Names of members are text to compare, never a path to write to or to open.

    Raises
    ------
    ReadError
        It is no zip archive, is damaged at its beginning, or has too many members.

    Attributes
    ----------
    cut : bool
        True if the list at its end is missing or damaged: members were found by walking from its beginning, and what stands after damage is lost.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._left = MAX_TOTAL
        try:
            self._file: IO[bytes] = path.open("rb")
        except OSError as error:
            raise ReadError(f"{self.name}: cannot be read ({error.strerror or error})") from None
        self.cut = False
        try:
            with zipfile.ZipFile(self._file) as listed:
                members = listed.infolist()
        except (zipfile.BadZipFile, ValueError, OverflowError, struct.error, OSError, NotImplementedError, RuntimeError):
            self.cut, members = True, _walk(self._file)
        if self.cut and not members:
            self._file.close()
            raise ReadError(f"{self.name} is a zip archive that is damaged or not finished; copy or export it again") from None
        if len(members) > MAX_MEMBERS:
            self._file.close()
            raise ReadError(f"{self.name} is a zip archive of {len(members):,} members; {MAX_MEMBERS:,} are read at most; split it")
        self._members = {member.filename: member for member in members if member.filename and not member.filename.endswith("/")}

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its members, in the archive's order."""
        return tuple(self._members)

    def read(self, name: str) -> bytes:
        """The bytes of a member.

        Raises
        ------
        ReadError
            It is damaged, encrypted, packed in an unknown way or too large.
        KeyError
            There is none of that name.
        """
        member = self._members[name]
        where = f"{self.name}, member {name[:80]!r}"
        if member.flag_bits & 1:
            raise ReadError(f"{where}: it is encrypted; unpack the archive first")
        if member.compress_size > MAX_MEMBER:
            raise ReadError(f"{where}: larger than {MAX_MEMBER:,} bytes")
        try:
            self._file.seek(member.header_offset)
            head = self._file.read(30)
            skip = sum(struct.unpack_from("<HH", head, 26)) if head[:4] == b"PK\x03\x04" else -1
            self._file.seek(member.header_offset + 30 + max(skip, 0))
            packed = self._file.read(member.compress_size)
        except (OSError, ValueError, OverflowError, struct.error):
            skip, packed = -1, b""
        if skip < 0 or len(packed) < member.compress_size:
            raise ReadError(f"{where}: it is damaged")
        data = b"".join(_bounded(_chunks(packed, member.compress_type, where), len(packed), min(MAX_MEMBER, self._left), where))
        self._left -= len(data)
        if zlib.crc32(data) != member.CRC:
            raise ReadError(f"{where}: it is damaged (its checksum is another one)")
        return data


def unpacked(data: bytes, name: str, *, most: int = MAX_TOTAL) -> bytes:
    """The content of a gzip or zstd file; any other data as it is. What is cut off gives what stands before the cut.

    Parameters
    ----------
    most : int
        Bytes that it may be, unpacked.

    Raises
    ------
    ReadError
        It is damaged from the first byte, or too large.
    """
    if data.startswith(b"\x1f\x8b"):
        how, chunks = "gzip", _inflated(data, 31)
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        how, chunks = "zstd", _zstd(data)
    else:
        return data
    found = []
    try:
        for chunk in _bounded(chunks, len(data), most, name):
            found.append(chunk)
    except _Damaged:
        if not found:
            raise ReadError(f"{name} is {how}-compressed and damaged; copy or export it again") from None
    return b"".join(found)


def _walk(file: IO[bytes]) -> list[zipfile.ZipInfo]:
    """The members of an archive that was cut off, one after the other from its beginning."""
    found: list[zipfile.ZipInfo] = []
    at = 0
    try:
        while len(found) <= MAX_MEMBERS:
            file.seek(at)
            head = file.read(30)
            if head[:4] != b"PK\x03\x04" or len(head) < 30:
                break
            flags, method, crc, packed, size, name, extra = struct.unpack_from("<HH4xIIIHH", head, 6)
            member = zipfile.ZipInfo(file.read(name).decode("utf-8", "replace"))
            member.flag_bits, member.compress_type, member.CRC, member.compress_size, member.file_size = flags, method, crc, packed, size
            member.header_offset = at
            if flags & 8 or packed == 0xFFFFFFFF:  # its size stands after it, so nobody knows where it ends
                break
            found.append(member)
            at += 30 + name + extra + packed
    except (OSError, ValueError, OverflowError):
        pass
    return found


class _Damaged(Exception):
    """Packed data that cannot be unpacked further."""


def _chunks(packed: bytes, method: int, where: str) -> Iterator[bytes]:
    if method == _STORED:
        yield packed
        return
    if method not in (_DEFLATED, _ZSTD, _ZSTD_OLD):
        raise ReadError(f"{where}: packed by a method that is not read here ({method}); unpack the archive first")
    try:
        yield from _inflated(packed, -15) if method == _DEFLATED else _zstd(packed)
    except _Damaged:
        raise ReadError(f"{where}: it is damaged") from None


def _inflated(packed: bytes, bits: int) -> Iterator[bytes]:
    at = 0
    for _ in range(_MAX_STREAMS):  # a gzip file may be several, one after the other
        unpack = zlib.decompressobj(bits)
        while not unpack.eof:
            piece: bytes = packed[at : at + _PIECE]
            at += len(piece)
            if not piece:
                raise _Damaged
            while piece:
                try:
                    data = unpack.decompress(piece, _CHUNK)
                except zlib.error:
                    raise _Damaged from None
                piece = unpack.unconsumed_tail
                if data:
                    yield data
        at -= len(unpack.unused_data)
        if bits < 0 or packed[at : at + 2] != b"\x1f\x8b":
            return


def _zstd(packed: bytes) -> Iterator[bytes]:
    import pyarrow

    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd") as stream:
            while data := stream.read(_CHUNK):
                yield data
    except (OSError, pyarrow.ArrowException):
        raise _Damaged from None


def _bounded(chunks: Iterator[bytes], packed: int, most: int, where: str) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most or (size > _SMALL and size > packed * _MAX_RATIO):
            raise ReadError(f"{where}: unpacked it is larger than any transcript ({size:,} bytes and more); unpack it yourself if you trust it")
        yield chunk
