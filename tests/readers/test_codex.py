"""Codex rollouts: items are the truth, events are usage and timing, compactions replace history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import check, detect_with, jsonl, read_with
from tests.shared import SAMPLES, SHARED, needs_shared
from workbench.model import COMPACT_SUMMARY, HIDDEN, META, Opaque, Text, ToolResult, Transcript, Usage
from workbench.readers.codex import READER
from workbench.turns import starts_turn, tool_pairs, turn_groups

FOLDER = SHARED / "transcripts" / "codex-rollout"


def row(type_: str, payload: Any, at: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T10:00:{at:02}.000Z", "type": type_, "payload": payload}


def item(**payload: Any) -> dict[str, Any]:
    return row("response_item", payload)


def user(text: str, **more: Any) -> dict[str, Any]:
    return item(type="message", role="user", content=[{"type": "input_text", "text": text}], **more)


def said(text: str) -> dict[str, Any]:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def event(type_: str, **payload: Any) -> dict[str, Any]:
    return row("event_msg", {"type": type_, **payload})


def numbers(prompt: int, output: int = 0, cached: int = 0) -> dict[str, int]:
    return {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 0, "total_tokens": prompt + output}


def count(last: dict[str, int] | None, total: dict[str, int] | None = None) -> dict[str, Any]:
    return event("token_count", info={key: value for key, value in (("last_token_usage", last), ("total_token_usage", total)) if value is not None})


def read(tmp_path: Path, *rows: Any) -> Transcript:
    [transcript] = read_with(READER, jsonl(tmp_path / "t.jsonl", rows))
    check(transcript)
    assert transcript.records.total == len(rows)
    return transcript


def totals(transcript: Transcript, kind: str = "response") -> list[int | None]:
    return [call.usage and call.usage.total for call in transcript.calls if call.kind == kind]


META_ROW = row("session_meta", {"id": "s1", "cwd": "/w", "cli_version": "0.50.0", "base_instructions": {"text": "You are Codex."}, "git": {"branch": "main"}})


def test_session(tmp_path: Path) -> None:
    transcript = read(
        tmp_path,
        META_ROW,
        row("turn_context", {"model": "gpt-5-codex"}),
        item(type="message", role="developer", content=[{"type": "input_text", "text": "sandboxed"}]),
        user("# AGENTS.md instructions for /w\n\nBe neat."),
        user("<environment_context>\n<cwd>/w</cwd></environment_context>"),
        user("List files."),
        event("user_message", message="List files."),
        item(type="reasoning", summary=[{"type": "summary_text", "text": "ls"}], encrypted_content="opaque"),
        item(type="function_call", name="shell", call_id="c1", arguments='{"command":["ls"]}'),
        count(numbers(500, 40, 100), numbers(500, 40, 100)),
        item(type="function_call_output", call_id="c1", output="README.md"),
        said("One file."),
        event("agent_message", message="One file."),
        count(numbers(600, 10, 500), numbers(1100, 50, 600)),
    )
    assert [message.role for message in transcript.messages] == ["system", "user", "user", "user", "assistant", "tool", "assistant"]
    assert [starts_turn(message) for message in transcript.messages] == [False, False, False, True, False, False, False]
    assert transcript.messages[1].flags == transcript.messages[2].flags == {META}
    assert transcript.system == ("You are Codex.",)
    assert (transcript.id, transcript.model, transcript.meta["cwd"], transcript.meta["branch"]) == ("s1", "gpt-5-codex", "/w", "main")
    usage = transcript.calls[0].usage
    assert usage is not None
    assert (usage.input_uncached, usage.cache_read, usage.output) == (400, 100, 40)
    assert totals(transcript) == [540, 610]
    assert [call.produced for call in transcript.calls] == [(4,), (6,)]
    assert (transcript.records.messages, transcript.records.calls, transcript.records.metadata) == (8, 2, 4)
    assert transcript.diagnostics == ()


@pytest.mark.parametrize("with_last", [True, False])
def test_b34_numbers_written_again_are_no_new_call(tmp_path: Path, with_last: bool) -> None:
    first, second = numbers(900, 100), numbers(2900, 400)
    rows = [user("q"), said("a"), *[count(first if with_last else None, first)] * 3, said("b"), count(numbers(2000, 300) if with_last else None, second)]
    transcript = read(tmp_path, *rows)
    assert totals(transcript) == [1000, 2300]
    assert Usage.sum([call.usage for call in transcript.calls]).total == 3300
    assert transcript.diagnostics == ()


def test_numbers_without_a_total(tmp_path: Path) -> None:
    transcript = read(tmp_path, user("q"), said("a"), *[count(numbers(900, 100))] * 2, said("b"), count(numbers(900, 100)))
    assert totals(transcript) == [1000, 1000]


def test_counts_without_numbers(tmp_path: Path) -> None:
    empty = count(numbers(0), numbers(0))
    transcript = read(tmp_path, user("q"), said("a"), event("token_count", info=None, rate_limits={}), empty, event("token_count", info=7))
    assert [call.usage for call in transcript.calls] == [None]
    assert transcript.records.metadata == 3


def test_counts_of_version_50(tmp_path: Path) -> None:
    transcript = read(tmp_path, user("q"), said("a"), event("token_count", info={"prompt": 10, "completion": 5}))
    assert totals(transcript) == [15]


def test_turns_of_version_51_are_a_running_total(tmp_path: Path) -> None:
    done = [event("turn.completed", usage=numbers(*pair)) for pair in ((1420, 910), (2840, 1520), (2840, 1520))]
    assert totals(read(tmp_path, META_ROW, *done)) == [2330, 2030]
    fell = [event("turn.completed", usage=numbers(*pair)) for pair in ((980, 640), (1620, 240))]
    assert totals(read(tmp_path, META_ROW, *fell)) == [1620, 1860]
    both = [user("q"), said("a"), count(numbers(10, 1), numbers(10, 1)), event("turn.completed", usage=numbers(10, 1))]
    assert totals(read(tmp_path, *both)) == [11]


def test_one_request_in_two_records_counts_once(tmp_path: Path) -> None:
    record = row("token_usage_record", {"response_id": "r1", "usage": numbers(900, 100), "thread_token_usage": numbers(900, 100)})
    for rows in ([record, count(numbers(900, 100), numbers(900, 100))], [record, record], [record, count(numbers(900, 100))]):
        transcript = read(tmp_path, user("q"), said("a"), *rows)
        assert totals(transcript) == [1000]
        assert transcript.calls[0].id == "r1"


def test_usage_that_is_none_is_reported(tmp_path: Path) -> None:
    transcript = read(tmp_path, user("q"), said("a"), count({"input_tokens": -5, "output_tokens": 3}))
    assert transcript.calls[0].usage == Usage(output=3)
    assert [item.code for item in transcript.diagnostics] == ["usage"]


def test_a_total_that_the_calls_miss_is_reported(tmp_path: Path) -> None:
    transcript = read(tmp_path, user("q"), said("a"), count(numbers(10, 1), numbers(100, 10)))
    assert [item.code for item in transcript.diagnostics] == ["usage_total"]


def compacted(message: str = "", history: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    payload: dict[str, Any] = {"message": message, **more}
    if history is not None:
        payload["replacement_history"] = [entry["payload"] for entry in history]
    return row("compacted", payload)


def test_compaction_with_its_new_history(tmp_path: Path) -> None:
    transcript = read(
        tmp_path,
        user("one"),
        said("a"),
        count(numbers(49_000, 1_000), numbers(49_000, 1_000)),
        user("two"),
        said("b"),
        compacted("handoff: did one", [user("one"), user("two"), user("handoff: did one")]),
        event("context_compacted"),
        user("three"),
        said("c"),
    )
    assert [message.text for message in transcript.messages] == ["one", "a", "two", "b", "handoff: did one", "three", "c"]
    assert transcript.messages[4].flags == {COMPACT_SUMMARY}
    [real] = transcript.compactions
    assert (real.after, real.kind, real.summary, real.kept, real.tokens_before, real.tokens_after) == (3, "summary", 4, (0, 2), 50_000, None)
    assert transcript.history() == (0, 1, 2, 3, 5, 6)
    assert transcript.history(which="live") == (4, 0, 2, 5, 6)


def test_second_compaction_keeps_no_earlier_summary(tmp_path: Path) -> None:
    transcript = read(
        tmp_path,
        user("one"),
        said("a"),
        compacted("sum 1", [user("one"), user("sum 1")]),
        user("one"),
        said("b"),
        compacted("sum 2", [user("one"), user("one"), user("sum 2")]),
    )
    assert [(item.after, item.summary, item.kept) for item in transcript.compactions] == [(1, 2, (0,)), (4, 5, (0, 3))]
    assert [group.user for group in turn_groups(transcript.messages)] == [0, 3]


@pytest.mark.parametrize("before", [True, False])
def test_b37_tokens_of_the_compaction_itself(tmp_path: Path, before: bool) -> None:
    record = row("token_usage_record", {"response_id": "cmp", "usage": numbers(7_000, 1_000)})
    done = compacted("sum", [user("q"), user("sum")], compaction_response_id="cmp")
    total = count(numbers(49_000, 1_000), numbers(49_000, 1_000))
    transcript = read(tmp_path, user("q"), said("a"), total, *([record, done] if before else [done, record]), total)
    assert totals(transcript, "compaction") == [8_000]
    assert Usage.sum([call.usage for call in transcript.calls]).total == 58_000
    assert transcript.compactions[0].call == 1
    assert transcript.compactions[0].tokens_before == 50_000
    assert transcript.diagnostics == ()


def test_compaction_call_known_by_its_place(tmp_path: Path) -> None:
    """The request for a summary is counted before the record; what follows is Codex's estimate of the new context."""
    rows = [user("q"), said("a"), count(numbers(900, 100), numbers(900, 100)), count(numbers(950, 50), numbers(1850, 150))]
    estimate = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 321}
    transcript = read(tmp_path, *rows, compacted("sum", [user("q"), user("sum")]), count(estimate, numbers(1850, 150)), user("r"), said("b"))
    [real] = transcript.compactions
    assert (real.tokens_before, real.tokens_after, real.call) == (1000, 321, 1)
    assert totals(transcript, "compaction") == [1000]


