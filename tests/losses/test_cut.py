from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.losses.made import ledger_of, said, sessions
from tests.shared import SAMPLES
from tests.strategies import counted, transcripts
from workbench import losses, policies
from workbench.errors import WorkbenchError
from workbench.model import Budget, Message, Text
from workbench.policies.base import Edited, Kept, Note, Request, make_selection

NAMES = ("used_later", "read_again", "called_again", "rework", "artifact_trail", "instruction_survival", "user_messages", "pending_work", "note_precision")
budgets = st.integers(20, 3_000).map(lambda window: Budget(window, 0, 0))


def selection_of(ledger, keep, note=None, edit=None):
    """A selection that keeps some rows, with a note for the rest and an edited message."""
    view = ledger.view()
    covers = tuple(index for index in view.indices.tolist() if index not in keep and (edit is None or index != edit[0]))
    items = [Note(Message(-1, "", "note", (Text(note),)), covers, (), "user")] if note is not None else []
    items += [Edited(edit[0], replace(view.messages[edit[0]], parts=(Text(edit[1]),)))] if edit is not None else []
    return make_selection(policies.NoPolicy(), Request.on(view), [*items, *(Kept(index) for index in keep)])


TALK = (
    said("user", "Fix src/load.py. Never touch the table user_rows. The port is 8080."),
    said("assistant", "I read it.", ("Read", {"file_path": "src/load.py"})),
    said("tool", "def read_rows(path): ..."),
    said("assistant", "", ("TodoWrite", {"todos": [{"content": "fix the loader", "status": "pending"}, {"content": "look", "status": "completed"}]})),
    said("tool", "ok"),
    said("user", "Go on."),
    said("assistant", "I change read_rows in src/load.py for user_rows.", ("Edit", {"file_path": "src/load.py", "old_string": "a", "new_string": "b"})),
    said("tool", "ok"),
)


def test_each_measure_by_hand():
    ledger = ledger_of(*TALK)
    found = losses.of(selection_of(ledger, [5, 6, 7], "The goal is src/load.py; the invented_name is 9999."))
    assert (found.cut, found.end, found.changes) == (5, 8, (5,))
    numbers = {measure.name: (measure.count, measure.of) for measure in found}
    assert tuple(numbers) == NAMES
    assert numbers["used_later"] == (1, 3)
    assert {(row.text, row.kind, row.source, row.removed, row.needed, row.held) for row in found["used_later"].rows} == {
        ("read_rows", "symbol", 2, 5, 6, ""),
        ("user_rows", "symbol", 0, 5, 6, ""),
        ("src/load.py", "path", 0, 5, 6, "note"),
    }
    assert found.reference_recall == pytest.approx(1 / 3)
    assert numbers["artifact_trail"] == (1, 1)
    assert found["artifact_trail"].rows[0].held == "note"
    assert numbers["instruction_survival"] == (0, 1)
    assert found["instruction_survival"].lost[0].text == "Never touch the table user_rows."
    assert numbers["user_messages"] == (1, 2)
    assert [(row.kind, row.text, row.held) for row in found["pending_work"].rows] == [("to-do", "fix the loader", ""), ("request", "Go on.", "kept")]
    assert numbers["note_precision"] == (2, 3)
    assert {row.text for row in found["note_precision"].rows} == {"invented_name", "9999"}


def test_the_frames_say_the_same():
    found = losses.of(selection_of(ledger_of(*TALK), [5, 6, 7], "The goal is src/load.py; the invented_name is 9999."))
    assert found.frame[["count", "of"]].to_dict("index") == {measure.name: {"count": measure.count, "of": measure.of} for measure in found}
    assert found.frame["share"].isna().tolist() == [measure.of == 0 for measure in found]
    rows = found.rows[found.rows["measure"] == "used_later"]
    assert rows["text"].tolist() == [row.text for row in found["used_later"].rows]
    assert rows["needed"].tolist() == [6, 6, 6]
    assert found.rows["needed"].isna().any()
    found.rows.to_csv().encode()


def test_an_edited_message_holds_what_is_left_of_it():
    ledger = ledger_of(*TALK)
    found = losses.of(selection_of(ledger, [0, 1, 3, 4, 5, 6, 7], edit=(2, "[cleared; it began with def read_rows]")), after=5)
    assert [(row.text, row.held) for row in found["used_later"].rows] == [("read_rows", "note")]
    assert [(row.text, row.held) for row in losses.of(selection_of(ledger, [0, 1, 3, 4, 5, 6, 7], edit=(2, "[cleared]")), after=5)["used_later"].rows] == [
        ("read_rows", "")
    ]


