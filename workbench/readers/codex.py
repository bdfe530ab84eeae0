"""Codex CLI rollouts: one session a file, one record a line.

The response items are the truth; events say the same again and are read for usage and timing only, unless a file
holds nothing else. A file of nothing but usage is a transcript without messages and with calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import MAIN, ToolResult, Transcript
from .base import Match, ReaderInfo
from .build import Builder, DraftMessage
from .codex_calls import Calls
from .codex_compact import Compactor, mark
from .fields import epoch_ms, json_text, listing, mapping, string, tool_call, tool_specs
from .jsontext import NotJson, parse
from .responses_items import TYPES, Items, output_parts
from .source import Document

_ENVELOPE = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", "token_usage_record"})
#: Records beside the conversation.
_BESIDE = frozenset({"inter_agent_communication", "inter_agent_communication_metadata", "realtime_item", "retained_context", "world_state"})
_WRAPPED = _ENVELOPE | _BESIDE
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)\b", re.MULTILINE)
_NAMES = {"userMessage": "user", "UserMessage": "user", "agentMessage": "assistant", "AgentMessage": "assistant"}


class CodexReader:
    """Reads Codex rollouts."""

    info = ReaderInfo("codex", "Codex CLI rollouts, with and without the envelope of newer versions", "long_session.jsonl")

    def detect(self, document: Document) -> Match | None:
        """Looks for the envelope; in older files for the header, state records, or rows of the oldest form."""
        head = [row.value for row in document.rows()[:200] if isinstance(row.value, dict)]
        if not head:
            return None
        wrapped = [value["type"] for value in head if isinstance(value.get("payload"), dict) and value.get("type") in tuple(_ENVELOPE)]
        if len(wrapped) * 2 > len(head):
            return Match(0.97, (f"records with a payload: {', '.join(sorted(set(wrapped))[:4])}",))
        old = sum(_is_old(value) for value in head)
        if (_is_header(head[0]) or any("record_type" in value for value in head[:5])) and old * 2 > len(head):
            return Match(0.9, ("a rollout without envelopes: a header or state records, then items",))
        if old == len(head) and any(_is_flat(value) for value in head):
            return Match(0.87, ("rows with a time stamp; a user's row names the model, or tool_call and tool_result rows",))
        return None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript: a subagent's rollout is a file of its own."""
        return [Rollout(Builder(self.info.name, document)).read()]


READER = CodexReader()


def _is_header(value: Mapping[str, Any]) -> bool:
    return "id" in value and "timestamp" in value and ("instructions" in value or "git" in value) and not {"role", "type", "payload"} & value.keys()


def _is_flat(value: Mapping[str, Any]) -> bool:
    """Say whether a row is one that only the oldest files have."""
    if not isinstance(value.get("timestamp"), str):
        return False
    if value.get("role") == "user":
        return isinstance(value.get("model"), str)
    return value.get("type") in ("tool_call", "tool_result") and ("function" in value or "name" in value)


def _is_old(value: Mapping[str, Any]) -> bool:
    type_ = value.get("type")
    if "sessionId" in value or "uuid" in value or isinstance(value.get("message"), dict):
        return False
    if type_ is None:
        return _is_header(value) or "record_type" in value or (isinstance(value.get("role"), str) and "timestamp" in value)
    return isinstance(type_, str) and (type_ in TYPES or type_ in _NAMES or type_ in ("message", "tool_call", "tool_result", "error"))


