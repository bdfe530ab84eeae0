"""Google ADK: both spellings, wrappings, streams, subagents in branches, rewinds, compactions of a span of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.model import COMPACT_SUMMARY, ERROR, MAIN, META, Reasoning, Text, Transcript, Usage

SPENT = {"promptTokenCount": 100, "cachedContentTokenCount": 50, "candidatesTokenCount": 10, "thoughtsTokenCount": 5, "totalTokenCount": 115}


def event(author: str, *parts: Any, at: float = 1.0, run: str = "i1", role: str = "", **more: Any) -> dict[str, Any]:
    held = [{"text": part} if isinstance(part, str) else part for part in parts]
    content = {"content": {"role": role or ("user" if author == "user" else "model"), "parts": held}} if parts else {}
    return {**content, "author": author, "invocationId": run, "timestamp": 1_700_000_000 + at, "id": f"e{at}", "actions": {"stateDelta": {}}, **more}


def called(name: str = "f") -> dict[str, Any]:
    return {"functionCall": {"id": "c1", "name": name, "args": {"q": 1}}}


ANSWER = {"functionResponse": {"id": "c1", "name": "f", "response": {"result": "r"}}}
EVENTS = [
    event("user", "q"),
    event("agent", {"text": "hm", "thought": True}, called(), at=2, usageMetadata=SPENT, modelVersion="g-1", finishReason="STOP"),
    event("agent", ANSWER, at=3, role="user"),
    event("agent", at=3.5, actions={"stateDelta": {"k": 1}}),
    event("agent", "done", at=4),
]
SHAPE = [("user", "q", ()), ("assistant", "", ("c1",)), ("tool", "r", ("c1",)), ("assistant", "done", ())]


def session(*events: Any, **more: Any) -> dict[str, Any]:
    return {"id": "s1", "appName": "app", "userId": "u", "state": {}, "events": list(events), "lastUpdateTime": 1.5, **more}


def snake(value: Any) -> Any:
    if isinstance(value, list):
        return [snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {"".join(f"_{char.lower()}" if char.isupper() else char for char in key): snake(item) for key, item in value.items()}


def read(path: Path) -> list[Transcript]:
    found = list(readers.read_all(path))
    for transcript in found:
        check(transcript)
        assert transcript.source.format == "google-adk"
    return found


def test_a_session_in_both_spellings_and_every_wrapping(tmp_path: Path) -> None:
    whole = session(*EVENTS)
    files = [as_json(tmp_path / "a.json", whole), as_json(tmp_path / "b.json", snake(whole)), as_json(tmp_path / "w.json", {"session": whole})]
    files += [jsonl(tmp_path / "e.jsonl", EVENTS), as_json(tmp_path / "e.json", snake(EVENTS))]
    for path in files:
        (t,) = read(path)
        assert shape(t) == SHAPE
        assert t.messages[1].parts[0] == Reasoning("hm")
        assert [item.usage for item in t.calls] == [Usage(50, 50, None, None, 15, 5), None]
        assert (t.calls[0].model, t.calls[0].stop_reason, t.messages[0].ts) == ("g-1", "STOP", 1_700_000_001_000)
        assert (t.records.total, t.records.messages, t.records.metadata, t.records.skipped) == (5, 4, 1, 0)
        assert t.diagnostics == ()
    found = read(jsonl(tmp_path / "s.jsonl", [whole, {**whole, "id": "s2"}, "7"]))
    assert [(t.id, t.records.total) for t in found] == [("s1", 2), ("s2", 1)]
    assert read(as_json(tmp_path / "z.json", session()))[0].messages == ()


def test_pieces_of_a_stream_are_in_the_whole(tmp_path: Path) -> None:
    pieces = [event("agent", text, at=2, partial=True) for text in ("do", "ne")]
    (t,) = read(jsonl(tmp_path / "t.jsonl", [EVENTS[0], *pieces, event("agent", "done", at=3)]))
    assert [message.text for message in t.messages] == ["q", "done"]
    assert (t.records.total, t.records.messages) == (4, 4)
    (cut,) = read(jsonl(tmp_path / "t.jsonl", [EVENTS[0], *pieces]))
    assert [message.text for message in cut.messages] == ["q", "done"]
    assert cut.records.messages == 3


def test_agents_in_branches_are_subagents(tmp_path: Path) -> None:
    rows = [
        event("user", "q"),
        event("one", "a", branch="both.one"),
        event("two", "b", branch="both.two"),
        event("deep", "c", branch="both.one.deep"),
        event("last", "d"),
    ]
    (t,) = read(as_json(tmp_path / "t.json", session(*rows)))
    assert [(item.id, item.kind, item.parent) for item in t.threads] == [
        (MAIN, "main", None),
        ("both.one", "subagent", MAIN),
        ("both.two", "subagent", MAIN),
        ("both.one.deep", "subagent", "both.one"),
    ]
    assert [message.thread for message in t.messages] == [MAIN, "both.one", "both.two", "both.one.deep", MAIN]
    assert [item.records for item in t.threads] == [2, 1, 1, 1]
    (alone,) = read(as_json(tmp_path / "t.json", session(*rows[:2])))
    assert {message.thread for message in alone.messages} == {MAIN}


def test_a_rewind_makes_a_branch(tmp_path: Path) -> None:
    back = event("user", at=5, run="i3", actions={"rewindBeforeInvocationId": "i2"})
    lost = event("user", at=5, run="i4", actions={"rewind_before_invocation_id": "nowhere"})
    rows = [
        event("user", "a"),
        event("m", "A"),
        event("user", "b", run="i2"),
        event("m", "B", run="i2"),
        back,
        lost,
        event("user", "c", run="i5"),
        event("m", "C", run="i5"),
    ]
    (t,) = read(as_json(tmp_path / "t.json", session(*rows)))
    assert [t.messages[index].text for index in t.history()] == ["a", "A", "c", "C"]
    assert [t.messages[index].text for index in t.thread("branch")] == ["b", "B"]
    assert [(item.id, item.kind, item.records) for item in t.threads] == [(MAIN, "main", 6), ("branch", "branch", 2)]
    assert [item.code for item in t.diagnostics] == ["rewind"]


def compaction(start: float, end: float, text: str, at: float, **more: Any) -> dict[str, Any]:
    held = {"startTimestamp": 1_700_000_000 + start, "endTimestamp": 1_700_000_000 + end, "compactedContent": {"role": "model", "parts": [{"text": text}]}}
    return event("user", at=at, actions={"compaction": held}, **more)


def test_a_compaction_stands_for_a_span_of_time(tmp_path: Path) -> None:
    rows = [event("user", "a", at=1), event("m", "A", at=2), event("user", "b", at=3), event("m", "B", at=4)]
    rows += [compaction(1, 2, "short", 5, usageMetadata=SPENT), event("user", "c", at=6), compaction(1, 4, "shorter", 7), event("m", "C", at=8)]
    (t,) = read(as_json(tmp_path / "t.json", session(*rows)))
    assert [(item.after, item.kind, item.trigger, item.summary, item.kept, item.call) for item in t.compactions] == [
        (3, "summary", "auto", 4, (2, 3), 2),
        (5, "summary", "auto", 6, (5,), None),
    ]
    assert [t.messages[index].text for index in t.history(which="live")] == ["shorter", "c", "C"]
    assert [t.messages[index].text for index in t.history()] == ["a", "A", "b", "B", "c", "C"]
    assert [item.kind for item in t.calls] == ["response", "response", "compaction", "response"]
    assert [message.index for message in t.messages if COMPACT_SUMMARY in message.flags] == [4, 6]


def test_a_summary_that_is_not_inside_a_later_span_stays(tmp_path: Path) -> None:
    rows = [event("user", str(at), at=at) for at in (1, 2, 3, 4)]
    (t,) = read(as_json(tmp_path / "t.json", session(*rows[:3], compaction(1, 2, "one", 3.5), rows[3], compaction(2, 4, "two", 5))))
    assert [t.messages[index].text for index in t.history(which="live")] == ["two", "one"]


def test_a_compaction_that_was_taken_back_is_none_of_the_main_thread(tmp_path: Path) -> None:
    back = event("user", at=5, run="i3", actions={"rewindBeforeInvocationId": "i2"})
    rows = [event("user", "a", at=1), event("user", "b", at=2, run="i2"), compaction(1, 2, "short", 3, run="i2"), back, event("user", "c", at=6, run="i4")]
    (t,) = read(as_json(tmp_path / "t.json", session(*rows)))
    assert [item.thread for item in t.compactions] == ["branch"]
    assert [t.messages[index].text for index in t.history(which="live")] == ["a", "c"]
    (again,) = read(as_json(tmp_path / "t.json", session(*rows, compaction(1, 1, "new", 7, run="i4"))))
    assert [again.messages[index].text for index in again.history(which="live")] == ["new", "c"]


def test_what_is_no_plain_answer(tmp_path: Path) -> None:
    rows = [
        event("user", inputTranscription={"text": "spoken", "finished": True}),
        event("m", outputTranscription={"text": "said", "finished": True}),
        event("m", errorCode="429", errorMessage="too many"),
        event("plugin", "note", role="user"),
        event("user", ANSWER, "and?"),
        event("m", usageMetadata={**SPENT, "totalTokenCount": 1}),
        7,
        {"author": 5},
    ]
    (t,) = read(as_json(tmp_path / "t.json", session(*rows)))
    assert [(message.role, message.text, sorted(message.flags)) for message in t.messages] == [
        ("user", "spoken", []),
        ("assistant", "said", []),
        ("assistant", "too many", [ERROR]),
        ("user", "note", [META]),
        ("tool", "", []),
        ("user", "and?", []),
    ]
    assert t.messages[4].result is not None
    assert t.messages[4].result.parts == (Text("r"),)
    assert (t.records.messages, t.records.calls, t.records.skipped) == (5, 1, 2)
    assert [item.code for item in t.diagnostics] == ["error", "usage_total", "event", "event"]


@pytest.mark.transcripts
@pytest.mark.parametrize("name", ["session", "session_snake"])
def test_files_of_the_real_library(name: str) -> None:
    (t,) = read(SHARED / "transcripts" / "google-adk" / f"GENERATED__{name}.json")
    assert shape(t) == [("user", "weather?", ()), ("assistant", "", ("adk-1",)), ("tool", "sunny", ("adk-1",)), ("assistant", "Sunny.", ())]
    assert Usage.sum([item.usage for item in t.calls]).total == 115
    assert (t.id, t.records.total, t.records.messages, t.diagnostics) == ("s1", 4, 4, ())
