from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.losses.made import ledger_of, said, sessions
from tests.shared import SAMPLES
from tests.strategies import counted
from workbench import losses, policies
from workbench.errors import WorkbenchError
from workbench.losses.moment import first_rows
from workbench.losses.session import ROUNDS
from workbench.model import Budget
from workbench.policies.base import Request
from workbench.policies.registry import as_policy


def follow(ledger, name, budget):
    """Every request of the main thread, one after the other."""
    policy, view, follower, previous = as_policy(name), ledger.view(), losses.Follower(ledger), None
    for row, message in enumerate(view.messages):
        if message.role == "assistant":
            previous = policy.select(Request.on(first_rows(view, row), budget), previous)
            follower.see(previous, message.index)
    return follower


@given(sessions())
@settings(max_examples=40, deadline=None)
def test_who_sends_everything_loses_nothing(transcript):
    found = follow(counted(transcript), "none", Budget(100, 0, 0)).losses()
    assert found.rounds == ()
    assert found.losses.cut == -1
    assert [measure.lost for measure in found.losses if measure.name != "pending_work"] == [()] * 8


@given(transcript=sessions(30), window=st.integers(20, 200), name=st.sampled_from(("kernel", "agentd", "scv", "vak")))
@settings(max_examples=60, deadline=None)
def test_the_last_request_stands_as_its_selection_says(transcript, window, name):
    ledger = counted(transcript)
    try:
        follower = follow(ledger, name, Budget(window, 0, 0))
    except WorkbenchError:
        return
    found = follower.losses()
    for measure in found.losses:
        assert 0 <= measure.count <= measure.of
    if follower.newest is None:
        return
    last = follower.newest
    alone = losses.of(last)
    for measure in ("artifact_trail", "instruction_survival", "user_messages", "note_precision"):
        assert (found.losses[measure].count, found.losses[measure].of) == (alone[measure].count, alone[measure].of)


def test_one_change_is_the_same_as_one_selection():
    rows = [said("user", "see read_rows at 8080"), said("assistant", "ok"), said("user", "go"), said("assistant", "read_rows, 8080")]
    ledger = ledger_of(*rows)
    view = first_rows(ledger.view(), 3)
    chosen = policies.Kernel(max_messages=3).select(Request.on(view))
    follower = losses.Follower(ledger)
    follower.see(policies.NoPolicy().select(Request.on(first_rows(ledger.view(), 1))), 1)
    follower.see(chosen, 3)
    session, alone = follower.losses().losses, losses.of(chosen)
    assert alone.cut == session.cut == 3
    assert [dataclasses.replace(row, change=0) for row in session["used_later"].rows] == list(alone["used_later"].rows)
    assert session["used_later"].of == 2


@pytest.mark.parametrize("name", ["scv", "agentd", "vak", "kernel"])
def test_a_sample_session(name):
    ledger = wb.count(wb.read(SAMPLES / "coding_agent.jsonl"))
    follower = follow(ledger, name, Budget(24_000))
    found = follower.losses()
    assert found.losses["used_later"].of > 0
    assert found.losses.reference_recall is not None
    assert 1 <= len(found.rounds) <= ROUNDS
    assert [item.at for item in found.rounds] == sorted({item.at for item in found.rounds})
    assert set(found.losses.changes) <= {index for index, message in enumerate(ledger.transcript.messages) if message.role == "assistant"}
    for row in found.losses["used_later"].rows:
        assert row.source < row.removed <= row.needed


def test_files_survive_better_in_a_larger_window():
    ledger = wb.count(wb.read(SAMPLES / "coding_agent.jsonl"))
    small, large = (follow(ledger, "scv", Budget(window)).losses().losses for window in (28_000, 60_000))
    assert small["artifact_trail"].of == large["artifact_trail"].of
    assert small["artifact_trail"].count < large["artifact_trail"].count


def test_a_request_without_an_answer_carries_everything():
    rows = [said("user", "see read_rows at 8080"), said("assistant", "ok"), said("user", "go"), said("assistant", "read_rows, 8080")]
    ledger = ledger_of(*rows)
    follower = losses.Follower(ledger)
    follower.see_all(ledger.view().indices[:1], 1)
    follower.see_all(ledger.view().indices[:3], 3)
    found = follower.losses()
    assert (found.losses.cut, found.losses["used_later"].of, found.rounds) == (-1, 0, ())
    assert found.losses["user_messages"].count == found.losses["user_messages"].of == 2


@pytest.mark.parametrize("history", ["full", "live"])
def test_both_histories_of_a_session_with_a_real_compaction(history):
    """With everything sent, what is lost in the live history is what the real compaction removed."""
    ledger = wb.count(wb.read(SAMPLES / "coding_agent.jsonl"))
    transcript = ledger.transcript
    [compaction] = transcript.compacted()
    follower = losses.Follower(ledger, history=history)
    every = transcript.thread() if history == "live" else transcript.history()
    for index in every:
        if transcript.messages[index].role == "assistant":
            cut = compaction.after if history == "live" and index > compaction.after else -1
            follower.see_all(np.array([row for row in every if cut < row < index], np.int64), index)
    found = follower.losses()
    if history == "full":
        assert found.losses.cut == -1
        return
    [real] = losses.of_recorded(ledger)
    assert [row.needed for row in found.losses["read_again"].rows] == [row.needed for row in real.losses["read_again"].rows]
    assert {row.text for row in found.losses["used_later"].lost} == {row.text for row in real.losses["used_later"].lost}
    assert [item.measures[0].count for item in found.rounds] == [real.losses["artifact_trail"].count]
