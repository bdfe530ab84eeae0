"""Subagents, abandoned branches and compactions of Claude Code sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.readers.claude import assistant, boundary, call, line, read, result, summary, text, user
from tests.readers.made import check, jsonl
from tests.shared import SAMPLES, SHARED, needs_shared
from workbench import readers
from workbench.model import COMPACT_SUMMARY, Transcript, Usage
from workbench.turns import starts_turn

SIDE = {"isSidechain": True}


def texts(t: Transcript, thread: str = "main", which: Any = "full") -> list[str]:
    return [t.messages[index].text or (t.messages[index].result.text if t.messages[index].result else "") for index in t.history(thread, which)]  # type: ignore[union-attr]


def threads(t: Transcript) -> list[tuple[str, str, str | None, str | None, int]]:
    return [(thread.id, thread.kind, thread.parent, thread.spawned_by, thread.records) for thread in t.threads]


# -- subagents


def test_b43_inline_sidechains_are_threads_of_their_own(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "output_tokens": 1}
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "go"),
        assistant("a1", "u1", call("t1", "Task", prompt="look at x"), call("t2", "Task", prompt="look at y"), id="m1", usage=usage),
        user("y1", None, "look at y", **SIDE),
        user("x1", None, [text("look at x")], **SIDE),
        assistant("y2", "y1", "y is fine", id="m2", usage=usage, **SIDE),
        assistant("x2", "x1", "x is fine", id="m3", usage=usage, **SIDE),
        user("r1", "a1", [result("t1", "x is fine")]),
        user("r2", "a1", [result("t2", "y is fine")]),
        assistant("a2", "r2", "both fine", id="m4", usage=usage),
    )
    assert texts(t) == ["go", "", "x is fine", "y is fine", "both fine"]
    assert threads(t) == [
        ("main", "main", None, None, 5),
        ("sidechain-1", "subagent", "main", "t2", 2),
        ("sidechain-2", "subagent", "main", "t1", 2),
    ]
    assert texts(t, "sidechain-1") == ["look at y", "y is fine"]
    assert starts_turn(t.messages[t.thread("sidechain-1")[0]])  # the spawning prompt counts as a person's there
    assert Usage.sum([c.usage for c in t.calls if c.thread == "main"]).total == 22
    assert Usage.sum([c.usage for c in t.calls]).total == 44


def test_agent_ids_name_the_threads(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        assistant("a1", None, call("t1", "Agent", prompt="p"), id="m1"),
        user("x1", None, "p", agentId="abc", **SIDE),
        assistant("x2", None, "done", id="m2", agentId="abc", **SIDE),
        user("r1", "a1", [result("t1")], toolUseResult={"agentId": "abc", "totalTokens": 7}),
        user("m1", None, "hostile", agentId="main", **SIDE),
    )
    assert threads(t)[1:] == [("abc", "subagent", "main", "t1", 2), ("agent main", "subagent", "main", None, 1)]


def side_rows(agent: str, prompt: str, *more: dict[str, Any]) -> list[dict[str, Any]]:
    uses = {"input_tokens": 5, "output_tokens": 2}
    return [
        user(f"{agent}1", None, prompt, agentId=agent, **SIDE),
        assistant(f"{agent}2", f"{agent}1", f"{agent} done", id=f"m{agent}", usage=uses, agentId=agent, **SIDE),
        *more,
    ]


def session(folder: Path, *agents: str) -> Path:
    rows: list[dict[str, Any]] = [user("u1", None, "go")]
    for agent in agents:
        rows += [
            assistant(f"a{agent}", rows[-1]["uuid"], call(f"t{agent}", "Task", prompt=f"look at {agent}"), id=f"m0{agent}"),
            user(f"r{agent}", f"a{agent}", [result(f"t{agent}")], toolUseResult={"agentId": agent}),
        ]
    return jsonl(folder / "s.jsonl", rows)


def test_b44_files_of_subagents_in_the_sessions_folder(tmp_path: Path) -> None:
    path = session(tmp_path, "x")
    folder = tmp_path / "s" / "subagents" / "workflows" / "wf_1"
    folder.mkdir(parents=True)
    nested = user("xr", "x2", [result("inner")], agentId="x", toolUseResult={"agentId": "y"}, **SIDE)
    jsonl(tmp_path / "s" / "subagents" / "agent-x.jsonl", [*side_rows("x", "look at x", nested), '{"type": "cut'])
    jsonl(tmp_path / "s" / "subagents" / "agent-y.jsonl", side_rows("y", "inner prompt"))
    jsonl(folder / "agent-z.jsonl", side_rows("z", "worker"))
    (folder / "agent-z.meta.json").write_text('{"toolUseId": "tx", "agentType": "Explore"}')
    jsonl(tmp_path / "s" / "subagents" / "agent-q q.jsonl", side_rows("q", "no id"))
    jsonl(tmp_path / "s" / "subagents" / "notes.jsonl", side_rows("n", "no agent"))
    t = readers.read(path)
    check(t)
    assert threads(t) == [
        ("main", "main", None, None, 3),
        ("x", "subagent", "main", "tx", 4),
        ("y", "subagent", "x", "inner", 2),
        ("z", "subagent", "main", "tx", 2),
    ]
    assert texts(t, "x") == ["look at x", "x done", "ok"]
    assert t.records.total == 3 + 4 + 2 + 2
    assert t.records.skipped == 1
    assert t.meta["side_files"] == (("agent-x.jsonl", 4), ("agent-y.jsonl", 8), ("agent-z.jsonl", 10))
    assert t.messages[t.thread("y")[0]].raw == (8,)
    assert Usage.sum([c.usage for c in t.calls]).total == 21
    assert [d.text for d in t.diagnostics] == ["agent-x.jsonl: line 4: not JSON (unfinished)"]


def test_b44_files_of_subagents_beside_the_session(tmp_path: Path) -> None:
    path = session(tmp_path, "x", "gone")
    jsonl(tmp_path / "agent-x.jsonl", side_rows("x", "look at x"))
    jsonl(tmp_path / "agent-w.jsonl", side_rows("w", "not mentioned, but of this session"))
    jsonl(tmp_path / "agent-o.jsonl", [{**row, "sessionId": "other"} for row in side_rows("o", "of another session")])
    t = readers.read(path)
    check(t)
    assert [thread.id for thread in t.threads] == ["main", "w", "x"]
    assert [(d.line, d.code) for d in t.diagnostics] == [(5, "missing_subagent")]
    assert "'gone'" in t.diagnostics[0].text
    alone = readers.read(tmp_path / "agent-x.jsonl")  # here its thread is the main one, and nothing beside it is taken in
    assert (alone.id, texts(alone), len(alone.threads)) == ("x", ["look at x", "x done"], 1)


def test_what_stands_inline_and_in_a_file_counts_once(tmp_path: Path) -> None:
    rows = [user("u1", None, "go"), assistant("a1", "u1", call("tx", "Task", prompt="p"), id="m1"), *side_rows("x", "p")]
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    jsonl(tmp_path / "s" / "subagents" / "agent-x.jsonl", side_rows("x", "p"))
    t = readers.read(jsonl(tmp_path / "s.jsonl", rows))
    check(t)
    assert texts(t, "x") == ["p", "x done"]
    assert Usage.sum([c.usage for c in t.calls]).total == 7
    assert t.records.total == 6


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    jsonl(outside / "agent-x.jsonl", side_rows("x", "secret"))
    for name in ("file", "folder"):
        home = tmp_path / name
        (home / "s").mkdir(parents=True)
        if name == "file":
            (home / "s" / "subagents").mkdir()
            (home / "s" / "subagents" / "agent-x.jsonl").symlink_to(outside / "agent-x.jsonl")
            (home / "agent-x.jsonl").symlink_to(outside / "agent-x.jsonl")
        else:
            (home / "s" / "subagents").symlink_to(outside)
        t = readers.read(session(home, "x"))
        assert "secret" not in json.dumps([m.text for m in t.messages])
        assert "missing_subagent" in {d.code for d in t.diagnostics}


@pytest.mark.parametrize("agent", ["../outside", "a/b", "..", "x\x00y", "a" * 300])
def test_ids_are_never_made_into_paths(tmp_path: Path, agent: str) -> None:
    (tmp_path / "p").mkdir()
    jsonl(tmp_path / "agent-x.jsonl", side_rows("x", "secret"))
    t = readers.read(session(tmp_path / "p", agent))
    assert [thread.id for thread in t.threads] == ["main"]


def test_a_damaged_side_file_hides_nothing(tmp_path: Path) -> None:
    path = session(tmp_path, "x", "y")
    (tmp_path / "agent-x.jsonl").write_bytes(b"\x00\x01binary")
    jsonl(tmp_path / "agent-y.jsonl", side_rows("y", "look at y"))
    t = readers.read(path)
    assert texts(t, "y") == ["look at y", "y done"]
    assert [d.code for d in t.diagnostics] == ["side_file", "missing_subagent"]


def test_the_sample_has_a_subagent() -> None:
    t = readers.read(SAMPLES / "coding_agent.jsonl")
    check(t)
    assert [thread.kind for thread in t.threads] == ["main", "subagent"]
    assert all(thread.spawned_by for thread in t.threads[1:])


# -- branches


def test_b26_an_answer_asked_again_leaves_a_branch(tmp_path: Path) -> None:
    for named in (True, False):
        ids = ("m1", "m2", "m3") if named else (None, None, None)
        t = read(
            tmp_path / f"{named}.jsonl",
            user("u1", None, "u1"),
            assistant("a1", "u1", "a1", id=ids[0], usage={"input_tokens": 100, "output_tokens": 1} if named else None),
            assistant("a1b", "u1", "a1b", id=ids[1], usage={"input_tokens": 7, "output_tokens": 1} if named else None),
            user("u2", "a1b", "u2"),
            assistant("a2", "u2", "a2", id=ids[2]),
        )
        assert texts(t) == ["u1", "a1b", "u2", "a2"]
        assert threads(t)[1:] == [("branch-1", "branch", "main", None, 1)]
        assert texts(t, "branch-1") == ["a1"]
        assert Usage.sum([c.usage for c in t.calls if c.thread == "main"]).total == (8 if named else None)


def test_a_prompt_gone_back_to(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "u1"),
        assistant("a1", "u1", "a1", id="m1"),
        user("u2", "a1", "u2"),
        assistant("a2", "u2", call("c"), id="m2"),
        user("r2", "a2", [result("c", "r2")]),
        assistant("a3", "r2", "a3", id="m3"),
        user("u2b", "a1", "u2b"),
        assistant("a2b", "u2b", "a2b", id="m4"),
        user("u3", "a2b", "u3"),
        user("u3b", "a2b", "u3b"),
    )
    assert texts(t) == ["u1", "a1", "u2b", "a2b", "u3b"]
    assert threads(t)[1:] == [("branch-1", "branch", "main", None, 4), ("branch-2", "branch", "main", None, 1)]
    assert texts(t, "branch-1") == ["u2", "", "r2", "a3"]


def test_parallel_calls_are_no_branches(tmp_path: Path) -> None:
    """Each result names the line of its own call, and the next call's line names the line before it."""
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "u1"),
        assistant("a1", "u1", call("c1"), id="m1"),
        assistant("a2", "a1", call("c2"), id="m1"),
        assistant("a3", "a2", call("c3"), id="m1"),
        user("r2", "a2", [result("c2", "two")]),
        user("r1", "a1", [result("c1", "one")]),
        line("progress", "p1", "a3", data={"type": "bash_progress"}),
        user("r3", "p1", [result("c3", "three")]),
        line("attachment", "t1", "r1", attachment={"type": "todo_reminder"}),
        assistant("b1", "r3", "done", id="m2"),
        user("u2", "b1", "u2"),
    )
    assert texts(t) == ["u1", "", "two", "one", "three", "done", "u2"]
    assert len(t.threads) == 1


