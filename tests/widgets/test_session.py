"""The state behind the views: one answer, always that of the present values."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from tests.synthetic import session as made_session
from tests.widgets.made import Everything, Newest
from workbench.errors import BudgetError, PolicyError, WorkbenchError
from workbench.ledger import count
from workbench.model import Budget
from workbench.widgets.session import SETTLE, Session


@pytest.fixture(scope="module")
def ledger():
    return count(made_session(200))


def fresh(session: Session):
    return Session(session.ledger, session.policy, session.budget, history=session.history, pins=session.pins).selection


def same(one, other) -> bool:
    return (
        one.after_tokens == other.after_tokens
        and np.array_equal(one.fate_codes, other.fate_codes)
        and one.request.budget == other.request.budget
        and one.policy == other.policy
    )


def test_every_setter_gives_the_answer_of_a_fresh_computation(ledger):
    session = Session(ledger, Newest(), Budget(20_000))
    for change in (
        {"budget": 15_000},
        {"budget": Budget(18_000, 1_000, 0)},
        {"policy": Newest(share=0.5)},
        {"policy": Everything()},
        {"pins": [3, 4]},
    ):
        for name, value in change.items():
            setattr(session, name, value)
        assert same(session.selection, fresh(session)), change


def test_an_int_changes_the_window_only(ledger):
    session = Session(ledger, Newest(), Budget(20_000, 1_000, 500))
    session.budget = 12_000
    assert session.budget == Budget(12_000, 1_000, 500)


@pytest.mark.parametrize("wrong", [-1, 1.5, "32k", True, Budget(32_000, -1)])
def test_a_budget_that_is_none_is_refused_and_changes_nothing(ledger, wrong):
    session = Session(ledger, Newest(), Budget(20_000))
    with pytest.raises(WorkbenchError, match="whole number"):
        session.budget = wrong
    assert session.budget == Budget(20_000)


def test_an_infeasible_budget_is_a_state_with_its_numbers(ledger):
    session = Session(ledger, Newest(), Budget(20_000))
    session.budget = 10_300
    assert session.selection is None
    assert isinstance(session.problem, BudgetError)
    assert (session.problem.needed, session.problem.available) == (session.view.fixed, 60)
    session.budget = 20_000
    assert session.problem is None
    assert same(session.selection, fresh(session))


def test_the_smallest_window_works_and_one_token_less_does_not(ledger):
    session = Session(ledger, Newest(share=0.7), Budget(20_000))
    smallest = session.smallest_window
    session.budget = smallest
    assert session.problem is None
    session.budget = smallest - 1
    assert isinstance(session.problem, BudgetError)
    assert session.smallest_window == smallest


def test_a_policy_that_says_its_smallest_window_is_believed(ledger):
    class Knows(Newest):
        def smallest_window(self, request):
            return 4_321

    assert Session(ledger, Knows(), Budget(20_000)).smallest_window == 4_321


def test_a_policy_without_the_promise_has_no_smallest_window(ledger):
    assert Session(ledger, Everything(), Budget(20_000)).smallest_window is None


def test_no_smallest_window_where_none_works(ledger):
    assert Session(ledger, Newest(limit=5), Budget(20_000)).smallest_window is None


def test_the_default_budget_removes_something_and_says_why():
    session = Session(count(made_session(200)), Newest())
    assert "about half" in session.budget_hint
    assert 0 < session.selection.counts["summarized"] < 200
    assert session.budget.max_tokens % 100 == 0


def test_the_default_budget_is_feasible_when_the_fixed_part_is_most_of_it():
    session = Session(count(made_session(6)), Newest(share=0.3))
    assert session.problem is None


def test_the_default_budget_of_a_session_that_does_not_fit_is_the_default():
    session = Session(count(made_session(5_000)), Newest())
    assert (session.budget, session.budget_hint) == (Budget(), "")


def test_history_is_offered_only_where_a_compaction_happened(ledger):
    assert Session(ledger, Newest()).histories == ("full",)
    with pytest.raises(WorkbenchError, match="history 'live'"):
        Session(ledger, Newest()).history = "live"
    session = Session(count(made_session(200, compacted=True)), Newest(), Budget(20_000))
    assert session.histories == ("full", "live")
    session.history = "live"
    assert len(session.view.indices) < 199
    assert same(session.selection, fresh(session))


def test_selected_and_pins_are_checked(ledger):
    session = Session(ledger, Newest())
    session.selected = 17
    assert session.selected == 17
    session.selected = -1
    assert session.selected is None
    for wrong in (200, 999):
        with pytest.raises(WorkbenchError, match="no message"):
            session.selected = wrong
    with pytest.raises(WorkbenchError, match="pin 999"):
        session.pins = [999]
    with pytest.raises(WorkbenchError, match="selected = 'x': give a message's index"):
        session.selected = "x"
    session.selected = ledger.messages.index[1]
    assert session.selected == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("policy", 3), ("policy", []), ("policy", Newest), ("pins", ["1"]), ("pins", [1.5]), ("pins", None), ("pins", 3), ("ledger", None), ("budget", 1.5)],
)
def test_a_value_that_is_not_allowed_changes_nothing(ledger, name, value):
    session = Session(ledger, Newest(), 2_000, pins=[4])
    before = (session.policy, session.pins, session.ledger, session.budget, session.selection)
    with pytest.raises(WorkbenchError):
        setattr(session, name, value)
    assert (session.policy, session.pins, session.ledger, session.budget, session.selection) == before


def test_numbers_of_a_frame_are_numbers(ledger):
    session = Session(ledger, Newest(), np.int64(2_000), pins=ledger.messages.index[3:5])
    assert (session.budget.max_tokens, type(session.budget.max_tokens), session.pins) == (2_000, int, {3, 4})


def test_reset_goes_back_to_the_start(ledger):
    session = Session(ledger, Newest())
    start = (session.policy, session.budget, session.history, session.budget_hint)
    session.policy, session.budget = Everything(), 50_000
    assert session.budget_hint == ""
    session.reset()
    assert (session.policy, session.budget, session.history, session.budget_hint) == start
    assert same(session.selection, fresh(session))


def test_a_ledger_of_another_transcript_is_refused(ledger):
    with pytest.raises(WorkbenchError, match="another transcript"):
        Session(ledger, Newest()).ledger = count(made_session(50))


def test_better_counts_pick_the_default_budget_again_unless_one_was_given():
    from workbench.tokens.base import RatioCounter

    transcript = made_session(200)
    exact = count(transcript, RatioCounter(2.0))
    session = Session(count(transcript), Newest())
    session.ledger = exact
    assert session.budget == Session(exact, Newest()).budget
    given = Session(count(transcript), Newest(), Budget(20_000))
    given.ledger = exact
    assert given.budget == Budget(20_000)
    assert same(given.selection, fresh(given))


def test_an_error_of_the_policy_is_a_state(ledger):
    class Refuses(Newest):
        def select(self, request, previous=None):
            raise PolicyError("test.newest cannot: no reason")

    session = Session(ledger, Newest(), Budget(20_000))
    session.policy = Refuses()
    assert session.selection is None
    assert str(session.problem) == "test.newest cannot: no reason"
    assert session.smallest_window is None


def test_b88_fast_events_do_not_pile_up_and_the_last_value_wins(ledger):
    """B88: 50 value changes in one second with a recompute of 100 ms."""
    session = Session(ledger, Newest(pause=0.1), Budget(20_000))
    settled: list[int] = []
    session.on_settle(lambda: settled.append(session.budget.max_tokens))

    async def drag() -> None:
        for step in range(50):
            session.budget = 20_000 + 100 * step
            await asyncio.sleep(0.02)
        while not settled or settled[-1] != 24_900:
            await asyncio.sleep(0.01)

    session.flush()
    before = session.recomputed
    asyncio.run(drag())
    assert session.recomputed - before <= 12
    assert session.selection.request.budget == Budget(24_900)
    assert same(session.selection, fresh(session))


def test_a_quick_policy_follows_each_step_and_settles_once(ledger):
    session = Session(ledger, Newest(), Budget(20_000))
    session.flush()
    steps: list[int] = []
    settled: list[float] = []

    async def drag() -> float:
        loop = asyncio.get_running_loop()
        session.on_step(lambda: steps.append(session.selection.request.budget.max_tokens))
        session.on_settle(lambda: settled.append(loop.time()))
        for step in range(20):
            session.budget = 15_000 + step
            await asyncio.sleep(0)
        last = loop.time()
        while not settled:
            await asyncio.sleep(0.005)
        return last

    last = asyncio.run(drag())
    assert steps == [15_000 + step for step in range(20)]
    assert len(settled) == 1
    assert settled[0] - last >= SETTLE * 0.9


def test_reading_never_waits_for_the_loop(ledger):
    session = Session(ledger, Newest(pause=0.03), Budget(20_000))
    session.flush()

    async def set_and_read():
        session.budget = 19_000
        session.budget = 18_000
        return session.selection.request.budget

    assert asyncio.run(set_and_read()) == Budget(18_000)


def test_nothing_is_called_after_close(ledger):
    session = Session(ledger, Newest(), Budget(20_000))
    called: list[int] = []

    async def go() -> None:
        session.on_settle(lambda: called.append(1))
        session.budget = 19_000
        session.close()
        await asyncio.sleep(SETTLE * 2)

    asyncio.run(go())
    assert called == []


def test_a_copy_of_the_state_is_the_same_state(ledger):
    session = Session(ledger, Newest(share=0.5), Budget(20_000))
    assert session.params == {"limit": None, "share": 0.5, "tag": "note", "loud": False, "place": "front", "pause": 0.0}
    assert replace(session.policy, **session.params) == session.policy
