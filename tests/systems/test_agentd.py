"""agentd beyond the golden vectors: what the prose says of messages, summary, context and skills."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.agentd_strategies import U64, contexts, messages, numbers, summaries, values
from workbench.systems import agentd
from workbench.systems.agentd import Assistant, ContextState, InvalidRecord, Note, Summary, System, Tool, ToolCall, User
from workbench.systems.rustjson import dumps, loads


def through_json(value):
    """As a store would give it back; keys of a text that is written twice keep the last."""
    return loads(dumps(value))


# Messages


@given(messages)
def test_a_message_survives_its_record(message):
    assert agentd.message_from_json(through_json(agentd.message_json(message))) == message


@pytest.mark.parametrize(
    ("message", "keys"),
    [
        (System("a"), ["role", "text", "ts"]),
        (User("a"), ["role", "text", "ts"]),
        (User("a", ""), ["role", "text", "principal", "ts"]),
        (Assistant(), ["role", "ts"]),
        (Assistant("", (ToolCall("1", "n", None),)), ["role", "text", "tool_calls", "ts"]),
        (Tool("1", "n", None), ["role", "id", "name", "content", "is_error", "ts"]),
    ],
)
def test_a_record_has_the_declared_fields_in_their_order(message, keys):
    assert list(agentd.message_json(message)) == keys


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        "user",
        {},
        {"role": "alien"},
        {"role": "User", "text": "a"},
        {"role": None},
        {"role": 1, "text": "a"},
        {"role": ["user"]},
        {"role": "user"},
        {"role": "user", "text": None},
        {"role": "system", "text": 3},
        {"role": "note", "text": ["a"]},
        {"role": "user", "text": "a", "principal": 3},
        {"role": "user", "text": "a", "ts": -1},
        {"role": "user", "text": "a", "ts": 1.0},
        {"role": "user", "text": "a", "ts": True},
        {"role": "user", "text": "a", "ts": "1"},
        {"role": "user", "text": "a", "ts": None},
        {"role": "user", "text": "a", "ts": 2**64},
        {"role": "assistant", "text": 1},
        {"role": "assistant", "tool_calls": None},
        {"role": "assistant", "tool_calls": {}},
        {"role": "assistant", "tool_calls": [{"id": "1", "name": "n"}]},
        {"role": "assistant", "tool_calls": [{"id": 1, "name": "n", "arguments": {}}]},
        {"role": "assistant", "tool_calls": [["1", "n", {}]]},
        {"role": "tool", "id": "1", "name": "n"},
        {"role": "tool", "id": "1", "content": 1},
        {"role": "tool", "name": "n", "content": 1},
        {"role": "tool", "id": "1", "name": "n", "content": 1, "is_error": 0},
        {"role": "tool", "id": "1", "name": "n", "content": 1, "is_error": None},
    ],
)
def test_what_is_no_message_is_refused_in_one_line(record):
    with pytest.raises(InvalidRecord) as refused:
        agentd.message_from_json(record)
    assert len(str(refused.value).splitlines()) == 1


def test_unknown_fields_are_ignored_and_null_is_none():
    assert agentd.message_from_json({"role": "user", "text": "a", "principal": None, "colour": 1, "content": {}}) == User("a")
    assert agentd.message_from_json({"role": "assistant", "text": None, "ts": U64}) == Assistant(ts=U64)


def test_a_long_hostile_value_is_shown_short_and_in_one_line():
    with pytest.raises(InvalidRecord) as refused:
        agentd.message_from_json({"role": "a\nb" * 1000})
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


@given(messages)
def test_an_estimate_is_that_of_its_parts(message):
    def ceil(text):
        return math.ceil(len(text) / 4)

    def value(part):
        return 1 if part is None else ceil(part) if isinstance(part, str) else ceil(dumps(part))

    match message:
        case Assistant(text=text, tool_calls=calls):
            body = ceil(text or "") + sum(ceil(call.name) + value(call.arguments) for call in calls)
        case Tool(content=content):
            body = value(content)
        case _:
            body = ceil(message.text)
    assert agentd.est_tokens(message) == body + 4


def test_each_part_of_a_call_rounds_up_on_its_own():
    assert agentd.est_tokens(Assistant("a", (ToolCall("", "b", "c"), ToolCall("", "d", {})))) == 4 + 1 + 2 + 2


@given(values)
def test_the_wire_shows_a_result_as_text(content):
    wire = agentd.to_wire(Tool("1", "n", content, is_error=True))
    assert wire == {"kind": "tool_result", "id": "1", "content": content if isinstance(content, str) else dumps(content), "is_error": True}


# Summary


@given(summaries, summaries, numbers)
def test_absorbing_is_what_the_prose_says(base, newer, now):
    absorbed = base.absorb(newer, now)
    for name in ("goals", "decisions", "open", "facts"):
        entries = list(getattr(base, name))
        for entry in getattr(newer, name):
            if entry not in entries:
                entries.append(entry)
        while len(entries) > 32:
            entries.pop(0)
        assert list(getattr(absorbed, name)) == entries
    assert absorbed.narrative == (base.narrative if newer.narrative is None else newer.narrative)
    assert absorbed.covers_messages == min(base.covers_messages + newer.covers_messages, U64)
    assert absorbed.updated == now


@given(summaries, summaries)
def test_absorbing_twice_adds_nothing_while_nothing_is_dropped(base, newer):
    if all(len({*getattr(base, name)} | {*getattr(newer, name)}) + len(getattr(base, name)) <= 32 for name in ("goals", "decisions", "open", "facts")):
        once = base.absorb(newer, 1)
        assert replace(once.absorb(newer, 1), covers_messages=0) == replace(once, covers_messages=0)


@given(summaries)
def test_a_summary_survives_its_record_and_renders_what_it_holds(summary):
    assert agentd.summary_from_json(through_json(agentd.summary_json(summary))) == summary
    rendered = summary.render()
    assert rendered.startswith("Summary of earlier conversation:\n")
    assert rendered.endswith("\n")
    assert summary.is_empty() == (rendered == "Summary of earlier conversation:\n")


def test_a_blank_narrative_is_not_empty():
    assert not Summary(narrative=" ").is_empty()
    assert Summary(narrative="", covers_messages=3, updated=3).is_empty()


@pytest.mark.parametrize(
    "record",
    [[], "a", None, {"goals": None}, {"goals": "a"}, {"goals": [1]}, {"narrative": 1}, {"covers_messages": -1}, {"updated": 1.5}, {"facts": [None]}],
)
def test_what_is_no_summary_is_refused(record):
    with pytest.raises(InvalidRecord):
        agentd.summary_from_json(record)


# Context


@given(contexts)
def test_a_context_survives_its_record_and_comes_back_clean(context):
    context.dirty = True
    again = agentd.context_from_json(through_json(agentd.context_json(context)))
    context.dirty = False
    assert again == context


@given(contexts, numbers)
def test_slice_and_wire_are_the_same_messages(context, now):
    heads = [System(context.summary.render(), now)] if not context.summary.is_empty() else []
    heads += [System(context.plan.render(), now)] if context.plan is not None else []
    assert context.slice(now) == [*heads, *context.messages]
    assert context.to_wire() == [agentd.to_wire(message) for message in context.slice(now)]


@given(st.lists(messages, max_size=6))
def test_appending_lacks_only_the_heading_that_a_recount_counts(history):
    context = ContextState.new("root", 1000, now=1)
    for now, message in enumerate(history, 2):
        context.dirty = False
        context.append(message, now)
        assert context.dirty
        assert context.updated == now
    appended = context.est_tokens
    context.recount()
    assert appended == sum(map(agentd.est_tokens, history))
    assert context.est_tokens == appended + 9


def test_an_estimate_saturates():
    context = ContextState(est_tokens=U64 - 2)
    context.append(Note("a"), 1)
    assert context.est_tokens == U64


@pytest.mark.parametrize(
    ("estimate", "window", "share", "needed"),
    [
        (2**53 + 1, 2**53, 1.0, False),  # as a double the estimate is the window
        (2**53 + 2, 2**53, 1.0, True),
        (U64, U64, 1.0, False),
        (U64, 1, math.nan, False),
        (1, 1, math.inf, False),
        (0, 1, 0.0, False),
        (1, 0, -1.0, False),
        (57, 100, 0.57, True),
        (81, 100, 0.8, True),
        (80, 100, 0.8, False),
    ],
)
def test_compaction_is_needed_strictly_above_the_share(estimate, window, share, needed):
    assert ContextState(est_tokens=estimate, model_window=window).needs_compaction(share) is needed


@pytest.mark.parametrize(
    "record",
    [
        None,
        "text",
        [],
        3,
        {"kind": "Root"},
        {"kind": None},
        {"version": "one"},
        {"version": 1.0},
        {"turns": True},
        {"messages": {}},
        {"messages": [{"role": "alien"}]},
        {"summary": None},
        {"summary": []},
        {"skills": [{"name": "a"}]},
        {"plan": {"items": []}},
        {"plan": {"goal": "g", "items": [{"id": 1}]}},
        {"plan": {"goal": "g", "items": [{"id": 1, "title": "t", "status": "finished"}]}},
        {"plan": {"goal": "g", "items": [{"id": 1, "title": "t", "bound": {"run": {"handle": "h"}}}]}},
        {"plan": {"goal": "g", "items": [{"id": 1, "title": "t", "bound": {"crew": {"id": "h"}}}]}},
        {"plan": {"goal": "g", "items": [{"id": 1, "title": "t", "bound": {"run": {"id": "h"}, "task": {"id": "h"}}}]}},
        {"plan": {"goal": "g", "items": [{"id": 1, "title": "t", "bound": "run"}]}},
        {"principal": 1},
        {"model_window": -1},
    ],
)
def test_what_is_no_context_is_refused(record):
    with pytest.raises(InvalidRecord):
        agentd.context_from_json(record)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abC"), st.sampled_from("12")), max_size=12), st.integers(0, 3))
def test_skills_hold_each_name_once_and_stay_within_the_cap(actions, cap):
    context = ContextState()
    for load, name, content_hash in actions:
        context.dirty = False
        before = list(context.skills)
        if not load:
            assert context.unload_skill(name, 1) is (name in [skill.name for skill in before]) is context.dirty
            continue
        if len(before) >= cap and name not in [skill.name for skill in before]:
            with pytest.raises(agentd.AgentdError, match=rf"^skills\.max_loaded \({cap}\) reached; unload one first$"):
                context.load_skill(name, content_hash, cap, 1)
            assert context.skills == before
            assert not context.dirty
        else:
            context.load_skill(name, content_hash, cap, 1)
            assert agentd.Skill(name, content_hash) in context.skills
            assert context.dirty
    assert len(context.skills) == len(context.skill_names()) <= cap
