"""What Gemini CLI's files say happened, in order: messages, rewinds, and histories that replaced the one before.

The newer files are logs: a message is written again whenever something is added to it, ``$rewindTo`` takes back
everything from a message on, and ``$set`` may replace the whole list, after a compression or when results are masked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .fields import mapping


@dataclass(slots=True, eq=False)
class Slot:
    """A message, however often it was written.

    Parameters
    ----------
    numbers : list of int
        Records that hold it.
    rewound : int
        Number of the record that took it back; 0 if none did.
    made : bool
        Whether it came with a history that replaced another one.
    indices : list of int
        The messages that it became.
    """

    id: str
    value: dict[str, Any]
    numbers: list[int]
    rewound: int = 0
    made: bool = False
    indices: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Replaced:
    """A history that took the place of another one.

    Parameters
    ----------
    kept, new : list of Slot
        Messages of the old history that are in the new one, and what the new one has beside them.
    dropped : bool
        Whether the old one held anything that is not in the new one.
    """

    number: int
    kept: list[Slot]
    new: list[Slot]
    dropped: bool
    after: int = -1


@dataclass(slots=True)
class Log:
    """Follows a file record by record.

    Parameters
    ----------
    steps : list
        Messages and replacements, in the order in which they began.
    about : dict
        What the file says of the session, the newest of each.
    beside : list of int
        Records that say only that.
    odd : list of (int, str)
        Records that say nothing, and why.
    last : int
        Number of the last record.
    """

    steps: list[Slot | Replaced] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    beside: list[int] = field(default_factory=list)
    odd: list[tuple[int, str]] = field(default_factory=list)
    last: int = 0
    _live: dict[str, Slot] = field(default_factory=dict)
    _unnamed: int = 0

    def records(self, rows: Iterable[tuple[int, Any]]) -> None:
        """Read the lines of a log."""
        for number, row in rows:
            self.last = number
            if not isinstance(row, dict):
                self.odd.append((number, "not an object"))
            elif "$rewindTo" in row:
                self._rewind(number, row["$rewindTo"])
            elif isinstance(change := row.get("$set"), dict):
                self.about |= {key: value for key, value in change.items() if key != "messages"}
                if isinstance(change.get("messages"), list):
                    self._replace(number, change["messages"])
                else:
                    self.beside.append(number)
            elif "sessionId" in row and "type" not in row:
                self._header(number, row)
            else:
                self.message(number, row)

    def _header(self, number: int, row: dict[str, Any]) -> None:
        self.about |= {key: value for key, value in row.items() if key != "messages"}
        if isinstance(row.get("messages"), list) and row["messages"]:
            self._replace(number, row["messages"])
        else:
            self.beside.append(number)

    def message(self, number: int, value: Any) -> None:
        """Read a message: a new one, or one that is written again."""
        if not isinstance(value, dict):
            self.odd.append((number, "not a message"))
            return
        id_ = value.get("id")
        slot = self._live.get(id_) if isinstance(id_, str) and id_ else None
        if slot is None:
            self.steps.append(self._new(number, value))
        else:
            slot.value = value
            slot.numbers.append(number)

    def _new(self, number: int, value: dict[str, Any], *, made: bool = False) -> Slot:
        id_ = value.get("id")
        slot = Slot(id_ if isinstance(id_, str) else "", value, [number], made=made)
        self._unnamed += 1
        self._live[slot.id or f"\0{self._unnamed}"] = slot
        return slot

    def _rewind(self, number: int, to: Any) -> None:
        """Take back everything from a message on; all of it if the message is not there, as the program does."""
        self.beside.append(number)
        known = isinstance(to, str) and to in self._live
        while self._live:
            name, slot = self._live.popitem()
            slot.rewound = number
            if known and name == to:
                break

    def _replace(self, number: int, messages: list[Any]) -> None:
        before, self._live = self._live, {}
        kept: dict[str, Slot] = {}
        new: list[Slot] = []
        changed = False
        for value in messages:
            id_ = mapping(value).get("id")
            slot = before.get(id_) if isinstance(id_, str) else None
            if slot is not None:
                changed = changed or mapping(value).get("content") != slot.value.get("content") or _results(value) != _results(slot.value)
                kept[slot.id] = self._live[slot.id] = slot
            elif isinstance(value, dict):
                new.append(self._new(number, value, made=bool(before)))
        dropped = len(kept) < len(before)
        if before and (dropped or changed):
            self.steps.append(Replaced(number, [*kept.values()], new, dropped))
        self.steps += new
        self.beside.append(number)


def _results(value: Any) -> list[Any]:
    calls = mapping(value).get("toolCalls")
    return [mapping(call).get("result") for call in calls] if isinstance(calls, list) else []