def test_compaction_without_its_new_history(tmp_path: Path) -> None:
    transcript = read(tmp_path, user("<environment_context></environment_context>"), user("one"), said("a"), user("x" * 90_000), said("b"), compacted("sum"))
    [real] = transcript.compactions
    assert (real.summary, real.kept) == (5, (3,))
    assert transcript.messages[5].text == "sum"
    short = read(tmp_path, user("one"), said("a"), user("two"), said("b"), compacted("sum"))
    assert short.compactions[0].kept == (0, 2)


def test_compaction_by_the_server(tmp_path: Path) -> None:
    made = item(type="compaction", id="cmp_1", encrypted_content="e" * 9)
    for rows in ([compacted("", [user("one"), made])], [made, compacted("", [user("one"), made])]):
        transcript = read(tmp_path, user("one"), said("a"), *rows, user("two"))
        [real] = transcript.compactions
        assert (real.after, real.kind, real.summary, real.kept) == (1, "opaque", 2, (0,))
        assert transcript.messages[2].parts == (Opaque("compaction", 9),)
        assert transcript.history(which="live") == (2, 0, 3)


def test_b76_text_stands_once_and_empty_rows_are_marked(tmp_path: Path) -> None:
    transcript = read(
        tmp_path,
        compacted("sum", [user("only here"), user("sum")]),
        row("response_item", {"type": "userMessage", "text": ""}),
        {"type": "userMessage", "text": ""},
        user(""),
        said("a"),
    )
    assert [message.text for message in transcript.messages] == ["only here", "sum", "", "", "", "a"]
    assert [HIDDEN in message.flags for message in transcript.messages] == [False, False, True, True, True, False]
    assert [group.user for group in turn_groups(transcript.messages)] == [0]


