"""What providers reported for each call, beside what is counted here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ..model import Call, Compaction, Transcript
from .base import Ints


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


def reported(transcript: Transcript, tokens: Ints, outside: Callable[[str], int]) -> tuple[Reported, ...]:
    """Set what was reported beside what is counted, for every call of a transcript, in order.

    Parameters
    ----------
    tokens : int array, shape (n,)
        Tokens of each message, framing included.
    outside : callable
        Tokens of what a request of a thread holds outside its messages.
    """
    contexts = {thread.id: _Contexts(transcript, thread.id, tokens, outside(thread.id)) for thread in transcript.threads}

    def before(call: Call) -> int | None:
        return contexts[call.thread].before(call) if call.thread in contexts else None

    return tuple(Reported(call.index, _prompt(call), before(call)) for call in transcript.calls)


def _prompt(call: Call) -> int | None:
    usage = call.usage
    if usage is None or any((getattr(usage, name) or 0) < 0 for name in usage.BUCKETS):
        return None
    return usage.prompt


class _Contexts:
    """What stood in a thread's live context before each of its calls, by prefix sums: linear in messages and calls."""

    def __init__(self, transcript: Transcript, thread: str, tokens: Ints, outside: int) -> None:
        self._tokens, self._outside = tokens, outside
        self._indices = transcript.thread(thread)
        self._place = {index: place for place, index in enumerate(self._indices)}
        self._sums = np.concatenate(([0], np.cumsum(tokens[np.array(self._indices, np.int64)]))).tolist()
        self._compactions = transcript.compacted(thread)
        # From which message on a compaction had happened: one that a call itself made stands in its answer.
        self._from = list(accumulate((max(item.after, -1 if item.summary is None else item.summary) for item in self._compactions), max))
        fixed = transcript.fixed(thread)
        self._heads = [self._head(fixed, item) for item in self._compactions]

    def _head(self, fixed: tuple[int, ...], item: Compaction) -> tuple[int, int, list[int]]:
        """Where the newer messages begin, tokens of what stands before them, and which of these stand among them."""
        head = dict.fromkeys((*fixed, *(() if item.summary is None else (item.summary,)), *item.kept))
        start = bisect_right(self._indices, item.after)
        return start, int(self._tokens[np.array(list(head), np.int64)].sum()), [self._place[index] for index in head if self._place.get(index, -1) >= start]

    def before(self, call: Call) -> int | None:
        """Tokens of the context before a call, or None if the call's place is not known."""
        if call.context is not None:
            return self._outside + int(self._tokens[np.array(call.context, np.int64)].sum())
        place, done = self._where(call)
        if place is None:
            return None
        if not done:
            return self._outside + int(self._sums[place])
        start, head, among = self._heads[done - 1]
        twice = sum(self._sums[at + 1] - self._sums[at] for at in among if at < place)
        return self._outside + head + int(self._sums[max(place, start)] - self._sums[start] - twice)

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
