"""Writes a session as Codex CLI does (a rollout file), and keeps the token books."""

from __future__ import annotations

import json
from typing import Any

from common import Clock, blob, compact, dump_lines, number, o200k, uuid

MODEL = "gpt-5.1-codex"
WINDOW = 272_000
#: Base instructions beyond those in the file, and the tool schemas, which a rollout does not hold.
FIXED = 7_346


class Rollout:
    """One session. ``item`` adds a response item; ``respond`` closes a provider response with its usage."""

    def __init__(self, start: str, cwd: str, instructions: str) -> None:
        self.clock = Clock(start)
        self.cwd = cwd
        self.session = uuid("codex", cwd)
        self.rows: list[dict[str, Any]] = []
        self.live: list[int] = [FIXED + o200k(instructions)]
        self.turn_reasoning = 0
        self.warm = 0
        self.total = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"), 0)
        self.info: dict[str, Any] | None = None
        self.calls = self.turns = 0
        self.people: list[str] = []
        git = {"commit_hash": "5f1c0a7e" + "90b3d2c4" * 4, "branch": "queue-migration", "repository_url": "https://git.example.com/ferryline/ferryline.git"}
        meta = {
            "id": self.session,
            "timestamp": self.clock.now,
            "cwd": cwd,
            "originator": "codex_cli_rs",
            "cli_version": "0.63.0",
            "instructions": None,
            "base_instructions": {"text": instructions},
            "source": "cli",
            "model_provider": "openai",
            "git": git,
        }
        self.add("session_meta", meta)

    def add(self, kind: str, payload: dict[str, Any], ms: int = 2) -> None:
        self.rows.append({"timestamp": self.clock.tick(ms), "type": kind, "payload": payload})

    def event(self, kind: str, ms: int = 2, **body: Any) -> None:
        self.add("event_msg", {"type": kind, **body}, ms)

    def injected(self, role: str, text: str) -> None:
        self.live.append(o200k(text) + 4)
        self.add("response_item", {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})

    def user(self, text: str, pause_s: int) -> None:
        self.turns += 1
        self.turn_reasoning = 0
        self.clock.tick(pause_s * 1000)
        if pause_s > 600:
            self.warm = 0
        context = {
            "cwd": self.cwd,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "workspace-write", "network_access": False},
            "model": MODEL,
            "effort": "medium",
            "summary": "auto",
        }
        self.event("task_started", model_context_window=WINDOW)
        self.add("turn_context", context)
        self.live.append(o200k(text) + 4)
        self.people.append(text)
        self.add("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        self.event("user_message", message=text, images=[])
        self.token_count()

    def respond(self, think: str, text: str, calls: list[tuple[str, str]], final: bool = False) -> list[str]:
        """One response: reasoning, text, calls ``(tool, arguments)``. Returns the ids of its calls."""
        self.calls += 1
        prompt = sum(self.live) + self.turn_reasoning
        reasoning = 0
        visible = 0
        if think or number(0, 2, "silent", self.calls) == 0:
            reasoning = 64 * number(1, 4 if think else 2, "reasoning", self.calls)
            summary = [{"type": "summary_text", "text": think}] if think else []
            self.add("response_item", {"type": "reasoning", "summary": summary, "content": None, "encrypted_content": blob(90 + reasoning, self.calls)}, 1800)
            if think:
                self.event("agent_reasoning", text=think)
        if text:
            visible += o200k(text) + 4
            phase = "final_answer" if final else "commentary"
            content = [{"type": "output_text", "text": text}]
            self.add("response_item", {"type": "message", "role": "assistant", "content": content, "phase": phase}, 40 + 9 * len(text))
            self.event("agent_message", message=text)
        ids = []
        for tool, arguments in calls:
            call_id = "call_" + blob(18, "call", self.calls, len(ids)).replace("+", "a").replace("/", "b")
            ids.append(call_id)
            visible += o200k(arguments) + 12
            if tool == "apply_patch":
                body = {"type": "custom_tool_call", "status": "completed", "call_id": call_id, "name": tool, "input": arguments}
            else:
                body = {"type": "function_call", "name": tool, "arguments": arguments, "call_id": call_id}
            self.add("response_item", body, 300 + 5 * len(arguments))
        self.live.append(visible)
        self.turn_reasoning += reasoning
        cached = min(self.warm, prompt) // 128 * 128
        self.warm = prompt
        last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": visible + reasoning, "reasoning_output_tokens": reasoning}
        last["total_tokens"] = prompt + visible + reasoning
        for name, value in last.items():
            self.total[name] += value
        self.info = {"total_token_usage": dict(self.total), "last_token_usage": last, "model_context_window": WINDOW}
        return ids

    def output(self, call_id: str, tool: str, text: str, ms: int) -> None:
        kind = "custom_tool_call_output" if tool == "apply_patch" else "function_call_output"
        self.live.append(o200k(text) + 8)
        self.add("response_item", {"type": kind, "call_id": call_id, "output": text}, ms)

    def token_count(self) -> None:
        """Usage so far. It is written again when only the rate limits were refreshed, as the real program does."""
        used = round(self.total["total_tokens"] / 9_000_000, 1)
        limits = {"primary": {"used_percent": used, "window_minutes": 300, "resets_at": 1_775_030_400}, "secondary": None}
        self.event("token_count", info=json.loads(json.dumps(self.info)), rate_limits=limits)

    def compact(self, summary: str, keep: int) -> None:
        """Replace the history by the newest of what people wrote and the summary."""
        kept = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]} for text in self.people[-keep:]]
        note = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary}]}
        self.add("compacted", {"message": summary, "replacement_history": [*kept, note]}, 21_000)
        self.event("context_compacted")
        self.live = [self.live[0], *(o200k(text) + 4 for text in self.people[-keep:]), o200k(summary) + 4]
        self.turn_reasoning = self.warm = 0

    def done(self, last: str) -> None:
        self.event("task_complete", last_agent_message=last)

    def bytes(self) -> bytes:
        return dump_lines(self.rows)


def shell(command: str, cwd: str) -> tuple[str, str]:
    return "shell", compact({"command": ["bash", "-lc", command], "workdir": cwd})
