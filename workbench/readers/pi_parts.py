"""Content and usage of pi's messages."""

from __future__ import annotations

from typing import Any

from ..model import Media, Opaque, Part, Reasoning, Text, ToolResult, Usage
from .fields import json_text, mapping, size_of, string, tool_call
from .media import from_base64
from .usage import tokens


def parts_of(content: Any, faults: list[str]) -> list[Part]:
    """Parts of a message's content: text, or a list of blocks. What is not readable is said in `faults`."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    if content is None:
        return []
    found: list[Part] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            found.append(Text(block))
        elif isinstance(block, dict):
            found.append(_part(block, faults))
        elif block is not None:
            faults.append("a content block is not an object")
            found.append(Text(json_text(block)))
    return found


def _part(block: dict[str, Any], faults: list[str]) -> Part:
    kind, text = block.get("type"), block.get("text")
    if kind == "text" and isinstance(text, str):
        return Text(text)
    if kind == "thinking":
        signature = string(block.get("thinkingSignature"))
        return Reasoning(string(block.get("thinking")) or None, size_of(signature) if signature else None)
    if kind == "toolCall":
        return tool_call(block.get("id"), block.get("name"), block.get("arguments"))
    if kind == "image":
        return from_base64("image", block.get("mimeType"), block.get("data"))
    if isinstance(text, str):
        return Text(text)
    faults.append(f"a content block of unknown type {str(kind)[:40]!r}")
    return Opaque(str(kind)[:60], size_of(block))


def result_of(message: dict[str, Any]) -> ToolResult:
    """What a tool gave back."""
    parts = tuple(part for part in parts_of(message.get("content"), []) if isinstance(part, Text | Media | Opaque))
    return ToolResult(string(message.get("toolCallId")), string(message.get("toolName")) or None, parts, message.get("isError") is True)


def bash_text(message: dict[str, Any]) -> str:
    """What the model reads of a command that the user ran: pi sends it as text of the user's."""
    output, code = string(message.get("output")), message.get("exitCode")
    text = f"Ran `{string(message.get('command'))}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    if message.get("cancelled") is True:
        return f"{text}\n\n(command cancelled)"
    return f"{text}\n\nCommand exited with code {code}" if type(code) is int and code else text


def usage_of(raw: Any) -> tuple[Usage | None, str | None, bool]:
    """Usage, what was wrong with it, and whether the stated total is another one than the sum.

    The buckets are disjoint. A response that never came has zeros everywhere: its usage is not known.
    """
    usage = mapping(raw)
    if not usage:
        return None, None if raw is None or raw == {} else "usage is not an object", False
    named = [usage.get(name) for name in ("input", "cacheRead", "cacheWrite", "output")]
    fresh, read, write, output = known = [tokens(number) for number in named]
    if known.count(None) > named.count(None):
        return Usage(output=output), "inconsistent usage (a number that is no token count)", False
    total = sum(number or 0 for number in known)
    if not total:
        return None, None, False
    stated = tokens(usage.get("totalTokens"))
    return Usage(fresh, read, write, None, output), None, stated is not None and stated not in (0, total)
