"""Fills a structured summary from messages, without a model: the deterministic filler of the agentd policy.

The newest items win: the messages are read from the end until the lists are full, so that a long history costs no more than
its last part. Rules: four_systems.md, "As policies on a canonical transcript".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..model import Message
from ..systems.agentd_summary import MOST_ITEMS, TITLES
from ..turns import starts_turn, tool_pairs
from .structured_items import Items, call_item

LISTS = tuple(TITLES)


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a summary, verbatim, and ``Message.index`` of the message that it was taken from."""

    text: str
    index: int


@dataclass(frozen=True, slots=True)
class Filled:
    """The lists of a summary, each oldest first and without doubles."""

    goals: tuple[Item, ...] = ()
    decisions: tuple[Item, ...] = ()
    open: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()

    def of(self, name: str) -> tuple[Item, ...]:
        """One of the lists, by its name in ``LISTS``."""
        items: tuple[Item, ...] = getattr(self, name)
        return items


def fill(messages: Sequence[Message], read: Callable[[Message], Items] = Items) -> Filled:
    """Fill the lists from messages, oldest first.

    Goals are the first sentences of what persons wrote; decisions what the assistant chose or changed; open are the
    questions that nobody answered, the to-do items of the newest list that are not done, and the calls without a result;
    facts are paths, and lines of tool results with errors, outcomes and identifiers. Each list keeps its newest
    ``MOST_ITEMS``; of equal items (facts: but for bare
    numbers) the newest.

    Parameters
    ----------
    read : callable, optional
        `Items`, or a memory of it.

    Examples
    --------
    >>> from workbench.model import Text
    >>> filled = fill([Message(0, "", "user", (Text("Rename the report."),)), Message(1, "", "assistant", (Text("To what name?"),))])
    >>> filled.goals, filled.open
    ((Item(text='Rename the report.', index=0),), (Item(text='To what name?', index=1),))
    """
    goals, decisions, opened, facts = _Newest(), _Newest(), _Newest(), _Newest(_shape)
    done: set[str] = set()
    lists_over = person_spoke = assistant_spoke = False
    unanswered = _calls_without_result(messages)
    for message in reversed(messages):
        full = goals.full and decisions.full and facts.full
        person = starts_turn(message)
        if full and (opened.full or (lists_over and person_spoke and assistant_spoke and not unanswered)):
            break
        found = read(message)
        if person and not goals.full and found.goal is not None:
            goals.add((found.goal,), message.index)
        if not decisions.full:
            decisions.add(found.decisions, message.index)
        if not facts.full:
            facts.add(found.facts, message.index)

        waiting = () if (assistant_spoke if person else person_spoke) else found.questions
        listed = found.todo_list
        todos = (*found.todos, *(() if listed is None or lists_over else listed))
        opened.add((*waiting, *(text for text, over in todos if not over and _key(text) not in done), *unanswered.pop(message.index, ())), message.index)
        done.update(_key(text) for text, _ in todos)  # a newer word on the same item counts
        lists_over |= listed is not None
        person_spoke |= person
        assistant_spoke |= message.role == "assistant" and bool(message.text or message.calls)
    return Filled(goals.oldest_first(), decisions.oldest_first(), opened.oldest_first(), facts.oldest_first())


class _Newest:
    """A list that is filled from its end."""

    def __init__(self, key: Callable[[str], str] | None = None) -> None:
        self._key = key or _key
        self._items: list[Item] = []
        self._seen: set[str] = set()

    @property
    def full(self) -> bool:
        return len(self._items) >= MOST_ITEMS

    def add(self, texts: Sequence[str], index: int) -> None:
        """Add the items of one message that stands before all that were added so far."""
        for text in reversed(texts):
            key = self._key(text)
            if key and key not in self._seen and not self.full:
                self._seen.add(key)
                self._items.append(Item(text, index))

    def oldest_first(self) -> tuple[Item, ...]:
        return tuple(reversed(self._items))


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()


def _shape(text: str) -> str:
    """A fact with its bare numbers taken out: of "20 passed in 0.8s" and "21 passed in 0.9s" the newer one counts. Numbers in names stay."""
    return _NUMBER.sub("0", _key(text))


_NUMBER = re.compile(r"(?<![\w.-])\d[\d.,]*(?:ms|s|%)?(?![\w-])")


def _calls_without_result(messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
    """For each message with calls that got no result: what names them."""
    waiting: dict[int, set[str]] = {}
    for pair in tool_pairs(messages):
        if pair.call is not None and pair.result is None:
            waiting.setdefault(pair.call, set()).add(pair.id)
    by_index = {message.index: message for message in messages if message.index in waiting}
    return {index: tuple(call_item(call) for call in by_index[index].calls if call.id in ids) for index, ids in waiting.items()}
