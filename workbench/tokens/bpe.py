"""Exact counts with the vocabularies of OpenAI's models, for any text of any length.

A long text is counted in pieces, so that a count can be shown, cancelled and interrupted, and so that no run of white
space is long enough to make the tokenizer panic. Almost every text has places where its tokens never join, and there
it is cut: the sum is exact. Only where a piece has none is it cut anyhow, and the count flagged as an estimate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import CounterError
from . import vocabulary
from .base import Ints, RatioCounter, as_text, repaired

#: Characters counted in one call. The tokenizer panics at a million white-space characters in a row and does about a
#: megabyte a second at its worst, so one call takes less than a tenth of a second.
PIECE = 65_536
_LOOK_BACK = 4_096  # how far before the end of a piece a good place to cut is looked for

# Between these two neighbours both split patterns always end one match and begin another, whatever stands around:
# a letter or digit before white space or one of these signs (no word goes on there: "'" is left out for its
# contractions), a digit beside an ASCII letter, a line feed before what is neither white space nor a slash.
_SEAM = re.compile(r"(?<=[^\W_])(?=[\s,.;:!?()\[\]{}<>\"=+/\\|_@#&。、，！？：；])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])|(?<=\n)(?=[^\s/])")

#: How a text was counted.
WHOLE, CUT, GUESSED = 0, 1, 2
_GUESS = RatioCounter()


@dataclass(frozen=True, slots=True)
class TiktokenCounter:
    """Counts with tiktoken and a vocabulary from this package.

    Special tokens in a text ("<|endoftext|>") are counted as the ordinary text that they are there. No text makes it
    raise: if the tokenizer fails on a piece, this piece is counted as bytes ÷ 4.

    Parameters
    ----------
    encoding : {"o200k_base", "cl100k_base"}
    assumed : bool
        True if the model's own tokenizer is not known and this one stands in.

    Raises
    ------
    CounterError
        There is no such vocabulary; or, at the first count, its file is damaged.

    Examples
    --------
    >>> TiktokenCounter("o200k_base").count_texts(["hello world", "", "<|endoftext|>"]).tolist()
    [2, 0, 7]
    """

    encoding: Literal["o200k_base", "cl100k_base"] = "o200k_base"
    assumed: bool = False

    def __post_init__(self) -> None:
        if self.encoding not in vocabulary.VOCABULARIES:
            raise CounterError(f"no vocabulary {self.encoding!r}; known: {', '.join(vocabulary.VOCABULARIES)}")

    @property
    def id(self) -> str:
        # The vocabulary's bytes are checked against one fixed hash, so that its name says all.
        return self.encoding

    @property
    def label(self) -> str:
        return f"{self.encoding}, assumed" if self.assumed else self.encoding

    @property
    def exact(self) -> bool:
        return not self.assumed

    @property
    def error(self) -> float:
        return 0.25 if self.assumed else 0.0

    def count_texts(self, texts: Sequence[str]) -> Ints:
        counted = self.count_each(texts)
        return np.fromiter((tokens for tokens, _ in counted), np.int64, len(texts))

    def count_each(self, texts: Sequence[str], tick: Callable[[int], None] | None = None) -> Iterator[tuple[int, int]]:
        """Tokens of each text, and how it was counted: WHOLE, CUT (estimated at the cuts) or GUESSED.

        Parameters
        ----------
        tick : callable, optional
            Called with the number of characters after each piece. What it raises goes through: so a count is cancelled.
        """
        encode = vocabulary.load(self.encoding).encode_ordinary
        for text in texts:
            plain = text if type(text) is str else as_text(text)
            if len(plain) <= PIECE:
                # The tokenizer lets a text that is not ASCII keep its UTF-8 as long as it lives: so it gets a copy.
                yield _count_piece(encode, plain if plain.isascii() else (plain + " ")[:-1])
                if tick:
                    tick(len(plain))
                continue
            total, how = 0, WHOLE
            for piece, exact in pieces(plain):
                tokens, piece_how = _count_piece(encode, piece)
                total, how = total + tokens, max(how, piece_how, WHOLE if exact else CUT)
                if tick:
                    tick(len(piece))
            yield total, how


def _count_piece(encode: Callable[[str], list[int]], piece: str) -> tuple[int, int]:
    try:
        return len(encode(piece)), WHOLE
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of the tokenizer is not an Exception
        return int(_GUESS.count_texts([piece])[0]), GUESSED


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Cut a text into pieces of at most ``PIECE`` characters, each with whether its end is a place where tokens never join."""
    text = repaired(text)  # before the cuts: one of them might part a surrogate pair
    start = 0
    while len(text) - start > PIECE:
        end = start + PIECE
        seams = [match.start() for match in _SEAM.finditer(text, end - _LOOK_BACK, end + 1)]
        cut = seams[-1] if seams else end
        yield text[start:cut], bool(seams)
        start = cut
    yield text[start:], True
