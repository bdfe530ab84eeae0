"""The canonical transcript: two histories, disjoint usage, and what is never 0."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import pytest

from workbench.model import KINDS, Budget, Compaction, Message, Records, Source, Text, Thread, ToolCall, ToolResult, Transcript, Usage


def said(index: int, role: str, text: str = "x", **more: object) -> Message:
    return Message(index, f"m{index}", role, (Text(text),), **more)  # type: ignore[arg-type]


def compacted(*, kept: tuple[int, ...] = (), summary: int | None = 4) -> Transcript:
    """System, two turns, a real compaction, its summary, one more turn."""
    roles = ("system", "user", "assistant", "user", "user", "user", "assistant")
    messages = tuple(said(i, role, flags=frozenset({"compact_summary"} if i == summary else ())) for i, role in enumerate(roles))
    return Transcript("t", Source("test"), messages, compactions=(Compaction(3, "summary", "auto", 900, None, summary, kept),))


def test_full_history_leaves_the_summary_out_and_live_starts_at_it() -> None:
    transcript = compacted()
    assert transcript.history(which="full") == (0, 1, 2, 3, 5, 6)
    assert transcript.history(which="live") == (0, 4, 5, 6)


def test_live_history_holds_what_a_compaction_kept_once() -> None:
    assert compacted(kept=(2, 3)).history(which="live") == (0, 4, 2, 3, 5, 6)
    assert compacted(kept=(0, 3)).history(which="live") == (0, 4, 3, 5, 6)


def test_a_compaction_without_a_summary_row_still_cuts() -> None:
    transcript = compacted(summary=None)
    assert transcript.history(which="full") == (0, 1, 2, 3, 4, 5, 6)
    assert transcript.history(which="live") == (0, 4, 5, 6)


def test_a_summary_of_messages_that_the_file_does_not_hold_stays_in_the_full_history() -> None:
    messages = (said(0, "user", flags=frozenset({"compact_summary"})), said(1, "user"), said(2, "assistant"))
    transcript = Transcript("t", Source("test"), messages, compactions=(Compaction(-1, "summary", summary=0),))
    assert transcript.history(which="full") == transcript.history(which="live") == (0, 1, 2)


def test_with_several_compactions_live_starts_at_the_last() -> None:  # B77
    messages = tuple(said(i, "user", flags=frozenset({"compact_summary"} if i in (3, 7) else ())) for i in range(10))
    cuts = (Compaction(2, "summary", summary=3), Compaction(6, "summary", summary=7))
    transcript = Transcript("t", Source("test"), messages, compactions=cuts)
    assert transcript.history(which="live") == (7, 8, 9)
    assert transcript.history(which="full") == (0, 1, 2, 4, 5, 6, 8, 9)


def test_threads_never_mix() -> None:
    messages = (said(0, "user"), said(1, "user", thread="agent"), said(2, "assistant"))
    transcript = Transcript("t", Source("test"), messages, threads=(Thread("main"), Thread("agent", "subagent", "main")))
    assert transcript.thread() == (0, 2)
    assert transcript.history("agent") == (1,)


def test_only_leading_system_messages_are_fixed() -> None:  # B61
    transcript = Transcript("t", Source("test"), tuple(said(i, role) for i, role in enumerate(("system", "system", "user", "system"))))
    assert transcript.fixed() == (0, 1)


def test_usage_is_never_zero_where_nothing_is_known() -> None:
    assert Usage().prompt is None
    assert Usage(output=5).prompt is None
    assert Usage(output=5).total == 5
    assert Usage.sum([None, Usage(cache_read=2), Usage(cache_read=3, output=1)]) == Usage(cache_read=5, output=1)


def test_anthropic_context_is_the_sum_of_its_buckets() -> None:  # B31
    assert Usage(6, 0, 37_172).prompt == 37_178


def test_budget() -> None:
    assert Budget().available == 128_000 - 8_192 - 2_048
    assert Budget(1_000).available < 0


def test_message_shortcuts() -> None:
    call = ToolCall("a", "ls", {}, "{}")
    assert Message(0, "", "assistant", (Text("one"), call, Text("two"))).text == "one\ntwo"
    assert Message(0, "", "assistant", (call,)).calls == (call,)
    result = ToolResult("a", "ls", (Text("x"), Text("y")))
    assert Message(0, "", "tool", (result,)).result is result
    assert result.text == "x\ny"
    assert Message(0, "", "assistant", (result,)).result is None


def test_everything_is_frozen_and_a_transcript_can_be_freed() -> None:
    transcript = compacted()
    with pytest.raises(dataclasses.FrozenInstanceError):
        transcript.id = "other"  # type: ignore[misc]
    alive = weakref.ref(transcript)
    del transcript
    gc.collect()
    assert alive() is None


def test_kinds_and_records() -> None:
    assert len(set(KINDS)) == len(KINDS) == 10
    assert Records(1, 2, 3, 4, 5).total == 15


def test_names() -> None:
    assert Transcript("id-1", Source("test")).title == "id-1"
    assert Transcript("i", Source("test", "C:\\runs\\a.jsonl")).name == "a.jsonl"
    assert Transcript("i", Source("test", "/runs/a.jsonl"), meta={"title": "  Fix it "}).title == "Fix it"
