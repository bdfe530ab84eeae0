"""Turn groups and tool pairs."""

from dataclasses import replace

import pytest
from hypothesis import given

from tests.strategies import conversation, transcripts
from workbench.model import COMPACT_SUMMARY, HIDDEN, META, SYNTHETIC, Message, Text, ToolCall, ToolResult
from workbench.turns import Pair, TurnGroup, starts_turn, tool_pairs, turn_groups


def call(index, *ids):
    return Message(index, "", "assistant", tuple(ToolCall(call_id, "run", {}, "{}") for call_id in ids))


def result(index, call_id, role="tool"):
    return Message(index, "", role, (ToolResult(call_id, "run", (Text("out"),)),))


@pytest.mark.parametrize("flag", [META, COMPACT_SUMMARY, HIDDEN, SYNTHETIC])
def test_a_row_that_no_person_wrote_starts_no_turn(flag):
    person = Message(0, "", "user", (Text("hi"),))
    assert starts_turn(person)
    assert not starts_turn(replace(person, flags=frozenset({flag})))
    assert starts_turn(replace(person, flags=frozenset({"error"})))


@pytest.mark.parametrize("role", ["system", "assistant", "tool", "note"])
def test_only_a_user_starts_a_turn(role):
    assert not starts_turn(Message(0, "", role, (Text("hi"),)))


def test_groups_leave_the_fixed_part_out_and_keep_what_precedes_the_first_person():
    messages = conversation(
        ("system", "s"), ("system", "s"), ("assistant", "hello"), ("user", "a"), ("assistant", "b"), ("system", "later"), ("user", "c")
    ).messages
    assert turn_groups(messages) == (TurnGroup(0, (2,), None), TurnGroup(1, (3, 4, 5), 3), TurnGroup(2, (6,), 6))
    assert turn_groups(messages[:2]) == ()
    assert turn_groups(()) == ()


@given(transcripts())
def test_every_row_outside_the_fixed_part_is_in_one_group(transcript):
    messages = [message for message in transcript.messages if message.thread == "main"]
    fixed = set(transcript.fixed())
    groups = turn_groups(messages)
    assert [index for group in groups for index in group.messages] == [message.index for message in messages if message.index not in fixed]
    assert [group.index for group in groups] == list(range(len(groups)))
    assert all(group.user == group.messages[0] for group in groups[1:])


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_b55_parallel_calls_pair_by_id_in_any_order(order):
    messages = (call(0, "a", "b"), result(1, order[0]), result(2, order[1]))
    assert tool_pairs(messages) == (Pair("a", 0, 1 + order.index("a")), Pair("b", 0, 1 + order.index("b")))


def test_a_result_two_turns_after_its_call_is_its_result():
    messages = (call(0, "a"), Message(1, "", "user", (Text("x"),)), call(2, "b"), result(3, "b"), Message(4, "", "user", (Text("y"),)), result(5, "a"))
    assert tool_pairs(messages) == (Pair("a", 0, 5), Pair("b", 2, 3))


def test_b53_a_second_result_is_a_duplicate():
    assert tool_pairs((call(0, "a"), result(1, "a"), result(2, "a"))) == (Pair("a", 0, 1, (2,)),)


def test_b56_a_call_at_the_end_is_pending():
    assert tool_pairs((call(0, "a"),)) == (Pair("a", 0, None),)


def test_an_orphan_result_has_no_call():
    assert tool_pairs((result(0, "a"), result(1, "a"))) == (Pair("a", None, 0, (1,)),)


def test_an_id_used_again_starts_a_new_pair():
    assert tool_pairs((call(0, "a"), result(1, "a"), call(2, "a"), result(3, "a"))) == (Pair("a", 0, 1), Pair("a", 2, 3))


def test_without_ids_calls_and_results_pair_in_order():
    assert tool_pairs((call(0, "", ""), result(1, ""), result(2, ""), result(3, ""))) == (Pair("", 0, 1), Pair("", 0, 2), Pair("", None, 3))


def test_a_server_run_tool_pairs_inside_its_message():
    message = Message(0, "", "assistant", (ToolCall("s", "search", {}, "{}", True), ToolResult("s", "search", (Text("found"),))))
    assert tool_pairs((message,)) == (Pair("s", 0, 0),)


@given(transcripts())
def test_every_call_and_every_result_is_in_one_pair(transcript):
    pairs = tool_pairs(transcript.messages)
    calls = [message.index for message in transcript.messages for part in message.parts if type(part) is ToolCall]
    results = [message.index for message in transcript.messages for part in message.parts if type(part) is ToolResult]
    assert sorted(pair.call for pair in pairs if pair.call is not None) == calls
    assert sorted(index for pair in pairs for index in (pair.result, *pair.duplicates) if index is not None) == results
