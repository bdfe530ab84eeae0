"""Messages of LangChain, in each of the ways in which they are written: from one message object to a `Message`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import COMPACT_SUMMARY, META, Compaction, Media, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .anthropic_blocks import Blocks, CompactionBlock
from .build import Builder, DraftMessage
from .fields import epoch_ms, json_text, listing, mapping, size_of, string, tool_call
from .langchain_stream import joined
from .media import from_base64, from_url
from .responses_items import content_parts
from .usage import anthropic, inclusive, langchain, tokens

#: Types of messages, and the roles that stand for them where messages were turned into OpenAI's.
TYPES: dict[str, Role | None] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "chat": None,  # its role stands beside
    "remove": None,
}
_ROLES = {"user": "human", "assistant": "ai", "system": "system", "developer": "system", "tool": "tool", "function": "function", "human": "human", "ai": "ai"}
_CLASS = re.compile(r"(Human|AI|System|Tool|Function|Chat|Remove)Message(Chunk)?")
#: Blocks that repeat what stands in ``tool_calls``.
_CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "custom_tool_call"})
_SERVER_CALLS = frozenset({"server_tool_use", "server_tool_call", "server_tool_call_chunk", "mcp_tool_use"})
#: Blocks that are read as Anthropic writes them.
_ANTHROPIC = frozenset({"thinking", "redacted_thinking", "document", "search_result", "compaction", "tool_result", "tool_reference", "container_upload"})
_MEDIA = frozenset({"image", "audio", "video", "file", "media"})
REMOVE_ALL = "__remove_all__"


def plain(value: Any) -> dict[str, Any] | None:
    """A message as one flat object whose ``type`` is one of `TYPES`; None if it is none.

    Examples
    --------
    >>> plain({"type": "human", "data": {"content": "hi"}})
    {'content': 'hi', 'type': 'human'}
    >>> plain({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": "hi"}})
    {'content': 'hi', 'type': 'ai'}
    """
    if not isinstance(value, dict):
        return None
    named = value.get("type")
    if type(named) is str and named in TYPES and "content" in value and "lc" not in value and "data" not in value:  # as most are
        return value
    held, chunk = value, False
    if "lc" in value and isinstance(value.get("id"), list):
        name = next((part for part in reversed(value["id"]) if isinstance(part, str)), "")
        if (found := _CLASS.fullmatch(name)) is None or not isinstance(value.get("kwargs"), dict):
            return None
        held, type_, chunk = value["kwargs"], found.group(1).lower(), found.group(2) is not None
    elif isinstance(value.get("data"), dict) and "content" in value["data"]:
        held, type_ = value["data"], string(value.get("type"))
    else:
        type_ = string(value.get("type"))
        if "role" in value and type_ not in TYPES:
            type_ = _ROLES.get(string(value["role"]), "")
        if "content" not in value and not {"tool_calls", "additional_kwargs"} & value.keys() and type_ != "remove":
            return None
    if (named := _CLASS.fullmatch(type_)) is not None:
        type_, chunk = named.group(1).lower(), named.group(2) is not None
    if type_ not in TYPES:
        return None
    if held is value and not chunk and value.get("type") == type_:
        return value
    return {**held, "type": type_, **({"chunk": True} if chunk else {})}


@dataclass(frozen=True, slots=True)
class _Compacted:
    """A provider's compaction block: a message of its own."""

    parts: tuple[Part, ...]


@dataclass(slots=True)
class Messages:
    """Reads messages one after the other into a `Builder`, as LangGraph keeps them: by id, until one is removed.

    Parameters
    ----------
    alive : dict
        Messages that are in the state now, in order: index by id.
    known : dict
        All that ever were.
    """

    builder: Builder
    names: dict[str, str] = field(default_factory=dict)
    alive: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    #: The place of the compaction that the removals read last belong to.
    removing: int | None = None

    def read(self, values: Iterable[tuple[int, str, Any]]) -> None:
        """Read messages: the record of each, where in it the message stands (for diagnostics), and the message.

        Chunks of one stream that follow each other are one response.
        """
        stream: list[tuple[int, str, dict[str, Any]]] = []
        for record, place, value in values:
            message = plain(value)
            if message is None:
                self._flush(stream)
                self.builder.skip(record, "message", f"record {record}{place}: not a message ({_named(value)})")
            elif message.get("chunk") and message["type"] == "ai":
                if stream and stream[-1][2].get("id") != message.get("id"):
                    self._flush(stream)
                stream.append((record, place, message))
            else:
                self._flush(stream)
                self._add(message, record, f"record {record}{place}")
        self._flush(stream)

    def _flush(self, stream: list[tuple[int, str, dict[str, Any]]]) -> None:
        if stream:
            record, place, _ = stream[0]
            draft = self._add(joined([message for _, _, message in stream]), record, f"record {record}{place}")
            for record, _, _ in stream[1:]:
                if draft is not None:
                    self.builder.extend(draft, (), record)
                else:
                    self.builder.account(record, "messages")
        stream.clear()

    def _add(self, message: dict[str, Any], record: int, where: str) -> DraftMessage | None:
        if message["type"] == "remove":
            self._remove(message, record)
            return None
        id_ = string(message.get("id"))
        if id_ and id_ in self.known:  # it is put into the state again
            self.builder.account(record, "messages")
            self.alive[id_] = self.known[id_]
            if self.removing is not None:
                last = self.builder.compactions[self.removing]
                self.builder.compactions[self.removing] = replace(last, kept=(*last.kept, self.known[id_]))
            return None
        draft = self._message(message, record, where)
        if self.removing is not None and COMPACT_SUMMARY in draft.flags:
            last = self.builder.compactions[self.removing]
            self.builder.compactions[self.removing] = replace(last, kind="summary", summary=draft.index)
        elif draft.role == "assistant":
            self.removing = None
        self.alive[id_ or f"#{draft.index}"] = draft.index
        if id_:
            self.known[id_] = draft.index
        return draft

    def _message(self, message: dict[str, Any], record: int, where: str) -> DraftMessage:
        builder, type_ = self.builder, message["type"]
        more, about = mapping(message.get("additional_kwargs")), mapping(message.get("response_metadata"))
        role = TYPES[type_]
        flags: Iterable[str] = ()
        if role is None:
            role = TYPES.get(_ROLES.get(string(message.get("role")).lower(), ""))
            if role is None:
                builder.report(record, "role", f"{where}: unknown role {string(message.get('role'))[:40]!r}, taken as text that no person wrote")
                role, flags = "user", (META,)
        id_, ts = string(message.get("id")), None
        if (at := message.get("timestamp") or message.get("created_at") or about.get("created_at")) is not None:
            ts = epoch_ms(at)
        if role == "tool":
            call_id = string(message.get("tool_call_id"))
            held = self._parts(message.get("content"), (), record, where)
            parts = tuple(part for part in held if isinstance(part, Text | Media | Opaque) and not _is_empty(part))
            name = string(message.get("name"), self.names.get(call_id)) or None
            return builder.message("tool", [ToolResult(call_id, name, parts, message.get("status") == "error")], record, id=id_, ts=ts)
        if role != "assistant":
            if more.get("lc_source") == "summarization":
                flags = (COMPACT_SUMMARY,)
            found = [part for part in self._parts(message.get("content"), (), record, where) if not _is_empty(part)]
            results = [part for part in found if type(part) is ToolResult]
            for result in results:  # as Anthropic holds them
                builder.message("tool", [result], record, ts=ts)
            rest = [part for part in found if type(part) is not ToolResult]
            if results and not rest:
                return builder.messages[-1]
            return builder.message(role, rest, record, id=id_, ts=ts, flags=flags)
        return self._answer(message, record, where, ts)

    def _answer(self, message: dict[str, Any], record: int, where: str, ts: int | None) -> DraftMessage:
        builder = self.builder
        more, about = mapping(message.get("additional_kwargs")), mapping(message.get("response_metadata"))
        calls = _calls(message)
        for held in calls:
            if held.id:
                self.names[held.id] = held.name
        reported = message.get("usage_metadata")
        usage, why = langchain(reported)
        if usage is None and why is None:  # what the provider sent
            raw = about.get("usage")
            own = isinstance(raw, dict) and "input_tokens" in raw and "prompt_tokens" not in raw
            usage, why = anthropic(raw) if own else inclusive(about.get("token_usage") or raw)
        if why:
            builder.report(record, "usage", f"{where}: {why}")
        elif usage is not None and (stated := tokens(mapping(reported).get("total_tokens"))) is not None and stated != usage.total:
            builder.report(record, "usage_total", f"{where}: the stated total is {stated:,} tokens, its parts add up to {usage.total or 0:,}")
        call = builder.call(
            string(about.get("id"), message.get("id")),
            model=string(about.get("model_name"), about.get("model"), about.get("model_id")) or None,
            usage=usage,
            stop_reason=string(about.get("finish_reason"), about.get("stop_reason"), about.get("stopReason"), about.get("done_reason")) or None,
            ts=ts,
        )
        parts = self._parts(message.get("content"), calls, record, where)
        if more or "reasoning_content" in message:
            parts[:0] = _beside(more, message, parts)
        if calls:
            placed = {id(part) for part in parts}
            parts += [part for part in calls if id(part) not in placed]
        id_ = string(message.get("id"))
        rest: list[Part] = []
        for part in parts:
            if type(part) is _Compacted:
                after = len(builder.messages) - 1
                summary = builder.message("assistant", part.parts, record, ts=ts, call=call.index, flags=(COMPACT_SUMMARY,))
                builder.compactions.append(Compaction(after, "summary", "server", summary=summary.index, call=call.index, raw=(record,)))
            elif not _is_empty(part):
                rest.append(part)
        return builder.message("assistant", rest, record, id=id_, ts=ts, call=call.index)

    def _parts(self, content: Any, calls: Sequence[ToolCall], record: int, where: str) -> list[Any]:
        """Parts of a content. A block that repeats one of the calls stands for it, so that the order is kept."""
        if type(content) is str:  # as nearly all are
            return [Text(content)] if content else []
        blocks = Blocks(self.names, [])
        held = {call.id: call for call in calls if call.id}
        found: list[Any] = []
        for block in content if isinstance(content, list) else [content]:
            if isinstance(block, str):
                found.append(Text(block))
            elif isinstance(block, dict):
                self._block(block, held, bool(calls), blocks, found)
            elif block is not None:
                blocks.faults.append("a content block is neither text nor an object")
                found.append(Text(json_text(block)))
        for fault in dict.fromkeys(blocks.faults):
            self.builder.report(record, "content", f"{where}: {fault}")
        return found

    def _block(self, block: dict[str, Any], held: dict[str, ToolCall], called: bool, blocks: Blocks, found: list[Any]) -> None:
        kind = string(block.get("type"))
        if kind == "non_standard" and isinstance(block.get("value"), dict) and string(block["value"].get("type")) != "non_standard":
            block = block["value"]
            kind = string(block.get("type"))
        if kind in _CALLS:
            id_ = string(block.get("id") if kind != "function_call" else block.get("call_id"), block.get("id"))
            if id_ in held:
                found.append(held.pop(id_))
            elif not called:
                found.append(tool_call(id_, block.get("name"), _first(block, "input", "args", "arguments")))
        elif kind in _SERVER_CALLS:
            found.append(tool_call(block.get("id"), block.get("name"), _first(block, "input", "args"), server_side=True))
        elif kind == "server_tool_result" or (kind.endswith("_tool_result") and kind != "tool_result" and "output" in block):
            output = block.get("output")
            parts = (Text(output if isinstance(output, str) else json_text(output)),) if output not in (None, "") else ()
            found.append(ToolResult(string(block.get("tool_call_id")), None, parts, block.get("status") == "error"))
        elif kind == "reasoning" and "reasoning" in block:
            hidden = string(mapping(block.get("extras")).get("signature"), block.get("signature"))
            found.append(Reasoning(string(block["reasoning"]) or None, size_of(hidden) if hidden else None))
        elif kind == "reasoning":
            found.append(_summed(block))
        elif kind == "reasoning_content":
            inner = mapping(block.get("reasoning_content"))
            hidden = string(inner.get("signature"))
            found.append(Reasoning(string(inner.get("text")) or None, size_of(hidden) if hidden else None))
        elif kind in _ANTHROPIC or kind.endswith("_tool_result") or (kind == "image" and isinstance(block.get("source"), dict)):
            found += [_Compacted(part.parts) if type(part) is CompactionBlock else part for part in blocks.parts([block])]
        elif kind in _MEDIA and not isinstance(block.get("file"), dict):
            found.append(_medium(kind, block))
        elif kind == "input_json_delta":
            return
        elif kind in ("text", "text-plain") or (not kind and isinstance(block.get("text"), str)):
            text = block.get("text")
            found.append(Text(text if isinstance(text, str) else "" if text is None else json_text(text)))
        else:
            found += content_parts([block])

    def _remove(self, message: dict[str, Any], record: int) -> None:
        """A message that takes others out of the state. Removals that follow each other are one compaction."""
        builder, id_ = self.builder, string(message.get("id"))
        builder.account(record, "compactions")
        if id_ == REMOVE_ALL:
            self.alive.clear()
        elif self.alive.pop(id_, None) is None:
            builder.report(record, "remove", f"record {record}: it removes a message that is not there")
            return
        self.gone(record)

    def gone(self, record: int) -> None:
        """Say that messages have left the state, and that `alive` is what stayed."""
        builder, kept = self.builder, tuple(self.alive.values())
        if self.removing is None:
            self.removing = len(builder.compactions)
            builder.compactions.append(Compaction(len(builder.messages) - 1, "trim", kept=kept, raw=(record,)))
        else:
            last = builder.compactions[self.removing]
            builder.compactions[self.removing] = replace(last, kept=kept, raw=(*last.raw, record))


def _calls(message: dict[str, Any]) -> list[ToolCall]:
    """The calls of a response: those that were understood, those that were not, and else those that the provider sent."""
    found = [_call(call) for call in (*listing(message.get("tool_calls")), *listing(message.get("invalid_tool_calls"))) if isinstance(call, dict)]
    more = mapping(message.get("additional_kwargs"))
    if not found:
        found = [_call(call) for call in listing(more.get("tool_calls")) if isinstance(call, dict)]
    legacy = mapping(more.get("function_call")) or mapping(message.get("function_call"))
    return [tool_call("", legacy.get("name"), legacy.get("arguments"))] if legacy and not found else found


def _call(call: dict[str, Any]) -> ToolCall:
    inner = mapping(call.get("function")) or call
    return tool_call(call.get("id"), inner.get("name"), _first(inner, "args", "arguments", "input"))


def _beside(more: Mapping[str, Any], message: dict[str, Any], parts: list[Any]) -> list[Part]:
    """What stands beside the content: reasoning that no block holds, and a refusal."""
    found: list[Part] = []
    if not any(type(part) is Reasoning for part in parts):
        if text := string(more.get("reasoning_content"), message.get("reasoning_content")):
            found.append(Reasoning(text))
        elif isinstance(more.get("reasoning"), dict):
            found.append(_summed(more["reasoning"]))
    return [*found, Text(string(more.get("refusal")))]


def _is_empty(part: Any) -> bool:
    return type(part) is Text and not part.text


def _summed(block: Mapping[str, Any]) -> Reasoning:
    """Reasoning as the Responses API holds it."""
    text = "\n\n".join(string(mapping(item).get("text")) for item in (listing(block.get("content")) or listing(block.get("summary"))))
    hidden = string(block.get("encrypted_content"))
    return Reasoning(text or string(block.get("text")) or None, size_of(hidden) if hidden else None)


def _medium(kind: str, block: dict[str, Any]) -> Media:
    mime = block.get("mime_type")
    if kind in ("file", "media"):
        head = string(mime).split("/", 1)[0].lower()
        kind = head if head in ("image", "audio", "video") else "document"
    data = string(block.get("base64"), block.get("data"))
    if data:
        return from_base64(kind, mime, data)
    return from_url(kind, string(block.get("url"), block.get("file_uri"), block.get("file_id"), block.get("id")), mime)


def _first(value: Mapping[str, Any], *keys: str) -> Any:
    return next((value[key] for key in keys if value.get(key) is not None), None)


def _named(value: Any) -> str:
    """What a value is, for people."""
    return f"type {string(value.get('type'), value.get('role'))[:40]!r}" if isinstance(value, dict) else type(value).__name__
