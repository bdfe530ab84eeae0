"""What the losses of a whole session cost, and how that grows with the session."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tests.bench.common import Figure, big_transcript, cpu_times
from workbench import losses
from workbench.ledger import Ledger, count
from workbench.losses.index import index_of
from workbench.tokens.base import RatioCounter

MESSAGES = 10_000
WINDOW = 300  # messages that each request keeps


def _follow(ledger: Ledger) -> losses.SessionLosses:
    """A request for every answer, each with the newest messages only: the context changes at every request."""
    index_of(ledger)
    follower = losses.Follower(ledger)
    for message in ledger.transcript.messages:
        if message.role == "assistant":
            follower.see_all(np.arange(max(0, message.index - WINDOW), message.index), message.index)
    return follower.losses()


def figures() -> Iterable[Figure]:
    """Ratios, measured side by side."""
    small, large = (count(big_transcript(number, number * 2_000), RatioCounter(4)) for number in (MESSAGES // 2, MESSAGES))

    def fresh(ledger: Ledger) -> Ledger:
        return count(ledger.transcript, ledger.counter)

    half, whole, count_again, look = cpu_times(lambda: _follow(small), lambda: _follow(large), lambda: fresh(large), lambda: index_of(fresh(large)), rounds=3)
    yield Figure.at_most("losses of 5,000 requests over 10k messages / looking at every word once", whole / max(look - count_again, 1e-9), 1)
    yield Figure.at_most("losses of a session twice as long", whole / half, 2.6)
