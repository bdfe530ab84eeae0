"""The fast agentd is the readable one, request after request, on any transcript."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.policies.agentd_twin import Twin
from tests.shared import SAMPLES
from tests.strategies import conversation, counted, transcripts
from workbench import notes, policies
from workbench.ledger import View
from workbench.model import COMPACT_SUMMARY, META, Budget, Message, Source, Text, ToolCall, ToolResult, Transcript
from workbench.notes.structured_fill import LISTS
from workbench.policies.agentd import Agentd
from workbench.policies.agentd_state import State, measure
from workbench.policies.base import Kept, Request, derive_fates
from workbench.systems import agentd
from workbench.systems.mapping.agentd import as_messages

LIVELY = settings(max_examples=120, deadline=None)
agents = st.builds(
    Agentd,
    compact_at=st.sampled_from((0.05, 0.5, 0.57, 0.8, 1)),
    keep_last=st.integers(1, 9),
    target=st.none() | st.integers(0, 400),
    note=st.sampled_from(notes.NAMES),
    note_max_chars=st.sampled_from((0, 30, 400)),
)


def beginning(view: View, rows: int) -> View:
    """The view as it was at an earlier request: its first rows."""
    rows = max(rows, view.lead)
    return View(
        view.ledger,
        view.thread,
        view.history,
        view.indices[:rows],
        view.messages[:rows],
        view.lead,
        view.tokens[:rows],
        view.kinds[:rows],
        view.fixed_kinds,
    )


def check_equal(chosen, twin, view, policy, window):
    """The fast one sends what the original's context sends, and estimates what it estimates."""
    sent = twin.send(view, policy, window)
    context = twin.context
    folded, lead = twin.folded, view.lead
    assert (chosen.state["seen"], chosen.state["folded"]) == (twin.seen, folded)
    assert (chosen.own_after, chosen.state["version"]) == (context.est_tokens, context.version)
    assert chosen.own_before == sum(agentd.est_tokens(message) for message in as_messages(view, view.messages[lead:]))
    assert chosen.indices == (*view.indices[:lead].tolist(), *view.indices[lead + folded :].tolist())
    assert replace(State.from_json(chosen.state).summary, updated=0) == replace(context.summary, updated=0)

    heads = len(sent) - (len(view.messages) - lead - folded)
    assert [note.message.text for note in chosen.notes] == [message.text for message in sent[:heads]]
    for note in chosen.notes:
        assert note.role == sent[0].role == "system"
        assert note.covers == tuple(view.indices[lead : lead + folded].tolist())
        assert set(note.quotes) <= set(note.covers)
        assert chosen.items.index(note) == lead
    assert (chosen.fate_codes == derive_fates(view, chosen.items)).all()
    assert all(chosen.explain(index).startswith(f"#{index} is ") for index in view.indices.tolist())
    assert all("no rule of this policy" not in chosen.explain(index) for index in view.indices.tolist())
    json.dumps(dict(chosen.state), allow_nan=False)


@given(transcripts(max_messages=40), agents, st.integers(0, 2_000), st.sampled_from(("full", "live")))
@LIVELY
def test_it_is_its_readable_twin(transcript, policy, window, history):
    view = counted(transcript).view(history=history)
    chosen = policy.select(Request(view, Budget(window, 0, 0)))
    check_equal(chosen, Twin(), view, policy, window)
    event("folds" if chosen.event else "does not fold")
    total = chosen.own_before
    for nearby in {int(total / policy.compact_at) + step for step in (-1, 0, 1)}:  # around the trigger
        if nearby >= 0:
            check_equal(policy.select(Request(view, Budget(nearby, 0, 0))), Twin(), view, policy, nearby)


@given(transcripts(max_messages=40), agents, st.integers(20, 2_000), st.data())
@LIVELY
def test_it_is_its_readable_twin_over_several_requests(transcript, policy, window, data):
    view = counted(transcript).view()
    sizes = data.draw(st.lists(st.integers(0, len(view.messages)), min_size=1, max_size=8).map(sorted))
    twin, chosen, fired = Twin(), None, 0
    for size in sizes:
        part = beginning(view, size)
        chosen = policy.select(Request(part, Budget(window, 0, 0)), chosen)
        check_equal(chosen, twin, part, policy, window)
        fired += chosen.event is not None
    event(f"{min(fired, 3)} folds")


long_turns = st.lists(st.tuples(st.sampled_from(("user", "assistant")), st.sampled_from(("", "I'll use a list instead.", "What now, or later?", "w " * 60))))


