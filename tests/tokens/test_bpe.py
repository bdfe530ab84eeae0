"""Exact counts, for any text of any length: the inputs of the project's notes on tokenizers, section 4."""

from __future__ import annotations

import functools
import itertools
import random
import sys
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.strategies import texts
from workbench.errors import CounterError
from workbench.tokens import RatioCounter, TiktokenCounter, bpe, measure, vocabulary
from workbench.tokens.bpe import CUT, GUESSED, PIECE, WHOLE, pieces

O200K, CL100K = TiktokenCounter("o200k_base"), TiktokenCounter("cl100k_base")
BOTH = (O200K, CL100K)


def one(counter: TiktokenCounter, text: object) -> tuple[int, int]:
    return next(iter(counter.count_each([text])))  # type: ignore[list-item]


@settings(deadline=None)
@given(st.lists(texts, max_size=8))
def test_counts_are_those_of_encode_ordinary(some):
    for counter in BOTH:
        encode = vocabulary.load(counter.encoding).encode_ordinary
        assert counter.count_texts(some).tolist() == [len(encode(text)) for text in some]


def test_shape_and_type():
    empty = O200K.count_texts([])
    assert empty.shape == (0,)
    assert empty.dtype == np.int64


# Every sort of neighbour that a cut may fall between.
_LETTERS = st.sampled_from(
    [*"aZ9é ñ\n\t\r/.,;'’’_-=#@\"(){}[]<>|&+*~`^%$!?日本語。、，\u0301\u200d👩\x1c\x85\u2028\u3000ß²Ⅷǅʰ", "'s", "'LL", " the", "\n\n", "\r\n", "  "]
)


@settings(deadline=None)
@given(st.lists(_LETTERS, max_size=60).map("".join))
@example("it's\n/path\n\n  x'll9")
def test_a_cut_at_a_seam_never_changes_the_sum(text):
    for counter in BOTH:
        encode = vocabulary.load(counter.encoding).encode_ordinary
        whole = len(encode(text))
        for match in bpe._SEAM.finditer(text):
            assert len(encode(text[: match.start()])) + len(encode(text[match.start() :])) == whole, (counter.id, match.start())


@pytest.mark.parametrize("counter", BOTH, ids=lambda counter: counter.id)
def test_a_seam_is_one_in_every_short_text(counter):
    """All texts of four signs, one or two of each class that the split patterns know."""
    encode = functools.lru_cache(maxsize=None)(lambda text: len(vocabulary.load(counter.encoding).encode_ordinary(text)))
    wrong = []
    for signs in itertools.product("aZ9é \n/.'s\u0301日", repeat=4):
        text = "".join(signs)
        wrong += [(text, match.start()) for match in bpe._SEAM.finditer(text) if encode(text[: match.start()]) + encode(text[match.start() :]) != encode(text)]
    assert wrong == []


def test_what_stands_before_a_seam_is_a_letter_or_a_number_to_the_tokenizer_too():
    odd = [chr(code) for code in range(0x110000) if chr(code).isalnum() and unicodedata.category(chr(code))[0] not in "LN"]
    assert odd == []


@pytest.mark.parametrize("counter", BOTH, ids=lambda counter: counter.id)
def test_a_long_ordinary_text_is_counted_in_pieces_and_exact(counter):
    rng = random.Random(3)
    lines = [
        " " * rng.choice((0, 4, 8)) + " ".join(rng.choice(("def", "größe", "x1", "日本", "foo.bar()", "it's", "'s", "0x7f", "")) for _ in range(12))
        for _ in range(9000)
    ]
    text = "\n".join(lines)
    assert len(text) > 5 * PIECE
    assert all(len(piece) <= PIECE for piece, _ in pieces(text))
    assert "".join(piece for piece, _ in pieces(text)) == text
    assert one(counter, text) == (len(vocabulary.load(counter.encoding).encode_ordinary(text)), WHOLE)


def test_base64_is_counted_exactly_too():
    rng = random.Random(5)
    text = "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=200_000))
    assert one(O200K, text) == (len(vocabulary.load("o200k_base").encode_ordinary(text)), WHOLE)  # input 8: 1.5 bytes a token


