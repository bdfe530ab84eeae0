"""Content blocks of Anthropic messages, which Claude Code writes as well, turned into parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ..model import Media, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, compact_json
from . import media
from .jsontext import NotJson, parse

_encode = msgspec.json.Encoder().encode
#: What the encoder raises for lone surrogates, long integers and deep nesting.
_NOT_PLAIN = (UnicodeEncodeError, OverflowError, ValueError, TypeError, RecursionError, msgspec.MsgspecError)
_DEPTH = 20  # documents in results in documents: deeper nesting is no content


@dataclass(frozen=True, slots=True)
class CompactionBlock:
    """A ``compaction`` block: from the next request on it stands for all that was before it."""

    parts: tuple[Part, ...]


@dataclass(slots=True)
class Blocks:
    """Turns the content of messages into parts, one message after the other.

    Parameters
    ----------
    names : dict
        Tool name of every call seen so far, by id: results do not carry it.
    faults : list of str
        What was not as it should be in the content read last; cleared by the caller.
    compacted : bool
        Whether any content so far held a `CompactionBlock`.
    """

    names: dict[str, str]
    faults: list[str]
    compacted: bool = False

    def parts(self, content: Any) -> list[Part | CompactionBlock]:
        """Parts of a message's content, in order: text, or a list of blocks. None has none."""
        if type(content) is str:
            return [Text(content)] if content else []
        if content is None:
            return []
        if type(content) is dict:
            content = [content]
        if type(content) is not list:
            self.faults.append(f"content is {_kind(content)}, not text or blocks")
            return [Text(as_json(content))]
        out: list[Part | CompactionBlock] = []
        for block in content:
            kind = block.get("type") if type(block) is dict else None
            if kind == "tool_use":
                out.append(self._call(block, False))
            elif kind == "tool_result":
                out.append(self._result(block))
            elif kind == "text" and type(text := block.get("text")) is str:
                out.append(Text(text))
            else:
                self._add(block, kind, out)
        return out

    def _add(self, block: Any, kind: Any, out: list[Part | CompactionBlock]) -> None:
        """A block of one of the rarer types, or of none."""
        if type(block) is not dict:
            if type(block) is str:
                out.append(Text(block))
            else:
                self.faults.append(f"a content block is {_kind(block)}, not an object")
        elif kind == "text":
            self._text(block.get("text"), out)
        elif type(kind) is str and (known := _RARE.get(kind)) is not None:
            known(self, block, out)
        elif type(kind) is str and kind.endswith("_tool_result"):
            out.append(self._server_result(block))
        elif type(block.get("text")) is str:  # no type, or one that is not known, but text
            out.append(Text(block["text"]))
        else:
            self.faults.append(f"a content block of unknown type {str(kind)[:40]!r}")
            out.append(Opaque(kind[:60] if type(kind) is str else "unknown", _size(block)))

    def _text(self, text: Any, out: list[Part | CompactionBlock]) -> None:
        if type(text) is str:
            out.append(Text(text))
        else:
            self.faults.append(f"the text of a block is {_kind(text)}")
            if text is not None:
                out.append(Text(as_json(text)))

    def _thinking(self, block: dict[str, Any], out: list[Part | CompactionBlock]) -> None:
        text, signature = block.get("thinking"), block.get("signature")
        if text is not None and type(text) is not str:
            self.faults.append(f"the thinking of a block is {_kind(text)}")
            text = as_json(text)
        out.append(Reasoning(text or None, _length(signature)))

    def _redacted(self, block: dict[str, Any], out: list[Part | CompactionBlock]) -> None:
        out.append(Reasoning(None, _length(block.get("data"))))

    def _server_call(self, block: dict[str, Any], out: list[Part | CompactionBlock]) -> None:
        out.append(self._call(block, True))

    def _call(self, block: dict[str, Any], server_side: bool) -> ToolCall:
        id_, name, arguments = block.get("id"), block.get("name"), block.get("input")
        if type(arguments) is dict and type(id_) is str and type(name) is str and id_:
            self.names[id_] = name
            try:
                return ToolCall(id_, name, arguments, _encode(arguments).decode(), server_side)
            except _NOT_PLAIN:
                return ToolCall(id_, name, arguments, as_json(arguments), server_side)
        if type(id_) is not str or type(name) is not str:
            if (id_ is not None and type(id_) is not str) or type(name) is not str:  # old sources have no id: that is no fault
                self.faults.append("a tool call without a readable id or name")
            id_ = id_ if type(id_) is str else ""
            name = name if type(name) is str else ""
        if id_:
            self.names[id_] = name
        if type(arguments) is str:  # a stream that was cut, or a client that keeps the text
            return ToolCall(id_, name, from_json(arguments), arguments, server_side)
        return ToolCall(id_, name, arguments, "" if arguments is None else as_json(arguments), server_side)

    def _result(self, block: dict[str, Any]) -> ToolResult:
        call_id = block.get("tool_use_id")
        if type(call_id) is not str:
            self.faults.append("a tool result that names no call")
            call_id = ""
        content = block.get("content")
        parts = ((Text(content),) if content else ()) if type(content) is str else self._plain(content)
        return ToolResult(call_id, self.names.get(call_id), parts, block.get("is_error") is True)

    def _server_result(self, block: dict[str, Any]) -> ToolResult:
        """The result of a tool that the provider ran: an object or a list, by the kind of tool."""
        content = block.get("content")
        items = content if type(content) is list else [content]
        parts: list[Text | Media | Opaque] = []
        failed = block.get("is_error") is True
        for item in items:
            if type(item) is not dict:
                parts += self._plain(item)
                continue
            kind = item.get("type")
            failed = failed or (type(kind) is str and kind.endswith("_error"))
            parts += self._server_item(item)
        call_id = block.get("tool_use_id")
        call_id = call_id if type(call_id) is str else ""
        return ToolResult(call_id, self.names.get(call_id), tuple(parts), failed)

    def _server_item(self, item: dict[str, Any]) -> list[Text | Media | Opaque]:
        parts: list[Text | Media | Opaque] = []
        shown = [value for key in ("title", "url", "stdout", "stderr", "error_code", "text") if type(value := item.get(key)) is str and value]
        if shown:
            parts.append(Text("\n".join(shown)))
        if type(item.get("encrypted_content")) is str:
            parts.append(Opaque(str(item.get("type"))[:60], len(item["encrypted_content"])))
        nested = item.get("content")
        if nested is None:
            nested = item.get("tool_references")
        parts += self._plain(nested)
        return parts or ([Text(as_json(item))] if type(item.get("type")) is not str else list(self._plain([item])))

    def _plain(self, content: Any) -> tuple[Text | Media | Opaque, ...]:
        """Content of a result or document: text, media and what cannot be read."""
        if not _shallow(content):
            self.faults.append("content nested too deeply")
            return (Opaque("nested", _size(content)),)
        parts: list[Text | Media | Opaque] = []
        for part in self.parts(content):
            if type(part) is Text or type(part) is Media or type(part) is Opaque:
                parts.append(part)
            elif type(part) is Reasoning and part.text:
                parts.append(Text(part.text))
            elif type(part) is ToolResult:
                parts += part.parts
            elif type(part) is ToolCall:
                parts.append(Text(f"{part.name} {part.arguments_raw}"))
        return tuple(parts)

    def _image(self, block: dict[str, Any], out: list[Part | CompactionBlock]) -> None:
        out.append(_medium("image", block.get("source")))

    def _document(self, block: dict[str, Any], out: list[Part | CompactionBlock]) -> None:
        source = block.get("source")
        if type(source) is dict and source.get("type") == "text":
            self._text(source.get("data"), out)
        elif type(source) is dict and source.get("type") == "content":
            out += self._plain(source.get("content"))
        else:
            out.append(_medium("document", source))

    def _search_result(self, block: dict[str, Any], out: list[Part | CompactionBlock]) -> None:
        shown = [value for key in ("title", "source") if type(value := block.get(key)) is str and value]
        if shown:
            out.append(Text("\n".join(shown)))
        out += self._plain(block.get("content"))

    def _compaction(self, block: dict[str, Any], out: list[Part | CompactionBlock]) -> None:
        parts: tuple[Part, ...] = self._plain(block.get("content"))
        if not parts and type(block.get("encrypted_content")) is str:
            parts = (Opaque("compaction", len(block["encrypted_content"])),)
        self.compacted = True
        out.append(CompactionBlock(parts))

    def _marker(self, block: dict[str, Any], out: list[Part | CompactionBlock]) -> None:
        out.append(Opaque(block["type"], _size(block)))