def test_what_stands_in_the_system_text_is_never_lost():
    ledger = ledger_of(*TALK, system=["user_rows and read_rows and src/load.py"])
    assert losses.of(selection_of(ledger, [5, 6, 7]))["used_later"].of == 0


def test_a_cut_of_its_own():
    ledger = ledger_of(*TALK)
    chosen = selection_of(ledger, [7])
    assert losses.of(chosen).cut == 7
    early = losses.of(chosen, after=3)
    assert (early.cut, early["used_later"].of) == (3, 3)
    with pytest.raises(WorkbenchError, match="after = 9: there is no such message; choose 0 to 8"):
        losses.of(chosen, after=9)
    with pytest.raises(WorkbenchError, match="another transcript"):
        losses.of(chosen, ledger_of(said("user", "x")))


def test_a_piece_of_a_word_in_a_note_that_was_cut_is_not_invented():
    ledger = ledger_of(said("user", "see /srv/data/very/long/path_to_rows.csv"), said("assistant", "ok"), said("user", "now"))
    assert losses.of(selection_of(ledger, [2], "…ata/very/long/path_to_rows.csv"))["note_precision"].count == 0
    assert losses.of(selection_of(ledger, [2], "other/long/path_to_rows.csv"))["note_precision"].count == 1


@given(transcript=transcripts() | sessions(), budget=budgets, name=st.sampled_from(("none", "kernel", "agentd", "scv", "vak")))
@settings(max_examples=120, deadline=None)
def test_every_policy_on_any_session(transcript, budget, name):
    ledger = counted(transcript)
    try:
        chosen = policies.select(ledger, name, budget)
    except WorkbenchError:
        return
    found = losses.of(chosen)
    for measure in found:
        assert 0 <= measure.count <= measure.of
        assert measure.share is None or 0 <= measure.share <= 1
        assert len(measure.rows) == (measure.count if measure.more_is_worse else measure.of)
        for row in measure.rows:
            assert -1 <= row.source < len(transcript.messages)
            assert row.needed == -1 or row.needed >= found.cut
        json.dumps(measure.as_json())
    if name == "none":
        assert [len(measure.lost) for measure in found if measure.name != "pending_work"] == [0] * 8
        assert found["used_later"].of == found["called_again"].of == 0
    assert found == losses.of(chosen)


@given(transcript=sessions(), cut=st.integers(0, 16))
@settings(max_examples=60, deadline=None)
def test_a_note_of_all_that_was_said_loses_nothing(transcript, cut):
    ledger = counted(transcript)
    rows = ledger.view().indices.tolist()
    said_before = "\n".join(losses.text_of(message) for message in ledger.view().messages[:cut])
    found = losses.of(selection_of(ledger, rows[cut:], said_before), after=min(cut, len(rows)))
    for name in ("used_later", "artifact_trail", "instruction_survival", "user_messages"):
        assert found[name].lost == ()
    assert found["note_precision"].count == 0


def test_an_extract_invents_nothing():
    ledger = wb.count(wb.read(SAMPLES / "coding_agent.jsonl"))
    for name in ("scv", "vak", "agentd", "kernel"):
        assert losses.of(wb.select(ledger, name, Budget(24_000)))["note_precision"].count == 0


def test_the_sample_session_under_scv():
    """Checked by eye in the file."""
    ledger = wb.count(wb.read(SAMPLES / "coding_agent.jsonl"))
    found = losses.of(wb.select(ledger, "scv", Budget(24_000)))
    lost = {row.text: row for row in found["used_later"].lost}
    assert {"drop/balances-2026-03-01.csv", "GIT_AUTHOR_DATE", "pyproject.toml"} <= lost.keys()
    row = lost["GIT_AUTHOR_DATE"]
    said_first, needed = ledger.transcript.messages[row.source], ledger.transcript.messages[row.needed]
    assert "GIT_AUTHOR_DATE" in said_first.calls[0].arguments["command"]
    assert "GIT_AUTHOR_DATE" in needed.calls[0].arguments["command"]
    assert [row.text for row in found["read_again"].rows] == ["var/billing.db"]
    assert "Never change the order, the names or the number of columns of the export." in [row.text for row in found["instruction_survival"].lost]
