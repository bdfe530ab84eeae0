"""The Layout tab: every number is the selection's, bounded, as text; selecting goes both ways; closing frees."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace

import pytest
from ipywidgets.widgets.widget import _instances

from tests.synthetic import session as made_session
from tests.test_layout import LS, RM, SHARED, recorded, sent
from tests.widgets.made import Newest
from tests.widgets.sessions import MARKUP
from workbench import layout
from workbench.ledger import count
from workbench.model import Budget, Call, Message, Prefix, Source, Text, ToolSpec, Transcript, Usage
from workbench.policies.base import Note
from workbench.tokens import RatioCounter
from workbench.widgets.layout import BLOCKS, CHANGES, ROWS, Layout, changes, request
from workbench.widgets.session import Session


@pytest.fixture(scope="module")
def ledger():
    return count(made_session(200), RatioCounter())


@pytest.fixture
def session(ledger):
    return Session(ledger, Newest(), Budget(20_000))


def test_the_numbers_are_the_selections(session):
    shown = Layout(session)
    content = shown.content
    assert content["total"] == session.selection.after_tokens == sum(row[3] for row in content["rows"])
    assert content["head"] == f"{session.selection.after_tokens:,} tokens, {shown.shown.size:,} bytes of text"
    assert content["digest"] == layout.of(session.selection).digest
    assert [row[:2] for row in content["rows"][:3]] == [["prefix", "system"], ["prefix", "tools"], ["note", "note"]]
    assert [label for _, label, _ in content["cuts"]] == [f"cache breakpoint {number}: {cut.label}" for number, cut in enumerate(shown.shown.breakpoints, 1)]
    for at, _, before in content["cuts"]:
        assert before == sum(row[3] for row in content["rows"][:at])
    assert repr(shown) == f"<Layout: {len(content['rows'])} blocks, {content['total']:,} tokens>"
    shown.close()


def test_it_follows_the_session(session):
    shown = Layout(session)
    session.budget = 30_000
    shown.refresh()
    assert shown.content["total"] == session.selection.after_tokens
    before = shown.content
    shown.refresh()  # nothing new: nothing crosses
    assert shown.content is before
    shown.close()


def test_an_infeasible_budget_is_a_state(session):
    shown = Layout(session)
    session.budget = 10_300
    shown.refresh()
    assert shown.content["problem"].startswith("fixed part ")
    assert (shown.status, shown.row, shown.shown) == ("no selection at this budget", -1, None)
    assert "rows" not in shown.content
    assert repr(shown) == "<Layout: no request>"
    session.budget = 20_000
    shown.refresh()
    assert "problem" not in shown.content
    assert shown.status == ""
    shown.close()


def test_the_block_of_the_selected_message_is_marked(session):
    shown = Layout(session)
    for at, block in enumerate(shown.shown.blocks):
        for index in block.messages[:2]:
            shown.selected = index
            assert shown.row == at
    shown.selected = session.selection.notes[0].covers[0]  # it is not sent
    assert shown.row == -1
    shown.selected = -1
    assert shown.row == -1
    shown.close()


def test_a_long_session_is_bounded():
    session = Session(count(made_session(6_000), RatioCounter()), "none")
    shown = Layout(session)
    assert len(shown.shown.blocks) > 2 * BLOCKS
    assert len(shown.content["rows"]) <= BLOCKS + 10
    assert sum(row[3] for row in shown.content["rows"]) == session.selection.after_tokens
    assert len(json.dumps(shown.content)) < 30_000
    shown.selected = 3_000
    assert shown.content["rows"][shown.row][5] <= 3_000
    assert shown.content["rows"][shown.row + 1][5] > 3_000
    shown.close()


def test_blocks_that_cannot_be_joined_are_counted():
    rows = tuple(Message(index, "", "user", (Text("x"),)) for index in range(ROWS + 50))
    notes = [Note(Message(-1, "", "note", (Text("n"),)), (), (), "user") for _ in range(ROWS + 49)]
    selection = sent(Transcript("t", Source("openai-chat"), rows), *notes, ROWS + 49)
    content = request(layout.merged(layout.of(selection), BLOCKS))
    assert len(content["rows"]) == ROWS
    rest = selection.after_tokens - sum(row[3] for row in content["rows"])
    assert content["more"] == f"and 51 more blocks, {rest:,} tokens"
    assert [at for at, _, _ in content["cuts"]] == [0, ROWS, ROWS]


def test_what_stood_before_is_said(session):
    text = Layout(session).content["reuse"]["text"]
    found = layout.of(session.selection).reusable
    assert text == (
        f"{found.tokens:,} of {session.selection.after_tokens:,} tokens stand as they were in the request before it, sent without a policy; "
        "then a note stands where #1 stood."
    )
    session.policy = "none"
    assert Layout(session).content["reuse"]["text"].startswith("All of the request before it (")
    nobody = Session(count(Transcript("t", Source("openai-chat"), (Message(0, "", "user", (Text("x"),)),)), RatioCounter()), "none")
    assert Layout(nobody).content["reuse"] == {"tokens": 0, "text": "No answer was given yet, so no request was made before this one."}


def test_changes_of_the_prefix():
    transcript = recorded(SHARED, Prefix(("Be short.",), (RM, LS)), Prefix((), (RM, LS)))
    calls = (transcript.calls[0], replace(transcript.calls[1], usage=Usage(10, 2_000, 0, None, 5)), transcript.calls[2])
    transcript = replace(transcript, calls=calls)
    found = changes(transcript, "main")
    assert found["text"].startswith("Changed in 2 of 3 recorded requests.")
    first, second = found["rows"]
    assert (first["title"], first["go"], first["what"]) == ("request 2, after #2", 2, ["tool order changed"])
    assert first["seen"] == "2,000 of 2,010 prompt tokens were read from a cache"
    assert second["seen"] == ""
    before, after = second["digests"].split(" → ")
    assert len(before) == len(after) == 12
    assert before != after
    assert Layout(Session(count(transcript, RatioCounter()), "none")).status == "prefix changed in 2 recorded requests"


@pytest.mark.parametrize(
    ("prefixes", "text"),
    [
        ((None, None), "This file does not say what each request held before its conversation."),
        ((SHARED, None), "One request is recorded: there is nothing to compare it with."),
        ((SHARED, SHARED), "The same in all 2 recorded requests."),
    ],
)
def test_no_change_of_the_prefix(prefixes, text):
    found = changes(recorded(*prefixes), "main")
    assert (found["text"], found["rows"], found["advice"], found["count"]) == (text, [], "", 0)


def test_many_changes_are_bounded_and_counted():
    found = changes(recorded(*(Prefix((f"It is {number}.",)) for number in range(CHANGES + 11))), "main")
    assert len(found["rows"]) == CHANGES
    assert found["more"] == "and 10 more"


def test_hostile_names_are_one_bounded_line():
    tools = tuple(ToolSpec(f"{MARKUP}\x1b[31m\n{number}" * 900) for number in range(3))
    calls = (Call(0, "a", prefix=Prefix()), Call(1, "b", prefix=Prefix((), tools)))
    [row] = changes(Transcript("t", Source("anthropic"), (), calls), "main")["rows"]
    assert row["go"] == -1
    assert row["title"] == "request 2"
    assert len(row["what"][0]) <= 300
    assert not any(mark in row["what"][0] for mark in "\x1b\n")


def test_closing_frees_everything(ledger):
    session = Session(ledger, Newest(), Budget(20_000))
    before = len(_instances)
    shown = Layout(session)
    held = weakref.ref(session)
    shown.layout.close()
    shown.close()
    shown.refresh()  # a late call of the session
    assert repr(shown) == "<Layout: closed>"
    assert (shown.content, shown.shown) == ({}, None)
    session.close()
    del session
    gc.collect()
    assert held() is None
    assert len(_instances) == before
