"""A canonical transcript as vak holds it."""

from __future__ import annotations

from collections.abc import Sequence

from ...ledger import View
from ...model import Media, Text, ToolCall, ToolResult
from ...model import Message as Canonical
from ...turns import starts_turn
from .. import vak
from .common import arguments, prompt_text, tool_specs


def as_vak(view: View) -> tuple[str, list[vak.Tool], list[vak.Message]]:
    """The system prompt, the tools and the history that the original would be given for a view."""
    return prompt_text(view), as_tools(view), as_messages(view.messages[view.lead :])


def as_tools(view: View) -> list[vak.Tool]:
    """The tools of a view's thread."""
    return [vak.Tool(tool.name, tool.description, tool.parameters) for tool in tool_specs(view)]


def as_messages(messages: Sequence[Canonical]) -> list[vak.Message]:
    """Messages as vak's. See `as_message`."""
    return list(map(as_message, messages))


def as_message(message: Canonical) -> vak.Message:
    """One message as vak's.

    All texts are one text block, at the place of the first; calls and results are blocks in their order. A client tool's
    result is a user message; meta rows, later system text, summaries and notes are user messages too: vak has no other
    role. Reasoning is left out, as are media other than a person's images. Arguments that are no JSON are a string.
    """
    text, images = message.text, starts_turn(message)
    said = False
    blocks: list[vak.Block] = []
    for part in message.parts:
        if type(part) is Text:
            if not said:
                blocks.append(vak.Text(text))
            said = True
        elif type(part) is ToolCall:
            blocks.append(vak.ToolUse(part.id, part.name, arguments(part)))
        elif type(part) is ToolResult:
            blocks.append(vak.ToolResult(part.call_id, part.text, part.is_error))
        elif images and type(part) is Media and part.kind == "image":
            blocks.append(vak.Image({"type": "sha256", "media_type": part.mime or "", "data": part.sha256 or ""}))
    return vak.Message("assistant" if message.role == "assistant" else "user", tuple(blocks))
