"""What ``claude -p --output-format stream-json`` (or ``json``) prints, and the events that the web version lists.

The lines hold what a session file holds, in an envelope of their own: no tree, and what a subagent says names the call
that started it. The closing line sums up the session; the usage of a response is what stood in it when it began, unless
the events of its stream are there too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..model import MAIN, Text, Transcript, Usage
from .base import Match, ReaderInfo
from .build import Builder
from .claude_code import link
from .claude_code_rows import Session
from .claude_code_tree import Tree
from .fields import epoch_ms, mapping, string
from .source import Document
from .usage import anthropic as usage_of
from .usage import tokens

_TYPES = ("system", "assistant", "user", "result", "stream_event")
#: Lines beside the conversation.
_BESIDE = frozenset(
    {
        "auth_status",
        "control_cancel_request",
        "control_request",
        "control_response",
        "keep_alive",
        "prompt_suggestion",
        "rate_limit_event",
        "stream_event",
        "streamlined_text",
        "tool_progress",
        "tool_use_summary",
    }
)
#: Types of lines that other programs' streams have, which begin alike.
_OTHERS = frozenset({"message", "tool_call", "tool_result", "tool_use", "completion", "init", "reasoning", "thinking"})
_CONTINUED = "This session is being continued from a previous conversation"


class ClaudeCodeStreamReader:
    """Reader of Claude Code's printed streams."""

    info = ReaderInfo("claude-code-stream-json", "Claude Code's printed output (stream-json, json) and the web version's events")
    streams = True

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        head = [value for value in _head(document) if isinstance(value, dict)]
        known = [value for value in head if value.get("type") in _TYPES and "sessionId" not in value and "payload" not in mapping(value.get("message"))]
        own = [value for value in known if isinstance(value.get("session_id"), str) or "parent_tool_use_id" in value]
        said = any(isinstance(value.get("message"), dict) and value.get("type") in ("assistant", "user") for value in own)
        closed = any(value.get("type") == "result" and {"total_cost_usd", "num_turns", "modelUsage"} & value.keys() for value in own)
        begun = any(value.get("subtype") == "init" for value in own)
        if len(known) * 2 <= len(head) or not (said or closed or begun):
            return None
        others = sum(isinstance(value.get("type"), str) and value["type"] in _OTHERS for value in head)
        reasons = (f"{len(known)} of the first {len(head)} lines have the types of a printed stream, with session_id",)
        return Match(0.5 if others else 0.95, reasons)

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. A file is one session."""
        return [_Stream(Builder(self.info.name, document)).read()]


READER = ClaudeCodeStreamReader()


def _listed(document: Document) -> list[Any] | None:
    """The events of an answer of the web version's interface, which wraps them."""
    value = document.value
    events = value.get("data") if isinstance(value, dict) else None
    return events if isinstance(events, list) else None


def _head(document: Document) -> list[Any]:
    listed = _listed(document)
    return listed[:200] if listed is not None else [record.value for record in document.rows()[:200]]


