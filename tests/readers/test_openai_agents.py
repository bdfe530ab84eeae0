"""Sessions of the OpenAI Agents SDK: runs, branches that share rows, usage by turn, encrypted and odd rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import check, shape
from tests.shared import SHARED
from workbench import readers
from workbench.model import MAIN, Reasoning, Transcript, Usage

ITEMS: list[Any] = [
    {"role": "user", "content": "q"},
    {"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"},
    {"id": "fc", "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "r"},
    {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
]
SHAPE = [("user", "q", ()), ("assistant", "", ("c1",)), ("tool", "r", ("c1",)), ("assistant", "done", ())]


def database(path: Path, sessions: dict[str, list[Any]], *, messages: str = "agent_messages", about: str = "agent_sessions") -> Path:
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE TABLE {about} (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP)")
        db.execute(f"CREATE TABLE {messages} (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, message_data TEXT, created_at TIMESTAMP)")
        for name, items in sessions.items():
            db.execute(f"INSERT INTO {about} VALUES (?, '2026-11-30 20:00:00', '2026-11-30 20:00:00')", (name,))
            for item in items:
                data = item if isinstance(item, str | bytes) else json.dumps(item)
                db.execute(f"INSERT INTO {messages} (session_id, message_data, created_at) VALUES (?, ?, '2026-11-30 20:00:01')", (name, data))
    db.close()
    return path


def structured(path: Path, rows: Iterable[tuple[int, str, int, int]], usage: Iterable[tuple[Any, ...]]) -> Path:
    """Add what an advanced session keeps: message, branch, place and turn; branch, turn, requests, tokens in, out and details."""
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE message_structure (id INTEGER PRIMARY KEY, session_id TEXT, message_id INTEGER, branch_id TEXT,"
            " sequence_number INTEGER, user_turn_number INTEGER)"
        )
        db.execute(
            "CREATE TABLE turn_usage (id INTEGER PRIMARY KEY, session_id TEXT, branch_id TEXT, user_turn_number INTEGER, requests INTEGER,"
            " input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, input_tokens_details JSON, output_tokens_details JSON)"
        )
        for row in rows:
            db.execute("INSERT INTO message_structure (session_id, message_id, branch_id, sequence_number, user_turn_number) VALUES ('s', ?, ?, ?, ?)", row)
        for branch, turn, requests, sent, got, details in usage:
            values = ("s", branch, turn, requests, sent, got, json.dumps(details))
            db.execute("INSERT INTO turn_usage VALUES (NULL, ?, ?, ?, ?, ?, ?, 0, ?, NULL)", values)
    db.close()
    return path


def read(path: Path) -> list[Transcript]:
    found = list(readers.read_all(path))
    for transcript in found:
        check(transcript)
        assert transcript.source.format == "openai-agents"
    return found


def test_a_session_is_a_run(tmp_path: Path) -> None:
    for names in ({}, {"messages": "chat_log", "about": "chats"}):
        path = tmp_path / f"t{len(names)}.db"
        database(path, {"empty": [], "a": ITEMS, "b": ITEMS[:1]}, **names)
        first, second, empty = read(path)
        assert (first.id, second.id, empty.id) == ("a", "b", "empty")
        assert shape(first) == SHAPE
        assert first.messages[1].parts[0] == Reasoning("hm", 4)
        assert first.messages[0].ts == 1_796_068_801_000
        assert [message.raw for message in first.messages] == [(1,), (2, 3), (4,), (5,)]
        assert second.messages[0].raw == (6,)
        assert [(t.records.messages, t.records.metadata, t.records.total) for t in (first, second, empty)] == [(5, 1, 6), (1, 1, 2), (0, 1, 1)]
        assert readers.read(path, run="b").id == "b"


def test_rows_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    secret = {"__enc__": 1, "v": 1, "kid": "k", "payload": "gAAA"}
    (t,) = read(database(tmp_path / "t.db", {"s": [*ITEMS, "{bad", "7", secret, secret, b"\xff\x00", '{"role": "user", "content": NaN}']}))
    assert shape(t)[:4] == SHAPE
    assert (t.records.total, t.records.messages, t.records.skipped) == (12, 6, 5)
    assert sorted((item.code, item.line) for item in t.diagnostics if item.line is not None) == [("item", 7), ("json", 6), ("json", 10), ("json", 11)]
    assert [item.text for item in t.diagnostics if item.code == "encrypted"] == ["2 rows of session 's' are encrypted; they cannot be read without their key"]


def test_branches_share_rows(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "q1"},
        {"role": "assistant", "content": "a1"},
        {"role": "user", "content": "q2"},
        {"role": "assistant", "content": "a2"},
    ]
    said += [{"role": "user", "content": "other"}, {"role": "assistant", "content": "a3"}]
    rows = [(1, "main", 1, 1), (2, "main", 2, 1), (3, "main", 3, 2), (4, "main", 4, 2), (1, "alt", 1, 1), (2, "alt", 2, 1), (5, "alt", 5, 2), (6, "alt", 6, 2)]
    (t,) = read(structured(database(tmp_path / "t.db", {"s": said}), rows, []))
    assert [t.messages[index].text for index in t.history()] == ["q1", "a1", "q2", "a2"]
    assert [(item.id, item.kind, item.parent, item.records) for item in t.threads] == [(MAIN, "main", None, 5), ("alt", "branch", MAIN, 2)]
    assert [(t.messages[index].text, t.messages[index].parent) for index in t.thread("alt")] == [("other", 1), ("a3", None)]
    assert (t.records.messages, t.records.total) == (6, 7)


def test_usage_by_turn_is_a_calls_own_where_the_turn_was_one_request(tmp_path: Path) -> None:
    rows = [(1, "main", 1, 1), (2, "main", 2, 1), (3, "main", 3, 1), (4, "main", 4, 1), (5, "main", 5, 1), (6, "main", 6, 2), (7, "main", 7, 2)]
    said = [*ITEMS, {"role": "user", "content": "q2"}, {"role": "assistant", "content": "a2"}]
    usage = [("main", 1, 2, 300, 20, None), ("main", 2, 1, 200, 10, {"cached_tokens": 150}), ("main", 9, 1, -4, 1, None)]
    (t,) = read(structured(database(tmp_path / "t.db", {"s": said}), rows, usage))
    assert [item.usage for item in t.calls] == [None, None, Usage(50, 150, None, None, 10)]
    assert t.meta["turn_usage"] == (("main", 1, 2, 300, 20), ("main", 9, 1, None, 1))
    assert [item.code for item in t.diagnostics] == ["usage", "turn_usage"]
    assert (t.records.messages, t.records.metadata) == (7, 4)
    known = Usage.sum([item.usage for item in t.calls]).total or 0
    assert known + 300 + 20 == 530


@pytest.mark.transcripts
def test_the_file_of_the_real_library() -> None:
    (t,) = read(SHARED / "transcripts" / "openai-agents" / "GENERATED__sqlite_session.db")
    assert shape(t) == [("user", "weather in Paris?", ()), ("assistant", "", ("call_1",)), ("tool", "sunny", ("call_1",)), ("assistant", "Sunny.", ())]
    assert (t.id, t.records.messages, t.records.metadata, t.records.skipped, t.diagnostics) == ("conv_1", 5, 1, 0, ())
