"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Provider = Literal["openai-chat", "openai-responses", "anthropic"]
#: Refused: the request fails. Warning: it is taken, but it is not what was asked for. Notice: the provider takes it, others
#: of the same format may not.
Level = Literal["refused", "warning", "notice"]

#: The providers whose rules are known here. ``any`` in a finding stands for all of them.
PROVIDERS: tuple[Provider, ...] = ("openai-chat", "openai-responses", "anthropic")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a reader of a history must know.

    Parameters
    ----------
    provider : str
        Who would mind: ``any``, ``openai-chat``, ``openai-responses`` or ``anthropic``.
    rule : str
        Name of a `Rule`: ``orphan_result``, ``result_apart``, ``over_window``, …
    messages : tuple of int
        The messages of the transcript that it is about. A note has no index, so it stands in the text only.
    text : str
        One line in plain words.
    in_source : bool
        The recorded history has it too: no policy brought it in. Two findings that differ in this only are equal.
    """

    provider: str
    rule: str
    messages: tuple[int, ...]
    text: str
    in_source: bool = field(default=False, compare=False)
