"""OpenAI Responses: items, response objects, pairs, chains and compactions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, detect_with, jsonl, read_with
from tests.shared import SHARED, needs_shared
from workbench.model import COMPACT_SUMMARY, META, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, Transcript
from workbench.readers.openai_responses import READER
from workbench.turns import tool_pairs
from workbench.validity import check_pairs

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAAFCAYAAACAcVaiAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "id": f"msg_{text}", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


def function(id: str, name: str = "ls", arguments: Any = "{}") -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": arguments}


def output(id: str, value: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": value}


def response(id: str, *items: Any, previous: str | None = None, object: str = "response") -> dict[str, Any]:
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 5}}
    held = {"id": id, "object": object, "model": "gpt-5", "created_at": 1_700_000_000, "status": "completed", "output": [*items], "usage": usage}
    return held if previous is None else {**held, "previous_response_id": previous}


def read(tmp_path: Path, value: Any) -> list[Transcript]:
    transcripts = read_with(READER, as_json(tmp_path / "t.json", value))
    for transcript in transcripts:
        check(transcript)
    return transcripts


def items(tmp_path: Path, *values: Any) -> Transcript:
    [transcript] = read_with(READER, jsonl(tmp_path / "t.jsonl", values))
    check(transcript)
    assert transcript.records.total == len(values)
    return transcript


def only(tmp_path: Path, item: dict[str, Any]) -> Message:
    return items(tmp_path, user("q"), item).messages[1]


def roles(transcript: Transcript) -> list[str]:
    return [message.role for message in transcript.messages]


def test_consecutive_model_items_are_one_response(tmp_path: Path) -> None:
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look"}], "encrypted_content": "x" * 20_000}
    transcript = items(tmp_path, user("q"), reasoning, function("a"), function("b"), output("b", "two"), output("a", "one"), said("done"))
    assert roles(transcript) == ["user", "assistant", "tool", "tool", "assistant"]
    assert [type(part) for part in transcript.messages[1].parts] == [Reasoning, ToolCall, ToolCall]
    assert transcript.messages[1].raw == (2, 3, 4)
    assert [(pair.id, pair.call, pair.result) for pair in tool_pairs(transcript.messages)] == [("a", 1, 3), ("b", 1, 2)]
    assert [call.produced for call in transcript.calls] == [(1,), (4,)]
    assert transcript.messages[2].result == ToolResult("b", "ls", (Text("two"),))


def test_b83_hidden_reasoning_has_its_bytes(tmp_path: Path) -> None:
    assert only(tmp_path, {"type": "reasoning", "summary": [], "encrypted_content": "x" * 20_000}).parts == (Reasoning(None, 20_000),)
    both = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "whole"}], "summary": [{"type": "summary_text", "text": "short"}]}
    assert only(tmp_path, both).parts == (Reasoning("whole", None),)


def test_array_input_and_lines_say_the_same(tmp_path: Path) -> None:
    values = [user("q"), function("a"), output("a"), said("done")]
    whole = [*read(tmp_path, values), *read(tmp_path, {"model": "gpt-5", "input": values}), *read(tmp_path, {"items": values}), items(tmp_path, *values)]
    assert len({repr([(message.role, message.parts) for message in transcript.messages]) for transcript in whole}) == 1


def test_input_as_text_and_instructions(tmp_path: Path) -> None:
    [transcript] = read(tmp_path, {"input": "q", "instructions": "Be short.", "model": "m", "tools": [{"type": "function", "name": "f", "parameters": {}}]})
    assert [message.text for message in transcript.messages] == ["q"]
    assert transcript.system == ("Be short.",)
    assert [tool.name for tool in transcript.tools] == ["f"]


@pytest.mark.parametrize(
    ("item", "name", "arguments", "result"),
    [
        ({"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "x"}}, "web_search", {"type": "search", "query": "x"}, ()),
        ({"type": "file_search_call", "id": "w", "queries": ["x"], "results": [{"text": "y"}]}, "file_search", {"queries": ["x"]}, (Text('[{"text":"y"}]'),)),
        (
            {"type": "code_interpreter_call", "id": "w", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
            "code_interpreter",
            {"code": "1+1"},
            (Text("2"),),
        ),
        ({"type": "mcp_call", "id": "w", "name": "ask", "arguments": '{"q":1}', "output": "yes"}, "ask", {"q": 1}, (Text("yes"),)),
    ],
)
def test_tools_that_the_server_ran(tmp_path: Path, item: dict[str, Any], name: str, arguments: Any, result: Any) -> None:
    call, answer = only(tmp_path, {**item, "status": "completed"}).parts
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments, call.server_side) == ("w", name, arguments, True)
    assert answer == ToolResult("w", name, result)
    assert check_pairs(items(tmp_path, user("q"), item).messages) == ()


def test_made_picture_has_its_size_not_its_base64(tmp_path: Path) -> None:
    _, result = only(tmp_path, {"type": "image_generation_call", "id": "i", "result": PNG, "revised_prompt": "a dot"}).parts
    assert isinstance(result, ToolResult)
    [media] = result.parts
    assert isinstance(media, Media)
    assert (media.kind, media.width, media.height) == ("image", 3, 5)


@pytest.mark.parametrize(
    ("type_", "field", "value", "name"),
    [
        ("local_shell_call", "action", {"type": "exec", "command": ["ls"]}, "local_shell"),
        ("computer_call", "action", {"type": "click"}, "computer"),
        ("custom_tool_call", "input", "*** Begin Patch", "apply_patch"),
        ("tool_search_call", "arguments", {"query": "x"}, "tool_search"),
        ("shell_call", "action", {"commands": ["ls"]}, "shell"),
    ],
)
def test_tools_that_the_client_runs(tmp_path: Path, type_: str, field: str, value: Any, name: str) -> None:
    call = {"type": type_, "id": "x_1", "call_id": "c1", field: value}
    if type_ == "custom_tool_call":
        call["name"] = name
    transcript = items(tmp_path, user("q"), call, {"type": f"{type_}_output", "call_id": "c1", "output": "ok"})
    assert [(item.id, item.name, item.server_side) for item in transcript.messages[1].calls] == [("c1", name, False)]
    assert transcript.messages[2].result == ToolResult("c1", name, (Text("ok"),))


def test_failed_mcp_call(tmp_path: Path) -> None:
    _, result = only(tmp_path, {"type": "mcp_call", "id": "w", "name": "ask", "arguments": "{}", "error": "refused"}).parts
    assert result == ToolResult("w", "ask", (Text("refused"),), True)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (None, ()),
        ("", ()),
        ("x", (Text("x"),)),
        ([{"type": "input_text", "text": "x"}, {"type": "output_text", "text": "y"}], (Text("x"), Text("y"))),
        ({"type": "input_text", "text": "x"}, (Text("x"),)),
        ({"content": "x", "success": True}, (Text("x"),)),
        ({"a": 1}, (Text('{"a":1}'),)),
        (5, (Text("5"),)),
    ],
)
def test_outputs_of_every_type(tmp_path: Path, value: Any, parts: Any) -> None:
    result = only(tmp_path, output("a", value)).result
    assert result is not None
    assert result.parts == parts


def test_pairs_of_a_conversation(tmp_path: Path) -> None:
    asked, reasoning = {"role": "user", "content": "q"}, {"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz"}
    pairs = [
        {"request": {"instructions": "short", "input": [asked]}, "response": response("r1", reasoning, function("a"))},
        {"request": {"instructions": "short", "input": [asked, reasoning, function("a"), output("a")]}, "response": response("r2", said("it\u2019s done"))},
        {
            "request": {"input": [asked, function("a"), output("a"), {"role": "assistant", "content": "it's done"}, user("more")]},
            "response": response("r3", said("yes")),
        },
    ]
    [transcript] = read(tmp_path, pairs)
    assert roles(transcript) == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [call.context for call in transcript.calls] == [(0,), (0, 1, 2), (0, 1, 2, 3, 4)]
    usage = transcript.calls[0].usage
    assert usage is not None
    assert (usage.input_uncached, usage.cache_read, usage.output, usage.reasoning, usage.total) == (40, 60, 20, 5, 120)
    assert (transcript.calls[0].ts, transcript.calls[0].stop_reason) == (1_700_000_000_000, "completed")
    assert transcript.system == ("short",)
    assert transcript.records.total == 3


def test_chain_by_previous_response_id(tmp_path: Path) -> None:
    pairs = [
        {"request": {"input": "one"}, "response": response("r1", said("1"))},
        {"request": {"input": "two", "previous_response_id": "r1"}, "response": response("r2", said("2"), previous="r1")},
        {"request": {"input": "three", "previous_response_id": "elsewhere"}, "response": response("r3", said("3"))},
    ]
    first, second = read(tmp_path, pairs)
    assert [message.text for message in first.messages] == ["one", "1", "two", "2"]
    assert [call.context for call in first.calls] == [(0,), (0, 1, 2)]
    assert [call.context for call in second.calls] == [None]


def test_compact_call_keeps_copies_apart(tmp_path: Path) -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "e" * 40}
    before = [user("q"), said("a"), user("r"), said("b")]
    pairs = [
        {"request": {"input": before[:1]}, "response": response("r1", said("a"))},
        {"request": {"input": before[:3]}, "response": response("r2", said("b"))},
        {"request": {"input": before}, "response": response("c1", user("q"), user("r"), compaction, object="response.compaction")},
        {"request": {"input": [user("q"), user("r"), compaction, user("s")]}, "response": response("r3", said("c"))},
    ]
    [transcript] = read(tmp_path, pairs)
    assert [message.text for message in transcript.messages] == ["q", "a", "r", "b", "", "s", "c"]
    assert transcript.messages[4].parts == (Opaque("compaction", 40),)
    assert transcript.messages[4].flags == {COMPACT_SUMMARY}
    [real] = transcript.compactions
    assert (real.after, real.kind, real.summary, real.kept, real.call, real.tokens_before) == (3, "opaque", 4, (0, 2), 2, 120)
    assert [call.kind for call in transcript.calls] == ["response", "response", "compaction", "response"]
    assert transcript.calls[3].context == (0, 2, 4, 5)
    assert transcript.history() == (0, 1, 2, 3, 5, 6)
    assert transcript.history(which="live") == (4, 0, 2, 5, 6)


def test_stream_is_its_last_event_or_its_items(tmp_path: Path) -> None:
    def body(*events: dict[str, Any]) -> str:
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    created = {"type": "response.created", "response": {**response("r1"), "status": "in_progress", "usage": None}}
    done = {"type": "response.output_item.done", "item": said("hi")}
    completed = {"type": "response.completed", "response": response("r1", said("hi"))}
    for events, usage in (((created, done, completed), 120), ((created, done), None)):
        [transcript] = read(tmp_path, [{"request": {"input": "q"}, "response": body(*events)}])
        assert [message.text for message in transcript.messages] == ["q", "hi"]
        assert transcript.calls[0].id == "r1"
        assert (transcript.calls[0].usage.total if transcript.calls[0].usage else None) == usage
        [bare] = read_with(READER, jsonl(tmp_path / "t.jsonl", events))
        check(bare)
        assert [message.text for message in bare.messages] == ["hi"]
        assert bare.records.total == len(events)


def test_response_objects(tmp_path: Path) -> None:
    [single] = read(tmp_path, response("r1", said("hi")))
    assert [message.text for message in single.messages] == ["hi"]
    [chained] = read(tmp_path, [response("r1", said("1")), response("r2", said("2"), previous="r1")])
    assert [message.text for message in chained.messages] == ["1", "2"]


def test_compaction_item_in_a_bare_list(tmp_path: Path) -> None:
    transcript = items(tmp_path, {"type": "compaction", "id": "c", "encrypted_content": "abc"}, user("q"), said("a"))
    assert (transcript.compactions[0].after, transcript.compactions[0].summary) == (-1, 0)
    assert transcript.history() == (0, 1, 2)


def test_approvals_and_lists_of_tools(tmp_path: Path) -> None:
    listed = {"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": [{"name": "ask", "description": "asks", "input_schema": {"type": "object"}}]}
    asked, given = {"type": "mcp_approval_request", "id": "r", "name": "ask"}, {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True}
    transcript = items(tmp_path, user("q"), listed, asked, given)
    assert [tool.name for tool in transcript.tools] == ["ask"]
    assert roles(transcript) == ["user", "assistant", "user"]
    assert transcript.messages[2].flags == {META}
    assert transcript.records.metadata == 1


def test_unknown_items_are_metadata_and_said_once(tmp_path: Path) -> None:
    transcript = items(tmp_path, user("q"), {"type": "hologram"}, {"type": "hologram"}, said("a"))
    assert [diagnostic.code for diagnostic in transcript.diagnostics] == ["unknown_record"]
    assert transcript.records.metadata == 2


def test_b35_reasoning_is_inside_the_output_and_cached_inside_the_input(tmp_path: Path) -> None:
    held = response("r", said("x"))
    held["usage"] = {
        "input_tokens": 123_302,
        "input_tokens_details": {"cached_tokens": 96_128},
        "output_tokens": 1_944,
        "output_tokens_details": {"reasoning_tokens": 1_129},
    }
    [transcript] = read(tmp_path, held)
    usage = transcript.calls[0].usage
    assert usage is not None
    assert usage.output is not None
    assert usage.reasoning is not None
    assert (usage.total, usage.input_uncached, usage.output - usage.reasoning) == (125_246, 27_174, 815)


def test_one_line_file(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [function("a")])
    assert detect_with(READER, path) is not None
    [transcript] = read_with(READER, path)
    assert roles(transcript) == ["assistant"]


@needs_shared
def test_real_compactions() -> None:
    folder = SHARED / "transcripts" / "openai-responses"
    [chain] = read_with(READER, folder / "pydantic-ai__test_openai_responses_compact_with_auto_previous_response_id_chain.http.json")
    assert [(item.after, item.summary, item.kept) for item in chain.compactions] == [(3, 4, (0, 2)), (6, 7, (5,)), (9, 10, (8,))]
    assert [call.usage.total for call in chain.calls if call.kind == "compaction" and call.usage] == [324, 310, 303]
    assert chain.calls[1].context == (0, 1, 2)
    [stream] = read_with(READER, folder / "pydantic-ai__test_openai_responses_compact_stateful_mode_stream.http.json")
    assert len(stream.messages) == 9
    assert [item.summary for item in stream.compactions] == [6]
    assert stream.compactions[0].trigger == "server"


@needs_shared
def test_real_server_tools() -> None:
    folder = SHARED / "transcripts" / "openai-responses"
    [mcp] = read_with(READER, folder / "pydantic-ai__test_openai_responses_model_mcp_server_tool.http.json")
    assert roles(mcp) == ["user", "assistant", "user", "assistant"]
    assert check_pairs(mcp.messages) == ()
    assert "ask_question" in {tool.name for tool in mcp.tools}
    assert "custom-header-value" not in repr(mcp.tools)
    [search] = read_with(READER, folder / "pydantic-ai__test_openai_responses_model_web_search_tool_stream.http.json")
    assert len(search.messages) == 4
    assert [call.name for message in search.messages for call in message.calls] == ["web_search", "web_search"]
