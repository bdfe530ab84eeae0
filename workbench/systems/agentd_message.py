"""Messages of agentd: their records, their estimates and their form on the wire. Rules: four_systems.md §4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .agentd_json import InvalidRecord, anything, fields, flag, items, one_of, optional, text, unsigned
from .rustjson import dumps

CHARS_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
NOTE_PREFIX = "[note] "


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call; `arguments` is any JSON."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class System:
    """Text of the system."""

    role: ClassVar[str] = "system"
    text: str
    ts: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """Text that the agent was told on the side: to the model a system message with a mark in front."""

    role: ClassVar[str] = "note"
    text: str
    ts: int = 0


@dataclass(frozen=True, slots=True)
class User:
    """What a user said; `principal` names the user."""

    role: ClassVar[str] = "user"
    text: str
    principal: str | None = None
    ts: int = 0


@dataclass(frozen=True, slots=True)
class Assistant:
    """What the model answered and called."""

    role: ClassVar[str] = "assistant"
    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    ts: int = 0


@dataclass(frozen=True, slots=True)
class Tool:
    """What the call `id` gave: `content` is any JSON."""

    role: ClassVar[str] = "tool"
    id: str
    name: str
    content: Any
    is_error: bool = False
    ts: int = 0


Msg = System | User | Assistant | Tool | Note


def estimate(value: str) -> int:
    """Tokens of a text: its characters, four to a token, rounded up.

    Examples
    --------
    >>> estimate(""), estimate("abcde"), estimate("漢字漢字")
    (0, 2, 1)
    """
    return -(-len(value) // CHARS_PER_TOKEN)


def estimate_value(value: Any) -> int:
    """Tokens of a JSON value: a string's own text, else its compact JSON with sorted keys. Null is 1.

    Examples
    --------
    >>> estimate_value("abcd"), estimate_value(None), estimate_value({"k": "vvvv", "n": [1, 2, 3]})
    (1, 1, 6)
    """
    return estimate(value if isinstance(value, str) else dumps(value))


def est_tokens(message: Msg) -> int:
    """Tokens of a message. Ids, principal, a tool's name and the error mark cost nothing; each text rounds up on its own.

    Examples
    --------
    >>> est_tokens(Assistant("abcde", (ToolCall("c1", "read", {}),))), est_tokens(Note("abcde"))
    (8, 6)
    """
    if isinstance(message, Assistant):
        body = estimate(message.text or "") + sum(estimate(call.name) + estimate_value(call.arguments) for call in message.tool_calls)
    elif isinstance(message, Tool):
        body = estimate_value(message.content)
    else:
        body = estimate(message.text)
    return body + TOKENS_PER_MESSAGE


def to_wire(message: Msg) -> dict[str, Any]:
    """The message as the provider's adapter gets it: no times, no principal, no note, a result's content as text."""
    if isinstance(message, Assistant):
        return {"kind": "assistant", "text": message.text, "tool_calls": [_call_json(call) for call in message.tool_calls]}
    if isinstance(message, Tool):
        content = message.content if isinstance(message.content, str) else dumps(message.content)
        return {"kind": "tool_result", "id": message.id, "content": content, "is_error": message.is_error}
    if isinstance(message, User):
        return {"kind": "user", "text": message.text}
    return {"kind": "system", "text": NOTE_PREFIX + message.text if isinstance(message, Note) else message.text}


def message_json(message: Msg) -> dict[str, Any]:
    """The message's record; what is empty or none is left out."""
    record: dict[str, Any] = {"role": message.role}
    if isinstance(message, Assistant):
        if message.text is not None:
            record["text"] = message.text
        if message.tool_calls:
            record["tool_calls"] = [_call_json(call) for call in message.tool_calls]
    elif isinstance(message, Tool):
        record |= {"id": message.id, "name": message.name, "content": message.content, "is_error": message.is_error}
    else:
        record["text"] = message.text
        if isinstance(message, User) and message.principal is not None:
            record["principal"] = message.principal
    record["ts"] = message.ts
    return record


def message_from_json(value: Any) -> Msg:
    """A message of its record.

    Raises
    ------
    InvalidRecord
        The role is unknown, or a field is missing or of a wrong type.
    """
    if not isinstance(value, dict) or "role" not in value:
        raise InvalidRecord("a message is an object with a role")
    role = _ROLE(value["role"])
    if role == "assistant":
        return Assistant(**fields(value, role, {"text": optional(text), "tool_calls": items(_call), "ts": unsigned}))
    if role == "tool":
        readers = {"id": text, "name": text, "content": anything, "is_error": flag, "ts": unsigned}
        return Tool(**fields(value, role, readers, ("id", "name", "content")))
    if role == "user":
        return User(**fields(value, role, {"text": text, "principal": optional(text), "ts": unsigned}, ("text",)))
    return (Note if role == "note" else System)(**fields(value, role, {"text": text, "ts": unsigned}, ("text",)))


_ROLE = one_of("system", "user", "assistant", "tool", "note")


def _call(value: Any) -> ToolCall:
    return ToolCall(**fields(value, "a tool call", {"id": text, "name": text, "arguments": anything}, ("id", "name", "arguments")))


def _call_json(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}