def test_a_prompt_sent_while_the_answer_ran_is_no_branch(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "u1"),
        assistant("a1", "u1", call("c1"), id="m1"),
        user("r1", "a1", [result("c1", "r1")]),
        user("q1", "a1", "and hurry"),
        assistant("a2", "r1", "a2", id="m2"),
        user("l1", "a2", "<local-command-stdout>x</local-command-stdout>"),
        user("u2", "a2", "u2"),
    )
    assert texts(t)[3] == "and hurry"
    assert len(t.threads) == 1


def test_branches_inside_a_subagent(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "u1"),
        user("x1", None, "x1", **SIDE),
        assistant("x2", "x1", "x2", id="m1", **SIDE),
        assistant("x3", "x1", "x3", id="m2", **SIDE),
    )
    assert threads(t)[1:] == [("sidechain-1", "subagent", "main", None, 2), ("branch-1", "branch", "sidechain-1", None, 1)]
    assert texts(t, "sidechain-1") == ["x1", "x3"]


@needs_shared
def test_no_branch_in_real_sessions() -> None:
    """Nothing was gone back to in these, whatever their lines name as parents."""
    for name in ("claude-code-viewer__fe5e1c67-53e7-4862-81ae-d0e013e3270b", "claude-code-viewer__1af7fc5e-8455-4414-9ccd-011d40f70b2a"):
        t = readers.read(SHARED / "transcripts" / "claude-code" / f"{name}.jsonl")
        assert {thread.kind for thread in t.threads} <= {"main", "subagent"}


