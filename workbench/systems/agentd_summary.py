"""The structured summary of agentd: what stands for the messages that were folded. Rules: four_systems.md §4."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .agentd_json import fields, items, optional, text, unsigned
from .rustjson import add

MOST_ITEMS = 32  # of each list
HEADING = "Summary of earlier conversation:"
TITLES = {"goals": "Goals:", "decisions": "Decisions:", "open": "Open items:", "facts": "Facts:"}


@dataclass(frozen=True, slots=True)
class Summary:
    """Four lists and a narrative.

    Parameters
    ----------
    covers_messages : int
        How many messages it stands for.
    updated : int
        When it last absorbed something, in ms.
    """

    goals: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    narrative: str | None = None
    covers_messages: int = 0
    updated: int = 0

    def is_empty(self) -> bool:
        """Whether it says nothing; counts do not matter, and a blank narrative says something."""
        return not (self.goals or self.decisions or self.open or self.facts or self.narrative)

    def render(self) -> str:
        r"""The summary as the model reads it. An empty one is still its heading.

        Examples
        --------
        >>> Summary(goals=("ship",), narrative="so far").render()
        'Summary of earlier conversation:\nGoals:\n- ship\nso far\n'
        """
        lines = [HEADING]
        for name, title in TITLES.items():
            if entries := getattr(self, name):
                lines += [title, *(f"- {entry}" for entry in entries)]
        return "\n".join([*lines, *([self.narrative] if self.narrative else []), ""])

    def absorb(self, newer: Summary, now: int) -> Summary:
        """This summary with what a newer one adds.

        A list takes the entries that it does not hold, and then loses its oldest above 32, whether or not anything was
        added. A narrative that is there, even an empty one, replaces the old.

        Examples
        --------
        >>> Summary(goals=("ship",)).absorb(Summary(goals=("ship", "test"), covers_messages=5), 7)
        Summary(goals=('ship', 'test'), decisions=(), open=(), facts=(), narrative=None, covers_messages=5, updated=7)
        """
        return Summary(
            goals=_absorbed(self.goals, newer.goals),
            decisions=_absorbed(self.decisions, newer.decisions),
            open=_absorbed(self.open, newer.open),
            facts=_absorbed(self.facts, newer.facts),
            narrative=self.narrative if newer.narrative is None else newer.narrative,
            covers_messages=add(self.covers_messages, newer.covers_messages),
            updated=now,
        )


def _absorbed(old: tuple[str, ...], newer: Iterable[str]) -> tuple[str, ...]:
    known = set(old)
    added = [entry for entry in dict.fromkeys(newer) if entry not in known]
    return (*old, *added)[-MOST_ITEMS:]


def summary_json(summary: Summary) -> dict[str, Any]:
    """The summary's record; empty lists and no narrative are left out."""
    record: dict[str, Any] = {name: list(entries) for name in TITLES if (entries := getattr(summary, name))}
    if summary.narrative is not None:
        record["narrative"] = summary.narrative
    return record | {"covers_messages": summary.covers_messages, "updated": summary.updated}


def summary_from_json(value: Any) -> Summary:
    """A summary of its record, in which nothing is required.

    Raises
    ------
    InvalidRecord
        No object, or a field of a wrong type.
    """
    lists = dict.fromkeys(TITLES, items(text))
    return Summary(**fields(value, "struct Summary", {**lists, "narrative": optional(text), "covers_messages": unsigned, "updated": unsigned}))
