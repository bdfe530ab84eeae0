"""Langfuse traces: what an observation holds is what the watched SDK said, written once, twice or three times as JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.errors import ReadError

FILES = SHARED / "transcripts" / "langfuse"
USER = {"role": "user", "content": "q"}
TOOL = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "r"}
END = {"role": "assistant", "content": "end"}


def observation(at: int, id: str, type: str = "GENERATION", *, parent: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": id, "traceId": "t", "type": type, "name": id, "parentObservationId": parent, "level": "DEFAULT",
        "startTime": f"2026-03-01T10:00:{at:02}.000Z", "endTime": f"2026-03-01T10:00:{at:02}.500Z", "input": None, "output": None, "metadata": {}, **more,
    }  # fmt: skip


def trace(*observations: Any, **more: Any) -> dict[str, Any]:
    held = {"id": "t", "name": "the trace", "timestamp": "2026-03-01T10:00:00.000Z", "sessionId": "s", "input": None, "output": None, "scores": [], **more}
    return {"trace": held, "observations": [*observations]}


def pair(write: Any = lambda value: value, **more: Any) -> list[dict[str, Any]]:
    counts = {"input": 10, "output": 2, "total": 12}
    return [
        observation(1, "a", parent="root", model="m", usageDetails=counts, input=write([USER]), output=write(TOOL), **more),
        observation(2, "tool", "TOOL", parent="root", input=write({"a": 1}), output=write("r")),
        observation(3, "b", parent="root", model="m", usageDetails=counts, input=write([USER, TOOL, RESULT]), output=write(END), **more),
        observation(0, "root", "SPAN"),
    ]


@pytest.mark.parametrize("times", [0, 1, 2])
@pytest.mark.parametrize("form", ["trace", "inside", "list", "lines", "data", "text"])
def test_every_wrapping(tmp_path: Path, times: int, form: str) -> None:
    def write(value: Any) -> Any:
        for _ in range(times):
            value = json.dumps(value)
        return value

    held = trace(*reversed(pair(write)))
    path = tmp_path / "t.json"
    if form == "trace":
        as_json(path, held)
    elif form == "inside":
        as_json(path, {**held["trace"], "observations": held["observations"]})
    elif form == "text":
        as_json(path, {**held, "observations": json.dumps(held["observations"])})
    elif form == "data":
        as_json(path, {"data": held["observations"], "meta": {"page": 1}})
    else:
        (jsonl if form == "lines" else as_json)(path, held["observations"])
    (transcript,) = readers.read_all(path)
    check(transcript)
    assert (transcript.source.format, transcript.source.confidence) == ("langfuse", 0.97)
    assert shape(transcript) == [("user", "q", ()), ("assistant", "", ("c1",)), ("tool", "r", ("c1",)), ("assistant", "end", ())]
    assert [call.context for call in transcript.calls] == [(0,), (0, 1, 2)]
    assert [call.usage.total for call in transcript.calls if call.usage] == [12, 12]
    assert transcript.records.total == 4
    if form in ("trace", "inside"):
        assert (transcript.title, transcript.meta["session"]) == ("the trace", "s")


SHAPES: dict[str, tuple[Any, Any, Any]] = {
    "langchain": (
        [{"type": "human", "content": "q"}],
        {"type": "AIMessage", "content": "", "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"}]},
        {"type": "tool", "content": "r", "tool_call_id": "c1"},
    ),
    "langchain constructors": (
        [[{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "q"}}]],
        {
            "generations": [
                [
                    {
                        "text": "",
                        "message": {"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "", "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c1"}]}},
                    }
                ]
            ]
        },
        {"lc": 1, "id": ["x", "ToolMessage"], "kwargs": {"content": "r", "tool_call_id": "c1"}},
    ),
    "anthropic": (
        {"system": "s", "messages": [USER]},
        {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r"}]},
    ),
    "responses": (
        {"input": "q", "instructions": "s"},
        {"object": "response", "output": [{"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}]},
        {"type": "function_call_output", "call_id": "c1", "output": "r"},
    ),
    "chat": ({"messages": [USER]}, {"choices": [{"message": TOOL, "finish_reason": "tool_calls"}], "usage": {}}, RESULT),
    "gemini": (
        {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}]}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"result": "r"}}}]},
    ),
    "parts": (
        [{"role": "user", "parts": [{"type": "text", "content": "q"}]}],
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": ["run", "c1"], "name": "f", "arguments": {"a": 1}}]}],
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": ["run", "c1"], "response": "r"}]},
    ),
    "calls with the role of results": (
        [USER],
        [{"role": "assistant", "content": [{"function": {"name": "f", "arguments": {"a": 1}}, "id": "c1", "type": "function"}]}],
        {"role": "tool", "content": "r"},
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_messages_of_any_sdk(tmp_path: Path, name: str) -> None:
    asked, called, result = SHAPES[name]
    transcript = readers.read(as_json(tmp_path / "t.json", trace(observation(1, "a", input=asked, output=called))))
    check(transcript)
    assert [row[:2] for row in shape(transcript)] == [("user", "q"), ("assistant", "")]
    assert [(call.id, call.name, call.arguments) for call in transcript.messages[1].calls] == [("c1", "f", {"a": 1})]
    asked = asked[0] if name == "langchain constructors" else asked
    user = next(asked[key] for key in ("messages", "input", "contents") if key in asked) if isinstance(asked, dict) else asked
    again = [*([USER] if isinstance(user, str) else user), *_answer(called), result]
    transcript = readers.read(
        as_json(tmp_path / "t.json", trace(observation(1, "a", input=asked, output=called), observation(2, "b", input=again, output="end")))
    )
    check(transcript)
    assert shape(transcript) == [("user", "q", ()), ("assistant", "", ("c1",)), ("tool", "r", ("c1",)), ("assistant", "end", ())]


def _answer(called: Any) -> list[Any]:
    """The answer as a client sends it back."""
    if isinstance(called, list):
        return called
    for key, inner in (("choices", "message"), ("candidates", "content")):
        if key in called:
            return [called[key][0][inner]]
    if "generations" in called:
        return [called["generations"][0][0]["message"]]
    return [*called.get("output", [called])]


def test_tools_that_stand_among_the_messages(tmp_path: Path) -> None:
    offered = {"role": "tool", "content": {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}}
    transcript = readers.read(as_json(tmp_path / "t.json", trace(observation(1, "a", input=[USER, offered], output=END))))
    assert [message.role for message in transcript.messages] == ["user", "assistant"]
    assert [(tool.name, tool.description) for tool in transcript.tools] == [("f", "d")]


def test_calls_of_the_vercel_sdk(tmp_path: Path) -> None:
    """Its calls stand bare in the answer, or beside the text; the tool's observation names no call."""
    call = {"toolCallId": "c1", "toolName": "f", "input": '{"a":1}'}
    for answer, said in (([call], ""), ({"text": "look", "toolCalls": [call]}, "look")):
        held = trace(
            observation(1, "ask", model="m", input=json.dumps([USER]), output=json.dumps(answer)),
            observation(2, "f", "TOOL", input='{"a":1}', output='{"r":2}'),
        )
        (t,) = readers.read_all(as_json(tmp_path / "t.json", held))
        check(t)
        assert shape(t) == [("user", "q", ()), ("assistant", said, ("c1",)), ("tool", '{"r":2}', ("c1",))]
        assert t.messages[1].calls[0].arguments == {"a": 1}


