"""What a provider adds around messages: an estimate by family, kept apart from the texts' own tokens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Framing:
    """Constant overheads, in tokens.

    Parameters
    ----------
    per_message, per_request, per_tool : int
        Added once for each message, each request and each tool schema.
    """

    name: str
    per_message: int
    per_request: int
    per_tool: int


OPENAI_CHAT = Framing("openai-chat", per_message=4, per_request=3, per_tool=8)
