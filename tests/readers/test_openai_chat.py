"""OpenAI Chat Completions: every way in which such conversations are saved."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, read_with, shape
from tests.shared import SHARED, needs_shared
from workbench.model import HIDDEN, Media, Message, Reasoning, Text, ToolCall, Transcript
from workbench.readers.openai_chat import READER
from workbench.turns import starts_turn, tool_pairs
from workbench.validity import check_pairs

GIF = "data:image/gif;base64," + base64.b64encode(b"GIF89a\x02\x00\x03\x00\x80\x00\x00").decode()


def call(id: str = "a", name: str = "ls", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]},
    {"role": "tool", "tool_call_id": "b", "content": "two"},
    {"role": "tool", "tool_call_id": "a", "content": "one"},
    {"role": "assistant", "content": "done"},
]


def one(tmp_path: Path, rows: list[Any]) -> Transcript:
    [transcript] = read_with(READER, jsonl(tmp_path / "t.jsonl", rows))
    check(transcript)
    return transcript


def message(tmp_path: Path, row: dict[str, Any]) -> Message:
    return one(tmp_path, [row]).messages[0]


def test_b22_same_messages_as_lines_array_and_object(tmp_path: Path) -> None:
    [lines] = read_with(READER, jsonl(tmp_path / "a.jsonl", TALK))
    [array] = read_with(READER, as_json(tmp_path / "b.json", TALK))
    [whole] = read_with(READER, as_json(tmp_path / "c.json", {"messages": TALK, "model": "gpt-4o"}))
    assert shape(lines) == shape(array) == shape(whole)
    assert [item.records.total for item in (lines, array, whole)] == [6, 6, 6]
    assert [item.messages[3].raw for item in (lines, array, whole)] == [(4,), (4,), (4,)]
    assert whole.model == "gpt-4o"
    assert len(lines.calls) == 2
    assert all(item.usage is None and item.context is None for item in lines.calls)


def test_b01_content_null_beside_tool_calls(tmp_path: Path) -> None:
    first = message(tmp_path, {"role": "assistant", "content": None, "tool_calls": [call()]})
    assert first.parts == (ToolCall("a", "ls", {}, "{}"),)
    assert first.text == ""


@pytest.mark.parametrize("content", [{"content": None}, {}, {"content": ""}, {"content": []}, {"content": [{"type": "text", "text": ""}]}])
def test_b02_empty_tool_result_in_every_spelling(tmp_path: Path, content: dict[str, Any]) -> None:
    rows = [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": [call()]}, {"role": "tool", "tool_call_id": "a", **content}]
    transcript = one(tmp_path, rows)
    result = transcript.messages[2].result
    assert result is not None
    assert (result.call_id, result.name, result.parts, result.text) == ("a", "ls", (), "")
    assert [(pair.call, pair.result) for pair in tool_pairs(transcript.messages)] == [(1, 2)]


@pytest.mark.parametrize("extra", [{"tool_calls": None}, {"function_call": None}, {"tool_calls": []}, {"refusal": None, "audio": None}])
def test_b04_keys_with_null(tmp_path: Path, extra: dict[str, Any]) -> None:
    assert message(tmp_path, {"role": "assistant", "content": "hi", **extra}).parts == (Text("hi"),)


def test_b05_null_content_is_not_skipped(tmp_path: Path) -> None:
    rows = [TALK[1], {"role": "assistant", "content": None, "tool_calls": [call()]}, {"role": "tool", "tool_call_id": "a", "content": "x"}, TALK[5]]
    transcript = one(tmp_path, rows)
    assert len(transcript.messages) == 4
    assert transcript.records.skipped == 0
    assert check_pairs(transcript.messages) == ()


def test_b07_b08_damaged_lines_are_counted_and_named(tmp_path: Path) -> None:
    transcript = one(tmp_path, [TALK[1], '{"role": "user", oops', TALK[5], "{oops", TALK[1]])
    assert len(transcript.messages) == 3
    assert (transcript.records.total, transcript.records.skipped) == (5, 2)
    assert [item.line for item in transcript.diagnostics] == [2, 4]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_b10_b11_byte_order_marks(tmp_path: Path, encoding: str) -> None:
    path = jsonl(tmp_path / "t.jsonl", TALK[:3])
    path.write_bytes(path.read_text("utf-8").encode(encoding))
    [transcript] = read_with(READER, path)
    assert shape(transcript) == shape(one(tmp_path, TALK[:3]))
    assert not any("\ufeff" in item.text for item in transcript.messages)


def test_b13_b14_line_separators_are_content(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": "x\u2028y"}, {"role": "user", "content": "x\u2029\x85y"}, *TALK[2:6]]
    transcript = one(tmp_path, rows)
    assert len(transcript.messages) == 6
    assert transcript.messages[0].text == "x\u2028y"
    assert transcript.messages[1].text == "x\u2029\x85y"


def test_b16_b17_lone_surrogates(tmp_path: Path) -> None:
    transcript = one(
        tmp_path, ['{"role":"user","content":"\\ud99c ok"}', '{"role":"assistant","content":"\\ud835"}', '{"role":"assistant","content":"\\ud835"}']
    )
    assert transcript.messages[0].text == "\ud99c ok"
    assert transcript.messages[1].parts == transcript.messages[2].parts


def test_b49_nothing_said(tmp_path: Path) -> None:
    for value in ([], {"messages": []}):
        [transcript] = read_with(READER, as_json(tmp_path / "t.json", value))
        assert (transcript.messages, transcript.records.total, transcript.history()) == ((), 0, ())


def test_b50_empty_user_text_is_a_message(tmp_path: Path) -> None:
    transcript = one(tmp_path, [{"role": "system", "content": "x"}, {"role": "user", "content": ""}])
    assert [item.role for item in transcript.messages] == ["system", "user"]
    assert starts_turn(transcript.messages[1])
    assert HIDDEN not in transcript.messages[1].flags


def test_b53_b55_b56_pairs(tmp_path: Path) -> None:
    transcript = one(tmp_path, TALK)
    assert [(pair.id, pair.call, pair.result) for pair in tool_pairs(transcript.messages)] == [("a", 2, 4), ("b", 2, 3)]
    twice = one(tmp_path, [TALK[1], {"role": "assistant", "tool_calls": [call()]}, *[{"role": "tool", "tool_call_id": "a", "content": "x"}] * 2])
    assert [(item.rule, item.messages) for item in check_pairs(twice.messages)] == [("duplicate_result", (3,))]
    pending = one(tmp_path, [TALK[1], {"role": "assistant", "tool_calls": [call()]}])
    assert [item.rule for item in check_pairs(pending.messages)] == ["unanswered_call"]


def test_b61_only_leading_system_messages_are_fixed(tmp_path: Path) -> None:
    rows = [{"role": "developer", "content": "d"}, TALK[0], TALK[1], TALK[5], {"role": "system", "content": "user is idle"}, TALK[1]]
    transcript = one(tmp_path, rows)
    assert transcript.fixed() == (0, 1)
    assert transcript.messages[4].role == "system"
    assert transcript.system == ()


def test_b98_markup_in_a_name_is_data(tmp_path: Path) -> None:
    assert message(tmp_path, {"role": "assistant", "tool_calls": [call(name="<img src=x onerror=alert(1)>")]}).calls[0].name == "<img src=x onerror=alert(1)>"


def test_parts(tmp_path: Path) -> None:
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": GIF, "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.com/a.png"},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "x.pdf"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "hologram", "x": 1},
    ]
    text, gif, url, sound, pdf, by_id, other = message(tmp_path, {"role": "user", "content": content}).parts
    assert text == Text("look")
    assert isinstance(gif, Media)
    assert (gif.kind, gif.mime, gif.width, gif.height, gif.size) == ("image", "image/gif", 2, 3, 13)
    assert isinstance(url, Media)
    assert (url.size, url.width) == (None, None)
    assert [(item.kind, item.mime, item.size) for item in (sound, pdf) if isinstance(item, Media)] == [
        ("audio", "audio/wav", 4),
        ("document", "application/pdf", 5),
    ]
    assert isinstance(by_id, Media)
    assert by_id.sha256
    assert getattr(other, "type", None) == "hologram"


def test_tool_result_with_a_picture(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "shot"}, {"type": "image_url", "image_url": {"url": GIF}}]
    result = message(tmp_path, {"role": "tool", "tool_call_id": "a", "content": content}).result
    assert result is not None
    assert result.text == "shot"
    assert [type(part) for part in result.parts] == [Text, Media]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"reasoning_content": "why"}, [("why", None)]),
        ({"reasoning": "why"}, [("why", None)]),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "why", "signature": "abcd"}], "reasoning": "why"}, [("why", 4)]),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "abc"}], "reasoning": "why"}, [("why", None), (None, 3)]),
        ({"thinking_blocks": [{"type": "thinking", "thinking": "why", "signature": "ab"}], "reasoning_content": "why"}, [("why", 2)]),
        ({"thinking_blocks": [{"type": "redacted_thinking", "data": "abcde"}]}, [(None, 5)]),
    ],
)
def test_reasoning_of_every_vendor(tmp_path: Path, row: dict[str, Any], expected: list[Any]) -> None:
    *reasoning, text = message(tmp_path, {"role": "assistant", "content": "so", **row}).parts
    assert [(part.text, part.opaque_bytes) for part in reasoning if isinstance(part, Reasoning)] == expected
    assert text == Text("so")


def test_calls_in_every_spelling(tmp_path: Path) -> None:
    calls = [
        call("a", arguments={"x": 1}),
        {"id": "b", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
        {"function": {"name": "no_id", "arguments": None}},
        call("d", arguments='{"unfinished'),
        {"name": "flat", "args": {"y": 2}, "id": "e", "type": "tool_call"},
        None,
    ]
    found = message(tmp_path, {"role": "assistant", "tool_calls": calls}).calls
    assert [(item.id, item.name, item.arguments, item.arguments_raw) for item in found] == [
        ("a", "ls", {"x": 1}, '{"x":1}'),
        ("b", "sql", None, "select 1"),
        ("", "no_id", None, ""),
        ("d", "ls", None, '{"unfinished'),
        ("e", "flat", {"y": 2}, '{"y":2}'),
        ("", "", None, ""),
    ]


def test_legacy_functions(tmp_path: Path) -> None:
    row = {
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}, "weight": 0},
            {"role": "function", "name": "f", "content": "r"},
        ],
        "functions": [{"name": "f", "description": "does f", "parameters": {"type": "object"}}],
    }
    [transcript] = read_with(READER, jsonl(tmp_path / "t.jsonl", [row]))
    assert [item.role for item in transcript.messages] == ["user", "assistant", "tool"]
    assert [(pair.call, pair.result) for pair in tool_pairs(transcript.messages)] == [(1, 2)]
    assert [(tool.name, tool.description) for tool in transcript.tools] == [("f", "does f")]


def test_lines_of_conversations_are_runs(tmp_path: Path) -> None:
    rows = [{"messages": TALK[:2]}, {"messages": TALK, "tools": [{"type": "function", "function": {"name": "ls"}}]}, {"other": 1}, {"messages": []}]
    transcripts = read_with(READER, jsonl(tmp_path / "t.jsonl", rows))
    assert [len(item.messages) for item in transcripts] == [2, 6, 0]
    assert sum(item.records.total for item in transcripts) == 4
    assert len({item.id for item in transcripts}) == 3
    assert [item.line for item in transcripts[0].diagnostics] == [3]
    assert transcripts[1].messages[5].raw == (2,)
    for transcript in transcripts:
        check(transcript)


def test_row_for_preference_tuning(tmp_path: Path) -> None:
    row = {"input": {"messages": TALK[:2]}, "preferred_output": [TALK[5]], "non_preferred_output": [{"role": "assistant", "content": "no"}]}
    [transcript] = read_with(READER, jsonl(tmp_path / "t.jsonl", [row]))
    assert [item.text for item in transcript.messages] == ["Be short.", "q", "done"]


def answer(text: str | None, id: str = "chatcmpl-1", **message: Any) -> dict[str, Any]:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    return {"id": id, "object": "chat.completion", "created": 1_700_000_000, "model": "gpt-4o-2024", "choices": [choice], "usage": usage}


def test_pairs_with_a_growing_history_are_one_conversation(tmp_path: Path) -> None:
    user, more = {"role": "user", "content": "q"}, {"role": "user", "content": "and?"}
    pairs = [
        {"request": {"model": "gpt-4o", "messages": [user]}, "response": answer(None, "r1", tool_calls=[call()])},
        {
            "request": {
                "model": "gpt-4o",
                "messages": [user, {"role": "assistant", "tool_calls": [call()]}, {"role": "tool", "tool_call_id": "a", "content": "x"}],
            },
            "response": answer("it\u2019s x", "r2"),
        },
        {
            "request": {
                "messages": [
                    user,
                    {"role": "assistant", "tool_calls": [call()]},
                    {"role": "tool", "tool_call_id": "a", "content": "x"},
                    {"role": "assistant", "content": "it's x"},
                    more,
                ]
            },
            "response": answer("y", "r3"),
        },
        {"request": {"messages": [{"role": "user", "content": "something else"}]}, "response": answer("z", "r4")},
    ]
    first, second = read_with(READER, as_json(tmp_path / "t.json", pairs))
    assert [item.role for item in first.messages] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert first.messages[3].text == "it\u2019s x"
    assert [item.context for item in first.calls] == [(0,), (0, 1, 2), (0, 1, 2, 3, 4)]
    assert [item.produced for item in first.calls] == [(1,), (3,), (5,)]
    usage = first.calls[0].usage
    assert usage is not None
    assert (usage.input_uncached, usage.cache_read, usage.output, usage.reasoning, usage.total) == (40, 60, 20, 5, 120)
    assert (first.calls[0].id, first.calls[0].model, first.calls[0].stop_reason, first.calls[0].ts) == ("r1", "gpt-4o-2024", "stop", 1_700_000_000_000)
    assert [len(second.messages), first.records.total, second.records.total] == [2, 3, 1]
    for transcript in (first, second):
        check(transcript)


def test_streamed_answers(tmp_path: Path) -> None:
    chunks: list[dict[str, Any]] = [
        {"id": "c1", "object": "chat.completion.chunk", "model": "m", "created": 1_700_000_000, "choices": [{"index": 0, "delta": {"role": "assistant"}}]},
        {"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "He"}}]},
        {"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "y", "reasoning_content": "hm"}}]},
        {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": '{"p"'}}]}}]},
        {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}, "finish_reason": "tool_calls"}]},
        {"id": "c1", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    ]
    import json

    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    [pair] = read_with(READER, as_json(tmp_path / "t.json", [{"request": {"messages": [TALK[1]]}, "response": body}]))
    [bare] = read_with(READER, jsonl(tmp_path / "t.jsonl", chunks))
    for transcript in (pair, bare):
        check(transcript)
        last = transcript.messages[-1]
        assert last.parts == (Reasoning("hm"), Text("Hey"), ToolCall("a", "ls", {"p": 1}, '{"p":1}'))
        usage = transcript.calls[0].usage
        assert usage is not None
        assert (usage.prompt, usage.output, transcript.calls[0].stop_reason) == (7, 3, "tool_calls")
    assert (bare.records.total, bare.records.messages) == (6, 6)


def test_log_with_request_and_response_in_one_record(tmp_path: Path) -> None:
    row = {"messages": TALK[:2], "tools": [], "response": answer("a"), "cost": 0.1, "timestamp": 1.7e9}
    [transcript] = read_with(READER, as_json(tmp_path / "t.json", row))
    assert [item.role for item in transcript.messages] == ["system", "user", "assistant"]
    assert transcript.calls[0].context == (0, 1)


def test_single_response_object(tmp_path: Path) -> None:
    [transcript] = read_with(READER, as_json(tmp_path / "t.json", answer("hi")))
    assert [item.text for item in transcript.messages] == ["hi"]
    assert transcript.calls[0].usage is not None


@pytest.mark.parametrize("value", ["NaN", "1e400", "-5", '"many"', "9" * 5_000, "true"])
def test_usage_that_is_none(tmp_path: Path, value: str) -> None:
    import json

    text = json.dumps(answer("hi")).replace("100", value, 1)
    (tmp_path / "t.json").write_text(text)
    [transcript] = read_with(READER, tmp_path / "t.json")
    check(transcript)
    usage = transcript.calls[0].usage
    assert usage is not None
    assert usage.prompt is None or usage.prompt == 60
    assert usage.output == 20
    assert transcript.diagnostics


@pytest.mark.parametrize("row", [{"role": "user"}, {"role": "user", "content": 5}, {"role": "user", "content": [None, 7, [], {"type": []}]}])
def test_odd_content_is_kept_as_what_it_is(tmp_path: Path, row: dict[str, Any]) -> None:
    assert message(tmp_path, row).role == "user"


@pytest.mark.parametrize("row", [{"content": "no role"}, {"role": 5, "content": "x"}, [1], 7, None, "text"])
def test_records_that_are_no_message(tmp_path: Path, row: Any) -> None:
    transcript = one(tmp_path, [TALK[1], row])
    assert len(transcript.messages) == 1
    assert transcript.records.total == 2
    assert [item.line for item in transcript.diagnostics] == [2]


def test_unknown_role_is_no_person(tmp_path: Path) -> None:
    transcript = one(tmp_path, [TALK[1], {"role": "critic", "content": "x"}])
    assert not starts_turn(transcript.messages[1])
    assert "critic" in transcript.diagnostics[0].text


@needs_shared
def test_pairs_of_a_real_client() -> None:
    folder = SHARED / "transcripts" / "openai-chat"
    [transcript] = read_with(READER, folder / "pydantic-ai__test_openai_prompted_output_multiple.http.json")
    assert [item.role for item in transcript.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [item.usage.total for item in transcript.calls if item.usage] == [284, 315]
    assert transcript.calls[1].context == (0, 1, 2, 3)
    [pdf] = read_with(READER, folder / "pydantic-ai__test_document_as_binary_content_input_with_tool.http.json")
    media = pdf.messages[0].parts[1]
    assert isinstance(media, Media)
    assert (media.kind, media.mime) == ("document", "application/pdf")
    assert media.size