def test_copy_with_its_middle_cut_out_is_the_same_message(tmp_path: Path) -> None:
    long = "begin " * 100 + "middle " * 3_000 + "the end " * 100
    short = long[:600] + "…2000 tokens truncated…" + long[-600:]
    transcript = read(tmp_path, user(long), said("a"), compacted("sum", [user(short), user("sum")]))
    assert transcript.compactions[0].kept == (0,)
    assert len(transcript.messages) == 3


def test_event_alone_says_that_a_compaction_happened(tmp_path: Path) -> None:
    transcript = read(tmp_path, user("q"), said("a"), event("context_compacted"))
    assert [(item.after, item.summary) for item in transcript.compactions] == [(1, None)]


def test_file_of_events_only(tmp_path: Path) -> None:
    transcript = read(
        tmp_path,
        META_ROW,
        event("user_message", message="q", images=["data:image/png;base64,AAAA"]),
        event("agent_reasoning", text="hm"),
        event("exec_command_end", call_id="c", command=["ls"], aggregated_output="x", exit_code=1),
        event("mcp_tool_call_end", call_id="d", invocation={"tool": "ask", "arguments": {"a": 1}}, result={"Ok": {"content": [{"type": "text", "text": "y"}]}}),
        event("agent_message", message="a"),
    )
    assert [message.role for message in transcript.messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert transcript.messages[2].result == ToolResult("c", "local_shell", (Text("x"),), True)
    assert transcript.messages[4].result == ToolResult("d", "ask", (Text("y"),))


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ('{"output":"x","metadata":{"exit_code":2}}', True),
        ('{"output":"x","metadata":{"exit_code":0}}', False),
        ("Exit code: 1\nWall time: 1 s\nOutput:\nx", True),
        ("Wall time: 1 s\nProcess exited with code 127\nOutput:\nx", True),
        ("Exit code: 0\nOutput:\nExit code: 1", False),
        ("the log says\nExit code: 1", False),
        ({"content": "x", "success": False}, True),
        ([{"type": "input_text", "text": "x"}], False),
        (None, False),
    ],
)
def test_failed_commands(tmp_path: Path, output: Any, failed: bool) -> None:
    transcript = read(tmp_path, item(type="function_call", call_id="c", name="shell"), item(type="function_call_output", call_id="c", output=output))
    result = transcript.messages[1].result
    assert result is not None
    assert result.is_error is failed


