"""What each recorded request held before its conversation: kept with its call, one object while nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, read_with
from tests.shared import SHARED, needs_shared
from workbench.model import Prefix, ToolSpec, Transcript
from workbench.readers import anthropic, codex, openai_chat, openai_responses
from workbench.readers.base import Reader

READERS: dict[str, Reader] = {"anthropic": anthropic.READER, "chat": openai_chat.READER, "responses": openai_responses.READER}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def pair(api: str, number: int, system: str, tools: list[str], schema: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    """The request of turn `number`, which repeats all before it, and its answer."""
    said = f"answer {number}"
    talk: list[dict[str, Any]] = []
    for turn in range(number):
        talk += [{"role": "user", "content": f"question {turn}"}, {"role": "assistant", "content": f"answer {turn}"}]
    talk.append({"role": "user", "content": f"question {number}"})
    if api == "anthropic":
        offered: list[dict[str, Any]] = [{"name": name, "description": "d", "input_schema": schema} for name in tools]
        request = {"model": "claude-sonnet-4-5", "system": system, "messages": talk, "tools": offered}
        return {"request": request, "response": {"type": "message", "id": f"r{number}", "role": "assistant", "content": [{"type": "text", "text": said}]}}
    if api == "chat":
        offered = [{"type": "function", "function": {"name": name, "description": "d", "parameters": schema}} for name in tools]
        lead = [{"role": "system", "content": system}] if system else []
        answer = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return {
            "request": {"model": "gpt-5", "messages": [*lead, *talk], "tools": offered},
            "response": {"id": f"r{number}", "object": "chat.completion", "choices": [answer]},
        }
    offered = [{"type": "function", "name": name, "description": "d", "parameters": schema} for name in tools]
    item = {"type": "message", "id": f"m{number}", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
    return {
        "request": {"model": "gpt-5", "instructions": system, "input": talk, "tools": offered},
        "response": {"id": f"r{number}", "object": "response", "output": [item]},
    }


def read(api: str, tmp_path: Path, *pairs: dict[str, Any]) -> Transcript:
    [transcript] = read_with(READERS[api], jsonl(tmp_path / "log.jsonl", pairs))
    check(transcript)
    return transcript


def spec(name: str) -> ToolSpec:
    return ToolSpec(name, "d", SCHEMA)


@pytest.mark.parametrize("api", READERS)
def test_one_object_while_nothing_changes(api: str, tmp_path: Path) -> None:
    calls = read(api, tmp_path, *(pair(api, number, "Be short.", ["ls"]) for number in range(4))).calls
    assert calls[0].prefix == Prefix(("Be short.",), (spec("ls"),))
    assert all(call.prefix is calls[0].prefix for call in calls)


@pytest.mark.parametrize("api", READERS)
def test_each_request_keeps_its_own(api: str, tmp_path: Path) -> None:
    made = [("It is 10:01.", ["ls"]), ("It is 10:02.", ["ls"]), ("It is 10:02.", ["ls", "rm"]), ("", ["rm", "ls"]), ("It is 10:01.", ["ls"])]
    transcript = read(api, tmp_path, *(pair(api, number, system, tools) for number, (system, tools) in enumerate(made)))
    assert [call.prefix for call in transcript.calls] == [Prefix((system,) if system else (), tuple(map(spec, tools))) for system, tools in made]
    first, second = transcript.calls[:2]
    assert first.prefix is not None
    assert second.prefix is not None
    assert first.prefix.tools is second.prefix.tools
    assert [message.text for message in transcript.messages if message.role == "user"] == [f"question {number}" for number in range(5)]
    assert [item.text for item in transcript.diagnostics if item.code == "system"] == [
        "record 2: the system text changes between requests; the first is shown, each call keeps its own"
    ]


def test_a_leading_system_message_that_was_not_sent_is_in_no_context(tmp_path: Path) -> None:
    """Chat Completions keep the system text in the list: another one at its head is no new message and no new run."""
    transcript = read("chat", tmp_path, *(pair("chat", number, f"It is 10:0{number % 2}.", []) for number in range(3)))
    assert [message.role for message in transcript.messages] == ["system", *["user", "assistant"] * 3]
    assert [call.context for call in transcript.calls] == [(0, 1), (1, 2, 3), (0, 1, 2, 3, 4, 5)]


@pytest.mark.parametrize("api", READERS)
def test_the_order_of_keys_in_a_schema_is_a_change(api: str, tmp_path: Path) -> None:
    """A provider's cache looks at bytes; equal JSON with other bytes is a miss."""
    turned = dict(reversed(SCHEMA.items()))
    first, second = read(api, tmp_path, pair(api, 0, "S", ["ls"]), pair(api, 1, "S", ["ls"], turned)).calls
    assert first.prefix == second.prefix
    assert first.prefix is not second.prefix


def test_what_is_not_recorded_is_none(tmp_path: Path) -> None:
    whole = pair("anthropic", 1, "S", ["ls"])
    [saved] = read_with(anthropic.READER, as_json(tmp_path / "a.json", {**whole["request"], "response": whole["response"]}))
    [answers] = read_with(openai_chat.READER, jsonl(tmp_path / "b.jsonl", [pair("chat", number, "S", [])["response"] for number in range(2)]))[:1]
    stored = pair("responses", 0, "", [])
    stored["request"]["prompt"] = {"id": "pmpt_1"}  # its text is with the provider
    asked = read("responses", tmp_path, stored)
    meta = {"type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "S"}}}  # of the session, not of a request
    said = {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}}
    [rollout] = read_with(codex.READER, jsonl(tmp_path / "d.jsonl", [meta, said]))
    for transcript in (saved, answers, asked, rollout):
        assert transcript.calls
        assert {call.prefix for call in transcript.calls} == {None}


def test_a_compaction_has_instructions_of_its_own(tmp_path: Path) -> None:
    compact = {
        "request": {"model": "gpt-5", "instructions": "Summarise.", "input": pair("responses", 1, "", [])["request"]["input"][:2]},
        "response": {"id": "c", "object": "response.compaction", "output": [{"type": "compaction", "id": "x", "encrypted_content": "abc"}]},
    }
    [transcript] = read_with(openai_responses.READER, jsonl(tmp_path / "log.jsonl", [pair("responses", 0, "S", []), compact]))
    assert [(call.kind, call.prefix) for call in transcript.calls] == [("response", Prefix(("S",))), ("compaction", None)]


@needs_shared
def test_captures_made_by_others() -> None:
    """A request of theirs that has no system text, tools or leading system message is recorded all the same."""
    recorded = 0
    for folder, reader in (("anthropic-messages", anthropic.READER), ("openai-chat", openai_chat.READER), ("openai-responses", openai_responses.READER)):
        for path in sorted((SHARED / "transcripts" / folder).glob("*.http.json")):
            for transcript in read_with(reader, path):
                calls = [call for call in transcript.calls if call.kind == "response"]
                recorded += len(calls)
                assert all(call.prefix is not None for call in calls), path.name
                assert {block for call in calls if call.prefix for block in call.prefix.system} >= set(transcript.system), path.name
    assert recorded > 20
