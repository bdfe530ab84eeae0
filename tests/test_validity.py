"""What is wrong with a list of messages, for each provider."""

import dataclasses
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import conversation, transcripts
from workbench.model import HIDDEN, Message, Reasoning, Text, ToolCall, ToolResult
from workbench.turns import tool_pairs
from workbench.validity import LEVELS, PROVIDERS, RULES, Columns, Finding, check, check_columns, check_pairs, provider_of, sent_as
from workbench.validity.columns import ASSISTANT, USER


def said(*rows):
    return [(finding.rule, finding.messages, finding.text) for finding in check_pairs(conversation(*rows).messages)]


def rules(provider, *rows, **about: Any):
    """Rule and messages of each finding of a conversation."""
    return [(finding.rule, finding.messages) for finding in check(conversation(*rows).messages, provider, **about)]


def message(index, role, *parts, **more):
    return Message(index, "", role, parts, **more)


USER_ASKS, ASSISTANT_SAYS = ("user", "q"), ("assistant", "fine")


def test_whole_pairs_are_fine():
    assert said(("user", "q"), ("assistant", "", "a", "b"), ("tool", "b", "x"), ("tool", "a", "y"), ("assistant", "done")) == []
    assert said() == []


def test_b46_an_orphan_result():
    assert said(("tool", "a", "x"), ("user", "q")) == [("orphan_result", (0,), "result #0 has no call")]


def test_b47_b56_an_unanswered_call():
    assert said(("assistant", "", "a", "b"), ("tool", "a", "x")) == [("unanswered_call", (0,), "call b in #0 has no result")]
    assert said(("assistant", "", "")) == [("unanswered_call", (0,), "call (no id) in #0 has no result")]


def test_b53_a_doubled_result():
    assert said(("assistant", "", "a"), ("tool", "a", "x"), ("tool", "a", "y")) == [("duplicate_result", (2,), "result #2 answers a a second time")]


def pairs_of(messages):
    """The same findings from the pairs as `turns` tells them: the readable twin of the columns."""
    for pair in tool_pairs(messages):
        if pair.call is None and pair.result is not None:
            yield "orphan_result", pair.result, ""
        elif pair.call is not None and pair.result is None:
            yield "unanswered_call", pair.call, pair.id
        for twice in pair.duplicates:
            yield "duplicate_result", twice, pair.id


@given(transcripts())
def test_pairs_of_the_columns_are_those_of_turns(transcript):
    found = []
    for finding in check_pairs(transcript.messages):
        named = re.match(r"(?:call|result #\d+ answers) (.+?) (?:in #\d+ has no result|a second time)$", finding.text)
        call_id = (named[1] if named else "").replace("(no id)", "")
        found.append((finding.rule, finding.messages[0], call_id))
    assert sorted(found) == sorted(pairs_of(transcript.messages))


@given(transcripts(), st.data())
def test_rows_taken_and_joined_are_as_if_made_from_the_messages(transcript, data):
    messages = transcript.messages
    order = data.draw(st.lists(st.sampled_from(range(len(messages))), max_size=12)) if messages else []
    cut = data.draw(st.integers(0, len(messages)))
    first = Columns.of(messages[:cut])
    whole = first.then(Columns.of(messages[cut:], ids=first.ids))
    taken = whole.take(Columns.of(messages).index[order] if order else Columns.of(()).index)
    wanted = Columns.of([messages[at] for at in order])
    for column in dataclasses.fields(Columns):
        mine, plain = getattr(taken, column.name), getattr(wanted, column.name)
        if column.name == "event_id":
            assert [taken.id_texts[at] for at in mine] == [wanted.id_texts[at] for at in plain]
        elif column.name != "ids":
            assert mine.tolist() == plain.tolist()
    for made in (taken, wanted):
        assert [(item.rule, item.messages) for item in check_columns(made)] == [(item.rule, item.messages) for item in check([messages[at] for at in order])]


@given(transcripts(), st.sampled_from(PROVIDERS), st.sampled_from((None, "claude-opus-4-8", "claude-3-opus-20240229", "gpt-5")), st.booleans())
def test_any_list_can_be_judged_and_every_finding_has_a_rule(transcript, provider, model, open_end):
    for finding in check(transcript.messages, provider, model=model, own=provider, open_end=open_end):
        assert finding.provider in ("any", provider)
        assert any(rule.name == finding.rule and finding.provider in (rule.providers or ("any",)) for rule in RULES)
        assert set(finding.messages) <= set(range(len(transcript.messages)))
        assert finding.text.isprintable()


def test_all_three_are_asked_unless_one_is_named():
    rows = conversation(("user", ""), ("assistant", "a"), ("assistant", "b")).messages
    assert {finding.provider for finding in check(rows)} == {"openai-chat", "anthropic"}
    assert {finding.provider for finding in check(rows, "openai-chat")} == {"openai-chat"}
    assert check(rows, "openai-responses") == ()


