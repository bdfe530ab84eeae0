"""Messages of OpenAI's Chat Completions API: from one message object to the parts of one `Message`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..model import META, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .build import Builder, DraftMessage
from .fields import epoch_ms, json_text, listing, mapping, size_of, string, tool_call
from .media import from_base64
from .responses_items import content_parts, folded, output_parts
from .usage import inclusive

#: Roles, and what LangChain calls them, whose messages have a ``type`` in the place of a role.
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
    "human": "user",
    "ai": "assistant",
}


def role_of(message: dict[str, Any]) -> str:
    """The role as the source has it; ``""`` if it has none."""
    role = message.get("role")
    if role is None and "content" in message and message.get("type") in ("human", "ai", "system", "tool"):
        role = message["type"]
    return role if isinstance(role, str) else ""


def parts_of(message: dict[str, Any], role: Role) -> list[Part]:
    """The parts of a message that is no tool result: reasoning, content, refusal, sound, calls."""
    parts = content_parts(message.get("content"))
    if role == "assistant":
        parts = [*_reasoning(message), *parts, *_rest(message), *_calls(message)]
    return [part for part in parts if part != Text("")]


def _reasoning(message: dict[str, Any]) -> list[Reasoning]:
    """Reasoning as vendors add it; blocks with signatures repeat the plain text, which then is left out."""
    plain = string(message.get("reasoning_content"), message.get("reasoning"))
    found: list[Reasoning] = []
    for block in map(mapping, listing(message.get("thinking_blocks")) or listing(message.get("reasoning_details"))):
        text = string(block.get("thinking"), block.get("text"), block.get("summary"))
        hidden = string(block.get("signature"), block.get("data"))
        if text or hidden:
            found.append(Reasoning(text or None, size_of(hidden) if hidden else None))
    if plain and not any(part.text for part in found):
        found.insert(0, Reasoning(plain))
    return found


def _rest(message: dict[str, Any]) -> list[Part]:
    audio = mapping(message.get("audio"))
    parts: list[Part] = [Text(string(message.get("refusal"))), Text(string(audio.get("transcript")))]
    if audio.get("data") or audio.get("id"):
        parts.append(from_base64("audio", None, audio.get("data")))
    return parts


def _calls(message: dict[str, Any]) -> list[ToolCall]:
    calls = message.get("tool_calls") or mapping(message.get("additional_kwargs")).get("tool_calls")
    found: list[ToolCall] = []
    for call in [calls] if isinstance(calls, dict) else listing(calls):
        value = mapping(call)
        inner = mapping(value.get("function")) or mapping(value.get("custom")) or value
        args = next((inner[key] for key in ("arguments", "input", "args") if inner.get(key) is not None), None)
        found.append(tool_call(value.get("id"), inner.get("name"), args))
    legacy = mapping(message.get("function_call"))
    if legacy and not found:
        found.append(tool_call("", legacy.get("name"), legacy.get("arguments")))
    return found


def key_of(message: Any) -> Hashable:
    """What makes a message the same one when a client sends it again."""
    value: dict[str, Any] = message if isinstance(message, dict) else {}
    role = ROLES.get(role_of(value), "user")
    call_id = string(value.get("tool_call_id"))
    if role == "tool" and call_id:
        return (role, call_id)
    parts = parts_of(value, role)
    ids = tuple(part.id for part in parts if type(part) is ToolCall)
    if ids and all(ids):
        return (role, ids)
    return (role, tuple(_mark(part) for part in parts if type(part) is not Reasoning))


def _mark(part: Part) -> str:
    if type(part) is Text:
        return folded(part.text)
    if type(part) is ToolCall:
        return f"{part.name} {json_text(part.arguments)}"
    return repr(part)


@dataclass(slots=True)
class Messages:
    """Reads messages one after the other into a `Builder`."""

    builder: Builder
    model: str | None = None
    names: dict[str, str] = field(default_factory=dict)

    def add(self, value: Any, record: int, *, call: int | None = None, ts: int | None = None, place: str = "") -> DraftMessage | None:
        """Read one message; None, with a diagnostic, if it is none.

        Parameters
        ----------
        call : int, optional
            Call that made it; by default an assistant's message is the answer to a call of its own.
        place : str
            For diagnostics: where in the record it stands.
        """
        builder = self.builder
        where = f"record {record}{place}"
        if not isinstance(value, dict):
            builder.skip(record, "message", f"{where}: not a message ({type(value).__name__})")
            return None
        name = role_of(value)
        if not name:
            builder.skip(record, "role", f"{where}: a message without a role")
            return None
        role = ROLES.get(name)
        flags: Iterable[str] = ()
        if role is None:
            builder.report(record, "role", f"{where}: unknown role {name[:40]!r}, taken as text that no person wrote")
            role, flags = "user", (META,)
        ts = ts if ts is not None else epoch_ms(value.get("timestamp") or value.get("created_at"))
        id = string(value.get("id"))
        if role == "tool":
            return builder.message(role, [self._result(value)], record, id=id, ts=ts)
        for wrong in ("tool_calls", "content"):
            if value.get(wrong) is not None and not isinstance(value[wrong], str | list | dict):
                builder.report(record, wrong, f"{where}: {wrong} is neither text nor a list ({type(value[wrong]).__name__})")
        parts = parts_of(value, role)
        if role != "assistant":
            return builder.message(role, parts, record, id=id, ts=ts, flags=flags)
        self.names.update({part.id: part.name for part in parts if type(part) is ToolCall and part.id})
        if call is None:
            usage, why = inclusive(value.get("usage") or mapping(value.get("response_metadata")).get("token_usage"))
            if why:
                builder.report(record, "usage", f"{where}: {why}")
            call = builder.call(model=string(value.get("model")) or self.model, usage=usage, ts=ts).index
        return builder.message(role, parts, record, id=id, ts=ts, call=call)

    def _result(self, value: dict[str, Any]) -> ToolResult:
        call_id = string(value.get("tool_call_id"))
        parts: tuple[Any, ...] = output_parts(value.get("content"))
        name = string(self.names.get(call_id) if call_id else None, value.get("name"))
        return ToolResult(call_id, name or None, parts, value.get("status") == "error" or value.get("is_error") is True)


def merged(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One response object out of the chunks of a stream.

    Examples
    --------
    >>> merged([{"choices": [{"delta": {"role": "assistant", "content": "He"}}]},
    ...         {"choices": [{"delta": {"content": "y"}, "finish_reason": "stop"}]}])["choices"]
    [{'message': {'role': 'assistant', 'content': 'Hey'}, 'finish_reason': 'stop'}]
    """
    out: dict[str, Any] = {"object": "chat.completion"}
    message: dict[str, Any] = {"role": "assistant"}
    calls: dict[Any, dict[str, Any]] = {}
    finish = None
    for chunk in chunks:
        out.update({key: chunk[key] for key in ("id", "model", "created", "usage", "error") if chunk.get(key) is not None})
        choice = next((mapping(item) for item in listing(chunk.get("choices")) if mapping(item).get("index", 0) == 0), {})
        finish = choice.get("finish_reason") or finish
        delta = mapping(choice.get("delta")) or mapping(choice.get("message"))
        for key in ("content", "reasoning_content", "reasoning", "refusal"):
            if isinstance(delta.get(key), str):
                message[key] = message.get(key, "") + delta[key]
        for key in ("reasoning_details", "thinking_blocks"):
            if isinstance(delta.get(key), list):
                message[key] = [*message.get(key, []), *delta[key]]
        for piece in map(mapping, listing(delta.get("tool_calls"))):
            _grow(calls, piece)
        legacy = mapping(delta.get("function_call"))
        if legacy:
            held = message.setdefault("function_call", {"name": "", "arguments": ""})
            for key in held:
                held[key] += string(legacy.get(key))
    if calls:
        message["tool_calls"] = list(calls.values())
    out["choices"] = [{"message": message, "finish_reason": finish}]
    return out


def _grow(calls: dict[Any, dict[str, Any]], piece: Any) -> None:
    """Add a piece of a streamed call. Servers that number no calls send each whole, with an id of its own."""
    at = piece.get("index")
    key = at if isinstance(at, int) else string(piece.get("id")) or (next(reversed(calls)) if calls else 0)
    inner = "custom" if isinstance(piece.get("custom"), dict) else "function"
    held = calls.setdefault(key, {"id": "", inner: {}})
    held["id"] = held["id"] or string(piece.get("id"))
    target: dict[str, Any] = next((held[name] for name in ("function", "custom") if name in held), {})
    for name, value in mapping(piece.get(inner)).items():
        if isinstance(value, str):
            target[name] = target.get(name, "") + value if name in ("arguments", "input") else target.get(name) or value
        elif value is not None:
            target[name] = value
