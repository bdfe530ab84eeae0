"""Every policy keeps what it promises, and all of them account for every message and token, on any transcript."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import counted, transcripts
from workbench import policies
from workbench.errors import WorkbenchError
from workbench.model import Budget, Transcript
from workbench.policies.base import FATES, PROMISES, Edited, Fate, Kept, Note, derive_fates, params_of
from workbench.turns import starts_turn
from workbench.validity import check_pairs

#: Beside the defaults, parameters that matter on a short transcript: "name field=value …".
TIGHT = (
    "kernel max_messages=4",
    "kernel max_messages=2",
    "kernel max_messages=6 note=extracts",
    "scv note=checkpoint",
    "scv summary_max_chars=80 bytes_per_token=1",
)
CASES = (*policies.list(), *TIGHT)
every_policy = pytest.mark.parametrize("name", CASES)
budgets = st.builds(Budget, st.sampled_from((0, 40, 100, 200, 400, 800, 2_000, 10_000, 128_000)), st.integers(0, 60), st.integers(0, 60))
LIVELY = settings(max_examples=60, deadline=None)


def policy_of(case):
    """The policy of a case: its name, and parameters that differ from the defaults."""
    name, *given_to = case.split()
    return policies.make_from_text(name, dict(pair.split("=") for pair in given_to))


def answer(name, transcript, budget, **options):
    """The selection, or None where the policy says that it cannot. Any other exception fails the test."""
    try:
        return policies.select(counted(transcript), policy_of(name), budget, **options)
    except WorkbenchError:
        return None


def promises(name, promise):
    return promise in policy_of(name).promises


def as_transcript(selection):
    """What was sent, as a transcript again; a note comes back with the role note."""
    source = selection.request.view.ledger.transcript
    sent = tuple(replace(message, index=index) for index, message in enumerate(selection.messages))
    return Transcript(source.id, source.source, sent, tools=source.tools, system=source.system)


@every_policy
@given(transcript=transcripts(), budget=budgets, history=st.sampled_from(("full", "live")), data=st.data())
@LIVELY
def test_messages_and_tokens_are_conserved(name, transcript, budget, history, data):
    thread = data.draw(st.sampled_from([thread.id for thread in transcript.threads]))
    chosen = answer(name, transcript, budget, history=history, thread=thread)
    if chosen is None:
        return
    view = chosen.request.view
    assert len(chosen.fates) == len(view.indices) == sum(chosen.counts.values())
    assert sum(chosen.fate_tokens.values()) == int(view.tokens.sum())
    assert [FATES.index(fate) for fate in chosen.fates] == derive_fates(view, chosen.items).tolist()

    outside = view.fixed - int(view.tokens[: view.lead].sum())
    assert chosen.before_tokens == view.total == outside + int(view.tokens.sum())
    assert chosen.after_tokens == outside + int(chosen.item_tokens.sum())
    assert len(chosen.items) == len(chosen.messages) == len(chosen.item_tokens)
    assert chosen.item_tokens.tolist() == view.ledger.count_messages(chosen.messages).tolist()

    known = set(view.indices.tolist())
    for item in chosen.items:
        if isinstance(item, Note):
            assert set(item.covers) <= known
            assert set(item.quotes) <= known  # the kernel's goal may be the words of a message that is kept
        elif isinstance(item, (Kept, Edited)):
            assert item.index in known
    assert all(fate == Fate.KEPT for fate in chosen.fate_codes[: view.lead])


@every_policy
@given(transcript=transcripts(), budget=budgets)
@LIVELY
def test_the_same_question_has_the_same_answer(name, transcript, budget):
    first, second = answer(name, transcript, budget), answer(name, transcript, budget)
    if first is None or second is None:
        assert first is second
        return
    assert first.items == second.items
    assert (first.fate_codes == second.fate_codes).all()
    assert tuple(first.steps) == tuple(second.steps)
    numbers = ("before_tokens", "after_tokens", "own_before", "own_after", "event", "side_calls", "state", "findings")
    assert [getattr(first, number) for number in numbers] == [getattr(second, number) for number in numbers]


@every_policy
@given(transcript=transcripts(), budget=budgets)
@LIVELY
def test_every_breach_is_a_finding_and_everything_can_be_said(name, transcript, budget):
    chosen = answer(name, transcript, budget, pins=range(0, len(transcript.messages), 2))
    if chosen is None:
        return
    rules = [finding.rule for finding in chosen.findings]
    assert ("over_window" in rules) == (chosen.after_tokens + budget.reserve_output_tokens > budget.max_tokens)
    assert ("grew" in rules) == (chosen.after_tokens > chosen.before_tokens)
    assert set(check_pairs(chosen.messages)) <= set(chosen.findings)
    lost = [
        index for index, fate in zip(chosen.request.view.indices.tolist(), chosen.fates, strict=True) if index % 2 == 0 and fate in ("dropped", "summarized")
    ]
    assert [finding.messages for finding in chosen.findings if finding.rule == "pin_removed"] == ([tuple(lost)] if lost else [])
    for index, fate in zip(chosen.request.view.indices.tolist(), chosen.fates, strict=True):
        assert chosen.explain(index).startswith(f"#{index} is {fate}: ")
    json.dumps([params_of(chosen.policy), dict(chosen.state)], allow_nan=False)
    assert repr(chosen)


@pytest.mark.parametrize("name", policies.list())
def test_what_it_says_of_itself(name):
    policy = policies.get(name)
    assert policy.info.name == name
    assert policy.promises <= PROMISES
    assert policy.info.title
    assert policy.info.summary
    assert policy.info.evidence
    assert policies.make(policy, **params_of(policy)) == policy
    assert eval(policies.as_python(policy), {"wb": type("wb", (), {"policies": policies})}) == policy


def having(promise):
    return pytest.mark.parametrize("name", [name for name in CASES if promises(name, promise)])


@having("budget")
@given(transcript=transcripts(), budget=budgets)
@LIVELY
def test_budget_its_own_estimate_stays_within_the_budget(name, transcript, budget):
    chosen = answer(name, transcript, budget)
    assert chosen is None or chosen.own_after <= budget.available


@having("pairs")
@given(transcript=transcripts(), budget=budgets)
@LIVELY
def test_pairs_no_pair_is_broken(name, transcript, budget):
    chosen = answer(name, transcript, budget)
    if chosen is None:
        return
    before = {(finding.rule, finding.messages) for finding in check_pairs(chosen.request.messages)}
    assert {(finding.rule, finding.messages) for finding in check_pairs(chosen.messages)} <= before


@having("last_user")
@given(transcript=transcripts(), budget=budgets)
@LIVELY
def test_last_user_the_newest_persons_message_is_kept(name, transcript, budget):
    chosen = answer(name, transcript, budget)
    if chosen is None:
        return
    people = [message.index for message in chosen.request.messages if starts_turn(message)]
    assert not people or Kept(people[-1]) in chosen.items


@having("idempotent")
@given(transcript=transcripts(), budget=budgets)
@LIVELY
def test_idempotent_its_own_answer_is_left_as_it_is(name, transcript, budget):
    chosen = answer(name, transcript, budget)
    if chosen is None:
        return
    for _ in range(2):
        sent = as_transcript(chosen)
        again = policies.select(counted(sent), policy_of(name), budget)
        assert set(again.fates) <= {"kept"}
        assert again.messages == sent.messages
        assert again.after_tokens == chosen.after_tokens
        chosen = again


@having("monotone")
@given(transcript=transcripts(), budget=budgets, more=st.integers(1, 400))
@LIVELY
def test_monotone_a_larger_window_keeps_no_less(name, transcript, budget, more):
    small = answer(name, transcript, budget)
    if small is None:
        return
    large = answer(name, transcript, replace(budget, max_tokens=budget.max_tokens + more))
    assert large is not None
    assert np.isin(small.indices, large.indices).all()
