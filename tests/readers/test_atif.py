"""ATIF: steps, results, usage, compaction, continuations and subagents."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Reasoning, Transcript, Usage

TOOL = {"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}


def step(source: str, message: Any, **more: Any) -> dict[str, Any]:
    return {"step_id": 1, "timestamp": "2026-05-01T10:00:00Z", "source": source, "message": message, **more}


def agent(message: str, prompt: int = 10, output: int = 2, **more: Any) -> dict[str, Any]:
    return step("agent", message, metrics={"prompt_tokens": prompt, "completion_tokens": output, **more.pop("metrics", {})}, **more)


def call(id: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": id, "function_name": "look", "arguments": arguments}


def results(*pairs: tuple[str | None, Any]) -> dict[str, Any]:
    return {"results": [{"source_call_id": id, "content": content} for id, content in pairs]}


def trajectory(*steps: Any, **more: Any) -> dict[str, Any]:
    about = {"name": "a", "version": "1", "model_name": "openai/m", "tool_definitions": [TOOL], "extra": more.pop("extra", None)}
    return {"schema_version": "ATIF-v1.7", "session_id": "s1", "agent": about, "steps": list(steps), **more}


def read(path: Path, value: Any) -> Transcript:
    transcript = readers.read(as_json(path, value))
    check(transcript)
    assert transcript.source.format == "atif"
    return transcript


BASIC = trajectory(
    step("system", "Be brief."),
    step("user", "q"),
    agent(
        "", 100, 9, metrics={"cached_tokens": 60, "extra": {"finish_reason": "tool_calls", "reasoning_tokens": 4, "cache_creation_input_tokens": 30}},
        reasoning_content="hm", tool_calls=[call("c1", a=1), call("c2")], observation=results(("c2", "two"), ("c1", "one")), model_name="m-2",
    ),
    agent("a", 120, 5),
    final_metrics={"total_prompt_tokens": 220, "total_completion_tokens": 14, "total_cached_tokens": 60},
)  # fmt: skip


def test_steps_become_messages_and_each_agent_step_a_call(tmp_path: Path) -> None:
    t = read(tmp_path / "t.json", BASIC)
    assert shape(t) == [
        ("system", "Be brief.", ()), ("user", "q", ()), ("assistant", "", ("c1", "c2")), ("tool", "two", ("c2",)), ("tool", "one", ("c1",)),
        ("assistant", "a", ()),
    ]  # fmt: skip
    assert t.messages[2].parts[0] == Reasoning("hm")
    assert [m.result.name for m in t.messages if m.result] == ["look", "look"]
    assert [c.usage for c in t.calls] == [Usage(10, 60, 30, None, 9, 4), Usage(120, None, None, None, 5, None)]
    assert [(c.model, c.stop_reason, c.produced) for c in t.calls] == [("m-2", "tool_calls", (2,)), ("openai/m", None, (5,))]
    assert (t.records.total, t.records.messages, t.diagnostics) == (4, 4, ())
    assert [tool.name for tool in t.tools] == ["look"]
    assert (t.id, t.meta["agent"], t.messages[0].ts) == ("s1", "a", 1777629600000)
    assert len(t.fixed()) == 1


def test_totals_that_differ_are_told(tmp_path: Path) -> None:
    t = read(tmp_path / "t.json", {**BASIC, "final_metrics": {"total_prompt_tokens": 999, "total_completion_tokens": 14}})
    assert [d.code for d in t.diagnostics] == ["totals"]
    assert "999" in t.diagnostics[0].text


def test_a_result_without_an_id(tmp_path: Path) -> None:
    one = agent("", tool_calls=[call("c1")], observation=results((None, "screen")))
    two = agent("", tool_calls=[call("c2"), call("c3")], observation=results((None, "screen 2")))
    t = read(tmp_path / "t.json", trajectory(step("user", "q"), one, two, agent("text only", observation=results((None, "screen 3")))))
    assert [(m.role, sorted(m.flags)) for m in t.messages[1:]] == [
        ("assistant", []), ("tool", []), ("assistant", []), ("user", ["meta"]), ("assistant", []), ("user", ["meta"]),
    ]  # fmt: skip
    assert t.messages[2].result is not None
    assert t.messages[2].result.call_id == "c1"


def test_copied_steps_and_steps_without_a_request_cost_nothing(tmp_path: Path) -> None:
    t = read(
        tmp_path / "t.json",
        trajectory(
            step("user", "task", is_copied_context=True),
            step("agent", "old", is_copied_context=True),
            step("user", "go on", is_copied_context=True),
            step("agent", "", llm_call_count=0, tool_calls=[call("c")], observation=results(("c", "x"))),
            agent("new", 7, 1),
        ),
    )
    assert [(m.role, m.call, sorted(m.flags)) for m in t.messages] == [
        ("user", None, []), ("assistant", None, []), ("user", None, ["meta"]), ("assistant", None, ["synthetic"]), ("tool", None, []), ("assistant", 0, []),
    ]  # fmt: skip
    assert Usage.sum([c.usage for c in t.calls]).total == 8


MARK = {"context_management": {"type": "compaction", "boundary": "replace"}}


def test_compaction_with_its_text_in_the_step(tmp_path: Path) -> None:
    marked = step("system", "Compacted.", observation={"results": [{"content": "what was done"}]}, extra=MARK)
    t = read(tmp_path / "t.json", trajectory(step("system", "s"), step("user", "q"), agent("a"), marked, agent("b")))
    [found] = t.compactions
    assert (found.after, found.kind, found.summary, found.raw, found.tokens_before) == (2, "summary", 3, (4,), None)
    assert t.messages[3].text == "what was done"
    assert "compact_summary" in t.messages[3].flags
    assert t.history("main", "full") == (0, 1, 2, 4)
    assert t.history("main", "live") == (0, 3, 4)


def test_compaction_whose_summary_is_the_next_user_step(tmp_path: Path) -> None:
    refs = [{"session_id": "s1-summarization-1-summary", "trajectory_path": "t.summarization-1-summary.json"}]
    marked = step("system", "Performed context summarization", observation={"results": [{"subagent_trajectory_ref": refs}]})
    t = read(tmp_path / "t.json", trajectory(step("user", "q"), agent("a"), marked, step("user", "handoff"), agent("b")))
    assert [(c.after, c.summary) for c in t.compactions] == [(1, 2)]
    assert t.history("main", "live") == (2, 3)
    assert t.records.compactions == 1
    assert [d.code for d in t.diagnostics] == ["missing_subagent"]


def parts_of_a_run(folder: Path) -> Path:
    """A run in three files: the first, the subagent that summarised, and the one in which it goes on."""
    refs = [{"session_id": "sub", "trajectory_path": "run.summarization-1.json"}]
    marked = step("system", "Performed", observation={"results": [{"subagent_trajectory_ref": refs}]})
    copied = {"is_copied_context": True}
    sub = trajectory(step("user", "q", **copied), step("user", "sum up"), agent("it was so", 30, 3), session_id="sub")
    final = {"total_prompt_tokens": 80, "total_completion_tokens": 8}
    more = trajectory(step("user", "q", **copied), step("user", "handoff: it was so", **copied), agent("b", 40, 3), session_id="s2", final_metrics=final)
    as_json(folder / "run.summarization-1.json", sub)
    as_json(folder / "run.cont-1.json", {**more, "agent": {**more["agent"], "extra": {"continuation_index": 1}}})
    return as_json(folder / "run.json", trajectory(step("user", "q"), agent("a", 10, 2), marked, continued_trajectory_ref="run.cont-1.json"))


def test_a_run_in_several_files_is_one(tmp_path: Path) -> None:
    path = parts_of_a_run(tmp_path)
    t = readers.read(path)
    check(t)
    assert [(m.thread, m.role, m.text) for m in t.messages] == [
        ("main", "user", "q"), ("main", "assistant", "a"), ("sub", "user", "q"), ("sub", "user", "sum up"), ("sub", "assistant", "it was so"),
        ("main", "user", "handoff: it was so"), ("main", "assistant", "b"),
    ]  # fmt: skip
    assert [(c.kind, c.after, c.summary, c.kept) for c in t.compactions] == [("continuation", 1, 5, (0,))]
    assert t.history("main", "full") == (0, 1, 6)
    assert t.history("main", "live") == (5, 0, 6)
    assert Usage.sum([c.usage for c in t.calls]) == Usage(80, None, None, None, 8, None)
    assert t.diagnostics == ()
    assert (t.records.total, t.records.compactions) == (9, 1)
    assert t.meta["side_files"] == (("run.summarization-1.json", 4), ("run.cont-1.json", 7))
    assert [(x.id, x.kind, x.parent, x.records) for x in t.threads] == [("main", "main", None, 6), ("sub", "subagent", "main", 3)]


def test_a_continuation_alone_begins_after_a_compaction(tmp_path: Path) -> None:
    parts_of_a_run(tmp_path)
    t = readers.read(tmp_path / "run.cont-1.json")
    assert [(c.kind, c.after) for c in t.compactions] == [("continuation", -1)]
    assert t.history("main", "live") == t.history("main", "full") == (0, 1, 2)
    assert [d.code for d in t.diagnostics] == ["totals"]


@pytest.mark.parametrize("name", ["../outside.json", "/etc/passwd", "run.json", "link.json", "folder", "", "a\x00b", "no such.json"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    as_json(tmp_path / "outside.json", trajectory(step("user", "secret")))
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    os.symlink(tmp_path / "outside.json", home / "link.json")
    refs = [{"trajectory_path": name}]
    marked = agent("a", tool_calls=[call("c")], observation={"results": [{"source_call_id": "c", "content": "x", "subagent_trajectory_ref": refs}]})
    t = readers.read(as_json(home / "run.json", trajectory(step("user", "q"), marked, continued_trajectory_ref=name)))
    check(t)
    assert "secret" not in repr(t.messages)
    assert [d.code for d in t.diagnostics] == ["missing_subagent"]


def test_documents_that_name_each_other_end(tmp_path: Path) -> None:
    as_json(tmp_path / "b.json", trajectory(step("user", "b"), continued_trajectory_ref="a.json"))
    t = readers.read(as_json(tmp_path / "a.json", trajectory(step("user", "a"), continued_trajectory_ref="b.json")))
    check(t)
    assert [m.text for m in t.messages] == ["a", "b"]


def test_embedded_subagents_are_threads(tmp_path: Path) -> None:
    inner = trajectory(step("user", "deep"), agent("deeper", 5, 1), trajectory_id="inner")
    ref = {"results": [{"source_call_id": "c2", "content": "d", "subagent_trajectory_ref": [{"trajectory_id": "inner"}]}]}
    child = trajectory(step("user", "look"), agent("", 20, 2, tool_calls=[call("c2")], observation=ref), trajectory_id="child", subagent_trajectories=[inner])
    ref = {"results": [{"source_call_id": "c1", "content": "done", "subagent_trajectory_ref": [{"trajectory_id": "child", "trajectory_path": None}]}]}
    lost = trajectory(step("user", "nobody names me"), trajectory_id="lost")
    t = read(
        tmp_path / "t.json",
        trajectory(
            step("user", "q"), agent("", 100, 9, tool_calls=[call("c1")], observation=ref), subagent_trajectories=[child, lost],
            final_metrics={"total_prompt_tokens": 100, "total_completion_tokens": 9},
        ),
    )  # fmt: skip
    assert [(x.id, x.kind, x.parent, x.spawned_by) for x in t.threads] == [
        ("main", "main", None, None), ("child", "subagent", "main", "c1"), ("inner", "subagent", "child", "c2"), ("lost", "subagent", "main", None),
    ]  # fmt: skip
    assert [m.text for m in t.messages if m.thread == "main"] == ["q", "", ""]
    assert t.records.total == 2
    assert t.threads[0].records == 2
    assert t.diagnostics == ()


def test_deeply_nested_and_many_subagents(tmp_path: Path) -> None:
    value = trajectory(step("user", "x"))
    for _ in range(100):
        value = trajectory(step("user", "x"), subagent_trajectories=[value])
    t = read(tmp_path / "t.json", value)
    assert 5 < len(t.threads) <= 101
    same = [trajectory(step("user", "x"), trajectory_id="same") for _ in range(300)]
    check(read(tmp_path / "u.json", trajectory(step("user", "q"), subagent_trajectories=same)))


def test_pictures_are_named_by_their_path(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "see"}, {"type": "image", "source": {"media_type": "image/png", "path": "/etc/passwd"}}]
    t = read(tmp_path / "t.json", trajectory(step("user", content)))
    assert [type(part).__name__ for part in t.messages[0].parts] == ["Text", "Media"]


@pytest.mark.parametrize("lines", [True, False])
def test_several_trajectories_are_several_runs(tmp_path: Path, lines: bool) -> None:
    rows = [BASIC, {"other": 1}, {**BASIC, "trajectory_id": "t2"}]
    path = jsonl(tmp_path / "t.jsonl", rows) if lines else as_json(tmp_path / "t.json", rows)
    runs = readers.read_all(path)
    for run in runs:
        check(run)
    assert [run.id for run in runs] == ["s1", "t2"]
    assert [run.records.total for run in runs] == [2, 1]
    assert runs[0].records.skipped == 1
    assert len(runs[1].messages) == 6


@pytest.mark.parametrize("version", ["ATIF-v1.0", "ATIF-v1.8", "ATIF-v2.0", None])
def test_any_version_is_found(tmp_path: Path, version: str | None) -> None:
    assert read(tmp_path / "t.json", {**BASIC, "schema_version": version}).source.confidence >= 0.8


def test_odd_steps_are_told(tmp_path: Path) -> None:
    odd = [None, 7, {"source": "robot", "message": "m"}, {"source": "agent"}, {"source": "user", "message": {"a": 1}}, step("agent", "x", llm_call_count=3)]
    t = read(tmp_path / "t.json", {**trajectory(*odd), "agent": []})
    assert (t.records.total, t.records.skipped) == (6, 2)
    assert {d.code for d in t.diagnostics} == {"step", "source", "calls"}
    assert [m.role for m in t.messages] == ["user", "assistant", "user", "assistant"]


@pytest.mark.transcripts
def test_totals_of_others_files() -> None:
    """Where a document states totals they are those of its steps, or it says that parts of it lie elsewhere."""
    for path in sorted((SHARED / "transcripts" / "atif").iterdir()):
        for t in readers.read_all(path):
            check(t)
            assert t.source.format == "atif"
            assert t.records.skipped == 0
            assert "totals" not in {d.code for d in t.diagnostics} or "terminus2" in path.name


@pytest.mark.transcripts
def test_damaged_copies(tmp_path: Path) -> None:
    data = (SHARED / "transcripts" / "atif" / "phoenix__v17_embedded_subagents.json").read_bytes()
    rng = random.Random(1)
    for number in range(120):
        damaged = bytearray(data[: rng.randrange(1, len(data))] if number % 2 else data)
        for _ in range(0 if number % 4 == 1 else rng.randrange(1, 9)):
            damaged[rng.randrange(len(damaged))] = rng.choice(b'{}[]",:x0\n')
        (tmp_path / "t.json").write_bytes(damaged)
        try:
            found = readers.read_all(tmp_path / "t.json", format="atif" if number % 3 else None)
        except ReadError:
            continue
        for t in found:
            check(t)
