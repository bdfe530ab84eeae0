"""scv and the kernel after a change of the budget: against the readable twin, and in ms by this machine's pace."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.common import REFERENCE_PACE, Figure, big_transcript, cpu_times, pace
from workbench.ledger import count
from workbench.model import Budget
from workbench.policies import Kernel, Scv
from workbench.policies.base import Request
from workbench.systems import scv
from workbench.systems.mapping.scv import as_scv

_LAPS = 20


def figures() -> Iterator[Figure]:
    ledger = count(big_transcript(10_000, 10_000_000))
    view, policy = ledger.view(), Scv()
    prompt, tools, history = as_scv(view)
    policy.select(Request(view))
    windows = iter(range(30_000, 30_000_000, 997))

    def fast() -> None:
        for _ in range(_LAPS):
            policy.select(Request(view, Budget(next(windows))))

    def twin() -> None:
        scv.select(scv.Config(next(windows)), prompt, tools, history)

    one, readable, beat = cpu_times(fast, twin, pace, rounds=9)
    one /= _LAPS
    yield Figure.at_most("scv, new budget at 10k messages / 10 MB, of its readable twin", one / readable, 1 / 50)
    yield Figure.at_most("scv, new budget at 10k messages / 10 MB, ms at the reference pace", one * 1000 * REFERENCE_PACE / beat, 2)

    slots = Kernel()

    def kernel() -> None:
        for _ in range(_LAPS):
            slots.select(Request(view, Budget(next(windows))))

    one, beat = cpu_times(kernel, pace, rounds=9)
    yield Figure.at_most("kernel, new budget at 10k messages / 10 MB, ms at the reference pace", one / _LAPS * 1000 * REFERENCE_PACE / beat, 2)
