"""Turns inline pictures, sounds and documents into `Media`: what they are and how large, never their bytes.

Only headers are read; nothing is fetched and no picture is decoded. Data is hostile: a header that lies or ends early
gives no size in pixels, and base64 that is none gives no size in bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from typing import Any
from urllib.parse import unquote_to_bytes

from ..model import Media

_MOST_PIXELS = 1_000_000  # a side longer than this is no picture
_MARKERS = 2_000  # JPEG segments that are looked at before giving up


def from_base64(kind: str, mime: Any, data: Any) -> Media:
    """A medium that stands in the source as base64, standard or URL-safe, padded or not.

    Examples
    --------
    >>> from_base64("image", "image/gif", "R0lGODlhAgADAA==").width
    2
    """
    decoded = _decoded(data)
    return Media(kind, _mime(mime)) if decoded is None else from_bytes(kind, mime, decoded)


def from_bytes(kind: str, mime: Any, data: bytes) -> Media:
    """A medium whose bytes are at hand."""
    seen = _pixels(data)
    width, height = seen if seen is not None and kind == "image" else (None, None)
    return Media(kind, _mime(mime), width, height, len(data), hashlib.sha256(data).hexdigest())


def from_url(kind: str, url: Any, mime: Any = None) -> Media:
    """A medium named by its address: a data URL is read, of any other address only the hash is kept."""
    if not isinstance(url, str) or not url:
        return Media(kind, _mime(mime))
    if url[:5].lower() == "data:":
        return from_data_url(kind, url)
    return Media(kind, _mime(mime), sha256=hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest())


def from_data_url(kind: str, url: Any) -> Media:
    """A medium written as ``data:image/png;base64,…``.

    Examples
    --------
    >>> from_data_url("document", "data:text/plain,a%20b").size
    3
    """
    head, comma, body = url.partition(",") if isinstance(url, str) else ("", "", "")
    fields = [field.strip() for field in head[5:].split(";")]
    mime = fields[0] or "text/plain"
    if not comma:
        return Media(kind)
    if any(field.lower() == "base64" for field in fields[1:]):
        return from_base64(kind, mime, body)
    return from_bytes(kind, mime, unquote_to_bytes(body.encode("utf-8", "surrogatepass")))


def _mime(mime: Any) -> str | None:
    return mime[:100].lower() if isinstance(mime, str) and "/" in mime else None


def _decoded(data: Any) -> bytes | None:
    if not isinstance(data, str):
        return None
    try:
        text = data.encode("ascii")
        if b"%" in text[-12:]:  # the padding of a data URL may be escaped
            text = unquote_to_bytes(text)
        if not text.isalnum():  # no mark at all is the rare case; whitespace and the URL-safe alphabet are allowed
            text = b"".join(text.split()).translate(_STANDARD)
        text = text.rstrip(b"=")
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return None


_STANDARD = bytes.maketrans(b"-_", b"+/")


def _pixels(data: bytes) -> tuple[int, int] | None:
    """Width and height from the header of a PNG, JPEG, GIF or WebP picture."""
    try:
        size = _header(data)
    except (struct.error, IndexError):  # it ends early
        return None
    return size if size is not None and 0 < size[0] <= _MOST_PIXELS and 0 < size[1] <= _MOST_PIXELS else None


def _header(data: bytes) -> tuple[int, int] | None:
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR":
        return _two(struct.unpack_from(">II", data, 16))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return _two(struct.unpack_from("<HH", data, 6))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data[:2] == b"\xff\xd8" else None


def _webp(data: bytes) -> tuple[int, int] | None:
    form = data[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    for _ in range(_MARKERS):
        if data[at] != 0xFF:
            return None
        mark = data[at + 1]
        if mark == 0xFF:  # fill byte
            at += 1
        elif mark == 0x01 or 0xD0 <= mark <= 0xD8:  # marks without a body
            at += 2
        elif 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


def _two(numbers: tuple[int, ...]) -> tuple[int, int]:
    return numbers[0], numbers[1]
