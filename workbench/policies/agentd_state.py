"""What the agentd policy remembers from request to request, and what it measures of a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ledger import Ledger, View
from ..notes.structured_fill import LISTS
from ..systems.agentd import Summary, User, est_tokens
from ..systems.agentd_fold import FEWEST_FOLDED, FEWEST_KEPT
from ..systems.mapping.agentd import as_message
from ..tokens.base import Bools, Ints


@dataclass(frozen=True, slots=True)
class State:
    """What the context is after a request: the original's, with messages as rows of the history.

    Parameters
    ----------
    seen : int
        Messages that were appended so far.
    folded : int
        How many of them, the oldest, were folded.
    est_tokens : int
        As the original keeps it: messages are added when they come, and all is counted anew only after a fold.
    sources : mapping of str to sequence of int
        For each list of the summary, ``Message.index`` that each item was taken from.
    narrated : sequence of int
        ``Message.index`` of each message whose words the narrative holds.
    """

    seen: int = 0
    folded: int = 0
    est_tokens: int = 0
    version: int = 1
    summary: Summary = field(default_factory=Summary)
    sources: Mapping[str, Sequence[int]] = field(default_factory=dict)
    narrated: Sequence[int] = ()

    def as_json(self) -> dict[str, Any]:
        """The state as values that JSON can hold; tuples, so that nobody changes them."""
        summary = self.summary
        lists = {name: getattr(summary, name) for name in LISTS}
        numbers = {"seen": self.seen, "folded": self.folded, "est_tokens": self.est_tokens, "version": self.version}
        told = {"narrative": summary.narrative, "covers_messages": summary.covers_messages, "updated": summary.updated}
        return {**numbers, "summary": {**lists, **told}, "sources": dict(self.sources), "narrated": self.narrated}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> State:
        """Back from `as_json`, also after a way through JSON."""
        summary: dict[str, Any] = {key: tuple(value) if key in LISTS else value for key, value in state["summary"].items()}
        sources = {name: tuple(found) for name, found in state["sources"].items()}
        return cls(**{**state, "summary": Summary(**summary), "sources": sources, "narrated": tuple(state["narrated"])})


@dataclass(frozen=True, slots=True)
class Fold:
    """The context before a request, with what the request appended, and as it is sent.

    Parameters
    ----------
    full : bool
        The estimate passed the share of the window.
    resumed : str or None
        Why the selection before was not gone on from.
    """

    start: State
    grown: State
    end: State
    full: bool
    resumed: str | None

    @property
    def folds(self) -> bool:
        """Whether messages were folded for this request."""
        return self.end.folded > self.grown.folded


@dataclass(frozen=True)
class Measured:
    """What the original estimates of a history, one row per message after the leading system text.

    Parameters
    ----------
    sums : int array, shape (n + 1,)
        Tokens of the messages before each row.
    users : int array, shape (n,)
        For each row the newest row up to it that a user wrote; -1 if there is none.
    """

    sums: Ints
    users: Ints

    @property
    def count(self) -> int:
        """Messages."""
        return len(self.users)

    def tokens(self, start: int, end: int) -> int:
        """Tokens of the messages of some rows."""
        return int(self.sums[end] - self.sums[start])

    def fold(self, start: int, keep_last: int, target: int | None) -> int:
        """First row that is kept when the messages from `start` on are planned; `start` if nothing is folded. `fold_count` in sums."""
        count = self.count - start
        if count < keep_last + FEWEST_FOLDED:
            return start
        return max(start, int(self.users[self.aim(keep_last, target)]))

    def aim(self, keep_last: int, target: int | None) -> int:
        """First row that would be kept if it had not to be a user's."""
        first = self.count - keep_last
        if target is None:
            return first
        fits = int(np.searchsorted(self.sums, self.sums[-1] - target))
        return max(first, min(fits, self.count - FEWEST_KEPT))


def measure(view: View) -> Measured:
    """The estimates of a view's history; made once for a view, from estimates that are made once for a ledger."""

    def build() -> Measured:
        tokens, users = view.ledger.memo.get("agentd estimates", lambda: _estimates(view.ledger))
        rows = view.indices[view.lead :]
        places = np.where(users[rows], np.arange(len(rows)), -1)
        return Measured(np.concatenate([[0], np.cumsum(tokens[rows])]), np.maximum.accumulate(places))

    return view.memo.get("agentd measured", build)


def _estimates(ledger: Ledger) -> tuple[Ints, Bools]:
    """For each message of a transcript its estimate, and whether it is a user's to the original."""
    held = [as_message(message, {}) for message in ledger.transcript.messages]  # a tool's name costs nothing
    tokens = np.fromiter(map(est_tokens, held), np.int64, len(held))
    return tokens, np.fromiter((isinstance(message, User) for message in held), bool, len(held))
