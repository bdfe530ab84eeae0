"""Anthropic Messages in every shape in which they are saved."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, detect_with, jsonl, shape
from tests.shared import SAMPLES, SHARED, needs_shared
from workbench import readers
from workbench.model import COMPACT_SUMMARY, Media, Opaque, Reasoning, Text, ToolCall, ToolResult, Transcript, Usage
from workbench.readers.anthropic import READER
from workbench.turns import starts_turn, tool_pairs

FILES = SHARED / "transcripts" / "anthropic-messages"
CALL = {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s" * 12}, {"type": "text", "text": "let me look"}, CALL]},
    {
        "role": "user",
        "content": [{"type": "text", "text": "and hurry"}, {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.py"}]}],
    },
    {"role": "assistant", "content": "a"},
]
SHAPE = [("user", "q", ()), ("assistant", "let me look", ("t1",)), ("tool", "a.py", ("t1",)), ("user", "and hurry", ()), ("assistant", "a", ())]


def response(*content: Any, id: str = "msg_1", **more: Any) -> dict[str, Any]:
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return {"type": "message", "id": id, "role": "assistant", "model": "claude-sonnet-4-5", "content": blocks, "stop_reason": "end_turn", **more}


def read(path: Path, **options: Any) -> list[Transcript]:
    found = list(readers.read_all(path, **options))
    for transcript in found:
        check(transcript)
        assert transcript.source.format == "anthropic"
    return found


@needs_shared
@pytest.mark.parametrize("path", sorted(FILES.glob("*")), ids=lambda path: path.name[30:70])
def test_every_file_by_others(path: Path) -> None:
    runs = read(path)
    pairs = json.loads(path.read_text("utf-8"))
    assert sum(run.records.total for run in runs) == len(pairs) == sum(run.records.messages for run in runs)
    calls = [call for run in runs for call in run.calls]
    assert len(calls) == len(pairs)
    assert all(call.context is not None and call.usage is not None for call in calls)
    assert [call.id for call in calls] == [pair["response"]["id"] for pair in pairs if isinstance(pair["response"], dict)] or len(runs) == 4
    assert all(run.diagnostics == () for run in runs)


@needs_shared
def test_a_real_server_side_compaction() -> None:
    """What the top level of the usage leaves out is in the sum, once."""
    (t,) = read(next(FILES.glob("*compaction_end_to_end*")))
    assert [(m.role, COMPACT_SUMMARY in m.flags, m.call) for m in t.messages] == [
        ("user", False, None),
        ("assistant", True, 0),
        ("assistant", False, 0),
        ("user", False, None),
        ("assistant", False, 1),
    ]
    first, second = (call.usage for call in t.calls)
    assert first is not None
    assert second is not None
    assert (first.prompt, first.output, len(first.iterations)) == (55_196 + 220, 125 + 8, 2)
    assert (second.prompt, second.output) == (239, 10)
    assert [(c.after, c.summary, c.tokens_before, c.tokens_after, c.trigger, c.call) for c in t.compactions] == [(0, 1, 55_196, 220, "server", 0)]
    assert [call.context for call in t.calls] == [(0,), (1, 2, 3)]
    assert t.history(which="live") == (1, 2, 3, 4)


@needs_shared
def test_real_streams_are_runs_of_their_own() -> None:
    runs = read(next(FILES.glob("*text_parts_ahead*")))
    assert [len(run.messages) for run in runs] == [2, 2, 2, 2]
    assert len({run.id for run in runs}) == 4
    assert [run.calls[0].usage.output for run in runs if run.calls[0].usage] == [165, 152, 186, 153]
    streamed = runs[1].messages[1]
    (search,) = streamed.calls
    assert search.server_side
    assert search.arguments["query"]
    found = next(part for part in streamed.parts if isinstance(part, ToolResult))
    assert (found.call_id, found.name) == (search.id, "web_search")
    assert "history.com" in found.text
    assert any(isinstance(part, Opaque) and part.size for part in found.parts)
    assert runs[1].calls[0].stop_reason == "end_turn"
    assert readers.read(FILES / runs[0].name, run=2).id == runs[2].id


def test_the_same_talk_in_every_shape(tmp_path: Path) -> None:
    files = [
        as_json(tmp_path / "list.json", TALK),
        as_json(tmp_path / "request.json", {"model": "claude-sonnet-4-5", "system": "Be short.", "messages": TALK}),
        jsonl(tmp_path / "lines.jsonl", TALK),
        jsonl(tmp_path / "with_system.jsonl", [{"system": [{"type": "text", "text": "Be short."}], "tools": []}, *TALK]),
        as_json(tmp_path / "pair.json", {"request": {"system": "Be short.", "messages": TALK[:3]}, "response": response("a")}),
    ]
    for path in files:
        (t,) = read(path)
        assert shape(t) == SHAPE, path.name
        assert t.messages[1].parts[0] == Reasoning(None, 12)
        assert t.messages[2].result is not None
        assert t.messages[2].result.name == "ls"
        assert len(t.calls) == 2
        assert t.system in ((), ("Be short.",))
        assert tool_pairs(t.messages)[0].result == 2
    assert readers.read(files[1]).records.messages == 4
    assert readers.read(files[4]).records.messages == 1


def test_growing_pairs_give_exact_contexts(tmp_path: Path) -> None:
    """The client sends back without thinking, citations and cache marks, and still it is the same conversation."""
    cited = {"type": "text", "text": "one", "citations": [{"url": "x"}]}
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}
    answer = response({"type": "thinking", "thinking": "hm", "signature": "s"}, search, found, cited, {"type": "text", "text": " two"})
    back = {"role": "assistant", "content": [{"type": "text", "text": "one two", "cache_control": {"type": "ephemeral"}}, search]}
    q, more = {"role": "user", "content": "q"}, {"role": "user", "content": [{"type": "text", "text": "more"}]}
    other = {"role": "user", "content": "something else"}
    pairs = [
        {"request": {"messages": [q], "system": "S"}, "response": answer},
        {"request": {"messages": [other]}, "response": response("x", id="msg_9")},
        {
            "request": {"messages": [q, back, more], "system": "S", "tools": [{"name": "ls", "input_schema": {"type": "object"}}]},
            "response": response("b", id="msg_2"),
        },
    ]
    first, second = read(as_json(tmp_path / "p.json", pairs))
    assert [call.context for call in first.calls] == [(0,), (0, 1, 2)]
    assert [m.text for m in first.messages] == ["q", "one\n two", "more", "b"]
    assert [type(part) for part in first.messages[1].parts] == [Reasoning, ToolCall, ToolResult, Text, Text]
    failed = first.messages[1].parts[2]
    assert isinstance(failed, ToolResult)
    assert (failed.is_error, failed.text) == (True, "max_uses_exceeded")
    assert (first.id, second.id) == ("msg_1", "msg_9")
    assert [tool.name for tool in first.tools] == ["ls"]
    assert first.system == ("S",)
    assert first.diagnostics == ()


def test_context_edits_of_the_server(tmp_path: Path) -> None:
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3, "cleared_input_tokens": 4_000}
    usage = {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 5}
    pair = {"request": {"messages": TALK[:3]}, "response": response("a", usage=usage, context_management={"applied_edits": [edit]})}
    (t,) = read(as_json(tmp_path / "p.json", [pair]))
    assert [(c.kind, c.tokens_before, c.tokens_after, c.after, c.kept, c.call) for c in t.compactions] == [("edit", 5_000, 1_000, 3, (0, 1, 2, 3), 1)]
    assert t.history(which="live") == t.history(which="full")


def sse(*events: dict[str, Any]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


STREAM: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": response(usage={"input_tokens": 10, "cache_read_input_tokens": 7, "output_tokens": 1}) | {"stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Hel"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "ls", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"path": "'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '."}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42}},
    {"type": "message_stop"},
)


def test_streams(tmp_path: Path) -> None:
    parts = (Reasoning("hm", 3), Text("Hello"), ToolCall("t", "ls", {"path": "."}, '{"path":"."}'))
    whole = {"request": {"messages": [{"role": "user", "content": "q"}]}, "response": sse(*STREAM)}
    for path in (as_json(tmp_path / "p.json", [whole]), jsonl(tmp_path / "events.jsonl", STREAM)):
        (t,) = read(path)
        assert t.messages[-1].parts == parts
        assert (t.calls[0].usage, t.calls[0].stop_reason, t.calls[0].id) == (Usage(10, 7, output=42), "tool_use", "msg_1")
    assert readers.read(tmp_path / "events.jsonl").records.messages == len(STREAM)


@pytest.mark.parametrize("cut", range(len(STREAM)))
def test_a_stream_that_was_cut(tmp_path: Path, cut: int) -> None:
    pair = {"request": {"system": "S", "messages": [{"role": "user", "content": "q"}]}, "response": sse(*STREAM[:cut])}
    (t,) = read(as_json(tmp_path / "p.json", [pair]), format="anthropic")
    assert t.messages[0].text == "q"
    assert len(t.messages) == (2 if cut else 1)
    if cut == 9:
        assert t.messages[1].calls == (ToolCall("t", "ls", None, '{"path": "'),)


def test_a_failed_request(tmp_path: Path) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    q = {"role": "user", "content": "q"}
    pairs = [{"request": {"messages": [q]}, "response": error}, {"request": {"messages": [q]}, "response": response("a")}]
    (t,) = read(as_json(tmp_path / "p.json", pairs))
    assert shape(t) == [("user", "q", ()), ("assistant", "a", ())]
    assert [(d.line, d.code) for d in t.diagnostics] == [(1, "response")]
    assert "overloaded_error" in t.diagnostics[0].text
    assert len(t.calls) == 1


def test_one_response(tmp_path: Path) -> None:
    (t,) = read(as_json(tmp_path / "r.json", response("a", usage={"input_tokens": 3, "output_tokens": 1})))
    assert (shape(t), t.calls[0].usage, t.model) == ([("assistant", "a", ())], Usage(3, output=1), "claude-sonnet-4-5")


def test_lines_with_a_conversation_each(tmp_path: Path) -> None:
    runs = read(jsonl(tmp_path / "c.jsonl", [{"messages": TALK, "custom_id": "x"}, "{oops", {"messages": TALK[:2]}, {"note": 1}]))
    assert [(run.id, len(run.messages), run.records.total) for run in runs] == [("x", 5, 3), ("c-1", 2, 1)]
    assert [d.line for d in runs[0].diagnostics] == [2, 4]


def test_consecutive_assistant_messages_are_one_response(tmp_path: Path) -> None:
    """The API itself joins them; with ids they are told apart."""
    (t,) = read(as_json(tmp_path / "a.json", [TALK[0], TALK[1], {"role": "assistant", "content": "and"}]), format="anthropic")
    assert (len(t.messages), len(t.calls), t.messages[1].raw) == (2, 1, (2, 3))
    (t,) = read(as_json(tmp_path / "b.json", [TALK[0], response("a"), response("b", id="msg_2")]))
    assert len(t.calls) == 2


def test_media_and_documents(tmp_path: Path) -> None:
    gif = base64.b64encode(b"GIF89a\x02\x00\x03\x00\x00\x00\x00").decode()
    content = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": gif}},
        {"type": "image", "source": {"type": "url", "url": "https://example.invalid/x.png"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(b"%PDF").decode()}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}, "title": "T"},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "inner"}]}},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "search_result", "source": "s", "title": "found", "content": [{"type": "text", "text": "body"}]},
        {"type": "container_upload", "file_id": "f"},
        {"type": "text", "text": "look"},
    ]
    (t,) = read(as_json(tmp_path / "m.json", [{"role": "user", "content": content}]))
    parts = t.messages[0].parts
    media = [part for part in parts if isinstance(part, Media)]
    assert [(m.kind, m.width, m.size, bool(m.sha256)) for m in media] == [
        ("image", 2, 13, True),
        ("image", None, None, True),
        ("document", None, 4, True),
        ("document", None, None, True),
    ]
    assert t.messages[0].text == "plain\ninner\nfound\ns\nbody\nlook"
    assert [part.type for part in parts if isinstance(part, Opaque)] == ["container_upload"]


def test_b82_a_picture_alone_starts_a_turn(tmp_path: Path) -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR..."}}
    (t,) = read(as_json(tmp_path / "m.json", [{"role": "user", "content": [block]}]))
    assert t.messages[0].parts == (Media("image", "image/png"),)
    assert starts_turn(t.messages[0])


def test_results_of_server_tools(tmp_path: Path) -> None:
    def ran(kind: str, content: Any) -> dict[str, Any]:
        return {"type": f"{kind}_tool_result", "tool_use_id": "s", "content": content}

    page = {"type": "web_fetch_result", "url": "https://e.invalid", "content": {"type": "document", "source": {"type": "text", "data": "the page"}}}
    run = {"type": "code_execution_result", "stdout": "out", "stderr": "err", "return_code": 1, "content": []}
    tools = {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "n"}]}
    blocks = [
        ran("web_fetch", page),
        ran("code_execution", run),
        ran("tool_search", tools),
        ran("mcp", [{"type": "text", "text": "m"}]),
        ran("odd", 7),
        ran("odd", None),
    ]
    (t,) = read(as_json(tmp_path / "m.json", [response(*blocks)]))
    results = [part for part in t.messages[0].parts if isinstance(part, ToolResult)]
    assert [result.text for result in results] == ["https://e.invalid\nthe page", "out\nerr", "", "m", "7", ""]
    assert results[2].parts == (Opaque("tool_reference", 41),)


def test_roles_and_records_that_are_none(tmp_path: Path) -> None:
    rows: list[Any] = [*TALK, {"role": "narrator", "content": "x"}, 7, None, {"role": None}, {"role": "user"}]
    (t,) = read(as_json(tmp_path / "a.json", rows))
    assert (t.records.messages, t.records.skipped, t.records.total) == (5, 4, 9)
    assert [d.line for d in t.diagnostics] == [5, 6, 7, 8, 9]


def test_detection(tmp_path: Path) -> None:
    def sure(value: Any) -> float:
        match = detect_with(READER, as_json(tmp_path / "x.json", value))
        return 0.0 if match is None else match.confidence

    assert sure(TALK) >= 0.9
    assert sure({"system": "s", "messages": [{"role": "user", "content": "q"}]}) >= 0.85
    assert sure([{"role": "user", "content": "q"}]) < 0.5  # nothing speaks for one API or the other
    assert sure([{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": "a", "content": "x"}]) == 0
    assert sure({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}) == 0
    assert sure({"system": "s", "messages": [{"role": "assistant", "tool_calls": []}]}) == 0
    assert sure([]) == 0


def test_the_sample() -> None:
    (t,) = read(SAMPLES / "support_session.json")
    assert t.diagnostics == ()
    assert any(isinstance(part, Media) for m in t.messages for part in m.parts)
