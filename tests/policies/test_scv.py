"""The fast scv is the readable one, on any transcript."""

import dataclasses

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.policies.test_registry import Odd
from tests.strategies import conversation, counted, transcripts
from workbench import policies
from workbench.errors import BudgetError, PolicyError
from workbench.model import MAIN, Budget, Media, Message, Source, Text, Thread, ToolCall, ToolResult, ToolSpec, Transcript
from workbench.policies.base import Request, derive_fates
from workbench.policies.scv import Scv
from workbench.systems import scv
from workbench.systems.mapping.scv import as_scv

BYTES = st.integers(1, 16)
CHARS = st.sampled_from((0, 1, 30, 61, 62, 80, 200, 500, 2_000, 6_000, 100_000))


def twin(view, policy, budget):
    """The readable scv on the same view: what it selects, or its error's text."""
    config = scv.Config(budget.max_tokens, budget.reserve_output_tokens, budget.safety_margin_tokens, policy.bytes_per_token, policy.summary_max_chars)
    try:
        return scv.select(config, *as_scv(view))
    except scv.ScvError as error:
        return str(error)


def check_equal(view, policy, budget):
    """The fast and the readable scv say the same, whatever they say."""
    expected = twin(view, policy, budget)
    if isinstance(expected, str):
        with pytest.raises(BudgetError) as raised:
            policy.select(Request(view, budget))
        assert raised.value.culprit == expected
        assert raised.value.needed > raised.value.available
        return
    chosen = policy.select(Request(view, budget))
    removed = expected.removed_messages
    notes = [item.message.text for item in chosen.notes]
    assert notes == ([expected.messages[0].content] if removed else [])
    lead = view.lead
    assert chosen.indices == (*view.indices[:lead].tolist(), *view.indices[lead + removed :].tolist())
    spent = budget.max_tokens - budget.available if as_scv(view)[2] else 0
    assert (chosen.own_before, chosen.own_after) == (expected.before_tokens - spent, expected.after_tokens - spent)
    assert (chosen.fate_codes == derive_fates(view, chosen.items)).all()
    if removed:
        note = chosen.notes[0]
        assert note.covers == tuple(view.indices[lead : lead + removed].tolist())
        history, length = as_scv(view)[2], len(scv.header(removed))
        inside = []  # by hand: the first character of each message's words stands in the note; of one without words the label
        for row in range(removed):
            line, said = scv.extract(history[row]), history[row].content[-240:]
            label = line[: len(line) - 1 - len(said)]
            if length + len(label) + bool(said) <= len(notes[0]):
                inside.append(int(view.indices[lead + row]))
            length += len(line)
        assert list(note.quotes) == inside
    assert list(chosen.steps)
    event("note" if removed else "whole")


@given(transcripts(), BYTES, CHARS, st.integers(0, 4_000), st.integers(0, 40), st.integers(0, 40), st.data())
@settings(max_examples=250, deadline=None)
def test_it_is_its_readable_twin(transcript, bytes_per_token, max_chars, window, reserve, margin, data):
    ledger = counted(transcript)
    view = ledger.view(data.draw(st.sampled_from([thread.id for thread in transcript.threads])), data.draw(st.sampled_from(("full", "live"))))
    policy = Scv(bytes_per_token, max_chars)
    check_equal(view, policy, Budget(window, reserve, margin))
    smallest = policy.smallest_window(Request(view, Budget(0, reserve, margin)))
    # around the two windows where something changes: the least that works, and the least that holds all
    check_equal(view, policy, Budget(smallest + data.draw(st.integers(0, 60)), reserve, margin))
    if as_scv(view)[2]:
        everything = twin(view, policy, Budget(10**9, reserve, margin)).after_tokens
        for nearby in (everything - 1, everything, everything + 1, everything - data.draw(st.integers(0, 200))):
            check_equal(view, policy, Budget(max(0, nearby), reserve, margin))


turns = st.lists(
    st.tuples(st.sampled_from(("user", "assistant")), st.sampled_from(("", "a", "é\n", "word " * 9, "漢" * 70, '"' * 100))), min_size=4, max_size=40
)


@given(turns, st.integers(1, 4), st.sampled_from((0, 40, 80, 150, 400, 6_000)), st.floats(0, 1))
@settings(max_examples=250, deadline=None)
def test_it_is_its_readable_twin_where_turns_join_the_note(rows, bytes_per_token, max_chars, share):
    view = counted(conversation(*rows)).view()
    policy = Scv(bytes_per_token, max_chars)
    smallest = policy.smallest_window(Request(view, Budget(0, 3, 3)))
    everything = twin(view, policy, Budget(10**9, 3, 3)).after_tokens
    check_equal(view, policy, Budget(smallest + int(share * (everything - smallest)), 3, 3))


