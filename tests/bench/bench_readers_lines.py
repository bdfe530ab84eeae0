"""Reading a session of 20 MB in each of the other formats of lines, against parsing the lines; see `bench_readers`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from tests.bench.common import Figure, cpu_times, parse_lines, rounds_of_work
from workbench import readers

_MESSAGES = 10_000
_TS = "2026-11-01T10:00:00.000Z"


def _pi() -> Iterator[dict[str, Any]]:
    yield {"type": "session", "version": 3, "id": "5a0c", "timestamp": _TS, "cwd": "/srv/project"}
    for at, (role, content) in enumerate(_rounds()):
        message: dict[str, Any] = {"role": "user" if role == "user" else "toolResult" if role == "tool" else "assistant", "timestamp": 1_793_527_200_000 + at}
        if role == "tool":
            message |= {"toolCallId": content[0], "toolName": "bash", "content": [{"type": "text", "text": content[1]}], "isError": False}
        elif role == "call":
            message["content"] = [{"type": "toolCall", "id": content[0], "name": content[1], "arguments": content[2]}]
        else:
            message["content"] = [{"type": "text", "text": content}]
        if role in ("assistant", "call"):
            cost = {"input": 0.1, "output": 0.2, "cacheRead": 0.1, "cacheWrite": 0.1, "total": 0.5}
            message |= {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "toolUse"}
            message["usage"] = {"input": 4, "output": 60, "cacheRead": 900 + at, "cacheWrite": 120, "totalTokens": 1_084 + at, "cost": cost}
        yield {"type": "message", "id": f"{at:08x}", "parentId": f"{at - 1:08x}" if at else None, "timestamp": _TS, "message": message}


def _gemini_cli() -> Iterator[dict[str, Any]]:
    yield {"sessionId": "5a0c", "projectHash": "ab12", "startTime": _TS, "lastUpdated": _TS}
    open_: dict[str, Any] = {}
    for at, (role, content) in enumerate(_rounds()):
        if role == "user":
            yield {"id": f"m{at:08x}", "timestamp": _TS, "type": "user", "content": [{"text": content}]}
        elif role == "tool":  # the message is written again, with what the call gave
            answer = {"functionResponse": {"id": content[0], "name": "shell", "response": {"output": content[1]}}}
            yield {**open_, "toolCalls": [{**open_.get("toolCalls", [{}])[0], "result": [answer], "status": "success"}]}
            yield {"$set": {"lastUpdated": _TS}}
        else:
            spent = {"input": 1_000 + at, "output": 50, "cached": 900, "thoughts": 10, "tool": 0, "total": 1_060 + at}
            open_ = {
                "id": f"m{at:08x}",
                "timestamp": _TS,
                "type": "gemini",
                "content": "" if role == "call" else content,
                "tokens": spent,
                "model": "gemini-3-pro",
            }
            if role == "call":
                open_["toolCalls"] = [{"id": content[0], "name": content[1], "args": content[2], "timestamp": _TS}]
            yield open_


def _claude_stream() -> Iterator[dict[str, Any]]:
    beside = {"session_id": "5a0c0000-0000-4000-8000-000000000000", "parent_tool_use_id": None}
    yield {"type": "system", "subtype": "init", "model": "claude-sonnet-4-5", "cwd": "/srv/project", **beside}
    for at, (role, content) in enumerate(_rounds()):
        uuid = f"{at:08x}-0000-4000-8000-000000000000"
        if role in ("user", "tool"):
            blocks = content if role == "user" else [{"type": "tool_result", "tool_use_id": content[0], "content": content[1]}]
            yield {"type": "user", "message": {"role": "user", "content": blocks}, "uuid": uuid, **beside}
            continue
        block = {"type": "text", "text": content} if role == "assistant" else {"type": "tool_use", "id": content[0], "name": content[1], "input": content[2]}
        usage = {"input_tokens": 4, "cache_read_input_tokens": 900 + at, "cache_creation_input_tokens": 120, "output_tokens": 60}
        message = {"id": f"msg_{at:06}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "usage": usage}
        yield {"type": "assistant", "message": message, "uuid": uuid, **beside}


def _codex_exec() -> Iterator[dict[str, Any]]:
    yield {"type": "thread.started", "thread_id": "5a0c"}
    command = ""
    for at, (role, content) in enumerate(_rounds()):
        if role == "user":
            yield {"type": "turn.started"}
        elif role == "assistant":
            yield {"type": "item.completed", "item": {"id": f"item_{at}", "type": "agent_message", "text": content}}
        elif role == "call":
            command = json.dumps(content[2])
            item = {"id": f"item_{at}", "type": "command_execution", "command": command, "aggregated_output": "", "exit_code": None, "status": "in_progress"}
            yield {"type": "item.started", "item": item}
        else:
            item = {"type": "command_execution", "command": command, "aggregated_output": content[1], "exit_code": 0, "status": "completed"}
            yield {"type": "item.completed", "item": {"id": f"item_{at - 1}", **item}}


def _langchain() -> Iterator[dict[str, Any]]:
    for at, (role, content) in enumerate(_rounds()):
        message: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}, "name": None, "id": f"run-{at:08x}"}
        if role == "user":
            yield {"type": "human", "content": content, **message}
        elif role == "tool":
            yield {"type": "tool", "content": content[1], "tool_call_id": content[0], "artifact": None, "status": "success", **message}
        else:
            calls = [{"name": content[1], "args": content[2], "id": content[0], "type": "tool_call"}] if role == "call" else []
            blocks = [{"type": "tool_use", "id": content[0], "name": content[1], "input": content[2]}] if role == "call" else content
            spent = {"input_tokens": 1_000 + at, "output_tokens": 60, "total_tokens": 1_060 + at, "input_token_details": {"cache_read": 900}}
            message["response_metadata"] = {"model_name": "claude-sonnet-4-5", "stop_reason": "end_turn"}
            yield {"type": "ai", "content": blocks, "tool_calls": calls, "invalid_tool_calls": [], "usage_metadata": spent, **message}


def _pydantic_ai() -> Iterator[dict[str, Any]]:
    for at, (role, content) in enumerate(_rounds()):
        beside = {"timestamp": _TS, "run_id": "5a0c", "conversation_id": "5a0c", "metadata": None}
        if role == "user":
            yield {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": content, "timestamp": _TS}], "instructions": "be brief", **beside}
        elif role == "tool":
            part = {"part_kind": "tool-return", "tool_name": "shell", "tool_call_id": content[0], "content": content[1], "timestamp": _TS}
            yield {"kind": "request", "parts": [part], "instructions": "be brief", **beside}
        else:
            part = {"part_kind": "text", "content": content}
            if role == "call":
                part = {"part_kind": "tool-call", "tool_name": content[1], "args": content[2], "tool_call_id": content[0]}
            spent = {"input_tokens": 1_000 + at, "cache_write_tokens": 0, "cache_read_tokens": 900, "output_tokens": 60, "details": {}}
            yield {"kind": "response", "parts": [part], "usage": spent, "model_name": "gpt-5", "provider_response_id": f"r{at}", **beside}


def _adk() -> Iterator[dict[str, Any]]:
    for at, (role, content) in enumerate(_rounds()):
        event: dict[str, Any] = {"invocationId": "i1", "author": "user" if role == "user" else "agent", "id": f"{at:08x}", "timestamp": 1_796_071_496.5 + at}
        event["actions"] = {"stateDelta": {}, "artifactDelta": {}}
        part: dict[str, Any] = {"text": content}
        if role == "call":
            part = {"functionCall": {"id": content[0], "name": content[1], "args": content[2]}}
        elif role == "tool":
            part = {"functionResponse": {"id": content[0], "name": "shell", "response": {"result": content[1]}}}
        if role in ("assistant", "call"):
            event["usageMetadata"] = {"promptTokenCount": 1_000 + at, "candidatesTokenCount": 60, "totalTokenCount": 1_060 + at}
        yield {"content": {"role": "user" if role in ("user", "tool") else "model", "parts": [part]}, **event}


def _rounds() -> Iterator[tuple[str, Any]]:
    return iter(rounds_of_work(_MESSAGES, 15_000_000, 7))


_FORMATS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "pi": _pi,
    "gemini-cli": _gemini_cli,
    "claude-code-stream-json": _claude_stream,
    "codex-exec": _codex_exec,
    "langchain": _langchain,
    "pydantic-ai": _pydantic_ai,
    "google-adk": _adk,
}


def figures() -> Iterator[Figure]:
    for name, rows in _FORMATS.items():
        yield _figure(name, rows)


def _figure(name: str, rows: Callable[[], Iterator[dict[str, Any]]]) -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows())

        def read() -> None:
            assert readers.read(path).source.format == name

        read()  # the readers are loaded on first use
        by_orjson, by_msgspec, reading = cpu_times(parse_lines(path, orjson.loads), parse_lines(path, msgspec.json.Decoder().decode), read, rounds=5)
        size = round(path.stat().st_size / 1e6)
        return Figure.at_most(f"read a {size} MB file of {name}, of parsing each of its lines", reading / min(by_orjson, by_msgspec), 3)