def test_attributes_tell_what_the_observation_does_not(tmp_path: Path) -> None:
    attributes = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "q", "llm.tools.0.tool.json_schema": '{"name": "f"}'}
    spoken = observation(1, "a", input=["role='user' content='q'", "role='x'"], output=END, metadata=json.dumps({"attributes": attributes}))
    transcript = readers.read(as_json(tmp_path / "t.json", trace(spoken)))
    assert shape(transcript) == [("user", "q", ()), ("assistant", "end", ())]
    assert [tool.name for tool in transcript.tools] == ["f"]


def test_a_trace_without_requests_shows_what_went_in_and_out(tmp_path: Path) -> None:
    for value in (trace(input='"q"', output=json.dumps(END)), trace(observation(1, "agent", "AGENT", input="q", output=[TOOL, RESULT, END]))):
        transcript = readers.read(as_json(tmp_path / "t.json", value))
        check(transcript)
        assert [shape(transcript)[at][:2] for at in (0, -1)] == [("user", "q"), ("assistant", "end")]
        assert transcript.records.total == 1


def test_usage_of_every_age(tmp_path: Path) -> None:
    for given, expected in (
        ({"usageDetails": {"input": 20, "input_cache_read": 80, "output": 5, "total": 105}}, (20, 80, 5)),
        ({"usageDetails": {"input": 100, "prompt_details.cache_read": 80, "output": 5, "total": 105}}, (20, 80, 5)),
        ({"usageDetails": json.dumps({"input": 7, "output": 5})}, (7, None, 5)),
        ({"usageDetails": {}, "usage": {"input": 7, "output": 5, "total": 12, "unit": "TOKENS"}}, (7, None, 5)),
        ({"promptTokens": 7, "completionTokens": 5, "totalTokens": 12}, (7, None, 5)),
        ({"usageDetails": {}}, None),
    ):
        call = readers.read(as_json(tmp_path / "t.json", trace(observation(1, "a", input=[USER], output=END, **given)))).calls[0]
        assert (None if call.usage is None else (call.usage.input_uncached, call.usage.cache_read, call.usage.output)) == expected


