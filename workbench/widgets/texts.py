"""Transcript texts as the views show them: plain, printable, and never more than a page at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..model import COMPACT_SUMMARY, ERROR, META, SYNTHETIC, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

PREVIEW = 160  # characters of a preview, the same for every kind
PAGE = 20_000  # characters of a page of text

# Terminal escapes: CSI, OSC (ended by BEL or ST), other two-byte ones; each bounded, so that a lone ESC eats little.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[ -/]{0,4}[0-Z\\^-~])|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


def clean(text: str) -> str:
    r"""Take terminal escapes out; show what cannot be shown, and half a surrogate pair, as U+FFFD.

    Examples
    --------
    >>> clean("\x1b[31mred\x1b[0m 50%\r\n\ud99c ok")
    'red 50%\n� ok'
    """
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub("\ufffd", text)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a message: its kind, a title for people, its text as the source holds it."""

    kind: str
    title: str
    text: str


_KIND = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool_result", "note": "note"}


def sections(message: Message) -> list[Section]:
    """The parts of a message as texts, in order. The texts are the source's own strings, not copies."""
    kind = "note" if COMPACT_SUMMARY in message.flags else _KIND[message.role]
    found = []
    for part in message.parts:
        if type(part) is ToolResult:
            title = f"result of {part.name}" if part.name else "result"
            for child in part.parts or (Text(""),):
                found.append(_section(child, "tool_result", title + (" (error)" if part.is_error else "")))
        else:
            found.append(_section(part, kind, kind.replace("_", " ")))
    return found


def _section(part: Part, kind: str, title: str) -> Section:
    if type(part) is Text:
        return Section(kind, title, part.text)
    if type(part) is Reasoning:
        hidden = "" if part.opaque_bytes is None else f" ({part.opaque_bytes:,} bytes not readable)"
        return Section("reasoning", "reasoning" + hidden, part.text or "")
    if type(part) is ToolCall:
        return Section("tool_call", f"call of {part.name}", part.arguments_raw)
    if type(part) is Media:
        size = f" {part.width} × {part.height}" if part.width and part.height else ""
        return Section("media", f"{part.kind}{size}" + (f", {part.size:,} bytes" if part.size is not None else ""), "")
    assert type(part) is Opaque
    return Section(kind, f"{part.type}" + (f", {part.size:,} bytes, not readable" if part.size is not None else ", not readable"), "")


@dataclass(frozen=True, slots=True)
class Preview:
    """One line of a message.

    Parameters
    ----------
    text : str
        At most `PREVIEW` characters, without line breaks.
    size : int
        Characters of the whole message.
    hit : tuple of int or None
        Start and end of the search's first hit in `text`.
    """

    text: str
    size: int
    hit: tuple[int, int] | None = None


def preview(message: Message, query: str = "") -> Preview:
    """One line of a message: its first words, or the words around the first hit of a search."""
    parts = sections(message)
    size = sum(len(part.text) for part in parts)
    if query:
        for part in parts:
            found = find(_searched(part), query)
            if found >= 0:
                return _around(_searched(part), found, len(query), size)
    line = ""
    for part in sorted(parts, key=lambda part: part.kind == "reasoning"):  # reasoning only where nothing else is said
        if len(line) >= PREVIEW or (line and part.kind == "reasoning"):
            break
        line += ("  " if line else "") + _line(part)
    return Preview(line[:PREVIEW], size)


def _line(part: Section) -> str:
    start = part.text[: PREVIEW * 4]  # escapes and runs of spaces shrink
    if part.kind == "tool_call":
        return one_line(f"→ {part.title.removeprefix('call of ')} {start}")
    if part.kind == "media":
        return one_line(f"▣ {part.title}")
    return one_line(start) or f"[{one_line(part.title)}, empty]"


def one_line(text: str) -> str:
    """Clean, and every run of white space as one space."""
    return _SPACES.sub(" ", clean(text)).strip()


def _searched(part: Section) -> str:
    return f"{part.title.removeprefix('call of ')} {part.text}" if part.kind == "tool_call" else part.text


def find(text: str, query: str) -> int:
    """Where `query`, which must be in lower case, first stands in a text, whatever its case; -1 if nowhere."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower.find(query)
    found = re.search(re.escape(query), text, re.IGNORECASE)  # lower() of a few letters is longer: places would be off
    return found.start() if found else -1


def _around(text: str, start: int, length: int, size: int) -> Preview:
    left = max(0, start - PREVIEW // 3)
    before = one_line(text[left:start] + "|")[:-1]
    hit = one_line(text[start : start + length])
    head = ("…" if left else "") + before
    line = head + hit + one_line("|" + text[start + length : start + length + PREVIEW])[1:]
    return Preview(line[:PREVIEW], size, (len(head), min(PREVIEW, len(head) + len(hit))))


def matches(message: Message, query: str) -> bool:
    """Whether any text of a message holds `query` (lower case): words, reasoning, tool names, arguments, results."""
    return any(find(_searched(part), query) >= 0 for part in sections(message))


def tags(message: Message) -> str:
    """What kind of row it is, where it is no ordinary one: ``error``, ``harness``, ``summary``."""
    result = message.result
    if ERROR in message.flags or (result is not None and result.is_error):
        return "error"
    if COMPACT_SUMMARY in message.flags:
        return "summary"
    return "harness" if message.flags & {META, SYNTHETIC} else ""


@dataclass(frozen=True, slots=True)
class Page:
    """Some characters of a message.

    Parameters
    ----------
    pieces : list of Section
        The sections, or what of them stands on this page; a title only where a section begins.
    next : int or None
        Where the next page starts; None at the end.
    total : int
        Characters of the whole message.
    """

    pieces: list[Section]
    next: int | None
    total: int


def page(message: Message, offset: int = 0, limit: int = PAGE) -> Page:
    """A page of a message's text. Offsets count characters of the source, before cleaning."""
    parts = sections(message)
    total = sum(len(part.text) for part in parts)
    end = offset + limit
    pieces, start = [], 0
    for part in parts:
        stop = start + len(part.text)
        inside = start < end and stop > offset if part.text else offset <= start < end or start == total <= end
        if inside:
            low, high = max(offset - start, 0), min(end - start, len(part.text))
            if high < len(part.text):
                high = _whole_escape(part.text, low, high)
                end = start + high
            pieces.append(Section(part.kind, clean(part.title) if low == 0 else "", clean(part.text[low:high])))
        start = stop
    return Page(pieces, end if end < total else None, total)


def _whole_escape(text: str, low: int, high: int) -> int:
    """End a page before a terminal escape that it would cut in two."""
    escape = text.rfind("\x1b", max(low + 1, high - 64), high)
    return escape if escape > low and not _ESCAPES.match(text[escape:high]) else high
