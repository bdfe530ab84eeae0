"""The Lost tab: the measures' own numbers, bounded, as text."""

from __future__ import annotations

import json

import pytest

import workbench as wb
from tests.losses.made import said, session
from tests.shared import SAMPLES
from tests.strategies import counted
from tests.widgets.sessions import MARKUP
from workbench import losses
from workbench.losses.moment import first_rows, select_then
from workbench.model import Budget
from workbench.policies import Kernel, NoPolicy, Scv
from workbench.widgets.lost import ALL_ROWS, ROWS, lost
from workbench.widgets.session import Session
from workbench.widgets.side import Side


@pytest.fixture(scope="module")
def ledger():
    return wb.count(wb.read(SAMPLES / "coding_agent.jsonl"))


def rows_of(shown):
    return [row for measure in shown["measures"] for row in measure[5]]


def test_the_numbers_are_the_measures(ledger):
    bench = Session(ledger, Scv(), Budget(24_000))
    found = losses.of(bench.selection)
    shown = lost(bench, bench.selection, None)
    assert shown["head"] == f"If these {bench.selection.counts['summarized']:,} messages had been removed before #{found.cut}, the first one after them:"
    assert [(item[0], item[1]) for item in shown["measures"]] == [(m.title, f"{m.count:,} of {m.of:,}") for m in found if m.of]
    used = next(item for item in shown["measures"] if item[0] == "Used later and still there")
    assert used[2] == f"{found.reference_recall:.0%}".replace("%", " %")
    assert [row[2:] for row in used[5]] == [[row.source, row.removed, row.needed] for row in found["used_later"].lost]
    assert shown["proxies"] == losses.PROXIES
    json.dumps(shown)


def test_the_policy_is_asked_in_an_earlier_turn(ledger):
    bench = Session(ledger, Scv(), Budget(24_000))
    turns = bench.view.turns
    shown = lost(bench, bench.selection, 14)
    person = turns[14].messages[0]
    rows = bench.view.row_of[person] + 1
    then = select_then(bench.policy, bench.request, rows)
    assert then.request.view.messages[-1].index == person
    assert shown["head"] == f"Asked in turn 14, the policy removes {then.counts['summarized']:,} messages. The session then went on:"
    found = losses.of(then)
    assert found.cut == bench.view.indices[rows]
    assert (shown["measures"][0][1], shown["turn"]) == (f"{found['used_later'].count} of {found['used_later'].of}", 14)
    assert found["used_later"].of > losses.of(bench.selection)["used_later"].of  # there is more to come
    assert lost(bench, bench.selection, 1)["head"] == "Before turn 1 nothing is removed yet."
    assert lost(bench, bench.selection, 999)["turn"] == -1


def test_the_first_rows_are_a_view_of_their_own(ledger):
    view = ledger.view()
    part = first_rows(view, 50)
    assert len(part.indices) == len(part.messages) == len(part.tokens) == 50
    assert part.total == view.fixed + int(view.tokens[view.lead : 50].sum())
    assert part.turns == tuple(type(turn)(turn.index, tuple(i for i in turn.messages if i in part.row_of), turn.user) for turn in view.turns[: len(part.turns)])


def test_nothing_removed_is_said(ledger):
    bench = Session(ledger, NoPolicy(), Budget(24_000))
    shown = lost(bench, bench.selection, None)
    assert shown["head"] == "Nothing is removed, so nothing is lost."
    assert rows_of(shown) == []


def test_a_turn_without_an_answer_is_a_state(ledger):
    bench = Session(ledger, Scv(), Budget(20_000))
    shown = [lost(bench, bench.selection, turn) for turn in range(1, len(bench.view.turns))]
    small = Session(ledger, Scv(), Budget(11_000)) if all(not item["problem"] for item in shown) else bench
    if small.selection is not None:
        shown += [lost(small, small.selection, turn) for turn in range(1, len(small.view.turns))]
    for item in shown:
        assert item["head"]
        assert bool(item["measures"]) != item["problem"]


def test_a_real_compaction_is_measured_beside_it(ledger):
    bench = Session(ledger, Scv(), Budget(24_000))
    [real] = lost(bench, bench.selection, None)["recorded"]
    assert real["title"] == "Real compaction 1, before #137"
    assert real["facts"] == "68,403 → 15,412 tokens · after 50 answers and 128 messages · note of 546 tokens"
    files = next(item for item in real["measures"] if item[0] == "Files read again")
    assert files[1] == "10 of 14"
    assert files[5][0] == ["file", "docs/export_format.md", 8, 137, 138]


def test_rows_are_bounded_and_text_is_text():
    many = " ".join(f"name_{at}" for at in range(ALL_ROWS * 2))
    orders = "".join(f"Never use {MARKUP} {at}.\n" for at in range(ALL_ROWS * 2))
    transcript = session(said("user", many + "\n" + orders + "\x1b[31m never"), said("assistant", "ok"), said("user", "go"), said("assistant", many))
    bench = Session(counted(transcript), Kernel(max_messages=2), Budget(20_000))
    shown = lost(bench, bench.selection, None)
    assert all(len(measure[5]) <= ROWS for measure in shown["measures"])
    assert len(rows_of(shown)) <= ALL_ROWS
    assert max(len(row[1]) for row in rows_of(shown)) <= 160
    assert "\x1b" not in json.dumps(shown, ensure_ascii=False)


def test_the_side_panel_shows_it(ledger):
    side = Side(Session(ledger, Scv(), Budget(24_000)))
    side.tab = "lost"
    now = side.content["lost"]
    assert now["turn"] == -1
    side._told(side, {"type": "cut", "turn": 14}, [])
    assert side.content["lost"]["turn"] == 14
    for wrong in ({"type": "cut", "turn": "x"}, {"type": "cut", "turn": True}, {"type": "cut"}, "cut", None):
        side._told(side, wrong, [])
    assert side.content["lost"]["turn"] == 14
    side._told(side, {"type": "cut", "turn": -1}, [])
    assert side.content["lost"] == now
    side.close()
