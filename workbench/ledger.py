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

from .errors import CounterError
from .model import KINDS, MAIN, Call, History, Message, Prefix, ToolSpec, Transcript, compact_json
from .tokens import choose
from .tokens.base import Bools, Counter, Ints
from .tokens.calibrated import CalibratedCounter
from .tokens.framing import Framing, framing_for
from .tokens.measure import Flag, Progress, measure
from .tokens.parts import KIND as KIND
from .tokens.parts import count_parts
from .tokens.reported import Prompts, Reported, prompts, reported
from .turns import TurnGroup, turn_groups

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


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

    def __repr__(self) -> str:
        return f"<View of thread {self.thread!r}, {self.history} history: {len(self.indices):,} messages, {self.total:,} tokens>"

    @property
    def fixed(self) -> int:
        """Tokens of the fixed part."""
        return int(self.fixed_kinds.sum())

    @property
    def total(self) -> int:
        """Tokens of the whole request: fixed part and rows."""
        return self.fixed + int(self.tokens[self.lead :].sum())

    @property
    def low(self) -> int:
        """Lower end of the range in which the true total is expected; equals `total` if the counter is exact."""
        return round(self.total * (1 - self.ledger.counter.error))

    @property
    def high(self) -> int:
        """Upper end of that range."""
        return round(self.total * (1 + self.ledger.counter.error))

    @property
    def opaque_bytes(self) -> int:
        """Bytes of content that cannot be read here: it stands in the context, but in no count."""
        return int(self.ledger.message_opaque[self.indices].sum())

    @property
    def by_kind(self) -> dict[str, int]:
        """Tokens by kind; they sum to `total`."""
        sums = self.fixed_kinds + self.kinds[self.lead :].sum(axis=0)
        return dict(zip(KINDS, sums.tolist(), strict=True))

    @property
    def turns(self) -> tuple[TurnGroup, ...]:
        """Its turn groups."""
        return self.memo.get("turns", lambda: turn_groups(self.messages, self.lead))

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
        True where the number is not a plain count of text: media by size, opaque content (0 tokens), a text that
        had to be cut.
    part_opaque : int array, shape (p,)
        Bytes of content that cannot be read here and is in no count; -1 if there is some of unknown size.
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
    part_estimated: Bools
    part_opaque: Ints
    framing: Ints
    system_tokens: int
    tools_tokens: int
    tools_framing: int
    memo: Memo = field(default_factory=Memo, repr=False)

    def __repr__(self) -> str:
        return f"<Ledger of {self.transcript!r}: {self.total:,} tokens by {self.counter.label}>"

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

    @property
    def message_estimated(self) -> Bools:
        """True for each message that holds a part whose number is an estimate, shape (n,)."""

        def build() -> Bools:
            flags = np.zeros(len(self.transcript.messages), bool)
            flags[self.part_message[self.part_estimated]] = True
            return flags

        return self.memo.get("message_estimated", build)

    @property
    def message_opaque(self) -> Ints:
        """Bytes of opaque content in each message, as far as known, shape (n,)."""

        def build() -> Ints:
            sizes = np.zeros(len(self.transcript.messages), np.int64)
            np.add.at(sizes, self.part_message, np.maximum(self.part_opaque, 0))
            return sizes

        return self.memo.get("message_opaque", build)

    @property
    def total(self) -> int:
        """Tokens of the main thread with the fixed part, nothing compacted."""
        return self.view().total

    @property
    def low(self) -> int:
        """Lower end of the range in which the true total is expected. See `View.low`."""
        return self.view().low

    @property
    def high(self) -> int:
        """Upper end of that range."""
        return self.view().high

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
        outside = self._outside(thread)
        if len(indices) or outside[KIND["system"]] or outside[KIND["tools"]]:  # else there is nothing to send, and no request
            fixed += outside
        messages = tuple(transcript.messages[index] for index in indices.tolist())
        return View(self, thread, history, indices, messages, lead, self.message_tokens[indices], kinds, fixed)

    def _outside(self, thread: str) -> Ints:
        """Tokens by kind of what a request holds outside its messages, shape (len(KINDS),)."""
        kinds = self._outside_recorded(thread)
        return self.counter.fixed(kinds, thread) if isinstance(self.counter, CalibratedCounter) else kinds

    def _outside_recorded(self, thread: str) -> Ints:
        kinds = np.zeros(len(KINDS), np.int64)
        kinds[KIND["framing"]] = self.frame_rule.per_request
        if thread == MAIN:  # what a subagent was given as system text and tools is not recorded
            kinds[KIND["system"]] = self.system_tokens
            kinds[KIND["tools"]] = self.tools_tokens
            kinds[KIND["framing"]] += self.tools_framing
        return kinds

    def count_messages(self, messages: Sequence[Message]) -> Ints:
        """Tokens of messages that are not in the transcript (notes, edited ones), framing included, shape (m,)."""
        parts = count_parts(messages, self.counter, self.transcript.model)
        tokens = np.array([self.frame_rule.of(message) for message in messages], np.int64)
        np.add.at(tokens, parts.row, parts.tokens)
        return tokens

    def count_kinds(self, messages: Sequence[Message]) -> Ints:
        """The same by kind, shape (m, len(KINDS)); the last column is framing."""
        parts = count_parts(messages, self.counter, self.transcript.model)
        table = np.zeros((len(messages), len(KINDS)), np.int64)
        np.add.at(table, (parts.row, parts.kind), parts.tokens)
        table[:, KIND["framing"]] += np.array([self.frame_rule.of(message) for message in messages], np.int64)
        return table

    @property
    def reported(self) -> tuple[Reported, ...]:
        """What the provider reported for each call beside what is counted here, in the order of ``Transcript.calls``."""
        return self.memo.get("reported", lambda: reported(self.transcript, self.prompts))

    @property
    def prompts(self) -> Prompts:
        """What is counted of each call's prompt, by kind: the columns of its sums are ``KINDS``."""
        return self.memo.get("prompts", lambda: prompts(self.transcript, self.kind_tokens, self.outside))

    def outside(self, call: Call) -> Ints:
        """Tokens by kind of what one recorded request held outside its messages, shape (len(KINDS),).

        By its own prefix, where that is recorded; with what the file does not hold, if the counter was calibrated. Framing
        may then be negative: something was counted, but not sent.
        """
        kinds = self._outside_sent(call)
        if isinstance(self.counter, CalibratedCounter):
            kinds = kinds.copy()
            kinds[KIND["framing"]] += self.counter.overhead(call.thread, call.index)
        return kinds

    def _outside_sent(self, call: Call) -> Ints:
        if call.prefix is None:
            return self.memo.get(("outside", call.thread), lambda: self._outside_recorded(call.thread))
        leading = self.transcript.fixed(call.thread)
        sent = leading if call.context is None else tuple(index for index in leading if index in call.context)
        prefix = call.prefix
        return self.memo.get(("outside", call.thread, id(prefix), sent), lambda: self._outside_by(prefix, sent))

    def _outside_by(self, prefix: Prefix, sent: tuple[int, ...]) -> Ints:
        system = list(prefix.system)
        for index in sent:  # leading system messages stand in the prefix and in the context
            text = self.transcript.messages[index].text
            if text in system:
                system.remove(text)
        tools = [_tool_text(tool) for tool in prefix.tools]
        tokens = measure(self.counter, [*system, *tools]).tokens
        kinds = np.zeros(len(KINDS), np.int64)
        kinds[KIND["system"]] = tokens[: len(system)].sum()
        kinds[KIND["tools"]] = tokens[len(system) :].sum()
        kinds[KIND["framing"]] = self.frame_rule.of_request(len(tools))
        return kinds

    @property
    def unattributed(self) -> int | None:
        """Prompt tokens of the main thread's newest reported call that nothing here accounts for; None if none was reported."""
        calls = self.transcript.calls
        known = (row.unattributed for row in reversed(self.reported) if calls[row.call].thread == MAIN and calls[row.call].kind == "response")
        return next((number for number in known if number is not None), None)

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


