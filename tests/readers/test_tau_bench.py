"""tau-bench and tau2: many runs in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.model import Transcript, Usage

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "policy"},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "get_user", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "name": "get_user", "content": "u1"},
    {"role": "assistant", "content": "hello u1"},
]


def runs_of(path: Path) -> list[Transcript]:
    found = [*readers.read_all(path)]
    for transcript in found:
        check(transcript)
        assert transcript.source.format == "tau-bench"
    return found


def test_a_run_for_each_task_and_trial(tmp_path: Path) -> None:
    rows = [{"task_id": task, "reward": 1.0, "info": {}, "traj": TALK, "trial": trial} for task, trial in ((0, 0), (1, 0), (0, 1))]
    path = as_json(tmp_path / "t.json", rows)
    runs = runs_of(path)
    assert [run.id for run in runs] == ["0-0", "1-1", "0-2"]
    assert [run.title for run in runs] == ["task 0, trial 0", "task 1, trial 0", "task 0, trial 1"]
    assert [(run.records.total, len(run.calls)) for run in runs] == [(5, 2)] * 3
    assert shape(runs[2])[2:4] == [("assistant", "", ("c",)), ("tool", "u1", ("c",))]
    assert readers.read(path, run="0-2").title == "task 0, trial 1"
    assert readers.read(path, run=1).id == "1-1"


def test_lines_are_records(tmp_path: Path) -> None:
    row = {"model_path": "v/m", "user_model_path": "v/u", "benchmark_name": "tau2-bench", "task_name": "retail", "messages": TALK, "meta": {"task_id": "7"}}
    runs = runs_of(jsonl(tmp_path / "t.jsonl", [row, "{oops", {"other": 1}, row]))
    assert [(run.records.total, run.records.skipped, len(run.messages)) for run in runs] == [(3, 2, 5), (1, 0, 5)]
    assert (runs[0].title, runs[0].model) == ("retail task 7", "v/m")


def test_odd_runs_in_an_array(tmp_path: Path) -> None:
    good = {"task_id": 0, "reward": 1.0, "traj": TALK, "trial": 0}
    runs = runs_of(as_json(tmp_path / "t.json", [good, 7, {"x": 1}, {**good, "traj": [None, 7, {}]}]))
    assert [(run.records.total, run.records.skipped) for run in runs] == [(7, 2), (3, 3)]


def test_the_simulated_users_tools_are_a_thread(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "content": "Hi!", "turn_idx": 0},
        {"role": "user", "content": "my phone is dead", "usage": {"prompt_tokens": 50, "completion_tokens": 5}},
        {"role": "assistant", "content": "toggle it", "usage": {"prompt_tokens": 30, "completion_tokens": 3}},
        {"role": "user", "content": None, "tool_calls": [{"id": "u", "name": "toggle", "arguments": {}, "requestor": "user"}]},
        {"role": "tool", "id": "u", "content": "toggled", "requestor": "user", "error": False},
        {"role": "user", "content": "works"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "log", "arguments": {"x": 1}, "requestor": "assistant"}]},
        {"role": "tool", "id": "a", "content": "failed", "requestor": "assistant", "error": True},
    ]
    run = {"id": "s1", "task_id": "t", "messages": messages, "reward_info": {"reward": 0.5}, "termination_reason": "user_stop", "trial": 2}
    info = {"agent_info": {"llm": "m"}, "user_info": {"llm": "u"}, "environment_info": {"domain_name": "telecom"}}
    [t] = runs_of(as_json(tmp_path / "t.json", {"timestamp": "x", "info": info, "tasks": [], "simulations": [run]}))
    assert [(m.role, m.text) for m in t.messages if m.thread == "main"] == [
        ("assistant", "Hi!"), ("user", "my phone is dead"), ("assistant", "toggle it"), ("user", "works"), ("assistant", ""), ("tool", ""),
    ]  # fmt: skip
    assert [(x.id, x.kind) for x in t.threads] == [("main", "main"), ("user's tools", "subagent")]
    assert [m.role for m in t.messages if m.thread != "main"] == ["assistant", "tool"]
    assert t.messages[-1].result is not None
    assert (t.messages[-1].result.call_id, t.messages[-1].result.name, t.messages[-1].result.is_error) == ("a", "log", True)
    assert Usage.sum([c.usage for c in t.calls if c.thread == "main"]).total == 33
    assert Usage.sum([c.usage for c in t.calls]).total == 88
    assert (t.id, t.title, t.model, t.meta["reward"], t.records.total) == ("s1", "telecom task t, trial 2", "m", 0.5, 8)


def test_parallel_results_in_one_message(tmp_path: Path) -> None:
    inner = [{"role": "tool", "id": "c", "content": "u1"}, {"role": "tool", "id": "d", "content": "u2"}]
    run = {"task_id": 0, "reward": 0, "traj": [*TALK[:3], {"role": "tool", "tool_messages": inner}], "trial": 0}
    [t] = runs_of(as_json(tmp_path / "t.json", [run]))
    assert [m.result.call_id for m in t.messages if m.result] == ["c", "d"]
    assert t.records.total == 4


def test_a_conversation_that_is_one_text(tmp_path: Path) -> None:
    text = "user: Hi,\nI need help.\nassistant: None\ntool: found\nassistant: Here: it is.\nuser: bye"
    [t] = runs_of(jsonl(tmp_path / "t.jsonl", [{"messages_display": text}]))
    assert [(m.role, m.result.text if m.result else m.text) for m in t.messages] == [
        ("user", "Hi,\nI need help."), ("assistant", ""), ("tool", "found"), ("assistant", "Here: it is."), ("user", "bye"),
    ]  # fmt: skip
    assert len(t.messages[1].calls) == 1


def test_speech_in_pieces(tmp_path: Path) -> None:
    pieces = [("He", None), ("llo", None), (None, "Hi, "), (None, "you"), ("bye", None)]
    ticks = [{"user_chunk": {"content": user} if user else None, "agent_chunk": {"content": agent} if agent else None} for user, agent in pieces]
    run = {"id": "v", "task_id": "t", "messages": [], "ticks": ticks, "mode": "full_duplex"}
    [t] = runs_of(as_json(tmp_path / "t.json", {"simulations": [run]}))
    assert [(m.role, m.text) for m in t.messages] == [("user", "Hello"), ("assistant", "Hi, you"), ("user", "bye")]


@pytest.mark.transcripts
def test_two_hundred_runs() -> None:
    runs = runs_of(SHARED / "transcripts" / "tau-bench" / "tau-bench__historical_trajectories_gpt-4o-airline.json")
    assert len(runs) == len({run.id for run in runs}) == 200
    assert sum(run.records.messages for run in runs) == 5308
    assert not any(run.diagnostics for run in runs)
