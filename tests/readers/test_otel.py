"""Spans of traces: repeated prefixes are one conversation, agents called by tools are threads, tokens are those of the requests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Media, Reasoning
from workbench.readers.span_usage import counted

FILES = SHARED / "transcripts" / "otel-genai"
SECOND = 1_000_000_000
START = 1_772_359_200 * SECOND


def value(of: Any) -> dict[str, Any]:
    """A value as OTLP writes it."""
    if isinstance(of, bool):
        return {"boolValue": of}
    if isinstance(of, int):
        return {"intValue": str(of)}
    if isinstance(of, list) and of and isinstance(of[0], str):
        return {"arrayValue": {"values": [value(item) for item in of]}}
    return {"stringValue": of if isinstance(of, str) else json.dumps(of)}


def span(at: int, id: str, parent: str = "", *, trace: str = "t1", events: list[Any] | None = None, status: int = 0, **attributes: Any) -> dict[str, Any]:
    named = {name.replace("__", "."): held for name, held in attributes.items()}
    return {
        "traceId": trace, "spanId": id, "parentSpanId": parent, "name": id,
        "startTimeUnixNano": str(START + at * SECOND), "endTimeUnixNano": str(START + (at + 1) * SECOND),
        "attributes": [{"key": name, "value": value(held)} for name, held in named.items()],
        "status": {"code": status}, "events": events or [],
    }  # fmt: skip


def otlp(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "x"}, "spans": [*spans]}]}]}


def text(role: str, said: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": said}]}


CALL = {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"q": 1}}]}
RESULT = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": {"n": 2}}]}


def chat(at: int, id: str, sent: list[Any], got: list[Any], tokens: tuple[int, int] = (10, 2), parent: str = "", **more: Any) -> dict[str, Any]:
    named = {
        "gen_ai__operation__name": "chat",
        "gen_ai__request__model": "gpt-4o",
        "gen_ai__usage__input_tokens": tokens[0],
        "gen_ai__usage__output_tokens": tokens[1],
    }
    return span(at, id, parent, **{**named, "gen_ai__input__messages": sent, "gen_ai__output__messages": got, **more})


TALK = (
    chat(1, "a", [text("user", "q")], [CALL], (10, 2), parent="root", gen_ai__system_instructions=[{"type": "text", "content": "Be brief."}]),
    chat(3, "b", [text("user", "q"), CALL, RESULT], [text("assistant", "two")], (20, 3), parent="root"),
    chat(5, "c", [text("user", "q"), CALL, RESULT, text("assistant", "two"), text("user", "q2")], [text("assistant", "three")], (30, 4), parent="root"),
    span(0, "root", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="boss", gen_ai__usage__input_tokens=60, gen_ai__usage__output_tokens=9),
)


def test_repeated_history_is_one_conversation(tmp_path: Path) -> None:
    (transcript,) = readers.read_all(as_json(tmp_path / "t.json", otlp(*TALK)))
    check(transcript)
    assert (transcript.source.format, transcript.source.confidence) == ("otel-genai", 0.97)
    assert shape(transcript) == [
        ("user", "q", ()),
        ("assistant", "", ("c1",)),
        ("tool", '{"n":2}', ("c1",)),
        ("assistant", "two", ()),
        ("user", "q2", ()),
        ("assistant", "three", ()),
    ]
    assert transcript.messages[1].parts[0] == Reasoning("hm")
    assert [call.context for call in transcript.calls] == [(0,), (0, 1, 2), (0, 1, 2, 3, 4)]
    assert [call.usage.total for call in transcript.calls if call.usage] == [12, 23, 34]  # the agent's own sum is not a call
    assert (transcript.system, transcript.model, transcript.meta["agent"]) == (("Be brief.",), "gpt-4o", "boss")
    assert (transcript.records.messages, transcript.records.metadata, transcript.records.total) == (3, 1, 4)
    assert transcript.messages[0].ts == START // 1_000_000 + 1000


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
@pytest.mark.parametrize("form", ["object", "lines", "one line", "snake", "wrapped"])
def test_order_and_wrapping_do_not_matter(tmp_path: Path, order: tuple[int, ...], form: str) -> None:
    spans = [TALK[at] for at in order]
    path = tmp_path / "t.json"
    if form == "lines":
        jsonl(path, [otlp(item) for item in spans])
    elif form == "one line":
        jsonl(path, [otlp(*spans)])
    elif form == "snake":
        as_json(path, {"batches": [{"instrumentationLibrarySpans": [{"spans": spans}]}]})
    else:
        as_json(path, {"trace": otlp(*spans)} if form == "wrapped" else otlp(*spans))
    transcript = readers.read(path)
    check(transcript)
    assert [row[1] for row in shape(transcript)] == ["q", "", '{"n":2}', "two", "q2", "three"]
    assert transcript.records.total == 4


def openinference(at: int, id: str, sent: list[dict[str, Any]], got: list[dict[str, Any]], form: str) -> dict[str, Any]:
    """A span as Phoenix exports it: attributes flat, nested, or in between."""
    attributes: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 9, "llm.token_count.completion": 1}
    attributes["llm.token_count.prompt_details.cache_read"] = 4
    for name, messages in (("llm.input_messages", sent), ("llm.output_messages", got)):
        if form == "flat":
            attributes.update({f"{name}.{at}.{key}": held for at, message in enumerate(messages) for key, held in message.items()})
        else:
            attributes[name] = messages
    if form == "nested":
        counts = {"prompt": 9, "completion": 1, "prompt_details": {"cache_read": 4}}
        llm = {"input_messages": sent, "output_messages": got, "model_name": "m", "token_count": counts}
        attributes = {"llm": llm, "openinference": {"span": {"kind": "LLM"}}}
    return {
        "name": id, "context": {"trace_id": "t", "span_id": id}, "parent_id": None, "span_kind": "LLM",
        "start_time": f"2026-03-01T10:00:0{at}+00:00", "end_time": f"2026-03-01T10:00:0{at}.5+00:00", "attributes": attributes, "status_code": "OK",
    }  # fmt: skip


@pytest.mark.parametrize("form", ["flat", "listed", "nested"])
@pytest.mark.parametrize("as_lines", [True, False])
def test_openinference_in_every_form(tmp_path: Path, form: str, as_lines: bool) -> None:
    user = {"message.role": "user", "message.contents.0.message_content.type": "text", "message.contents.0.message_content.text": "q"}
    call = {"message.role": "assistant", "message.tool_calls.0.tool_call.id": "c1", "message.tool_calls.0.tool_call.function.name": "f",
            "message.tool_calls.0.tool_call.function.arguments": '{"a": 1}'}  # fmt: skip
    result = {"message.role": "tool", "message.tool_call_id": "c1", "message.content": "x"}
    said, done = ({"message.role": "assistant", "message.content": text} for text in ("Let me see.", "done"))
    spans = [openinference(1, "a", [user], [said, call], form), openinference(2, "b", [user, said, call, result], [done], form)]
    transcript = readers.read((jsonl if as_lines else as_json)(tmp_path / "spans.json", spans))
    check(transcript)
    assert shape(transcript) == [("user", "q", ()), ("assistant", "Let me see.", ("c1",)), ("tool", "x", ("c1",)), ("assistant", "done", ())]
    assert transcript.messages[1].calls[0].arguments == {"a": 1}
    assert [call.context for call in transcript.calls] == [(0,), (0, 1, 2)]
    assert [(call.usage.input_uncached, call.usage.cache_read, call.usage.output) for call in transcript.calls if call.usage] == [(5, 4, 1)] * 2
    assert transcript.records.total == 2


def test_an_agent_that_a_tool_started_is_a_thread_of_its_caller(tmp_path: Path) -> None:
    spans = (
        chat(1, "a", [text("user", "q")], [CALL], parent="root"),
        span(2, "tool", "root", gen_ai__operation__name="execute_tool", gen_ai__tool__name="find", gen_ai__tool__call__id="c1"),
        span(2, "inner", "tool", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="finder"),
        chat(2, "b", [text("user", "find 1")], [text("assistant", "2")], parent="inner"),
        chat(4, "c", [text("user", "q"), CALL, RESULT], [text("assistant", "two")], parent="root"),
        span(0, "root", gen_ai__operation__name="invoke_agent"),
    )
    (transcript,) = readers.read_all(as_json(tmp_path / "t.json", otlp(*spans)))
    check(transcript)
    assert [(item.id, item.kind, item.parent, item.spawned_by) for item in transcript.threads] == [
        ("main", "main", None, None),
        ("finder", "subagent", "main", "c1"),
    ]
    assert [message.text for message in transcript.messages if message.thread == "finder"] == ["find 1", "2"]
    assert [message.role for message in transcript.messages if message.thread == "main"] == ["user", "assistant", "tool", "assistant"]


def test_traces_that_do_not_go_on_with_each_other_are_runs(tmp_path: Path) -> None:
    first = chat(1, "a", [text("user", "q")], [text("assistant", "x")])
    on = {**chat(3, "b", [text("user", "q"), text("assistant", "x"), text("user", "q2")], [text("assistant", "y")]), "traceId": "t2"}
    other = {**chat(5, "c", [text("user", "other")], [text("assistant", "z")]), "traceId": "t3"}
    for path in (as_json(tmp_path / "t.json", otlp(first, on, other)), jsonl(tmp_path / "t.jsonl", [otlp(first, other), otlp(on)])):
        runs = readers.read_all(path)
        for run in runs:
            check(run)
        assert [[row[1] for row in shape(run)] for run in runs] == [["q", "x", "q2", "y"], ["other", "z"]]
        assert sum(run.records.total for run in runs) == (3 if path.suffix == ".json" else 2)


def test_a_request_in_a_wrapper_counts_once(tmp_path: Path) -> None:
    outer = chat(1, "outer", [text("user", "q")], [text("assistant", "x")], (99, 9))
    inner = span(1, "inner", "outer", gen_ai__operation__name="chat", gen_ai__request__model="m", gen_ai__usage__input_tokens=7, gen_ai__usage__output_tokens=1)
    transcript = readers.read(as_json(tmp_path / "t.json", otlp(outer, inner)))
    assert [row[:2] for row in shape(transcript)] == [("user", "q"), ("assistant", "x")]
    assert [call.usage.total for call in transcript.calls if call.usage] == [8]


def test_a_server_that_keeps_the_history(tmp_path: Path) -> None:
    """The second request sends a result only: it goes on with the conversation, and what the model saw is not known."""
    spans = (chat(1, "a", [text("user", "q")], [CALL]), chat(2, "b", [RESULT], [text("assistant", "two")]))
    transcript = readers.read(as_json(tmp_path / "t.json", otlp(*spans)))
    assert [row[0] for row in shape(transcript)] == ["user", "assistant", "tool", "assistant"]
    assert [call.context for call in transcript.calls] == [(0,), None]


def test_a_history_that_was_replaced_is_a_compaction(tmp_path: Path) -> None:
    short = [text("user", "Summary: q was asked."), CALL, RESULT, text("user", "go on")]
    spans = (
        chat(1, "a", [text("user", "q")], [text("assistant", "first")]),
        chat(2, "b", [text("user", "q"), text("assistant", "first"), text("user", "more")], [CALL], (40, 2)),
        chat(3, "c", short, [text("assistant", "end")], (20, 2)),
    )
    transcript = readers.read(as_json(tmp_path / "t.json", otlp(*spans)))
    check(transcript)
    (made,) = transcript.compactions
    assert (made.kind, made.tokens_before, made.trigger, [transcript.messages[at].role for at in made.kept]) == ("replace", 42, None, ["assistant"])
    assert made.summary is not None
    assert transcript.messages[made.summary].text == "Summary: q was asked."
    assert [transcript.messages[at].text for at in transcript.history(which="live")][-2:] == ["go on", "end"]
    assert transcript.calls[-1].context == (made.summary, 3, *(message.index for message in transcript.messages if message.role == "tool"), 6)


def test_older_events_and_numbered_prompts(tmp_path: Path) -> None:
    def event(name: str, **attributes: Any) -> dict[str, Any]:
        return {"name": name, "attributes": [{"key": key, "value": value(held)} for key, held in attributes.items()]}

    answer = {"role": "assistant", "content": "x", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
    choice = event("gen_ai.choice", index=0, message=answer)
    events = [event("gen_ai.system.message", content="s"), event("gen_ai.user.message", content="q"), choice]
    old = span(1, "a", events=events, gen_ai__operation__name="chat", gen_ai__system="openai")
    flat = {"role": "assistant", "content": "x", "tool_calls__0__id": "c", "tool_calls__0__name": "f", "tool_calls__0__arguments": "{}"}
    prompts = {
        f"gen_ai__prompt__{at}__{key}": held
        for at, held_ in enumerate((("system", "s"), ("user", "q")))
        for key, held in zip(("role", "content"), held_, strict=True)
    }
    named: dict[str, Any] = {**prompts, **{f"gen_ai__completion__0__{key}": held for key, held in flat.items()}, "gen_ai__usage__prompt_tokens": 5}
    numbered = span(1, "b", trace="t2", gen_ai__request__model="m", llm__request__type="chat", **named)
    logged = [
        {"event.name": "gen_ai.system.message", "role": "system", "content": "s"},
        {"event.name": "gen_ai.user.message", "role": "user", "content": "q"},
        {"event.name": "gen_ai.choice", "index": 0, "message": answer},
    ]
    listed = span(1, "c", gen_ai__operation__name="chat")
    listed["attributes"].append({"key": "events", "value": value(json.dumps(logged))})
    for item in (old, numbered, listed):
        transcript = readers.read(as_json(tmp_path / "t.json", otlp(item)))
        check(transcript)
        assert shape(transcript) == [("system", "s", ()), ("user", "q", ()), ("assistant", "x", ("c",))]


def test_vercel_and_media(tmp_path: Path) -> None:
    prompt = [{"role": "user", "content": [{"type": "text", "text": "q"}]},
              {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}}]},
              {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "f", "output": {"type": "text", "value": "r"}}]}]  # fmt: skip
    vercel = span(1, "a", ai__operationId="ai.streamText.doStream", ai__model__id="m", ai__prompt__messages=prompt, ai__response__text="x")
    transcript = readers.read(as_json(tmp_path / "t.json", otlp(vercel)))
    assert shape(transcript) == [("user", "q", ()), ("assistant", "", ("c",)), ("tool", "r", ("c",)), ("assistant", "x", ())]
    blob = {"role": "user", "parts": [{"type": "blob", "modality": "image", "mime_type": "image/gif", "content": "R0lGODlhAgADAA=="}]}
    seen = readers.read(as_json(tmp_path / "t.json", otlp(chat(1, "a", [blob], [text("assistant", "x")])))).messages[0].parts[0]
    assert isinstance(seen, Media)
    assert (seen.width, seen.height, seen.mime) == (2, 3, "image/gif")


def test_spans_without_content_keep_their_tokens(tmp_path: Path) -> None:
    quiet = [
        span(at, f"s{at}", gen_ai__operation__name="chat", gen_ai__request__model="m", gen_ai__usage__input_tokens=5, gen_ai__usage__output_tokens=at)
        for at in (1, 2)
    ]
    (transcript,) = readers.read_all(as_json(tmp_path / "t.json", otlp(*quiet)))
    check(transcript)
    assert (transcript.messages, [call.usage.total for call in transcript.calls if call.usage]) == ((), [6, 7])


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"input": 100, "output": 5}, (100, None, None, 5)),
        ({"input": 100, "read": 80, "write": 10, "output": 5}, (10, 80, 10, 5)),
        ({"input": 10, "read": 80, "output": 5}, (10, 80, None, 5)),
        ({"input": 100, "read": 80, "output": 5, "total": 185}, (100, 80, None, 5)),
        ({"input": 6, "output": 951, "reasoning": 1104, "total": 2061}, (6, None, None, 2055)),
        ({"input": 6, "output": 2055, "reasoning": 1104, "total": 2061}, (6, None, None, 2055)),
        ({"total": 5}, None),
        ({}, None),
    ],
)
def test_usage_by_the_spans_own_convention(raw: dict[str, Any], expected: Any) -> None:
    usage, fault = counted(raw)
    assert fault is None
    assert (None if usage is None else (usage.input_uncached, usage.cache_read, usage.cache_write_5m, usage.output)) == expected


def test_impossible_usage_is_said(tmp_path: Path) -> None:
    transcript = readers.read(as_json(tmp_path / "t.json", otlp(chat(1, "a", [text("user", "q")], [], (-5, 2)))))
    assert [item.code for item in transcript.diagnostics] == ["usage"]
    usage, fault = counted({"input": 5, "output": 845, "total": 2023})
    assert usage is not None
    assert fault == "the stated total is 2,023 tokens, its parts add up to 850"


def test_rings_of_parents_and_many_traces_end_soon(tmp_path: Path) -> None:
    ring = [chat(at, f"s{at}", [text("user", f"q{at}")], [text("assistant", "x")], parent=f"s{(at + 1) % 50}") for at in range(50)]
    begin = time.process_time()
    assert sum(len(run.messages) for run in readers.read_all(as_json(tmp_path / "t.json", otlp(*ring)))) == 100
    many = [chat(at, f"s{at}", [text("system", "same"), text("user", f"q{at}")], [text("assistant", f"x{at}")]) for at in range(3_000)]
    (one,) = readers.read_all(as_json(tmp_path / "t.json", otlp(*many)))
    assert len(one.threads) == 3_000
    assert time.process_time() - begin < 10


@pytest.mark.parametrize("odd", [None, 7, "x", [], {}, [None], [[]], {"x": [1]}, "{", "[[1]]", True])
def test_odd_values_anywhere(tmp_path: Path, odd: Any) -> None:
    base = json.loads(json.dumps(TALK[1]))
    values = [{**base, key: odd} for key in base] + [{**base, "attributes": [{**pair, "value": odd}, *base["attributes"]]} for pair in base["attributes"]]
    values += [{**base, "attributes": [{"key": pair["key"], "value": {"stringValue": json.dumps(odd)}}, *base["attributes"]]} for pair in base["attributes"]]
    for item in [otlp(*values), *({"resourceSpans": held} for held in (odd, [odd], [{"scopeSpans": odd}], [{"scopeSpans": [{"spans": odd}]}]))]:
        path = as_json(tmp_path / "t.json", item)
        for format in (None, "otel-genai"):
            try:
                runs = readers.read_all(path, format=format)
            except ReadError:
                continue
            for run in runs:
                check(run)


@pytest.mark.transcripts
@pytest.mark.skipif(not FILES.is_dir(), reason="the transcripts made by others are not at hand")
def test_real_traces() -> None:
    boss = readers.read(FILES / "agentpile__pydantic_ai_2.58.0_delegation.json")
    assert [(item.id, item.spawned_by) for item in boss.threads] == [("main", None), ("helper_agent", "call_ask_1")]
    own = [call.usage for call in boss.calls if call.thread == "main" and call.usage]
    assert (sum(usage.prompt or 0 for usage in own), sum(usage.output or 0 for usage in own)) == (109, 15)  # what the agent's span says
    weather, thanks = readers.read_all(FILES / "agentpile__pydantic_ai_2.58.0.json")
    assert [len(item.messages) for item in (weather, thanks)] == [5, 2]
    assert sum(call.usage.total or 0 for call in weather.calls if call.usage) == 132 + 40
    (handoff,) = readers.read_all(FILES / "agentpile__openai_agents_0.24.0_oi_2.5.3.jsonl")
    assert (len(handoff.messages), len(handoff.calls), handoff.records.total) == (7, 3, 3)
    assert [call.prefix.system for call in handoff.calls if call.prefix] == [("Route the customer.",)] * 2 + [("Handle refunds.",)]