@dataclass(slots=True)
class Rollout:
    """One file, read line by line."""

    builder: Builder
    items: Items = field(init=False)
    calls: Calls = field(init=False)
    compactor: Compactor = field(init=False)
    events_only: bool = False
    turns_only: bool = False
    compacted: bool = False

    def __post_init__(self) -> None:
        self.items = Items(self.builder)
        self.calls = Calls(self.builder, self.items)
        self.compactor = Compactor(self.builder, self.items, self.calls)

    def read(self) -> Transcript:
        rows = [(row.number, row.value) for row in self.builder.document.rows() if isinstance(row.value, dict)]
        types = [row.get("type") if isinstance(row.get("type"), str) else None for _, row in rows]
        events = [string(mapping(row.get("payload")).get("type")) for (_, row), type_ in zip(rows, types, strict=True) if type_ == "event_msg"]
        self.events_only = bool(events) and not any(type_ == "response_item" or type_ in TYPES or type_ == "message" for type_ in types)
        self.turns_only = "token_count" not in events and "token_usage_record" not in types
        self.compacted = "compacted" in types
        if not any(type_ in _ENVELOPE or _is_old(row) for (_, row), type_ in zip(rows, types, strict=True)):
            for number, _ in rows:
                self.builder.skip(number, "record", f"line {number}: not a record of a Codex rollout")
        else:
            for record in self.builder.document.rows():
                self._row(record.value, record.number)
        self.calls.check()
        return self.builder.build()

    def _row(self, row: Any, number: int) -> None:
        builder = self.builder
        if not isinstance(row, dict):
            builder.skip(number, "record", f"line {number}: not a record ({type(row).__name__})")
            return
        type_, ts = row.get("type"), epoch_ms(row.get("timestamp"))
        payload = mapping(row.get("payload"))
        if not isinstance(type_, str) or type_ not in _WRAPPED:
            self._bare(row, number, ts)
        elif type_ == "response_item":
            self._item(dict(payload), number, ts)
        elif type_ == "event_msg":
            self._event(payload, number, ts)
        elif type_ == "compacted":
            self.compactor.compacted(payload, number, ts)
        elif type_ == "token_usage_record":
            self.calls.record(payload, number, ts)
        else:
            builder.account(number, "metadata", MAIN)
            if type_ == "session_meta":
                self._session(payload)
            elif type_ == "turn_context":
                self._model(payload)

    def _bare(self, row: dict[str, Any], number: int, ts: int | None) -> None:
        """A record without an envelope."""
        type_ = string(row.get("type"))
        if type_ == "tool_call":
            function = mapping(row.get("function"))
            args = row.get("arguments") if row.get("arguments") is not None else function.get("arguments")
            call = tool_call(string(row.get("call_id"), row.get("id")), string(function.get("name"), row.get("name")), args)
            self.items.answer([call], number, "", ts)
        elif type_ == "tool_result":
            output = next((row[key] for key in ("result", "output", "content") if row.get(key) is not None), None)
            result = ToolResult(string(row.get("call_id"), row.get("id")), string(row.get("name")) or None, output_parts(output), bool(row.get("error")))
            self.items.row("tool", [result], number, "", ts)
        elif type_ == "error":
            self.builder.account(number, "metadata", MAIN)
            self.builder.report(number, "error", f"line {number}: the session reports an error ({string(row.get('text'), row.get('message'))[:100]})")
        elif "record_type" in row or _is_header(row):
            self.builder.account(number, "metadata", MAIN)
            if "id" in row:
                self._session(row)
        elif not type_ and "role" not in row:
            self.builder.unknown(number, "without a type", MAIN)
        else:
            self._model(row)
            self._item(row, number, ts)

    def _item(self, item: dict[str, Any], number: int, ts: int | None) -> None:
        if item.get("type") in tuple(_NAMES):
            content = item.get("content") if item.get("content") is not None else item.get("text")
            item = {**item, "type": "message", "role": _NAMES[item["type"]], "content": content}
        message = self.items.add(item, number, ts=ts)
        if message is None:
            return
        self.compactor.note(item, message)
        if message.role == "user":
            mark(message)
        elif message.role == "tool":
            _exit(message)
        elif message.role == "assistant":
            self.calls.said()

    def _session(self, payload: Mapping[str, Any]) -> None:
        """The header. A fork holds its parents' too: the first is the file's own."""
        meta, builder = self.builder.meta, self.builder
        if "session" in meta:
            return
        meta["session"] = builder.id = string(payload.get("id"), payload.get("session_id"))
        meta.update(cwd=string(payload.get("cwd")), version=string(payload.get("cli_version")), origin=string(payload.get("originator")))
        meta.update(branch=string(mapping(payload.get("git")).get("branch")), forked_from=string(payload.get("forked_from_id")))
        spawn = mapping(mapping(mapping(payload.get("source")).get("subagent")).get("thread_spawn"))
        meta["parent"] = string(payload.get("parent_thread_id"), spawn.get("parent_thread_id"))
        base = payload.get("base_instructions")
        told = string(mapping(base).get("text"), base, payload.get("instructions"))
        if told:
            builder.system.append(told)
        builder.tools += tool_specs(payload.get("dynamic_tools"))

    def _model(self, payload: Mapping[str, Any]) -> None:
        model = string(payload.get("model"))
        if model:
            self.items.model = self.builder.meta["model"] = model

    def _event(self, payload: Mapping[str, Any], number: int, ts: int | None) -> None:
        builder, type_ = self.builder, string(payload.get("type"))
        builder.account(number, "metadata", MAIN)
        if type_ == "token_count":
            self.calls.count(payload, number, ts)
        elif type_ == "turn.completed" and self.turns_only:
            self.calls.turn(payload, number, ts)
        elif type_ == "thread_settings_applied":
            self._model(mapping(payload.get("thread_settings")))
        elif type_ == "thread_name_updated":
            builder.meta["title"] = string(payload.get("thread_name"), payload.get("name"))
        elif type_ == "collab_agent_spawn_end" and string(payload.get("new_thread_id")):
            builder.meta["subagents"] = (*builder.meta.get("subagents", ()), payload["new_thread_id"])
        elif type_ == "thread_rolled_back":
            self._rolled_back(payload.get("num_turns"), number)
        elif type_ == "context_compacted" and not self.compacted:
            self.compactor.only_event(number)
        elif type_ == "error":
            builder.report(number, "error", f"line {number}: the session reports an error ({string(payload.get('message'))[:100]})")
        elif self.events_only:
            for item in _spoken(type_, payload):
                self._item(item, number, ts)

    def _rolled_back(self, turns: Any, number: int) -> None:
        """The last turns were taken back: they are a branch that was given up."""
        own = [message for message in self.builder.messages if message.thread == MAIN]
        starts = [at for at, message in enumerate(own) if message.role == "user" and not message.flags]
        if type(turns) is not int or turns < 1 or not starts:
            return
        self.items.close()
        branch = self.builder.thread(f"rolled-back-{number}", "branch")
        gone = own[starts[max(0, len(starts) - turns)] :]
        for message in gone:
            self.builder.move(message, branch)
        lost = {message.index for message in gone}
        compactions = self.builder.compactions
        compactions[:] = [replace(item, thread=branch) if item.summary in lost else item for item in compactions]


