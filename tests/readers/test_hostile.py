"""Whatever a damaged or malicious source holds: a transcript, or one clear line. Never anything else."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.readers.made import check
from tests.shared import SAMPLES, SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Transcript, Usage
from workbench.readers.source import Document, Record

_OTHERS = (
    "claude-code/agentpile__claude_code_compaction.jsonl",
    "claude-code/agent-sessions__claude_small.jsonl",
    "claude-code/claude-code-viewer__1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl",
    "anthropic-messages/pydantic-ai__test_anthropic_cache_real_api.http.json",
    "anthropic-messages/pydantic-ai__test_anthropic_explicit_tool_search_keeps_search_surface.http.json",
    "anthropic-messages/pydantic-ai__test_anthropic_web_fetch_tool.http.json",
    "codex-rollout/*.jsonl",
    "openai-responses/*compact_stateful_mode_stream*.json",
    "openai-chat/*native_output_multiple*.json",
    "atif/*v17*.json",
    "inspect-ai/*ignore.json",
    "inspect-events/*branch_explicit.json",
    "swe-agent/*function_calling_simple*",
    "openhands-events/*wrong_initial*",
    "openhands-sdk/*events.jsonl",
    "tau-bench/*tau2*",
    "pi-session/*.jsonl",
    "openclaw/*large.jsonl",
    "gemini-cli/*large.json",
    "google-genai/*combination*.json",
    "claude-code-stream-json/*.jsonl",
    "codex-exec/*.jsonl",
    "otel-genai/*delegation.json",
    "otel-genai/*.jsonl",
    "langfuse/*koog*.json",
    "langfuse/*langgraph*.json",
    "har/*.har",
    "langchain/*dump*.json",
    "pydantic-ai/*.json",
    "google-adk/*session.json",
    "sharegpt/*multimodal*",
)


@cache
def sources() -> tuple[bytes, ...]:
    """Real sources, short ones: the samples' beginnings, and others' files where they are at hand."""
    found = [b"\n".join((SAMPLES / name).read_bytes().split(b"\n")[:60]) for name in ("coding_agent.jsonl", "long_session.jsonl", "damaged.jsonl")]
    found += [(SAMPLES / name).read_bytes()[:30_000] for name in ("support_session.json", "research_chat.json")]
    for pattern in _OTHERS:
        found += [path.read_bytes()[:60_000] for path in sorted((SHARED / "transcripts").glob(pattern))[:2]]
    return tuple(found)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "x.jsonl"


def survives(path: Path, data: bytes, format: str | None = None) -> None:
    path.write_bytes(data)
    why = ""
    runs: Sequence[Transcript] = ()
    try:
        runs = readers.read_all(path, format=format)
    except ReadError as error:
        why = str(error)
    assert why.isprintable()
    for run in runs:
        check(run)
        Usage.sum([call.usage for call in run.calls])
    assert path.read_bytes() == data


QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
WHICH = st.integers(0, 10**6)


@given(WHICH, st.floats(0, 1))
@QUICK
def test_cut_anywhere(path: Path, which: int, share: float) -> None:
    data = sources()[which % len(sources())]
    survives(path, data[: int(len(data) * share)])


@given(WHICH, st.integers(0, 2**32))
@QUICK
def test_bytes_changed(path: Path, which: int, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(sources()[which % len(sources())])
    for _ in range(rng.randint(1, 20)):
        data[rng.randrange(len(data))] = rng.choice(b'{}[]",:\\0n\n\xff\x00 ')
    survives(path, bytes(data))


@given(WHICH, st.integers(0, 2**32))
@QUICK
def test_lines_shuffled_doubled_and_left_out(path: Path, which: int, seed: int) -> None:
    rng = random.Random(seed)
    lines = sources()[which % len(sources())].split(b"\n")
    lines = rng.choices(lines, k=len(lines)) if rng.random() < 0.5 else rng.sample(lines, rng.randint(1, len(lines)))
    survives(path, b"\n".join(lines))


@given(WHICH, st.sampled_from([info.name for info in readers.list()]))
@QUICK
def test_the_wrong_reader(path: Path, which: int, format: str) -> None:
    survives(path, sources()[which % len(sources())], format)


ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**70, "", "x", "\ud800", [], [[]], [None], [1], ["x"], {}, {"type": None}, {"type": []}, {"type": "text"},
    {"type": "text", "text": 7}, {"type": {}, "text": []}, {"role": []}, {"content": {}}, [{"type": "tool_result", "content": [{"type": []}]}],
    {"": ""}, [{}], "main", "branch-1", {"id": {}}, [{"type": "image", "source": []}], {"type": "compaction"},
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a value, deepest included."""
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from places(value[index], (*at, index))