def _tool_text(tool: ToolSpec) -> str:
    """A tool's schema as it is counted."""
    return compact_json([tool.name, tool.description, tool.parameters])


def count(
    transcript: Transcript,
    counter: Counter | str | None = None,
    *,
    framing: Framing | None = None,
    progress: Progress | None = None,
    cancel: Flag | None = None,
) -> Ledger:
    """Count every part of a transcript once. Texts that were counted before, here or elsewhere, are looked up.

    Parameters
    ----------
    counter : Counter or str, optional
        A counter or its name (``tokens.NAMES``). Default: the best one for the transcript's model.
    framing : Framing, optional
        Default: by the model's family, else by the format.
    progress : callable, optional
        Called with the characters done and the characters in all.
    cancel : threading.Event, optional
        Counting ends soon after it is set.

    Raises
    ------
    CounterError
        No counter has this name; or its vocabulary is damaged.
    Cancelled
        The flag was set (a `CounterError`).

    Examples
    --------
    >>> from workbench.model import Message, Source, Text
    >>> messages = (Message(0, "", "user", (Text("hello world"),)), Message(1, "", "assistant", (Text("hi"),)))
    >>> ledger = count(Transcript("t", Source("openai-chat"), messages), "o200k_base")
    >>> ledger.message_tokens.tolist(), ledger.total
    ([6, 5], 14)
    """
    if counter is None:
        counter = choose.counter_for(transcript.model)
    elif isinstance(counter, str):
        counter = choose.get(counter)
    elif isinstance(counter, type) or not callable(getattr(counter, "count_texts", None)):
        raise CounterError(f"counter = {repr(counter)[:80]}: give a name ({', '.join(choose.NAMES)}) or a counter")
    framing = framing or framing_for(transcript.source.format, transcript.model)
    tools = [_tool_text(tool) for tool in transcript.tools]
    parts = count_parts(transcript.messages, counter, transcript.model, extra=[*transcript.system, *tools], progress=progress, cancel=cancel)
    system = len(transcript.system)
    return Ledger(
        transcript=transcript,
        counter=counter,
        frame_rule=framing,
        part_message=parts.row,
        part_number=parts.number,
        part_kind=parts.kind,
        part_tokens=parts.tokens,
        part_estimated=parts.estimated,
        part_opaque=parts.opaque,
        framing=np.fromiter(map(framing.of, transcript.messages), np.int64, len(transcript.messages)),
        system_tokens=int(parts.extra[:system].sum()),
        tools_tokens=int(parts.extra[system:].sum()),
        tools_framing=framing.of_request(len(tools)) - framing.per_request,
    )
