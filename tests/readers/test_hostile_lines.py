"""Records of the line formats with every value replaced by every odd one: no place and no type is left out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.readers.made import check
from tests.readers.test_hostile import ODD, changed, places, values
from workbench import readers

_TS = "2026-11-01T10:00:00Z"
_SPENT = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 10}
_PI_ANSWER = {"role": "assistant", "content": [{"type": "thinking", "thinking": "h"}, {"type": "toolCall", "id": "t", "name": "n", "arguments": {}}]}
PI: list[Any] = [
    {"type": "session", "version": 3, "id": "s", "timestamp": _TS, "cwd": "/"},
    {"type": "message", "id": "u", "parentId": None, "timestamp": _TS, "message": {"role": "user", "content": [{"type": "text", "text": "q"}]}},
    {"type": "message", "id": "a", "parentId": "u", "timestamp": _TS, "message": {**_PI_ANSWER, "usage": _SPENT, "stopReason": "error", "model": "m"}},
    {
        "type": "message", "id": "r", "parentId": "a",
        "message": {
            "role": "toolResult", "toolCallId": "t", "content": [{"type": "image", "mimeType": "a/b", "data": "AAAA"}],
            "details": {"results": [{"task": "x", "messages": [_PI_ANSWER]}]},
        },
    },
    {"type": "compaction", "id": "c", "parentId": "r", "summary": "s", "firstKeptEntryId": "a", "firstKeptEntryIndex": 2, "tokensBefore": 5},
    {"type": "message", "id": "b", "parentId": "a", "message": {"role": "bashExecution", "command": "ls", "output": "o", "exitCode": 1}},
    {"type": "custom_message", "id": "d", "parentId": "b", "content": "x"},
]  # fmt: skip
_RAN = {"id": "t", "name": "n", "args": {}, "agentId": "x", "status": "error", "result": [{"functionResponse": {"id": "t", "response": {"output": "o"}}}]}
_THOUGHT = [{"subject": "a", "description": "b"}]
_GEMINI = {"id": "g", "type": "gemini", "content": [{"text": "a"}], "thoughts": _THOUGHT, "toolCalls": [_RAN], "tokens": {"input": 5, "cached": 1, "total": 5}}
GEMINI_CLI: list[Any] = [
    {"sessionId": "s", "projectHash": "h", "summary": "t"},
    {"id": "u", "type": "user", "timestamp": _TS, "content": "q"},
    _GEMINI,
    {"$set": {"messages": [{"id": "v", "type": "user", "content": [{"text": "w"}]}, _GEMINI]}},
    {"id": "g2", "type": "gemini", "content": {"functionCall": {"name": "n", "args": {}}, "thoughtSignature": "x"}},
    {"$rewindTo": "g2"},
]
STREAM: list[Any] = [
    {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["a"]},
    {"type": "stream_event", "session_id": "s", "event": {"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 1}}}},
    {"type": "assistant", "session_id": "s", "message": {"id": "m1", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}, "uuid": "a"},
    {"type": "stream_event", "session_id": "s", "event": {"type": "message_delta", "usage": {"output_tokens": 1}}},
    {"type": "user", "session_id": "s", "parent_tool_use_id": "t", "message": {"role": "user", "content": "q"}, "tool_use_result": {"agentId": "x"}},
    {"type": "system", "subtype": "compact_boundary", "session_id": "s", "compact_metadata": {"trigger": "auto", "pre_tokens": 5}},
    {"type": "user", "session_id": "s", "message": {"content": [{"type": "text", "text": "This session is being continued from a previous conversation"}]}},
    {"type": "result", "session_id": "s", "num_turns": 2, "usage": {"input_tokens": 1}, "modelUsage": {"m": {"inputTokens": 1}}, "result": "x"},
]
_COLLAB = {"id": "c", "type": "collab_tool_call", "tool": "spawn", "receiver_thread_ids": ["x"], "agents_states": {"x": {"message": "m"}}}
CODEX_EXEC: list[Any] = [
    {"type": "thread.started", "thread_id": "t", "model": "m"},
    {"type": "item.started", "item": {"id": "a", "type": "command_execution", "command": "ls", "status": "in_progress"}},
    {"type": "item.completed", "item": {"id": "a", "type": "command_execution", "command": "ls", "aggregated_output": "o", "exit_code": 1}},
    {
        "type": "item.completed",
        "item": {"id": "m", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {}, "result": {"content": [{"text": "x"}]}},
    },
    {"type": "item.completed", "item": _COLLAB},
    {"type": "item.completed", "item": {"id": "d", "item_type": "agent_message", "text": "x"}},
    {"type": "turn.completed", "usage": {"input_tokens": 3, "cached_input_tokens": 1, "output_tokens": 1}},
    {"type": "turn.failed", "error": {"message": "x"}},
]
CODEX_EXEC_OLD: list[Any] = [
    {"model": "m"},
    {"prompt": "q"},
    {"id": "0", "msg": {"type": "session_configured", "session_id": "s", "model": "m"}},
    {"id": "0", "msg": {"type": "exec_command_begin", "call_id": "c", "command": ["ls"]}},
    {"id": "0", "msg": {"type": "exec_command_end", "call_id": "c", "stdout": "a", "exit_code": 0}},
    {"id": "0", "msg": {"type": "token_count", "input_tokens": 1, "output_tokens": 2}},
]
_CONTENTS = [{"role": "user", "parts": [{"text": "q"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}, {"role": "model", "parts": [{"text": "a"}]}]
_ANSWER = {
    "candidates": [{"content": {"parts": [{"text": "a", "thought": True}, {"functionCall": {"name": "n", "args": {}}}]}}],
    "usageMetadata": {"promptTokenCount": 1},
}
_TOOLS = [{"functionDeclarations": [{"name": "f"}]}]
_RESULT = {"functionResponse": {"name": "n", "response": {"error": "x"}}}
GENAI: list[Any] = [
    {
        "request": {"contents": _CONTENTS, "systemInstruction": {"parts": [{"text": "s"}]}, "tools": _TOOLS},
        "response": _ANSWER,
    },
    {"request": {"contents": "q"}, "response": [_ANSWER, _ANSWER]},
]
GENAI_LISTED: list[Any] = [
    *_CONTENTS,
    {"role": "user", "parts": [_RESULT]},
    _ANSWER,
    {"contents": _CONTENTS},
]


@pytest.mark.parametrize(
    ("format", "rows"),
    [
        ("pi", PI),
        ("gemini-cli", GEMINI_CLI),
        ("claude-code-stream-json", STREAM),
        ("codex-exec", CODEX_EXEC),
        ("codex-exec", CODEX_EXEC_OLD),
        ("google-genai", GENAI),
        ("google-genai", GENAI_LISTED),
    ],
)
def test_every_value_replaced_by_every_odd_one(format: str, rows: list[Any]) -> None:
    reader = readers.get(format)
    for number, row in enumerate(rows):
        for at in places(row):
            for to in (*ODD, ...):
                if at or to is not ...:
                    document = values([*rows[:number], changed(row, at, to), *rows[number + 1 :]])
                    reader.detect(document)
                    for run in reader.read(document):
                        check(run)
                        assert run.records.total <= max(len(rows), 1)


def test_one_object_with_every_odd_value() -> None:
    chat = {"sessionId": "s", "projectHash": "h", "messages": GEMINI_CLI[1:3], "history": _CONTENTS, "meta": {"model": "m"}}
    for format, whole in (("gemini-cli", chat), ("google-genai", {"contents": _CONTENTS, "response": _ANSWER}), ("claude-code-stream-json", {"data": STREAM})):
        reader = readers.get(format)
        for at in places(whole):
            for to in ODD:
                value = changed(whole, at, to)
                if isinstance(value, dict):
                    document = values([])
                    document.value, document.total = value, 1
                    reader.detect(document)
                    for run in reader.read(document):
                        check(run)