def test_turns_taken_back_are_a_branch(tmp_path: Path) -> None:
    transcript = read(tmp_path, user("one"), said("a"), user("two"), said("b"), event("thread_rolled_back", num_turns=1), user("three"), said("c"))
    assert transcript.thread() == (0, 1, 4, 5)
    assert [(thread.kind, thread.records) for thread in transcript.threads] == [("main", 5), ("branch", 2)]
    assert [call.thread == "main" for call in transcript.calls] == [True, False, True]


def test_forks_subagents_and_beside_records(tmp_path: Path) -> None:
    transcript = read(
        tmp_path,
        row("session_meta", {"id": "child", "forked_from_id": "parent", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}}),
        row("session_meta", {"id": "parent", "base_instructions": "other"}),
        user("q"),
        row("world_state", {"full": True}),
        event("collab_agent_spawn_end", new_thread_id="t9"),
        event("thread_name_updated", thread_name="The port"),
        event("a_type_of_next_year"),
        item(type="agent_message", author="a", recipient="b", content=[{"type": "input_text", "text": "found"}]),
        item(type="ghost_snapshot", ghost_commit={}),
    )
    assert (transcript.id, transcript.meta["forked_from"], transcript.meta["parent"], transcript.meta["subagents"]) == ("child", "parent", "p", ("t9",))
    assert transcript.title == "The port"
    assert transcript.system == ()
    assert [starts_turn(message) for message in transcript.messages] == [True, False]
    assert transcript.diagnostics == ()


