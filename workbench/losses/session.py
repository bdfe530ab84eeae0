"""The measures of a whole session under a policy: every request's selection, and what changed from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ledger import Ledger
from ..model import MAIN, History
from ..policies.base import Fate, Selection
from ..tokens.base import Ints
from .cut import assemble, new_texts, text_of
from .index import Index, index_of
from .measure import Losses, Measure
from .standing import artifact_trail, instruction_survival, user_messages
from .walk import Change, Moment, walk

ROUNDS = 32  # changes after which survival is looked at: more are thinned out evenly, the first and the last stay


@dataclass(frozen=True, slots=True)
class Round:
    """What a chain of compactions has left after one of them.

    Parameters
    ----------
    change : int
        Number of the change of the context, from 0.
    at : int
        ``Message.index`` of the first message that was made after it.
    measures : tuple of Measure
        Files, instructions and person's messages, as they stand there; without rows.
    """

    change: int
    at: int
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True)
class SessionLosses:
    """The measures of a session, and how much survived each round of compaction."""

    losses: Losses
    rounds: tuple[Round, ...]

    def as_json(self, most: int | None = None) -> dict[str, Any]:
        """Plain data, with at most so many rows of each measure."""
        rounds = [{"change": item.change, "at": item.at, **{measure.name: [measure.count, measure.of] for measure in item.measures}} for item in self.rounds]
        return {**self.losses.as_json(most), "rounds": rounds}


class Follower:
    """Sees the selection of one request after the other, and remembers only what changed.

    Parameters
    ----------
    history : {"full", "live"}
        ``live``: the requests hold what the recording held then, so that what a real compaction removed counts as removed.
    """

    def __init__(self, ledger: Ledger, thread: str = MAIN, history: History = "full") -> None:
        transcript = ledger.transcript
        every = transcript.thread(thread) if history == "live" else transcript.history(thread, "full")
        self.ledger = ledger
        self.rows: tuple[int, ...] = tuple(sorted(every))
        self.changes: list[Change] = []
        self.newest: Selection | None = None
        self._here = np.zeros(len(transcript.messages) + 1, bool)
        self._here[list(self.rows)] = True
        self._gone = np.zeros(len(self._here), bool)
        self._texts: tuple[str, ...] = ()
        self._at = -1

    def see(self, selection: Selection, at: int) -> None:
        """Take in what the request for message `at` carries."""
        self._take(selection.request.view.indices[selection.fate_codes == Fate.KEPT], new_texts(selection), at)
        self.newest = selection

    def see_all(self, indices: Ints, at: int) -> None:
        """Take in a request for message `at` that carries these messages as they are: the policy had no answer."""
        self._take(indices, (), at)
        self.newest = None

    def _take(self, kept: Ints, texts: tuple[str, ...], at: int) -> None:
        gone = self._here.copy()
        gone[at:] = False
        gone[kept] = False
        changed = np.flatnonzero(gone != self._gone)
        if len(changed) or texts != self._texts:
            went = gone[changed]
            self.changes.append(Change(at, changed[went].tolist(), changed[~went].tolist(), texts))
            self._gone, self._texts = gone, texts
        self._at = at

    def losses(self) -> SessionLosses:
        """All measures: what was needed over the whole session, and what stands in its last request."""
        index = index_of(self.ledger)
        removing = [number for number, change in enumerate(self.changes) if change.gone]
        cut = self.changes[removing[0]].at if removing else -1
        end = self.rows[-1] + 1 if self.rows else 0
        looked = _thinned(removing)
        last = end if self._at < 0 else self._at
        walked = walk(index, self.rows, self.changes, [*(self.changes[number].at for number in looked), last])
        moments = {moment.at: moment for moment in walked.moments}
        notes = [(text_of(note.message), note.covers) for note in self.newest.notes] if self.newest is not None else []
        losses = assemble(index, self.rows, walked, moments[last], notes, (cut, end))
        rounds = [_round(index, self.rows, number, moments[self.changes[number].at], walked.changes) for number in looked]
        return SessionLosses(losses, tuple(rounds))


def _round(index: Index, rows: Sequence[int], number: int, moment: Moment, changes: Sequence[int]) -> Round:
    measures = (measure(index, rows, moment, changes) for measure in (artifact_trail, instruction_survival, user_messages))
    return Round(number, moment.at, tuple(Measure(item.name, item.title, item.says, item.count, item.of) for item in measures))


def _thinned(numbers: Sequence[int]) -> list[int]:
    if len(numbers) <= ROUNDS:
        return list(numbers)
    return [numbers[at] for at in sorted({round(step * (len(numbers) - 1) / (ROUNDS - 1)) for step in range(ROUNDS)})]
