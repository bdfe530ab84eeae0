"""Figures: exact sums, a bounded number of marks, labels that are text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.synthetic import session as made_session
from tests.widgets.made import Newest
from workbench import policies
from workbench.figures import COLOURS, DARK, MARKS, label, turn_bars, turns
from workbench.ledger import count
from workbench.model import Budget, Message, Source, Text, ToolCall, Transcript
from workbench.policies import select
from workbench.tokens import RatioCounter

MARKUP = "<b>bold</b> <a href='http://x'>link</a> <img src=x onerror=alert(1)> $x^2$ &amp;"


def chosen(messages: int, window: int):
    return select(count(made_session(messages), RatioCounter()), Newest(), Budget(window))


@pytest.mark.parametrize(("messages", "window"), [(1, 30_000), (2, 30_000), (200, 20_000), (5_000, 60_000)])
def test_the_bars_sum_to_the_selections_tokens_by_fate(messages, window):
    selection = chosen(messages, window)
    bars = turn_bars(selection)
    lead = int(selection.request.view.tokens[: selection.request.view.lead].sum())
    kept, removed = bars.tokens.sum(axis=(0, 2)).tolist() if len(bars.tokens) else (0, 0)
    fates = selection.fate_tokens
    assert kept + lead == fates["kept"] + fates["edited"]
    assert removed == fates["summarized"] + fates["dropped"]


def test_b94_twenty_thousand_messages_make_a_bounded_number_of_marks_with_exact_totals():
    """B94: 12,000 bars make the page crawl."""
    selection = chosen(20_000, 200_000)
    bars = turn_bars(selection)
    figure = turns(selection)
    drawn = sum(len(trace.x) for trace in figure.data)
    assert drawn == bars.marks <= MARKS
    assert sum(sum(trace.y) for trace in figure.data) == sum(selection.fate_tokens.values()) - int(selection.request.view.tokens[0])
    assert bars.first[0] == 0
    assert bars.last[-1] == len(selection.request.view.turns) - 1
    assert list(bars.first[1:]) == [last + 1 for last in bars.last[:-1]]


def test_each_turn_has_its_bar_and_its_first_message():
    selection = chosen(5_000, 60_000)
    bars = turn_bars(selection)
    groups = selection.request.view.turns
    for turn in (0, 1, len(groups) // 2, len(groups) - 1):
        bar = bars.bar_of(turn)
        assert bars.first[bar] <= turn <= bars.last[bar]
    assert bars.start == tuple(groups[first].messages[0] for first in bars.first)


def test_survivors_are_solid_and_removed_are_hatched():
    figure = turns(chosen(200, 20_000))
    shown = [trace for trace in figure.data if trace.visible]
    assert {trace.marker.pattern.shape for trace in shown} == {None, "/"}
    assert len([trace for trace in shown if trace.showlegend]) == len({trace.name for trace in shown})


def test_b98_labels_are_text_that_plotly_does_not_interpret():
    """B98: plotly reads tags, entities and formulas in labels and hover texts."""
    rows = (Message(0, "", "user", (Text(MARKUP),)), Message(1, "", "assistant", (ToolCall("a", MARKUP, {}, "{}"),)))
    figure = turns(select(count(Transcript("t", Source("made", MARKUP), rows), RatioCounter()), "none"))
    texts = [text for trace in figure.data for text in trace.hovertext]
    assert texts
    for text in texts:
        assert "<" not in text.replace("<br>", "")
        assert "$" not in text
        assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert MARKUP not in figure.to_json()
    assert label("&lt;b&gt;") == "&amp;lt;b&amp;gt;"


def test_a_history_of_nothing_makes_an_empty_figure():
    figure = turns(select(count(Transcript("t", Source("made")), RatioCounter()), "none"))
    assert not any(trace.visible for trace in figure.data)


@pytest.mark.parametrize("name", policies.list())
def test_every_policy_can_be_drawn(name):
    selection = select(count(made_session(200), RatioCounter()), name, Budget(20_000))
    bars = turn_bars(selection)
    assert int(bars.tokens.sum()) == int(selection.request.view.tokens[selection.request.view.lead :].sum())
    assert np.all(bars.tokens >= 0)


def test_turns_are_numbered_as_in_the_frames_and_the_decision_log():
    selection = chosen(200, 20_000)
    drawn = sorted({x for trace in turns(selection).data for x in trace.x})
    assert drawn == list(range(len(selection.request.view.turns)))
    assert drawn == sorted(selection.request.view.ledger.turns.index)


def test_the_colours_are_those_of_the_other_views():
    sheet = Path(__file__).parents[1].joinpath("workbench/widgets/static/theme.css").read_text("utf-8")
    light, dark = (dict(re.findall(r"--cw-(\w+): (#\w+);", part)) for part in sheet.split("[data-jp-theme-light", 1))
    assert {kind: light[kind] for kind in COLOURS} == COLOURS
    assert {kind: {**light, **dark}[kind] for kind in DARK} == DARK
