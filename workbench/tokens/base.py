"""What a token counter is, and the one that needs no vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Counter(Protocol):
    """Counts the tokens of texts. Never raises, whatever the text holds.

    Attributes
    ----------
    id : str
        Names the counter and its version; part of every cache key.
    label : str
        For people: "o200k_base × 1.18 ± 25 %".
    exact : bool
        True if it is the model's own tokenizer (of texts; framing is always an estimate).
    error : float
        Relative half-width of the range in which the true total is expected; 0 if exact.
    """

    @property
    def id(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def error(self) -> float: ...

    def count_texts(self, texts: Sequence[str]) -> Ints:
        """Tokens of each text, shape ``(len(texts),)``."""
        ...


@dataclass(frozen=True, slots=True)
class RatioCounter:
    """Bytes divided by a constant, rounded up: immediate, and wrong by a third either way for a single message.

    Examples
    --------
    >>> RatioCounter(4).count_texts(["", "abcd", "abcde"]).tolist()
    [0, 1, 2]
    """

    bytes_per_token: float = 4.0
    exact: bool = False
    error: float = 0.35

    @property
    def id(self) -> str:
        return f"bytes/{self.bytes_per_token:g}"

    @property
    def label(self) -> str:
        return f"UTF-8 bytes ÷ {self.bytes_per_token:g}"

    def count_texts(self, texts: Sequence[str]) -> Ints:
        sizes = np.fromiter((len(text.encode("utf-8", "surrogatepass")) for text in texts), np.int64, len(texts))
        return np.ceil(sizes / self.bytes_per_token).astype(np.int64)
