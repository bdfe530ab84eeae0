"""A policy's own estimate row by row is what its selections say of the whole."""

from __future__ import annotations

import pytest

from tests.sessions_with_usage import with_subagents
from tests.synthetic import session
from workbench.ledger import count
from workbench.model import Budget
from workbench.policies import registry
from workbench.policies.base import Request
from workbench.policies.own import own_costs
from workbench.tokens import RatioCounter


@pytest.mark.parametrize("name", registry.SYSTEMS)
@pytest.mark.parametrize("history", ["full", "live"])
@pytest.mark.parametrize("thread", ["main", "agent 0"])
def test_rows_and_fixed_part_sum_to_own_before(name, history, thread):
    transcript = session(90, compacted=True) if thread == "main" else with_subagents()
    view = count(transcript, RatioCounter()).view(thread, history)
    policy = registry.get(name)
    costs = own_costs(policy, view)
    assert (costs is None) == (name == "kernel")
    if costs is not None:
        fixed, rows = costs
        assert rows.shape == view.indices.shape
        assert not rows[: view.lead].any()
        assert fixed + rows.sum() == policy.select(Request.on(view, Budget(10_000_000))).own_before
