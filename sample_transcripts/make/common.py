"""What all the builders share: ids, a clock, token numbers, pictures. Nothing is random: the same source text gives the same bytes."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
import zlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUT = HERE.parent
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def digest(*names: object) -> bytes:
    return hashlib.sha256("\x00".join(map(str, names)).encode("utf-8", "surrogatepass")).digest()


def number(low: int, high: int, *names: object) -> int:
    """A number in [low, high] that depends only on the names."""
    return low + int.from_bytes(digest(*names)[:6], "big") % (high - low + 1)


def pick(choices: Any, *names: object) -> Any:
    return choices[number(0, len(choices) - 1, *names)]


def uuid(*names: object) -> str:
    """Shaped like a version 4 UUID."""
    h = bytearray(digest("uuid", *names)[:16])
    h[6] = (h[6] & 0x0F) | 0x40
    h[8] = (h[8] & 0x3F) | 0x80
    t = h.hex()
    return f"{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}"


def ident(prefix: str, length: int, *names: object) -> str:
    """A provider's id: the prefix and letters and digits."""
    value = int.from_bytes(digest("id", prefix, *names), "big")
    letters = []
    while len(letters) < length:
        value, at = divmod(value, 58) if value else (int.from_bytes(digest("more", prefix, len(letters), *names), "big"), 0)
        letters.append(BASE58[at])
    return prefix + "".join(letters)


def blob(length: int, *names: object) -> str:
    """Base64 that stands for a signature or encrypted content; ``length`` bytes before encoding."""
    data = b"".join(digest("blob", part, *names) for part in range(length // 32 + 1))
    return base64.b64encode(data[:length]).decode()


class Clock:
    """A wall clock that only moves when it is told to."""

    def __init__(self, start: str) -> None:
        self.ms = int(datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp() * 1000)

    def tick(self, ms: int) -> str:
        self.ms += ms
        return self.now

    @property
    def now(self) -> str:
        stamp = datetime.fromtimestamp(self.ms // 1000, UTC)
        return f"{stamp:%Y-%m-%dT%H:%M:%S}.{self.ms % 1000:03d}Z"


@cache
def _encoder() -> Any:
    sys.path.insert(0, str(OUT.parent))
    from workbench.tokens.vocabulary import load

    return load("o200k_base")


@cache
def o200k(text: str) -> int:
    """Tokens of a text by the o200k_base vocabulary."""
    return len(_encoder().encode_ordinary(text))


def claude(text: str) -> int:
    """Tokens that we say a Claude 4.5 model counts: o200k_base x 1.18, give or take 5 % by text."""
    return round(o200k(text) * 1.18 * (0.95 + number(0, 1000, "jitter", text) / 10_000))


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def dump_lines(rows: list[Any]) -> bytes:
    return "".join(compact(row) + "\n" for row in rows).encode()


def sections(path: Path) -> list[tuple[str, str, str]]:
    """Split a story file into ``(directive, its argument, the body below it)``.

    A directive stands alone on a line that starts with ``@@``; lines before the first one are remarks.
    """
    found: list[tuple[str, str, list[str]]] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("@@ "):
            name, _, argument = line[3:].partition(" ")
            found.append((name, argument.strip(), []))
        elif found:
            found[-1][2].append(line)
    return [(name, argument, "\n".join(body).strip("\n")) for name, argument, body in found]


def files(path: Path) -> dict[str, str]:
    """Read a text file that holds many: each starts with ``=== name``."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            name = line[4:]
            found[name] = []
        else:
            found[name].append(line)
    return {name: "\n".join(lines).rstrip("\n") + "\n" for name, lines in found.items()}


def png(width: int, height: int, colour: tuple[int, int, int], bars: int = 5) -> bytes:
    """A valid PNG: bars of one colour on white, so that it packs small."""
    line = bytearray()
    for x in range(width):
        line += bytes(colour) if (x * bars * 2 // width) % 2 else b"\xff\xff\xff"
    # Every line after the first is "as the one above": PNG's filter 2 with nothing but zeros.
    body = zlib.compress(b"\x00" + bytes(line) + (b"\x02" + bytes(3 * width)) * (height - 1), 9)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    """A valid JPEG, all of one grey: every block holds "no change" and "nothing more", one bit each."""

    def segment(mark: int, data: bytes) -> bytes:
        return bytes((0xFF, mark)) + struct.pack(">H", len(data) + 2) + data

    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00"
    one_code = bytes([1] + [0] * 15) + b"\x00"
    blocks = ((width + 7) // 8) * ((height + 7) // 8)
    full, rest = divmod(blocks * 2, 8)
    scan = b"\x00" * full + (bytes(((1 << (8 - rest)) - 1,)) if rest else b"")
    return (
        b"\xff\xd8"
        + segment(0xE0, b"JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
        + segment(0xDB, b"\x00" + b"\x01" * 64)
        + segment(0xC0, frame)
        + segment(0xC4, b"\x00" + one_code)
        + segment(0xC4, b"\x10" + one_code)
        + segment(0xDA, b"\x01\x01\x00\x00\x3f\x00")
        + scan
        + b"\xff\xd9"
    )
