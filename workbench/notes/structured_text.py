"""Text cut into lines and sentences, in linear time, for the filler of the structured summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

#: Most characters of an item.
ITEM_CHARS = 200
#: Characters read at each end of a long text.
LOOK = 16_000


def joined(value: Any) -> str:
    """A text; or of a command as a list of words the last and longest one, the script."""
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return str(max(reversed(value), key=len))
    return value if isinstance(value, str) else ""


def clip(text: str) -> str:
    """The first line that says something, at most `ITEM_CHARS` long."""
    found = _SAYING_LINE.search(text[:LOOK])
    return found.group()[:ITEM_CHARS].rstrip() if found else ""


_SAYING_LINE = re.compile(r"[^\s\n\r][^\n\r]*+")


def ends(text: str) -> tuple[str, ...]:
    """A text; of a long one its beginning and its end, which starts with a whole line or word."""
    if len(text) <= 2 * LOOK:
        return (text,)
    end = text[-LOOK:]
    broken = end.find("\n") + 1 or end.find(" ") + 1
    return text[:LOOK], end[broken:]


LINE = re.compile(r"[^\n\r]++")
_FENCE = re.compile(r"\s*+(```|~~~)")
_MARKER = re.compile(r"[\s>]*+(?:[-*+•]\s++|\d{1,3}[.)]\s++|#{1,6}\s++)?(?:\[.\]\s++)?")
#: Where a sentence ends. An abbreviation's point is followed by a small letter, or is one of a few.
_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bz\.B)[.!?…][\"'”’)\]*_]{0,3}(?=\s)(?!\s{1,3}[a-zà-öø-ÿа-я])|[。!?؟।][\"”’」』)]{0,2}")
WORD = re.compile(r"\w")


def prose(text: str) -> Iterator[str]:
    """The lines of a text without their list marks, code blocks, tables and markup tags left out."""
    inside = False
    for part in ends(text):
        for found in LINE.finditer(part):
            line = found.group()
            if _FENCE.match(line):
                inside = not inside
            elif not inside:
                line = line[_MARKER.match(line).end() :].rstrip()  # type: ignore[union-attr]
                if line[:1] not in ("", "|") and not (line[0] == "<" and line[-1] == ">"):
                    yield line


def sentences(line: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in _END.finditer(line):
        yield start, found.end()
        start = found.end()
    if start < len(line):
        yield start, len(line)


def substance(text: str) -> int:
    """How much a text says: letters and digits; a CJK one says as much as two."""
    letters = len(WORD.findall(text[:ITEM_CHARS]))
    return letters if text.isascii() else letters + len(_IDEOGRAPH.findall(text[:ITEM_CHARS]))


_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def said_in(text: str) -> Iterator[str]:
    for line in prose(text):
        for start, end in sentences(line):
            yield line[start:end].strip()
