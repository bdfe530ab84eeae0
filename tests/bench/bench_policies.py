"""scv after a change of the budget: against its readable twin, and in ms by this machine's pace."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.common import Figure, big_transcript, cpu_times
from workbench.ledger import count
from workbench.model import Budget
from workbench.policies.base import Request
from workbench.policies.scv import Scv
from workbench.systems import scv
from workbench.systems.mapping.scv import as_scv

_LAPS = 20
#: CPU seconds of `_pace` on the kind of machine that the target in ms is meant for (2 shared cores of a cloud server).
_REFERENCE_PACE = 0.005


def _pace() -> int:
    """A fixed amount of plain Python: how fast is this machine now?"""
    total = 0
    for number in range(150_000):
        total += number % 7
    return total


def figures() -> Iterator[Figure]:
    ledger = count(big_transcript(10_000, 10_000_000))
    view, policy = ledger.view(), Scv()
    prompt, tools, history = as_scv(view)
    policy.select(Request(view))
    windows = iter(range(30_000, 3_000_000, 997))

    def fast() -> None:
        for _ in range(_LAPS):
            policy.select(Request(view, Budget(next(windows))))

    def twin() -> None:
        scv.select(scv.Config(next(windows)), prompt, tools, history)

    one, readable, pace = cpu_times(fast, twin, _pace, rounds=9)
    one /= _LAPS
    yield Figure.at_most("scv, new budget at 10k messages / 10 MB, of its readable twin", one / readable, 1 / 50)
    yield Figure.at_most("scv, new budget at 10k messages / 10 MB, ms at the reference pace", one * 1000 * _REFERENCE_PACE / pace, 2)
