"""mini-swe-agent's trajectories: bare chats, and chats with the raw responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, shape
from workbench import readers
from workbench.model import Reasoning, Transcript, Usage

BARE = [
    {"role": "system", "content": "Answer with one command. To finish: echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"},
    {"role": "user", "content": "Please solve this issue: x"},
    {"role": "assistant", "content": "look\n```mswea_bash_command\nls\n```"},
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\na\n</output>"},
    {"role": "assistant", "content": "done"},
    {"role": "user", "content": ""},
]


def answer(id: str, prompt: int, output: int, cached: int = 0) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": cached}}
    return {"timestamp": 1770000000.5, "response": {"id": id, "model": "m", "choices": [{"finish_reason": "stop"}], "usage": usage}}


def read(path: Path, value: Any) -> Transcript:
    transcript = readers.read(as_json(path, value))
    check(transcript)
    assert transcript.source.format == "mini-swe-agent"
    return transcript


def test_a_bare_chat_with_its_marks(tmp_path: Path) -> None:
    t = read(tmp_path / "t.traj.json", BARE)
    assert [(m.role, sorted(m.flags)) for m in t.messages if m.role == "user"] == [("user", []), ("user", ["meta"]), ("user", ["meta"])]
    assert [c.usage for c in t.calls] == [None, None]
    assert t.records.total == 6
    other = [{**message, "content": message["content"].replace("COMPLETE_TASK", "")} for message in BARE[:3]]
    other[2] = {"role": "assistant", "content": "hello"}
    assert readers.read(as_json(tmp_path / "u.json", other)).source.format == "openai-chat"


@pytest.mark.parametrize("version", ["mini-swe-agent-1", "mini-swe-agent-1.1"])
def test_usage_stands_in_the_raw_responses(tmp_path: Path, version: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        *BARE[:2],
        {"role": "assistant", "content": "look", "tool_calls": [call], "extra": answer("r1", 100, 5, 60)},
        {"role": "tool", "tool_call_id": "c", "content": "a", "extra": {}},
        {"role": "assistant", "content": "end", "extra": answer("r2", 120, 3)},
        {"role": "exit", "content": "Submitted", "extra": {}},
    ]
    info = {"model_stats": {"api_calls": 2}, "mini_version": "2.0", "exit_status": "Submitted", "config": {"model": {"model_name": "openai/m"}}}
    t = read(tmp_path / "t.traj.json", {"info": info, "messages": messages, "trajectory_format": version})
    assert [(c.id, c.model, c.usage, c.stop_reason) for c in t.calls] == [
        ("r1", "m", Usage(40, 60, None, None, 5, None), "stop"), ("r2", "m", Usage(120, 0, None, None, 3, None), "stop"),
    ]  # fmt: skip
    assert shape(t)[2:4] == [("assistant", "look", ("c",)), ("tool", "a", ("c",))]
    assert t.messages[5].flags == {"meta", "hidden"}
    assert t.messages[2].ts == 1770000000500
    assert (t.records.total, t.diagnostics) == (6, ())
    more = readers.read(as_json(tmp_path / "u.json", {"info": {**info, "model_stats": {"api_calls": 9}}, "messages": messages, "trajectory_format": version}))
    assert [d.code for d in more.diagnostics] == ["totals"]


def test_responses_as_they_came(tmp_path: Path) -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "xx"},
        {"type": "message", "content": [{"type": "output_text", "text": "look"}]},
        {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"},
    ]
    response = {"object": "response", "id": "r", "model": "m", "output": output, "usage": {"input_tokens": 9, "output_tokens": 2}, "status": "completed"}
    messages = [*BARE[:2], response, {"type": "function_call_output", "call_id": "c", "output": "a"}, 7]
    t = read(tmp_path / "t.json", {"info": {}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"})
    assert shape(t)[2:] == [("assistant", "look", ("c",)), ("tool", "a", ("c",))]
    assert t.messages[2].parts[0] == Reasoning("hm", 2)
    assert t.messages[3].result is not None
    assert t.messages[3].result.name == "bash"
    assert t.calls[0].usage == Usage(9, None, None, None, 2, None)
    assert (t.records.total, t.records.skipped) == (5, 1)
