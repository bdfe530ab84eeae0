"""LangSmith runs: a request repeats the history, a tool's run says what it gave back, and trees hold their runs inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Transcript

USER = {"type": "human", "data": {"content": "q"}}
RESULT = {"type": "tool", "data": {"content": "r", "tool_call_id": "c1"}}


def said(text: str, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    held = {"content": text, "type": "ai", "tool_calls": [*calls], **more}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": held}


CALL = said("", {"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"})


def run(id: str, at: int, kind: str, inputs: Any, outputs: Any, *, parent: str | None = "root", **more: Any) -> dict[str, Any]:
    times = {"start_time": f"2026-03-01T10:00:{at:02}.000000", "end_time": f"2026-03-01T10:00:{at:02}.500000"}
    return {"id": id, "trace_id": "root", "parent_run_id": parent, "name": id, "run_type": kind, **times, "inputs": inputs, "outputs": outputs, **more}


def runs(result: Any = "r") -> list[dict[str, Any]]:
    usage = {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22, "input_token_details": {"cache_read": 8}}
    about = {"metadata": {"ls_model_name": "m", "ls_provider": "p"}}
    return [
        run("root", 0, "chain", {"messages": [USER]}, {"output": "end"}, parent=None),
        run("a", 1, "llm", {"messages": [[USER]]}, {"generations": [[{"text": "", "message": CALL}]]}, extra=about, prompt_tokens=10, completion_tokens=3),
        run("f", 2, "tool", {"input": "{'a': 1}"}, {"output": result}),
        run("b", 3, "llm", {"messages": [[USER, CALL, RESULT]]}, {"generations": [[{"message": said("end", usage_metadata=usage)}]]}, extra=about),
    ]


def read(path: Path) -> Transcript:
    (t,) = readers.read_all(path)
    check(t)
    assert t.source.format == "langsmith"
    return t


@pytest.mark.parametrize("form", ["array", "lines", "wrapped", "tree"])
def test_every_wrapping(tmp_path: Path, form: str) -> None:
    held = runs()
    if form == "lines":
        path = jsonl(tmp_path / "t.jsonl", held)
    else:
        bare = [{key: value for key, value in item.items() if key not in ("trace_id", "parent_run_id")} for item in held]
        tree = {**bare[0], "child_runs": bare[1:]}
        path = as_json(tmp_path / "t.json", {"array": held, "wrapped": {"runs": held}, "tree": tree}[form])
    t = read(path)
    assert shape(t) == [("user", "q", ()), ("assistant", "", ("c1",)), ("tool", "r", ("c1",)), ("assistant", "end", ())]
    assert [call.model for call in t.calls] == ["m", "m"]
    assert [(call.usage.input_uncached, call.usage.cache_read, call.usage.output) for call in t.calls if call.usage] == [(10, None, 3), (12, 8, 2)]
    assert t.calls[1].context == (0, 1, 2)
    assert (t.records.total, t.records.skipped) == (4, 0)


def test_the_last_result_stands_only_in_its_run(tmp_path: Path) -> None:
    for result in ({"type": "tool", "content": "r", "tool_call_id": "c1"}, "r"):
        t = read(as_json(tmp_path / "t.json", runs(result)[:3]))
        assert shape(t)[-1] == ("tool", "r", ("c1",))


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, [[]], [None], {"messages": [None]}])
def test_odd_values_anywhere(tmp_path: Path, odd: Any) -> None:
    for at, item in enumerate(runs()):
        for key in item:
            held = json.loads(json.dumps(runs()))
            held[at][key] = odd
            try:
                for t in readers.read_all(jsonl(tmp_path / "t.jsonl", held)):
                    check(t)
            except ReadError:
                pass
