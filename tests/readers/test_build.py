"""Every record counted once, threads and freezing."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from workbench.model import Call, Message, Text, Usage
from workbench.readers.build import Builder
from workbench.readers.source import MAX_DIAGNOSTICS, Document, Record


def builder(total: int, **more: object) -> Builder:
    document = Document(Path("x.jsonl"), "jsonl", 1, records=[Record(number, {}) for number in range(1, total + 1)], total=total, **more)  # type: ignore[arg-type]
    return Builder("test", document)


def test_a_record_counts_once_in_the_first_class_that_fits() -> None:
    made = builder(6, skipped=[6])
    call = made.call("c")
    made.account(1, "metadata")
    made.account(1, "calls")
    made.message("assistant", [Text("a")], 1, call=call.index)
    made.account(1, "skipped")
    made.account(2, "compactions")
    made.unknown(3, "odd")
    made.unknown(4, "odd")
    t = made.build()
    assert (t.records.messages, t.records.calls, t.records.compactions, t.records.metadata, t.records.skipped) == (1, 0, 1, 2, 2)
    assert t.records.total == 6
    assert [(d.line, d.code) for d in t.diagnostics] == [(None, "unread"), (3, "unknown_record")]


def test_messages_grow_until_they_are_frozen() -> None:
    made = builder(3)
    call = made.call("c", usage=Usage(1))
    draft = made.message("assistant", [Text("a")], 1, call=call.index, flags=("meta",))
    made.message("user", [Text("b")], 2)
    made.extend(draft, [Text("c")], 3)
    call.usage = Usage(2)
    t = made.build()
    first = t.messages[0]
    assert type(first) is Message
    assert (first.parts, first.raw, first.flags, first.call) == ((Text("a"), Text("c")), (1, 3), frozenset({"meta"}), 0)
    assert first == Message(0, "", "assistant", (Text("a"), Text("c")), call=0, flags=frozenset({"meta"}), raw=(1, 3))
    assert hash(first)
    assert t.calls == (Call(0, "c", usage=Usage(2), produced=(0,)),)
    assert type(t.calls[0]) is Call
    for frozen, name in ((first, "role"), (t.calls[0], "usage")):
        with pytest.raises(FrozenInstanceError):
            setattr(frozen, name, None)


def test_records_of_threads() -> None:
    made = builder(4)
    side = made.thread("side", "subagent", spawned_by="t1")
    assert made.thread("side", "branch") == side
    made.message("user", [], 1)
    made.message("user", [], 2, thread=side)
    made.account(3, "metadata", side)
    made.account(4, "metadata")
    t = made.build()
    assert [(thread.id, thread.kind, thread.spawned_by, thread.records) for thread in t.threads] == [("main", "main", None, 2), ("side", "subagent", "t1", 2)]


def test_a_flood_of_diagnostics_is_bounded() -> None:
    made = builder(5_000)
    for number in range(1, 5_001):
        made.skip(number, "x", "x")
    t = made.build()
    assert len(t.diagnostics) == MAX_DIAGNOSTICS
    assert t.records.skipped == 5_000


def test_empty_facts_are_left_out() -> None:
    made = builder(0)
    made.meta |= {"title": "", "model": None, "n": 0}
    t = made.build()
    assert dict(t.meta) == {"n": 0}
    assert t.id == "x"
