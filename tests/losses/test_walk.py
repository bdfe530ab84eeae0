from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.losses.made import ledger_of, said, sessions
from tests.strategies import counted
from workbench.losses import Change, index_of, walk
from workbench.losses.words import IDENTIFIERS


def by_definition(index, rows, changes):
    """(identifier, where it was used, how it is held) as the definition says it, one look at all rows for each use."""
    found = []

    def gone(row, number):  # after so many changes
        state = False
        for change in changes[:number]:
            state = True if row in change.gone else False if row in change.back else state
        return state

    for q in rows:
        if index.transcript.messages[q].role != "assistant":
            continue
        done = sum(change.at <= q for change in changes)
        for at in range(index.start[q], index.start[q + 1]):
            code = int(index.code[at])
            before = [row for row in rows if row < q and code in index.of(row)]
            if not index.used[at] or not before or code in index.fixed:
                continue
            taken = [
                number
                for number in range(sum(change.at <= before[-1] for change in changes), done)
                if any(gone(row, number + 1) and not gone(row, number) for row in before)
            ]
            if not taken or not gone(before[0], done):
                continue
            held = "kept" if any(not gone(row, done) for row in before) else ""
            if not held and done and any(code in index.codes_in(text) for text in changes[done - 1].texts):
                held = "note"
            found.append((index.names[code], q, held))
    return found


@st.composite
def walks(draw):
    transcript = draw(sessions())
    rows = range(len(transcript.messages))
    changes, gone = [], set()
    for at in sorted(draw(st.lists(st.integers(0, len(rows)), unique=True, max_size=4))):
        now = set(draw(st.lists(st.integers(0, at - 1), unique=True))) if at else set()
        texts = tuple(draw(st.lists(st.sampled_from(("src/a.py", "read_rows and 12480", "nothing")), max_size=2)))
        changes.append(Change(at, sorted(now - gone), sorted(gone - now), texts))
        gone = now
    return counted(transcript), list(rows), changes


@given(walks())
@settings(max_examples=150, deadline=None)
def test_a_walk_finds_what_the_definition_says(made):
    ledger, rows, changes = made
    index = index_of(ledger)
    walked = walk(index, rows, changes)
    assert sorted((row.text, row.needed, row.held) for row in walked.used) == sorted(by_definition(index, rows, changes))
    for row in walked.used:
        assert row.kind in IDENTIFIERS
        assert row.source < row.removed <= row.needed
        assert row.removed == changes[row.change].at


@given(walks())
@settings(max_examples=60, deadline=None)
def test_a_note_that_quotes_everything_loses_nothing(made):
    ledger, rows, changes = made
    index = index_of(ledger)
    everything = tuple(index.names[code] for row in rows for code in index.of(row))
    walked = walk(index, rows, [Change(change.at, change.gone, change.back, everything) for change in changes])
    assert all(row.held for row in walked.used)


@given(walks())
@settings(max_examples=60, deadline=None)
def test_who_removes_more_loses_no_less(made):
    ledger, rows, changes = made
    index = index_of(ledger)
    if not changes:
        return
    change = changes[-1]
    one = [Change(change.at, change.gone, (), change.texts)]
    more = [Change(change.at, range(change.at), (), change.texts)]
    less, all_gone = (walk(index, rows, cut) for cut in (one, more))

    def lost(walked):
        return {(row.text, row.needed) for row in walked.used if not row.held}

    assert lost(less) <= lost(all_gone)
    for name in ("reread", "repeated", "rework"):
        assert {(row.text, row.needed) for row in getattr(less, name)} <= {(row.text, row.needed) for row in getattr(all_gone, name)}


def test_what_was_told_again_was_not_needed():
    ledger = ledger_of(
        said("user", "the port is 8080 and the host is db_main"),
        said("assistant", "noted"),
        said("user", "once more: 8080"),
        said("assistant", "connecting to db_main at 8080"),
    )
    walked = walk(index_of(ledger), range(4), [Change(2, (0, 1))])
    assert [(row.text, row.source, row.removed, row.needed, row.held) for row in walked.used] == [("db_main", 0, 2, 3, "")]


def test_a_removed_call_that_is_made_again():
    ledger = ledger_of(
        said("user", "go"),
        said("assistant", "", ("Read", {"file_path": "/home/dev/app/a.py"}), ("Read", {"file_path": "b.py", "limit": 10})),
        said("tool", "text of a"),
        said("tool", "text of b"),
        said("assistant", "", ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"})),
        said("tool", "ok"),
        said("assistant", "", ("Read", {"file_path": "a.py"}), ("Read", {"limit": 10, "file_path": "./b.py"}), ("Read", {"file_path": "c.py"})),
        said("tool", "text of a"),
        said("tool", "text of b"),
        said("tool", "text of c"),
        said("assistant", "", ("Read", {"file_path": "b.py", "limit": 10})),
    )
    walked = walk(index_of(ledger), range(11), [Change(6, range(6))])
    assert [(row.text, row.source, row.needed) for row in walked.reread] == [("a.py", 2, 6), ("b.py", 3, 6)]
    assert [(row.source, row.needed) for row in walked.repeated] == [(2, 6), (3, 6)]
    assert [(row.source, row.needed) for row in walked.rework] == [(3, 6)]  # a.py was written in between
    assert (walked.calls, walked.reads) == ([6, 6, 6, 10], [6, 6, 6, 10])


def test_a_command_may_depend_on_any_file():
    test = ("Bash", {"command": "python -m pytest -q", "description": "run the tests"})
    rows = [said("user", "go"), said("assistant", "", test), said("tool", "1 failed")]
    again = [said("assistant", "", ("Bash", {"command": "python  -m pytest -q", "description": "tests, again"})), said("tool", "1 failed")]
    edit = [said("assistant", "", ("Write", {"file_path": "a.py", "content": "x"})), said("tool", "ok")]
    same = walk(index_of(ledger_of(*rows, *again)), range(5), [Change(3, range(3))])
    assert (len(same.repeated), len(same.rework)) == (1, 1)
    edited = walk(index_of(ledger_of(*rows, *edit, *again)), range(7), [Change(5, range(5))])
    assert (len(edited.repeated), len(edited.rework)) == (1, 0)


def test_a_message_that_came_back_is_there():
    ledger = ledger_of(said("user", "db_main"), said("assistant", "ok"), said("user", "go"), said("assistant", "x"), said("assistant", "db_main"))
    changes = [Change(2, (0, 1)), Change(4, (), (0,))]
    assert [row.held for row in walk(index_of(ledger), range(5), changes).used] == []  # it was never missed while it was away
    assert [row.held for row in walk(index_of(ledger), range(5), changes[:1]).used] == [""]
