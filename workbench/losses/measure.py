"""A measure: a number, what it is out of, and the rows behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Held = Literal["", "kept", "note"]

#: What every view says of these numbers.
PROXIES = "Counted in the recording, with hindsight and without a model: proxies for what was lost, no judgement of it."


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was removed, and what became of it.

    Parameters
    ----------
    kind : str
        ``path``, ``url``, ``symbol``, ``hash``, ``number``, ``error``; ``file``, ``call``, ``sentence``, ``message``,
        ``request``, ``to-do``, ``unanswered``.
    text : str
        The thing itself, as written in the transcript: hostile text.
    source : int
        ``Message.index`` where it stood first (of a call or file: last); -1 if in none.
    removed : int
        ``Message.index`` of the first message that was made without it; -1 if it was not removed.
    needed : int
        ``Message.index`` where it was needed; -1 if nowhere.
    held : str
        ``kept``: a message that is sent holds it; ``note``: only a note or an edited message does; ``""``: nothing does.
    change : int
        Number of the change of the context, from 0, that removed it last; -1 if none did.
    """

    kind: str
    text: str
    source: int
    removed: int = -1
    needed: int = -1
    held: Held = ""
    change: int = -1


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with its numerator, its denominator and its rows.

    Parameters
    ----------
    name, title, says : str
        As typed; as shown; what is counted, in a sentence.
    count, of : int
        Numerator and denominator.
    more_is_worse : bool
        True if it counts what was lost, not what was held.
    rows : tuple of Row
        What is behind the number: of a measure of what is held the whole denominator, what is lost first; else the numerator.
    """

    name: str
    title: str
    says: str
    count: int
    of: int
    rows: tuple[Row, ...] = ()
    more_is_worse: bool = False

    @property
    def share(self) -> float | None:
        """`count` / `of`; None if there is nothing to count."""
        return self.count / self.of if self.of else None

    @property
    def lost(self) -> tuple[Row, ...]:
        """The rows that speak of a loss."""
        return self.rows if self.more_is_worse else tuple(row for row in self.rows if not row.held)

    def as_json(self, most: int | None = None) -> dict[str, Any]:
        """Plain data, with at most so many rows."""
        rows = [{name: getattr(row, name) for name in Row.__slots__} for row in self.rows[:most]]
        return {"name": self.name, "count": self.count, "of": self.of, "share": self.share, "more_is_worse": self.more_is_worse, "rows": rows}


def held_measure(name: str, title: str, says: str, rows: Sequence[Row]) -> Measure:
    """A measure of what is still held: what is lost stands first."""
    lost = [row for row in rows if not row.held]
    held = [row for row in rows if row.held]
    return Measure(name, title, says, len(held), len(rows), (*lost, *held))


@dataclass(frozen=True, slots=True)
class Losses:
    """All measures of one cut, or of a whole session.

    Parameters
    ----------
    cut : int
        ``Message.index`` of the first message after the (first) cut; -1 if nothing was cut.
    end : int
        ``Message.index`` after the last message that was looked at for needs.
    changes : tuple of int
        ``Message.index`` of the first message after each change of the context that removed something.
    """

    cut: int
    end: int
    changes: tuple[int, ...]
    measures: tuple[Measure, ...]

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.measures)

    def __getitem__(self, name: str) -> Measure:
        """The measure of a name.

        Raises
        ------
        KeyError
            There is none.
        """
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise KeyError(name)

    def __repr__(self) -> str:
        return "<Losses: " + ", ".join(f"{item.name} {item.count:,}/{item.of:,}" for item in self.measures) + ">"

    @property
    def reference_recall(self) -> float | None:
        """Available / (available + lost) of the identifiers that were used later; None if none was at stake."""
        return self["used_later"].share

    @property
    def frame(self) -> pd.DataFrame:
        """One row per measure. See `frames.losses`."""
        from .. import frames  # the one import to the right: a frame is only a view of this

        return frames.losses(self)

    @property
    def rows(self) -> pd.DataFrame:
        """One row per thing that a measure counts. See `frames.lost_rows`."""
        from .. import frames

        return frames.lost_rows(self)

    def as_json(self, most: int | None = None) -> dict[str, Any]:
        """Plain data, with at most so many rows of each measure."""
        return {
            "cut": self.cut,
            "end": self.end,
            "changes": list(self.changes),
            "says": PROXIES,
            "measures": [measure.as_json(most) for measure in self.measures],
        }