@pytest.mark.parametrize(
    ("what", "text", "expected"),
    [
        ("spaces", " " * 1_000_000, 7_813),
        ("tabs", "\t" * 1_000_000, None),
        ("ideographic spaces", "\u3000" * 1_000_000, None),
        ("line feeds", "\n" * 1_000_000, 62_500),
        ("a", "a" * 1_000_000, 125_000),
        ("carets", "^" * 1_000_000, 125_000),
        ("dashes", "-" * 500_000, None),
        ("CJK", "漢字仮名" * 100_000, None),
        ("emoji", "😀" * 300_000, 300_000),
        ("NUL", "\0" * 300_000, None),
        ("zalgo", "e\u0301\u0302\u0303" * 75_000, None),
    ],
)
def test_long_runs_survive(what, text, expected, capfd):
    """Inputs 6 and 7, B79, B80: counted in seconds, no panic, cuts without a seam are flagged."""
    start = time.process_time()
    tokens, how = one(O200K, text)
    assert time.process_time() - start < 8  # a second on this machine; quadratic work would take minutes
    assert how == CUT
    assert tokens > 0
    if expected:
        assert abs(tokens - expected) <= 0.001 * expected + 20
    assert "panic" not in capfd.readouterr().err


def test_b79_one_long_run_without_a_break_is_chunked_and_flagged():
    measured = measure(O200K, ["a" * 1_000_000, "-" * 500_000, "plain"])
    assert measured.estimated.tolist() == [True, True, False]
    assert measured.tokens[0] == 125_000


def test_special_tokens_in_a_text_are_text():
    """Inputs 3 and 4."""
    for text in ("<|endoftext|>", "<|endofprompt|>", "<|start|>assistant<|channel|>final<|message|>hi<|end|>"):
        assert O200K.count_texts([text])[0] > 4


def test_surrogates_are_repaired():
    """Input 5, B16: a pair is one emoji, a lone one is U+FFFD, also where a piece would part the pair."""
    assert O200K.count_texts(["\ud83d\ude00", "\ud99c ok"]).tolist() == O200K.count_texts(["😀", "\ufffd ok"]).tolist()
    long = "x" * (PIECE - 1) + "\ud83d\ude00" + " y" * 100
    assert one(O200K, long)[0] == one(O200K, long.encode("utf-16", "surrogatepass").decode("utf-16"))[0]


@pytest.mark.parametrize(("value", "text"), [(None, ""), (42, "42"), (b"caf\xc3\xa9", "café"), ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'), (["x"], '["x"]')])
def test_what_is_not_a_text_is_counted_as_its_json(value, text):
    """Input 9."""
    for counter in (O200K, RatioCounter()):
        assert counter.count_texts([value]).tolist() == counter.count_texts([text]).tolist()
    assert measure(O200K, [value]).tokens.tolist() == O200K.count_texts([text]).tolist()


@pytest.mark.parametrize("text", ["\0", "\ufeffx", "a\r\nb", "שלום", "z̷̡̛a̴l̸g̵o̷", "👩‍👩‍👧‍👦", "x\u2028y"])
def test_odd_texts(text):
    """Input 10."""
    assert O200K.count_texts([text, ""]).tolist() == [len(vocabulary.load("o200k_base").encode_ordinary(text)), 0]


def test_one_huge_text_is_counted_in_pieces():
    """Input 16: memory is that of one piece; progress is told and a count can be stopped in the middle of the text."""
    text = "all work and no play makes jack a dull boy\n" * 150_000
    told = []
    tokens = next(O200K.count_each([text], told.append))[0]
    assert sum(told) == len(text)
    assert max(told) <= PIECE
    assert tokens == 150_000 * len(vocabulary.load("o200k_base").encode_ordinary("all work and no play makes jack a dull boy\n"))


class Panic(BaseException):
    """As pyo3's PanicException: no Exception."""


class Broken:
    """An encoder that panics at carets."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def encode_ordinary(self, text: str) -> list[int]:
        if "^" in text:
            raise self._error("stack overflow")
        return [0] * len(text.split())


def test_b80_a_panic_is_caught_and_flagged(monkeypatch):
    monkeypatch.setattr(vocabulary, "load", lambda name: Broken(Panic))
    assert list(O200K.count_each(["^" * 1000, "two words"])) == [(250, GUESSED), (2, WHOLE)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_b80_an_interrupt_still_passes(error, monkeypatch):
    monkeypatch.setattr(vocabulary, "load", lambda name: Broken(error))
    with pytest.raises(error):
        O200K.count_texts(["^"])


def test_an_unknown_vocabulary_is_an_error_that_lists_the_known():
    with pytest.raises(CounterError, match="o200k_base, cl100k_base"):
        TiktokenCounter("p50k_base")  # type: ignore[arg-type]


def test_what_is_nested_too_deeply_is_counted_by_its_type():
    deep: list[object] = []
    for _ in range(sys.getrecursionlimit() * 20):
        deep = [deep]
    assert O200K.count_texts([deep])[0] > 0  # type: ignore[list-item]


def test_a_counted_text_is_no_larger_than_before():
    text = "größer 配置 " * 1_000
    before = sys.getsizeof(text)
    O200K.count_texts([text])
    assert sys.getsizeof(text) == before  # a tokenizer may leave a second copy in it, as UTF-8