@dataclass(slots=True)
class _Stream:
    """One file, read line by line."""

    builder: Builder
    #: By response: what its stream said last of its usage.
    spent: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: By subagent's call: the response that streams now.
    streaming: dict[str, str] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    result_at: int = 0
    compacted: bool = False

    def read(self) -> Transcript:
        builder, document = self.builder, self.builder.document
        listed = _listed(document)
        if listed is not None:
            builder.total = len(listed)
        session, tree = Session(builder), Tree(MAIN)
        session.lines(self._rows(document, listed), tree)
        for call in builder.calls:
            if call.id in self.spent:
                call.usage = usage_of(self.spent[call.id])[0] or call.usage
        if self.result:
            self._close()
        session.finish()
        agents = dict(tree.agents)
        link(builder, session, agents, {thread: call for call, thread in agents.items()})
        return builder.build()

    def _rows(self, document: Document, listed: list[Any] | None) -> Iterator[tuple[int, Any]]:
        """The lines as a session file would hold them."""
        if listed is not None:
            rows: Iterator[tuple[int, Any]] = enumerate(listed, 1)
        else:
            rows = iter([(1, document.value)]) if isinstance(document.value, dict) else document.stream()
        for number, row in rows:
            yield number, self._row(number, row) if isinstance(row, dict) else row

    def _row(self, number: int, row: dict[str, Any]) -> dict[str, Any]:
        kind, meta = row.get("type"), self.builder.meta
        if not self.builder.id and (session := string(row.get("session_id"))):
            self.builder.id = meta["session"] = session
        if kind == "stream_event":
            self._event(mapping(row.get("event")), string(row.get("parent_tool_use_id")))
        if isinstance(kind, str) and kind in _BESIDE:
            return {"type": "progress"}
        if kind == "result":
            self.result, self.result_at = row, number
        elif kind == "system" and row.get("subtype") == "init":
            meta.update(model=string(row.get("model")), cwd=string(row.get("cwd")), version=string(row.get("claude_code_version")))
            tools = row.get("tools")
            meta["tools"] = tuple(name for name in tools if isinstance(name, str)) if isinstance(tools, list) else ()
        elif kind == "system" and row.get("subtype") == "compact_boundary":
            self.compacted = True
        parent = row.get("parent_tool_use_id")
        summary = self.compacted and kind == "user" and _begins(row.get("message"))
        self.compacted = self.compacted and not (summary or kind == "assistant")
        if kind == "assistant" and not parent and "created_at" not in row and "isSidechain" not in row:
            return row  # nothing in it is spelled otherwise
        return {
            **row,
            "isSidechain": isinstance(parent, str) and bool(parent),
            "agentId": parent,
            "timestamp": row.get("timestamp", row.get("created_at")),
            "toolUseResult": row.get("toolUseResult", row.get("tool_use_result")),
            "isMeta": row.get("isMeta") is True or row.get("isSynthetic") is True,
            "isCompactSummary": summary,
        }

    def _event(self, event: Any, agent: str) -> None:
        if event.get("type") == "message_start":
            message = mapping(event.get("message"))
            self.streaming[agent] = string(message.get("id"))
            if self.streaming[agent]:
                self.spent[self.streaming[agent]] = dict(mapping(message.get("usage")))
        elif event.get("type") == "message_delta" and (spent := self.spent.get(self.streaming.get(agent, ""))) is not None:
            spent |= {key: value for key, value in mapping(event.get("usage")).items() if value is not None}

    def _close(self) -> None:
        """Take what the closing line says: costs, totals, and the answer itself where nothing else was printed."""
        builder, row, number = self.builder, self.result, self.result_at
        builder.meta.update(cost_usd=row.get("total_cost_usd"), requests=row.get("num_turns"), ended=string(row.get("subtype")))
        if row.get("is_error") is True:
            builder.report(number, "error", f"record {number}: the session ended with an error ({string(row.get('subtype'))[:60] or 'not named'})")
        text = row.get("result")
        models = mapping(row.get("modelUsage"))
        if not builder.calls and isinstance(text, str):
            usage = usage_of(row.get("usage"))[0]
            alone = row.get("num_turns") in (None, 1)
            if usage is not None and not alone:
                builder.call(usage=usage, model=next(iter(models), None))
                builder.report(number, "usage_sum", f"record {number}: its usage is the sum of several requests; it is shown as one without messages")
            call = builder.call(model=next(iter(models), None), usage=usage if alone else None, ts=epoch_ms(row.get("timestamp")))
            builder.message("assistant", [Text(text)], number, ts=call.ts, call=call.index)
            return
        stated = [tokens(mapping(held).get(name)) for held in models.values() for name in _MODEL_USAGE]
        wanted, found = sum(count or 0 for count in stated), Usage.sum([call.usage for call in builder.calls]).total or 0
        if any(count is not None for count in stated) and wanted != found:
            text = (
                f"record {number}: the session's own total is {wanted:,} tokens, its responses add up to {found:,}; a response here may show what it began with"
            )
            builder.report(number, "usage_total", text)


_MODEL_USAGE = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


def _begins(message: Any) -> bool:
    """Say whether a message is the summary that a compaction left."""
    content = mapping(message).get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = first if isinstance(first, str) else mapping(first).get("text")
    return isinstance(text, str) and text.startswith(_CONTINUED)