def test_before_the_envelope(tmp_path: Path) -> None:
    rows = [
        {"id": "old", "timestamp": "2025-06-01T00:00:00Z", "instructions": "Be neat.", "git": {"branch": "x"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"},
        {"record_type": "state"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
    ]
    match = detect_with(READER, jsonl(tmp_path / "t.jsonl", rows))
    assert match is not None
    assert match.confidence == 0.9
    transcript = read(tmp_path, *rows)
    assert (transcript.id, transcript.system) == ("old", ("Be neat.",))
    assert [message.role for message in transcript.messages] == ["user", "assistant", "tool", "assistant"]
    assert transcript.records.metadata == 3


def test_the_oldest_rows(tmp_path: Path) -> None:
    rows = [
        {"timestamp": "2025-09-10T12:00:00Z", "role": "user", "content": "branch?", "model": "gpt-4o-mini"},
        {"timestamp": "2025-09-10T12:00:01Z", "type": "tool_call", "function": {"name": "git"}, "arguments": "status"},
        {"timestamp": "2025-09-10T12:00:01Z", "type": "tool_result", "name": "git", "result": "main"},
        {"timestamp": "2025-09-10T12:00:02Z", "role": "assistant", "content": "main."},
        {"timestamp": "2025-09-10T12:00:03Z", "type": "error", "text": "oops"},
    ]
    transcript = read(tmp_path, *rows)
    assert [message.role for message in transcript.messages] == ["user", "assistant", "tool", "assistant"]
    assert [(pair.call, pair.result) for pair in tool_pairs(transcript.messages)] == [(1, 2)]
    assert [(call.name, call.arguments_raw) for call in transcript.messages[1].calls] == [("git", "status")]
    assert transcript.model == "gpt-4o-mini"
    assert "oops" in transcript.diagnostics[0].text


def test_clock_that_went_back(tmp_path: Path) -> None:
    rows = [user("one"), {**said("a"), "timestamp": "2020-01-01T00:00:00Z"}, {**user("two"), "timestamp": None}]
    transcript = read(tmp_path, *rows)
    assert [message.text for message in transcript.messages] == ["one", "a", "two"]
    assert [item.code for item in transcript.diagnostics] == ["timestamps"]


@needs_shared
def test_files_with_little_but_usage() -> None:
    for name, expected in (("codex_051_usage", [2330, 2030]), ("codex_052_raw", [1620, 1860])):
        [transcript] = read_with(READER, FOLDER / f"agent-sessions__{name}.jsonl")
        check(transcript)
        assert transcript.messages == ()
        assert totals(transcript) == expected
    [alpha] = read_with(READER, FOLDER / "ccusage__session-alpha.jsonl")
    assert totals(alpha) == [1125, 2800]
    assert [call.model for call in alpha.calls] == ["gpt-5.2-codex", "gpt-5.3-codex"]


@needs_shared
def test_the_field_zoo() -> None:
    [transcript] = read_with(READER, FOLDER / "agent-sessions__codex_small.jsonl")
    check(transcript)
    assert transcript.records.total == 118
    assert transcript.records.skipped == 0
    assert len(transcript.compactions) == 6
    assert totals(transcript).count(16_422) == 1
    assert not [item for item in transcript.diagnostics if item.code == "unknown_record"]


def test_the_sample() -> None:
    [transcript] = read_with(READER, SAMPLES / "long_session.jsonl")
    check(transcript)
    [real] = transcript.compactions
    assert real.summary is not None
    assert transcript.messages[real.summary].text.startswith("Summary of the work so far")
    assert all("Summary of the work" not in transcript.messages[index].text for index in real.kept)
    assert len(real.kept) == 6
