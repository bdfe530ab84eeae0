"""The side panel: each tab says what the selection did, bounded, as text."""

from __future__ import annotations

import dataclasses

import pytest

from tests.synthetic import session as made_session
from tests.widgets import sessions
from tests.widgets.made import Newest
from workbench.ledger import count
from workbench.model import Budget, Message, Source, Text, ToolCall, ToolResult
from workbench.policies.base import Note, Step, Steps, kept_items, make_selection
from workbench.tokens import RatioCounter
from workbench.widgets.session import Session
from workbench.widgets.side import FINDINGS, NOTES, ROWS, RUNS, STEPS, Side, checks, diff, log_page, notes


@pytest.fixture(scope="module")
def ledger():
    return count(made_session(200), RatioCounter())


@pytest.fixture
def session(ledger):
    return Session(ledger, Newest(), Budget(20_000))


def answer(session: Session, items, steps=()):
    return make_selection(session.policy, session.request, items, own=(0, 0), steps=steps)


def note(text: str, covers, quotes=()) -> Note:
    return Note(Message(-1, "", "note", (Text(text),)), covers, quotes, "user")


def test_the_notes_line_has_the_selections_numbers(session):
    selection = session.selection
    shown = notes(selection)["notes"]
    covered = selection.fate_tokens["summarized"]
    size = int(selection.item_tokens[[type(item) is Note for item in selection.items].index(True)])
    assert (
        shown[0]["head"]
        == f"One note, {size:,} tokens, stands for {selection.counts['summarized']:,} messages ({covered:,} tokens) · {covered / size:,.0f}\u00a0:\u00a01"
    )
    assert shown[0]["text"] == selection.notes[0].message.text
    assert shown[0]["flag"] == ""


def test_b67_a_note_larger_than_what_it_replaced_is_flagged(session):
    """B67: two short messages replaced by a note of about 300 tokens."""
    kept = kept_items(session.view)
    covers = session.view.indices[1:3].tolist()
    selection = answer(session, (kept[0], note("word " * 300, covers), *kept[3:]))
    size, covered = int(selection.item_tokens[1]), int(session.view.tokens[1:3].sum())
    shown = notes(selection)["notes"][0]
    assert size > covered
    assert shown["flag"] == f"{size - covered:,} tokens larger than what it stands for"
    assert ":\u00a01" not in shown["head"]


def test_notes_are_bounded_in_number_and_length(session):
    many = [note("x" * 50_000, ()) for _ in range(NOTES + 5)]
    shown = notes(answer(session, many))
    assert (len(shown["notes"]), shown["more"]) == (NOTES, 5)
    assert len(shown["notes"][0]["text"]) == 20_000
    assert shown["notes"][0]["more"] == 30_000
    assert shown["notes"][0]["head"].startswith("Note 1, ")
    assert "stands for no message" in shown["notes"][0]["head"]


def test_what_was_dropped_without_a_note_is_said(session):
    assert notes(answer(session, kept_items(session.view)))["none"] == "No note: nothing was left out."
    assert notes(answer(session, kept_items(session.view)[1:]))["none"] == "No note: 1 message is dropped without one."


def test_b97_b100_a_notes_text_stays_text_and_loses_terminal_escapes(session):
    """B97: markup is only ever a string here; the page sets it as text. B100: no raw escape."""
    text = "<img src=x onerror=alert(1)><script>x=1</script>\x1b[31mred\x1b[0m"
    assert notes(answer(session, [note(text, ())]))["notes"][0]["text"] == "<img src=x onerror=alert(1)><script>x=1</script>red"


def test_the_diffs_runs_account_for_every_message_and_token():
    session = Session(count(sessions.session(200), RatioCounter()), sessions.Mixed(), Budget(20_000))
    selection = session.selection
    shown = diff(selection)
    assert shown["more"] == 0
    tokens = {"kept": 0, "edited": 0, "summarized": 0, "dropped": 0, "note": 0, "added": 0}
    after = selection.request.view.fixed - int(selection.request.view.tokens[: selection.request.view.lead].sum())
    for row in shown["rows"]:
        number = int(row["tokens"].replace(",", "").replace("+", "").replace("−", "").split(" → ")[0])
        tokens[row["fate"]] += number
        if row["fate"] in ("note", "added", "kept"):
            after += number
        if row["fate"] == "edited":
            after += int(row["tokens"].replace(",", "").split(" → ")[1])
    assert {name: tokens[name] for name in selection.fate_tokens} == selection.fate_tokens
    assert after == selection.after_tokens
    assert f"{selection.before_tokens:,} tokens → " in shown["head"]
    assert f"{selection.after_tokens:,} tokens" in shown["head"]


def test_the_diff_stands_in_order_and_is_bounded(session):
    kept = kept_items(session.view)
    assert [row["at"] for row in diff(session.selection)["rows"]] == sorted(row["at"] for row in diff(session.selection)["rows"])
    many = Session(count(made_session(2_000), RatioCounter()), Newest(), Budget(400_000))
    every_second = answer(many, kept_items(many.view)[::2])
    shown = diff(every_second)
    assert (len(shown["rows"]), shown["more"]) == (RUNS, 2_000 - RUNS)
    assert len(kept) == 200


def test_why_follows_the_selected_message(session):
    side = Side(session)
    assert side.content["why"]["lines"] == ["Select a message to see why it is kept or not."]
    session.selected = 5
    side.refresh()
    assert side.content["why"]["title"] == f"Why #5 is {session.selection.fates[5]}"
    assert side.content["why"]["lines"] == [step.text for step in session.selection.steps if 5 in step.messages]
    side.close()


