from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

import pytest

import workbench as wb
from tests.losses.made import ledger_of, said
from tests.shared import SAMPLES
from workbench import losses, policies
from workbench.model import Budget
from workbench.policies.base import Kept, PolicyInfo, Request, make_selection


@dataclass(frozen=True)
class Halves:
    """Drops the first half of what it is given; with a window of 1,000 to 1,999 all but the first message."""

    info: ClassVar[PolicyInfo] = PolicyInfo("halves", "Halves", "")
    promises: ClassVar[frozenset[str]] = frozenset()

    def select(self, request, previous=None):
        indices = request.view.indices.tolist()
        keep = indices[:1] if 1_000 <= request.budget.max_tokens < 2_000 else indices[len(indices) // 2 :]
        return make_selection(self, request, [Kept(index) for index in keep])


@dataclass(frozen=True)
class Dice(Halves):
    """Keeps one message, drawn by lot."""

    def select(self, request, previous=None):
        return make_selection(self, request, [Kept(_random.choice(request.view.indices.tolist()))])


_random = random.Random(1)
ROWS = [said("user", f"Never lose name_{at}.") for at in range(8)]


def test_each_pass_halves_what_is_left():
    found = losses.chain(Halves(), Request.on(ledger_of(*ROWS).view()), 4)
    assert [(item.number, item.messages, item.identifiers, item.instructions) for item in found] == [
        (0, 8, 8, 8),
        (1, 4, 4, 4),
        (2, 2, 2, 2),
        (3, 1, 1, 1),
        (4, 1, 1, 1),
    ]


def test_what_is_not_stable_is_found():
    request = Request.on(ledger_of(*ROWS).view(), Budget(800, 0, 0))
    found = losses.stability(Halves(), request)
    assert (found.same, found.settled, found.monotone) == (True, False, False)
    assert [(row.source, row.text) for row in found.breaks[:1]] == [(4, "sent at 800 tokens, not at 1,000")]
    assert losses.stability(Dice(), Request.on(ledger_of(*ROWS * 20).view())).same is False
    assert losses.stability(Halves(), request, windows=(100, 500)).monotone


@pytest.mark.parametrize("name", ["none", "kernel", "scv", "vak", "agentd"])
def test_the_policies_on_a_sample(name):
    chosen = wb.select(wb.count(wb.read(SAMPLES / "coding_agent.jsonl")), name, Budget(32_000))
    found = losses.stability(chosen.policy, chosen.request)
    assert found.same
    if "idempotent" in chosen.policy.promises:
        assert found.settled
    if "monotone" in chosen.policy.promises:
        assert found.monotone
    passes = losses.chain(chosen.policy, chosen.request, 2)
    assert passes[1].tokens == chosen.after_tokens
    assert passes[0].identifiers >= passes[1].identifiers >= passes[2].identifiers > 0
    assert (name == "none") == (passes[0].identifiers == passes[1].identifiers)


def test_a_policy_without_an_answer_has_no_passes():
    request = Request.on(ledger_of(*ROWS).view(), Budget(1, 0, 0))
    strict = policies.Scv()
    assert [item.number for item in losses.chain(strict, request)] == [0]
    assert losses.stability(strict, request).settled is None
