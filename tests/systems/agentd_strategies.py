"""What hypothesis makes up for agentd: messages, summaries, plans and contexts of any text."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.strategies import texts
from workbench.systems import agentd

U64 = 2**64 - 1

numbers = st.integers(0, U64) | st.sampled_from((0, 1, 2**53 + 1, U64))
#: JSON as a parser gives it: whole numbers within 64 bits, no NaN.
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), U64) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(agentd.ToolCall, texts, texts, values)
messages: st.SearchStrategy[agentd.Msg] = st.one_of(
    st.builds(agentd.System, texts, numbers),
    st.builds(agentd.Note, texts, numbers),
    st.builds(agentd.User, texts, st.none() | texts, numbers),
    st.builds(agentd.Assistant, st.none() | texts, st.lists(calls, max_size=3).map(tuple), numbers),
    st.builds(agentd.Tool, texts, texts, values, st.booleans(), numbers),
)
#: A few odd entries, with doubles; or as many as the cap bears on.
entries = st.lists(texts | st.sampled_from("abcdefgh"), max_size=8).map(tuple) | st.builds(
    lambda first, count: tuple(f"entry {number}" for number in range(first, first + count)), st.integers(0, 30), st.integers(0, 40)
)
summaries = st.builds(agentd.Summary, entries, entries, entries, entries, st.none() | texts, numbers, numbers)
bounds = st.builds(agentd.Bound, st.sampled_from(("run", "subagent", "task")), texts)
plan_items = st.builds(
    agentd.PlanItem,
    id=numbers,
    title=texts,
    detail=st.none() | texts,
    status=st.sampled_from(("pending", "in_progress", "done", "blocked", "skipped")),
    note=st.none() | texts,
    bound=st.none() | bounds,
    updated=numbers,
)
plans = st.builds(agentd.Plan, texts, st.lists(plan_items, max_size=4).map(tuple), numbers, numbers, numbers)
contexts = st.builds(
    agentd.ContextState,
    kind=st.sampled_from(("root", "conversation")),
    version=numbers,
    summary=summaries,
    messages=st.lists(messages, max_size=5),
    skills=st.lists(st.builds(agentd.Skill, texts, texts), max_size=3),
    plan=st.none() | plans,
    preflight=values,
    est_tokens=numbers,
    model_window=numbers,
    principal=st.none() | texts,
    task=st.none() | texts,
    turns=numbers,
    created=numbers,
    updated=numbers,
)