@pytest.mark.parametrize(
    "odd", [None, 7, "x", [], {}, [None], [[]], {"role": []}, [{"role": "tool"}], '"', "{", True, [{"message": {}}], {"generations": [[]]}, {"choices": [7]}]
)
def test_odd_values_anywhere(tmp_path: Path, odd: Any) -> None:
    base = pair()[2]
    values = [trace({**base, key: odd}) for key in base] + [
        trace(*pair(metadata={"attributes": odd})),
        trace(odd, odd),
        {**trace(base), "trace": odd},
        {"observations": odd},
    ]
    values += [trace({**base, key: [odd]}) for key in ("input", "output")] + [
        trace({**base, key: {name: odd}}) for key in ("input", "output") for name in ("messages", "output", "content")
    ]
    for value in (*values, [*values], [base, odd]):
        path = as_json(tmp_path / "t.json", value)
        for format in (None, "langfuse"):
            try:
                runs = readers.read_all(path, format=format)
            except ReadError:
                continue
            for run in runs:
                check(run)


@pytest.mark.transcripts
@pytest.mark.skipif(not FILES.is_dir(), reason="the transcripts made by others are not at hand")
def test_real_traces_account_for_every_observation_and_token() -> None:
    with (FILES.parent / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["format"] == "langfuse"]
    assert rows
    for row in rows:
        runs = readers.read_all(FILES.parent / row["path"])
        assert sum(run.records.total for run in runs) == int(row["records"]), row["path"]
        assert sum(run.records.skipped for run in runs) == 0
        data = json.loads((FILES.parent / row["path"]).read_text("utf-8"))["observations"]
        outer = {item["parentObservationId"] for item in data if item["type"] == "GENERATION"}
        stated = [
            item["usageDetails"].get("total", 0) for item in data if item["type"] == "GENERATION" and item["id"] not in outer and item.get("usageDetails")
        ]
        if "vertex-ai-2025" not in row["path"]:  # its total counts thoughts that its parts leave out: a finding
            assert sum(call.usage.total or 0 for run in runs for call in run.calls if call.usage) == sum(stated) or "google-vertex-tools" in row["path"], row[
                "path"
            ]
        else:
            assert [item.code for run in runs for item in run.diagnostics] == ["usage"]
        assert all(message.parts for run in runs for message in run.messages)
