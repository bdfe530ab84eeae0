"""What is known of pictures and other media: from headers only, whatever they claim."""

from __future__ import annotations

import base64
import hashlib
import struct

import pytest

from workbench.model import Media
from workbench.readers import media

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x02\x00\x00\x00"
GIF = b"GIF89a" + struct.pack("<HH", 3, 2) + b"\x00\x00\x00"
JPEG = b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\x00" + bytes(9) + b"\xff\xff\xc0" + struct.pack(">HBHH", 17, 8, 200, 300) + bytes(10)
WEBP_VP8 = b"RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 320, 240)
WEBP_VP8L = b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f" + struct.pack("<I", (319) | (239 << 14))
WEBP_VP8X = b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00" + (1023).to_bytes(3, "little") + (767).to_bytes(3, "little")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("data", "size"),
    [(PNG, (640, 480)), (GIF, (3, 2)), (JPEG, (300, 200)), (WEBP_VP8, (320, 240)), (WEBP_VP8L, (320, 240)), (WEBP_VP8X, (1024, 768))],
    ids=["png", "gif", "jpeg", "webp-vp8", "webp-vp8l", "webp-vp8x"],
)
def test_size_from_the_header(data: bytes, size: tuple[int, int]) -> None:
    found = media.from_base64("image", "image/x", b64(data))
    assert (found.width, found.height) == size
    assert found.size == len(data)
    assert found.sha256 == hashlib.sha256(data).hexdigest()
    for end in range(len(data)):  # a header that ends anywhere is no error
        media.from_bytes("image", None, data[:end])


def test_a_header_may_lie() -> None:
    huge = PNG[:16] + struct.pack(">II", 2**31, 2**31) + PNG[24:]
    assert media.from_bytes("image", "image/png", huge).width is None
    assert media.from_bytes("image", "image/jpeg", b"\xff\xd8" + b"\xff\xe0\x00\x02" * 100_000).width is None  # endless segments


@pytest.mark.parametrize("data", [None, 7, ["x"], "[trimmed for fixture]", "iVBOR...", "ü", "\ud800", "A"])
def test_no_base64_is_a_medium_of_unknown_size(data: object) -> None:
    assert media.from_base64("image", "image/png", data) == Media("image", "image/png")


def test_base64_alphabets_and_padding() -> None:
    data = bytes(range(256))
    url_safe = base64.urlsafe_b64encode(data).decode().rstrip("=")
    broken = "\n".join(b64(data)[at : at + 60] for at in range(0, 400, 60))
    assert {media.from_base64("document", None, text).size for text in (b64(data), url_safe, broken)} == {256}


def test_addresses() -> None:
    url = "https://example.invalid/a.png"
    assert media.from_url("image", url).sha256 == hashlib.sha256(url.encode()).hexdigest()
    assert media.from_url("image", url).size is None
    assert media.from_url("image", None) == Media("image")
    assert media.from_url("image", "\ud800").sha256
    assert media.from_url("image", "data:image/gif;charset=x;base64," + b64(GIF)).width == 3
    assert media.from_data_url("image", "DATA:image/gif;BASE64," + b64(GIF).replace("=", "%3D")).width == 3
    assert media.from_data_url("document", "data:,a%20b") == media.from_bytes("document", "text/plain", b"a b")
    assert media.from_data_url("document", "data:text/plain") == Media("document")
