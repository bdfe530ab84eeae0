"""A canonical transcript as agentd holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ledger import View
from ...model import Message as Canonical
from ...turns import starts_turn
from .. import agentd
from ..rustjson import loads
from .common import arguments, is_aside, result_names


def as_messages(view: View, messages: Sequence[Canonical]) -> list[agentd.Msg]:
    """Messages of a view as agentd's.

    Only a person's message is a user's, without a principal; later system text is the system's; meta rows, summaries of
    real compactions and notes are notes. A result's content is JSON if its text is. Reasoning is left out, as is media.
    Leading system text is no message: the original keeps its prompt elsewhere, and does not estimate it.
    """
    names = result_names(view)
    return [as_message(message, names) for message in messages]


def as_message(message: Canonical, names: Mapping[int, str]) -> agentd.Msg:
    """One message; `names` gives the tool of a result whose source leaves it out."""
    ts = max(message.ts or 0, 0)
    if starts_turn(message):
        return agentd.User(message.text, ts=ts)
    if is_aside(message):
        return agentd.Note(message.text, ts)
    if message.role == "assistant":
        calls = tuple(agentd.ToolCall(call.id, call.name, arguments(call)) for call in message.calls)
        return agentd.Assistant(message.text or None, calls, ts)
    result = message.result
    if result is not None:
        name = names.get(message.index, "") if result.name is None else result.name
        return agentd.Tool(result.call_id, name, _content(result.text), result.is_error, ts)
    if message.role == "system":
        return agentd.System(message.text, ts)
    return agentd.Note(message.text, ts)


def _content(text: str) -> object:
    """The JSON value that a text is, else the text."""
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text