@given(long_turns.filter(lambda rows: len(rows) > 12), agents, st.integers(10, 300))
@LIVELY
def test_it_is_its_readable_twin_as_a_session_grows(rows, policy, window):
    rows = [(role, f"{at} {text}") for at, (role, text) in enumerate(rows)]
    view = counted(conversation(*rows)).view()
    twin, chosen = Twin(), None
    for size in range(1, len(rows) + 1, 3):
        part = beginning(view, size)
        chosen = policy.select(Request(part, Budget(window, 0, 0)), chosen)
        check_equal(chosen, twin, part, policy, window)
    event(f"{min(chosen.state['version'] - 1, 4)} folds")


@pytest.mark.parametrize("name", ["coding_agent.jsonl", "long_session.jsonl", "support_session.json"])
@pytest.mark.parametrize("window", [2_000, 32_000, 128_000])
def test_samples_at_real_budgets(name, window):
    view = wb.count(wb.read(SAMPLES / name), "chars/4").view() if name != "support_session.json" else counted(wb.read(SAMPLES / name)).view()
    for policy in (Agentd(), Agentd(target=1_000), Agentd(note="extracts")):
        twin, chosen = Twin(), None
        for size in (len(view.messages) // 3, len(view.messages) // 2, len(view.messages)):
            part = beginning(view, size)
            chosen = policy.select(Request(part, Budget(window)), chosen)
            check_equal(chosen, twin, part, policy, window)


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=30), st.integers(0, 30), st.integers(1, 12), st.none() | st.integers(0, 300))
@LIVELY
def test_the_fold_is_the_originals(rows, start, keep_last, target):
    view = counted(conversation(*[("user" if user else "assistant", "abcd" * size) for size, user in rows])).view()
    start = min(start, len(rows))
    tokens, users = [size + 4 for size, _ in rows], [user for _, user in rows]
    expected = agentd.fold_count(tokens[start:], users[start:], keep_last, target)
    assert measure(view).fold(start, keep_last, target) == start + expected


@given(transcripts(max_messages=40), agents, st.integers(0, 400))
@LIVELY
def test_no_second_fold_without_growth(transcript, policy, window):
    request = Request(counted(transcript).view(), Budget(window, 0, 0))
    first = policy.select(request)
    second = policy.select(request, first)
    assert second.event is None
    assert second.items == first.items
    assert second.state == first.state
    assert (second.own_before, second.own_after) == (first.own_before, first.own_after)