@given(transcripts(), BYTES, CHARS, st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=80, deadline=None)
def test_the_smallest_window_is_where_it_begins_to_work(transcript, bytes_per_token, max_chars, reserve, margin):
    view = counted(transcript).view()
    policy = Scv(bytes_per_token, max_chars)
    smallest = policy.smallest_window(Request(view, Budget(0, reserve, margin)))
    policy.select(Request(view, Budget(smallest, reserve, margin)))
    for window in {smallest - 1, smallest // 2, 0} - {smallest}:
        if window < 0:
            continue
        with pytest.raises(BudgetError) as raised:
            policy.select(Request(view, Budget(window, reserve, margin)))
        assert window + raised.value.needed - raised.value.available == smallest


@given(transcripts(max_messages=12), st.sampled_from((1, 3)), st.sampled_from((0, 62, 300)))
@settings(max_examples=25, deadline=None)
def test_every_window_below_the_smallest_fails_and_every_one_above_works(transcript, bytes_per_token, max_chars):
    view = counted(transcript).view()
    policy = Scv(bytes_per_token, max_chars)
    smallest = policy.smallest_window(Request(view, Budget(0, 1, 1)))
    for window in [*range(max(0, smallest - 40), smallest + 40), smallest + 1000]:
        works = not isinstance(twin(view, policy, Budget(window, 1, 1)), str)
        assert works == (window >= smallest)


def test_the_mapping():
    image = Media("image", "image/png", sha256="f00d")
    messages = (
        Message(0, "", "system", (Text("be"), Text("kind"))),
        Message(1, "", "system", (Text("developer"),)),
        Message(2, "", "user", (Text("look"), image, Media("document", "application/pdf"), Text("here"))),
        Message(
            3,
            "",
            "assistant",
            (Text("ok"), ToolCall("a", "read", {"p": 1}, '{"p":1}'), ToolCall("b", "run", None, "{oops"), ToolCall("n", "nil", None, "null")),
        ),
        Message(4, "", "tool", (ToolResult("a", None, (Text("x"), Text("y"))),)),
        Message(5, "", "tool", (ToolResult("b", "other", (image,), True),)),
        Message(6, "", "user", (Text("harness"),), flags=frozenset({"meta"})),
        Message(7, "", "system", (Text("user is idle"),)),
        Message(8, "", "note", (Text("older note"),)),
        Message(9, "", "tool", (ToolResult("lost", None, (Text("z"),)),)),
        Message(10, "", "user", (Text("in a subagent"),), thread="sub"),
    )
    transcript = Transcript(
        "t", Source("t"), messages, tools=(ToolSpec("read", "reads", {"type": "object"}),), system=("outside",), threads=(Thread(MAIN), Thread("sub"))
    )
    prompt, tools, history = as_scv(counted(transcript).view())
    assert prompt == "outside\nbe\nkind\ndeveloper"
    assert tools == [scv.Tool("read", "reads", {"type": "object"})]
    assert history == [
        scv.Message("user", "look\nhere", images=(scv.Image("f00d", "image/png"),)),
        scv.Message("assistant", "ok", tool_calls=(scv.ToolCall("a", "read", {"p": 1}), scv.ToolCall("b", "run", "{oops"), scv.ToolCall("n", "nil", None))),
        scv.Message("tool", "x\ny", call_id="a", name="read"),
        scv.Message("tool", "", call_id="b", name="other", is_error=True),
        scv.Message("history_note", "harness"),
        scv.Message("history_note", "user is idle"),
        scv.Message("history_note", "older note"),
        scv.Message("tool", "z", call_id="lost"),
    ]
    assert as_scv(counted(transcript).view("sub")) == ("", [], [scv.Message("user", "in a subagent")])


def chat(turns, size=60):
    rows = []
    for turn in range(turns):
        rows += [("user", f"question {turn} " + "q" * size), ("assistant", f"answer {turn} " + "a" * size)]
    return conversation(*rows)


@pytest.mark.parametrize("flag", ["meta", "compact_summary"])
def test_a_harness_row_or_a_summary_is_a_history_note_whatever_its_role(flag):
    rows = (("user", "hi"), ("assistant", "recap"), ("system", "rules"))
    messages = tuple(Message(at, "", role, (Text(text),), flags=frozenset({flag} if at else ())) for at, (role, text) in enumerate(rows))
    history = as_scv(counted(Transcript("t", Source("t"), messages)).view())[2]
    assert history == [scv.Message("user", "hi"), scv.Message("history_note", "recap"), scv.Message("history_note", "rules")]


def test_the_steps_say_what_was_weighed():
    ledger = counted(chat(16))
    chosen = policies.select(ledger, Scv(summary_max_chars=300), Budget(700, 20, 20))
    said = [step.text for step in chosen.steps]
    assert said[0] == "window 700 − reserve 20 − margin 20 − fixed part 1 (prompt 0, tools 1) = 659 for the history"
    assert said[1].startswith("turn 15: ")
    assert said[1].endswith(" ≤ 659: kept, as the newest turn must be")
    assert any("> 659: stop" in text for text in said)
    kept_turns = [int(text.split()[1].rstrip(":")) for text in said if text.endswith("kept")]
    assert kept_turns == sorted(kept_turns, reverse=True)
    assert any("≤ 659: done" in text for text in said)
    assert "turns 0 to" in chosen.explain(0)
    stop = next(text for text in said if text.endswith(": stop"))
    assert stop.split(": ")[1] in chosen.explain(0)  # which turn was the first that did not fit, and by how much
    assert "the note holds the end of" in chosen.explain(0)
    assert "turn 15" in chosen.explain(31)
    assert chosen.explain(31).startswith("#31 is kept")
    with pytest.raises(PolicyError, match="message 99"):
        chosen.explain(99)


def test_a_cut_note_says_which_messages_it_only_counts():
    ledger = counted(chat(8))
    chosen = policies.select(ledger, Scv(summary_max_chars=150), Budget(420, 20, 20))
    note = chosen.notes[0]
    assert len(note.message.text) == 150
    assert 0 < len(note.quotes) < len(note.covers)
    assert "only counts this one" in chosen.explain(note.covers[-1])
    assert "holds the end of" in chosen.explain(note.quotes[-1])
    header_only = policies.select(ledger, Scv(summary_max_chars=20), Budget(420, 20, 20))
    assert header_only.notes[0].quotes == ()
    assert header_only.notes[0].message.text == "[SCV compacted 8 ear"


@pytest.mark.parametrize(("reserve", "margin"), [(10**30, 0), (10**30, 1), (10**30 - 1, 1), (2**64, 10**30)])
def test_reserve_and_margin_are_summed_exactly_however_large(reserve, margin):
    with pytest.raises(BudgetError) as raised:
        policies.select(counted(chat(2)), Scv(), Budget(10**30, reserve, margin))
    assert raised.value.culprit == scv.RESERVE


def test_only_the_newest_turn_left_and_the_note_fitted():
    ledger = counted(chat(4))
    smallest = policies.smallest_window(Scv(), Request(ledger.view(), Budget(0, 0, 0)))
    empty = policies.select(ledger, "scv", Budget(smallest, 0, 0))
    assert empty.notes[0].message.text == ""
    assert any("an empty note, 16 tokens, fit beside it" in step.text for step in empty.steps)
    part = policies.select(ledger, "scv", Budget(smallest + 10, 0, 0))
    assert part.notes[0].message.text == scv.header(6)[:30]
    assert any("its first 30 characters" in step.text for step in part.steps)


@pytest.mark.parametrize(
    ("window", "culprit", "detail"),
    [
        (100, scv.RESERVE, "reserve and margin 100 ≥ window 100"),
        (60, scv.RESERVE, "reserve and margin 100 > window 60"),
        (101, scv.STATIC, "fixed part 1 ≥ 1"),
        (102, scv.NEWEST, "newest turn 61 > 1"),
        (101 + 61, scv.NOTE, "newest turn 61 + empty note 16 > 61"),
    ],
)
def test_what_does_not_fit_is_named_with_its_numbers(window, culprit, detail):
    ledger = counted(conversation(("user", "q" * 300), ("assistant", "a" * 300), ("user", "x" * 142)))
    with pytest.raises(BudgetError) as raised:
        policies.select(ledger, "scv", Budget(window, 50, 50))
    assert (raised.value.culprit, raised.value.detail) == (culprit, detail)
    grown = window + raised.value.needed - raised.value.available
    policies.select(ledger, "scv", Budget(grown, 50, 50))
    with pytest.raises(BudgetError):
        policies.select(ledger, "scv", Budget(grown - 1, 50, 50))


def test_a_pin_is_told_and_not_kept():
    ledger = counted(chat(8))
    chosen = policies.select(ledger, "scv", Budget(420, 20, 20), pins=(0, 15))
    assert chosen.fates[0] == "summarized"
    assert any("cannot pin" in step.text for step in chosen.steps)
    assert [(finding.rule, finding.messages) for finding in chosen.alarms] == [("pin_removed", (0,))]
    assert "cannot pin" in chosen.explain(0)


def test_a_second_selection_serialises_nothing(monkeypatch):
    ledger = counted(chat(40))
    policies.select(ledger, "scv", Budget(900, 20, 20))

    def refuse(*_):
        raise AssertionError("a message was written again")

    for name in ("message_json", "tools_json", "extract", "dumps"):
        monkeypatch.setattr(scv, name, refuse)
    for window in range(300, 3000, 300):
        policies.select(ledger, "scv", Budget(window, 20, 20))
    policies.select(ledger, Scv(bytes_per_token=7, summary_max_chars=5_000), Budget(900, 20, 20))


def test_equal_policies_are_equal_and_hashable():
    assert Scv() == Scv(bytes_per_token=3)
    assert hash(Scv()) == hash(dataclasses.replace(Scv()))
    assert policies.as_python(Scv(bytes_per_token=4)) == "wb.policies.Scv(bytes_per_token=4)"
    assert policies.as_python(Odd(size=5)) == "wb.policies.make('odd', size=5)"


def test_images_weigh_in_its_own_estimate():
    one = Transcript("t", Source("t"), (Message(0, "", "user", (Text("hi"), Media("image", "image/png", sha256="a"))),))
    bare = Transcript("t", Source("t"), (Message(0, "", "user", (Text("hi"),)),))
    with_image, without = (policies.select(counted(transcript), "scv").own_after for transcript in (one, bare))
    assert with_image - without > 1600
