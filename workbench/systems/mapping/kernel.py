"""A canonical transcript as agent_runtime_kernel holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ledger import View
from ...model import Message as Canonical
from ..agent_runtime_kernel import ContextItem, Message
from .common import prompt_parts, request_row


@dataclass(frozen=True, slots=True)
class KernelInput:
    """What the original would be given at the newest turn of a view, and what that turn added since.

    Parameters
    ----------
    prompt : str
        The first part of the system prompt.
    items : sequence of ContextItem
        Its other parts, in their order.
    history : sequence of Message
        All before the newest person's message; empty if no person has spoken.
    request : sequence of Message
        The newest person's message; empty if there is none.
    added : sequence of Message
        What follows it; all of the history if no person has spoken.
    """

    prompt: str
    items: Sequence[ContextItem]
    history: Sequence[Message]
    request: Sequence[Message]
    added: Sequence[Message]


def as_kernel(view: View) -> KernelInput:
    """A view as the original's slots."""
    prompt, *parts = prompt_parts(view) or ("",)
    items = [ContextItem(f"system {number}", part) for number, part in enumerate(parts, 2)]
    rest = view.messages[view.lead :]
    at = request_row(view)
    start = 0 if at is None else at - view.lead
    request = rest[start : start + (at is not None)]
    return KernelInput(prompt, items, as_messages(rest[:start]), as_messages(request), as_messages(rest[start + len(request) :]))


def as_messages(messages: Sequence[Canonical]) -> list[Message]:
    """Messages as role and text: a call is a line ``NAME(ARGUMENTS)``, a note is the system's."""
    return [as_message(message) for message in messages]


def as_message(message: Canonical) -> Message:
    """One message as role and text."""
    result = message.result
    if result is not None:
        return Message("tool", result.text)
    calls = (f"{call.name}({call.arguments_raw})" for call in message.calls)
    lines = ([message.text] if message.text else []) + list(calls)
    return Message("system" if message.role == "note" else message.role, "\n".join(lines))
