"""A tokenizer that is not public, approached by a known one and a factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import CounterError
from .base import Counter, Ints


@dataclass(frozen=True, slots=True)
class ScaledCounter:
    """Counts with `base` and multiplies: each text's count is rounded to whole tokens, so that sums stay exact.

    Parameters
    ----------
    factor : float
        Tokens of the wanted tokenizer for one of the base.
    error : float
        Relative half-width of the range in which the true total is expected.

    Raises
    ------
    CounterError
        The factor is not a positive number.

    Examples
    --------
    >>> from workbench.tokens import TiktokenCounter
    >>> claude = ScaledCounter(TiktokenCounter("o200k_base"), 1.18, 0.25)
    >>> claude.label
    'o200k × 1.18 ± 25 %'
    >>> claude.count_texts(["one two three four five six seven eight nine ten", "x", ""]).tolist()
    [12, 1, 0]
    """

    base: Counter
    factor: float
    error: float = 0.25
    exact: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.factor < float("inf"):
            raise CounterError(f"a factor of {self.factor} for {self.base.id}: give a positive number, for example 1.18")

    @property
    def id(self) -> str:
        return f"{self.base.id}*{self.factor:g}"

    @property
    def label(self) -> str:
        return f"{self.base.label.removesuffix('_base')} × {self.factor:g} ± {self.error:.0%}".replace("%", " %")

    def scale(self, tokens: Ints) -> Ints:
        """Multiply counts of the base. What has tokens there has at least one here."""
        scaled: Ints = np.rint(tokens * self.factor).astype(np.int64)
        return np.where((tokens > 0) & (scaled == 0), 1, scaled)

    def count_texts(self, texts: Sequence[str]) -> Ints:
        return self.scale(self.base.count_texts(texts))
