"""Counts the parts of messages: texts by a counter, media by their size, opaque content not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..model import COMPACT_SUMMARY, KINDS, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .base import Bools, Counter, Ints
from .images import media_tokens
from .measure import Flag, Progress, measure

KIND = {name: code for code, name in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class CountedParts:
    """Counted parts of some messages, and some texts beside them.

    Parameters
    ----------
    row, number : int array, shape (p,)
        Place among the messages, and place in ``Message.parts``. What a tool result holds has a row for each of its parts.
    kind : int array, shape (p,)
        Code in ``KINDS``.
    tokens : int array, shape (p,)
    estimated : bool array, shape (p,)
        True where the number is not a plain count of text: media, opaque content, a text that had to be cut.
    opaque : int array, shape (p,)
        Bytes of content that cannot be read here and is not in `tokens`; -1 if there is some of unknown size.
    extra : int array
        Tokens of the texts that were given beside the messages.
    """

    row: Ints
    number: Ints
    kind: Ints
    tokens: Ints
    estimated: Bools
    opaque: Ints
    extra: Ints


@dataclass(frozen=True, slots=True)
class _Measure:
    """How one part is counted: its texts, and what is known without counting."""

    kind: str
    texts: tuple[str, ...] = ()
    tokens: int = 0
    estimated: bool = False
    opaque: int = 0


def count_parts(
    messages: Sequence[Message],
    counter: Counter,
    model: str | None,
    *,
    extra: Sequence[str] = (),
    progress: Progress | None = None,
    cancel: Flag | None = None,
) -> CountedParts:
    """Count every part of some messages.

    Parameters
    ----------
    model : str or None
        Decides how images are counted.
    extra : sequence of str
        Texts to count in the same go.
    """
    texts: list[str] = []
    owner: list[int] = []
    rows: list[tuple[int, int, int, int, bool, int]] = []
    for at, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            for item in _measures(message, part, model):
                owner.extend([len(rows)] * len(item.texts))
                texts.extend(item.texts)
                rows.append((at, number, KIND[item.kind], item.tokens, item.estimated, item.opaque))
    measured = measure(counter, [*texts, *extra], progress=progress, cancel=cancel)
    table = np.array(rows, np.int64).reshape(-1, 6)
    tokens, estimated = table[:, 3].copy(), table[:, 4].astype(bool)
    owners = np.array(owner, np.int64)
    np.add.at(tokens, owners, measured.tokens[: len(texts)])
    np.logical_or.at(estimated, owners, measured.estimated[: len(texts)])
    return CountedParts(table[:, 0], table[:, 1], table[:, 2], tokens, estimated, table[:, 5], measured.tokens[len(texts) :])


_TEXT_KIND = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool_result", "note": "note"}


def _measures(message: Message, part: Part, model: str | None) -> list[_Measure]:
    if type(part) is Text:
        return [_Measure("note" if COMPACT_SUMMARY in message.flags else _TEXT_KIND[message.role], (part.text,))]
    if type(part) is Reasoning:
        # A blob in the context costs tokens, but nobody says how many: it is shown by its bytes and flagged.
        hidden = part.opaque_bytes is not None or part.text is None
        size = part.opaque_bytes if part.opaque_bytes is not None else -1 if part.text is None else 0
        return [_Measure("reasoning", (part.text,) if part.text else (), 0, hidden, size)]
    if type(part) is ToolCall:
        return [_Measure("tool_call", (part.name, part.arguments_raw))]
    if type(part) is ToolResult:
        inner = [item for child in part.parts for item in _result_measures(message, child, model)]
        return inner or [_Measure("tool_result")]
    if type(part) is Media:
        return [_Measure("media", (), media_tokens(part, model), True)]
    assert type(part) is Opaque
    kind = "note" if COMPACT_SUMMARY in message.flags else _TEXT_KIND[message.role]
    return [_Measure(kind, (), 0, True, -1 if part.size is None else part.size)]


def _result_measures(message: Message, child: Text | Media | Opaque, model: str | None) -> list[_Measure]:
    if type(child) is Media:
        return _measures(message, child, model)
    if type(child) is Text:
        return [_Measure("tool_result", (child.text,))]
    return [_Measure("tool_result", (), 0, True, -1 if child.size is None else child.size)]  # type: ignore[union-attr]
