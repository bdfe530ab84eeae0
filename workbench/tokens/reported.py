"""What providers reported for each call, beside what is counted here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ..model import Call, Compaction, Transcript
from .base import Bools, Ints


@dataclass(frozen=True, slots=True)
class Reported:
    """One provider call: what it reported and what is counted here. The two are never mixed.

    Parameters
    ----------
    call : int
        Index in ``Transcript.calls``.
    reported : int or None
        Prompt tokens as reported; None if not, or if a bucket is negative.
    estimated : int or None
        Tokens of what stood in the thread's context before the call; None if its place is not known.
    """

    call: int
    reported: int | None
    estimated: int | None

    @property
    def unattributed(self) -> int | None:
        """What was reported beyond the estimate: hidden system text and tools, opaque content, an error of the estimate."""
        if self.reported is None or self.estimated is None:
            return None
        return max(0, self.reported - self.estimated)


@dataclass(frozen=True, eq=False, slots=True)
class Prompts:
    """What stood before each call of a transcript, summed: the prompt that it was sent, as far as the file holds it.

    Parameters
    ----------
    known : bool array, shape (c,)
        False where the place of a call is not known; its sums are 0.
    sums : int array, shape (c, k)
        Sums of the columns that were given, what a request holds outside its messages included.
    """

    known: Bools
    sums: Ints


def prompts(transcript: Transcript, columns: Ints, outside: Callable[[Call], Ints]) -> Prompts:
    """Sum columns over the prompt of every call: by what the source records of it, else all that was live before it in its thread.

    Linear in messages and calls, whatever stands in the columns: tokens by kind, bytes, a policy's own estimate.

    Parameters
    ----------
    columns : int array, shape (n, k)
        One row for each message.
    outside : callable
        The same columns for what the request of a call holds outside its messages, shape (k,).

    Examples
    --------
    >>> from workbench.model import Message, Source, Text
    >>> said = ((0, "user", None), (1, "assistant", 0), (2, "user", None), (3, "assistant", 1))
    >>> messages = tuple(Message(at, "", role, (Text("x"),), call=call) for at, role, call in said)
    >>> t = Transcript("t", Source("made"), messages, (Call(0, "a", produced=(1,)), Call(1, "b", produced=(3,))))
    >>> prompts(t, np.array([[10], [20], [30], [40]]), lambda call: np.array([5])).sums.tolist()
    [[15], [65]]
    """
    contexts = {thread.id: _Contexts(transcript, thread.id, columns) for thread in transcript.threads}
    known = np.zeros(len(transcript.calls), bool)
    sums = np.zeros((len(transcript.calls), columns.shape[1]), np.int64)
    for at, call in enumerate(transcript.calls):
        context = contexts.get(call.thread)
        found = None if context is None else context.before(call)
        if found is not None:
            known[at], sums[at] = True, found + outside(call)
    return Prompts(known, sums)


def reported(transcript: Transcript, counted: Prompts) -> tuple[Reported, ...]:
    """Set what was reported beside what is counted, for every call of a transcript, in order."""
    estimated = counted.sums.sum(axis=1).tolist()
    return tuple(
        Reported(call.index, prompt_of(call), tokens if known else None)
        for call, tokens, known in zip(transcript.calls, estimated, counted.known.tolist(), strict=True)
    )


def prompt_of(call: Call) -> int | None:
    """Prompt tokens as reported; None if not, or if a bucket is negative."""
    usage = call.usage
    if usage is None or any((getattr(usage, name) or 0) < 0 for name in usage.BUCKETS):
        return None
    return usage.prompt


class _Contexts:
    """What stood in a thread's live context before each of its calls, by prefix sums."""

    def __init__(self, transcript: Transcript, thread: str, columns: Ints) -> None:
        self._columns = columns
        self._indices = transcript.thread(thread)
        self._place = {index: place for place, index in enumerate(self._indices)}
        self._sums = np.concatenate((np.zeros((1, columns.shape[1]), np.int64), np.cumsum(columns[np.array(self._indices, np.int64)], axis=0)))
        self._compactions = transcript.compacted(thread)
        # From which message on a compaction had happened: one that a call itself made stands in its answer.
        self._from = list(accumulate((max(item.after, -1 if item.summary is None else item.summary) for item in self._compactions), max))
        fixed = transcript.fixed(thread)
        self._heads = [self._head(fixed, item) for item in self._compactions]

    def _head(self, fixed: tuple[int, ...], item: Compaction) -> tuple[int, Ints, list[int]]:
        """Where the newer messages begin, the sums of what stands before them, and which of these stand among them."""
        head = dict.fromkeys((*fixed, *(() if item.summary is None else (item.summary,)), *item.kept))
        start = bisect_right(self._indices, item.after)
        return start, self._of(head), [self._place[index] for index in head if self._place.get(index, -1) >= start]

    def _of(self, indices: tuple[int, ...] | dict[int, None]) -> Ints:
        total: Ints = self._columns[np.fromiter(indices, np.int64, len(indices))].sum(axis=0)
        return total

    def before(self, call: Call) -> Ints | None:
        """Sums of the context before a call, or None if the call's place is not known."""
        if call.context is not None:
            return self._of(call.context)
        place, done = self._where(call)
        if place is None:
            return None
        if not done:
            before: Ints = self._sums[place]
            return before
        start, head, among = self._heads[done - 1]
        newer: Ints = head + self._sums[max(place, start)] - self._sums[start]
        for at in among:
            if at < place:  # it stands in the head already
                newer = newer - (self._sums[at + 1] - self._sums[at])
        return newer

    def _where(self, call: Call) -> tuple[int | None, int]:
        """Place in the thread where the call's answer stands, and how many compactions had happened by then."""
        first = min((index for index in call.produced if index in self._place), default=None)
        if first is None:  # a compaction call may leave no message: it saw all that stood before its compaction
            at = next((at for at, item in enumerate(self._compactions) if item.call == call.index), None)
            return (None, 0) if at is None else (bisect_right(self._indices, self._compactions[at].after), at)
        done = bisect_left(self._from, first)
        if done and self._compactions[done - 1].call == call.index:
            done -= 1
        return self._place[first], done