# -- compactions


def test_b73_b74_a_boundary_and_its_summary(tmp_path: Path) -> None:
    camel = boundary("b1", "a1")
    snake = {**camel, "compactMetadata": {"trigger": "auto", "pre_tokens": 155_000}}
    for number, row in enumerate((camel, snake)):
        t = read(
            tmp_path / f"{number}.jsonl",
            user("u1", None, "u1"),
            assistant("a1", "u1", "a1", id="m1"),
            row,
            summary("s1", "b1", "the summary"),
            user("u2", "s1", "u2"),
            assistant("a2", "u2", "a2", id="m2"),
        )
        (found,) = t.compactions
        assert (found.tokens_before, found.tokens_after, found.trigger, found.kind) == (155_000, None, "auto", "summary")
        assert (found.after, found.summary, found.raw) == (1, 2, (3,))
        assert t.messages[2].flags == {COMPACT_SUMMARY}
        assert not starts_turn(t.messages[2])
        assert texts(t) == ["u1", "a1", "u2", "a2"]
        assert texts(t, which="live") == ["the summary", "u2", "a2"]
        assert (t.records.compactions, t.records.messages) == (1, 5)
        assert len(t.threads) == 1


def test_b77_several_boundaries(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [user("u0", None, "first")]
    for epoch in (1, 2):
        rows += [boundary(f"b{epoch}", None), summary(f"s{epoch}", f"b{epoch}", f"summary {epoch}")]
        rows += [user(f"u{epoch}{at}", None, f"{epoch}.{at}") for at in range(30 if epoch == 1 else 5)]
    t = read(tmp_path / "s.jsonl", *rows)
    assert [(c.summary, c.after) for c in t.compactions] == [(1, 0), (32, 31)]
    assert texts(t, which="live") == ["summary 2", *(f"2.{at}" for at in range(5))]
    assert len(t.history()) == 36


@pytest.mark.parametrize("how", ["messages", "segment", "repeated"])
def test_messages_that_a_compaction_kept(tmp_path: Path, how: str) -> None:
    """They are written again with the same uuid and another parent: rows of the transcript once."""
    about: dict[str, Any] = {}
    if how == "messages":
        about["preservedMessages"] = {"anchorUuid": "s1", "uuids": ["u2", "a2", "a2b"]}
    elif how == "segment":
        about["preservedSegment"] = {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2b"}
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "u1"),
        assistant("a1", "u1", "a1", id="m1"),
        user("u2", "a1", "u2"),
        assistant("a2", "u2", "a2", id="m2"),
        assistant("a2b", "a2", call("c"), id="m2"),
        boundary("b1", "a2b", **about),
        summary("s1", "b1", "the summary"),
        user("u2", "s1", "u2"),
        assistant("a2", "u2", "a2", id="m2"),
        assistant("a2b", "a2", call("c"), id="m2"),
        user("r", "a2b", [result("c", "r")]),
        user("u1", "r", "u1"),  # long after, the same line once more is no sign of being kept
    )
    assert texts(t) == ["u1", "a1", "u2", "a2", "r"]
    assert texts(t, which="live") == ["the summary", "u2", "a2", "r"]
    assert t.compactions[0].kept == (2, 3)
    assert t.messages[3].raw == (4, 5, 9, 10)
    assert len(t.threads) == 1


