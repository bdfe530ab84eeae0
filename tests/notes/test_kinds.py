"""Every kind of note keeps its bound and quotes only what it holds, on any history; each equals its original."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import conversation, counted, transcripts
from workbench import notes, policies
from workbench.model import Budget
from workbench.policies import Scv
from workbench.systems import scv
from workbench.systems.mapping.scv import as_messages

every_kind = pytest.mark.parametrize("name", notes.NAMES)


@every_kind
@given(transcripts(), st.integers(0, 400), st.data())
@settings(max_examples=60, deadline=None)
def test_the_bound_and_the_quotes_hold(name, transcript, most, data):
    view = counted(transcript).view()
    start = data.draw(st.integers(0, len(view.messages)))
    rows = range(start, data.draw(st.integers(start, len(view.messages))))
    draft = notes.get(name).write(view, rows, most)
    assert len(draft.text) <= most
    assert list(draft.quotes) == sorted(set(draft.quotes))
    assert set(draft.quotes) <= set(view.indices.tolist())
    assert draft == notes.get(name).write(view, rows, most)


@given(transcripts(), st.integers(0, 2_000))
@settings(max_examples=60, deadline=None)
def test_extracts_are_the_originals(transcript, most):
    view = counted(transcript).view()
    draft = notes.get("extracts").write(view, range(view.lead, len(view.messages)), most)
    assert draft.text == scv.summarize(as_messages(view, view.messages[view.lead :]), most)


def chat(turns, size=60):
    rows = []
    for turn in range(turns):
        rows += [("user", f"question {turn} " + "q" * size), ("assistant", f"answer {turn} " + "a" * size)]
    return conversation(*rows)


@every_kind
@pytest.mark.parametrize("window", [200, 400, 700, 1_000])
def test_scv_holds_its_budget_with_any_note(name, window):
    ledger = counted(chat(16))
    chosen = policies.select(ledger, Scv(summary_max_chars=300, note=name), Budget(window, 20, 20))
    assert chosen.own_after <= window - 40
    note = chosen.notes[0]
    assert len(note.message.text) <= 300
    cost = scv.estimated_tokens(scv.Message("history_note", note.message.text), 3)
    rest = chosen.own_after - cost
    first = len(note.covers)
    kept = as_messages(ledger.view(), ledger.view().messages[first:])
    assert rest == 1 + sum(scv.estimated_tokens(message, 3) for message in kept)
    assert any("done" in step.text or "only the newest turn" in step.text for step in chosen.steps)
