"""agentd after a change of the budget: against its readable twin, and in ms by this machine's pace."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.common import REFERENCE_PACE, Figure, big_transcript, cpu_times, pace
from tests.policies.agentd_twin import Twin
from workbench.ledger import count
from workbench.model import Budget
from workbench.policies.agentd import Agentd
from workbench.policies.base import Request
from workbench.systems.mapping.agentd import as_messages

_LAPS = 20


def figures() -> Iterator[Figure]:
    view, policy = count(big_transcript(10_000, 10_000_000)).view(), Agentd()
    held = as_messages(view, view.messages[view.lead :])
    windows = iter(range(30_000, 3_000_000, 997))
    targets = iter(range(4_000, 400_000, 301))

    def fast() -> None:
        for _ in range(_LAPS):
            chosen = policy.select(Request(view, Budget(next(windows))))
        assert chosen.notes

    def folds() -> None:
        for _ in range(_LAPS):
            Agentd(target=next(targets), keep_last=2_000).select(Request(view, Budget(30_000)))

    def readable() -> None:
        twin = Twin()
        twin.send(view, policy, next(windows), held)
        assert twin.folded

    fast(), folds()
    one, other, slow, unit = cpu_times(fast, folds, readable, pace, rounds=9)
    one, other = one / _LAPS, other / _LAPS
    yield Figure.at_most("agentd, new budget at 10k messages / 10 MB, of its readable twin", one / slow, 1 / 50)
    yield Figure.at_most("agentd, new budget at 10k messages / 10 MB, ms at the reference pace", one * 1000 * REFERENCE_PACE / unit, 2)
    yield Figure.at_most("agentd, new target (another fold), of its readable twin", other / slow, 1 / 10)
