"""vak's messages: a role and blocks, read from and written to JSON. Rules: four_systems.md §5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["user", "assistant"]
JSON = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning. It counts nothing and shows in no transcript."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call; `input` is any JSON."""

    id: str
    name: str
    input: Any


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave back."""

    tool_use_id: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `source` is ``{type, media_type, data}``; it counts nothing."""

    source: Any


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider's own block, passed through as `raw`."""

    kind: str
    raw: Any


Block = Text | Thinking | ToolUse | ToolResult | Image | Provider


@dataclass(frozen=True, slots=True)
class Message:
    """One message. A tool's result is a block of a user message."""

    role: Role
    content: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The text blocks, joined by a line feed."""
        return "\n".join(block.text for block in self.content if type(block) is Text)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool's specification; `input_schema` is any JSON."""

    name: str
    description: str
    input_schema: Any


def from_json(value: JSON) -> Message:
    """Read a message.

    Raises
    ------
    KeyError
        A field is missing, or a block has an unknown type.
    """
    return Message(value["role"], tuple(_READ[block["type"]](block) for block in value["content"]))


def to_json(message: Message) -> dict[str, Any]:
    """Write a message."""
    return {"role": message.role, "content": [_write(block) for block in message.content]}


_READ: dict[str, Callable[[JSON], Block]] = {
    "text": lambda block: Text(block["text"]),
    "thinking": lambda block: Thinking(block["text"], block.get("signature")),
    "tool_use": lambda block: ToolUse(block["id"], block["name"], block["input"]),
    "tool_result": lambda block: ToolResult(block["tool_use_id"], block["content"], block.get("is_error", False)),
    "image": lambda block: Image(block["source"]),
    "provider": lambda block: Provider(block["kind"], block["raw"]),
}


def _write(block: Block) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text, signature):
            return {"type": "thinking", "text": text} | ({} if signature is None else {"signature": signature})
        case ToolUse(id_, name, given):
            return {"type": "tool_use", "id": id_, "name": name, "input": given}
        case ToolResult(id_, content, is_error):
            return {"type": "tool_result", "tool_use_id": id_, "content": content, "is_error": is_error}
        case Image(source):
            return {"type": "image", "source": source}
        case Provider(kind, raw):
            return {"type": "provider", "kind": kind, "raw": raw}
