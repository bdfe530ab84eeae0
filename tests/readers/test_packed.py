"""Archives and compressed files: what is in them, and what a bomb or a damaged one does (one line, soon)."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import time
import zipfile
import zlib
from pathlib import Path

import pyarrow
import pytest

from tests.readers.made import check
from workbench import readers
from workbench.errors import ReadError
from workbench.readers.packed import Archive, unpacked
from workbench.readers.source import open_document

CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
LINES = "".join(json.dumps(row) + "\n" for row in CHAT).encode()


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def zstd_zipped(path: Path, name: str, data: bytes, method: int = 93) -> Path:
    """An archive of one zstd member, written by hand: the standard library cannot."""
    packed = pyarrow.Codec("zstd").compress(data, asbytes=True)
    fields = (63, 0, method, 0, 0, zlib.crc32(data), len(packed), len(data), len(name), 0)
    local = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", *fields) + name.encode() + packed
    central = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 63, *fields, 0, 0, 0, 0, 0) + name.encode()
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local), 0)
    path.write_bytes(local + central + end)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_of_an_archive(tmp_path: Path, method: int) -> None:
    long = random.Random(1).randbytes(300_000) * 3
    with Archive(zipped(tmp_path / "x.zip", {"a/b.json": b"{}", "../c": long, "empty": b""}, method)) as archive:
        assert archive.names == ("a/b.json", "../c", "empty")
        assert [archive.read(name) for name in archive.names] == [b"{}", long, b""]
        with pytest.raises(KeyError):
            archive.read("other")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.zip"]


@pytest.mark.parametrize("method", [93, 20])
def test_a_member_that_is_packed_by_zstd(tmp_path: Path, method: int) -> None:
    data = LINES * 1_000
    with Archive(zstd_zipped(tmp_path / "x.zip", "a.json", data, method)) as archive:
        assert archive.read("a.json") == data


def test_other_methods_and_encryption_are_refused(tmp_path: Path) -> None:
    with Archive(zipped(tmp_path / "x.zip", {"a": b"x" * 99}, zipfile.ZIP_LZMA)) as archive, pytest.raises(ReadError, match=r"x\.zip, member 'a': packed by a"):
        archive.read("a")
    data = bytearray(zipped(tmp_path / "y.zip", {"a": b"x" * 99}).read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "y.zip").write_bytes(data)
    with Archive(tmp_path / "y.zip") as archive, pytest.raises(ReadError, match="encrypted"):
        archive.read("a")


def test_a_damaged_archive_gives_one_line(tmp_path: Path) -> None:
    good = zipped(tmp_path / "x.zip", {"a": LINES * 50, "b": b"{}" * 99}).read_bytes()
    rng = random.Random(3)
    for number in range(300):
        data = bytearray(good[: rng.randrange(4, len(good))] if number % 2 else good)
        for _ in range(rng.randrange(6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (tmp_path / "x.zip").write_bytes(data)
        why = "x.zip"
        try:
            with Archive(tmp_path / "x.zip") as archive:
                for name in archive.names:
                    archive.read(name)
        except ReadError as error:
            why = str(error)
        assert why.isprintable()
        assert "x.zip" in why


def test_a_cut_archive_keeps_the_members_before(tmp_path: Path) -> None:
    members = {f"{at}": random.Random(at).randbytes(1_000) for at in range(5)}
    good = zipped(tmp_path / "x.zip", members).read_bytes()
    with Archive(tmp_path / "x.zip") as archive:
        assert not archive.cut
    (tmp_path / "y.zip").write_bytes(good[: good.index(b"PK\x03\x04", 3_500) + 200])
    with Archive(tmp_path / "y.zip") as archive:
        assert archive.cut
        assert archive.names == ("0", "1", "2", "3", "4")
        assert [archive.read(name) for name in archive.names[:4]] == [members[name] for name in archive.names[:4]]
        with pytest.raises(ReadError, match="it is damaged"):
            archive.read("4")


@pytest.mark.parametrize("how", ["zip", "zstd member", "gzip", "zstd"])
def test_a_bomb_is_refused_soon(tmp_path: Path, how: str) -> None:
    zeros = bytes(1 << 27)
    path = tmp_path / "bomb"
    begin = time.process_time()
    if how == "zip":
        zipped(path, {"a": zeros})
    elif how == "zstd member":
        zstd_zipped(path, "a", zeros)
    else:
        path.write_bytes(gzip.compress(zeros, 6) if how == "gzip" else pyarrow.Codec("zstd").compress(zeros, asbytes=True))
    made = time.process_time() - begin
    if how in ("gzip", "zstd"):
        with pytest.raises(ReadError, match="larger than any transcript"):
            open_document(path)
    else:
        with Archive(path) as archive, pytest.raises(ReadError, match="larger than any transcript"):
            archive.read("a")
    assert time.process_time() - begin - made < 2


def test_what_a_header_says_of_the_size_is_not_believed(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "x.zip", {"a": bytes(1 << 27)}).read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 10)
    (tmp_path / "x.zip").write_bytes(data)
    with Archive(tmp_path / "x.zip") as archive, pytest.raises(ReadError, match="larger than any transcript"):
        archive.read("a")


@pytest.mark.parametrize("how", ["gzip", "two gzips", "zstd"])
def test_a_compressed_file_is_read_as_what_is_in_it(tmp_path: Path, how: str) -> None:
    half = LINES.index(b"\n") + 1
    packed = {
        "gzip": gzip.compress(LINES),
        "two gzips": gzip.compress(LINES[:half]) + gzip.compress(LINES[half:]) + bytes(8),
        "zstd": pyarrow.Codec("zstd").compress(LINES, asbytes=True),
    }[how]
    assert unpacked(packed, "x") == LINES
    (tmp_path / "x.jsonl.gz").write_bytes(packed)
    transcript = readers.read(tmp_path / "x.jsonl.gz")
    check(transcript)
    assert [message.text for message in transcript.messages] == ["q", "a"]


def test_a_compressed_file_that_is_cut_keeps_what_stands_before(tmp_path: Path) -> None:
    rng = random.Random(5)
    lines = b"".join(json.dumps({"role": "user", "content": rng.randbytes(400).hex()}).encode() + b"\n" for _ in range(2_000))
    packed = gzip.compress(lines)
    (tmp_path / "x.gz").write_bytes(packed[: len(packed) // 2])
    transcript = readers.read(tmp_path / "x.gz")
    assert 500 < len(transcript.messages) < 1_500
    for data in (b"\x1f\x8b\x08xxxx", b"\x28\xb5\x2f\xfdxxxx"):
        (tmp_path / "y.gz").write_bytes(data)
        with pytest.raises(ReadError, match=r"y\.gz is (gzip|zstd)-compressed and damaged"):
            readers.read(tmp_path / "y.gz")


def test_a_kind_that_no_reader_opens_is_named(tmp_path: Path) -> None:
    out = io.BytesIO()
    zipfile.ZipFile(out, "w").close()
    (tmp_path / "x.zip").write_bytes(out.getvalue())
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "some.txt").write_text("x")
    with pytest.raises(ReadError, match=r"no reader knows x\.zip \(a zip archive\)"):
        readers.read(tmp_path / "x.zip")
    with pytest.raises(ReadError, match=r"no reader knows folder \(a directory of some\.txt\)"):
        readers.read(tmp_path / "folder")
    with pytest.raises(ReadError, match=r"x\.zip is a zip archive: the reader anthropic does not open that"):
        readers.read(tmp_path / "x.zip", format="anthropic")