def _exit(message: DraftMessage) -> None:
    """Mark the result of a command that failed: Codex says so only inside the text."""
    for at, part in enumerate(message.parts):
        if type(part) is ToolResult and not part.is_error and _failed(part.text):
            message.parts[at] = replace(part, is_error=True)


def _failed(text: str) -> bool:
    if text.startswith('{"output"') and '"exit_code"' in text:
        try:
            code = mapping(mapping(parse(text.encode("utf-8", "surrogatepass")).value).get("metadata")).get("exit_code")
        except NotJson:
            return False
        return type(code) is int and code != 0
    head, mark, _ = text[:600].partition("\nOutput:")  # what stands after it is the command's own
    found = _EXIT.search(head) if mark else _EXIT.match(head)
    return found is not None and int(found.group(1)[:9]) != 0


def _spoken(type_: str, payload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Items that an event stands for, in a file without response items."""
    if type_ == "user_message":
        images = [{"type": "input_image", "image_url": url} for url in listing(payload.get("images"))]
        yield {"type": "message", "role": "user", "content": [{"type": "input_text", "text": string(payload.get("message"))}, *images]}
    elif type_ == "agent_message":
        yield {"type": "message", "role": "assistant", "content": string(payload.get("message"))}
    elif type_ == "agent_reasoning":
        yield {"type": "reasoning", "summary": [string(payload.get("text"))]}
    elif type_ == "exec_command_end":
        yield {"type": "local_shell_call", "call_id": payload.get("call_id"), "action": {"command": payload.get("command")}}
        output = string(payload.get("formatted_output"), payload.get("aggregated_output"), payload.get("stdout"))
        yield {
            "type": "function_call_output",
            "call_id": payload.get("call_id"),
            "output": {"content": output, "success": payload.get("exit_code") in (0, None)},
        }
    elif type_ == "mcp_tool_call_end":
        invoked = mapping(payload.get("invocation"))
        yield {"type": "function_call", "call_id": payload.get("call_id"), "name": invoked.get("tool"), "arguments": invoked.get("arguments")}
        result = mapping(payload.get("result"))
        held = mapping(result.get("Ok")).get("content", result)
        yield {"type": "function_call_output", "call_id": payload.get("call_id"), "output": held if isinstance(held, list) else json_text(held)}
