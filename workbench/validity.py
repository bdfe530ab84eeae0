"""Would a provider accept this list of messages? Each finding names the messages that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .model import Message
from .turns import tool_pairs


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a reader of a history must know.

    Parameters
    ----------
    provider : str
        Who would mind: ``any``, ``openai-chat``, ``openai-responses`` or ``anthropic``.
    rule : str
        Short name: ``over_window``, ``orphan_result``, ``unanswered_call``, ``duplicate_result``.
    messages : tuple of int
        The messages it is about.
    """

    provider: str
    rule: str
    messages: tuple[int, ...]
    text: str


def check_pairs(messages: Sequence[Message]) -> tuple[Finding, ...]:
    """Find tool calls and results whose other half is missing or doubled."""
    found = []
    for pair in tool_pairs(messages):
        if pair.call is None and pair.result is not None:
            found.append(Finding("any", "orphan_result", (pair.result,), f"result #{pair.result} has no call"))
        elif pair.call is not None and pair.result is None:
            found.append(Finding("any", "unanswered_call", (pair.call,), f"call {pair.id or '(no id)'} in #{pair.call} has no result"))
        for twice in pair.duplicates:
            found.append(Finding("any", "duplicate_result", (twice,), f"result #{twice} answers {pair.id or '(no id)'} a second time"))
    return tuple(found)
