"""What ``codex exec --json`` prints: one event a line, with items that begin, change and end.

An item counts once, as it was last. The person's prompt is not printed, and usage only once a turn, as a running total:
a turn of several requests has it in a call of its own, without messages.

Before version 0.44 it printed the events that a rollout of that time holds, each in an envelope of its own; those are
read as a rollout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import ToolResult, Transcript
from .base import Match, ReaderInfo
from .build import Builder, DraftMessage
from .codex import Rollout
from .codex_usage import UsageLog
from .fields import epoch_ms, json_text, listing, mapping, string, tool_call
from .responses_items import Items, output_parts
from .source import Document, Record
from .usage import inclusive

_EVENTS = frozenset(
    {
        "thread.started",
        "session.created",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "item.started",
        "item.updated",
        "item.completed",
        "item.plan.delta",
        "request_user_input",
        "error",
    }
)
_ITEMS = ("item.started", "item.updated", "item.completed")
_FAILED = ("failed", "declined", "errored")


class CodexExecReader:
    """Reader of the events that Codex prints."""

    info = ReaderInfo("codex-exec", "Codex exec: the events that codex exec --json prints")
    streams = True

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        head = [record.value for record in document.rows()[:200] if isinstance(record.value, dict)]
        old = sum(_is_old(value) for value in head)
        if old * 2 > len(head):
            return Match(0.9, (f"{old} of the first {len(head)} lines are events of an older codex exec",))
        kinds = [string(value.get("type")) for value in head if "payload" not in value]
        known = [kind for kind in kinds if kind in _EVENTS]
        own = {kind for kind in known if "." in kind}
        if not own or len(known) * 2 <= len(head):
            return None
        return Match(0.95, (f"{len(known)} of the first {len(head)} lines are events of codex exec: {', '.join(sorted(own)[:3])}",))

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. A file is one thread."""
        if any(_is_old(record.value) for record in document.rows()[:200]):
            document.complete()
            return [Rollout(Builder(self.info.name, replace(document, value=None, records=list(_events(document))))).read()]
        return [_Thread(Builder(self.info.name, document)).read()]


READER = CodexExecReader()


def _is_old(value: Any) -> bool:
    return isinstance(value, dict) and bool(string(mapping(value.get("msg")).get("type"))) and "payload" not in value


def _events(document: Document) -> Iterator[Record]:
    """The lines of an older version as a rollout would hold them: the settings, the prompt, and events."""
    commands: dict[str, Any] = {}
    for record in document.rows():
        row, event = record.value, dict(mapping(mapping(record.value).get("msg")))
        kind, call = event.get("type"), string(event.get("call_id"))
        if not _is_old(row):
            if isinstance(row, dict) and string(row.get("prompt")):
                row = {"type": "event_msg", "payload": {"type": "user_message", "message": row["prompt"]}}
            elif isinstance(row, dict) and string(row.get("model")):
                row = {"type": "turn_context", "payload": {"model": row["model"]}}
            yield Record(record.number, row)
            continue
        if kind == "session_configured":
            yield Record(record.number, {"type": "session_meta", "payload": {**event, "id": event.get("session_id")}})
            continue
        if kind == "exec_command_begin":
            commands[call] = event.get("command")
        elif kind == "exec_command_end":
            event.setdefault("command", commands.get(call))
            if not string(event.get("formatted_output"), event.get("aggregated_output")):
                event["aggregated_output"] = "".join(string(event.get(name)) for name in ("stdout", "stderr"))
        elif kind == "token_count" and "info" not in event and "input_tokens" in event:
            event = {"type": kind, "info": {"last_token_usage": event}}
        yield Record(record.number, {"type": "event_msg", "payload": event, "timestamp": row.get("timestamp")})