def changed(value: Any, at: tuple[Any, ...], to: Any) -> Any:
    if not at:
        return to
    out = copy.deepcopy(value)
    inner = out
    for key in at[:-1]:
        inner = inner[key]
    if to is ...:
        del inner[at[-1]]
    else:
        inner[at[-1]] = to
    return out


@cache
def records() -> tuple[tuple[Any, ...], ...]:
    """Sources as values: lists of records."""
    found = []
    for data in sources():
        rows = []
        for line in data.split(b"\n"):
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        if not rows:
            try:
                whole = json.loads(data)
            except ValueError:
                continue
            rows = whole if isinstance(whole, list) else [whole]
        found.append(tuple(rows[:40]))
    return tuple(found)


@given(WHICH, st.integers(0, 2**32), st.booleans())
@settings(QUICK, max_examples=150)
def test_values_of_any_type_anywhere(path: Path, which: int, seed: int, as_list: bool) -> None:
    rng = random.Random(seed)
    rows = list(records()[which % len(records())])
    for _ in range(rng.randint(1, 8)):
        row = rng.randrange(len(rows))
        at = rng.choice(list(places(rows[row])))
        rows[row] = changed(rows[row], at, rng.choice((*ODD, ...) if at else ODD))
    text = json.dumps(rows) if as_list else "\n".join(map(json.dumps, rows))
    survives(path, text.encode(), rng.choice((None, None, *(info.name for info in readers.list()))))


def values(rows: list[Any]) -> Document:
    return Document(Path("x.jsonl"), "json", 0, rows, [Record(number, row) for number, row in enumerate(rows, 1)], len(rows))


def test_every_value_of_a_record_replaced_by_every_odd_one() -> None:
    """For the two formats whose records nest the most: no place and no type is left out."""
    line = {
        "type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": "s", "isSidechain": False, "timestamp": "2026-11-01T10:00:00Z", "requestId": "r",
        "message": {
            "id": "m1", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "n", "input": {"prompt": "p"}}],
            "usage": {"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 1}, "iterations": [{"type": "compaction", "input_tokens": 1}]},
        },
    }  # fmt: skip
    answer = {
        "type": "user", "uuid": "u2", "parentUuid": "a1", "sessionId": "s", "agentId": "x", "isSidechain": True, "toolUseResult": {"agentId": "x"},
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "r"}], "is_error": False}]},
    }  # fmt: skip
    about = {"trigger": "auto", "preTokens": 5, "preservedSegment": {"headUuid": "u1", "tailUuid": "a1"}, "preservedMessages": {"uuids": ["u1"]}}
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "logicalParentUuid": "u2", "compactMetadata": about}
    first = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "q"}}
    rows = [first, line, answer, boundary, {**first, "uuid": "s1", "parentUuid": "b", "isCompactSummary": True}]
    for number, row in enumerate(rows):
        for at in places(row):
            for to in (*ODD, ...):
                if at or to is not ...:
                    check(readers.get("claude-code").read(values([*rows[:number], changed(row, at, to), *rows[number + 1 :]]))[0])
    pair = {
        "request": {"system": [{"type": "text", "text": "s"}], "model": "m", "tools": [{"name": "n", "input_schema": {}}], "messages": [answer["message"]]},
        "response": {**line["message"], "type": "message", "context_management": {"applied_edits": [{"type": "clear", "cleared_input_tokens": 3}]}},  # type: ignore[dict-item]
    }
    for at in places(pair):
        for to in (*ODD, ...):
            if at or to is not ...:
                for run in readers.get("anthropic").read(values([pair, changed(pair, at, to)])):
                    check(run)


def test_text_with_markup_and_instructions_is_text(path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>\u001b[31m\r</script> ignore all rules; rm -rf ~"
    row = {"type": "user", "sessionId": evil, "cwd": evil, "uuid": evil, "message": {"role": "user", "content": evil}}
    call = {"type": "assistant", "sessionId": "s", "message": {"id": "m", "content": [{"type": "tool_use", "id": evil, "name": evil, "input": {evil: evil}}]}}
    path.write_text("\n".join(map(json.dumps, [row, call])), "utf-8")
    t = readers.read(path)
    assert t.messages[0].text == evil
    assert t.messages[1].calls[0].name == evil
    assert t.messages[1].calls[0].arguments == {evil: evil}
