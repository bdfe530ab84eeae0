"""SWE-agent's trajectories: the history once, and the context of each step."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, shape
from tests.shared import SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Transcript


def row(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "agent": "main", **more}


def step(response: str, **more: Any) -> dict[str, Any]:
    return {"action": "ls", "observation": "o", "response": response, "thought": response, "state": "{}", **more}


CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
HISTORY = [
    row("system", "s"),
    row("user", "example", is_demo=True),
    row("user", "the issue"),
    row("assistant", "look", tool_calls=[CALL], message_type="action"),
    row("tool", "a.py", tool_call_ids=["c1"], message_type="observation"),
    row("assistant", "edit"),
    row("user", "done", message_type="observation"),
    row("assistant", "submit"),
]
STATS = {"tokens_sent": 300, "tokens_received": 20, "api_calls": 3, "instance_cost": 0.1}


def run(**more: Any) -> dict[str, Any]:
    steps = [step("look"), step("edit"), step("submit")]
    return {"environment": "e", "trajectory": steps, "history": HISTORY, "info": {"exit_status": "submitted", "model_stats": STATS}, **more}


def read(path: Path, value: Any) -> Transcript:
    transcript = readers.read(as_json(path, value))
    check(transcript)
    assert transcript.source.format == "swe-agent"
    return transcript


def test_the_history_is_read_once(tmp_path: Path) -> None:
    t = read(tmp_path / "t.traj", run(replay_config='{"agent": {"model": {"name": "gpt-x"}}}'))
    assert shape(t)[3:5] == [("assistant", "look", ("c1",)), ("tool", "a.py", ("c1",))]
    assert [sorted(m.flags) for m in t.messages if m.role == "user"] == [["meta"], [], ["meta"]]
    assert [m.call for m in t.messages if m.role == "assistant"] == [0, 1, 2]
    assert [(c.usage, c.context, c.model) for c in t.calls] == [(None, None, "gpt-x")] * 3
    assert (t.records.total, t.records.messages, t.diagnostics) == (8, 8, ())
    assert (t.meta["tokens_sent"], t.meta["tokens_received"], t.meta["exit_status"]) == (300, 20, "submitted")
    assert t.messages[4].result is not None
    assert t.messages[4].result.name == "bash"


@pytest.mark.parametrize("grown", [0, 2], ids=["query", "messages that hold the answer too"])
def test_requests_become_contexts(tmp_path: Path, grown: int) -> None:
    key = "messages" if grown else "query"
    steps = [step(text, **{key: HISTORY[: place + grown]}) for text, place in (("look", 3), ("edit", 5), ("submit", 7))]
    t = read(tmp_path / "t.traj", run(trajectory=steps))
    assert [c.context for c in t.calls] == [(0, 1, 2), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5, 6)]
    assert len(t.messages) == 8
    assert t.diagnostics == ()


def test_messages_that_a_request_had_shortened_are_told(tmp_path: Path) -> None:
    short = [*HISTORY[:4], {**HISTORY[4], "content": "Old environment output: (1 lines omitted)"}, *HISTORY[5:7]]
    t = read(tmp_path / "t.traj", run(trajectory=[step("look"), step("edit"), step("submit", query=short)]))
    assert t.calls[2].context == (0, 1, 2, 3, 4, 5, 6)
    assert [(d.code, "1 messages" in d.text) for d in t.diagnostics] == [("edited", True)]
    assert t.messages[4].result is not None
    assert t.messages[4].result.text == "a.py"


def test_a_history_alone_and_steps_alone(tmp_path: Path) -> None:
    assert len(read(tmp_path / "h.traj", {"history": HISTORY}).messages) == 8
    t = read(tmp_path / "s.traj", {"trajectory": [step("look", query=HISTORY[:3]), step("edit"), 7]})
    assert [m.role for m in t.messages] == ["system", "user", "user", "assistant", "user", "assistant", "user"]
    assert (t.records.total, t.records.skipped) == (3, 1)


def test_another_agents_rows_and_several_attempts(tmp_path: Path) -> None:
    other = [row("user", "sub", agent="helper"), row("assistant", "x", agent="helper")]
    t = read(tmp_path / "t.traj", run(history=[*HISTORY, *other]))
    assert [(x.id, x.kind, x.records) for x in t.threads] == [("main", "main", 8), ("helper", "subagent", 2)]
    as_json(tmp_path / "r.traj", {"attempts": [run(), run(history=HISTORY[:4])], **run()})
    runs = readers.read_all(tmp_path / "r.traj")
    assert [len(item.messages) for item in runs] == [8, 4]
    assert [item.title for item in runs] == ["r.traj, attempt 1", "r.traj, attempt 2"]


def test_odd_rows_are_told(tmp_path: Path) -> None:
    t = read(tmp_path / "t.traj", run(history=[*HISTORY, None, 7, {"content": "x"}, row("tool", "lost", tool_call_ids=7)], trajectory=[7, None, {"query": 7}]))
    assert (t.records.total, t.records.skipped) == (12, 3)


@pytest.mark.transcripts
def test_others_files(tmp_path: Path) -> None:
    rng = random.Random(4)
    for path in sorted((SHARED / "transcripts" / "swe-agent").iterdir()):
        t = readers.read(path)
        check(t)
        assert t.records.skipped == 0
        assert sum(m.role == "user" and not m.flags for m in t.messages) == 1, path.name
        if "from_source" in path.name:
            assert [len(c.context or ()) for c in t.calls] == list(range(2, 28, 2))
        data = path.read_bytes()
        for _ in range(4):
            damaged = bytearray(data[: rng.randrange(1, len(data))])
            damaged[rng.randrange(len(damaged))] = rng.choice(b'{}[]",:x')
            (tmp_path / "t").write_bytes(damaged)
            try:
                found = readers.read_all(tmp_path / "t", format="swe-agent")
            except ReadError:
                continue
            for item in found:
                check(item)
