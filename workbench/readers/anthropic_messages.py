"""Conversations of Anthropic's Messages API: from message objects, requests and responses to messages and calls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, Compaction, Part, Text, ToolResult, ToolSpec, Usage
from .anthropic_blocks import Blocks, CompactionBlock, as_json
from .build import Builder, DraftCall
from .exchanges import leading
from .fields import epoch_ms, listing, mapping, string
from .usage import anthropic as usage_of
from .usage import tokens

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "model": "assistant", "system": "system", "developer": "system"}


@dataclass(slots=True)
class Conversation:
    """One conversation in the making. Every method returns the indices of the messages that it made or added to."""

    builder: Builder
    blocks: Blocks = field(default_factory=lambda: Blocks({}, []))
    _live: list[int] = field(default_factory=list)
    _open: int | None = None  # an assistant message without an id, which the next one may go on with

    def request(self, request: dict[str, Any], number: int) -> None:
        """Take system text, tools and model from a request body."""
        builder = self.builder
        if not builder.system:
            builder.system += self._system(request)
        known = {spec.name for spec in builder.tools}
        builder.tools += [spec for spec in _tools(request) if spec.name not in known]
        if model := string(request.get("model")):
            builder.meta.setdefault("model", model)
        self._faults(number, "")

    def prefix(self, request: dict[str, Any], number: int) -> None:
        """Keep what this very request holds before its conversation, for the call that answers it."""
        messages = request["messages"]
        told = [text for message in messages[: lead_of(messages)] if (text := self._text(message.get("content")))]
        self.builder.request_prefix((*self._system(request), *told), _tools(request), number)

    def _system(self, request: dict[str, Any]) -> list[str]:
        return [part.text for part in self.blocks.parts(request.get("system")) if type(part) is Text and part.text]

    def _text(self, content: Any) -> str:
        return "\n".join(part.text for part in self.blocks.parts(content) if type(part) is Text)

    def add(self, message: Any, number: int, place: str = "") -> list[int]:
        """Add a message of a request's history or of a saved list. `place` says where in the record it stands."""
        builder = self.builder
        where = f"record {number}{place}"
        if type(message) is not dict:
            builder.skip(number, "message", f"{where}: not a message but {type(message).__name__}")
            return []
        role = message.get("role")
        role = _ROLES.get(role) if type(role) is str else None
        if role is None:
            builder.skip(number, "role", f"{where}: no role that is known")
            return []
        if "content" not in message:
            builder.report(number, "content", f"{where}: no content")
        if role == "assistant":
            return self.answer(message, number, place=place)
        ts = epoch_ms(message.get("timestamp") or message.get("created_at"))
        id_ = string(message.get("id"))
        results: list[ToolResult] = []
        rest: list[Part] = []
        for part in self.blocks.parts(message.get("content")):
            if type(part) is ToolResult:
                results.append(part)
            elif type(part) is CompactionBlock:
                rest += part.parts
            else:
                rest.append(part)  # type: ignore[arg-type]
        drafts = [builder.message("tool", (result,), number, id=id_, ts=ts) for result in results]
        if rest or not drafts:
            drafts.append(builder.message("system" if role == "system" else "user", rest, number, id=id_, ts=ts))
        self._open = None
        self._faults(number, place)
        return self._alive([draft.index for draft in drafts])

    def answer(self, message: dict[str, Any], number: int, *, model: str | None = None, context: Sequence[int] | None = None, place: str = "") -> list[int]:
        """Add a response: its messages and its call.

        Without an id it goes on with an assistant message right before it, as the API itself joins the two.
        """
        builder = self.builder
        id_ = string(message.get("id"))
        usage, fault = usage_of(message.get("usage"))
        if fault is not None:
            builder.report(number, "usage", f"record {number}{place}: {fault}")
        parts = self.blocks.parts(message.get("content"))
        self._faults(number, place)
        if self._open is not None and not id_ and usage is None and context is None and not any(type(part) is CompactionBlock for part in parts):
            builder.extend(builder.messages[self._open], parts, number)  # type: ignore[arg-type]
            return [self._open]
        ts = epoch_ms(message.get("timestamp") or message.get("created_at"))
        call = builder.call(
            id_,
            model=string(message.get("model"), model) or None,
            usage=usage,
            stop_reason=string(message.get("stop_reason")) or None,
            ts=ts,
            context=None if context is None else tuple(context),
        )
        self._edits(message, call, number)
        made: list[int] = []
        rest: list[Part] = []
        for part in parts:
            if type(part) is CompactionBlock:
                made += self._compacted(part, message, call, number)
            else:
                rest.append(part)  # type: ignore[arg-type]
        if rest or not made:
            made += self._alive([builder.message("assistant", rest, number, id=id_, ts=ts, call=call.index).index])
            self._open = None if id_ or usage is not None else made[-1]
        return made

    def _compacted(self, block: CompactionBlock, message: dict[str, Any], call: DraftCall, number: int) -> list[int]:
        """A compaction block stands for all that was before it, from the next request on."""
        builder = self.builder
        after = len(builder.messages) - 1
        draft = builder.message("assistant", block.parts, number, call=call.index, ts=call.ts, flags=(COMPACT_SUMMARY,))
        before, rest = _around(message.get("usage"))
        builder.compactions.append(Compaction(after, "summary", "server", before, rest, draft.index, (), call=call.index, raw=(number,)))
        self._live = [draft.index]
        return [draft.index]

    def _edits(self, message: dict[str, Any], call: DraftCall, number: int) -> None:
        """Context edits that the server made for this request: nothing left the conversation but old results or thinking."""
        edits = [edit for edit in listing(mapping(message.get("context_management")).get("applied_edits")) if isinstance(edit, dict)]
        edits = [edit for edit in edits if not string(edit.get("type")).startswith("compact")]
        if not edits:
            return
        cleared = [tokens(edit.get("cleared_input_tokens")) for edit in edits]
        sent = call.usage.prompt if call.usage is not None else None
        before = sent + sum(count or 0 for count in cleared) if sent is not None and any(count is not None for count in cleared) else None
        self.builder.compactions.append(
            Compaction(len(self.builder.messages) - 1, "edit", "server", before, sent, None, tuple(self._live), call=call.index, raw=(number,))
        )

    def seen(self, context: Sequence[int]) -> list[int]:
        """What of a request's messages the model reads: nothing that stands before the last compaction block."""
        flags = [COMPACT_SUMMARY in self.builder.messages[index].flags for index in context]
        return list(context[len(flags) - 1 - flags[::-1].index(True) :]) if True in flags else list(context)

    def _alive(self, indices: list[int]) -> list[int]:
        self._live += indices
        return indices

    def _faults(self, number: int, place: str) -> None:
        for fault in dict.fromkeys(self.blocks.faults):
            self.builder.report(number, "content", f"record {number}{place}: {fault}")
        self.blocks.faults.clear()