def test_why_of_a_message_of_the_other_history_says_so():
    session = Session(count(made_session(200, compacted=True), RatioCounter()), Newest(), Budget(20_000), history="live")
    session.selected = 5
    side = Side(session)
    assert side.content["why"]["lines"] == ["This message is not in the history that is shown."]
    side.close()


def test_the_decision_log_is_paged_and_written_only_when_open(session):
    written: list[int] = []

    def write():
        written.append(1)
        return (Step(f"step {number}", (number % 200,)) for number in range(250))

    class Logged(Newest):
        def select(self, request, previous=None):
            return make_selection(self, request, kept_items(request.view), own=(0, 0), steps=Steps(write))

    session.policy = Logged()
    selection = session.selection
    side = Side(session)
    assert written == []
    side.tab = "why"
    assert written == [1]
    assert (len(side.content["log"]["rows"]), side.content["log"]["total"]) == (STEPS, 250)
    side._told(None, {"type": "page", "start": 200}, [])
    assert [row[0] for row in side.content["log"]["rows"]] == [f"step {number}" for number in range(200, 250)]
    assert log_page(selection, 9_999)["start"] == 0
    side.close()


def under(transcript, format_, messages, policy="none", budget=200_000) -> Session:
    """A session of some messages as another format's."""
    made = dataclasses.replace(transcript, source=Source(format_), messages=tuple(messages), calls=())
    return Session(count(made, RatioCounter()), policy, Budget(budget))


def cut() -> list[Message]:
    """A question, a call without its result, a result without its call, and white space."""
    call, result = ToolCall("a", "ls", {}, "{}"), ToolResult("zz", "ls", (Text("x"),))
    return [
        Message(0, "", "user", (Text("hi"),)),
        Message(1, "", "assistant", (call,)),
        Message(2, "", "tool", (result,)),
        Message(3, "", "user", (Text(" "),)),
    ]


def test_checks_show_the_own_providers_verdict_first_and_lead_to_messages(session):
    shown = checks(under(session.ledger.transcript, "anthropic", cut()).selection)
    assert shown["own"] == "Anthropic"
    assert shown["providers"] == [["Anthropic", 3, 0], ["OpenAI Chat", 2, 0], ["OpenAI Responses", 2, 0]]
    assert [(group["title"], group["open"], group["count"]) for group in shown["groups"]] == [("In the history already", False, 3)]
    rules = {name: (number, rows, more) for name, _, number, rows, more in shown["groups"][0]["rules"]}
    assert rules == {
        "orphan result": (1, [["result #2 has no call", 2]], 0),
        "unanswered call": (1, [["call a in #1 has no result", 1]], 0),
        "empty text": (1, [["#3 holds only white space", 3]], 0),
    }
    assert all(sentence.endswith(".") for group in shown["groups"] for _, sentence, *_ in group["rules"])


def test_checks_of_other_providers_come_after_and_begin_closed(session):
    shown = checks(under(session.ledger.transcript, "openai-chat", cut()).selection)
    assert [name for name, *_ in shown["providers"]] == ["OpenAI Chat", "OpenAI Responses", "Anthropic"]
    assert [(group["title"], group["open"], group["count"]) for group in shown["groups"]] == [("In the history already", False, 2), ("Anthropic", False, 1)]


def test_what_the_policy_broke_stands_apart_from_what_was_recorded(session):
    other = under(
        session.ledger.transcript,
        "anthropic",
        [*cut(), Message(4, "", "assistant", (ToolCall("b", "ls", {}, "{}"),)), Message(5, "", "tool", (ToolResult("b", "ls", (Text("y"),)),))],
    )
    side = Side(other)
    assert (side.alarms, side.broken) == (3, 0)
    side.close()
    broken = answer(other, [item for item in kept_items(other.view) if item.index != 4])
    shown = checks(broken)
    assert [(group["title"], group["open"], group["count"]) for group in shown["groups"]] == [
        ("With this policy", True, 1),
        ("In the history already", False, 3),
    ]
    assert shown["groups"][0]["rules"][0][3] == [["result #5 has no call", 5]]
    assert shown["providers"][0] == ["Anthropic", 4, 1]


def test_the_tabs_number_is_what_the_own_provider_would_refuse(session):
    for format_, alarms in (("anthropic", 3), ("openai-chat", 2), ("made-up", 2)):
        side = Side(under(session.ledger.transcript, format_, cut()))
        assert side.alarms == alarms
        side.close()


def test_checks_are_bounded(session):
    many = [Message(at, "", "tool", (ToolResult(f"o{at}", "ls", (Text("x"),)),)) for at in range(FINDINGS + 30)]
    big = under(session.ledger.transcript, "openai-chat", many)
    [[_, _, number, rows, more]] = checks(big.selection)["groups"][0]["rules"]
    assert (number, len(rows), more) == (FINDINGS + 30, ROWS, FINDINGS + 30 - ROWS)
    all_rules = [Message(at, "", "user" if at % 2 else "assistant", (Text(""), ToolCall(f"b.{at}", "ls", {}, "{}"))) for at in range(300)]
    shown = checks(under(session.ledger.transcript, "anthropic", all_rules).selection)
    assert sum(len(rows) for group in shown["groups"] for _, _, _, rows, _ in group["rules"]) <= FINDINGS
    side = Side(big)
    assert side.alarms == FINDINGS + 30
    side.close()


@pytest.mark.parametrize("tab", ["note", "diff", "why", "lost", "checks"])
def test_every_tab_shows_an_infeasible_budget_as_a_state(session, tab):
    session.budget = 10_300
    side = Side(session)
    side.tab = tab
    side.refresh()
    assert side.content["problem"].startswith(f"fixed part {session.view.fixed:,} > 60")
    side.close()
