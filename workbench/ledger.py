"""Counts a transcript once; everything after is integer arithmetic on these columns.

The sums are exact: the parts of a message and its framing make the message, the messages outside the fixed part and
the fixed part make the session. What a provider reported and what is counted here are never mixed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from .model import KINDS, MAIN, History, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Transcript, compact_json
from .tokens.base import Counter, Ints, RatioCounter
from .tokens.framing import OPENAI_CHAT, Framing
from .turns import TurnGroup, turn_groups

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
KIND = {name: code for code, name in enumerate(KINDS)}


class Memo:
    """Values that are computed once for a ledger or a view of it, by key. Safe between threads."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """Return the value of a key, building it at the first call."""
        with self._lock:
            if key not in self._values:
                self._values[key] = build()
            value: T = self._values[key]
            return value


@dataclass(frozen=True, eq=False)
class View:
    """One history of one thread: what a policy acts on.

    Parameters
    ----------
    indices : int array, shape (n,)
        ``Message.index`` of each row, in order, the leading system messages included.
    messages : tuple of Message
        The same rows.
    lead : int
        How many of the first rows are leading system messages: they belong to the fixed part.
    tokens : int array, shape (n,)
        Tokens of each row, framing included.
    kinds : int array, shape (n, len(KINDS))
        The same by kind.
    fixed_kinds : int array, shape (len(KINDS),)
        Tokens of the fixed part by kind: system text, leading system messages, tools, request framing.
    """

    ledger: Ledger
    thread: str
    history: History
    indices: Ints
    messages: tuple[Message, ...]
    lead: int
    tokens: Ints
    kinds: Ints
    fixed_kinds: Ints
    memo: Memo = field(default_factory=Memo, repr=False)

    @property
    def fixed(self) -> int:
        """Tokens of the fixed part."""
        return int(self.fixed_kinds.sum())

    @property
    def total(self) -> int:
        """Tokens of the whole request: fixed part and rows."""
        return self.fixed + int(self.tokens[self.lead :].sum())

    @property
    def by_kind(self) -> dict[str, int]:
        """Tokens by kind; they sum to `total`."""
        sums = self.fixed_kinds + self.kinds[self.lead :].sum(axis=0)
        return dict(zip(KINDS, sums.tolist(), strict=True))

    @property
    def turns(self) -> tuple[TurnGroup, ...]:
        """Its turn groups."""
        return self.memo.get("turns", lambda: turn_groups(self.messages))

    @property
    def row_of(self) -> dict[int, int]:
        """Row of each ``Message.index``."""
        return self.memo.get("row_of", lambda: {index: row for row, index in enumerate(self.indices.tolist())})


@dataclass(frozen=True, eq=False)
class Ledger:
    """Tokens of every part and message of a transcript, as integer columns.

    Parameters
    ----------
    part_message, part_number, part_kind, part_tokens : int array, shape (p,)
        One row per part (what a tool result holds is split by kind): its message, its place there, its kind
        (code in ``KINDS``), its tokens.
    part_estimated : bool array, shape (p,)
        True where the number is not a count of text: media by size, opaque content (0 tokens, size unknown).
    framing : int array, shape (n,)
        What the provider adds around each message (an estimate by family).
    """

    transcript: Transcript
    counter: Counter
    frame_rule: Framing
    part_message: Ints
    part_number: Ints
    part_kind: Ints
    part_tokens: Ints
    part_estimated: npt.NDArray[np.bool_]
    framing: Ints
    system_tokens: int
    tools_tokens: int
    tools_framing: int
    memo: Memo = field(default_factory=Memo, repr=False)

    @property
    def kind_tokens(self) -> Ints:
        """Tokens of each message by kind, shape (n, len(KINDS)); the last column is framing."""
        return self.memo.get("kind_tokens", self._kind_tokens)

    def _kind_tokens(self) -> Ints:
        table = np.zeros((len(self.transcript.messages), len(KINDS)), np.int64)
        np.add.at(table, (self.part_message, self.part_kind), self.part_tokens)
        table[:, KIND["framing"]] += self.framing
        return table

    @property
    def message_tokens(self) -> Ints:
        """Tokens of each message, framing included, shape (n,)."""
        return self.memo.get("message_tokens", lambda: self.kind_tokens.sum(axis=1))

    def view(self, thread: str = MAIN, history: History = "full") -> View:
        """One history of one thread. Made once and shared.

        Raises
        ------
        KeyError
            There is no such thread.
        """
        return self.memo.get(("view", thread, history), lambda: self._view(thread, history))

    def _view(self, thread: str, history: History) -> View:
        transcript = self.transcript
        if all(item.id != thread for item in transcript.threads):
            raise KeyError(thread)
        indices = np.array(transcript.history(thread, history), np.int64)
        lead = len(transcript.fixed(thread))
        kinds = self.kind_tokens[indices]
        fixed = kinds[:lead].sum(axis=0)
        fixed[KIND["framing"]] += self.frame_rule.per_request
        if thread == MAIN:  # what a subagent was given as system text and tools is not recorded
            fixed[KIND["system"]] += self.system_tokens
            fixed[KIND["tools"]] += self.tools_tokens
            fixed[KIND["framing"]] += self.tools_framing
        messages = tuple(transcript.messages[index] for index in indices.tolist())
        return View(self, thread, history, indices, messages, lead, self.message_tokens[indices], kinds, fixed)

    def count_messages(self, messages: Sequence[Message]) -> Ints:
        """Tokens of messages that are not in the transcript (notes, edited ones), framing included, shape (m,)."""
        parts = _count_parts(messages, self.counter)
        tokens = np.full(len(messages), self.frame_rule.per_message, np.int64)
        np.add.at(tokens, parts.row, parts.tokens)
        return tokens

    @property
    def messages(self) -> pd.DataFrame:
        """One row per message. See `frames.messages`."""
        from . import frames  # the one import to the right: a frame is only a view of this

        return frames.messages(self)

    @property
    def turns(self) -> pd.DataFrame:
        """One row per turn group of the main thread. See `frames.turns`."""
        from . import frames

        return frames.turns(self)

    @property
    def kinds(self) -> pd.DataFrame:
        """One row per kind of the main thread. See `frames.kinds`."""
        from . import frames

        return frames.kinds(self)

    @property
    def parts(self) -> pd.DataFrame:
        """One row per part. See `frames.parts`."""
        from . import frames

        return frames.parts(self)


def count(transcript: Transcript, counter: Counter | None = None, *, framing: Framing = OPENAI_CHAT) -> Ledger:
    """Count every part of a transcript once."""
    counter = counter or RatioCounter()
    parts = _count_parts(transcript.messages, counter)
    system = counter.count_texts(transcript.system)
    tools = counter.count_texts([compact_json([t.name, t.description, t.parameters]) for t in transcript.tools])
    return Ledger(
        transcript=transcript,
        counter=counter,
        frame_rule=framing,
        part_message=parts.row,
        part_number=parts.number,
        part_kind=parts.kind,
        part_tokens=parts.tokens,
        part_estimated=parts.estimated,
        framing=np.full(len(transcript.messages), framing.per_message, np.int64),
        system_tokens=int(system.sum()),
        tools_tokens=int(tools.sum()),
        tools_framing=framing.per_tool * len(tools),
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """Counted parts of some messages. `row` is the place among the messages given."""

    row: Ints
    number: Ints
    kind: Ints
    tokens: Ints
    estimated: npt.NDArray[np.bool_]


def _count_parts(messages: Sequence[Message], counter: Counter) -> _Parts:
    texts: list[str] = []
    owner: list[int] = []
    rows: list[tuple[int, int, int, int, bool]] = []  # message, part, kind, tokens known without counting, estimated
    for at, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            for kind, words, tokens, estimated in _measure(message, part):
                owner.extend([len(rows)] * len(words))
                texts.extend(words)
                rows.append((at, number, KIND[kind], tokens, estimated))
    table = np.array(rows, np.int64).reshape(-1, 5)
    tokens = table[:, 3].copy()
    np.add.at(tokens, np.array(owner, np.int64), counter.count_texts(texts))
    return _Parts(table[:, 0], table[:, 1], table[:, 2], tokens, table[:, 4].astype(bool))


_TEXT_KIND = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool_result", "note": "note"}


def _measure(message: Message, part: Part) -> list[tuple[str, tuple[str, ...], int, bool]]:
    """Kind, texts to count, tokens known without counting, and whether they are an estimate."""
    if type(part) is Text:
        return [("note" if "compact_summary" in message.flags else _TEXT_KIND[message.role], (part.text,), 0, False)]
    if type(part) is Reasoning:
        return [("reasoning", (part.text,) if part.text else (), 0, part.opaque_bytes is not None)]
    if type(part) is ToolCall:
        return [("tool_call", (part.name, part.arguments_raw), 0, False)]
    if type(part) is ToolResult:
        inner: list[tuple[str, tuple[str, ...], int, bool]] = []
        for child in part.parts:
            inner += [("tool_result", (child.text,), 0, False)] if type(child) is Text else _measure(message, child)
        return inner or [("tool_result", (), 0, False)]
    if type(part) is Media:
        return [("media", (), 1000, True)]
    assert type(part) is Opaque
    return [(_TEXT_KIND[message.role], (), 0, True)]
