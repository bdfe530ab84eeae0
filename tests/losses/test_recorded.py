from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings

import workbench as wb
from tests.losses.made import said, session
from tests.shared import SAMPLES, SHARED, needs_shared
from tests.strategies import counted, transcripts
from workbench import losses
from workbench.losses.recorded import THRASH
from workbench.model import COMPACT_SUMMARY, Call, Compaction, Message, Text, Usage


def compacted(*, summary="read_rows is in src/a.py", kept=()):
    """Eight messages, a compaction, its summary, and what was done after it."""
    transcript = session(
        said("user", "see src/a.py and src/b.py"),
        said("assistant", "", ("Read", {"file_path": "src/a.py"}), ("Read", {"file_path": "src/b.py"})),
        said("tool", "def read_rows"),
        said("tool", "def write_rows"),
        said("assistant", "read"),
        said("user", summary),
        said("user", "go on"),
        said("assistant", "read_rows and write_rows", ("Read", {"file_path": "src/b.py"})),
        said("tool", "def write_rows"),
    )
    messages = list(transcript.messages)
    messages[5] = dataclasses.replace(messages[5], flags=frozenset({COMPACT_SUMMARY}))
    calls = (
        Call(0, "a", usage=Usage(input_uncached=900, output=20), produced=(1,)),
        Call(1, "b", usage=Usage(input_uncached=1_000, output=50), produced=(4,)),
        Call(2, "c", usage=None, produced=()),
        Call(3, "d", usage=Usage(input_uncached=0, output=0), produced=(7,), stop_reason="aborted"),
        Call(4, "e", usage=Usage(input_uncached=300), produced=(8,)),
    )
    return dataclasses.replace(transcript, messages=tuple(messages), calls=calls, compactions=(Compaction(4, "summary", "auto", summary=5, kept=kept),))


def test_one_compaction_by_hand():
    (found,) = losses.of_recorded(counted(compacted()))
    assert (found.at, found.tokens_before, found.tokens_after, found.next_prompt) == (6, 1_050, 300, 300)
    assert (found.answers, found.messages, found.turns, found.seconds, found.thrash) == (2, 5, 1, 4.0, False)
    assert found.readable
    assert found.note_tokens
    assert {row.text: row.held for row in found.losses["used_later"].rows} == {"read_rows": "note", "write_rows": "", "src/b.py": ""}
    assert [(row.text, row.source, row.removed, row.needed) for row in found.losses["read_again"].rows] == [("src/b.py", 3, 6, 7)]
    assert [(row.source, row.needed) for row in found.losses["rework"].rows] == [(3, 7)]
    json.dumps(found.as_json())


def test_what_a_compaction_kept_is_no_loss():
    (found,) = losses.of_recorded(counted(compacted(kept=(3, 4))))
    assert {row.text: row.held for row in found.losses["used_later"].rows} == {"read_rows": "note", "src/b.py": ""}  # write_rows never left
    assert found.losses["read_again"].count == 0


def test_a_summary_that_cannot_be_read_is_said_to_be():
    (found,) = losses.of_recorded(counted(compacted(summary="")))
    assert not found.readable
    trimmed = dataclasses.replace(compacted(), compactions=(Compaction(4, "trim"),))
    assert losses.of_recorded(counted(trimmed))[0].readable  # there is nothing to read


def test_a_context_that_is_full_again_at_once_thrashes():
    transcript = compacted()
    again = dataclasses.replace(transcript, compactions=(*transcript.compactions, Compaction(8, "summary")))
    first, second = losses.of_recorded(counted(again))
    assert (second.answers, second.thrash, first.thrash) == (1, True, False)
    assert second.answers <= THRASH
    assert first.losses.end == second.losses.cut == second.at


def test_no_compaction_is_nothing():
    assert losses.of_recorded(counted(session(said("user", "hello")))) == ()


@given(transcripts())
@settings(max_examples=100, deadline=None)
def test_any_session(transcript):
    ledger = counted(transcript)
    for thread in transcript.threads:
        found = losses.of_recorded(ledger, thread.id)
        assert len(found) == len(transcript.compacted(thread.id))
        for item in found:
            json.dumps(item.as_json())
            for measure in item.losses:
                assert 0 <= measure.count <= measure.of


def test_the_sample_session():
    """Checked by eye: its second half works on the files that the summary names only in part."""
    (found,) = losses.of_recorded(wb.count(wb.read(SAMPLES / "coding_agent.jsonl")))
    assert (found.at, found.tokens_before, found.next_prompt, found.readable) == (137, 68_403, 15_412, True)
    files = [row.text for row in found.losses["read_again"].rows]
    assert files[:4] == ["docs/export_format.md", "tallyport/collect.py", "tests/test_writers.py", "docs/finance_importer.bas"]
    again = [row.text.partition(": ")[2].rpartition("/")[2] for row in found.losses["rework"].rows]
    assert again == ["finance_importer.bas", "nightly.py"]
    assert found.losses["instruction_survival"].count == 0
    assert [row.held for row in found.losses["pending_work"].rows] == ["kept", "note", "note"]


@needs_shared
def test_the_two_compactions_of_a_real_session():
    """Tokens as recorded; an aborted call without usage stands between the first compaction and the next prompt."""
    transcript = wb.read(SHARED / "transcripts/pi-session/pi-mono__before-compaction.jsonl")
    first, second = losses.of_recorded(wb.count(transcript))
    assert (first.tokens_before, first.next_prompt, second.tokens_before, second.next_prompt) == (175_004, 25_739, 185_014, 28_617)
    assert (first.answers, second.answers, first.thrash, second.thrash) == (173, 130, False, False)

    def names(found, measure):
        return [(row.text.rpartition("/")[2], row.needed) for row in found.losses[measure].rows]

    assert names(first, "read_again") == [("tui-renderer.ts", 358), ("refactor.md", 366), ("agent-session.ts", 427)]
    assert names(first, "called_again") == [("agent-session.ts", 439), ("tui-renderer.ts", 457)]
    assert names(second, "read_again") == [("interactive-mode.ts", 644), ("main-new.ts", 766), ("agent-session.ts", 860)]
    for found in (first, second):
        for row in found.losses["read_again"].rows:
            assert any(row.text.rpartition("/")[2] in call.arguments_raw for call in transcript.messages[row.needed].calls)
            assert row.source < found.at <= row.needed
        assert found.losses["note_precision"].count == 0
        assert found.losses["used_later"].count > found.losses["used_later"].of / 2
    summary = transcript.messages[354]
    assert isinstance(summary, Message)
    assert "print-mode.ts" in "".join(part.text for part in summary.parts if isinstance(part, Text))


@needs_shared
@pytest.mark.parametrize("name", ["claude-code/agentpile__claude_code_compaction.jsonl", "pi-session/agent-sessions__pi_small.jsonl"])
def test_small_real_sessions(name):
    transcript = wb.read(SHARED / "transcripts" / name)
    found = losses.of_recorded(wb.count(transcript))
    assert len(found) == len(transcript.compacted()) > 0