_RARE: dict[str, Callable[[Blocks, dict[str, Any], list[Part | CompactionBlock]], None]] = {
    "thinking": Blocks._thinking,
    "redacted_thinking": Blocks._redacted,
    "image": Blocks._image,
    "document": Blocks._document,
    "server_tool_use": Blocks._server_call,
    "mcp_tool_use": Blocks._server_call,
    "search_result": Blocks._search_result,
    "compaction": Blocks._compaction,
    "fallback": Blocks._marker,
    "tool_reference": Blocks._marker,
    "container_upload": Blocks._marker,
}
#: Types of blocks that no other provider's messages have.
OWN_TYPES = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "compaction"})


def as_json(value: Any) -> str:
    """Compact JSON of a value that came from JSON; ``""`` if it is nested too deeply to be written."""
    try:
        return _encode(value).decode()
    except _NOT_PLAIN:
        pass
    try:
        return compact_json(value)
    except (RecursionError, ValueError, TypeError):
        return ""


def mark_of(value: Any) -> int:
    """A number that is the same for equal values, and for others as good as never; for this run of the program only."""
    try:
        return hash(tuple(value.items()) if type(value) is dict else value)  # most blocks hold nothing but texts and numbers
    except TypeError:
        return hash(as_json(value))


def marks_of(content: Any) -> tuple[int, ...]:
    """A mark of each block of a content."""
    return tuple([mark_of(block) for block in content]) if type(content) is list else (mark_of(content),)


def from_json(text: str) -> Any:
    """The value of a JSON text, or None if it is none."""
    try:
        return parse(text.encode("utf-8", "surrogatepass")).value
    except NotJson:
        return None


def _medium(kind: str, source: Any) -> Media:
    if type(source) is not dict:
        return Media(kind)
    mime = source.get("media_type")
    if source.get("url") is not None:
        return media.from_url(kind, source["url"], mime)
    if source.get("file_id") is not None:
        return media.from_url(kind, source["file_id"], mime)
    return media.from_base64(kind, mime, source.get("data"))


def _shallow(content: Any) -> bool:
    """Say whether lists of blocks are nested less than so many times."""
    level = [content]
    for _ in range(_DEPTH):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return True
    return False


def _inside(item: Any) -> list[Any]:
    if type(item) is list:
        return [inner for inner in item if type(inner) is dict or type(inner) is list]
    if type(item) is not dict:
        return []
    return [inner for inner in (item.get("content"), item.get("source"), item.get("tool_references")) if type(inner) is dict or type(inner) is list]


def _length(blob: Any) -> int | None:
    return len(blob) if type(blob) is str and blob else None


def _size(value: Any) -> int:
    return len(as_json(value).encode("utf-8", "surrogatepass"))


def _kind(value: Any) -> str:
    """What a value is, for people."""
    if value is None:
        return "null"
    return {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}.get(type(value), "of an odd kind")