def test_each_rule_says_what_it_is_and_where_that_is_written():
    for rule in RULES:
        assert rule.says.endswith(".")
        assert rule.source
        assert "://" not in rule.says + rule.source
        assert LEVELS[rule.name] == rule.level


# Results and their calls.

APART = (USER_ASKS, ("assistant", "", "a", "b"), ("tool", "a", "x"), ("user", "wait"), ("tool", "b", "y"), ("user", "on"))


def test_results_come_directly_after_their_call():
    assert rules("openai-chat", *APART) == [("result_apart", (1, 4))]
    assert rules("anthropic", *APART) == [("result_apart", (1, 4))]
    assert rules("openai-responses", *APART) == []
    assert check(conversation(*APART).messages, "anthropic")[0].text == "result #4 does not come directly after its call in #1"


def test_a_result_a_turn_later_is_apart():
    late = (USER_ASKS, ("assistant", "", "a"), ("user", "other"), ("assistant", "yes"), ("tool", "a", "x"), ("user", "on"))
    for provider in ("openai-chat", "anthropic"):
        assert ("result_apart", (1, 4)) in rules(provider, *late)


def test_anthropic_has_assistant_messages_in_a_row_as_one():
    rows = (USER_ASKS, ("assistant", "", "a"), ("assistant", "working on it"), ("tool", "a", "x"), ("user", "on"))
    assert ("result_apart", (1, 3)) in rules("openai-chat", *rows)
    assert [rule for rule, _ in rules("anthropic", *rows)] == ["same_role"]


def test_a_hidden_row_between_is_not_sent():
    rows = list(conversation(USER_ASKS, ("assistant", "", "a"), ("user", ""), ("tool", "a", "x"), ("user", "on")).messages)
    rows[2] = dataclasses.replace(rows[2], flags=frozenset({HIDDEN}))
    assert check(rows) == ()


def test_results_of_tools_that_the_provider_ran_stand_in_the_response():
    search = (ToolCall("s", "web_search", {}, "{}", server_side=True), ToolResult("s", "web_search", (Text("found"),)), Text("so"))
    assert check([message(0, "user", Text("q")), message(1, "assistant", *search), message(2, "user", Text("on"))]) == ()


def test_call_ids():
    rows = (USER_ASKS, ("assistant", "", "fn.read:0"), ("tool", "fn.read:0", "x"), ("assistant", "", "fn.read:0"), ("tool", "fn.read:0", "y"), ("user", "on"))
    assert rules("anthropic", *rows) == [("call_id_form", (1,)), ("call_id_form", (3,)), ("call_id_twice", (1, 3))]
    assert rules("openai-chat", *rows) == []
    for length, found in ((64, []), (65, [("call_id_long", (1,))])):
        assert rules("openai-responses", USER_ASKS, ("assistant", "", "c" * length), ("tool", "c" * length, "x")) == found
    nameless = (USER_ASKS, ("assistant", "", "", ""), ("tool", "", "x"), ("tool", "", "y"), ("user", "on"))
    assert rules("anthropic", *nameless) == []  # they get ids that are made for them


def test_b97_an_id_is_told_in_one_bounded_line():
    [found] = check([message(0, "assistant", ToolCall("a\nb " + "x" * 10_000, "run", {}, "{}"))], "openai-chat")
    assert found.text == f"call a b {'x' * 76} in #0 has no result"


# Roles.


def test_b65_system_inside_the_conversation_is_for_anthropic_only():
    rows = (("system", "s"), ("system", "more"), USER_ASKS, ASSISTANT_SAYS, ("system", "idle"), ("user", "on"))
    assert rules("anthropic", *rows) == [("system_inside", (4,))]
    assert rules("openai-chat", *rows) == rules("openai-responses", *rows) == []


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-opus-4-8", True),
        ("claude-opus-5", True),
        ("us.anthropic.claude-opus-4-8-v1:0", True),
        ("claude-opus-4-7", False),
        ("claude-opus-4-20250514", False),
        ("claude-haiku-4-5", False),
        (None, False),
    ],
)
def test_the_newest_models_take_system_text_between_user_and_assistant(model, takes):
    rows = (USER_ASKS, ("system", "be brief"), ASSISTANT_SAYS, ("user", "on"))
    assert rules("anthropic", *rows, model=model) == ([] if takes else [("system_inside", (1,))])
    elsewhere = (USER_ASKS, ASSISTANT_SAYS, ("system", "be brief"), ("user", "on"))
    assert rules("anthropic", *elsewhere, model=model) == [("system_inside", (2,))]


def test_b64_two_of_one_role_in_a_row():
    rows = (USER_ASKS, ("user", "and"), ASSISTANT_SAYS, ("assistant", "more"), ("user", "on"))
    assert rules("anthropic", *rows) == rules("openai-chat", *rows) == [("same_role", (0, 1)), ("same_role", (2, 3))]
    assert rules("openai-responses", *rows) == []
    assert LEVELS["same_role"] == "notice"
    packed = (USER_ASKS, ("assistant", "", "a"), ("tool", "a", "x"), ("user", "typed with the result"), ASSISTANT_SAYS, ("user", "on"))
    assert check(conversation(*packed).messages) == ()


