"""pydantic-ai histories: every kind of part, usage of every version, instructions, compactions, lines with a list each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.model import COMPACT_SUMMARY, META, Compaction, Media, Opaque, Reasoning, Text, ToolResult, Transcript, Usage

GIF = "R0lGODlhAgADAA=="


def part(kind: str, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"part_kind": kind, "content": content, **more}


def request(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": [part("user-prompt", item) if isinstance(item, str) else item for item in parts], **more}


def response(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "response", "parts": [part("text", item) if isinstance(item, str) else item for item in parts], **more}


def call(id: str, args: Any, kind: str = "tool-call") -> dict[str, Any]:
    return {"part_kind": kind, "tool_name": "f", "args": args, "tool_call_id": id}


def result(id: str, content: Any, kind: str = "tool-return", **more: Any) -> dict[str, Any]:
    return {"part_kind": kind, "tool_name": "f", "content": content, "tool_call_id": id, **more}


TALK = [
    request(part("system-prompt", "be brief"), "q", timestamp="2026-11-30T20:00:00Z", instructions="be nice"),
    response(part("thinking", "hm", signature="abcd"), "look", call("c1", '{"q": 1}'), model_name="m", provider_response_id="r1", finish_reason="tool_call"),
    request("and?", result("c1", {"a": 1}), instructions="be nice"),
    response("done", model_name="m"),
]
SHAPE = [
    ("system", "be brief", ()),
    ("user", "q", ()),
    ("assistant", "look", ("c1",)),
    ("tool", '{"a":1}', ("c1",)),
    ("user", "and?", ()),
    ("assistant", "done", ()),
]


def read(path: Path) -> list[Transcript]:
    found = list(readers.read_all(path))
    for transcript in found:
        check(transcript)
        assert transcript.source.format == "pydantic-ai"
    return found


def test_a_history_in_every_wrapping(tmp_path: Path) -> None:
    files = [as_json(tmp_path / "a.json", TALK), jsonl(tmp_path / "a.jsonl", TALK), as_json(tmp_path / "m.json", {"messages": TALK})]
    files.append(as_json(tmp_path / "r.json", {"output": "done", "_state": {"message_history": TALK, "usage": {}}}))
    for path in files:
        (t,) = read(path)
        assert shape(t) == SHAPE
        assert (t.records.total, t.records.messages, t.records.skipped) == (4, 4, 0)
        assert (t.calls[0].id, t.calls[0].stop_reason, t.model, t.system) == ("r1", "tool_call", "m", ("be nice",))
        assert t.calls[0].prefix is t.calls[1].prefix
        assert t.calls[0].prefix is not None
        assert t.calls[0].prefix.system == ("be nice", "be brief")
        assert t.messages[2].parts[0] == Reasoning("hm", 4)


def test_usage_of_every_version(tmp_path: Path) -> None:
    now = {
        "input_tokens": 100,
        "cache_read_tokens": 60,
        "cache_write_tokens": 30,
        "cache_write_1h_tokens": 10,
        "output_tokens": 9,
        "output_reasoning_tokens": 4,
    }
    first = {"requests": 1, "request_tokens": 50, "response_tokens": 7, "total_tokens": 57, "details": {"cached_tokens": 20, "reasoning_tokens": 2}}
    rows = [
        request("q"),
        response("a", usage=now),
        response("b", usage=first),
        response("c", usage={"input_tokens": 0, "output_tokens": 0, "details": {}}),
        response("d", usage={**now, "input_tokens": 5}),
        response("e", usage={**first, "total_tokens": 99}),
        response("f"),
    ]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert [item.usage for item in t.calls] == [
        Usage(10, 60, 20, 10, 9, 4),
        Usage(30, 20, None, None, 7, 2),
        None,
        Usage(output=9, reasoning=4),
        Usage(30, 20, None, None, 7, 2),
        None,
    ]
    assert [(item.code, item.line) for item in t.diagnostics] == [("usage", 5), ("usage_total", 6)]


def test_every_kind_of_part(tmp_path: Path) -> None:
    asked = [
        "see",
        {"kind": "binary", "data": GIF, "media_type": "image/gif"},
        {"kind": "image-url", "url": f"data:image/gif;base64,{GIF}"},
        {"kind": "document-url", "url": "https://x/y.pdf"},
        {"kind": "cache-point"},
    ]
    rows = [
        request(part("user-prompt", asked), part("retry-prompt", "say it as JSON"), part("sparkle", "x")),
        response(
            call("s1", {"query": "x"}, "builtin-tool-call"),
            result("s1", {"found": 1}, "builtin-tool-return"),
            part("file", {"kind": "binary", "data": GIF, "media_type": "image/gif"}),
            call("c1", {"args_json": '{"a": 1}'}),
            call("c2", "{bad"),
            part("glitter", "y"),
        ),
        request(
            result("c1", [{"type": "missing", "loc": ["a"]}], "retry-prompt"),
            result("c2", ["two", {"kind": "binary", "data": GIF, "media_type": "image/gif"}], outcome="failed"),
            result("c3", None),
            7,
        ),
    ]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert [(message.role, sorted(message.flags)) for message in t.messages[:3]] == [("user", []), ("user", [META]), ("user", [META])]
    media = [item for item in t.messages[0].parts if isinstance(item, Media)]
    assert [(item.kind, item.width) for item in media] == [("image", 2), ("image", 2), ("document", None)]
    answer = t.messages[3]
    assert [(item.id, item.server_side, item.arguments) for item in answer.calls] == [
        ("s1", True, {"query": "x"}),
        ("c1", False, {"a": 1}),
        ("c2", False, None),
    ]
    assert ToolResult("s1", "f", (Text('{"found":1}'),)) in answer.parts
    assert [item.type for item in answer.parts if isinstance(item, Opaque)] == ["glitter"]
    results = [message.result for message in t.messages[4:]]
    assert [(item.call_id, item.text, item.is_error) for item in results if item] == [
        ("c1", '[{"type":"missing","loc":["a"]}]', True),
        ("c2", "two", True),
        ("c3", "", False),
    ]
    assert [(item.line, item.code) for item in t.diagnostics] == [(1, "part"), (2, "part"), (3, "part")]


def test_compactions_readable_and_hidden(tmp_path: Path) -> None:
    rows = [
        request("q"),
        response(part("compaction", "short", provider_name="anthropic"), "a"),
        request("r"),
        response(part("compaction", None, provider_details={"encrypted_content": "abcd"}), usage={"input_tokens": 9, "output_tokens": 2}),
    ]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert [(message.text, sorted(message.flags)) for message in t.messages] == [
        ("q", []),
        ("short", [COMPACT_SUMMARY]),
        ("a", []),
        ("r", []),
        ("", [COMPACT_SUMMARY]),
    ]
    assert t.compactions == (
        Compaction(0, "summary", "server", summary=1, call=0, raw=(2,)),
        Compaction(3, "opaque", "server", summary=4, call=1, raw=(4,)),
    )
    assert t.messages[4].parts == (Opaque("compaction", 4),)
    assert [item.kind for item in t.calls] == ["response", "compaction"]


def test_lines_with_a_list_each(tmp_path: Path) -> None:
    more = [request("on"), response("yes")]
    for rows in ([TALK, more], [TALK, [*TALK, *more]], [TALK[:2], TALK, [*TALK, *more]]):
        (t,) = read(jsonl(tmp_path / "t.jsonl", rows))
        assert [message.text for message in t.messages[-2:]] == ["on", "yes"]
        assert shape(t)[:6] == SHAPE
        assert (t.records.total, t.records.messages, t.records.skipped) == (len(rows), len(rows), 0)
    other = [request(part("system-prompt", "else"), "q")]
    found = read(jsonl(tmp_path / "t.jsonl", [TALK, other, "7"]))
    assert [len(t.messages) for t in found] == [6, 2]
    assert [t.records.total for t in found] == [2, 1]
    named = [[request(text, conversation_id=id)] for text, id in (("a", "x"), ("b", "y"), ("c", "x"))]
    assert [(t.id, [message.text for message in t.messages]) for t in read(jsonl(tmp_path / "t.jsonl", named))] == [("x", ["a", "c"]), ("y", ["b"])]


def test_odd_records_are_skipped_with_a_reason(tmp_path: Path) -> None:
    (t,) = read(as_json(tmp_path / "t.json", [*TALK, 7, {"kind": "request"}, None]))
    assert shape(t) == SHAPE
    assert (t.records.total, t.records.skipped) == (7, 3)
    assert [item.line for item in t.diagnostics] == [5, 6, 7]


@pytest.mark.transcripts
def test_the_file_of_the_real_library() -> None:
    (t,) = read(SHARED / "transcripts" / "pydantic-ai" / "GENERATED__all_messages.json")
    assert [message.role for message in t.messages] == ["user", "assistant", "tool", "assistant"]
    assert Usage.sum([item.usage for item in t.calls]).total == 57 + 4 + 60 + 9
    assert (t.records.total, t.records.messages, t.system, t.diagnostics) == (4, 4, ("be nice",), ())