def test_a_summary_without_a_boundary(tmp_path: Path) -> None:
    t = read(tmp_path / "s.jsonl", user("u1", None, "u1"), summary("s1", "u1"), user("u2", "s1", "u2"))
    assert [(c.after, c.summary, c.tokens_before, c.raw) for c in t.compactions] == [(0, 1, None, (2,))]
    assert len(t.history(which="live")) == 2


def test_a_small_compaction_leaves_the_rows(tmp_path: Path) -> None:
    about = {"trigger": "auto", "preTokens": 90_000, "tokensSaved": 30_000, "compactedToolIds": ["c"]}
    rows = [user("u1", None, "u1"), assistant("a1", "u1", "a1", id="m1"), boundary("b1", "a1"), summary("s1", "b1", "the summary"), user("u2", "s1", "u2")]
    t = read(tmp_path / "s.jsonl", *rows, line("system", "c1", "u2", subtype="microcompact_boundary", microcompactMetadata=about), user("u3", "u2", "u3"))
    assert [(c.kind, c.tokens_before, c.tokens_after, c.kept) for c in t.compactions][1:] == [("edit", 90_000, 60_000, (2, 3))]
    assert texts(t, which="live") == ["the summary", "u2", "u3"]
    assert texts(t) == ["u1", "a1", "u2", "u3"]


@needs_shared
def test_a_compaction_by_others() -> None:
    t = readers.read(SHARED / "transcripts" / "claude-code" / "agentpile__claude_code_compaction.jsonl")
    (found,) = t.compactions
    assert (found.tokens_before, found.tokens_after, found.trigger) == (2000, 500, "auto")
    assert texts(t, which="live")[0] == "This is the compaction summary."
