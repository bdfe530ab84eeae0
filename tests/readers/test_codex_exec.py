"""Codex exec: items that begin and end, usage as a running total by turn, tools of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from workbench import readers
from workbench.model import Reasoning, Transcript, Usage

START = {"type": "thread.started", "thread_id": "th-1"}
TURN = {"type": "turn.started"}


def done(id: str, type: str, event: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"item.{event}", "item": {"id": id, "type": type, **more}}


def spent(fresh: int, cached: int, output: int) -> dict[str, Any]:
    return {"type": "turn.completed", "usage": {"input_tokens": fresh, "cached_input_tokens": cached, "output_tokens": output}}


def read(path: Path, *rows: Any) -> Transcript:
    transcript = readers.read(jsonl(path / "t.jsonl", rows))
    check(transcript)
    assert transcript.source.format == "codex-exec"
    assert transcript.records.total == len(rows)
    return transcript


def test_a_thread(tmp_path: Path) -> None:
    rows = [
        START,
        TURN,
        done("i0", "reasoning", text="hm"),
        done("i1", "agent_message", text="looking"),
        done("i2", "command_execution", "started", command="ls", aggregated_output="", exit_code=None, status="in_progress"),
        done("i2", "command_execution", command="ls", aggregated_output="a\n", exit_code=2, status="failed"),
        done("i3", "agent_message", text="done"),
        spent(900, 200, 55),
    ]
    t = read(tmp_path, *rows)
    assert shape(t) == [("assistant", "looking", ("i2",)), ("tool", "a\n", ("i2",)), ("assistant", "done", ())]
    assert t.messages[0].parts[0] == Reasoning("hm")
    assert (t.messages[0].raw, t.messages[1].raw) == ((3, 4, 5, 6), (6,))
    assert t.messages[1].result is not None
    assert t.messages[1].result.is_error
    assert [call.usage for call in t.calls] == [None, None, Usage(700, 200, None, None, 55)]
    assert t.calls[2].produced == ()
    assert (t.records.messages, t.records.calls, t.records.metadata) == (5, 1, 2)
    assert [item.code for item in t.diagnostics] == ["usage_sum"]
    assert t.id == "th-1"
    assert shape(readers.read(as_json(tmp_path / "t.json", rows))) == shape(t)


def test_usage_is_a_running_total(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        START,
        TURN,
        done("i0", "agent_message", text="a"),
        spent(10, 0, 1),
        TURN,
        done("i0", "agent_message", text="b"),
        spent(30, 5, 4),
        spent(30, 5, 4),
    )
    assert [message.text for message in t.messages] == ["a", "b"]
    assert [call.usage for call in t.calls] == [Usage(10, 0, None, None, 1), Usage(15, 5, None, None, 3)]
    assert t.diagnostics == ()


def test_parallel_commands_are_one_response(tmp_path: Path) -> None:
    rows = [done(id, "command_execution", "started", command=id, status="in_progress") for id in "ab"]
    rows += [done(id, "command_execution", command=id, aggregated_output=id, exit_code=0, status="completed") for id in "ba"]
    t = read(tmp_path, START, *rows, done("c", "command_execution", "started", command="never", status="in_progress"))
    assert shape(t) == [("assistant", "", ("a", "b")), ("tool", "b", ("b",)), ("tool", "a", ("a",)), ("assistant", "", ("c",))]


def test_tools_of_every_kind(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        START,
        done("f", "file_change", changes=[{"path": "x", "kind": "add"}], status="completed"),
        done("m", "mcp_tool_call", server="docs", tool="find", arguments={"q": 1}, result={"content": [{"type": "text", "text": "found"}]}, status="completed"),
        done("e", "mcp_tool_call", server="docs", tool="find", error={"message": "no"}, status="failed"),
        done(
            "s",
            "collab_tool_call",
            tool="spawn_agent",
            prompt="go",
            receiver_thread_ids=["th-2"],
            agents_states={"th-2": {"status": "completed", "message": "hi"}},
        ),
        done("w", "web_search", query="what"),
        done("p", "todo_list", "started", items=[{"text": "one", "completed": False}]),
        done("q", "agent_message", text="x"),
        done("p", "todo_list", items=[{"text": "one", "completed": True}]),
    )
    calls = [(call.name, call.arguments, call.server_side) for message in t.messages for call in message.calls]
    assert calls == [
        ("apply_patch", {"changes": [{"path": "x", "kind": "add"}]}, False),
        ("docs__find", {"q": 1}, False),
        ("docs__find", None, False),
        ("spawn_agent", {"prompt": "go", "receiver_thread_ids": ["th-2"]}, False),
        ("web_search", {"query": "what"}, True),
        ("update_plan", {"items": [{"text": "one", "completed": True}]}, False),
    ]
    results = [(message.result.call_id, message.result.text, message.result.is_error) for message in t.messages if message.result]
    assert results == [("f", "", False), ("m", "found", False), ("e", "no", True), ("s", '{"th-2":"hi"}', False), ("p", "", False)]
    assert t.meta["subagents"] == ("th-2",)


def test_failures_and_odd_lines_are_said(tmp_path: Path) -> None:
    rows = [TURN, done("e", "error", message="careful"), {"type": "turn.failed", "error": {"message": "a\nb"}}, {"type": "sparkle"}, [], done("x", "glitter")]
    t = read(tmp_path, START, *rows, {"type": "item.completed"}, {"type": "turn.completed", "usage": {"input_tokens": -1}})
    assert [item.code for item in t.diagnostics] == ["error", "error", "unknown_record", "record", "unknown_record", "record", "usage"]
    assert (t.records.skipped, t.records.metadata + t.records.calls) == (2, 7)


@pytest.mark.parametrize("kind", ["assistant_message", "agent_message"])
def test_the_first_spelling_of_items(tmp_path: Path, kind: str) -> None:
    t = read(tmp_path, {"type": "session.created", "session_id": "s"}, {"type": "item.completed", "item": {"id": "i", "item_type": kind, "text": "hello"}})
    assert (t.id, t.messages[0].text) == ("s", "hello")


def test_the_events_of_older_versions(tmp_path: Path) -> None:
    def event(type: str, **more: Any) -> dict[str, Any]:
        return {"id": "0", "msg": {"type": type, **more}}

    spent = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 20, "reasoning_output_tokens": 5, "total_tokens": 120}
    t = read(
        tmp_path,
        {"model": "gpt-5", "workdir": "/srv/p", "provider": "openai"},
        {"prompt": "look"},
        event("task_started"),
        event("agent_reasoning", text="hm"),
        event("agent_message_delta", delta="lo"),
        event("exec_command_begin", call_id="c1", command=["bash", "-lc", "ls"]),
        event("exec_command_end", call_id="c1", stdout="a", stderr="b", exit_code=1),
        event("token_count", **spent),
        event("agent_message", message="done"),
        event("token_count", info={"last_token_usage": {**spent, "output_tokens": 30}, "total_token_usage": {**spent, "output_tokens": 50}}),
    )
    assert shape(t) == [("user", "look", ()), ("assistant", "", ("c1",)), ("tool", "ab", ("c1",)), ("assistant", "done", ())]
    assert t.messages[1].calls[0].arguments == {"command": ["bash", "-lc", "ls"]}
    assert t.messages[2].result is not None
    assert t.messages[2].result.is_error
    assert [call.usage.total for call in t.calls if call.usage] == [120, 130]
    assert t.model == "gpt-5"
    assert t.records.skipped == 0
