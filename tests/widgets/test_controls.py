"""The controls: made from metadata, one way in and one way out, errors as text, Python that gives the same selection."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import workbench as wb
from tests.synthetic import session as made_session
from tests.widgets.made import Everything, Newest
from workbench import policies
from workbench.ledger import count
from workbench.model import Budget
from workbench.tokens import RatioCounter
from workbench.widgets.controls import Controls, fields_of, result_rows
from workbench.widgets.session import Session
from workbench.widgets.words import as_python


@pytest.fixture(scope="module")
def ledger():
    return count(made_session(200, compacted=True), RatioCounter())


@pytest.fixture
def session(ledger):
    return Session(ledger, Newest(), Budget(20_000))


@pytest.fixture
def controls(session):
    made = Controls(session, [policies.get(name).info for name in policies.list()])
    session.on_step(made.refresh)
    yield made
    made.close()


def want(controls: Controls, **change) -> None:
    """Do what the page does: send all that is wanted."""
    state = controls.state
    now = {name: state[name] for name in ("policy", "params", "budget", "history")}
    controls.wanted = {**now, **change, "seq": state["seq"] + 1}


def test_every_parameter_has_a_control_made_from_its_metadata():
    kinds = {field["name"]: field["type"] for field in fields_of(Newest())}
    assert kinds == {"limit": "number", "share": "number", "tag": "text", "loud": "flag", "place": "choice", "pause": "number"}
    limit, share = fields_of(Newest())[:2]
    assert (limit["label"], limit["low"], limit["high"], limit["whole"], limit["follows"]) == ("Limit (tokens)", 0, 2_000_000, True, "available")
    assert (share["step"], share["whole"]) == (0.1, False)


@pytest.mark.parametrize("name", policies.list())
def test_every_policy_has_controls(name):
    policy = policies.get(name)
    assert [field["name"] for field in fields_of(policy)] == [field.name for field in dataclasses.fields(policy)]
    assert all(field["label"] and field["help"] for field in fields_of(policy))


def test_what_is_wanted_is_what_is_answered(controls, session):
    want(controls, budget=[15_000, 1_000, 500])
    assert session.budget == Budget(15_000, 1_000, 500)
    assert (controls.state["seq"], controls.state["budget"]) == (1, [15_000, 1_000, 500])
    want(controls, params={**controls.state["params"], "share": 1, "loud": True, "limit": 9_000})
    assert session.policy == Newest(share=1.0, loud=True, limit=9_000)
    assert isinstance(session.policy.share, float)
    want(controls, history="live")
    assert session.history == "live"
    assert session.selection.after_tokens == int(controls.state["result"][1][1].replace(",", ""))


def test_a_change_from_python_arrives(controls, session):
    session.change(policy=Newest(share=0.5), budget=30_000)
    assert controls.state["budget"][0] == 30_000
    assert controls.state["params"]["share"] == 0.5


def test_a_value_that_is_not_allowed_is_told_and_nothing_changes(controls, session):
    before = session.selection
    want(controls, params={**controls.state["params"], "share": 7})
    assert controls.state["error"] == "test.newest.share = 7.0: allowed are 0.1 to 1.0"
    assert controls.state["params"]["share"] == 1.0
    assert session.selection is before
    want(controls, budget=[-5, 0, 0])
    assert "whole number" in controls.state["error"]
    want(controls, budget=[21_000, 0, 0])
    assert controls.state["error"] == ""


@pytest.mark.parametrize(
    "rubbish",
    [
        {},
        {"policy": 3},
        {"policy": "scv", "params": 5, "budget": [1], "history": "full"},
        {"policy": "nonsense", "params": {}, "budget": [1, 2, 3], "history": "full"},
    ],
)
def test_rubbish_from_the_page_is_told_and_nothing_changes(controls, session, rubbish):
    before = (session.policy, session.budget, session.history)
    controls.wanted = {**rubbish, "seq": 5}
    assert controls.state["error"]
    assert (session.policy, session.budget, session.history) == before


def test_a_policy_that_was_left_keeps_its_parameters(controls, session):
    want(controls, params={**controls.state["params"], "share": 0.5})
    want(controls, policy="scv", params={})
    assert session.policy == policies.get("scv")
    want(controls, policy="test.newest", params={})
    assert session.policy == Newest(share=0.5)


def test_the_picker_groups_by_origin_and_holds_a_policy_that_was_given(controls):
    names = {item["name"] for _, items in controls.catalogue for item in items}
    assert {"scv", "none", "test.newest"} <= names
    assert "test.newest" in {item["name"] for group, items in controls.catalogue if group == "Context Workbench" for item in items}


def test_a_policy_that_ignores_the_budget_says_so(controls, session):
    session.policy = Everything()
    assert controls.state["limit"] == "The budget does not bound it; its own limit: nothing is ever removed."
    assert controls.fields == []


def test_a_field_that_follows_the_budget_shows_the_budgets_number(controls, session):
    outside = session.view.fixed - int(session.view.tokens[: session.view.lead].sum())
    assert controls.state["params"]["limit"] is None
    assert controls.state["follows"] == {"limit": 20_000 - 8_192 - 2_048 - outside}


def test_the_result_is_the_selections_numbers(controls, session):
    rows = {label: value for label, value, _ in result_rows(session)}
    selection = session.selection
    assert rows["before"] == f"{selection.before_tokens:,}"
    assert rows["after"] == f"{selection.after_tokens:,}"
    assert rows["policy's own estimate"] == f"{selection.own_after:,}"
    assert rows["kept"] == f"{selection.counts['kept']:,}"
    assert rows["summarized"] == f"{selection.counts['summarized']:,} (1 quoted)"
    assert "edited" not in rows


def test_an_infeasible_budget_shows_what_is_needed(controls, session):
    session.budget = 10_300
    rows = {label: value for label, value, _ in result_rows(session)}
    assert rows["needed"] == f"{session.view.fixed:,}"
    assert rows["available"] == "60"
    assert controls.state["least"] is None or controls.state["least"] == session.smallest_window


def test_reset(controls, session):
    want(controls, budget=[15_000, 1_000, 500])
    want(controls, policy="none", params={})
    controls._told(None, {"type": "reset"}, [])
    assert (session.policy, session.budget) == (Newest(), Budget(20_000))
    assert controls.state["policy"] == "test.newest"


def test_nothing_is_sent_when_nothing_changed(controls):
    state, fields, catalogue = controls.state, controls.fields, controls.catalogue
    seen: list[str] = []
    controls.observe(lambda change: seen.append(change["name"]))
    controls.refresh()
    assert seen == []
    assert (state, fields, catalogue) == (controls.state, controls.fields, controls.catalogue)


@pytest.mark.parametrize("history", ["full", "live"])
def test_the_copied_python_gives_exactly_this_selection_and_a_path_is_data(monkeypatch, history):
    """The path would be a call if it were code; it arrives as a string."""
    path = 'x"); import os #\n.jsonl'
    transcript = made_session(120, compacted=True)
    transcript = dataclasses.replace(transcript, source=dataclasses.replace(transcript.source, path=path))
    asked: list[str] = []
    monkeypatch.setattr(wb, "read", lambda name: asked.append(name) or transcript)
    session = Session(count(transcript), policies.get("scv"), Budget(14_000, 4_000, 500), history=history, pins=[7 if history == "full" else 119])
    names: dict[str, object] = {}
    exec(as_python(session), names)
    made = names["sel"]
    assert asked == [path]
    assert np.array_equal(made.fate_codes, session.selection.fate_codes)
    assert (made.after_tokens, made.own_after, made.policy) == (session.selection.after_tokens, session.selection.own_after, session.selection.policy)
    assert made.request.budget == session.budget
    assert made.request.pins == session.pins
    assert (made.request.now, made.request.model) == (session.request.now, session.request.model)


def test_a_step_walks_no_history():
    session = Session(count(made_session(200, seed=3), "bytes/4"), "scv", 20_000)
    chosen = session.selection
    rows = {label: value for label, value, _ in result_rows(session)}
    assert not {"fates", "findings", "messages"} & vars(chosen).keys()  # each of them looks at every message
    assert rows["summarized"] == f"{chosen.fates.count('summarized'):,} ({chosen.quoted:,} quoted)"
    assert (chosen.over_window > 0) == any(finding.rule == "over_window" for finding in chosen.findings)
