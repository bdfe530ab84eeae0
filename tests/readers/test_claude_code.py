"""Claude Code sessions: lines into messages, calls and metadata."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.readers.claude import assistant, call, line, read, result, text, user
from tests.readers.made import check, jsonl, shape
from tests.shared import SHARED, needs_shared
from workbench import readers
from workbench.errors import UnknownFormat
from workbench.model import ERROR, HIDDEN, META, SYNTHETIC, Media, Opaque, Reasoning, Text, ToolCall, Usage
from workbench.turns import starts_turn, tool_pairs, turn_groups

CLAUDE = SHARED / "transcripts" / "claude-code"
REAL = CLAUDE / "claude-code-viewer__fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl"


@needs_shared
def test_a_real_session() -> None:
    """Usage as two other tools report it independently; nearly all of it in inline sidechains."""
    t = readers.read(REAL)
    check(t)
    usage = Usage.sum([call.usage for call in t.calls])
    assert (usage.total, usage.output, usage.cache_read, len(t.calls)) == (3_838_581, 51_933, 3_647_854, 170)
    assert t.records.total == 438
    subagents = [thread for thread in t.threads if thread.kind == "subagent"]
    assert sum(thread.records for thread in subagents) == 405
    assert all(thread.parent == "main" and thread.spawned_by for thread in subagents)
    assert {thread.spawned_by for thread in subagents} <= {call.id for m in t.messages if m.thread == "main" for call in m.calls}
    assert t.title == "Empty Repo Setup: CLAUDE.md Foundation Created"
    assert (t.model, t.meta["version"]) == ("claude-sonnet-4-20250514", "1.0.98")
    assert all(pair.result is not None and pair.call is not None for pair in tool_pairs(t.messages))
    assert len(turn_groups([t.messages[index] for index in t.history()])) == 2  # a slash command and a question


@needs_shared
@pytest.mark.parametrize("path", sorted([*CLAUDE.glob("*"), *(SHARED / "transcripts" / "claude-code-lines").glob("*")]), ids=lambda path: path.name[:50])
def test_every_file_by_others(path: Path) -> None:
    before = path.stat().st_mtime_ns
    if path.name.endswith(".meta.json"):
        with pytest.raises(UnknownFormat):
            readers.read(path)
        return
    runs = readers.read_all(path)
    assert len(runs) == 1
    check(runs[0])
    assert runs[0].source.format == "claude-code"
    assert runs[0].source.reasons
    lines = [one for one in path.read_bytes().split(b"\n") if one.strip()]
    assert runs[0].records.total == len(lines) == sum(thread.records for thread in runs[0].threads)
    assert path.stat().st_mtime_ns == before


@needs_shared
def test_the_export_of_the_web_version() -> None:
    t = readers.read(next((SHARED / "transcripts" / "claude-code-web").glob("*.json")), format="claude-code")
    check(t)
    assert (len(t.messages), t.records.messages) == (33, 33)


def test_b28_the_last_line_has_the_whole_usage(tmp_path: Path) -> None:
    rows = [assistant(f"a{at}", None, "Hello", id="m1", usage={"input_tokens": 3, "output_tokens": output}) for at, output in enumerate((9, 9, 159))]
    t = read(tmp_path / "s.jsonl", *rows)
    assert [(c.id, c.usage) for c in t.calls] == [("m1", Usage(3, output=159))]
    assert shape(t) == [("assistant", "Hello", ())]
    assert t.messages[0].raw == (1, 2, 3)


def test_b29_blocks_of_all_lines_in_file_order(tmp_path: Path) -> None:
    usage = {"input_tokens": 3, "output_tokens": 9}
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "go"),
        assistant("a1", "u1", {"type": "thinking", "thinking": "hm", "signature": "x" * 10}, id="m1", usage=usage),
        assistant("a2", "a1", "one", id="m1", usage=usage),
        assistant("a3", "a2", call("c1"), id="m1", usage=usage),
        user("r1", "a3", [result("c1")]),
        assistant("a4", "r1", call("c2"), id="m1", usage=usage),  # written only now, but of the same response
        user("r2", "a4", [result("c2")]),
    )
    assert [type(part) for part in t.messages[1].parts] == [Reasoning, Text, ToolCall, ToolCall]
    assert t.messages[1].parts[0] == Reasoning("hm", 10)
    assert shape(t) == [("user", "go", ()), ("assistant", "one", ("c1", "c2")), ("tool", "ok", ("c1",)), ("tool", "ok", ("c2",))]
    assert len(t.calls) == 1
    assert t.calls[0].usage == Usage(3, output=9)


def test_snapshots_that_grow_add_only_what_is_new(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        assistant("a1", None, "one", id="m1"),
        assistant("a2", "a1", "one", call("c1"), id="m1"),
        assistant("a2", "a1", "one", call("c1"), id="m1"),
    )
    assert shape(t) == [("assistant", "one", ("c1",))]


def test_a_line_that_stands_twice_counts_once(tmp_path: Path) -> None:
    rows = [user("u1", None, "go"), assistant("a1", "u1", "one", id="m1"), user("u2", "a1", "more")]
    t = read(tmp_path / "s.jsonl", *rows, *rows)
    assert shape(t) == [("user", "go", ()), ("assistant", "one", ()), ("user", "more", ())]
    assert t.records.messages == 6
    assert t.messages[0].raw == (1, 4)
    other = read(tmp_path / "t.jsonl", user("same", None, "go"), user("same", None, "other text"))
    assert [m.text for m in other.messages] == ["go", "other text"]


def test_responses_without_ids(tmp_path: Path) -> None:
    """Consecutive lines are one response, unless usage or a person stands between."""
    t = read(
        tmp_path / "s.jsonl",
        {"type": "user", "message": {"content": "q"}},
        {"type": "assistant", "message": {"content": [text("a")]}},
        {"type": "assistant", "message": {"content": [call("c")], "usage": {"input_tokens": 1, "output_tokens": 2}}},
        {"type": "assistant", "message": {"content": [text("b")]}},
        {"type": "user", "message": {"content": [result("c")]}},
        {"type": "assistant", "message": {"content": "c"}},
    )
    assert shape(t) == [("user", "q", ()), ("assistant", "a", ("c",)), ("assistant", "b", ()), ("tool", "ok", ("c",)), ("assistant", "c", ())]
    assert [c.usage for c in t.calls] == [Usage(1, output=2), None, None]


def test_results_and_text_of_one_line(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        assistant("a1", None, call("c1"), call("c2"), id="m1"),
        user(
            "u1",
            "a1",
            [text("also do this"), result("c2", [text("x"), text("y")]), result("c1", None, is_error=True)],
            toolUseResult={"stdout": "not the text"},
        ),
    )
    assert [(m.role, m.raw) for m in t.messages] == [("assistant", (1,)), ("tool", (2,)), ("tool", (2,)), ("user", (2,))]
    assert [(m.result.call_id, m.result.text, m.result.is_error, m.result.name) for m in t.messages if m.result] == [
        ("c2", "x\ny", False, "Bash"),
        ("c1", "", True, "Bash"),
    ]
    assert t.messages[3].text == "also do this"
    assert starts_turn(t.messages[3])
    assert t.records.messages == 2


@pytest.mark.parametrize("extra", [{"content": None}, {}, {"content": ""}, {"content": []}], ids=["null", "absent", "empty", "no blocks"])
def test_b02_a_result_without_content(tmp_path: Path, extra: dict[str, Any]) -> None:
    t = read(tmp_path / "s.jsonl", assistant("a1", None, call("a"), id="m1"), user("u1", "a1", [{"type": "tool_result", "tool_use_id": "a", **extra}]))
    assert t.messages[1].result is not None
    assert t.messages[1].result.parts == ()
    assert [(pair.call, pair.result) for pair in tool_pairs(t.messages)] == [(0, 1)]
    assert t.diagnostics == ()


def test_b53_b55_b56_pairs(tmp_path: Path) -> None:
    rows = [
        user("u", None, "q"),
        assistant("a", "u", call("a"), call("b"), call("c"), id="m"),
        *(user(f"r{at}", "a", [result(id)]) for at, id in enumerate("baa")),
    ]
    pairs = tool_pairs(read(tmp_path / "s.jsonl", *rows).messages)
    assert [(pair.id, pair.call, pair.result, pair.duplicates) for pair in pairs] == [("a", 1, 3, (4,)), ("b", 1, 2, ()), ("c", 1, None, ())]


def test_who_wrote_it(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "<command-name>/review</command-name>"),
        user("u2", "u1", "<local-command-stdout>done</local-command-stdout>"),
        user("u3", "u2", "<bash-stdout>done</bash-stdout><bash-stderr></bash-stderr>"),
        user("u4", "u3", "a reminder", isMeta=True),
        user("u5", "u4", "[Request interrupted by user]"),
        user("u6", "u5", "a job is done", origin={"kind": "task-notification"}),
        user("u7", "u6", " \n"),
        user("u8", "u7", "shown only", isVisibleInTranscriptOnly=True),
        user("u9", "u8", "go on", origin={"kind": "human"}),
    )
    assert [sorted(m.flags) for m in t.messages] == [[], [META], [META], [META], [META], [META], [HIDDEN], [HIDDEN], []]
    assert len(turn_groups(t.messages)) == 2


def test_what_no_provider_made(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "go"),
        line("system", "s1", "u1", subtype="api_error", error={"type": "overloaded_error"}),
        assistant("a1", "s1", "API Error: overloaded", id="0f", model="<synthetic>", usage={"input_tokens": 0, "output_tokens": 0}, isApiErrorMessage=True),
    )
    assert t.messages[1].flags == {SYNTHETIC, ERROR}
    assert t.calls == ()
    assert t.messages[1].parent == 0
    assert t.records.metadata == 1


def test_b20_lines_that_are_no_messages(tmp_path: Path) -> None:
    nested = {"type": "agent_progress", "message": {"type": "assistant", "message": {"id": "m1", "content": [text("inside")], "usage": {"output_tokens": 99}}}}
    t = read(
        tmp_path / "s.jsonl",
        {"type": "summary", "summary": "A title", "leafUuid": "x"},
        user("u1", None, "go"),
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "5e55"},
        line("progress", "p1", "u1", data=nested),
        line("attachment", "t1", "p1", attachment={"type": "todo_reminder"}),
        assistant("a1", "t1", "done", id="m1", usage={"input_tokens": 1, "output_tokens": 2}),
        user("u2", "a1", "thanks"),
    )
    assert [m.text for m in t.messages] == ["go", "done", "thanks"]
    assert (t.records.messages, t.records.metadata) == (3, 5)
    assert t.diagnostics == ()
    assert Usage.sum([c.usage for c in t.calls]).total == 3
    assert t.messages[1].parent == 0  # through the lines between
    assert t.title == "A title"


def test_titles_by_rank(tmp_path: Path) -> None:
    rows = [
        {"type": "custom-title", "customTitle": "Mine"},
        {"type": "ai-title", "aiTitle": "Made"},
        {"type": "summary", "summary": "Old"},
        user("u", None, "q"),
    ]
    assert read(tmp_path / "s.jsonl", *rows).title == "Mine"
    assert read(tmp_path / "s.jsonl", *rows[1:]).title == "Made"
    assert read(tmp_path / "s.jsonl", *rows[2:]).meta["title"] == "Old"


def test_unknown_types_are_reported_once(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl", user("u", None, "q"), *({"type": "future-event", "n": at} for at in range(50)), assistant("a", "u", {"type": "gadget"}, id="m")
    )
    assert [diagnostic.code for diagnostic in t.diagnostics] == ["unknown_record", "content"]
    assert t.messages[1].parts == (Opaque("gadget", 17),)
    assert t.records.metadata == 50


def test_b23_b25_the_order_is_the_files(tmp_path: Path) -> None:
    def at(time: str | None) -> dict[str, Any]:
        return {"timestamp": time}

    t = read(
        tmp_path / "s.jsonl",
        user("u1", None, "one", **at("2026-11-01T10:05:00Z")),
        assistant("a1", "u1", "two", id="msg_ff2", **at("2026-11-01T10:03:00Z")),
        user("u2", "a1", "three", **at(None)),
        assistant("a2", "u2", "four", id="msg_001", **at("2026-11-01T10:06:00Z")),
    )
    assert [m.text for m in t.messages] == ["one", "two", "three", "four"]
    assert [m.ts for m in t.messages][2] is None
    assert t.calls[-1].id == "msg_001"
    assert [diagnostic.code for diagnostic in t.diagnostics] == ["timestamps"]


def test_b16_b17_lone_surrogates(tmp_path: Path) -> None:
    raw = r'{"type":"assistant","sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"n","input":{"x":"\ud99c ok"}}]}}'
    t = read(tmp_path / "s.jsonl", raw, user("u", None, "q"))
    assert t.messages[0].calls[0].arguments == {"x": "\ud99c ok"}
    assert t.messages[0].calls[0].arguments_raw == '{"x":"\ud99c ok"}'


def test_b19_extra_fields_are_no_fault(tmp_path: Path) -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "inference_geo": "", "iterations": [], "speed": None}
    t = read(tmp_path / "s.jsonl", assistant("a", None, "x", id="m", usage=usage, effort="medium"))
    assert t.calls[0].usage == Usage(1, output=2)
    assert t.diagnostics == ()


def test_b31_b32_usage(tmp_path: Path) -> None:
    t = read(
        tmp_path / "s.jsonl",
        assistant("a", None, "x", id="m", usage={"input_tokens": 6, "cache_creation_input_tokens": 37172, "cache_read_input_tokens": 0}),
        assistant("b", "a", "y", id="n", usage={"input_tokens": -120, "cache_read_input_tokens": 500, "output_tokens": 5}),
    )
    assert [c.usage and c.usage.prompt for c in t.calls] == [37178, None]
    assert t.calls[1].usage == Usage(output=5)
    assert [(d.line, d.code) for d in t.diagnostics] == [(2, "usage")]
    assert "inconsistent usage" in t.diagnostics[0].text


def test_server_compaction_inside_a_session(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 220,
        "output_tokens": 8,
        "iterations": [{"type": "compaction", "input_tokens": 55196, "output_tokens": 125}, {"input_tokens": 220, "output_tokens": 8}],
    }
    t = read(tmp_path / "s.jsonl", user("u", None, "q"), assistant("a", "u", {"type": "compaction", "content": "so far"}, "Hello", id="m", usage=usage))
    assert [(m.text, sorted(m.flags), m.call) for m in t.messages] == [("q", [], None), ("so far", ["compact_summary"], 0), ("Hello", [], 0)]
    assert Usage.sum([c.usage for c in t.calls]).total == 55196 + 125 + 220 + 8
    assert [(c.after, c.summary, c.trigger) for c in t.compactions] == [(0, 1, "server")]


def test_b82_pictures(tmp_path: Path) -> None:
    gif = base64.b64encode(b"GIF89a\x02\x00\x03\x00\x00\x00\x00").decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": gif}}
    t = read(tmp_path / "s.jsonl", user("u", None, [picture]), assistant("a", "u", call("c"), id="m"), user("r", "a", [result("c", [picture, text("shot")])]))
    image = t.messages[0].parts[0]
    assert isinstance(image, Media)
    assert (image.width, image.height, image.size, image.mime) == (2, 3, 13, "image/gif")
    assert starts_turn(t.messages[0])
    assert t.messages[2].result is not None
    assert t.messages[2].result.parts == (image, Text("shot"))


def test_the_source_is_never_written(tmp_path: Path) -> None:
    path = jsonl(tmp_path / 'x"); import os #.jsonl', [user("u", None, "q"), "{oops"])
    before = (path.read_bytes(), path.stat().st_mtime_ns, sorted(tmp_path.iterdir()))
    path.chmod(0o444)
    t = readers.read(path)
    assert t.name == 'x"); import os #.jsonl'
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(tmp_path.iterdir())) == before
