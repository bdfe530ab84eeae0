"""One line of a message, as frames and figures show it. It needs no pandas, so that a figure does not load it."""

from __future__ import annotations

from typing import Any

from .model import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from .tokens.base import repaired

PREVIEW = 80  # characters


def preview(message: Message) -> str:
    """One line of a message, at most ``PREVIEW`` characters: control characters are blanks, lone surrogates U+FFFD.

    Examples
    --------
    >>> preview(Message(0, "", "tool", (ToolResult("a", "run", (Text("\\x1b[31mred\\x1b[0m\\n\\ud99c"),)),)))
    '[31mred [0m \ufffd'
    """
    return one_line(" ".join(filter(None, map(words_of, message.parts))))


def words_of(part: Any) -> str:
    """What a part says, as far as a line can show it."""
    limit = 4 * PREVIEW  # a text may be megabytes; what a line can show is in its first characters
    if isinstance(part, Text | Reasoning):
        return (part.text or "(hidden reasoning)")[:limit] if isinstance(part, Reasoning) else part.text[:limit]
    if isinstance(part, ToolCall):
        return f"{part.name} {part.arguments_raw[:limit]}"
    if isinstance(part, ToolResult):
        return " ".join(words_of(child) for child in part.parts[:8]) or "(empty)"
    if isinstance(part, Media):
        size = f" {part.width} × {part.height}" if part.width and part.height else ""
        return f"({part.kind}{size})"
    assert isinstance(part, Opaque)
    return f"({part.type})"


def one_line(text: str) -> str:
    """The beginning of a text on one printable line."""
    head = repaired(text[: 4 * PREVIEW])
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in head).split())
    return line if len(line) <= PREVIEW else line[: PREVIEW - 1] + "…"
