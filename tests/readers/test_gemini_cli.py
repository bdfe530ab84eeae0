"""Gemini CLI: the old object, the append-only log with its rewinds and replaced histories, checkpoints, subagents' chats."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from workbench import readers
from workbench.model import COMPACT_SUMMARY, HIDDEN, MAIN, META, SYNTHETIC, Reasoning, Transcript, Usage

HEADER = {"sessionId": "5e55", "projectHash": "abc", "startTime": "2026-11-01T10:00:00.000Z", "lastUpdated": "2026-11-01T10:00:00.000Z"}
SPENT = {"input": 12_069, "output": 147, "cached": 11_502, "thoughts": 0, "tool": 0, "total": 12_216}


def row(id: str, type: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-11-01T10:00:00.000Z", "type": type, "content": content, **more}


def user(id: str, content: Any) -> dict[str, Any]:
    return row(id, "user", content)


def gemini(id: str, content: Any, **more: Any) -> dict[str, Any]:
    return row(id, "gemini", content, model="g-1", **more)


def ran(id: str, output: Any = "ok", **more: Any) -> dict[str, Any]:
    held = [{"functionResponse": {"id": id, "name": "ls", "response": {"output": output}}}]
    return {"id": id, "name": "ls", "args": {"path": "."}, "result": held, "status": "success", **more}


def read(path: Path, *rows: Any) -> Transcript:
    transcript = readers.read(jsonl(path / "session-x.jsonl", rows))
    check(transcript)
    assert transcript.source.format == "gemini-cli"
    assert transcript.records.total >= len(rows)
    return transcript


def texts(t: Transcript, indices: Any) -> list[str]:
    return [t.messages[index].text if t.messages[index].result is None else f"-> {t.messages[index].result.text}" for index in indices]  # type: ignore[union-attr]


CHAT = [
    user("u1", [{"text": "look"}]),
    gemini("g1", "looking", thoughts=[{"subject": "Plan", "description": "look"}], tokens=SPENT, toolCalls=[ran("c1"), ran("c2", "no", status="error")]),
    row("i1", "info", "Request cancelled."),
    user("u2", "thanks"),
    gemini("g2", [{"text": "welcome"}], tokens=None),
]


def test_old_and_new_files_say_the_same(tmp_path: Path) -> None:
    old = readers.read(as_json(tmp_path / "a.json", {**HEADER, "messages": CHAT, "summary": "A title"}))
    new = read(tmp_path, HEADER, *CHAT, {"$set": {"summary": "A title"}})
    for t in (old, new):
        check(t)
        assert shape(t) == [
            ("user", "look", ()),
            ("assistant", "looking", ("c1", "c2")),
            ("tool", "ok", ("c1",)),
            ("tool", "no", ("c2",)),
            ("user", "thanks", ()),
            ("assistant", "welcome", ()),
        ]
        assert t.messages[1].parts[0] == Reasoning("Plan\nlook")
        assert [message.result.is_error for message in t.messages[2:4] if message.result] == [False, True]
        assert [call.usage for call in t.calls] == [Usage(567, 11_502, None, None, 147, 0), None]
        assert (t.title, t.id, t.model) == ("A title", "5e55", "g-1")
        assert t.diagnostics == ()
    assert (old.records.total, old.records.messages, old.records.metadata) == (5, 4, 1)
    assert (new.records.total, new.records.messages, new.records.metadata) == (7, 4, 3)


def test_a_message_that_is_written_again_counts_once(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        HEADER,
        user("u1", "q"),
        gemini("g1", "a"),
        gemini("g1", "a", tokens=SPENT),
        user("u2", "more"),
        gemini("g1", "a", toolCalls=[ran("c1")], tokens=SPENT),
    )
    assert texts(t, t.thread()) == ["q", "a", "-> ok", "more"]
    assert t.messages[1].raw == (3, 4, 6)
    assert len(t.calls) == 1
    assert t.records.messages == 5


def test_an_object_without_the_project_is_known_by_its_rows(tmp_path: Path) -> None:
    """Tools that write sessions for it leave the project's hash out and may call the model by its API's name."""
    rows = [{"type": "user", "content": "q"}, {"type": "model", "content": "a"}]
    (t,) = readers.read_all(as_json(tmp_path / "a.json", {"sessionId": "s", "startTime": HEADER["startTime"], "messages": rows}))
    check(t)
    assert t.source.format == "gemini-cli"
    assert shape(t) == [("user", "q", ()), ("assistant", "a", ())]


def test_what_was_rewound_is_a_branch(tmp_path: Path) -> None:
    rows = [user("u1", "one"), gemini("g1", "1"), user("u2", "two"), gemini("g2", "2", toolCalls=[ran("c1")])]
    t = read(tmp_path, HEADER, *rows, {"$rewindTo": "u2"}, user("u3", "three"), gemini("g3", "3"))
    assert texts(t, t.thread()) == ["one", "1", "three", "3"]
    assert texts(t, t.thread("rewound-6")) == ["two", "2", "-> ok"]
    assert [(thread.kind, thread.parent, thread.records) for thread in t.threads] == [("main", None, 6), ("branch", "main", 2)]
    assert [call.thread for call in t.calls] == [MAIN, "rewound-6", MAIN]
    t = read(tmp_path, HEADER, *rows, {"$rewindTo": "nowhere"}, user("u1", "again"))
    assert texts(t, t.thread()) == ["again"]
    assert len(t.thread("rewound-6")) == 5


def test_a_compression_is_a_compaction(tmp_path: Path) -> None:
    """The new history holds results as the API does, under new ids: they are the ones that are known."""
    old = [user("u1", "one"), gemini("g1", "1"), user("u2", "two"), gemini("g2", "2", toolCalls=[ran("c1")])]
    answer = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "ok"}}}
    history = [
        user("s1", [{"text": "<state_snapshot>what was</state_snapshot>"}]),
        row("k1", "gemini", [{"text": "Got it."}]),
        old[2],
        old[3],
        user("r1", [answer]),
    ]
    t = read(tmp_path, HEADER, *old, {"$set": {"messages": history}}, user("u3", "three"), gemini("g3", "3", tokens=SPENT))
    (done,) = t.compactions
    assert (done.after, done.kind, done.tokens_before, done.trigger, done.kept) == (4, "summary", None, None, (2, 3, 4))
    assert texts(t, t.history()) == ["one", "1", "two", "2", "-> ok", "Got it.", "three", "3"]
    assert texts(t, t.history(which="live")) == ["<state_snapshot>what was</state_snapshot>", "two", "2", "-> ok", "Got it.", "three", "3"]
    assert t.messages[5].flags == {COMPACT_SUMMARY}
    assert t.messages[6].flags == {SYNTHETIC}
    assert len(t.calls) == 3
    assert t.records.skipped == 0


def test_masked_results_and_a_cut_are_compactions_without_a_summary(tmp_path: Path) -> None:
    rows = [user("u1", "one"), gemini("g1", "1", toolCalls=[ran("c1", "long")]), user("u2", "two")]
    masked = [rows[0], gemini("g1", "1", toolCalls=[ran("c1", "(masked)")]), rows[2]]
    t = read(tmp_path, HEADER, *rows, {"$set": {"messages": masked}})
    assert [(done.kind, done.kept, done.summary) for done in t.compactions] == [("edit", (0, 1, 2, 3), None)]
    assert texts(t, t.history()) == ["one", "1", "-> long", "two"]
    t = read(tmp_path, HEADER, *rows, {"$set": {"messages": rows[2:]}})
    assert [(done.kind, done.kept) for done in t.compactions] == [("trim", (3,))]
    assert t.records.compactions == 1


def test_a_history_that_replaces_nothing_or_the_same_is_no_compaction(tmp_path: Path) -> None:
    rows = [user("u1", "one"), gemini("g1", "1")]
    t = read(tmp_path, HEADER, {"$set": {"messages": rows}}, {"$set": {"messages": rows}})
    assert texts(t, t.thread()) == ["one", "1"]
    assert t.compactions == ()
    assert len(t.calls) == 1


def test_calls_without_ids_and_results_of_other_shapes(tmp_path: Path) -> None:
    calls = [
        {"name": "a", "args": {}},
        {"name": "b", "args": {}, "result": "text"},
        {"name": "c", "args": {}, "result": {"functionResponse": {"name": "c", "response": {"error": "no"}}}},
        {
            "id": "d",
            "name": "d",
            "args": {},
            "result": [{"functionResponse": {"id": "d", "response": {"x": 1}}}, {"text": "more"}, {"functionResponse": {"id": "z"}}],
        },
    ]
    t = read(tmp_path, HEADER, gemini("g1", "", toolCalls=calls))
    held = [(message.result.call_id, message.result.text, message.result.is_error) for message in t.messages if message.result]
    assert held == [("g1:2", "text", False), ("g1:3", "no", True), ("d", '{"x":1}\nmore', False)]
    assert [call.id for call in t.messages[0].calls] == ["g1:1", "g1:2", "g1:3", "d"]


def test_a_saved_checkpoint(tmp_path: Path) -> None:
    history = [
        {"role": "user", "parts": [{"text": "This is the Gemini CLI. We are setting up the context for our chat."}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "ls", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "ls", "response": {"output": "x"}}}]},
        {"role": "user", "parts": [{"text": " "}]},
    ]
    t = readers.read(as_json(tmp_path / "checkpoint-x.json", {"history": history, "authType": "x"}))
    check(t)
    assert t.source.format == "gemini-cli"
    assert [(message.role, message.flags) for message in t.messages] == [
        ("user", {META}),
        ("assistant", frozenset()),
        ("tool", frozenset()),
        ("user", {HIDDEN}),
    ]
    assert t.records.total == 4


def test_odd_rows_are_counted(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        HEADER,
        user("u", "q"),
        [],
        {"id": "x"},
        row("e", "error", "API\nfailed"),
        row("n", "sparkle", "x"),
        gemini("g", "a", tokens={**SPENT, "total": 5}),
    )
    assert sorted(item.code for item in t.diagnostics) == ["error", "message", "record", "unknown_record", "usage_total"]
    assert (t.records.messages, t.records.metadata, t.records.skipped) == (2, 3, 2)
    assert read(tmp_path, HEADER).messages == ()


def test_subagents_stand_in_a_folder_of_the_sessions_id(tmp_path: Path) -> None:
    folder = tmp_path / "5e55"
    folder.mkdir()
    jsonl(folder / "agent-1.jsonl", [{**HEADER, "sessionId": "agent-1", "kind": "subagent"}, user("u1", "search"), gemini("g1", "found", tokens=SPENT), "{"])
    jsonl(folder / "agent-2.jsonl", [{**HEADER, "sessionId": "agent-2"}, user("u1", "a"), {"$rewindTo": "u1"}, user("u2", "b")])
    (folder / "notes.txt").write_text("x", "utf-8")
    (tmp_path / "other").mkdir()
    jsonl(tmp_path / "other" / "agent-3.jsonl", [HEADER, user("u", "not ours")])
    t = read(tmp_path, HEADER, user("u1", "q"), gemini("g1", "", toolCalls=[ran("c1", agentId="agent-1")], tokens=SPENT))
    assert [(thread.id, thread.kind, thread.parent, thread.spawned_by) for thread in t.threads] == [
        ("main", "main", None, None),
        ("agent-1", "subagent", "main", "c1"),
        ("agent-2", "subagent", "main", None),
        ("agent-2/rewound-3", "branch", "agent-2", None),
    ]
    assert texts(t, t.thread("agent-1")) == ["search", "found"]
    assert texts(t, t.thread("agent-2")) == ["b"]
    assert (t.records.total, t.records.skipped) == (3 + 4 + 4, 1)
    assert t.meta["side_files"] == (("agent-1.jsonl", 4), ("agent-2.jsonl", 8))
    assert t.messages[t.thread("agent-1")[0]].raw == (5,)


def test_no_link_and_no_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    (tmp_path / "secret").mkdir()
    jsonl(tmp_path / "secret" / "a.jsonl", [HEADER, user("u", "secret")])
    os.symlink(tmp_path / "secret", tmp_path / "chats" / "5e55")
    for session in ("5e55", "../secret", "", str(tmp_path / "secret")):
        t = read(tmp_path / "chats", {**HEADER, "sessionId": session}, user("u", "q"))
        assert texts(t, range(len(t.messages))) == ["q"]
    os.remove(tmp_path / "chats" / "5e55")
    (tmp_path / "chats" / "5e55").mkdir()
    os.symlink(tmp_path / "secret" / "a.jsonl", tmp_path / "chats" / "5e55" / "a.jsonl")
    t = read(tmp_path / "chats", HEADER, user("u", "q"))
    assert [thread.id for thread in t.threads] == [MAIN]
    assert [item.code for item in t.diagnostics] == ["side_file"]


@pytest.mark.parametrize("rows", [[HEADER, user("u", "q")], [user("u", "q"), {"$set": {"lastUpdated": "x"}}], [user("u", "q"), gemini("g", "a")]])
def test_a_log_is_known_by_what_it_holds(tmp_path: Path, rows: list[Any]) -> None:
    assert readers.read(jsonl(tmp_path / "t.txt", rows)).source.format == "gemini-cli"


def test_many_rewinds_and_histories_take_no_time(tmp_path: Path) -> None:
    rows: list[Any] = [HEADER, *(user(f"u{number}", "q") for number in range(2_000))]
    for number in range(4_000):
        rows += [user(f"x{number}", "q"), {"$rewindTo": f"x{number}"}, gemini("g", "a")]
    t = readers.read(jsonl(tmp_path / "t.jsonl", map(json.dumps, rows)))
    assert len(t.threads) == 4_001
