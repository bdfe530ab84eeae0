"""Claude Code's printed streams: responses in several lines, subagents by the call that started them, totals, events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.claude import call, result, text
from tests.readers.made import as_json, check, jsonl, shape
from workbench import readers
from workbench.errors import ReadError
from workbench.model import COMPACT_SUMMARY, MAIN, META, Transcript, Usage

INIT = {"type": "system", "subtype": "init", "session_id": "s1", "model": "claude-x", "cwd": "/srv/p", "tools": ["Bash", 7], "claude_code_version": "2.1.0"}
END = {"type": "result", "subtype": "success", "session_id": "s1", "is_error": False, "num_turns": 2, "total_cost_usd": 0.5, "result": "done"}


def said(role: str, content: Any, parent: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": content}, "session_id": "s1", "parent_tool_use_id": parent, **more}


def answer(id: str, *blocks: Any, parent: str | None = None, usage: Any = None) -> dict[str, Any]:
    message = {"id": id, "role": "assistant", "model": "claude-x", "content": [text(block) if isinstance(block, str) else block for block in blocks]}
    return {"type": "assistant", "message": {**message, "usage": usage}, "session_id": "s1", "parent_tool_use_id": parent, "uuid": f"{id}-{len(blocks)}"}


def spent(fresh: int, output: int) -> dict[str, int]:
    return {"input_tokens": fresh, "output_tokens": output, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


def read(path: Path, *rows: Any) -> Transcript:
    transcript = readers.read(jsonl(path / "t.jsonl", rows))
    check(transcript)
    assert transcript.source.format == "claude-code-stream-json"
    assert transcript.records.total == len(rows)
    return transcript


def test_a_stream(tmp_path: Path) -> None:
    rows = [
        {"type": "system", "subtype": "hook_started", "session_id": "s1"},
        INIT,
        said("user", "go"),
        answer("m1", "look", usage=spent(10, 1)),
        answer("m1", call("t1"), usage=spent(10, 5)),
        said("user", [result("t1")], tool_use_result={"stdout": "ok"}),
        {"type": "rate_limit_event", "session_id": "s1"},
        answer("m2", "done", usage=spent(20, 2)),
        {**END, "modelUsage": {"claude-x": {"inputTokens": 30, "outputTokens": 7}}},
    ]
    t = read(tmp_path, *rows)
    assert shape(t) == [("user", "go", ()), ("assistant", "look", ("t1",)), ("tool", "ok", ("t1",)), ("assistant", "done", ())]
    assert [item.usage.total for item in t.calls if item.usage] == [15, 22]
    assert (t.records.messages, t.records.metadata) == (5, 4)
    assert t.diagnostics == ()
    assert (t.id, t.model, t.meta["cwd"], t.meta["tools"], t.meta["cost_usd"], t.meta["requests"]) == ("s1", "claude-x", "/srv/p", ("Bash",), 0.5, 2)
    listed = readers.read(as_json(tmp_path / "t.json", rows))
    assert shape(listed) == shape(t)
    events = readers.read(as_json(tmp_path / "e.json", {"data": rows, "has_more": False}))
    assert shape(events) == shape(t)
    assert events.records == listed.records == t.records


def test_subagents_are_threads_of_the_call_that_started_them(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        INIT,
        answer("m1", call("task1", "Task", prompt="search")),
        said("user", "search", "task1"),
        answer("m2", call("task2", "Task", prompt="deeper"), parent="task1"),
        said("user", "deeper", "task2"),
        answer("m3", "deep", parent="task2"),
        said("user", [result("task2", "deep")], "task1"),
        said("user", [result("task1", "found")]),
    )
    assert [(thread.id, thread.kind, thread.parent, thread.spawned_by) for thread in t.threads] == [
        ("main", "main", None, None),
        ("task1", "subagent", "main", "task1"),
        ("task2", "subagent", "task1", "task2"),
    ]
    assert [len(t.thread(thread.id)) for thread in t.threads] == [2, 3, 2]
    assert [item.thread for item in t.calls] == [MAIN, "task1", "task2"]


def test_the_events_of_a_stream_tell_what_a_response_cost(tmp_path: Path) -> None:
    def event(**held: Any) -> dict[str, Any]:
        return {"type": "stream_event", "session_id": "s1", "parent_tool_use_id": None, "event": held}

    t = read(
        tmp_path,
        INIT,
        event(type="message_start", message={"id": "m1", "usage": spent(10, 1)}),
        event(type="content_block_delta", delta={"type": "text_delta", "text": "he"}),
        answer("m1", "hello", usage=spent(10, 1)),
        event(type="message_delta", usage={"output_tokens": 9}),
        {**END, "modelUsage": {"claude-x": {"inputTokens": 10, "outputTokens": 9}}},
    )
    assert t.calls[0].usage == Usage(10, 0, 0, None, 9)
    assert [message.text for message in t.messages] == ["hello"]
    assert t.diagnostics == ()


def test_a_total_that_the_responses_do_not_add_up_to_is_said(tmp_path: Path) -> None:
    t = read(tmp_path, INIT, answer("m1", "x", usage=spent(1, 1)), {**END, "is_error": True, "modelUsage": {"claude-x": {"inputTokens": 30}}})
    assert [item.code for item in t.diagnostics] == ["error", "usage_total"]


def test_a_compaction(tmp_path: Path) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "session_id": "s1", "compact_metadata": {"trigger": "auto", "pre_tokens": 155_000}}
    left = said("user", "This session is being continued from a previous conversation that ran out of context.", isSynthetic=True)
    t = read(tmp_path, INIT, said("user", "go"), answer("m1", "x"), boundary, left, said("user", "hook", isSynthetic=True), answer("m2", "y"))
    (done,) = t.compactions
    assert (done.after, done.kind, done.trigger, done.tokens_before, done.summary) == (1, "summary", "auto", 155_000, 2)
    assert [message.flags for message in t.messages[2:4]] == [{COMPACT_SUMMARY}, {META}]
    assert [t.messages[index].text for index in t.history()] == ["go", "x", "hook", "y"]


@pytest.mark.parametrize("turns", [1, 3])
def test_a_result_alone_holds_the_answer(tmp_path: Path, turns: int) -> None:
    t = readers.read(as_json(tmp_path / "t.json", {**END, "num_turns": turns, "usage": spent(5, 6), "modelUsage": {"claude-x": {"inputTokens": 5}}}))
    check(t)
    assert [message.text for message in t.messages] == ["done"]
    assert Usage.sum([item.usage for item in t.calls]).total == 11
    assert [item.code for item in t.diagnostics] == ([] if turns == 1 else ["usage_sum"])
    assert t.calls[-1].produced == (0,)
    assert t.records.total == 1


def test_odd_lines_are_counted(tmp_path: Path) -> None:
    t = read(tmp_path, INIT, [], {"type": "assistant", "session_id": "s1"}, {"type": "sparkle"}, said("user", "q"), '{"type": "user", "mess')
    assert (t.records.messages, t.records.metadata, t.records.skipped) == (1, 2, 3)


def test_streams_of_other_programs_are_not_taken_for_it(tmp_path: Path) -> None:
    droid = [{"type": "system", "session_id": "s"}, {"type": "message", "session_id": "s", "role": "user", "text": "q"}]
    with pytest.raises(ReadError):
        readers.read(jsonl(tmp_path / "t.jsonl", droid))
    cursor = [INIT, said("user", "q"), {"type": "tool_call", "subtype": "started", "session_id": "s1"}, answer("m", "a")]
    assert read(tmp_path, *cursor).source.confidence == 0.5


def test_an_export_of_the_web_version(tmp_path: Path) -> None:
    lines = [{"type": "user", "message": {"role": "user", "content": "q"}}, {"type": "assistant", "message": {"role": "assistant", "content": [text("a")]}}]
    t = readers.read(as_json(tmp_path / "t.json", {"loglines": lines}))
    assert (t.source.format, t.source.confidence) == (readers.SYNONYMS["claude-code-web"], 0.96)
    assert shape(t) == [("user", "q", ()), ("assistant", "a", ())]
    assert t.records.total == 2
    assert readers.read(as_json(tmp_path / "t.json", {"loglines": []})).messages == ()
