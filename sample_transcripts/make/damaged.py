"""damaged.jsonl: a short sound chat, one message per line, with one damage of every kind. SOURCES.md lists them by line."""

from __future__ import annotations

import json
from typing import Any

from common import HERE, Clock, compact, ident, o200k, sections

MODEL = "gpt-4.1-mini"


def sound() -> list[dict[str, Any]]:
    """The session before it was damaged."""
    rows: list[dict[str, Any]] = []
    waiting: list[str] = []
    clock = Clock("2026-10-11T14:03:00")
    standing = 3  # tokens that the next request sends
    usage: dict[str, int] = {}  # of the newest response, until it is complete
    for name, argument, body in sections(HERE / "damaged_story.txt"):
        stamp = clock.tick(1000 * (3 + len(body) // 9))
        if name == "call":
            call = {"id": ident("call_", 24, len(rows), body), "type": "function", "function": {"name": argument, "arguments": compact(json.loads(body))}}
            rows[-1].setdefault("tool_calls", []).append(call)
            usage["completion_tokens"] += o200k(call["function"]["arguments"]) + 8
            usage["total_tokens"] = sum((usage["prompt_tokens"], usage["completion_tokens"]))
            waiting.append(call["id"])
            continue
        standing += usage.get("completion_tokens", 0)
        usage = {}
        if name == "asst":
            written = o200k(body) + 3
            usage = {"prompt_tokens": standing, "completion_tokens": written, "total_tokens": standing + written}
            rows.append({"role": "assistant", "content": body or None, "model": MODEL, "usage": usage, "timestamp": stamp})
        else:
            row = {"role": "tool", "tool_call_id": waiting.pop(0)} if name == "result" else {"role": name}
            rows.append({**row, "content": body, "timestamp": stamp})
            standing += o200k(body) + 4
    return rows


def build() -> bytes:
    """The damaged file; SOURCES.md lists the damage by line."""
    rows = sound()
    rows[4]["tool_calls"] = None
    unanswered = next(at for at, row in enumerate(rows) if row["role"] == "tool" and row["content"] == '{"no": 311, "shelf": "check"}')
    del rows[unanswered]
    lines = [compact(row) for row in rows]

    def change(mark: str, old: str, new: str) -> int:
        """Replace in the one line that holds the mark; returns its place."""
        (at,) = (at for at, line in enumerate(lines) if mark in line)
        assert lines[at].count(old) == 1, (old, lines[at])
        lines[at] = lines[at].replace(old, new)
        return at

    prompts = [row["usage"]["prompt_tokens"] for row in rows if row["role"] == "assistant"]
    change("Added as packet 348", f'"prompt_tokens":{prompts[3]}', '"prompt_tokens":NaN')
    change("Twenty pumpkin seeds", f'"prompt_tokens":{prompts[5]}', '"prompt_tokens":-120')
    change("Kelvedon Wonder\\", '{"role":"tool",', '{"role":"tool","role":"user",')
    change("Without a year", "A pumpkin.", "A pumpkin \\ud83c.")  # half of an emoji
    note = change("There is a note", "the two peas. The", "the two peas.\u2028The")
    orphan = {"role": "tool", "tool_call_id": "call_fromAnotherSession0001", "content": '{"no": 77, "shelf": "A1"}'}
    lines.insert(note, compact(orphan))
    lines.insert(note, '{"role": "assistant", "content": "I was about to say that')
    last = lines.pop()
    return ("\ufeff" + "".join(line + "\n" for line in lines) + last[: len(last) // 2]).encode()
