"""The Compare tab without a browser: its numbers are the selections', it follows, steps, and is gone when closed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from ipywidgets.widgets.widget import _instances

import workbench as wb
from tests.synthetic import session as made_session
from tests.widgets import sessions
from tests.widgets.made import Newest
from tests.widgets.sessions import MARKUP, Mixed
from tests.widgets.test_runs import runs_of
from workbench.errors import BudgetError, PolicyError, WorkbenchError
from workbench.ledger import count
from workbench.policies.registry import SYSTEMS
from workbench.tokens import RatioCounter
from workbench.widgets.compare import Compare
from workbench.widgets.session import Session


@pytest.fixture(scope="module")
def ledger():
    return count(made_session(200, compacted=True), RatioCounter())


@pytest.fixture
def panel(ledger):
    made = Compare(Session(ledger, Newest(), 20_000))
    made.others = ["none", "scv"]
    yield made
    made.close()


@pytest.fixture
def bench(ledger):
    made = wb.Workbench(ledger, "scv", 20_000)
    yield made
    made.close()


def tell(panel: Compare, **content: Any) -> None:
    panel._told(None, content, [])


def replies(panel: Compare, **content: Any) -> dict[str, Any]:
    """The reply to one question of the page."""
    sent: list[dict[str, Any]] = []
    panel.send = lambda reply, buffers=None: sent.append(reply)  # type: ignore[method-assign]
    tell(panel, id="q", **content)
    del panel.send
    [reply] = sent
    assert reply["id"] == "q"
    return reply


def test_its_numbers_are_those_of_a_comparison(panel, ledger):
    frame = wb.compare(ledger, [Newest(), "none", "scv"], wb.Budget(20_000))
    shown = panel.content
    assert [row["label"] for row in shown["rows"]] == frame.index.tolist() == ["test.newest", "none", "scv"]
    for row, (_, want) in zip(shown["rows"], frame.iterrows(), strict=True):
        assert row["after"] == want["after_tokens"]
        assert row["counts"] == [want[fate] for fate in ("kept", "edited", "summarized", "dropped")]
        assert (row["own"], row["notes"], row["note_tokens"], row["findings"]) == (want["own_after"], want["notes"], want["note_tokens"], want["findings"])
        assert sum(tokens for _, _, tokens in runs_of(row["sent"])) == want["after_tokens"]
        assert sum(tokens for _, _, tokens in runs_of(row["fates"])) == shown["tokens"] == ledger.view().total
    assert {kind: each for kind, _, each in shown["kinds"]} == {kind: frame[kind].tolist() for kind, *_ in shown["kinds"]}
    assert shown["domain"] == max(shown["tokens"], frame["after_tokens"].max())
    parted = wb.policies.compare(ledger, [Newest(), "none", "scv"], wb.Budget(20_000))
    assert sum(shown["ways"]) == len(parted.differ)
    marked = sum(tokens for style, _, tokens in runs_of(shown["marks"]) if style)
    assert marked == int(parted.view.tokens[parted.differ_rows].sum())
    assert f"part on {len(parted.differ):,} of" in panel.status


def test_the_first_row_is_the_very_selection_of_the_session(panel):
    assert panel.comparison.outcomes[0] is panel._session.selection


def test_the_rest_of_the_four_systems_is_the_default(bench):
    bench.bottom.tab = "compare"
    panel = bench.bottom.panels["compare"]
    assert panel.comparison.labels == ("scv", *(name for name in SYSTEMS if name != "scv"))
    bench.policy = "vak"
    assert panel.comparison.labels == ("vak", "kernel", "agentd", "scv")
    bench.policy = "none"
    assert panel.comparison.labels == ("none", "kernel", "agentd", "scv")


def test_it_follows_the_session_while_it_is_open_and_only_then(bench):
    bench.bottom.tab = "compare"
    panel = bench.bottom.panels["compare"]
    bench.budget = 16_000
    assert panel.comparison.budget == bench.budget
    assert panel.content["rows"][0]["after"] == bench.selection.after_tokens
    bench.policy = wb.policies.Scv(summary_max_chars=500)
    assert panel.comparison.policies[0] == bench.policy
    bench.pins = [9]
    assert panel.comparison.request.pins == {9}
    bench.history = "live"
    assert panel.comparison.view is bench.ledger.view(history="live")
    version = panel.content["version"]
    bench.bottom.tab = "turns"
    bench.budget, bench.selected = 18_000, 20
    assert panel.content["version"] == version
    bench.bottom.tab = "compare"
    assert panel.comparison.budget == bench.budget
    assert panel.about["text"].startswith("#20 ")


def test_an_infeasible_policy_is_a_line(panel, bench):
    panel._session.budget = 10_300
    panel.refresh()
    mine, none, scv = panel.content["rows"]
    problem = panel._session.problem
    assert isinstance(problem, BudgetError)
    assert mine["after"] is None
    assert mine["problem"] == f"{problem.detail} · smallest window that works: {panel._session.smallest_window:,}"
    assert mine["needed"] == problem.needed
    assert none["after"] == panel.content["tokens"]
    assert "\n" not in scv["problem"]
    assert panel.status == "fewer than two have an answer at this budget"
    assert [row["fate"] for row in panel.about["rows"]] == []
    panel.selected = 12
    assert [row["fate"] for row in panel.about["rows"]] == ["", "kept", ""]
    bench.budget = 10_300  # the same within a workbench: nothing raises
    bench.bottom.tab = "compare"
    assert bench.bottom.panels["compare"].content["rows"][0]["after"] is None


def test_policies_are_added_and_removed(panel):
    tell(panel, ask="add", name="kernel")
    assert panel.comparison.labels == ("test.newest", "none", "scv", "kernel")
    assert panel.content["full"]
    tell(panel, ask="add", name="vak")
    assert "at most 3" in panel.content["error"]
    tell(panel, ask="remove", strip=1)
    assert panel.comparison.labels == ("test.newest", "scv", "kernel")
    assert panel.content["error"] == ""
    tell(panel, ask="add", name="scv")
    assert "here already" in panel.content["error"]
    tell(panel, ask="remove", strip=0)  # the session's policy stays
    assert panel.comparison.labels == ("test.newest", "scv", "kernel")
    tell(panel, ask="add", name="nonsense")
    assert "no policy is called 'nonsense'" in panel.content["error"]
    panel.refresh()
    assert panel.content["error"] == ""


def test_the_sessions_policy_can_be_held_as_it_is(panel):
    panel.others = []
    assert panel.status == "nothing to compare"
    tell(panel, ask="add", name="")
    assert panel.comparison.labels == ("test.newest",)  # the same twice says nothing
    panel._session.policy = Newest(share=0.5)
    panel.refresh()
    assert panel.comparison.labels == ("test.newest share=0.5", "test.newest")
    assert panel.comparison.policies[1] == Newest()


def test_others_can_be_set_from_python(panel):
    panel.others = [wb.policies.Scv(summary_max_chars=300), "scv"]
    assert panel.comparison.labels == ("test.newest", "scv summary_max_chars=300", "scv")
    with pytest.raises(PolicyError, match="no policy is called"):
        panel.others = ["nonsense"]
    with pytest.raises(WorkbenchError, match="at most 3"):
        panel.others = ["none", "scv", "kernel", "vak"]
    assert panel.comparison.labels == ("test.newest", "scv summary_max_chars=300", "scv")
    panel.others = None
    assert panel.comparison.labels == ("test.newest", *SYSTEMS[:3])


def test_steps_go_through_the_stretches_on_which_they_part(panel):
    panel.others = [Mixed()]
    starts = [int(panel.comparison.view.indices[start]) for start, _ in panel.comparison.stretches]
    assert len(starts) > 3
    seen = []
    for _ in starts:
        panel.step(1)
        seen.append(panel.selected)
    assert seen == starts
    panel.step(1)
    assert panel.selected == starts[-1]  # the end is the end
    assert panel.about["stretch"] == [len(starts), len(starts)]
    panel.step(-1)
    assert panel.selected == starts[-2]
    tell(panel, ask="end", by=-1)
    assert panel.selected == starts[0]
    panel.step(-1)
    assert panel.selected == starts[0]
    tell(panel, ask="move", by=1)
    assert panel.selected == starts[0] + 1
    tell(panel, ask="end", by=1)
    assert panel.selected == starts[-1]


def test_a_place_of_a_strip_is_its_message(panel):
    panel.others = [Mixed(shuffled=True)]
    view = panel.comparison.view
    start = view.total - int(view.tokens[view.lead :].sum()) - int(view.tokens[: view.lead].sum())
    middle = 0
    for row in (0, 5, len(view.indices) - 1):
        middle = start + int(view.tokens[:row].sum()) + view.tokens[row] / 2
        tell(panel, ask="pick", strip=-1, at=middle)
        assert panel.selected == view.indices[row]
        assert replies(panel, ask="name", strip=-1, at=middle)["text"].startswith(f"#{view.indices[row]} ")
    # what is sent, in the order sent
    mixed = panel.comparison["test.mixed"]
    left = start
    for item, size in zip(mixed.items, mixed.item_tokens.tolist(), strict=True):
        name = replies(panel, ask="name", strip=1, at=left + size / 2, sent=True)["text"]
        if hasattr(item, "index"):
            assert name.startswith(f"#{item.index} ")
            tell(panel, ask="pick", strip=1, at=left + size / 2, sent=True)
            assert panel.selected == item.index
            place = panel.about["rows"][1]["sent"]
            assert place == [left, left + size]
        elif hasattr(item, "covers"):
            assert name.startswith(f"note · {size:,} tokens · stands for {len(item.covers):,} message")
        else:
            assert name.startswith("added text · ")
        left += size
    assert left == mixed.after_tokens
    assert replies(panel, ask="name", strip=1, at=left + 50, sent=True)["text"] == ""
    if start:
        assert replies(panel, ask="name", strip=-1, at=start / 2)["text"].startswith("fixed part")


@pytest.mark.parametrize(
    "content",
    [
        {"ask": "name"},
        {"ask": "name", "strip": 77, "at": 3, "sent": True},
        {"ask": "name", "strip": "x", "at": None},
        {"ask": "pick", "strip": -1, "at": float("nan")},
        {"ask": "move", "by": "far"},
        {"ask": "remove", "strip": 9},
        {"ask": "__class__"},
        {"ask": []},
        "pick",
    ],
)
def test_what_no_page_sends_changes_nothing(panel, content):
    before = (panel.selected, panel.comparison.labels)
    panel._told(None, content, [])
    assert (panel.selected, panel.comparison.labels) == before


def test_why_is_said_for_each_policy(panel):
    removed = next(item.index for item in panel.comparison.differ if item.fates == {"test.newest": "summarized", "none": "kept", "scv": "summarized"})
    panel.selected = removed
    mine, none, scv = panel.about["rows"]
    assert (mine["fate"].split(",")[0], none["fate"], scv["fate"].split(",")[0]) == ("summarized", "kept", "summarized")
    assert "do not fit in" in mine["why"][0]
    assert none["sent"] is not None
    assert mine["sent"] is None
    assert none["sent"] == panel.about["at"]  # nothing before it was removed
    panel.selected = 10_000
    assert panel.about == {"text": "#10000 is not in the history that is shown.", "rows": []}
    panel.selected = -1
    assert panel.about == {"text": "", "rows": []}


def test_texts_of_transcripts_and_parameters_are_bounded_lines():
    made = count(sessions.hostile(), RatioCounter())
    panel = Compare(Session(made, Newest(tag=MARKUP * 300), 700_000))
    panel.others = [Newest(tag="\x1b[31m\n" * 500), Mixed()]
    panel.selected = 2
    for row in panel.content["rows"]:
        assert len(row["label"]) <= 90
        assert "\x1b" not in row["label"] + row.get("text", "")
        assert "\n" not in row["label"]
        assert len(row.get("text", "")) <= 1_201
    assert len(panel.about["preview"]) <= 160
    assert "\n" not in panel.about["text"]
    panel.close()


def test_the_wire_is_bounded():
    panel = Compare(Session(sessions.ledger(sessions.session(6_000)), "scv", 100_000))
    panel.refresh()
    strips = [panel.content["before"], panel.content["marks"], *(row[name] for row in panel.content["rows"] for name in ("fates", "sent"))]
    assert len(panel.content["rows"]) == 4
    assert all(len(runs_of(packed)) <= 2_000 for packed in strips)
    assert sum(map(len, strips)) < 80_000
    panel.close()


def test_a_message_selected_in_it_is_selected_everywhere(bench):
    bench.bottom.tab = "compare"
    panel = bench.bottom.panels["compare"]
    panel.set_state({"selected": 14})  # as the page says it
    assert bench.selected == bench.strip.selected == bench.reader.selected == bench.side.selected == 14
    bench.strip.set_state({"selected": 15})
    assert panel.selected == 15
    bench.bottom._told(None, {"type": "step", "by": 1}, [])
    assert bench.selected == panel.selected == bench.strip.selected
    bench.selected = None
    assert panel.selected == -1


def test_every_tab_opens_once_and_shows_its_own_words(bench):
    names = [name for name, _ in bench.bottom._tabs.tabs]
    assert names == ["turns", "compare", "estimate", "layout"]
    for name in (*names, *names):
        bench.bottom.tab = name
        shown = [key for key, panel in bench.bottom.panels.items() if panel.layout.display != "none"]
        assert shown == [name]
        assert bench.bottom._tabs.unit == getattr(bench.bottom.panels[name], "unit", "")
    bench.bottom.tab = "compare"
    assert bench.bottom._tabs.status == bench.bottom.panels["compare"].status != ""
    bench.budget = 15_000
    assert bench.bottom._tabs.status == bench.bottom.panels["compare"].status
    bench.bottom.tab = ""
    assert (bench.bottom._tabs.unit, bench.bottom._tabs.status) == ("", "")
    bench.bottom.tab = "no such tab"
    assert set(bench.bottom.panels) == set(names)


def test_200_changes_leave_no_widget_behind_and_close_frees_all(ledger):
    before = set(_instances)
    transcript = made_session(60)
    alive = weakref.ref(transcript)
    bench = wb.Workbench(transcript, "scv", 20_000)
    for name in ("turns", "layout", "compare"):
        bench.bottom.tab = name
    opened = set(_instances)
    panel = bench.bottom.panels["compare"]
    for number in range(200):
        bench.budget = 14_000 + 10 * number
        if number % 20 == 0:
            panel.others = (["none"], ["scv", "kernel"], None)[number // 20 % 3]
            bench.bottom.tab = ("compare", "layout")[number // 20 % 2]
    assert set(_instances) == opened
    held = weakref.ref(panel)
    bench.close()
    assert set(_instances) == before
    del bench, panel, transcript
    gc.collect()
    assert held() is None
    assert alive() is None
