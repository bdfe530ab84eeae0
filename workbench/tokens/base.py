"""What a token counter is, and the ones that need no vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ..model import compact_json

_PIECE = 1 << 18  # characters

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Counter(Protocol):
    """Counts the tokens of texts. Never raises, whatever the text holds.

    Attributes
    ----------
    id : str
        Names the counter and its version; part of every cache key.
    label : str
        For people: "o200k × 1.18 ± 25 %".
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
    """Bytes (or characters) divided by a constant, rounded up.

    Immediate, and wrong by a third either way for a single message.

    Parameters
    ----------
    per_token : float
        Units that make one token.
    unit : {"bytes", "chars"}
        UTF-8 bytes, or Unicode code points.

    Examples
    --------
    >>> RatioCounter(4).count_texts(["", "abcd", "abcde"]).tolist()
    [0, 1, 2]
    >>> RatioCounter(3, "chars").count_texts(["日本語"]).tolist()
    [1]
    """

    per_token: float = 4.0
    unit: Literal["bytes", "chars"] = "bytes"
    exact: bool = False
    error: float = 0.35

    @property
    def id(self) -> str:
        return f"{self.unit}/{self.per_token:g}"

    @property
    def label(self) -> str:
        return f"{'UTF-8 bytes' if self.unit == 'bytes' else 'characters'} ÷ {self.per_token:g}"

    def count_texts(self, texts: Sequence[str]) -> Ints:
        plain = map(as_text, texts)
        units = map(len, plain) if self.unit == "chars" else (len(text.encode("utf-8", "surrogatepass")) for text in plain)
        return np.ceil(np.fromiter(units, np.int64, len(texts)) / self.per_token).astype(np.int64)


def as_text(value: Any) -> str:
    """Return a text for whatever stands where a text is expected: a content may be null, a number, bytes, an object.

    Examples
    --------
    >>> as_text(None), as_text(b"caf\\xc3\\xa9"), as_text({"path": "a"})
    ('', 'café', '{"path":"a"}')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    for write in (compact_json, repr):
        try:
            return write(value)
        except (TypeError, ValueError, RecursionError):  # no JSON type, or nested too deeply
            continue
    return type(value).__name__


def repaired(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates by U+FFFD, as tiktoken does; any other text stays as it is.

    Examples
    --------
    >>> repaired("\\ud83d\\ude00 \\ud99c ok")
    '😀 \ufffd ok'
    """
    try:
        for at in range(0, len(text), _PIECE):  # a very long text is not copied as a whole
            text[at : at + _PIECE].encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
