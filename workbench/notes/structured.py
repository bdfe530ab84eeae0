"""The structured summary of agentd as a note: goals, decisions, open items and facts, filled without a model. Rules: four_systems.md §4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..ledger import View
from ..model import Message
from ..systems.agentd import Summary
from .base import Draft
from .structured_fill import LISTS, Filled, fill
from .structured_items import Items


@dataclass(frozen=True, slots=True)
class Structured:
    """Four lists of verbatim items, the newest of each."""

    name: str = "structured"
    summary: str = "Goals, decisions, open items and facts in the transcript's own words, the newest of each (agentd)."

    def write(self, view: View, rows: Sequence[int], most_chars: int) -> Draft:
        """Write it. What is too much goes one item at a time, the oldest of the longest list first."""
        filled = shorten(fill([view.messages[row] for row in rows], reader(view)), most_chars)
        text = render(filled)
        if len(text) > most_chars:  # not even the heading fits
            return Draft(text[: max(0, most_chars)])
        return Draft(text, sources(filled))


def as_summary(filled: Filled) -> Summary:
    """The lists as agentd's summary."""
    goals, decisions, opened, facts = (tuple(item.text for item in filled.of(name)) for name in LISTS)
    return Summary(goals, decisions, opened, facts)


def render(filled: Filled) -> str:
    """The summary as the model reads it."""
    return as_summary(filled).render()


def sources(filled: Filled) -> tuple[int, ...]:
    """``Message.index`` of each message that an item was taken from, in order."""
    return tuple(sorted({item.index for name in LISTS for item in filled.of(name)}))


def shorten(filled: Filled, most_chars: int) -> Filled:
    """Leave out items, the oldest of the longest list first, until the text has at most so many characters, or says nothing."""
    lists = {name: list(filled.of(name)) for name in LISTS}
    chars = {name: sum(len(item.text) for item in items) for name, items in lists.items()}
    while any(lists.values()) and len(render(filled)) > most_chars:
        longest = max(LISTS, key=lambda name: (chars[name], len(lists[name])))
        chars[longest] -= len(lists[longest].pop(0).text)
        filled = replace(filled, **{longest: tuple(lists[longest])})
    return filled


def reader(view: View) -> Callable[[Message], Items]:
    """`Items` with a memory that all views of a ledger share: a message never changes."""

    def build() -> Callable[[Message], Items]:
        known: dict[int, Items] = {}

        def read(message: Message) -> Items:
            found = known.get(message.index)
            if found is None:
                found = known[message.index] = Items(message)
            return found

        return read

    return view.ledger.memo.get("structured items", build)
