"""Counts many texts with any counter: what is known is looked up, what is repeated is counted once, nothing raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..errors import CounterError
from .base import Bools, Counter, Ints, RatioCounter, as_text
from .bpe import GUESSED, WHOLE, TiktokenCounter
from .scaled import ScaledCounter
from .store import CountCache, digest, shared

#: Characters between two calls of `progress`, and between two looks at `cancel`.
STEP = 65_536

Progress = Callable[[int, int], None]


class Flag(Protocol):
    """A ``threading.Event``, or what looks like one."""

    def is_set(self) -> bool: ...


class Cancelled(CounterError):
    """Counting was stopped by its `cancel` flag. What was counted so far is remembered."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Counted texts.

    Parameters
    ----------
    tokens : int array, shape (n,)
    estimated : bool array, shape (n,)
        True where a text had to be cut, or where the counter failed and bytes ÷ 4 stand in.
    """

    tokens: Ints
    estimated: Bools


def measure(
    counter: Counter,
    texts: Sequence[str],
    *,
    progress: Progress | None = None,
    cancel: Flag | None = None,
    cache: CountCache | None = None,
) -> Measured:
    """Count texts.

    Parameters
    ----------
    progress : callable, optional
        Called with the characters done and the characters in all.
    cancel : threading.Event, optional
        Counting ends soon after it is set.
    cache : CountCache, optional
        Default is the one of the process.

    Raises
    ------
    Cancelled
        The flag was set.
    CounterError
        The counter's vocabulary is damaged. No text raises.
    """
    if isinstance(counter, ScaledCounter):
        base = measure(counter.base, texts, progress=progress, cancel=cancel, cache=cache)
        return Measured(counter.scale(base.tokens), base.estimated)
    if isinstance(counter, RatioCounter):  # as fast as a look-up would be
        return Measured(counter.count_texts(texts), np.zeros(len(texts), bool))
    cache = shared() if cache is None else cache
    plain = [text if type(text) is str else as_text(text) for text in texts]
    keys = [digest(text) for text in plain]
    known = cache.get(counter.id, keys)
    missing = {key: text for key, text in zip(keys, plain, strict=True) if key not in known}
    if missing:
        todo = sum(map(len, missing.values()))
        total = sum(map(len, plain)) if progress else todo
        ticker = _Ticker(total, total - todo, progress, cancel)
        fresh: dict[bytes, int] = {}
        try:
            for key, (tokens, how) in zip(missing, _count(counter, list(missing.values()), ticker), strict=True):
                known[key] = packed = 2 * tokens + (how != WHOLE)
                if how != GUESSED:  # the counter may do better the next time
                    fresh[key] = packed
        finally:
            cache.put(counter.id, fresh)
    if progress:
        size = sum(map(len, plain))
        progress(size, size)
    table = np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))
    return Measured(table >> 1, (table & 1).astype(bool))


class _Ticker:
    """Passes progress on in steps, and stops the work when the flag is set."""

    def __init__(self, total: int, done: int, progress: Progress | None, cancel: Flag | None) -> None:
        self._total, self._done, self._progress, self._cancel = total, done, progress, cancel
        self._next = done
        self()

    def __call__(self, size: int = 0) -> None:
        self._done += size
        if self._done < self._next:
            return
        self._next = self._done + STEP
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled("counting was cancelled; start it again to go on from what is counted")
        if self._progress is not None:
            self._progress(self._done, self._total)


def _count(counter: Counter, texts: list[str], ticker: _Ticker) -> Iterator[tuple[int, int]]:
    if isinstance(counter, TiktokenCounter):
        yield from counter.count_each(texts, ticker)
        return
    start = 0
    while start < len(texts):
        end, size = start, 0
        while end < len(texts) and (size < STEP or end == start):
            size += len(texts[end])
            end += 1
        yield from _guarded(counter, texts[start:end])
        ticker(size)
        start = end


def _guarded(counter: Counter, texts: list[str]) -> list[tuple[int, int]]:
    """Count with a counter that others wrote: where it fails, bytes ÷ 4."""
    try:
        tokens = np.asarray(counter.count_texts(texts)).astype(np.int64)
        if tokens.shape == (len(texts),) and (tokens >= 0).all():
            return [(number, WHOLE) for number in tokens.tolist()]
    except (KeyboardInterrupt, SystemExit, CounterError):
        raise
    except BaseException:  # a panic of a Rust tokenizer is not an Exception
        pass
    if len(texts) == 1:
        return [(int(RatioCounter().count_texts(texts)[0]), GUESSED)]
    return [_guarded(counter, [text])[0] for text in texts]
