"""LangChain messages and LangGraph states: each way of writing them, blocks, usage, removals, streams, states that repeat each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.model import COMPACT_SUMMARY, META, Compaction, Media, Opaque, Reasoning, Text, ToolResult, Transcript, Usage

FOLDER = SHARED / "transcripts" / "langchain"
ROLES = {"human": "Human", "ai": "AI", "system": "System", "tool": "Tool", "remove": "Remove"}


def said(type_: str, content: Any = "", **more: Any) -> dict[str, Any]:
    return {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": type_, "name": None, "id": None, **more}


def call(id: str, name: str = "f", args: Any = None) -> dict[str, Any]:
    return {"name": name, "args": args or {"q": 1}, "id": id, "type": "tool_call"}


TALK = [
    said("system", "be brief"),
    said("human", "q", id="h1"),
    said("ai", [{"type": "text", "text": "look"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"q": 1}}], id="a1", tool_calls=[call("c1")]),
    said("tool", "r", id="t1", tool_call_id="c1", artifact={"raw": [1]}, status="error"),
    said("ai", "done", id="a2", tool_calls=[], invalid_tool_calls=[]),
]
SHAPE = [("system", "be brief", ()), ("user", "q", ()), ("assistant", "look", ("c1",)), ("tool", "r", ("c1",)), ("assistant", "done", ())]


def as_dict(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": message["type"], "data": message}


def dumped(message: dict[str, Any]) -> dict[str, Any]:
    kwargs = {key: value for key, value in message.items() if value not in (None, {}, [])}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", f"{ROLES[message['type']]}Message"], "kwargs": kwargs}


def read(path: Path) -> list[Transcript]:
    found = list(readers.read_all(path))
    for transcript in found:
        check(transcript)
        assert transcript.source.format == "langchain"
    return found


@pytest.mark.parametrize("way", [lambda message: message, as_dict, dumped])
def test_each_way_of_writing_says_the_same(tmp_path: Path, way: Any) -> None:
    rows = [way(message) for message in TALK]
    files = [as_json(tmp_path / "a.json", rows), jsonl(tmp_path / "a.jsonl", rows), as_json(tmp_path / "s.json", {"messages": rows, "title": "T"})]
    files += [
        as_json(tmp_path / "v.json", {"values": {"messages": rows}, "next": []}),
        as_json(tmp_path / "h.json", {"lc": 1, "id": ["x"], "kwargs": {"messages": rows}}),
    ]
    for path in files:
        (t,) = read(path)
        assert shape(t) == SHAPE
        assert (t.records.total, t.records.messages, t.records.skipped) == (5, 5, 0)
        result = t.messages[3].result
        assert result is not None
        assert (result.name, result.is_error) == ("f", True)
        assert [item.produced for item in t.calls] == [(2,), (4,)]


def test_usage_counts_the_cached_part_in(tmp_path: Path) -> None:
    spent = {"input_tokens": 1200, "output_tokens": 40, "total_tokens": 1240, "input_token_details": {"cache_creation": 100, "cache_read": 1000}}
    hours = {
        "input_tokens": 300,
        "output_tokens": 1,
        "input_token_details": {"cache_creation": 0, "ephemeral_1h_input_tokens": 200, "ephemeral_5m_input_tokens": 50},
    }
    sent = {
        "model_name": "m",
        "finish_reason": "stop",
        "token_usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
    }
    own = {"id": "msg_1", "model": "c", "stop_reason": "end_turn", "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}}
    rows = [
        said("human", "q"),
        said("ai", "a", usage_metadata={**spent, "output_token_details": {"reasoning": 12}}),
        said("ai", "b", usage_metadata=hours),
        said("ai", "c", response_metadata=sent),
        said("ai", "d", response_metadata=own),
        said("ai", "e", usage_metadata={**spent, "total_tokens": 1}),
        said("ai", "f", usage_metadata={**spent, "input_tokens": 5}),
        said("ai", "g", usage_metadata=None),
    ]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert [item.usage for item in t.calls] == [
        Usage(100, 1000, 100, None, 40, 12),
        Usage(50, None, 50, 200, 1),
        Usage(5, 4, None, None, 2),
        Usage(5, 7, None, None, 3),
        Usage(100, 1000, 100, None, 40),
        Usage(output=40),
        None,
    ]
    assert [(item.code, item.line) for item in t.diagnostics] == [("usage_total", 6), ("usage", 7)]
    assert [(item.id, item.model, item.stop_reason) for item in t.calls[2:4]] == [("", "m", "stop"), ("msg_1", "c", "end_turn")]


def test_every_kind_of_block(tmp_path: Path) -> None:
    gif = "R0lGODlhAgADAA=="
    answer = [
        {"type": "thinking", "thinking": "hm", "signature": "abcd"},
        {"type": "reasoning", "reasoning": "so", "extras": {"signature": "ab"}},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "thus"}], "encrypted_content": "xyz"},
        {"type": "reasoning_content", "reasoning_content": {"text": "and", "signature": "s"}},
        {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {"query": "x"}},
        {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": "found"},
        {"type": "input_json_delta", "partial_json": "{"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        "plain",
        {"type": "non_standard", "value": {"type": "sparkle", "a": 1}},
        7,
    ]
    asked = [
        {"type": "image", "source_type": "base64", "mime_type": "image/gif", "data": gif},
        {"type": "image", "base64": gif, "mime_type": "image/gif"},
        {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{gif}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": gif}},
        {"type": "file", "url": "https://x/y.pdf", "mime_type": "application/pdf"},
        {"type": "tool_result", "tool_use_id": "c0", "content": "z"},
    ]
    rows = [said("human", asked), said("ai", answer, tool_calls=[call("c1")], invalid_tool_calls=[{"id": "c2", "name": "g", "args": "{bad"}])]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert [message.role for message in t.messages] == ["tool", "user", "assistant"]
    media = [part for part in t.messages[1].parts if isinstance(part, Media)]
    assert [(part.kind, part.width, part.height) for part in media] == [("image", 2, 3)] * 4 + [("document", None, None)]
    parts = t.messages[2].parts
    assert list(parts[:4]) == [Reasoning("hm", 4), Reasoning("so", 2), Reasoning("thus", 3), Reasoning("and", 1)]
    assert [(item.id, item.server_side, item.arguments_raw) for item in t.messages[2].calls] == [
        ("s1", True, '{"query":"x"}'),
        ("c1", False, '{"q":1}'),
        ("c2", False, "{bad"),
    ]
    assert any(isinstance(part, ToolResult) and part.text == "found" for part in parts)
    assert [part.type for part in parts if isinstance(part, Opaque)] == ["sparkle"]
    assert t.messages[2].text == "plain\n7"
    assert [item.code for item in t.diagnostics] == ["content"]


def test_what_old_versions_keep_beside_the_content(tmp_path: Path) -> None:
    raw = {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"q": 1}'}}], "reasoning_content": "hm", "refusal": "no"}
    rows = [
        said("human", "q"),
        said("ai", "", additional_kwargs=raw),
        said("function", "r", name="g"),
        said("ai", "", additional_kwargs={"function_call": {"name": "g", "arguments": "{}"}}),
        said("chat", "x", role="assistant"),
        said("chat", "y", role="narrator"),
    ]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert t.messages[1].parts[:2] == (Reasoning("hm"), Text("no"))
    assert [(item.name, item.id, item.arguments) for message in t.messages for item in message.calls] == [("f", "c1", {"q": 1}), ("g", "", {})]
    assert [message.role for message in t.messages] == ["user", "assistant", "tool", "assistant", "assistant", "user"]
    assert t.messages[5].flags == {META}


def test_removals_are_a_compaction(tmp_path: Path) -> None:
    rows = [*TALK, said("remove", id="a1"), said("remove", id="t1"), said("human", "on", id="h2"), said("remove", id="nobody")]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert t.compactions == (Compaction(4, "trim", kept=(0, 1, 4), raw=(6, 7)),)
    assert t.history(which="live") == (0, 1, 4, 5)
    assert t.history() == (0, 1, 2, 3, 4, 5)
    assert (t.records.messages, t.records.compactions) == (6, 3)
    assert [(item.code, item.line) for item in t.diagnostics] == [("remove", 9)]


def test_a_summary_takes_the_place_of_what_was_removed(tmp_path: Path) -> None:
    summary = said("human", "so far: q", id="s1", additional_kwargs={"lc_source": "summarization"})
    steps = [{"agent": {"messages": [message]}} for message in TALK]
    steps += [{"__interrupt__": []}, {"before_model": {"messages": [said("remove", id="__remove_all__"), summary, TALK[4]]}}]
    steps += [{"agent": {"messages": [said("ai", "more", id="a3")]}}]
    (t,) = read(jsonl(tmp_path / "t.jsonl", steps))
    assert t.compactions == (Compaction(4, "summary", summary=5, kept=(4,), raw=(7,)),)
    assert t.history(which="live") == (0, 5, 4, 6)
    assert [message.text for message in t.messages if COMPACT_SUMMARY in message.flags] == ["so far: q"]
    assert (t.records.total, t.records.messages, t.records.metadata) == (8, 7, 1)
    (alone,) = read(as_json(tmp_path / "a.json", [summary, TALK[4]]))
    assert alone.compactions == (Compaction(-1, "summary", summary=0, raw=(1,)),)
    assert alone.history() == alone.history(which="live") == (0, 1)


def test_states_are_one_conversation_whatever_their_order(tmp_path: Path) -> None:
    whole = [{**message, "id": message["id"] or "s"} for message in TALK]
    summary = said("human", "so far", id="sum", additional_kwargs={"lc_source": "summarization"})
    lists = [[], whole[:2], whole[:3], whole[:4], whole, [summary, whole[4], said("human", "on", id="h2")]]
    states = [
        {"values": {"messages": held}, "next": [], "config": {"configurable": {"thread_id": "th"}}, "metadata": {"step": at - 1}}
        for at, held in enumerate(lists)
    ]
    for rows in (states, states[::-1]):
        (t,) = read(as_json(tmp_path / "t.json", rows))
        assert shape(t)[:5] == SHAPE
        assert [message.text for message in t.messages[5:]] == ["so far", "on"]
        assert [(item.after, item.kind, item.summary, item.kept) for item in t.compactions] == [(4, "summary", 5, (4,))]
        assert t.history(which="live") == (0, 5, 4, 6)
        assert (t.id, t.records.total, t.records.skipped) == ("th", 6, 0)


def test_states_that_do_not_belong_together_are_runs(tmp_path: Path) -> None:
    rows = [{"messages": [said("human", text), said("ai", text.upper())]} for text in ("a", "b")]
    rows.append({"messages": [*rows[1]["messages"], said("human", "c")]})
    found = read(jsonl(tmp_path / "t.jsonl", [*rows, "7"]))
    assert [[message.text for message in t.messages] for t in found] == [["a", "A"], ["b", "B", "c"]]
    assert [t.id for t in found] == ["t-0", "t-1"]
    assert sum(t.records.total for t in found) == 4
    assert found[0].records.skipped == 1


def test_chunks_of_a_stream_are_one_response(tmp_path: Path) -> None:
    def piece(content: Any, **more: Any) -> list[Any]:
        return [said("AIMessageChunk", content, id="run-1", **more), {"langgraph_node": "agent"}]

    parts = [{"name": "f", "args": '{"q"', "id": "c1", "index": 0}, {"name": None, "args": ": 1}", "id": None, "index": 0}]
    rows = [
        piece([{"type": "thinking", "thinking": "h", "index": 0}], usage_metadata={"input_tokens": 10, "output_tokens": 0, "total_tokens": 10}),
        piece([{"type": "thinking", "thinking": "m", "signature": "ab", "index": 0}], tool_calls=[call("c1", args={})], tool_call_chunks=parts[:1]),
        piece([{"type": "text", "text": "lo", "index": 1}], tool_call_chunks=parts[1:]),
        piece([{"type": "text", "text": "ok", "index": 1}], response_metadata={"model_name": "m"}),
        piece("", usage_metadata={"input_tokens": 0, "output_tokens": 4, "total_tokens": 4}, chunk_position="last"),
        [said("tool", "r", tool_call_id="c1"), {"langgraph_node": "tools"}],
    ]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert shape(t) == [("assistant", "look", ("c1",)), ("tool", "r", ("c1",))]
    assert t.messages[0].parts[0] == Reasoning("hm", 2)
    assert t.messages[0].calls[0].arguments == {"q": 1}
    assert [(item.usage, item.model) for item in t.calls] == [(Usage(10, None, None, None, 4), "m")]
    assert (t.messages[0].raw, t.records.messages) == ((1, 2, 3, 4, 5), 6)


def test_lines_of_chunks_alone(tmp_path: Path) -> None:
    rows = [{**said("AIMessageChunk", text, id="run-1"), "additional_kwargs": {}, "tool_call_chunks": []} for text in ("Hel", "lo")]
    (t,) = read(jsonl(tmp_path / "t.jsonl", rows))
    assert shape(t) == [("assistant", "Hello", ())]


def test_a_providers_compaction_block_is_a_message_of_its_own(tmp_path: Path) -> None:
    rows = [said("human", "q"), said("ai", [{"type": "compaction", "content": "short"}, {"type": "text", "text": "a"}])]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert [(message.text, sorted(message.flags)) for message in t.messages] == [("q", []), ("short", [COMPACT_SUMMARY]), ("a", [])]
    assert t.compactions == (Compaction(0, "summary", "server", summary=1, call=0, raw=(2,)),)
    assert t.calls[0].produced == (1, 2)


def test_odd_records_are_skipped_with_a_reason(tmp_path: Path) -> None:
    rows = [*TALK, 7, {"lc": 1, "type": "not_implemented", "id": ["a", "b"], "repr": "x"}, {"type": "human"}, said("sparkle", "x")]
    (t,) = read(as_json(tmp_path / "t.json", rows))
    assert shape(t) == SHAPE
    assert (t.records.total, t.records.skipped) == (9, 4)
    assert [item.line for item in t.diagnostics] == [6, 7, 8, 9]


@pytest.mark.transcripts
@pytest.mark.parametrize(("name", "total"), [("dumpd", 6), ("model_dump", 6), ("convert_to_openai_messages", 5)])
def test_files_of_the_real_library(name: str, total: int) -> None:
    (t,) = read(FOLDER / f"GENERATED__{name}.json")
    assert [message.role for message in t.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert t.messages[2].parts[:2] == (Reasoning("Let me look", 3), Text("Looking"))
    assert [item.id for item in t.messages[2].calls] == ["toolu_1"]
    assert (t.records.total, t.records.skipped, t.diagnostics) == (total, 0, ())
    if total == 6:
        usage = t.calls[0].usage
        assert usage is not None
        assert (usage.prompt, usage.total) == (1200, 1240)
        assert t.history(which="live") == (0, 1, 3, 4)
