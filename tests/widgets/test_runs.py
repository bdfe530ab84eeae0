"""Strips as runs: exact by style, bounded in number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.widgets.sessions import Mixed, ledger, session
from workbench.model import KINDS
from workbench.policies.base import Fate
from workbench.policies.compare import outside_kinds, sent_kinds
from workbench.widgets.runs import ADDED, MOST, NOTE, history_segments, history_styles, merge_runs, pack_runs, sent_segments


def runs_of(packed: bytes) -> list[tuple[int, bool, int]]:
    """(style, begins a message, tokens) of each run: what ``compare.js`` reads."""
    numbers, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    return [(style >> 1, bool(style & 1), tokens) for style, tokens in zip(numbers[::2], numbers[1::2], strict=True)]


def by_style(runs: list[tuple[int, bool, int]]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for style, _, tokens in runs:
        sums[style] = sums.get(style, 0) + tokens
    return sums


@given(st.lists(st.tuples(st.integers(0, 89), st.integers(1, 5_000)), max_size=300), st.integers(90, 200))
def test_merged_runs_keep_the_sum_of_each_style(pairs, most):
    styles, sizes = np.array([pair[0] for pair in pairs], np.int64), np.array([pair[1] for pair in pairs], np.int64)
    merged = merge_runs(styles, sizes, most)
    assert len(merged[0]) <= most
    for style in range(90):
        assert merged[1][merged[0] == style].sum() == sizes[styles == style].sum()


@pytest.mark.parametrize("messages", [200, 8_000])
def test_the_strips_of_a_selection_add_up(messages):
    view = ledger(session(messages)).view()
    selection = wb.select(view.ledger, Mixed(), wb.Budget(20_000))
    segments = history_segments(view)
    history = runs_of(pack_runs(history_styles(segments, selection.fate_codes), segments.size, segments.owner))
    sums = by_style(history)
    assert sum(sums.values()) == view.total
    outside = int(outside_kinds(view).sum())  # the fixed part that is in no row is drawn as kept
    for fate in Fate:
        drawn = sum(tokens for style, tokens in sums.items() if style >> 4 == fate)
        assert drawn == selection.fate_tokens[fate.name.lower()] + (outside if fate is Fate.KEPT else 0)
    sent, styles = sent_segments(selection)
    parts = by_style(runs_of(pack_runs(styles, sent.size, sent.owner)))
    assert sum(parts.values()) == selection.after_tokens
    assert parts[NOTE * 16 + KINDS.index("note")] == sum(selection.note_tokens)
    kinds = sent_kinds(selection)
    assert sum(tokens for style, tokens in parts.items() if style & 15 == KINDS.index("tool_result")) == kinds["tool_result"]
    assert any(style >> 4 == ADDED for style in parts)
    assert len(history) <= MOST
    begins = sum(begin for _, begin, _ in history)
    assert begins == (len(view.indices) + 1 if messages == 200 else 0)  # the fixed part is one; merged runs have no messages


def test_nothing_is_no_run():
    from workbench.ledger import count
    from workbench.model import Source, Transcript

    view = count(Transcript("t", Source("made"), ())).view()
    segments = history_segments(view)
    assert pack_runs(history_styles(segments), segments.size, segments.owner) == b""
    assert [len(column) for column in merge_runs(segments.kind, segments.size)] == [0, 0]
