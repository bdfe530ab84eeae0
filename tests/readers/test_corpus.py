"""Every file made by others is read as what it is, or refused in one line; damaged copies never raise anything else."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import check
from tests.shared import SAMPLES, SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import MAIN, Transcript
from workbench.validity import check_pairs

ROOT = SHARED / "transcripts"
#: Formats whose records the manifest counts as we do.
COUNTED = {
    "codex-exec",
    "claude-code-lines",
    "claude-code-stream-json",
    "pi-session",
    "openclaw",
    "gemini-cli",
    "google-genai",
    "atif",
    "inspect-ai",
    "inspect-events",
    "swe-agent",
    "mini-swe-agent",
    "openhands-events",
    "openhands-sdk",
    "openhands-eval-output",
    "tau-bench",
    "otel-genai",
    "langfuse",
    "langchain",
    "pydantic-ai",
    "google-adk",
    "sharegpt",
}
FORMATS = COUNTED | {"anthropic-messages", "claude-code", "claude-code-web", "codex-rollout", "har", "openai-agents", "openai-chat", "openai-responses"}
#: A file beside a session, not one.
SIDECARS = {"claude-code/atif_make__subagents_agent-abc123.meta.json"}
#: Sources of one or few records that stand for every shape, for the damage below.
SEEDS = (
    "otel-genai/agentpile__openai_agents_0.24.0_oi_2.5.3.jsonl",
    "otel-genai/agentpile__pydantic_ai_2.58.0_delegation.json",
    "langfuse/langfuse__koog-2025-08-26.json",
    "langfuse/langfuse__pydantic-ai-tools-2025-12-04.trace.json",
    "har/atif_make__har-anthropic-multiturn.har",
    "openai-chat/langfuse__chat_ml_json.json",
    "openai-chat/pydantic-ai__test_openai_tool_output.http.json",
    "openai-responses/pydantic-ai__test_openai_responses_compact_messages.http.json",
    "openai-responses/pydantic-ai__test_openai_responses_model_mcp_server_tool.http.json",
    "codex-rollout/agent-sessions__codex_small.jsonl",
    "codex-rollout/cc_session_core__codex_rollout.jsonl",
    "codex-rollout/agent-sessions__session_branch.jsonl",
    "codex-exec/atif_make__codex-exec.jsonl",
    "atif/phoenix__v17_embedded_subagents.json",
    "inspect-ai/inspect_ai__ignore.json",
    "swe-agent/SWE-agent__demonstrations_function_calling_simple.traj",
    "openhands-events/OpenHands__wrong_initial_state.json",
    "openhands-sdk/software-agent-sdk__goal_fixtures_events.jsonl",
    "tau-bench/agentpile__tau2_bench_alpha-model.jsonl",
    "claude-code-stream-json/atif_make__claude-code-stream.jsonl",
    "pi-session/agent-sessions__pi_small.jsonl",
    "openclaw/agent-sessions__openclaw_large.jsonl",
    "gemini-cli/agent-sessions__gemini_large.json",
    "google-genai/pydantic-ai__test_google_model_web_search_tool.http.json",
    "langchain/GENERATED__dumpd.json",
    "langchain/GENERATED__convert_to_openai_messages.json",
    "pydantic-ai/GENERATED__all_messages.json",
    "google-adk/GENERATED__session.json",
    "sharegpt/LLaMA-Factory__mllm_demo.json",
)
ODD: tuple[Any, ...] = (
    None, [], {}, 0, -1, 1e308, 10**30, True, "", "\ud800", "x" * 50_000, [[[[[[]]]]]], [None], [{}], {"type": []}, {"": {}}, [7], {"id": 5, "type": "message"},
)  # fmt: skip


def rows() -> list[dict[str, str]]:
    """The manifest."""
    with (ROOT / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def manifest() -> list[tuple[str, str]]:
    if not (ROOT / "MANIFEST.tsv").is_file():
        return [("", "")]  # one case, which the mark skips with its reason
    return [(row["path"], row["format"]) for row in rows()]


def outcome(path: Path, format: str | None = None) -> str:
    """The format that a file is read as, every transcript checked; the name of the error if it is refused."""
    refused: ReadError | None = None
    transcripts: Sequence[Transcript] = ()
    try:
        transcripts = readers.read_all(path, format=format)
    except ReadError as error:
        refused = error
    assert "\n" not in str(refused)
    assert refused is None or path.name in str(refused)
    for transcript in transcripts:
        check(transcript)
    return transcripts[0].source.format if refused is None else type(refused).__name__


@pytest.mark.transcripts
@pytest.mark.parametrize("folder", sorted({format for _, format in manifest()}))
def test_files_are_read_as_the_manifest_says(folder: str) -> None:
    wrong = {}
    for path, format in manifest():
        if format != folder:
            continue
        found = outcome(ROOT / path)
        if format in FORMATS and found != ("UnknownFormat" if path in SIDECARS else readers.SYNONYMS.get(format, format)):
            wrong[path] = found
    assert wrong == {}


@pytest.mark.transcripts
def test_files_of_a_kept_folder_all_read() -> None:
    for folder in ("openai-chat", "openai-responses", "codex-rollout"):
        for path in sorted((ROOT / folder).iterdir()):
            assert outcome(path) not in ("ReadError", "UnknownFormat"), path.name


@pytest.mark.transcripts
def test_records_are_the_lines_elements_and_pairs() -> None:
    for path, format in manifest():
        if format not in ("openai-responses", "codex-rollout", "openai-chat"):
            continue
        text = (ROOT / path).read_text("utf-8")
        expected = sum(bool(line.strip()) for line in text.split("\n")) if path.endswith(".jsonl") else len(json.loads(text))
        transcripts = readers.read_all(ROOT / path)
        assert sum(transcript.records.total for transcript in transcripts) == expected, path
        assert all(transcript.records.skipped == 0 for transcript in transcripts), path


@pytest.mark.transcripts
def test_records_are_as_many_as_the_manifest_says() -> None:
    wrong = {}
    for row in rows():
        if row["format"] in COUNTED and row["records"]:
            found = sum(transcript.records.total for transcript in readers.read_all(ROOT / row["path"]))
            if str(found) != row["records"]:
                wrong[row["path"]] = (found, row["records"])
    assert wrong == {}


@pytest.mark.transcripts
def test_every_result_has_its_call_or_is_a_finding() -> None:
    for path, format in manifest():
        if format not in FORMATS or path in SIDECARS:
            continue
        for transcript in readers.read_all(ROOT / path):
            for thread in transcript.threads:
                messages = [transcript.messages[index] for index in transcript.thread(thread.id)]
                calls = {call.id for message in messages for call in message.calls}
                found = {finding.messages[0] for finding in check_pairs(messages) if finding.rule in ("orphan_result", "duplicate_result")}
                lost = {message.index for message in messages if message.result is not None and message.result.call_id not in calls}
                assert lost <= found, path
            assert MAIN in {thread.id for thread in transcript.threads}


@pytest.mark.transcripts
def test_no_reader_fails_on_any_format_when_it_is_forced() -> None:
    for path, _ in manifest():
        if (ROOT / path).stat().st_size < 60_000:
            for info in readers.list():
                outcome(ROOT / path, info.name)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, as the keys that lead to it."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _places(child, (*path, key))


def _changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with one place replaced."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _changed(value[path[0]], path[1:], new)
    return copy


@pytest.mark.transcripts
@pytest.mark.parametrize("seed", SEEDS)
def test_any_field_of_any_type(seed: str, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    text = (ROOT / seed).read_text("utf-8")
    name = readers.read(ROOT / seed).source.format
    lines = seed.endswith(".jsonl")
    rows = [json.loads(line) for line in text.split("\n") if line.strip()] if lines else json.loads(text)
    places = list(_places(rows))
    for number in range(40):
        damaged = rows
        for place in random_.sample(places, 1 + number % 6):
            try:
                damaged = _changed(damaged, place, random_.choice(ODD))
            except (KeyError, IndexError, TypeError):  # a change before took the place away
                continue
        path = tmp_path / f"t.{'jsonl' if lines else 'json'}"
        path.write_text("\n".join(map(json.dumps, damaged)) if lines and isinstance(damaged, list) else json.dumps(damaged), "ascii")
        outcome(path, name)
        outcome(path)


@pytest.mark.transcripts
@pytest.mark.parametrize("seed", SEEDS)
def test_cut_at_any_byte(seed: str, tmp_path: Path) -> None:
    data = (ROOT / seed).read_bytes()
    random_ = random.Random(seed)
    name = readers.read(ROOT / seed).source.format
    path = tmp_path / Path(seed).name
    for cut in (0, 1, 2, len(data) - 1, *(random_.randrange(len(data)) for _ in range(12))):
        path.write_bytes(data[:cut])
        outcome(path, name)
        outcome(path)


def test_cut_sample_keeps_the_lines_before(tmp_path: Path) -> None:
    source = SAMPLES / "long_session.jsonl"
    lines = source.read_bytes().split(b"\n")
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b"\n".join(lines[:200]) + b"\n" + lines[200][: len(lines[200]) // 2])
    transcript = readers.read(path)
    check(transcript)
    assert (transcript.records.total, transcript.records.skipped) == (201, 1)
    assert [(item.line, "unfinished" in item.text) for item in transcript.diagnostics if item.code == "json"] == [(201, True)]
