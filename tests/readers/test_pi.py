"""pi and OpenClaw: the tree, compactions with their first kept entry, totals, and what a damaged file still tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.model import COMPACT_SUMMARY, HIDDEN, MAIN, META, SYNTHETIC, Media, Reasoning, Transcript, Usage
from workbench.turns import tool_pairs
from workbench.validity import check_pairs

HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-11-01T10:00:00.000Z", "cwd": "/srv/p"}
REAL = SHARED / "transcripts" / "pi-session" / "pi-mono__before-compaction.jsonl"


def entry(id: str, parent: str | None, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": id, "parentId": parent, "timestamp": "2026-11-01T10:00:00.000Z", **more}


def user(id: str, parent: str | None, content: Any) -> dict[str, Any]:
    return entry(id, parent, "message", message={"role": "user", "content": content})


def answer(id: str, parent: str | None, *blocks: Any, usage: Any = None, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return entry(id, parent, "message", message={"role": "assistant", "content": content, "model": "m", "provider": "p", "usage": usage, **more})


def call(id: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "ls"}}


def result(id: str, parent: str | None, call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return entry(id, parent, "message", message={"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "content": content, **more})


def spent(fresh: int = 1, read: int = 0, write: int = 0, output: int = 1, **more: Any) -> dict[str, Any]:
    return {"input": fresh, "cacheRead": read, "cacheWrite": write, "output": output, "totalTokens": fresh + read + write + output, **more}


def read(path: Path, *rows: Any) -> Transcript:
    transcript = readers.read(jsonl(path / "t.jsonl", rows))
    check(transcript)
    assert transcript.source.format == "pi"
    assert transcript.records.total == len(rows)
    return transcript


def codes(transcript: Transcript) -> list[str]:
    return [item.code for item in transcript.diagnostics if item.code != "timestamps"]


def test_a_session(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "abcd"}
    picture = {"type": "image", "mimeType": "image/gif", "data": "R0lGODlhAgADAA=="}
    t = read(
        tmp_path,
        HEADER,
        entry("c", None, "model_change", provider="p", modelId="before"),
        user("u", "c", "hello"),
        answer("a", "u", thought, "looking", call("t1"), usage=spent(10, 20, 30, 4, cost={"total": 0.5}), stopReason="toolUse", responseId="r1"),
        result("r", "a", "t1", [{"type": "text", "text": "files"}, picture], isError=True),
        entry("n", "r", "session_info", name="A title"),
        answer("b", "n", "done", usage=spent(5, 6, 7, 8)),
    )
    assert shape(t) == [("user", "hello", ()), ("assistant", "looking", ("t1",)), ("tool", "files", ("t1",)), ("assistant", "done", ())]
    assert t.messages[1].parts[0] == Reasoning("hm", 4)
    held = t.messages[2].result
    assert held is not None
    assert held.is_error
    assert (held.name, held.parts[1]) == ("bash", Media("image", "image/gif", 2, 3, 10, held.parts[1].sha256))  # type: ignore[union-attr]
    assert t.calls[0].usage == Usage(10, 20, 30, None, 4)
    assert (t.calls[0].id, t.calls[0].stop_reason, t.calls[0].model, t.model) == ("r1", "toolUse", "m", "m")
    assert [message.parent for message in t.messages] == [None, 0, 1, 2]
    assert (t.title, t.id, t.meta["cwd"]) == ("A title", "s1", "/srv/p")
    assert (t.records.messages, t.records.metadata) == (4, 3)
    assert codes(t) == []


def test_a_response_that_never_came_has_no_usage_and_is_not_sent(tmp_path: Path) -> None:
    t = read(tmp_path, HEADER, user("u", None, "q"), answer("a", "u", usage=spent(0, 0, 0, 0), stopReason="aborted"), answer("b", "a", "x", usage=spent()))
    assert t.calls[0].usage is None
    assert t.messages[1].flags == {HIDDEN}
    assert Usage.sum([call.usage for call in t.calls]).total == 2


def test_totals_that_are_not_their_sum_and_numbers_that_are_none(tmp_path: Path) -> None:
    rows = [answer("a", None, "x", usage={**spent(), "totalTokens": 9}), answer("b", "a", "y", usage={**spent(), "input": -1})]
    t = read(tmp_path, HEADER, *rows)
    assert codes(t) == ["usage_total", "usage"]
    assert [call.usage for call in t.calls] == [Usage(1, 0, 0, None, 1), Usage(output=1)]


def test_branches_that_were_left_are_threads(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        HEADER,
        user("u1", None, "one"),
        answer("a1", "u1", "first", usage=spent()),
        user("u2", "a1", "two"),
        answer("a2", "u2", "left", usage=spent()),
        user("u3", "a2", "left further"),
        user("u4", "a2", "left again"),  # the branch itself forks: its newest end goes on
        entry("b", "a1", "branch_summary", fromId="u4", summary="it failed"),
        user("u5", "b", "three"),
        answer("a5", "u5", "kept", usage=spent()),
    )
    assert [(thread.id, thread.kind, thread.parent, thread.records) for thread in t.threads] == [
        ("main", "main", None, 6),
        ("branch-1", "branch", "main", 3),
        ("branch-2", "branch", "branch-1", 1),
    ]
    assert [t.messages[index].text for index in t.thread()] == ["one", "first", "it failed", "three", "kept"]
    assert [t.messages[index].text for index in t.thread("branch-1")] == ["two", "left", "left again"]
    assert [t.messages[index].text for index in t.thread("branch-2")] == ["left further"]
    assert [call.thread for call in t.calls] == [MAIN, "branch-1", MAIN]
    assert META in t.messages[t.thread()[2]].flags
    assert t.messages[t.thread()[2]].parent == 1


def test_a_second_root_is_a_conversation_begun_anew(tmp_path: Path) -> None:
    t = read(tmp_path, HEADER, user("u1", None, "old"), answer("a1", "u1", "x"), user("u2", None, "new"))
    assert [t.messages[index].text for index in t.thread()] == ["new"]
    assert [t.messages[index].text for index in t.thread("branch-1")] == ["old", "x"]


def compacted(first: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        user("u1", None, "one"),
        answer("a1", "u1", "1"),
        user("u2", "a1", "two"),
        answer("a2", "u2", "2"),
        entry("c1", "a2", "compaction", summary="what was", tokensBefore=175_004, **first),
        user("u3", "c1", "three"),
    ]


def test_a_compaction_keeps_from_its_first_kept_entry(tmp_path: Path) -> None:
    t = read(tmp_path, HEADER, *compacted({"firstKeptEntryId": "u2"}))
    (done,) = t.compactions
    assert (done.after, done.kind, done.tokens_before, done.tokens_after, done.trigger, done.kept) == (3, "summary", 175_004, None, None, (2, 3))
    assert done.summary is not None
    assert t.messages[done.summary].flags == {COMPACT_SUMMARY}
    assert [t.messages[index].text for index in t.history()] == ["one", "1", "two", "2", "three"]
    assert [t.messages[index].text for index in t.history(which="live")] == ["what was", "two", "2", "three"]


def test_the_first_version_counts_entries_and_damaged_ones_with_them(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key not in ("id", "parentId")} for row in compacted({"firstKeptEntryIndex": 3})]
    t = read(tmp_path, HEADER, *rows)
    assert t.compactions[0].kept == (2, 3)
    assert all(message.parent is None for message in t.messages)
    t = read(tmp_path, HEADER, '{"type": "message", "mess', *rows[1:])
    assert t.compactions[0].kept == (1, 2)
    assert t.records.skipped == 1


def test_a_second_compaction_does_not_keep_the_summary_before_it(tmp_path: Path) -> None:
    again = entry("c2", "u3", "compaction", summary="again", firstKeptEntryId="u2", tokensBefore=5)
    t = read(tmp_path, HEADER, *compacted({"firstKeptEntryId": "u2"}), again, user("u4", "c2", "four"))
    assert [t.messages[index].text for index in t.history(which="live")] == ["again", "two", "2", "three", "four"]


@pytest.mark.parametrize("first", [{"firstKeptEntryId": "nowhere"}, {"firstKeptEntryIndex": 99}, {"firstKeptEntryId": ["u1"]}, {}])
def test_a_first_kept_entry_that_is_not_there_keeps_nothing(tmp_path: Path, first: dict[str, Any]) -> None:
    t = read(tmp_path, HEADER, *compacted(first))
    assert t.compactions[0].kept == ()
    assert t.compactions[0].after == 3
    assert codes(t) == ["compaction"]


def test_a_compaction_of_a_branch_stands_in_it(tmp_path: Path) -> None:
    t = read(tmp_path, HEADER, *compacted({"firstKeptEntryId": "u2"}), user("u9", "a1", "elsewhere"))
    assert [t.messages[index].text for index in t.thread()] == ["one", "1", "elsewhere"]
    assert t.compacted() == ()
    (done,) = t.compacted("branch-1")
    assert [t.messages[index].text for index in t.history("branch-1", "live")] == ["what was", "two", "2", "three"]
    assert done.after == 3


def test_what_a_person_did_not_write_starts_no_turn(tmp_path: Path) -> None:
    bash = {"role": "bashExecution", "command": "ls", "output": "a\n", "exitCode": 2, "cancelled": False}
    t = read(
        tmp_path,
        HEADER,
        entry("b", None, "message", message=bash),
        entry("h", "b", "message", message={**bash, "excludeFromContext": True}),
        entry("x", "h", "custom_message", customType="e", content="injected", display=False),
        entry("k", "x", "message", message={"role": "hookMessage", "content": "hooked"}),
        answer("m", "k", "sent", usage=spent(0, 0, 0, 0), provider="openclaw", model="delivery-mirror"),
        entry("d", "m", "custom", customType="state", data={}),
        entry("z", "d", "sparkle"),
    )
    assert [message.flags for message in t.messages] == [{META}, {META, HIDDEN}, {META}, {META}, {SYNTHETIC, HIDDEN}]
    assert "a\n" in t.messages[0].text
    assert "code 2" in t.messages[0].text
    assert t.calls == ()
    assert codes(t) == ["unknown_record"]


def test_a_result_may_name_its_call_as_parent(tmp_path: Path) -> None:
    t = read(tmp_path, HEADER, user("u", "s1", "q"), answer("a", "u", call("t1")), result("r", "t1", "t1"))
    assert [message.parent for message in t.messages] == [None, 0, 1]
    assert [thread.id for thread in t.threads] == [MAIN]
    assert codes(t) == []


def test_a_line_that_stands_twice_counts_once(tmp_path: Path) -> None:
    rows = [user("u", None, "q"), answer("a", "u", "x", usage=spent())]
    t = read(tmp_path, HEADER, *rows, *rows, HEADER)
    assert len(t.messages) == 2
    assert len(t.calls) == 1
    assert t.messages[0].raw == (2, 4)


def test_entries_whose_parent_is_lost_go_on_from_the_one_before(tmp_path: Path) -> None:
    t = read(
        tmp_path, HEADER, user("u", None, "q"), answer("a", "lost", "x"), [], user("v", "a", None), {"type": "message"}, entry("w", "v", "message", message={})
    )
    assert [t.messages[index].text for index in t.thread()] == ["q", "x", ""]
    assert codes(t) == ["parent", "record", "message", "message"]
    assert t.records.skipped == 3


def test_a_session_of_nothing_but_its_header_and_one_without(tmp_path: Path) -> None:
    assert read(tmp_path, HEADER).messages == ()
    headless = [answer("a", "u", "x", call("t1"), usage=spent()), result("r", "a", "t1")]
    assert len(read(tmp_path, *headless).messages) == 2


def test_what_subagents_said_is_a_thread_of_the_call_that_started_them(tmp_path: Path) -> None:
    inner = [
        answer("", None, "searching", call("t9"), usage=spent(3))["message"],
        result("", None, "t9", "found")["message"],
        answer("", None, "here", usage=spent(4))["message"],
    ]
    runs = [{"agent": "scout", "task": "search", "messages": inner}, {"agent": "none", "messages": []}, {"task": "x", "messages": [inner[2]]}]
    rows = [user("u", None, "q"), answer("a", "u", call("t1"), usage=spent()), result("r", "a", "t1", "done", details={"mode": "parallel", "results": runs})]
    t = read(tmp_path, HEADER, *rows)
    assert [(thread.id, thread.kind, thread.parent, thread.spawned_by, thread.records) for thread in t.threads] == [
        ("main", "main", None, None, 4),
        ("agent t1", "subagent", "main", "t1", 0),
        ("agent t1/3", "subagent", "main", "t1", 0),
    ]
    assert [t.messages[index].role for index in t.thread("agent t1")] == ["user", "assistant", "tool", "assistant"]
    assert t.messages[t.thread("agent t1")[0]].text == "search"
    assert len(t.thread()) == 3
    assert [item.thread for item in t.calls] == [MAIN, "agent t1", "agent t1", "agent t1/3"]
    left = read(tmp_path, HEADER, *rows, user("v", "u", "again"), answer("b", "v", "x"))
    assert [(thread.id, thread.parent) for thread in left.threads if thread.kind == "subagent"] == [("agent t1", "branch-1"), ("agent t1/3", "branch-1")]


def test_many_compactions_that_each_keep_everything_take_no_time(tmp_path: Path) -> None:
    rows = [user("u", None, "q")]
    for number in range(3_000):
        rows.append(entry(f"c{number}", rows[-1]["id"], "compaction", summary="s", firstKeptEntryId="u"))
        rows.append(user(f"u{number}", f"c{number}", "q"))
    t = read(tmp_path, HEADER, *rows)
    assert len(t.compactions) == 3_000
    assert sum(len(done.kept) for done in t.compactions) < 2_000_000


@pytest.mark.transcripts
def test_the_long_session() -> None:
    """The totals are those that the file states; its two compactions are where the prompt shrinks."""
    rows = [json.loads(line) for line in REAL.read_text("utf-8").split("\n") if line.strip()]
    t = readers.read(REAL)
    check(t)
    stated = [row["message"]["usage"]["totalTokens"] for row in rows if row.get("message", {}).get("role") == "assistant"]
    assert [0 if call.usage is None else call.usage.total for call in t.calls] == stated
    assert [(done.tokens_before, t.messages[done.kept[0]].text[:8]) for done in t.compactions] == [(175_004, "i reviwe"), (185_014, "can leav")]
    first = [next(c.usage for c in t.calls if c.produced[0] > done.after and c.usage is not None) for done in t.compactions]
    assert [(usage.prompt, usage.total) for usage in first if usage is not None] == [(25_739, 26_171), (28_617, 29_011)]
    assert (t.records.total, t.records.skipped, len(t.messages)) == (1003, 0, 992)
    assert len([pair for pair in tool_pairs(t.messages) if pair.result is not None]) == 448
    assert not [finding for finding in check_pairs(t.messages) if finding.rule in ("orphan_result", "duplicate_result")]
