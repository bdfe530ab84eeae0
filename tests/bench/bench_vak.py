"""vak after a change of the budget: against its readable twin, and in ms by this machine's pace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.bench.common import REFERENCE_PACE, Figure, big_transcript, cpu_times, pace
from workbench.ledger import count
from workbench.model import Budget
from workbench.policies import Vak
from workbench.policies.base import Request
from workbench.systems import vak, vak_assemble
from workbench.systems.mapping.vak import as_vak

_LAPS = 20


def figures() -> Iterator[Figure]:
    ledger = count(big_transcript(10_000, 10_000_000))
    view = ledger.view()
    prompt, tools, history = as_vak(view)
    bounds = [*(view.row_of[turn.messages[0]] for turn in view.turns), len(history)]
    turns = [history[start:end] for start, end in pairwise(bounds)]
    windows = iter(range(30_000, 30_000_000, 997))
    size = sum(map(vak.message_chars, history)) // 4

    def window() -> int:
        return 30_000 + next(windows) % size

    for ranking in ("recency", "relevance"):
        policy = Vak(ranking=ranking)
        policy.select(Request(view))

        def fast(policy: Vak = policy) -> None:
            for _ in range(_LAPS):
                policy.select(Request(view, Budget(window())))

        def twin(ranking: str = ranking) -> None:
            profile = vak.Capacity.from_metadata(window(), 10_240)
            vak_assemble.assemble(profile, prompt, tools, turns, ranking=ranking)  # type: ignore[arg-type]

        one, readable, beat = cpu_times(fast, twin, pace, rounds=9)
        one /= _LAPS
        name = f"vak ({ranking}), new budget at 10k messages / 10 MB"
        yield Figure.at_most(f"{name}, of its readable twin", one / readable, 1 / 50)
        yield Figure.at_most(f"{name}, ms at the reference pace", one * 1000 * REFERENCE_PACE / beat, 2)
