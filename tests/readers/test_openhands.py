"""OpenHands: events of both versions, folders, evaluation results, completion logs."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Transcript, Usage
from workbench.readers import openhands_events


def read(path: Path) -> Transcript:
    transcript = readers.read(path)
    check(transcript)
    assert transcript.source.format == "openhands"
    return transcript


# -- actions and observations


def event(id: int, source: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-05-01T10:00:00", "source": source, "message": "", **more}


def response(id: str, *calls: tuple[str, str], text: str = "", usage: tuple[int, int] = (10, 2)) -> dict[str, Any]:
    asked = [{"id": call, "type": "function", "function": {"name": name, "arguments": '{"x": 1}'}} for call, name in calls]
    message = {"role": "assistant", "content": text, "tool_calls": asked}
    numbers = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return {"id": id, "model": "m", "choices": [{"finish_reason": "tool_calls", "message": message}], "usage": numbers}


def about(id: str, call: str, name: str, *calls: tuple[str, str], text: str = "") -> dict[str, Any]:
    return {"function_name": name, "tool_call_id": call, "model_response": response(id, *calls, text=text), "total_calls_in_response": len(calls)}


BOTH = (("c1", "run"), ("c2", "read"))
EVENTS = [
    event(0, "agent", action="system", args={"content": "You are OpenHands agent", "tools": [{"type": "function", "function": {"name": "run"}}]}),
    event(1, "user", action="message", args={"content": "q", "image_urls": ["data:image/gif;base64,R0lGODlhAgADAA=="]}),
    event(2, "user", action="recall", args={"query": "q"}),
    event(
        3, "environment", cause=2, observation="recall", content="Added", extras={"repo_instructions": "use make", "microagent_knowledge": [{"content": "git"}]}
    ),
    event(4, "environment", observation="agent_state_changed", content="", extras={}),
    event(5, "agent", action="run", args={"command": "ls", "thought": "look"}, tool_call_metadata=about("r1", "c1", "run", *BOTH, text="look")),
    event(6, "agent", action="read", args={"path": "a"}, tool_call_metadata=about("r1", "c2", "read", *BOTH, text="look")),
    event(7, "agent", cause=5, observation="run", content="a", extras={}, tool_call_metadata=about("r1", "c1", "run", *BOTH)),
    event(8, "agent", cause=6, observation="error", content="no such file", extras={}, tool_call_metadata=about("r1", "c2", "read", *BOTH)),
    event(9, "agent", action="message", args={"content": "done"}),
]


@pytest.mark.parametrize("form", ["list", "lines", "object", "folder"])
def test_a_response_is_one_message_however_many_actions_come_of_it(tmp_path: Path, form: str) -> None:
    if form == "folder":
        (tmp_path / "t" / "events").mkdir(parents=True)
        for item in EVENTS:
            as_json(tmp_path / "t" / "events" / f"{item['id']}.json", item)
        path = tmp_path / "t"
    elif form == "lines":
        path = jsonl(tmp_path / "t.jsonl", EVENTS)
    else:
        path = as_json(tmp_path / "t.json", EVENTS if form == "list" else {"events": EVENTS})
    t = read(path)
    assert shape(t) == [
        ("system", "You are OpenHands agent", ()), ("user", "q", ()), ("user", "use make\ngit", ()), ("assistant", "look", ("c1", "c2")),
        ("tool", "a", ("c1",)), ("tool", "no such file", ("c2",)), ("assistant", "done", ()),
    ]  # fmt: skip
    assert [sorted(m.flags) for m in t.messages] == [[], [], ["meta"], [], [], [], []]
    assert [m.result.is_error for m in t.messages if m.result] == [False, True]
    assert [(c.id, c.model, c.usage) for c in t.calls] == [("r1", "m", Usage(10, None, None, None, 2, None)), ("", None, None)]
    assert t.messages[3].raw == (6, 7)
    assert (t.records.total, t.records.messages, t.records.metadata, t.diagnostics) == (10, 8, 2, ())
    assert len(t.messages[1].parts) == 2
    assert [tool.name for tool in t.tools] == ["run"]


def test_actions_without_a_response_have_ids_of_their_own(tmp_path: Path) -> None:
    history = [
        [event(0, "user", action="message", args={"content": "q"}), event(1, "environment", observation="null", content="", cause=0)],
        [event(2, "agent", action="run", args={"command": "ls", "thought": "look"}), event(3, "agent", cause=2, observation="run", content="a")],
        [event(4, "user", action="run", args={"command": "pwd"}), event(5, "environment", cause=4, observation="run", content="/x")],
    ]
    t = read(as_json(tmp_path / "t.json", history))
    assert [(m.role, sorted(m.flags)) for m in t.messages] == [("user", []), ("assistant", []), ("tool", []), ("user", ["meta"]), ("user", ["meta"])]
    assert (t.messages[1].text, t.messages[1].calls[0].arguments) == ("look", {"command": "ls"})
    assert t.messages[2].result is not None
    assert t.messages[2].result.call_id == t.messages[1].calls[0].id
    assert t.records.total == 3


def test_bare_actions_and_observations_are_known(tmp_path: Path) -> None:
    """Older histories name neither source nor time."""
    rows = [
        {"action": "message", "args": {"content": "q"}, "source": "user"},
        {"action": "run", "args": {"command": "ls", "thought": "look"}},
        {"observation": "run", "content": "a.py", "extras": {"exit_code": 0}},
    ]
    t = read(as_json(tmp_path / "t.json", rows))
    assert [m.role for m in t.messages] == ["user", "assistant", "tool"]


def test_a_delegate_is_a_thread(tmp_path: Path) -> None:
    events = [
        event(0, "user", action="message", args={"content": "q"}),
        event(1, "agent", action="delegate", args={"agent": "BrowsingAgent", "inputs": {"task": "t"}}),
        event(2, "user", action="message", args={"content": "t"}),
        event(3, "agent", action="message", args={"content": "found"}),
        event(4, "agent", cause=1, observation="delegate", content="it says so"),
        event(5, "agent", action="finish", args={"outputs": {}}),
    ]
    t = read(as_json(tmp_path / "t.json", events))
    assert [m.thread for m in t.messages] == ["main", "main", "BrowsingAgent", "BrowsingAgent", "main", "main"]
    assert [(x.id, x.parent, x.spawned_by) for x in t.threads][1] == ("BrowsingAgent", "main", t.messages[1].calls[0].id)


@pytest.mark.parametrize(
    "args",
    [
        {"forgotten_event_ids": [1, 2], "summary": "so far", "summary_offset": 1},
        {"forgotten_events_start_id": 1, "forgotten_events_end_id": 2, "summary": "so far", "summary_offset": 1},
        {"forgotten_event_ids": [1, 2, 99, None, {}], "summary": None},
    ],
)
def test_a_condensation_forgets_events(tmp_path: Path, args: dict[str, Any]) -> None:
    events = [
        event(0, "user", action="message", args={"content": "q"}),
        event(1, "agent", action="run", args={"command": "ls"}),
        event(2, "agent", cause=1, observation="run", content="a"),
        event(3, "agent", action="message", args={"content": "b"}),
        event(4, "agent", action="condensation", args=args),
        event(5, "agent", action="message", args={"content": "c"}),
    ]
    t = read(as_json(tmp_path / "t.json", events))
    [found] = t.compactions
    assert (found.after, found.kept, found.raw, found.trigger) == (3, (0, 3), (5,), None)
    assert t.history("main", "full") == (0, 1, 2, 3, t.messages[-1].index)
    if args["summary"]:
        assert (found.kind, found.summary) == ("summary", 4)
        assert t.messages[4].text == "so far"
        assert t.history("main", "live") == (4, 0, 3, 5)
    else:
        assert (found.kind, found.summary) == ("trim", None)
        assert t.records.compactions == 1


def test_very_many_condensations_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openhands_events, "_MOST_WORK", 2_000)
    events = [event(at, "user", action="message", args={"content": "q"}) for at in range(200)]
    events += [event(200 + at, "agent", action="condensation", args={"forgotten_events_start_id": 0, "forgotten_events_end_id": 1}) for at in range(200)]
    t = read(as_json(tmp_path / "t.json", events))
    assert len(t.compactions) == 200
    assert sum(len(c.kept) for c in t.compactions) <= 2_000


# -- results of an evaluation


def result(**more: Any) -> dict[str, Any]:
    listed = [{"model": "m", "prompt_tokens": prompt, "completion_tokens": 1, "cache_read_tokens": 4, "cache_write_tokens": 0, "response_id": id}
              for id, prompt in (("r1", 10), ("r2", 20), ("lost", 30))]  # fmt: skip
    metrics = {"token_usages": listed, "accumulated_token_usage": {"prompt_tokens": 60, "completion_tokens": 4}}
    return {"instance_id": "i1", "metadata": {"llm_config": {"model": "m"}, "agent_class": "CodeActAgent"}, "history": EVENTS, "metrics": metrics, **more}


def test_results_have_the_usage_of_each_response(tmp_path: Path) -> None:
    runs = readers.read_all(jsonl(tmp_path / "t.jsonl", [result(), "{oops", result(instance_id="i2", metrics=None, history=EVENTS[:2])]))
    for run in runs:
        check(run)
    assert [(run.id, run.records.total, run.records.skipped) for run in runs] == [("i1", 11, 1), ("i2", 2, 0)]
    assert [(c.id, c.usage and c.usage.prompt, c.produced) for c in runs[0].calls] == [("r1", 10, (3,)), ("r2", 20, (6,)), ("lost", 30, ())]
    assert [d.code for d in runs[0].diagnostics if d.code == "totals"] == []
    assert readers.read(tmp_path / "t.jsonl", run="i2").records.total == 2
    more = read(as_json(tmp_path / "u.json", [result(metrics={"accumulated_token_usage": {"prompt_tokens": 99, "completion_tokens": 4}})]))
    assert [d.code for d in more.diagnostics] == ["totals"]


# -- events of the SDK


def sdk(id: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-05-01T10:00:00", "source": "agent", "kind": kind, **more}


def text(value: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": value}]


def stats(prompt: int, output: int, condenser: int = 0) -> dict[str, Any]:
    held = {"default": (prompt, output), "condenser": (condenser, 1 if condenser else 0)}
    metrics = {
        name: {"model_name": "m", "accumulated_token_usage": {"prompt_tokens": a, "completion_tokens": b, "cache_read_tokens": 0}}
        for name, (a, b) in held.items()
    }
    return sdk("s", "ConversationStateUpdateEvent", key="stats", value={"usage_to_metrics": metrics})


def action(id: str, response: str, call: str, thought: str = "") -> dict[str, Any]:
    asked = {"id": call, "name": "terminal", "arguments": '{"command": "ls"}'}
    more = {"thought": text(thought) if thought else [], "reasoning_content": "hm" if thought else None, "action": {"command": "ls", "kind": "TerminalAction"}}
    return sdk(id, "ActionEvent", tool_name="terminal", tool_call_id=call, tool_call=asked, llm_response_id=response, **more)


SDK = [
    sdk("e0", "SystemPromptEvent", system_prompt={"type": "text", "text": "sys"}, tools=[{"title": "terminal", "description": "d"}]),
    sdk("e1", "MessageEvent", source="user", llm_message={"role": "user", "content": text("q")}, extended_content=text("extra")),
    stats(100, 5),
    action("e2", "r1", "c1", "look"),
    action("e3", "r1", "c2"),
    sdk("e4", "ObservationEvent", source="environment", tool_call_id="c1", action_id="e2", observation={"content": text("a"), "is_error": False}),
    sdk("e5", "AgentErrorEvent", tool_name="terminal", tool_call_id="c2", error="no"),
    stats(300, 9),
    stats(300, 9, 80),
    sdk("e6", "Condensation", forgotten_event_ids=["e2", "e3", "e4", "e5"], summary="so far", llm_response_id="k"),
    sdk("e7", "MessageEvent", llm_message={"role": "assistant", "content": text("done")}, llm_response_id="r2"),
    sdk("e8", "PauseEvent"),
]


def test_events_of_the_sdk(tmp_path: Path) -> None:
    t = read(jsonl(tmp_path / "t.jsonl", SDK))
    assert shape(t) == [
        ("system", "sys", ()), ("user", "q\nextra", ()), ("assistant", "look", ("c1", "c2")), ("tool", "a", ("c1",)), ("tool", "no", ("c2",)),
        ("user", "so far", ()), ("assistant", "done", ()),
    ]  # fmt: skip
    assert [(c.kind, c.usage and (c.usage.prompt, c.usage.output)) for c in t.calls] == [
        ("response", (100, 5)),
        ("compaction", (80, 1)),
        ("response", (200, 4)),
    ]
    [found] = t.compactions
    assert (found.after, found.summary, found.kept, found.call, found.kind) == (4, 5, (0, 1), 1, "summary")
    assert t.history("main", "live") == (0, 5, 1, 6)
    assert (t.records.total, t.records.skipped, t.diagnostics) == (12, 0, ())
    assert t.model == "m"


def test_a_folder_of_the_sdk(tmp_path: Path) -> None:
    (tmp_path / "c" / "events").mkdir(parents=True)
    events = [item for item in SDK if item["id"] != "s"]
    for at, item in enumerate(events):
        as_json(tmp_path / "c" / "events" / f"event-{at:05}-{'ab' * 8}.json", item)
    (tmp_path / "c" / "events" / "event-00099-x.json").write_text("{oops")
    as_json(tmp_path / "outside.json", SDK[1])
    os.symlink(tmp_path / "outside.json", tmp_path / "c" / "events" / "event-00098-y.json")
    listed = [{"model": "m", "prompt_tokens": 10, "completion_tokens": 1, "response_id": "r1"}]
    state = {"id": "conv", "agent": {"llm": {"model": "m2"}}, "stats": {"usage_to_metrics": {"default": {"token_usages": listed}}}}
    as_json(tmp_path / "c" / "base_state.json", state)
    t = read(tmp_path / "c")
    assert (t.id, t.meta["model"], len(t.messages)) == ("conv", "m2", 7)
    assert [c.usage and c.usage.prompt for c in t.calls] == [10, None]
    assert (t.records.total, t.records.skipped) == (10, 1)
    assert "file" in {d.code for d in t.diagnostics}
    assert len(read(tmp_path / "c" / "events").messages) == 7


# -- completion logs


def log(messages: list[Any], answer: str, at: int) -> dict[str, Any]:
    return {
        "messages": messages, "tools": [{"type": "function", "function": {"name": "run"}}], "kwargs": {"temperature": 0}, "cost": 0.1, "timestamp": at,
        "response": {**response(f"r{at}", text=answer), "object": "chat.completion"}, "latency_sec": 1.5,
    }  # fmt: skip


def test_completion_logs_alone_and_together(tmp_path: Path) -> None:
    first = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    second = [*first, {"role": "assistant", "content": "a"}, {"role": "user", "content": "more"}]
    (tmp_path / "logs").mkdir()
    as_json(tmp_path / "logs" / "m-2.json", log(second, "b", 2))
    as_json(tmp_path / "logs" / "m-1.json", log(first, "a", 1))
    t = read(tmp_path / "logs" / "m-2.json")
    assert [m.text for m in t.messages] == ["s", "q", "a", "more", "b"]
    assert [(c.usage is None, c.context) for c in t.calls] == [(True, None), (False, (0, 1, 2, 3))]
    assert t.records.total == 4
    both = read(tmp_path / "logs")
    assert [m.text for m in both.messages] == ["s", "q", "a", "more", "b"]
    assert [(c.id, c.context) for c in both.calls] == [("r1", (0, 1)), ("r2", (0, 1, 2, 3))]
    assert both.records.total == 2


def test_calls_written_as_text(tmp_path: Path) -> None:
    chat = [
        {"role": "system", "content": "You are OpenHands agent, helpful"}, {"role": "user", "content": [{"type": "text", "text": "q"}]},
        {"role": "assistant", "content": "<function=run>"}, {"role": "user", "content": "EXECUTION RESULT of [run]:\nx"},
    ]  # fmt: skip
    t = read(as_json(tmp_path / "t.json", chat))
    assert [sorted(m.flags) for m in t.messages if m.role == "user"] == [[], ["meta"]]
    assert t.records.total == 4


@pytest.mark.transcripts
def test_others_files_and_damaged_copies(tmp_path: Path) -> None:
    rng = random.Random(5)
    for folder in ("openhands-events", "openhands-sdk", "openhands-eval-output"):
        for path in sorted((SHARED / "transcripts" / folder).iterdir()):
            for t in readers.read_all(path):
                check(t)
                assert t.records.skipped == 0
                assert "totals" not in {d.code for d in t.diagnostics}
            data = path.read_bytes()[:60_000]
            for _ in range(6):
                damaged = bytearray(data[: rng.randrange(1, len(data))])
                damaged[rng.randrange(len(damaged))] = rng.choice(b'{}[]",:x')
                (tmp_path / "t").write_bytes(damaged)
                try:
                    found = readers.read_all(tmp_path / "t", format="openhands")
                except ReadError:
                    continue
                for t in found:
                    check(t)


ODD: tuple[Any, ...] = (None, True, -1, 2**70, "", "x", [], [[]], {}, [{}], {"a": []}, [None])


def test_any_field_of_any_type(tmp_path: Path) -> None:
    for rows in (EVENTS, SDK):
        for at, row in enumerate(rows):
            for key in row:
                for to in ODD:
                    changed = [*rows[:at], {**row, key: to}, *rows[at + 1 :]]
                    runs = readers.get("openhands").read(openhands_document(tmp_path, changed))
                    for run in runs:
                        check(run)


def openhands_document(folder: Path, rows: list[Any]) -> Any:
    from workbench.readers.source import Document, Record

    rows = json.loads(json.dumps(rows))
    return Document(folder / "x.json", "json", 0, rows, [Record(number, row) for number, row in enumerate(rows, 1)], len(rows))