def _around(usage: Any) -> tuple[int | None, int | None]:
    """Prompt of the request that made the summary, and of the one that went on with it, where the usage lists them."""
    items = [mapping(item) for item in listing(mapping(usage).get("iterations"))]
    prompts = [_prompt(item) for item in items]
    for at, item in enumerate(items):
        if item.get("type") == "compaction":
            return prompts[at], next(iter(prompts[at + 1 :]), None)
    return None, None


def _prompt(item: Any) -> int | None:
    usage: Usage | None = usage_of(item)[0]
    return None if usage is None else usage.prompt


def _tools(request: dict[str, Any]) -> list[ToolSpec]:
    found = []
    for tool in map(mapping, listing(request.get("tools"))):
        if name := string(tool.get("name"), tool.get("type")):
            schema = tool.get("input_schema")
            if schema is None:  # a tool that the provider runs: its settings are all that is known
                schema = {key: value for key, value in tool.items() if key not in ("name", "description", "cache_control") and value is not None}
            found.append(ToolSpec(name, string(tool.get("description")), schema))
    return found


def lead_of(messages: Sequence[Any]) -> int:
    """How many of the first messages are system text: a server may take it there too."""
    return leading(messages, lambda message: string(message.get("role")))


def key_of(message: Any) -> Hashable:
    """A key that is equal for a response and for the message in which a client sends it back.

    Clients drop thinking, citations, results of server-run tools and cache marks, and join texts; so these do not count.
    """
    value = mapping(message)
    texts: list[str] = []
    others: list[Hashable] = []
    for block in listing(value["content"]) if type(value.get("content")) is list else [value.get("content")]:
        if type(block) is str:
            texts.append(block)
            continue
        item = mapping(block)
        kind = string(item.get("type"))
        if kind == "text" or (not kind and "text" in item):
            texts.append(string(item.get("text")))
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            others.append(("call", string(item.get("id")) or as_json(item.get("input")), string(item.get("name"))))
        elif kind == "tool_result":
            others.append(("result", string(item.get("tool_use_id")), _plain(item.get("content"))))
        elif kind == "compaction":
            others.append(("compaction", _plain(item.get("content"))))
        elif kind not in ("thinking", "redacted_thinking") and not kind.endswith("_tool_result"):
            source = mapping(item.get("source"))
            others.append((kind, string(source.get("data"), source.get("url"), source.get("file_id"))))
    return string(value.get("role")) or "assistant", "".join(texts).strip(), tuple(others)


def _plain(content: Any) -> str:
    if type(content) is str:
        return content.strip()
    if type(content) is list:
        return "".join(string(mapping(item).get("text")) or (as_json(item) if mapping(item).get("type") != "text" else "") for item in content).strip()
    return as_json(content)
