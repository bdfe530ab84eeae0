"""agentd: what a compaction folds, asks and does; plans; windows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.agentd_strategies import contexts, messages, plans, values
from workbench.systems import agentd
from workbench.systems.agentd import AgentdError, Assistant, ContextState, Summary, Tool, ToolCall, User
from workbench.systems.rustjson import dumps, loads, utf8_len

MARK = "(earlier messages elided)"

# What is folded


@given(st.lists(st.tuples(st.integers(4, 60), st.booleans()), max_size=14), st.integers(0, 16), st.none() | st.integers(0, 300))
def test_fold_count_is_what_the_prose_says(history, keep_last, target):
    estimates, users = [tokens for tokens, _ in history], [user for _, user in history]
    fold = agentd.fold_count(estimates, users, keep_last, target)
    n = len(history)
    if n < keep_last + 2:
        assert fold == 0
        return
    # All cuts that the aims allow, from the least fold on; of those the first that fits, or else the deepest.
    aims = list(range(n - keep_last, max(n - 2, n - keep_last) + 1))
    aim = next((cut for cut in aims if target is None or sum(estimates[cut:]) <= target), aims[-1])
    assert fold == (n if aim == n else max((cut for cut in range(1, aim + 1) if users[cut]), default=0))


def test_only_a_target_folds_beyond_keep_last():
    assert agentd.fold_count([10] * 8, [True] * 8, 6) == 2
    assert agentd.fold_count([10] * 8, [True] * 8, 6, target=60) == 2
    assert agentd.fold_count([10] * 8, [True] * 8, 6, target=59) == 3
    assert agentd.fold_count([10] * 8, [True] * 8, 6, target=0) == 6
    assert agentd.fold_count([10] * 8, [True] * 8, 0, target=0) == 8
    assert agentd.fold_count([], [], 0) == 0
    assert agentd.fold_count([10], [True], 0) == 0


# What is asked


def conversation(*texts):
    context = ContextState.new("conversation", 1000, now=1)
    for text in texts:
        context.append(User(text), now=2)
    context.recount()
    return context


def test_the_request_carries_the_summary_so_far_and_the_folded_lines():
    context = conversation("a", "b", "c", "d")
    context.summary = Summary(goals=("ship",))
    context.version = 5
    asked = agentd.plan_compaction(context, keep_last=2)
    assert (asked.fold, asked.version) == (2, 5)
    assert asked.input == (
        "Previous summary (already compacted; extend it, do not lose it):\nSummary of earlier conversation:\nGoals:\n- ship\n\n"
        "Transcript excerpt to compact:\n[user] a\n[user] b\n"
    )
    assert agentd.plan_compaction(context, keep_last=3) is None


def test_the_request_asks_for_the_whole_of_the_schema():
    asked = agentd.plan_compaction(conversation("a", "b", "c"), keep_last=1)
    for name in asked.output_schema["properties"]:
        assert name in asked.system
    assert list(asked.output_schema["properties"]) == ["goals", "decisions", "open", "facts", "narrative"]


def test_a_summary_of_counts_alone_is_not_shown():
    assert agentd.compaction_input(Summary(covers_messages=3), []) == "Transcript excerpt to compact:\n"


@given(values)
def test_each_text_is_clipped_on_its_own(value):
    long = "é" * 2001
    cut = "é" * 2000 + "…"
    shown = dumps(value)
    shown = shown if len(shown) <= 2000 else shown[:2000] + "…"
    calls = (ToolCall("1", "f", value), ToolCall("2", "g", long))
    assert agentd.render_line(Assistant(long, calls)) == f'[assistant] {cut} calls: f({shown}), g("{"é" * 1999}…)'
    assert agentd.render_line(Assistant()) == "[assistant] "
    assert agentd.render_line(Tool("1", "t", value)) == f"[tool t] {shown}"
    assert agentd.render_line(User(long, "p")) == f"[user p] {cut}"
    assert agentd.render_line(User("é" * 2000, "")) == "[user ] " + "é" * 2000


# What becomes of the answer


@given(contexts.filter(lambda context: len(context.messages) > 1), st.data())
def test_an_answer_is_absorbed_and_a_refused_one_changes_nothing(context, data):
    fold = data.draw(st.integers(1, len(context.messages)))
    asked = agentd.Compaction(fold, context.version, "")
    context.recount()
    before = loads(dumps(agentd.context_json(context)))

    for refused in (None, [], 3, True, {"goals": "a"}, {"narrative": 3}, {"covers_messages": True}):
        with pytest.raises(AgentdError):
            agentd.apply_compaction(context, asked, refused, now=9)
    with pytest.raises(AgentdError, match="context version moved from 3 to"):
        agentd.apply_compaction(replace_version(context, 4), replace(asked, version=3), {}, now=9)
    with pytest.raises(AgentdError, match="compaction fold exceeds the message count"):
        agentd.apply_compaction(context, replace(asked, fold=len(context.messages) + 1), {}, now=9)
    assert loads(dumps(agentd.context_json(context))) == before
    assert not context.dirty

    kept, tokens, version, summary = context.messages[fold:], context.est_tokens, context.version, context.summary
    outcome = agentd.apply_compaction(context, asked, {"facts": ["x=1"], "covers_messages": 99, "updated": 5, "colour": 1}, now=9)
    assert context.messages == kept
    assert context.summary == summary.absorb(Summary(facts=("x=1",), covers_messages=fold), 9)
    assert outcome == agentd.Outcome(fold, min(version + 1, 2**64 - 1), tokens, context.est_tokens)
    assert (context.version, context.updated, context.dirty) == (outcome.version, 9, True)


def replace_version(context, version):
    return ContextState(version=version, messages=context.messages)


def test_the_checks_stand_in_their_order():
    context = conversation("a", "b")
    with pytest.raises(AgentdError, match="version moved from 7 to 1"):
        agentd.apply_compaction(context, agentd.Compaction(9, 7, ""), [], now=1)
    with pytest.raises(AgentdError, match="fold exceeds"):
        agentd.apply_compaction(context, agentd.Compaction(9, 1, ""), [], now=1)
    with pytest.raises(AgentdError, match="must be an object"):
        agentd.apply_compaction(context, agentd.Compaction(1, 1, ""), [], now=1)
    with pytest.raises(AgentdError, match=r"^summary does not match the schema: invalid type: integer `1`, expected a sequence$"):
        agentd.apply_compaction(context, agentd.Compaction(1, 1, ""), {"goals": 1}, now=1)


def test_a_string_becomes_the_narrative():
    context = conversation("a", "b")
    agentd.apply_compaction(context, agentd.Compaction(1, 1, ""), "", now=4)
    assert context.summary == Summary(narrative="", covers_messages=1, updated=4)


def naive_fallback(folded):
    lines = [agentd.render_line(message) for message in folded]
    narrative = "\n".join(lines)
    while utf8_len(narrative) > 8000 and len(lines) > 1:
        lines.pop(0)
        narrative = f"{MARK}\n" + "\n".join(lines)
    return narrative


long_users = st.builds(lambda letter, size: User(letter * size), st.sampled_from(("a", "é", "漢", "a\n")), st.integers(0, 2100))


@given(st.lists(messages | long_users, min_size=1, max_size=14))
def test_the_fallback_drops_the_oldest_lines(folded):
    assert agentd.fallback_narrative(folded) == naive_fallback(folded)


@pytest.mark.parametrize("size", range(1960, 2000, 3))
def test_the_fallback_counts_its_mark(size):
    folded = [User("a" * size)] * 5
    assert agentd.fallback_narrative(folded) == naive_fallback(folded)


def test_the_fallback_may_fill_its_bound():
    folded = [User("a" * size) for size in (1992, 1992, 1992, 1993)]
    assert utf8_len(agentd.fallback_narrative(folded)) == 8000
    assert agentd.fallback_narrative([*folded[:3], User("a" * 1994)]).startswith(MARK)


def test_the_last_line_stays_whatever_it_costs():
    narrative = agentd.fallback_narrative([User("a"), Assistant("漢" * 2000, tuple(ToolCall("1", "f", "漢" * 2000) for _ in range(3)))])
    assert narrative.startswith(f"{MARK}\n[assistant] ")
    assert utf8_len(narrative) > 8000


def test_compacting_again_and_again_ends():
    context = conversation(*"abcdefghij")
    folded = 0
    while asked := agentd.plan_compaction(context, keep_last=1):
        folded += agentd.apply_fallback(context, asked, now=3).folded
    assert folded == 9 == context.summary.covers_messages
    assert len(context.messages) == 1


# Plans and windows


@given(plans)
def test_a_plan_survives_its_record_and_counts_only_what_is_done(plan):
    assert agentd.plan_from_json(loads(dumps(agentd.plan_json(plan)))) == plan
    statuses = [item.status for item in plan.items]
    assert plan.progress() == f"{statuses.count('done')}/{len(statuses)} done"
    assert plan.is_complete() == (statuses != [] and {*statuses} <= {"done", "blocked", "skipped"})


@pytest.mark.parametrize(
    ("goal", "entries", "said"),
    [
        (" \u3000", [], "plan.create: goal must be non-empty"),
        ("", ["a"] * 40, "plan.create: goal must be non-empty"),
        ("g", ["a"] * 33, "plan.create: 33 items exceed context.plan.max_items (32)"),
        ("g", ["a", " "], "plan item needs a non-empty title"),
        ("g", [{}], "plan item needs a non-empty title"),
        ("g", [{"title": 3}], "plan item needs a non-empty title"),
        ("g", [3], "plan item needs a non-empty title"),
    ],
)
def test_what_is_no_plan(goal, entries, said):
    with pytest.raises(AgentdError) as refused:
        agentd.create_plan(goal, entries, now=1)
    assert str(refused.value) == said


def test_a_plan_trims_as_the_original_does():
    plan = agentd.create_plan("\x1c g\u2003", ["\u00a0t\x1f"], now=1)
    assert (plan.goal, plan.items[0].title) == ("\x1c g", "t\x1f")
    assert agentd.create_plan("g", [], now=1).next_id == 1


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("anthropic/CLAUDE-gpt-4.1", 200_000),
        ("gpt-4.1-o1", 1_000_000),
        ("my-gpt-5-gemini", 128_000),
        ("o4-mini-gemini", 128_000),
        ("x-o3-gemini", 1_000_000),
        ("Gemini-2", 1_000_000),
        ("gpt-4", 128_000),
        ("", 128_000),
    ],
)
def test_windows(model, window):
    assert agentd.window_for_model(model) == window