@given(transcripts(max_messages=40), agents, st.integers(20, 400))
@LIVELY
def test_the_state_goes_through_json(transcript, policy, window):
    view = counted(transcript).view()
    first = policy.select(Request(beginning(view, len(view.messages) // 2), Budget(window, 0, 0)))
    state = json.loads(json.dumps(dict(first.state)))
    request = Request(view, Budget(window, 0, 0))
    again, once = policy.select(request, replace(first, state=state)), policy.select(request, first)
    assert again.items == once.items
    assert again.state == once.state
    assert pickle.loads(pickle.dumps(dict(once.state))) == once.state


def chat(turns, size=60):
    rows = []
    for turn in range(turns):
        rows += [("user", f"Please do the task with number {turn} now. " + "q" * size), ("assistant", f"I'll use way {turn} for it. " + "a" * size)]
    return conversation(*rows)


def test_the_mapping():
    messages = (
        Message(0, "", "system", (Text("be kind"),)),
        Message(1, "", "user", (Text("look"), Text("here")), ts=7),
        Message(2, "", "assistant", (Text("ok"), ToolCall("a", "read", {"p": 1}, '{"p":1}'), ToolCall("b", "run", None, "{oops"))),
        Message(3, "", "tool", (ToolResult("a", None, (Text('{"b": 1, "a": [1.0]}'),)),)),
        Message(4, "", "tool", (ToolResult("b", "other", (Text("x"), Text("NaN")), True),)),
        Message(5, "", "user", (Text("harness"),), flags=frozenset({META})),
        Message(6, "", "user", (Text("recap"),), flags=frozenset({COMPACT_SUMMARY})),
        Message(7, "", "system", (Text("user is idle"),)),
        Message(8, "", "note", (Text("older note"),)),
        Message(9, "", "assistant", ()),
        Message(10, "", "tool", (ToolResult("lost", None, (Text("null"),)),)),
    )
    view = counted(Transcript("t", Source("t"), messages, system=("outside",))).view()
    assert as_messages(view, view.messages[view.lead :]) == [
        agentd.User("look\nhere", ts=7),
        agentd.Assistant("ok", (agentd.ToolCall("a", "read", {"p": 1}), agentd.ToolCall("b", "run", "{oops"))),
        agentd.Tool("a", "read", {"b": 1, "a": [1.0]}),
        agentd.Tool("b", "other", "x\nNaN", True),
        agentd.Note("harness"),
        agentd.Note("recap"),
        agentd.System("user is idle"),
        agentd.Note("older note"),
        agentd.Assistant(),
        agentd.Tool("lost", "", None),
    ]
    assert measure(view).count == 10
    deep = Message(0, "", "tool", (ToolResult("a", "x", (Text("[" * 100_000),)),))
    assert as_messages(view, (deep,))[0].content == "[" * 100_000


@pytest.mark.parametrize("flag", [META, COMPACT_SUMMARY])
def test_a_harness_row_or_a_summary_is_a_note_whatever_its_role(flag):
    rows = (("user", "hi"), ("assistant", "recap"), ("system", "rules"))
    messages = tuple(Message(at, "", role, (Text(text),), flags=frozenset({flag} if at else ())) for at, (role, text) in enumerate(rows))
    view = counted(Transcript("t", Source("t"), messages)).view()
    assert as_messages(view, view.messages) == [agentd.User("hi"), agentd.Note("recap"), agentd.Note("rules")]
    call = Message(1, "", "assistant", (ToolCall("a", "read", {}, "{}"),), flags=frozenset({flag}))
    assert isinstance(as_messages(view, (call,))[0], agentd.Assistant)


def test_the_steps_say_what_was_weighed():
    view = counted(chat(16)).view()
    chosen = policies.select(view.ledger, Agentd(target=60), Budget(700))
    said = [step.text for step in chosen.steps]
    total = chosen.own_before
    assert said[0] == f"32 messages appended: estimate {total:,} (characters ÷ 4, and 4 a message; prompt and tools are not in it)"
    assert said[1] == f"estimate {total:,} > 0.8 × 700 = 560: compact"
    assert said[2] == "32 messages are live; all but the newest 8 are to be folded: 24"
    assert said[3].startswith("they have ")
    assert "tokens > target 60: 6 more are folded" in said[3]
    assert said[4].startswith("30 messages folded, version 2: the summary now has 15 goals, 15 decisions, 0 open items, 0 facts")
    assert said[5].startswith("counted anew: messages ")
    assert "30 messages folded" in chosen.explain(0)
    assert "words of 30 of 30" in chosen.explain(0)
    assert "sent as it is" in chosen.explain(31)
    assert (chosen.event.tokens_before, chosen.event.tokens_after) == (total, chosen.own_after)

    quiet = policies.select(view.ledger, "agentd", Budget(100_000))
    assert [step.text for step in quiet.steps][1:] == [f"estimate {total:,} ≤ 0.8 × 100,000 = 80,000: no compaction", "everything is sent as it is"]
    assert policies.select(view.ledger, "agentd", Budget(0, 0, 0)).steps[1].text == "a window of 0 is unknown to it: no compaction"


def test_the_boundary_is_a_users_message():
    rows = [("user", "u" * 40), ("assistant", "a" * 40), ("user", "v" * 40), *[("assistant", "b" * 40)] * 12]
    chosen = policies.select(counted(conversation(*rows)), "agentd", Budget(100, 0, 0))
    assert chosen.indices[0] == 2
    assert any("and #7 is none: the fold ends 5 earlier, at #2" in step.text for step in chosen.steps)
    nobody = policies.select(counted(conversation(*rows[3:])), "agentd", Budget(50, 0, 0))
    assert set(nobody.fates) == {"kept"}
    assert "nothing is left to fold" in [step.text for step in nobody.steps]
    few = policies.select(counted(conversation(*rows[:9])), "agentd", Budget(50, 0, 0))
    assert any("9 messages are live, fewer than 8 + 2: nothing is folded" in step.text for step in few.steps)


def test_an_empty_summary_is_not_sent_and_still_costs_nine():
    rows = [("user", "🙂"), ("assistant", "🙂" * 400), ("user", "🙂"), ("assistant", "🙂" * 4)] + [("user", "🙂"), ("assistant", "🙂")] * 4
    chosen = policies.select(counted(conversation(*rows)), "agentd", Budget(100, 0, 0))
    assert chosen.notes == ()
    assert set(chosen.fates) == {"dropped", "kept"}
    assert chosen.own_after == sum(5 for _ in range(8)) + 9
    assert "what was folded is gone" in chosen.explain(0)
    again = policies.select(counted(conversation(*rows)), "agentd", Budget(100_000, 0, 0))
    assert again.own_after == again.own_before  # nine more only after a recount


def test_a_summary_grows_to_its_cap_over_the_requests_and_the_newest_stay():
    view = counted(chat(60)).view()
    chosen = None
    for size in range(10, 121, 2):
        chosen = Agentd().select(Request(beginning(view, size), Budget(500, 0, 0)), chosen)
    summary = chosen.state["summary"]
    assert len(summary["goals"]) == 32
    folded = chosen.state["folded"]
    assert summary["covers_messages"] == folded
    assert chosen.state["sources"]["goals"] == tuple(range(folded - 64, folded, 2))
    assert any("at the cap of 32" in step.text for step in chosen.steps) == (chosen.event is not None)
    assert len(chosen.notes[0].covers) == folded
    assert set(chosen.notes[0].quotes) == {index for name in LISTS for index in chosen.state["sources"][name]}
    assert "folded for an earlier request" in chosen.explain(0) or chosen.event


def test_it_starts_anew_and_says_so():
    view = counted(chat(16)).view()
    request = Request(view, Budget(700))
    other = Agentd().select(Request(counted(chat(12, size=3)).view(), Budget(300)))
    anew = Agentd().select(request, other)
    assert anew.items == Agentd().select(request).items
    assert "are not the first of this request's: the context starts anew" in anew.steps[0].text
    shrunk = Agentd().select(Request(beginning(view, 4), Budget(700)), anew)
    assert "the context starts anew" in shrunk.steps[0].text
    foreign = Agentd().select(request, policies.get("none").select(request))
    assert foreign.steps[0].text == "the selection before is another policy's: the context starts anew"


def test_another_note_is_the_narrative_of_all_that_was_folded():
    view = counted(chat(30)).view()
    policy, chosen = Agentd(note="extracts", note_max_chars=300), None
    for size in (30, 44, 60):
        chosen = policy.select(Request(beginning(view, size), Budget(400, 0, 0)), chosen)
    text = chosen.notes[0].message.text
    assert text.startswith("Summary of earlier conversation:\n[SCV compacted 52 earlier messages.")
    assert len(text) == len("Summary of earlier conversation:\n") + 300 + 1
    assert chosen.notes[0].quotes[0] == 0


def test_a_result_two_turns_after_its_call_can_lose_it():
    rows = [
        ("user", "u" * 400),
        ("assistant", "x", "late"),
        *[("user", "and " * 40), ("assistant", "ok")] * 4,
        ("tool", "late", "out"),
        ("assistant", "done"),
    ]
    chosen = policies.select(counted(conversation(*rows)), "agentd", Budget(100, 0, 0))
    assert Kept(1) not in chosen.items
    assert Kept(10) in chosen.items
    assert "pairs" not in Agentd.promises
    assert "orphan_result" in [finding.rule for finding in chosen.findings]


def test_a_second_selection_estimates_and_fills_nothing(monkeypatch):
    ledger = counted(chat(40))
    policies.select(ledger, "agentd", Budget(900))

    def refuse(*_):
        raise AssertionError("it was done again")

    for module in ("agentd", "agentd_state"):
        for name in ("fill", "est_tokens", "as_message"):
            monkeypatch.setattr(f"workbench.policies.{module}.{name}", refuse, raising=False)
    for window in range(300, 3000, 300):
        policies.select(ledger, "agentd", Budget(window))


def test_a_replay_estimates_each_message_once(monkeypatch):
    view = counted(chat(40)).view()
    calls = []
    real = agentd.est_tokens
    monkeypatch.setattr("workbench.policies.agentd_state.est_tokens", lambda message: calls.append(1) or real(message))
    chosen = None
    for size in range(2, 81, 2):
        chosen = Agentd().select(Request(beginning(view, size), Budget(900)), chosen)
    assert len(calls) == 80


def test_a_pin_is_told_and_not_kept():
    chosen = policies.select(counted(chat(16)), "agentd", Budget(700), pins=(0, 31))
    assert chosen.fates[0] == "summarized"
    assert "cannot pin" in chosen.explain(0)
    assert [finding.messages for finding in chosen.findings if finding.rule == "pin_removed"] == [(0,)]


def test_leading_system_text_stays_first_and_is_in_no_estimate():
    rows = [("system", "s" * 4_000), *[(message.role, message.text) for message in chat(16).messages]]
    with_prompt, without = policies.select(counted(conversation(*rows)), "agentd", Budget(700)), policies.select(counted(chat(16)), "agentd", Budget(700))
    assert with_prompt.items[0] == Kept(0)
    assert with_prompt.items[1] == with_prompt.notes[0]
    assert (with_prompt.own_before, with_prompt.own_after) == (without.own_before, without.own_after)
    assert np.array_equal(with_prompt.fate_codes[1:], without.fate_codes)