def test_a_note_is_sent_as_its_role_says():
    note = message(-1, "note", Text("recap"))
    after = conversation(USER_ASKS).messages
    assert [(f.provider, f.messages, f.text) for f in check([note, *after], "anthropic")] == [
        ("anthropic", (0,), "the note and #0 are two user messages in a row")
    ]
    assert check([note, *after], "anthropic", roles=[sent_as("system"), "user"]) == ()
    [found] = check(
        [*after, note, message(1, "assistant", Text("a")), message(2, "user", Text("b"))], "anthropic", roles=["user", "system", "assistant", "user"]
    )
    assert (found.rule, found.messages, found.text) == ("system_inside", (), "the note is a system message inside the conversation")
    assert Columns.of([note]).role.tolist() == [USER]
    assert Columns.of([note], [sent_as("assistant")]).role.tolist() == [ASSISTANT]


def test_first_and_last_message():
    assert rules("anthropic", ("system", "s"), ASSISTANT_SAYS, ("user", "on")) == [("first_message", (1,))]
    assert rules("openai-chat", ("system", "s"), ASSISTANT_SAYS, ("user", "on")) == []
    ends = (USER_ASKS, ("assistant", "so "))
    assert rules("anthropic", *ends, model="claude-sonnet-4-6") == rules("anthropic", *ends) == [("last_message", (1,))]
    assert rules("anthropic", *ends, model="claude-3-7-sonnet-20250219") == [("trailing_space", (1,))]
    assert rules("anthropic", USER_ASKS, ("assistant", "so"), model="claude-opus-4-5") == []
    assert rules("anthropic", *ends, open_end=True) == []
    assert rules("openai-chat", *ends) == []


def test_system_text_alone_is_no_message():
    assert rules("anthropic", ("system", "s")) == [("no_message", ())]
    assert rules("openai-chat", ("system", "s")) == []
    assert check(()) == ()


# Content.


def test_empty_content():
    rows = [
        message(0, "user", Text("")),
        message(1, "assistant", Text(" \n")),
        message(2, "user", Text(" "), Text("x")),
        message(3, "assistant"),
        message(4, "user", Text("y")),
    ]
    assert [(f.rule, f.messages, f.text) for f in check(rows, "anthropic")] == [
        ("empty_text", (0,), "#0 holds an empty text"),
        ("empty_text", (1,), "#1 holds only white space"),
        ("empty_message", (3,), "#3 has no content"),
    ]
    assert check(rows, "openai-chat") == check(rows, "openai-responses") == ()


def test_calls_without_text_and_results_without_content_are_fine():
    assert check(conversation(USER_ASKS, ("assistant", "", "a"), ("tool", "a", ""), ("user", "on")).messages) == ()


def test_an_empty_last_message_of_the_assistant_is_allowed():
    rows = [message(0, "user", Text("q")), message(1, "assistant")]
    assert check(rows, "anthropic", model="claude-3-haiku-20240307") == ()


# Reasoning.


def test_thinking_needs_its_signature_where_it_goes_back():
    rows = [
        message(0, "user", Text("q")),
        message(1, "assistant", Reasoning("hm", 400), Text("a")),
        message(2, "user", Text("r")),
        message(3, "assistant", Reasoning("hm"), Text("b")),
        message(4, "user", Text("s")),
    ]
    assert [(f.rule, f.messages) for f in check(rows, own="anthropic")] == [("unsigned_thinking", (3,))]
    assert check(rows, own="openai-responses") == check(rows) == ()


def test_reasoning_is_followed_by_what_it_led_to():
    rows = [message(0, "user", Text("q")), message(1, "assistant", Reasoning(None, 400)), message(2, "user", Text("r"))]
    assert [(f.rule, f.messages) for f in check(rows, "openai-responses", own="openai-responses")] == [("reasoning_alone", (1,))]
    assert check(rows, "openai-responses") == ()
    goes_on = [*rows[:2], message(2, "assistant", Text("a")), message(3, "user", Text("r"))]
    assert check(goes_on, "openai-responses", own="openai-responses") == ()
    assert check(rows[:2], "openai-responses", own="openai-responses", open_end=True) == ()


def test_whose_list_a_transcript_is():
    assert [provider_of(name) for name in ("anthropic", "claude-code", "codex", "openai-responses", "openai-chat", "langchain")] == [
        "anthropic",
        "anthropic",
        "openai-responses",
        "openai-responses",
        "openai-chat",
        None,
    ]
    assert provider_of("langchain", "anthropic/claude-sonnet-4-5") == "anthropic"
    assert provider_of("openai-chat", "claude-sonnet-4-5") == "openai-chat"


def test_what_was_in_the_source_does_not_make_two_findings_differ():
    one = Finding("any", "orphan_result", (1,), "x")
    assert one == dataclasses.replace(one, in_source=True)
    assert hash(one) == hash(dataclasses.replace(one, in_source=True))
