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
    rows = _Rows(model)
    for at, message in enumerate(messages):
        rows.add_message(at, message)
    measured = measure(counter, [*rows.texts, *extra], progress=progress, cancel=cancel)
    table = np.array(rows.flat, np.int64).reshape(-1, 3)
    tokens, opaque = np.zeros((2, len(table)), np.int64)
    estimated = np.zeros(len(table), bool)
    owners = np.array(rows.owners, np.int64)
    np.add.at(tokens, owners, measured.tokens[: len(owners)])
    estimated[owners[measured.estimated[: len(owners)]]] = True
    for at, known, size in rows.special:
        tokens[at] += known
        estimated[at] = True
        opaque[at] = size
    return CountedParts(table[:, 0], table[:, 1], table[:, 2], tokens, estimated, opaque, measured.tokens[len(owners) :])


_TEXT_KIND = {role: KIND[kind] for role, kind in {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool_result", "note": "note"}.items()}
_NOTE, _REASONING, _CALL, _RESULT, _MEDIA = (KIND[kind] for kind in ("note", "reasoning", "tool_call", "tool_result", "media"))


class _Rows:
    """Collects rows and the texts to count for them, in flat lists: ten thousand messages must not cost ten thousand objects."""

    def __init__(self, model: str | None) -> None:
        self._model = model
        self.texts: list[str] = []
        self.owners: list[int] = []  # of each text, its row
        self.flat: list[int] = []  # message, part, kind, row after row
        self.special: list[tuple[int, int, int]] = []  # row, tokens known without counting, opaque bytes: all of them estimates
        self._rows = 0

    def add_message(self, at: int, message: Message) -> None:
        kind = _NOTE if COMPACT_SUMMARY in message.flags else _TEXT_KIND[message.role]
        for number, part in enumerate(message.parts):
            if type(part) is ToolResult:
                for child in part.parts:
                    self._add(at, number, _RESULT, child)
                if not part.parts:
                    self._row(at, number, _RESULT)
            else:
                self._add(at, number, kind, part)

    def _add(self, at: int, number: int, kind: int, part: Part) -> None:
        if type(part) is Text:
            self._row(at, number, kind, part.text)
        elif type(part) is ToolCall:
            self._row(at, number, _CALL, part.name, part.arguments_raw)
        elif type(part) is Reasoning:
            self._row(at, number, _REASONING, *((part.text,) if part.text else ()))
            # A blob in the context costs tokens, but nobody says how many: it is shown by its bytes and flagged.
            if part.opaque_bytes is not None or part.text is None:
                self.special.append((self._rows - 1, 0, -1 if part.opaque_bytes is None else part.opaque_bytes))
        elif type(part) is Media:
            self._row(at, number, _MEDIA)
            self.special.append((self._rows - 1, media_tokens(part, self._model), 0))
        elif type(part) is Opaque:
            self._row(at, number, kind)
            self.special.append((self._rows - 1, 0, -1 if part.size is None else part.size))

    def _row(self, at: int, number: int, kind: int, *texts: str) -> None:
        self.flat += (at, number, kind)
        self.texts += texts
        self.owners += (self._rows,) * len(texts)
        self._rows += 1
