"""The transcript of vak, with a digest in place of each tool result. Rules: four_systems.md §5.

Without a model to summarise it, the transcript itself is the note, cut to the bound: its beginning, where the task
stands. Only as many messages are rendered as the bound shows, and each once for a view, so that a history of any length
costs no more than its note.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ..ledger import View
from ..model import ToolResult
from ..systems import vak
from ..systems.mapping.vak import as_message
from .base import Draft


@dataclass(frozen=True, slots=True)
class Digest:
    """Role by role what was said and called, oldest first, until the bound is reached."""

    name: str = "digest"
    summary: str = "The transcript with a digest of each tool result, oldest first, until the bound (vak)."

    def write(self, view: View, rows: Sequence[int], most_chars: int) -> Draft:
        """Write it. It quotes each message of whose own words (no header, no count) a character stands within the bound."""
        calls = _Calls(view, rows)
        parts: list[str] = []
        quotes = []
        length = 0
        for row in rows:
            if length >= most_chars:
                break
            text, words_at = _rendered(view, row, calls)
            if words_at is not None and length + words_at < most_chars:
                quotes.append(int(view.indices[row]))
            parts.append(text)
            length += len(text)
        return Draft("".join(parts)[:most_chars], tuple(quotes))


class _Calls:
    """Which tool the first call of an id names, among some of a view's rows."""

    def __init__(self, view: View, rows: Sequence[int]) -> None:
        self._calls: dict[str, list[tuple[int, str]]] = view.memo.get("vak calls", lambda: _calls(view))
        self._rows = rows
        self._known: dict[str, str | None] = {}

    def name(self, id_: str) -> str | None:
        """The name; None if no row calls it."""
        if id_ not in self._known:
            self._known[id_] = next((name for row, name in self._calls.get(id_, ()) if self._has(row)), None)
        return self._known[id_]

    def _has(self, row: int) -> bool:
        if isinstance(self._rows, range):
            return row in self._rows
        at = bisect_left(self._rows, row)
        return at < len(self._rows) and self._rows[at] == row


def _calls(view: View) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for row, message in enumerate(view.messages):
        for call in message.calls:
            found.setdefault(call.id, []).append((row, call.name))
    return found


def _rendered(view: View, row: int, calls: _Calls) -> tuple[str, int | None]:
    """A message in the transcript, and where its own words begin: kept for a view, as only names of tools depend on the other rows."""
    ids = [part.call_id for part in view.messages[row].parts if type(part) is ToolResult]
    names = {id_: name for id_ in ids if (name := calls.name(id_)) is not None}
    return view.memo.get(("vak rendered", row, tuple(names.items())), lambda: _render(as_message(view.messages[row]), names))


def _render(message: vak.Message, names: dict[str, str]) -> tuple[str, int | None]:
    text = vak.render_message(message, names)
    header = len(f"[{message.role}]\n")
    first = next((block for block in message.content if type(block) in (vak.ToolUse, vak.ToolResult)), None)
    if type(first) is vak.ToolUse:
        return text, header + len("[tool-call] ")
    if type(first) is vak.ToolResult and (_shows_words(first, names.get(first.tool_use_id)) or message.text):
        return text, header + len("[tool-result]\n")
    return text, header if message.text else None


def _shows_words(result: vak.ToolResult, name: str | None) -> bool:
    """Whether a result's digest holds words of it: some only say how much there is."""
    if name is None or result.is_error:
        return bool(result.content)
    body = vak.result_digest(name, result.content)
    return bool(body) and (name == "bash" or _COUNTED.fullmatch(body) is None)


_COUNTED = re.compile(r"\(\d+ lines, \d+ bytes\)|array, \d+ items|object, keys: ")
