"""The format is found by what a file holds, with reasons; a wrong or unknown one gives one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, jsonl, shape
from workbench import readers
from workbench.errors import ReadError, UnknownFormat

CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
CALLS = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": "x"},
]
BLOCKS = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
]
ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
    {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": "x"},
]
CODEX = [
    {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}},
    *({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": item} for item in ITEMS),
]
CLAUDE = [
    {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "q"}, "timestamp": "2026-01-01T00:00:00Z"},
    {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "s", "message": {"role": "assistant", "content": [{"type": "text", "text": "a"}]}},
]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (CHAT, "openai-chat"),
        (CALLS, "openai-chat"),
        ([{"messages": CHAT}], "openai-chat"),
        (BLOCKS, "anthropic"),
        (ITEMS, "openai-responses"),
        (CODEX, "codex"),
        (CLAUDE, "claude-code"),
        ([{"request": {"messages": CHAT}, "response": {"object": "chat.completion", "choices": []}}], "openai-chat"),
        ([{"request": {"input": "q"}, "response": {"object": "response", "output": []}}], "openai-responses"),
        ([{"request": {"messages": CHAT}, "response": {"type": "message", "role": "assistant", "content": []}}], "anthropic"),
    ],
)
@pytest.mark.parametrize("as_lines", [True, False])
def test_format_is_found_by_content(tmp_path: Path, rows: list[Any], expected: str, as_lines: bool) -> None:
    path = jsonl(tmp_path / "misleading_claude_code_name.txt", rows) if as_lines else as_json(tmp_path / "rollout.data", rows)
    transcript = readers.read(path)
    assert transcript.source.format == expected
    assert 0 < transcript.source.confidence <= 1
    assert all(isinstance(reason, str) and reason for reason in transcript.source.reasons)
    assert transcript.source.reasons


def test_b22_chat_lines_are_not_taken_for_claude_code(tmp_path: Path) -> None:
    lines = readers.read(jsonl(tmp_path / "a.jsonl", CHAT))
    array, whole = readers.read(as_json(tmp_path / "b.json", CHAT)), readers.read(as_json(tmp_path / "c.json", {"messages": CHAT}))
    assert {item.source.format for item in (lines, array, whole)} == {"openai-chat"}
    assert shape(lines) == shape(array) == shape(whole)
    forced = readers.read(tmp_path / "a.jsonl", format="anthropic")
    assert (forced.source.format, forced.source.confidence) == ("anthropic", 1.0)
    assert shape(forced) == shape(lines)


def test_b49_empty_lists_have_no_messages(tmp_path: Path) -> None:
    for value in ([], {"messages": []}):
        assert readers.read(as_json(tmp_path / "t.json", value)).messages == ()


@pytest.mark.parametrize("rows", [CHAT, BLOCKS, ITEMS, CODEX, CLAUDE])
def test_wrong_format_never_shows_more_than_one_line(tmp_path: Path, rows: list[Any]) -> None:
    path = jsonl(tmp_path / "t.jsonl", rows)
    right = readers.read(path).source.format
    assert readers.read(path, format=right).messages
    for info in readers.list():
        said = _error_of(path, info.name)
        assert "\n" not in said
        assert not said or (info.name != right and "t.jsonl" in said and "format=" in said)


def _error_of(path: Path, format: str) -> str:
    try:
        transcript = readers.read(path, format=format)
    except ReadError as error:
        return str(error)
    assert transcript.messages
    return ""


@pytest.mark.parametrize(
    ("rows", "wrong"), [(CHAT, "codex"), (CODEX, "openai-chat"), (CODEX, "openai-responses"), (CLAUDE, "codex"), (CLAUDE, "openai-responses")]
)
def test_wrong_format_is_said(tmp_path: Path, rows: list[Any], wrong: str) -> None:
    if (rows, wrong) == (CHAT, "codex"):
        rows = [{"speaker": "a", "line": "b"}]
    with pytest.raises(ReadError, match=rf"t\.jsonl holds no message that the reader {wrong} knows"):
        readers.read(jsonl(tmp_path / "t.jsonl", rows), format=wrong)


def test_unknown_format_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match=r"no reader is called 'word'; known: .*openai-chat"):
        readers.read(jsonl(tmp_path / "t.jsonl", CHAT), format="word")


@pytest.mark.parametrize("value", [{"alpha": 1, "beta": [1]}, [{"alpha": 1, "beta": 2}], [{"alpha": "<b>\n", "beta": 2}]])
def test_unknown_file_says_what_was_seen(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UnknownFormat, match=r"no reader knows t\.json \(first keys: alpha, beta\).*pass format=") as caught:
        readers.read(as_json(tmp_path / "t.json", value))
    assert "\n" not in str(caught.value)


def test_runs_of_a_file_by_place_and_id(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [{"messages": CHAT, "id": "first"}, {"messages": CALLS}])
    assert len(readers.read_all(path)) == 2
    assert len(readers.read(path).messages) == 2
    assert len(readers.read(path, run=1).messages) == len(readers.read(path, run="1").messages) == 3
    assert readers.read(path, run="first").id == "first"
    with pytest.raises(ReadError, match="has no run 7"):
        readers.read(path, run=7)


def test_name_that_looks_like_code_is_data(tmp_path: Path) -> None:
    path = jsonl(tmp_path / 'x"); import os #.jsonl', CHAT)
    assert readers.read(path).name == 'x"); import os #.jsonl'


def test_hundred_thousand_brackets_and_a_doubled_role(tmp_path: Path) -> None:
    rows = [CHAT[0], "[" * 100_000, '{"role": "user", "role": "assistant", "content": "x"}', json.dumps(CHAT[1])]
    transcript = readers.read(jsonl(tmp_path / "t.jsonl", rows))
    assert [message.role for message in transcript.messages] == ["user", "assistant", "assistant"]
    assert [diagnostic.line for diagnostic in transcript.diagnostics] == [2, 3]
    assert transcript.records.total == 4


@pytest.mark.parametrize(
    "line",
    [
        '{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": DEEP}}]}',
        '{"request": {"input": [{"role": "user", "content": DEEP}, {"odd": DEEP}], "tools": [{"name": "f", "parameters": DEEP}]}, "response": {"output": []}}',
        '{"type": "response_item", "payload": {"type": "function_call", "call_id": "a", "name": "f", "arguments": DEEP}}',
        '{"type": "compacted", "payload": {"message": "m", "replacement_history": [{"odd": DEEP}]}}',
    ],
)
def test_nesting_just_below_what_the_parser_bears(tmp_path: Path, line: str) -> None:
    """What parses may still be too deep for code that recurses: it becomes text or nothing, not an exception."""
    for depth in (150, *range(880, 1_000, 6)):
        path = jsonl(tmp_path / "t.jsonl", [line.replace("DEEP", '{"a":' * depth + "1" + "}" * depth)] * 2)
        try:
            found = readers.read_all(path)
        except ReadError:
            continue
        assert len(repr(found)) > 0
