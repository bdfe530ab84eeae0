"""The Estimate tab: its numbers are those of the estimates, it follows ledger and policy, a request is a message; closing frees."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace

import pytest
from ipywidgets.widgets.widget import _instances

import workbench as wb
from tests.sessions_with_usage import reporting, talk
from tests.widgets.sessions import MARKUP
from workbench import estimates, figures
from workbench.ledger import count
from workbench.model import ToolSpec
from workbench.policies import Scv
from workbench.tokens import CalibratedCounter, TiktokenCounter
from workbench.widgets.estimate import Estimate, content
from workbench.widgets.session import Session

O200K = TiktokenCounter("o200k_base")


def ledger_of(transcript=None, rule=lambda counted, call: counted + 6_000 + 1_500 * (call.index == 7)):
    return count(reporting(transcript or talk(160), O200K, rule), O200K)


@pytest.fixture(scope="module")
def ledger():
    return ledger_of()


@pytest.fixture
def panel(ledger):
    made = Estimate(Session(ledger, "scv", 30_000))
    made.refresh()
    yield made
    made.close()


def test_the_numbers_are_those_of_the_estimates(panel, ledger):
    found = estimates.of(ledger, ["scv", "agentd", "vak"])
    shown = panel._sheet.content
    for hidden in (False, True):
        for row, item in zip(shown["rows"][hidden], found.accuracy(hidden=hidden), strict=True):
            assert row[1:] == [item.source, *(round(100 * value, 1) for value in (item.bias, item.median, item.within, item.most)), *item.margins]
        assert shown["bytes"][hidden] == [round(ratio, 2) for ratio in found.bytes_per_token(hidden=hidden)]
    assert [row[0] for row in shown["rows"][0]] == [
        "o200k_base",
        "fitted: o200k + 6,000",
        "UTF-8 bytes ÷ 4",
        "characters ÷ 4",
        estimates.AVERAGE,
        "scv",
        "agentd",
        "vak",
    ]
    assert [[name, index] for name, index, *_ in shown["misses"]] == [["request 8", ledger.transcript.calls[7].produced[0]]]
    assert shown["beside"] == [["main", ledger.transcript.calls[0].produced[0], "6,000", len(found.reported), ""]]
    assert panel.status == f"{len(found.reported)} requests with reported usage"
    assert "it holds for 78 of 79" in shown["said"]
    json.dumps(shown)


def test_the_figure_draws_what_was_reported_and_every_line(panel, ledger):
    traces = {trace.name: trace for trace in panel.figure.data if trace.visible is not False}
    assert list(traces) == ["its range", "o200k_base", "calibrated", "scv", "agentd", "vak", "reported", "error by kind"]
    assert list(traces["reported"].y) == panel.estimates.reported.tolist()
    assert list(traces["scv"].y) == panel.estimates["scv"].tokens.tolist()
    before = list(traces["o200k_base"].y)
    panel.hidden = True
    assert [after - tokens for after, tokens in zip(traces["o200k_base"].y, before, strict=True)] == [6_000] * len(before)
    figure = panel.figure
    panel.dark = True
    assert panel.figure is figure
    assert traces["reported"].marker.color == "#e6e6e6"


def test_a_request_is_the_message_that_answered_it(panel, ledger):
    firsts = [call.produced[0] for call in ledger.transcript.calls]
    panel.step(1)
    assert panel.selected == firsts[0]
    panel.step(1)
    panel.step(1)
    assert panel.selected == firsts[2]
    assert (panel.figure.layout.shapes[0].x0, panel.figure.layout.shapes[0].x1) == (2.5, 3.5)
    panel.step(-1)
    assert panel.selected == firsts[1]
    panel.selected = firsts[9] - 1  # what was sent with the tenth request
    assert panel.figure.layout.shapes[0].x0 == 9.5
    panel.step(1)
    assert panel.selected == firsts[9]

    class Points:
        xs = (5,)

    panel._click(None, Points, None)
    assert panel.selected == firsts[4]
    panel.selected = -1
    assert panel.figure.layout.shapes == ()
    panel.step(-1)
    assert panel.selected == firsts[-1]


def test_it_follows_the_policy_and_the_counter(ledger):
    session = Session(ledger, "scv", 30_000)
    panel = Estimate(session)
    panel.refresh()
    held = panel.estimates
    session.budget = 40_000
    panel.refresh()
    assert panel.estimates is held  # no budget changes what was sent
    session.policy = Scv(bytes_per_token=6)
    panel.refresh()
    assert panel.estimates["scv"].tokens.sum() < 0.7 * held["scv"].tokens.sum()
    session.policy = "none"
    panel.refresh()
    assert [item.name for item in panel.estimates.estimates if item.source == "policy"] == ["agentd", "scv", "vak"]
    session.ledger = count(ledger.transcript, "bytes/4")
    panel.refresh()
    assert panel.estimates.estimates[0].name == "UTF-8 bytes ÷ 4"
    panel.close()


def test_count_with_the_fitted_counter_and_back(ledger):
    bench = wb.Workbench(ledger, "scv", 30_000)
    bench.bottom.tab = "estimate"
    panel = bench.bottom.panels["estimate"]
    panel._told(None, {"ask": "calibrate", "on": True}, [])
    bench.bottom.refresh()
    assert isinstance(bench.ledger.counter, CalibratedCounter)
    assert bench.selection.request.view.fixed == ledger.view().fixed + 6_000
    assert panel._sheet.content["on"]
    assert bench.ledger.counter.label in json.dumps(bench.header.get_state(), default=str, ensure_ascii=False)
    panel._told(None, {"ask": "calibrate", "on": False}, [])
    bench.bottom.refresh()
    assert bench.ledger is ledger
    assert not panel._sheet.content["on"]
    for nonsense in (None, [], {"ask": "other"}, {}):
        panel._told(None, nonsense, [])
    bench.close()


def test_without_usage_there_is_one_sentence_and_no_figure():
    panel = Estimate(Session(count(talk(40), O200K), "scv", 30_000))
    panel.refresh()
    assert panel.figure is None
    assert panel._sheet.content == {"problem": "No request of gpt-4o reports how many tokens its prompt had, so there is nothing to compare estimates with."}
    assert panel.status == "no usage was reported"
    panel.step(1)
    panel.hidden = panel.dark = True
    panel.width = 700
    panel.close()


def test_too_little_usage_is_said_and_the_rest_is_shown():
    panel = Estimate(Session(ledger_of(rule=lambda counted, call: counted if call.index < 5 else None), "scv", 30_000))
    panel.refresh()
    shown = panel._sheet.content
    assert shown["said"] == "Not calibrated: too little usage to calibrate with: only 5 requests of gpt-4o report a prompt; 10 are needed."
    assert not shown["calibrated"]
    assert len(shown["rows"][0]) == 7
    assert [trace.name for trace in panel.figure.data if trace.visible is not False] == ["o200k_base", "scv", "agentd", "vak", "reported"]
    panel.calibrate()  # there is nothing to count with
    panel.close()


def test_the_figure_is_bounded():
    found = estimates.of(ledger_of(talk(1_200)))
    drawn = figures.estimate_lines(found, kinds=estimates.by_kind(found.ledger))
    assert len(drawn.at) == figures.POINTS < len(found.reported)
    assert (drawn.at[0], drawn.at[-1]) == (0, len(found.reported) - 1)
    figure = figures.estimates(found, kinds=estimates.by_kind(found.ledger))
    marks = sum(len(trace.x) for trace in figure.data if trace.mode == "markers") + len(figure.data)
    assert marks <= figures.MARKS


def test_text_of_a_transcript_is_text():
    transcript = replace(talk(60), tools=(ToolSpec(MARKUP, MARKUP, {}),))
    calls = tuple(replace(call, model=MARKUP, thread="main") for call in transcript.calls)
    ledger = ledger_of(replace(transcript, calls=calls))
    shown = content(estimates.of(ledger), estimates.by_kind(ledger))
    assert shown["problem"] == ""
    hovers = [text for trace in figures.estimates(estimates.of(ledger)).data for text in trace.hovertext or ()]
    assert hovers
    assert not any("<img" in text for text in hovers)
    none = count(replace(transcript, calls=tuple(replace(call, usage=None) for call in calls)), O200K)
    assert "\n" not in content(estimates.of(none), ())["problem"]


def test_closing_frees_everything(ledger):
    before = set(_instances)
    own = ledger_of(talk(60))
    alive = weakref.ref(own.transcript)
    bench = wb.Workbench(own, "scv", 30_000)
    bench.bottom.tab = "estimate"
    bench.bottom.panels["estimate"].calibrate()
    bench.bottom.refresh()
    bench.close()
    assert set(_instances) == before
    del bench, own
    gc.collect()
    assert alive() is None


def test_opening_and_leaving_the_tab_leaves_no_widget_behind(ledger):
    bench = wb.Workbench(ledger, "scv", 30_000)
    bench.bottom.tab = "estimate"
    before = set(_instances)
    panel = bench.bottom.panels["estimate"]
    for number in range(60):
        bench.bottom.tab = "estimate" if number % 2 else ""
        bench.policy = ("scv", "none", "vak")[number % 3]
        bench.bottom.refresh()
        panel.hidden, panel.dark, panel.selected = bool(number % 2), bool(number % 3), number
    assert set(_instances) == before
    bench.close()
