"""Messages that are not yet in a transcript: what makes two of them the same, and which result answers which call."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import Part, Reasoning, Role, Text, ToolCall, ToolResult, ToolSpec
from .fields import json_text
from .responses_items import folded

_MOST_LISTS = 8


@dataclass(slots=True)
class Item:
    """A message that is not yet in a transcript. Requests that repeat it share it; its list of parts is replaced, never changed."""

    role: Role
    parts: list[Part]
    _key: Hashable = None

    @property
    def result(self) -> ToolResult | None:
        """Its tool result, if it is one."""
        return next((part for part in self.parts if type(part) is ToolResult), None) if self.role == "tool" else None

    @property
    def call_ids(self) -> tuple[str, ...]:
        """Ids of its calls."""
        return tuple(part.id for part in self.parts if type(part) is ToolCall and part.id and not part.server_side)

    def key(self) -> Hashable:
        """What makes it the same message when it is sent again: reasoning may be left out, marks and space folded."""
        if self._key is None:
            self._key = self._mark()
        return self._key

    def _mark(self) -> Hashable:
        result = self.result
        if result is not None:
            return ("tool", result.call_id or folded(result.text))
        calls = [part for part in self.parts if type(part) is ToolCall]
        if calls and all(part.id for part in calls):
            return (self.role, tuple(part.id for part in calls))
        return (self.role, *(_mark(part) for part in self.parts if type(part) is not Reasoning))


@dataclass(slots=True)
class Found:
    """What a recorded input or output holds."""

    items: list[Item] = field(default_factory=list)
    tools: list[ToolSpec] = field(default_factory=list)
    system: list[str] = field(default_factory=list)
    usage: Any = None


def _mark(part: Part) -> str:
    if type(part) is Text:
        return folded(part.text)
    return f"{part.name} {json_text(part.arguments)}" if type(part) is ToolCall else repr(part)


@dataclass(slots=True)
class Memory:
    """Lists of messages that were read last. A request repeats the history, so nearly all of its messages were read before."""

    lists: deque[tuple[list[Any], list[list[Item]]]] = field(default_factory=lambda: deque(maxlen=_MOST_LISTS))

    def like(self, values: list[Any]) -> list[list[Item]]:
        """What the first messages of a list are, as far as they are those of a list that was read before."""
        best: list[list[Item]] = []
        for before, items in reversed(self.lists):
            same = next((at for at, (one, other) in enumerate(zip(before, values, strict=False)) if one != other), min(len(before), len(values)))
            if same > len(best):
                best = items[:same]
            if same == len(before):
                break
        return best


def paired(items: Sequence[Item], calls: Iterable[ToolCall] = ()) -> None:
    """Give each result that names no call the first call before it that is still open, of its tool where it says so."""
    open_ = {part.id: part for part in calls if part.id}
    for item in items:
        open_.update({part.id: part for part in item.parts if type(part) is ToolCall and part.id and item.role == "assistant" and not part.server_side})
        result = item.result
        if result is None:
            continue
        call = open_.get(result.call_id) if result.call_id else next((part for part in open_.values() if result.name in (None, part.name)), None)
        if call is not None:
            del open_[call.id]
            if result.call_id != call.id or not result.name:
                item.parts, item._key = [replace(result, call_id=call.id, name=result.name or call.name)], None