@dataclass(slots=True)
class _Thread:
    """One file, read event by event."""

    builder: Builder
    items: Items = field(init=False)
    log: UsageLog = field(default_factory=UsageLog)
    #: By id: the last state of every item, and the records that hold one.
    last: dict[str, dict[str, Any]] = field(default_factory=dict)
    records: dict[str, list[int]] = field(default_factory=dict)
    turn_of: dict[str, int] = field(default_factory=dict)
    #: By id: results of tools that still run where the item begins.
    ran: dict[str, ToolResult] = field(default_factory=dict)
    #: First of the calls since the last usage.
    since: int = 0

    def __post_init__(self) -> None:
        self.items = Items(self.builder)

    def read(self) -> Transcript:
        builder, document = self.builder, self.builder.document
        turn = 0
        steps: list[tuple[str, int, Any]] = []  # of an item its id, of another event the event
        rows = iter([(1, document.value)]) if isinstance(document.value, dict) else document.stream()
        for number, row in rows:
            kind = row.get("type") if isinstance(row, dict) else None
            if isinstance(row, dict) and kind in _ITEMS and isinstance(row.get("item"), dict):
                # Ids begin anew in every turn of some versions.
                id_ = string(row["item"].get("id")) or f"item of record {number}"
                key = id_ if self.turn_of.setdefault(id_, turn) == turn else f"{id_} of turn {turn}"
                self.last[key] = row["item"]
                self.records.setdefault(key, []).append(number)
                steps.append((key, number, row.get("timestamp")))
            elif isinstance(row, dict):
                turn += kind == "turn.started"
                steps.append(("", number, row))
            else:
                builder.skip(number, "record", f"record {number}: not an event")
        for key, number, held in steps:
            if not key:
                self._event(number, held)
                continue
            records, ts = self.records[key], epoch_ms(held)
            if number == records[0]:  # it stands where it began, its result where it ended
                self._item(key, self.last[key], records, ts)
            if number == records[-1] and (ran := self.ran.pop(key, None)) is not None:
                self.items.row("tool", [ran], number, "", ts)
        return builder.build()

    def _event(self, number: int, row: dict[str, Any]) -> None:
        builder, kind = self.builder, row.get("type")
        if kind not in tuple(_EVENTS):
            builder.unknown(number, str(kind))
            return
        if kind in _ITEMS:
            builder.skip(number, "record", f"record {number}: an item's event without an item")
            return
        builder.account(number, "metadata")
        if kind in ("thread.started", "session.created"):
            builder.id = builder.meta["session"] = string(row.get("thread_id"), row.get("session_id"))
            self._model(row)
        elif kind == "turn.started":
            self.items.close()
            self._model(row)
        elif kind == "turn.completed":
            self._usage(number, row.get("usage"))
        elif kind in ("turn.failed", "error"):
            self.items.close()
            why = string(mapping(row.get("error")).get("message"), row.get("message"))
            builder.report(number, "error", f"record {number}: the thread reports an error ({' '.join(why[:100].split())})")

    def _model(self, row: dict[str, Any]) -> None:
        if model := string(row.get("model")):
            self.items.model = self.builder.meta["model"] = model

    def _usage(self, number: int, raw: Any) -> None:
        """A turn's usage: the running total less what was there before."""
        builder = self.builder
        self.items.close()
        own = self.log.turn(raw)
        usage, why = inclusive({name: own[name] for name in own if name in mapping(raw)}) if own is not None else (None, None)
        if why:
            builder.report(number, "usage", f"record {number}: {why}")
        calls, self.since = builder.calls[self.since :], len(builder.calls)
        if usage is None:
            return
        builder.account(number, "calls")
        if len(calls) == 1:
            calls[0].usage = usage
            return
        builder.call(model=self.items.model or None, usage=usage)
        self.since = len(builder.calls)
        if calls:
            builder.report(
                number, "usage_sum", f"record {number}: its usage is the sum of {len(calls):,} or more requests; it is shown as one without messages"
            )

    def _item(self, key: str, item: dict[str, Any], records: list[int], ts: int | None) -> None:
        builder, number, kind = self.builder, records[0], string(item.get("type"), item.get("item_type"))
        failed = item.get("status") in _FAILED
        made: DraftMessage | None = None
        if kind in ("agent_message", "assistant_message", "plan", "user_message"):
            role = "user" if kind == "user_message" else "assistant"
            made = self.items.add({"type": "message", "role": role, "content": item.get("text")}, number, ts=ts)
        elif kind == "reasoning":
            made = self.items.add({"type": "reasoning", "summary": [string(item.get("text"))]}, number, ts=ts)
        elif kind == "web_search":
            made = self.items.add({"type": "web_search_call", "id": key, "action": {"query": item.get("query")}}, number, ts=ts)
        elif kind == "command_execution":
            code = item.get("exit_code")
            failed = failed or (type(code) is int and code != 0)
            made = self._ran(key, item, "shell", {"command": item.get("command")}, item.get("aggregated_output"), failed, number, ts)
        elif kind == "file_change":
            made = self._ran(key, item, "apply_patch", {"changes": item.get("changes")}, None, failed, number, ts)
        elif kind == "mcp_tool_call":
            name = "__".join(part for part in (string(item.get("server")), string(item.get("tool"))) if part)
            result, error = mapping(item.get("result")), string(mapping(item.get("error")).get("message"), item.get("error"))
            output = error or listing(result.get("content")) or result.get("structured_content")
            made = self._ran(key, item, name, item.get("arguments"), output, failed or bool(error), number, ts)
        elif kind == "collab_tool_call":
            made = self._collab(key, item, failed, number, ts)
        elif kind == "todo_list":  # it stays open to the end of the turn, and is no tool that runs
            made = self._ran(key, {}, "update_plan", {"items": item.get("items")}, None, False, number, ts)
            self.items.row("tool", [self.ran.pop(key)], number, "", ts)
        elif kind == "error":
            builder.account(number, "metadata")
            builder.report(number, "error", f"record {number}: the thread reports an error ({' '.join(string(item.get('message'))[:100].split())})")
        else:
            builder.unknown(number, kind or "an item without a type")
        for record in records:
            builder.account(record, "metadata" if made is None else "messages")
        if made is not None:
            made.raw += tuple(record for record in records[1:] if record > made.raw[-1])

    def _ran(self, key: str, item: dict[str, Any], name: str, arguments: Any, output: Any, failed: bool, number: int, ts: int | None) -> DraftMessage:
        """A tool that Codex ran. Its result is kept until the item ends, if it does."""
        if item.get("status") != "in_progress":
            text = output if isinstance(output, str | list) else "" if output is None else json_text(output)
            self.ran[key] = ToolResult(key, name or None, output_parts(text), failed)
        return self.items.answer([tool_call(key, name, arguments)], number, "", ts)

    def _collab(self, key: str, item: dict[str, Any], failed: bool, number: int, ts: int | None) -> DraftMessage:
        """A call that starts, tells or awaits other agents; what those say is not printed."""
        states = mapping(item.get("agents_states"))
        told = {agent: mapping(state).get("message") for agent, state in states.items() if mapping(state).get("message") is not None}
        name = string(item.get("tool"))
        if name.startswith("spawn"):
            receivers = tuple(agent for agent in listing(item.get("receiver_thread_ids")) if isinstance(agent, str))
            self.builder.meta["subagents"] = (*self.builder.meta.get("subagents", ()), *receivers)
        arguments = {field: item[field] for field in ("prompt", "receiver_thread_ids") if item.get(field)}
        return self._ran(key, item, name, arguments, told or None, failed, number, ts)
