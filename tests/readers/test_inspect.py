"""Inspect's logs: samples, events in lanes, compactions, archives."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check
from tests.readers.test_packed import zipped, zstd_zipped
from tests.shared import SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Media, Opaque, Reasoning, Text, ToolCall, ToolResult, Transcript, Usage
from workbench.readers import inspect_events


def message(id: str, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": id, "role": role, "content": content, **more}


def request(input: list[Any], output: dict[str, Any] | None, usage: tuple[int, int] = (10, 2), span: str = "", **more: Any) -> dict[str, Any]:
    choices = [] if output is None else [{"message": output, "stop_reason": "stop"}]
    numbers = {"input_tokens": usage[0], "output_tokens": usage[1]}
    return {
        "event": "model", "timestamp": "2026-05-01T10:00:00Z", "span_id": span, "model": "m/one", "input": input,
        "tools": [{"name": "look", "description": "d", "parameters": {"type": "object"}}], "output": {"model": "one", "choices": choices, "usage": numbers},
        **more,
    }  # fmt: skip


def span(id: str, type: str, name: str, parent: str | None = None) -> dict[str, Any]:
    return {"event": "span_begin", "timestamp": "2026-05-01T10:00:00Z", "id": id, "type": type, "name": name, "parent_id": parent}


S, Q = message("s", "system", "Be brief."), message("q", "user", "q", source="input")
A1 = message("a1", "assistant", "", tool_calls=[{"id": "c", "function": "look", "arguments": {"x": 1}, "type": "function"}])
T1 = message("t1", "tool", "found", tool_call_id="c", function="look")
A2 = message("a2", "assistant", "a")


def sample(messages: list[Any], events: list[Any], **more: Any) -> dict[str, Any]:
    return {"id": 1, "epoch": 1, "input": "q", "target": "", "messages": messages, "events": events, "scores": {}, **more}


def log(*samples: Any, **more: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": "demo", "model": "m/one"}, "plan": {}, "stats": {}, "samples": list(samples), **more}


BASIC = sample(
    [S, Q, A1, T1, A2], [request([S, Q], A1, (20, 3)), request([S, Q, A1, T1], A2, (40, 1))], model_usage={"m": {"input_tokens": 60, "output_tokens": 4}}
)


def read(path: Path, value: Any) -> Transcript:
    transcript = readers.read(as_json(path, value))
    check(transcript)
    assert transcript.source.format == "inspect"
    return transcript


def test_messages_are_built_once_and_requests_know_their_context(tmp_path: Path) -> None:
    t = read(tmp_path / "t.json", log(BASIC))
    assert [(m.role, m.raw, m.call) for m in t.messages] == [
        ("system", (1,), None), ("user", (2,), None), ("assistant", (3,), 0), ("tool", (4,), None), ("assistant", (5,), 1),
    ]  # fmt: skip
    assert [(c.context, c.produced, c.model, c.stop_reason) for c in t.calls] == [((0, 1), (2,), "one", "stop"), ((0, 1, 2, 3), (4,), "one", "stop")]
    assert t.calls[0].usage == Usage(20, None, None, None, 3, None)
    assert t.calls[0].prefix is t.calls[1].prefix is not None
    assert t.calls[0].prefix.system == ("Be brief.",)
    assert (t.records.total, t.records.messages, t.diagnostics) == (5, 5, ())
    assert (t.title, t.id, [tool.name for tool in t.tools]) == ("demo 1", "1_epoch_1", ["look"])


def test_logs_without_ids_know_messages_by_what_they_say(tmp_path: Path) -> None:
    def bare(*messages: dict[str, Any]) -> list[dict[str, Any]]:
        return [{key: value for key, value in each.items() if key != "id"} for each in messages]

    again = {"role": "user", "content": "go on"}
    final = [*bare(S, Q, A1, T1), again, *bare(A2), again, *bare(A2)]
    events = [request(final[:2], final[2]), request(final[:5], final[5]), request(final[:7], final[7])]
    t = read(tmp_path / "t.json", log(sample(final, events)))
    assert [m.raw for m in t.messages] == [(number,) for number in range(1, 9)]
    assert [c.produced for c in t.calls] == [(2,), (5,), (7,)]
    assert t.calls[2].context == tuple(range(7))


def test_pools_and_attachments(tmp_path: Path) -> None:
    long = "a" * 32
    first = message("q", "user", f"attachment://{long}", source="input")
    events = [request([], A1, input_refs=[[0, 2]]), request([], A2, input_refs=[[0, 1], [1, 4], [9, 99], "odd", [3]])]
    t = read(tmp_path / "t.json", log(sample([S, first, A1, T1, A2], events, message_pool=[S, first, A1, T1], attachments={long: "the long text"})))
    assert t.messages[1].text == "the long text"
    assert [c.context for c in t.calls] == [(0, 1), (0, 1, 2, 3)]


def test_a_pool_that_is_named_endlessly_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_events, "_MOST_CONTEXT", 5_000)
    pool = [message(f"p{at}", "user", "x") for at in range(100)]
    events = [request([], message(f"b{at}", "assistant", "y"), input_refs=[[0, 100]] * 20) for at in range(20)]
    t = read(tmp_path / "t.json", log(sample([*pool, A2], events, message_pool=pool)))
    assert len(t.calls) == 21
    assert t.calls[-1].context is None
    assert sum(len(call.context or ()) for call in t.calls) <= 7_000


def test_scorers_and_agents_are_threads_and_every_token_counts(tmp_path: Path) -> None:
    grade, verdict = message("g", "user", "grade it"), message("v", "assistant", "C")
    ask, told = message("h", "user", "help"), message("w", "assistant", "w")
    events = [
        span("sol", "solvers", "solvers"), span("main", "agent", "react", "sol"), request([S, Q], A1, (20, 3), "main"),
        {"event": "tool", "id": "c", "function": "look", "agent": "helper", "agent_span_id": "sub"},
        span("tool", "tool", "look", "main"), span("sub", "agent", "helper", "tool"), request([ask], told, (5, 1), "sub"),
        request([S, Q, A1, T1], A2, (40, 1), "main"),
        span("scs", "scorers", "scorers"), span("sc", "scorer", "judge", "scs"), request([grade], verdict, (7, 1), "sc"),
    ]  # fmt: skip
    usage = {"m": {"input_tokens": 72, "output_tokens": 6}}
    t = read(tmp_path / "t.json", log(sample([S, Q, A1, T1, A2], events, model_usage=usage), stats={"model_usage": usage}))
    assert [(x.id, x.kind, x.parent, x.spawned_by, x.records) for x in t.threads] == [
        ("main", "main", None, None, 5), ("helper", "subagent", "main", "c", 0), ("judge", "subagent", "main", None, 0),
    ]  # fmt: skip
    assert [(m.thread, m.text) for m in t.messages if m.thread != "main"] == [("helper", "help"), ("helper", "w"), ("judge", "grade it"), ("judge", "C")]
    assert Usage.sum([c.usage for c in t.calls]).total == 78
    assert t.diagnostics == ()
    assert t.records.total == 5


def test_totals_that_differ_are_told(tmp_path: Path) -> None:
    t = read(
        tmp_path / "t.json", log({**BASIC, "model_usage": {"m": {"input_tokens": 1, "output_tokens": 1}}}, stats={"model_usage": {"m": {"input_tokens": 99}}})
    )
    assert [d.code for d in t.diagnostics] == ["totals", "totals"]


SUMMARY = message("sum", "user", "[SUMMARY] so far", metadata={"summary": True})
A3 = message("a3", "assistant", "b")


def compaction(type: str = "summary") -> dict[str, Any]:
    return {"event": "compaction", "timestamp": "2026-05-01T10:00:00Z", "type": type, "tokens_before": 900, "tokens_after": 90, "span_id": ""}


@pytest.mark.parametrize("final", [[S, Q, SUMMARY, A3], [S, Q, A1, T1, A2, A3]], ids=["only what was left", "all"])
def test_compaction_that_makes_a_summary(tmp_path: Path, final: list[Any]) -> None:
    prompt, said = message("p", "user", "sum it up"), message("x", "assistant", "[SUMMARY] so far")
    events = [
        request([S, Q], A1, (20, 3)), request([S, Q, A1, T1], A2, (40, 1)), request([S, Q, A1, T1, A2, prompt], said, (50, 9)), compaction(),
        request([S, Q, SUMMARY], A3, (30, 2)),
    ]  # fmt: skip
    t = read(tmp_path / "t.json", log(sample(final, events, model_usage={"m": {"input_tokens": 140, "output_tokens": 15}})))
    [found] = t.compactions
    assert (found.kind, found.tokens_before, found.tokens_after, found.trigger) == ("summary", 900, 90, None)
    assert found.summary is not None
    assert t.messages[found.summary].text == "[SUMMARY] so far"
    assert "compact_summary" in t.messages[found.summary].flags
    assert [t.messages[at].id for at in t.history("main", "full")] == ["s", "q", "a1", "t1", "a2", "a3"]
    assert [t.messages[at].id for at in t.history("main", "live")] == ["s", "sum", "q", "a3"]
    assert [(c.kind, c.produced == ()) for c in t.calls] == [("response", False), ("response", False), ("compaction", True), ("response", False)]
    assert found.call == 2
    assert "sum it up" not in [m.text for m in t.messages]
    assert t.records.total == len(final)
    assert t.diagnostics == ()


@pytest.mark.parametrize("last", [A2, message("a2", "assistant", [{"type": "text", "text": "a"}]), {**A1, "id": "a2"}])
def test_the_last_answer_before_a_compaction_is_not_its_summary(tmp_path: Path, last: dict[str, Any]) -> None:
    """Some providers compact without a request of its own: nothing of the last answer stands in the next request, yet it was given."""
    summary, end = message("u", "user", "the summary"), message("a3", "assistant", "end")
    events = [request([S, Q], A1), request([S, Q, A1, T1], last), compaction(), request([S, Q, summary], end)]
    t = read(tmp_path / "t.json", log(sample([S, Q, summary, end], events)))
    assert [m.role for m in t.messages] == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    assert t.messages[4].text == ("" if last["content"] == "" else "a")
    [found] = t.compactions
    assert (found.after, found.summary, found.call, [c.kind for c in t.calls]) == (4, 5, None, ["response"] * 3)


def test_compaction_that_trims_keeps_the_rest(tmp_path: Path) -> None:
    events = [request([S, Q], A1), request([S, Q, A1, T1], A2), compaction("trim"), request([S, T1, A2], A3)]
    t = read(tmp_path / "t.json", log(sample([S, Q, A1, T1, A2, A3], events)))
    [found] = t.compactions
    assert (found.kind, found.after, found.summary, found.kept) == ("trim", 4, None, (0, 3, 4))
    assert t.history("main", "live") == (0, 3, 4, 5)


def test_parts_of_every_kind(tmp_path: Path) -> None:
    content = [
        {"type": "reasoning", "reasoning": "hm", "signature": "sig"}, {"type": "reasoning", "reasoning": "blob", "redacted": True},
        {"type": "text", "text": "see"}, {"type": "image", "image": "data:image/gif;base64,R0lGODlhAgADAA=="}, {"type": "odd", "x": 1},
        {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "web_search", "arguments": '{"query": "k"}', "result": "r"},
    ]  # fmt: skip
    failed = message("t", "tool", "", tool_call_id="c", function="look", error={"type": "timeout", "message": "too slow"})
    t = read(
        tmp_path / "t.json",
        log(sample([Q, {**A1, "content": content}, failed, message("u", "user", "Please proceed to the next step using your best judgement.")], [])),
    )
    assert t.messages[1].parts == (
        Reasoning("hm", 3), Reasoning(None, 4), Text("see"), Media("image", "image/gif", 2, 3, 10, t.messages[1].parts[3].sha256), Opaque("odd", 20),  # type: ignore[union-attr]
        ToolCall("w", "web_search", {"query": "k"}, '{"query": "k"}', True), ToolResult("w", "web_search", (Text("r"),)),
        ToolCall("c", "look", {"x": 1}, '{"x":1}'),
    )  # fmt: skip
    assert t.messages[2].parts == (ToolResult("c", "look", (Text("too slow"),), True),)
    assert t.messages[3].flags == {"meta"}
    assert [c.usage for c in t.calls] == [None]


def test_an_answer_from_inspects_own_cache_cost_nothing(tmp_path: Path) -> None:
    t = read(tmp_path / "t.json", log(sample([Q, A2], [request([Q], A2, cache="read")])))
    assert [c.usage for c in t.calls] == [None]


def archive(path: Path, *samples: dict[str, Any], **members: bytes) -> Path:
    held = {f"samples/{each['id']}_epoch_{each['epoch']}.json": json.dumps(each).encode() for each in samples}
    header = {key: value for key, value in log().items() if key != "samples"}
    return zipped(path, {"_journal/start.json": json.dumps(header).encode(), **held, **members})


def test_an_archive_has_a_run_for_each_sample(tmp_path: Path) -> None:
    samples = [{**BASIC, "id": id, "epoch": epoch} for id, epoch in ((10, 1), (9, 2), (9, 1))]
    runs = readers.read_all(archive(tmp_path / "x.eval", *samples))
    for run in runs:
        check(run)
    assert [run.id for run in runs] == ["9_epoch_1", "10_epoch_1", "9_epoch_2"]
    assert [run.title for run in runs] == ["demo 9", "demo 10", "demo 9 (epoch 2)"]
    assert [run.records.total for run in runs] == [5, 5, 5]
    assert readers.read(tmp_path / "x.eval", run="9_epoch_2").id == "9_epoch_2"


def test_a_damaged_sample_hides_no_good_one(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.eval", BASIC, **{"samples/2_epoch_1.json": b'{"id": 2, "mess', "samples/../../evil.json": b"[]"})
    [run] = readers.read_all(path)
    check(run)
    assert (len(run.messages), run.records.skipped) == (5, 2)
    assert [d.code for d in run.diagnostics].count("sample") == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["x.eval"]


def test_a_cut_archive_keeps_the_samples_before(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.eval", *({**BASIC, "id": id} for id in range(4)))
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"samples/3_epoch_1.json") + 60])
    runs = readers.read_all(path)
    for run in runs:
        check(run)
    assert [run.id for run in runs] == ["0_epoch_1", "1_epoch_1", "2_epoch_1"]
    assert {"archive", "member", "sample"} <= {d.code for d in runs[0].diagnostics}
    assert runs[0].records.skipped == 1


def test_an_archive_packed_by_zstd(tmp_path: Path) -> None:
    [run] = readers.read_all(zstd_zipped(tmp_path / "x.eval", "samples/1_epoch_1.json", json.dumps(BASIC).encode()))
    check(run)
    assert len(run.messages) == 5
    assert [d.code for d in run.diagnostics] == ["header"]


def test_a_bomb_in_an_archive_is_told(tmp_path: Path) -> None:
    [run] = readers.read_all(archive(tmp_path / "x.eval", BASIC, **{"samples/bomb.json": b" " * (1 << 27)}))
    assert run.records.skipped == 1
    assert any("larger than any transcript" in d.text for d in run.diagnostics)


def test_a_log_without_samples_is_a_session_in_which_nothing_was_said(tmp_path: Path) -> None:
    t = read(tmp_path / "t.json", {key: value for key, value in log().items() if key != "samples"})
    assert (t.messages, t.records.total, t.meta["model"]) == ((), 0, "m/one")


def test_events_alone(tmp_path: Path) -> None:
    events = [span("b", "branch", "try"), request([S, Q], A1), request([S, Q, A1, T1], A2), request([S, Q, A1, T1, message("z", "user", "z")], A3, span="b"), 7]
    t = read(tmp_path / "t.json", {"events": events})
    assert (t.records.total, t.records.messages, t.records.metadata, t.records.skipped) == (5, 3, 1, 1)
    assert [(x.id, x.kind) for x in t.threads] == [("main", "main"), ("try", "branch")]
    assert [m.id for m in t.messages if m.thread == "try"] == ["z", "a3"]
    assert t.calls[2].context is not None
    assert t.calls[2].context[:4] == (0, 1, 2, 3)


@pytest.mark.parametrize("type", ["agent", "branch", "scorer", "solver"])
def test_spans_that_name_each_other_and_deep_ones(tmp_path: Path, type: str) -> None:
    loop = [span("a", type, "a", "b"), span("b", type, "b", "a"), request([Q], A2, span="a"), request([message("y", "user", "y")], A3, span="b")]
    read(tmp_path / "t.json", log(sample([Q, A2], loop)))
    deep = [span(f"s{at}", type, f"n{at}", f"s{at - 1}") for at in range(3_000)]
    read(tmp_path / "u.json", log(sample([Q, A2], [*deep, request([Q], A3, span="s2999")])))
    inner: list[Any] = [request([Q], A3)]
    for at in range(60):
        inner = [{"event": "tool", "id": f"t{at}", "function": "f", "timestamp": "", "events": inner}]
    t = read(tmp_path / "v.json", log(sample([Q, A2], inner)))
    assert "nesting" in {d.code for d in t.diagnostics}


@pytest.mark.transcripts
def test_others_logs_add_up() -> None:
    """Requests sum to what each sample states; only logs from which samples were taken out state more."""
    for path in sorted((SHARED / "transcripts" / "inspect-ai").iterdir()):
        runs = readers.read_all(path)
        for t in runs:
            check(t)
            assert t.records.skipped == 0
        told = [d.code for t in runs for d in t.diagnostics]
        assert told == (["totals"] if "docent" in path.name or "no-samples" in path.name else []), path.name


@pytest.mark.transcripts
def test_damaged_copies(tmp_path: Path) -> None:
    rng = random.Random(2)
    for name in ("inspect_ai__log_message_deduplication.eval", "inspect_ai__log_images.json"):
        data = (SHARED / "transcripts" / "inspect-ai" / name).read_bytes()
        for number in range(60):
            damaged = bytearray(data[: rng.randrange(1, len(data))] if number % 2 else data)
            for _ in range(0 if number % 4 == 1 else rng.randrange(1, 9)):
                damaged[rng.randrange(len(damaged))] = rng.choice(b'{}[]",:x0\n')
            (tmp_path / "t").write_bytes(damaged)
            try:
                found = readers.read_all(tmp_path / "t")
            except ReadError:
                continue
            for t in found:
                check(t)
