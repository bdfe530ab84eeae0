"""Messages of Inspect's logs: from one chat message to the parts of one `Message`; its usage numbers; its attachments."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import META, Media, Opaque, Part, Reasoning, Role, Text, ToolResult, Usage
from .fields import json_text, listing, mapping, size_of, string, tool_call
from .media import from_url
from .usage import tokens

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
#: How a message names a text that stands elsewhere in the sample; the second is that of logs before 2024-11.
_ATTACHED = ("attachment://", "tc://")
#: How Inspect's own agents tell a model to go on. No person wrote that.
_GO_ON = "Please proceed to the next step using your best judgement."


def usage_of(raw: Any) -> tuple[Usage | None, str | None]:
    """Usage of Inspect, whose input leaves out what the cache held and what was written to it.

    Examples
    --------
    >>> usage_of({"input_tokens": 3, "input_tokens_cache_read": 9, "output_tokens": 2})[0].prompt
    12
    """
    usage = mapping(raw)
    if not usage:
        return None, None if raw is None or raw == {} else "usage is not an object"
    names = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write", "output_tokens", "reasoning_tokens")
    given = [usage.get(name) for name in names]
    fresh, read, write, output, reasoning = found = [tokens(number) for number in given]
    if found.count(None) > given.count(None):
        return Usage(output=output, reasoning=reasoning), "inconsistent usage (a number that is no token count)"
    if found.count(None) == len(found):
        return None, None
    return Usage(fresh, read, write, None, output, reasoning), None


@dataclass(slots=True)
class Chat:
    """Reads the chat messages of one sample.

    Parameters
    ----------
    attachments : dict
        Long texts and pictures, which messages name as ``attachment://HASH``. They stand in memory once however often they are named.
    """

    attachments: Mapping[str, Any]
    _hashes: dict[str, str] = field(default_factory=dict)
    _bases: dict[int, Hashable] = field(default_factory=dict)
    _keys: dict[Hashable, Hashable] = field(default_factory=dict)

    def text(self, value: Any) -> str:
        """A string, or the attachment that it names."""
        found = string(value)
        if found.startswith(_ATTACHED):
            return string(self.attachments.get(found.partition("://")[2]), found)
        return found

    def role(self, message: Mapping[str, Any]) -> Role | None:
        """Its role; None if it has none that is known."""
        role = message.get("role")
        return _ROLES.get(role) if isinstance(role, str) else None

    def flags(self, message: Mapping[str, Any]) -> list[str]:
        """Flags of a message that no person wrote."""
        return [META] if message.get("role") == "user" and self.text(message.get("content")).startswith(_GO_ON) else []

    def parts(self, message: Mapping[str, Any], role: Role) -> list[Part]:
        """All parts of a message; a tool's is one result."""
        content = self._content(message.get("content"))
        if role == "tool":
            error = mapping(message.get("error"))
            held = tuple(part for part in content if isinstance(part, Text | Media | Opaque))
            if error and not held:
                held = (Text(string(error.get("message"))),)
            return [ToolResult(string(message.get("tool_call_id")), string(message.get("function")) or None, held, bool(error))]
        if role != "assistant":
            return content
        if reasoning := self.text(message.get("reasoning")):  # logs of early 2025 keep it beside the content
            content.insert(0, Reasoning(reasoning))
        calls = [
            tool_call(call.get("id"), call.get("function"), call.get("arguments")) for call in listing(message.get("tool_calls")) if isinstance(call, dict)
        ]
        return [*content, *calls]

    def _content(self, content: Any) -> list[Part]:
        if isinstance(content, str):
            return [Text(text)] if (text := self.text(content)) else []
        parts: list[Part] = []
        for part in listing(content):
            parts += self._part(part) if isinstance(part, dict) else [Text(self.text(part))] if string(part) else []
        return parts

    def _part(self, part: dict[str, Any]) -> list[Part]:
        kind = string(part.get("type"))
        if kind == "text":
            return [Text(text)] if (text := self.text(part.get("text"))) else []
        if kind == "reasoning":
            shown, hidden = self.text(part.get("summary")) or self.text(part.get("reasoning")), string(part.get("signature"))
            if part.get("redacted") is True:
                return [Reasoning(self.text(part.get("summary")) or None, size_of(self.text(part.get("reasoning")) or hidden))]
            return [Reasoning(shown or None, size_of(hidden) if hidden else None)] if shown or hidden else []
        if kind in ("image", "audio", "video", "document"):
            return [from_url(kind, self.text(part.get(kind)), part.get("mime_type"))]
        if kind == "tool_use":
            return self._server(part)
        return [Opaque(kind or "unknown", size_of(part))]

    def _server(self, part: dict[str, Any]) -> list[Part]:
        """A tool that the provider ran: its call, and its result if it has one."""
        id_, name = string(part.get("id")), string(part.get("name"), part.get("tool_type"))
        parts: list[Part] = [tool_call(id_, name, part.get("arguments"), server_side=True)]
        result, error = part.get("result"), part.get("error")
        if result not in (None, "") or error:
            text = self.text(result) if isinstance(result, str) else "" if result is None else json_text(result)
            parts.append(ToolResult(id_, name or None, (Text(text or string(error)),), bool(error)))
        return parts

    # -- knowing a message again

    def keys(self, messages: Sequence[Any]) -> list[Hashable]:
        """A key for each message of a list, by which it is known again in another list. Of equal messages each has its own."""
        counts: dict[Hashable, int] = {}
        keys: list[Hashable] = []
        for message in messages:
            base = self.base(message)
            at = counts[base] = counts.get(base, -1) + 1
            keys.append(self._keys.setdefault((base, at), (base, at)))  # one object however often it is repeated
        return keys

    def base(self, message: Any) -> Hashable:
        """What makes a message the same one in another list: its id, or what it says where logs have no ids."""
        known = self._bases.get(id(message))
        if known is None:
            known = self._bases[id(message)] = self._base(mapping(message))
        return known

    def _base(self, message: Mapping[str, Any]) -> Hashable:
        if id_ := string(message.get("id")):
            return id_
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        said = tuple(self._hash(part) for part in parts)
        calls = tuple(string(mapping(call).get("id")) for call in listing(message.get("tool_calls")))
        return (string(message.get("role")), string(message.get("tool_call_id")), calls, said)

    def _hash(self, part: Any) -> str:
        held = mapping(part)
        value = next((held[name] for name in ("text", "reasoning", "image", "audio", "video", "document") if held.get(name)), part)
        if isinstance(value, str) and value.startswith(_ATTACHED):
            if value not in self._hashes:
                self._hashes[value] = _digest(self.text(value))
            return self._hashes[value]
        return _digest(value if isinstance(value, str) else json_text(value))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
