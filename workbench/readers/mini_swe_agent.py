"""mini-swe-agent trajectories: a list of chat messages, with the raw response of each call beside the assistant's since version 1.

Version 0 is a bare list; 1 and 2 wrap it (``trajectory_format``). What a command printed comes back as a user's message that no person wrote.
"""

from __future__ import annotations

from typing import Any

from ..model import HIDDEN, META, Part, Reasoning, Text, ToolCall, ToolResult, Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .chat_messages import Messages, role_of
from .fields import epoch_ms, json_text, listing, mapping, size_of, string, tool_call
from .responses_items import content_parts, output_parts
from .source import Document
from .usage import inclusive, tokens

_FORMAT = "mini-swe-agent"
#: What version 0 has in its messages and no other chat has: the fence of a command, how one ends, what one printed.
_MARKS = ("mswea_bash_command", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT", "<returncode>")


class MiniSweAgentReader:
    """Reads mini-swe-agent's trajectories."""

    info = ReaderInfo("mini-swe-agent", "mini-swe-agent trajectories (.traj.json)")

    def detect(self, document: Document) -> Match | None:
        """Looks for the format's name, or for the marks of its prompts in a chat."""
        value = document.value
        if isinstance(value, dict) and isinstance(value.get("messages"), list):
            if string(value.get("trajectory_format")).startswith(_FORMAT):
                return Match(0.98, (f"trajectory_format {string(value['trajectory_format'])[:30]}",))
            if "mini_version" in mapping(value.get("info")):
                return Match(0.95, ("info.mini_version",))
            return None
        if document.kind != "json" or not isinstance(value, list):
            return None
        head = [item for item in value[:6] if isinstance(item, dict) and isinstance(item.get("content"), str)]
        marks = [mark for mark in _MARKS if any(mark in item["content"] for item in head)]
        if len(marks) > 1 and [item.get("role") for item in head[:3]] == ["system", "user", "assistant"]:
            return Match(0.9, (f"a chat with {', '.join(marks)}",))
        return None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript; its records are its messages."""
        value = document.value
        about = mapping(mapping(value).get("info"))
        if isinstance(value, dict):
            messages = [*enumerate(listing(value.get("messages")), 1)]
            builder = Builder(self.info.name, document, total=len(messages))
            if not isinstance(value.get("messages"), list):
                builder.total = 1
                builder.skip(1, "messages", "there is no list of messages in it")
        else:
            messages = [(record.number, record.value) for record in document.records]
            builder = Builder(self.info.name, document)
        config, stats = mapping(about.get("config")), mapping(about.get("model_stats"))
        builder.meta |= {
            "version": string(about.get("mini_version")),
            "exit_status": string(about.get("exit_status")),
            "model": string(mapping(config.get("model")).get("model_name")),
            "api_calls": tokens(stats.get("api_calls")),
        }
        run = _Run(builder)
        for number, message in messages:
            if message is not None or number not in document.skipped:
                run.add(message, number)
        stated = tokens(stats.get("api_calls"))
        if stated is not None and stated != len(builder.calls):
            builder.report(None, "totals", f"the run says {stated:,} requests; it holds the answers of {len(builder.calls):,}")
        return [builder.build()]


READER = MiniSweAgentReader()


class _Run:
    """Reads message by message."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.reader = Messages(builder, string(builder.meta.get("model")) or None)
        self.answered = False

    def add(self, value: Any, number: int) -> None:
        builder = self.builder
        if not isinstance(value, dict):
            self.reader.add(value, number)
            return
        extra = mapping(value.get("extra"))
        if value.get("object") == "response" or isinstance(value.get("output"), list):
            self._response(value, extra, number)
        elif value.get("type") == "function_call_output":
            id_ = string(value.get("call_id"))
            result = ToolResult(id_, self.reader.names.get(id_), output_parts(value.get("output")))
            builder.message("tool", [result], number, ts=epoch_ms(extra.get("timestamp")))
        elif role_of(value) == "exit":
            text = string(value.get("content"))
            builder.message("user", [Text(text)] if text else [], number, flags=[META, HIDDEN])
        elif role_of(value) == "assistant":
            answer = mapping(extra.get("response"))
            call = self._call(answer, extra, number)
            self.reader.add(value, number, call=call, ts=builder.calls[call].ts)
            self.answered = True
        else:
            draft = self.reader.add(value, number, ts=epoch_ms(extra.get("timestamp")))
            if draft is not None and draft.role == "user" and self.answered:
                draft.flags |= {META}

    def _call(self, answer: Any, extra: Any, number: int) -> int:
        usage, why = inclusive(answer.get("usage"))
        if why:
            self.builder.report(number, "usage", f"record {number}: {why}")
        choice = mapping(next(iter(listing(answer.get("choices"))), None))
        return self.builder.call(
            string(answer.get("id")),
            model=string(answer.get("model"), self.reader.model) or None,
            usage=usage,
            stop_reason=string(choice.get("finish_reason"), answer.get("status")) or None,
            ts=epoch_ms(extra.get("timestamp") or answer.get("created") or answer.get("created_at")),
        ).index

    def _response(self, value: dict[str, Any], extra: Any, number: int) -> None:
        """A response of OpenAI's Responses API, which version 2 keeps as it came."""
        parts: list[Part] = []
        for item in map(mapping, listing(value.get("output"))):
            kind = item.get("type")
            if kind == "function_call":
                parts.append(tool_call(item.get("call_id"), item.get("name"), item.get("arguments")))
            elif kind == "reasoning":
                shown = [part.text for part in content_parts(item.get("summary")) if type(part) is Text]
                hidden = string(item.get("encrypted_content"))
                parts.append(Reasoning("\n".join(shown) or None, size_of(hidden) if hidden else None))
            elif kind == "message":
                parts += content_parts(item.get("content"))
            else:
                parts.append(Text(json_text(dict(item))))
        self.reader.names.update({part.id: part.name for part in parts if type(part) is ToolCall})
        call = self._call(value, extra, number)
        self.builder.message("assistant", parts, number, id=string(value.get("id")), ts=self.builder.calls[call].ts, call=call)
        self.answered = True
