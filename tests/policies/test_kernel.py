"""The kernel policy is the original on the mapped messages, on any transcript."""

from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.strategies import conversation, counted, transcripts
from workbench import notes, policies
from workbench.errors import PolicyError
from workbench.model import Budget, Message, Source, Text, ToolCall, ToolResult, Transcript
from workbench.policies import Kernel
from workbench.policies.base import Added, Kept, Note
from workbench.systems import agent_runtime_kernel as kernel
from workbench.systems.mapping.common import request_row
from workbench.systems.mapping.kernel import as_kernel, as_message


def check_equal(view, policy):
    """After the system text, the policy sends what the original assembles, and then what the turn added."""
    given_to = as_kernel(view)
    if given_to.request:
        manager = kernel.ContextManager(policy.max_messages)
        expected = [*manager.assemble(given_to.prompt, given_to.items, given_to.history, given_to.request)[1:], *given_to.added]
    else:
        expected = list(given_to.added)
    chosen = policies.select(view.ledger, policy, Budget(), history=view.history, thread=view.thread)
    assert [kernel.Message(item.role, item.message.text) if isinstance(item, Note) else sent(view, item) for item in chosen.items[view.lead :]] == expected
    assert chosen.items[: view.lead] == tuple(Kept(index) for index in view.indices[: view.lead].tolist())
    counted_gone = len(given_to.history) - (policy.max_messages - 2)
    for note in chosen.notes:
        assert note.covers == tuple(view.indices[view.lead : view.lead + counted_gone].tolist())
        assert f"done: {counted_gone} earlier" in note.message.text
        assert chosen.counts["dropped"] == 1
    assert list(chosen.steps) or not len(view.indices)
    event("checkpoint" if chosen.notes else "whole")


def sent(view, item):
    return as_message(view.messages[view.row_of[item.index]])


@given(transcripts(), st.integers(2, 12), st.data())
@settings(max_examples=200, deadline=None)
def test_it_is_its_readable_twin(transcript, slots, data):
    view = counted(transcript).view(data.draw(st.sampled_from([thread.id for thread in transcript.threads])), data.draw(st.sampled_from(("full", "live"))))
    check_equal(view, Kernel(slots))


def chat(turns):
    rows = []
    for turn in range(turns):
        rows += [("user", f"question {turn}"), ("assistant", f"answer {turn}")]
    return conversation(*rows)


def test_one_message_more_is_lost_than_the_checkpoint_says():
    view = counted(chat(20)).view()  # the request is #38: 38 messages of history
    assert policies.select(view.ledger, "kernel").notes == ()
    chosen = policies.select(view.ledger, Kernel(39))
    assert "done: 1 earlier" in chosen.notes[0].message.text
    assert chosen.notes[0].covers == (0,)
    assert chosen.notes[0].quotes == (0,)
    assert chosen.fates[:3] == ("summarized", "dropped", "kept")
    assert "nothing counts it" in chosen.explain(1)
    assert "the checkpoint counts them" in chosen.explain(0)
    assert chosen.event is not None
    assert (chosen.event.tokens_before, chosen.event.tokens_after) == (40, 39)


@pytest.mark.parametrize(("slots", "texts"), [(2, ["question 2", "answer 2"]), (3, ["<checkpoint>", "question 2", "answer 2"])])
def test_with_one_slot_only_the_checkpoint_is_left_and_with_none_not_even_that(slots, texts):
    chosen = policies.select(counted(chat(3)), Kernel(slots))
    assert [message.text.splitlines()[0] for message in chosen.messages] == texts


def test_what_a_turn_adds_is_appended_and_no_person_means_no_request():
    rows = [("user", "go"), *[("assistant", f"step {number}") for number in range(60)]]
    assert policies.select(counted(conversation(*rows)), Kernel(4)).counts["kept"] == 61
    alone = policies.select(counted(conversation(*rows[1:])), Kernel(4))
    assert alone.counts["kept"] == 60
    assert "no person has spoken" in alone.explain(3)


def test_the_mapping():
    messages = (
        Message(0, "", "system", (Text("prompt"),)),
        Message(1, "", "system", (Text("rules"),)),
        Message(2, "", "user", (Text("look"), Text("here"))),
        Message(3, "", "assistant", (Text("ok"), ToolCall("a", "read", {"p": 1}, '{"p": 1}'), ToolCall("b", "run", None, "{oops"))),
        Message(4, "", "tool", (ToolResult("a", None, (Text("x"), Text("y"))),)),
        Message(5, "", "assistant", (ToolCall("c", "ls", {}, "{}"),)),
        Message(6, "", "note", (Text("older note"),)),
        Message(7, "", "user", (Text("now"),)),
        Message(8, "", "assistant", (Text("yes"),)),
    )
    view = counted(Transcript("t", Source("t"), messages, system=("outside",))).view()
    found = as_kernel(view)
    assert (found.prompt, found.items) == ("outside", [kernel.ContextItem("system 2", "prompt"), kernel.ContextItem("system 3", "rules")])
    assert found.history == [
        kernel.Message("user", "look\nhere"),
        kernel.Message("assistant", 'ok\nread({"p": 1})\nrun({oops)'),
        kernel.Message("tool", "x\ny"),
        kernel.Message("assistant", "ls({})"),
        kernel.Message("system", "older note"),
    ]
    assert found.request == [kernel.Message("user", "now")]
    assert found.added == [kernel.Message("assistant", "yes")]
    assert request_row(view) == 7


def test_context_items_stand_in_their_order_behind_the_system_text():
    policy = Kernel(context_items='[{"source": "b", "content": "two"}, {"source": "a", "content": " one ", "priority": 3}, {"source": "c", "content": " "}]')
    chosen = policies.select(counted(chat(2)), policy)
    added = chosen.items[0]
    assert isinstance(added, Added)
    assert added.message.text == '<context source="a">\none\n</context>\n\n<context source="b">\ntwo\n</context>'
    assert eval(policies.as_python(policy), {"wb": type("wb", (), {"policies": policies})}) == policy


@pytest.mark.parametrize(
    "text", ["{", "7", "[7]", '[{"source": "a"}]', '[{"source": "a", "content": 1}]', '[{"source":"a","content":"b","priority":4000000000}]', "[" * 100_000]
)
def test_what_is_no_context_item_is_refused_in_one_line(text):
    with pytest.raises(PolicyError, match="context_items") as raised:
        Kernel(context_items=text)
    assert "\n" not in str(raised.value)


@given(transcript=transcripts(), slots=st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_context_items_are_not_added_to_what_has_them(transcript, slots):
    policy = Kernel(max_messages=slots, context_items='[{"source": "a", "content": "one"}]')
    chosen = policies.select(counted(transcript), policy)
    for _ in range(2):
        sent = tuple(replace(message, index=index) for index, message in enumerate(chosen.messages))
        again = policies.select(counted(replace(transcript, messages=sent, compactions=())), policy)
        assert again.messages == sent
        chosen = again


@pytest.mark.parametrize("name", notes.NAMES)
def test_another_note_takes_the_checkpoints_slot(name):
    chosen = policies.select(counted(chat(30)), Kernel(10, note=name, note_max_chars=300))
    assert len(chosen.notes) == 1
    assert len(chosen.notes[0].message.text) <= 300
    assert chosen.notes[0].covers == tuple(range(50))


def test_its_limit_is_told_with_its_number():
    assert policies.limit_of(Kernel(1_200)) == "1,200 messages"
    assert policies.limit_of(policies.Scv()) is None
