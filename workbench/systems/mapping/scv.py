"""A canonical transcript as scv holds it."""

from __future__ import annotations

from collections.abc import Sequence

from ...ledger import View
from ...model import Media, join_text
from ...model import Message as Canonical
from ...turns import starts_turn
from .. import scv
from .common import arguments, is_aside, prompt_text, result_names, tool_specs


def as_scv(view: View) -> tuple[str, list[scv.Tool], list[scv.Message]]:
    """The system prompt, the tools and the history that the original would be given for a view."""
    tools = [scv.Tool(tool.name, tool.description, tool.parameters) for tool in tool_specs(view)]
    return prompt_text(view), tools, as_messages(view, view.messages[view.lead :])


def as_messages(view: View, messages: Sequence[Canonical]) -> list[scv.Message]:
    """Messages of a view as scv's.

    Only a person's message is a user's; meta rows, later system text, summaries and notes are history notes. Reasoning
    is left out, as are media other than a person's images. Arguments that are no JSON are a string.
    """
    names = result_names(view)
    return [_message(message, names) for message in messages]


def _message(message: Canonical, names: dict[int, str]) -> scv.Message:
    if starts_turn(message):
        images = tuple(scv.Image(part.sha256 or "", part.mime or "") for part in message.parts if type(part) is Media and part.kind == "image")
        return scv.Message("user", message.text, images=images)
    if message.role == "assistant" and not is_aside(message):
        return scv.Message("assistant", message.text, tool_calls=tuple(scv.ToolCall(call.id, call.name, arguments(call)) for call in message.calls))
    result = message.result
    if result is not None:
        name = names.get(message.index, "") if result.name is None else result.name
        return scv.Message("tool", join_text(result.parts), call_id=result.call_id, name=name, is_error=result.is_error)
    return scv.Message("history_note", message.text)
