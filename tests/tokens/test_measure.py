"""The cache: repeated texts are counted once, a file holds hashes and counts only, and any failure of it goes unnoticed."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import texts
from workbench.errors import CounterError
from workbench.tokens import Cancelled, RatioCounter, ScaledCounter, TiktokenCounter, measure, store, use_file
from workbench.tokens.store import CountCache, digest


@dataclass
class Spy:
    """A counter of words that remembers what it was asked."""

    id: str = "words"
    label: str = "words"
    exact: bool = False
    error: float = 0.5
    asked: list[str] = field(default_factory=list)

    def count_texts(self, texts):
        self.asked += texts
        return np.array([len(text.split()) for text in texts], np.int64)


@pytest.fixture
def cache():
    return CountCache()


@settings(deadline=None)
@given(st.lists(texts, max_size=10))
def test_looking_up_changes_nothing(some):
    cache, counter = CountCache(capacity=6), TiktokenCounter("o200k_base")
    for _ in range(2):
        assert measure(counter, some, cache=cache).tokens.tolist() == counter.count_texts(some).tolist()


def test_a_repeated_text_is_counted_once_and_never_again(cache):
    spy = Spy()
    assert measure(spy, ["a b", "c", "a b"], cache=cache).tokens.tolist() == [2, 1, 2]
    assert measure(spy, ["c", "d e f"], cache=cache).tokens.tolist() == [1, 3]
    assert spy.asked == ["a b", "c", "d e f"]


def test_counters_do_not_share_counts(cache):
    measure(Spy(), ["a b"], cache=cache)
    other = Spy(id="other")
    measure(other, ["a b"], cache=cache)
    assert other.asked == ["a b"]


def test_a_scaled_counter_uses_its_base_counts(cache):
    spy = Spy()
    measure(spy, ["a b"], cache=cache)
    assert measure(ScaledCounter(spy, 2.0), ["a b"], cache=cache).tokens.tolist() == [4]
    assert spy.asked == ["a b"]


def test_b17_a_lone_surrogate_has_a_hash():
    assert digest("x \ud835") == digest("x \ud835")
    assert digest("x \ud835") != digest("x ")
    assert len(digest("")) == 16


def test_a_long_text_is_hashed_in_pieces_as_if_it_were_one():
    for text in ("é\ud83d\ude00" * 200_000, "x" * (1 << 18), "漢" * ((1 << 18) + 1)):
        assert digest(text) == hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def test_an_estimate_stays_one_in_the_cache(cache):
    counter = TiktokenCounter("o200k_base")
    first = measure(counter, ["-" * 200_000, "x"], cache=cache)
    second = measure(counter, ["-" * 200_000, "x"], cache=cache)
    assert first.estimated.tolist() == second.estimated.tolist() == [True, False]
    assert first.tokens.tolist() == second.tokens.tolist()


class Panic(BaseException):
    pass


class Fails(Spy):
    def count_texts(self, texts):
        if any("^" in text for text in texts):
            raise Panic("boom")
        return super().count_texts(texts)


def test_b80_a_counter_of_others_that_panics_is_replaced_for_that_text_only(cache):
    counter = Fails()
    measured = measure(counter, ["a b", "^" * 40, "c"], cache=cache)
    assert measured.tokens.tolist() == [2, 10, 1]
    assert measured.estimated.tolist() == [False, True, False]
    assert digest("^" * 40) not in cache.get("words", [digest("^" * 40)])  # the next time it may do better


@pytest.mark.parametrize("answer", [np.array([1]), np.array([1, -1]), None, ["x", "y"]])
def test_a_counter_that_answers_nonsense_is_replaced(answer, cache):
    counter = Spy()
    counter.count_texts = lambda texts: answer  # type: ignore[method-assign]
    measured = measure(counter, ["abcd", "abcdefgh"], cache=cache)
    assert measured.tokens.tolist() == ([1, 2] if answer is None or len(answer) == 2 else [1, 1])
    assert answer is None or len(answer) == 1 or measured.estimated.all()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, CounterError])
def test_an_interrupt_passes(error, cache):
    counter = Spy()

    def stop(texts):
        raise error

    counter.count_texts = stop  # type: ignore[method-assign]
    with pytest.raises(error):
        measure(counter, ["a"], cache=cache)


def test_progress_runs_from_what_is_known_to_all(cache):
    some = [f"{number} " + "word " * 4000 for number in range(20)]
    size = sum(map(len, some))
    told: list[tuple[int, int]] = []
    measure(TiktokenCounter("o200k_base"), some, cache=cache, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, size)
    assert told[-1] == (size, size)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len(told) > 4
    told.clear()
    measure(TiktokenCounter("o200k_base"), some, cache=cache, progress=lambda done, total: told.append((done, total)))
    assert told == [(size, size)]


def test_a_cancelled_count_ends_soon_and_keeps_what_it_has(cache):
    flag, told = threading.Event(), []

    def progress(done, total):
        told.append(done)
        if done > 300_000:
            flag.set()

    some = [f"{number} " + "word " * 4000 for number in range(200)]
    counter = TiktokenCounter("o200k_base")
    with pytest.raises(Cancelled, match="start it again"):
        measure(counter, some, cache=cache, progress=progress, cancel=flag)
    assert max(told) < 500_000
    assert 10 < len(cache) < 30
    flag.clear()
    assert measure(counter, some, cache=cache, cancel=flag).tokens.min() == 4002


def test_one_long_text_can_be_cancelled_in_the_middle(cache):
    flag = threading.Event()
    with pytest.raises(Cancelled):
        measure(TiktokenCounter("o200k_base"), ["word " * 1_000_000], cache=cache, cancel=flag, progress=lambda done, total: flag.set() if done else None)
    assert len(cache) == 0


def test_memory_is_bounded_and_what_is_used_stays():
    cache, counter = CountCache(capacity=100), Spy()
    for number in range(1000):
        measure(counter, [f"text {number}", "used all the time"], cache=cache)
    assert len(cache) <= 100
    assert counter.asked.count("used all the time") == 1
    measure(counter, [f"all at once {number}" for number in range(1000)], cache=cache)
    assert len(cache) <= 100


def test_many_threads(cache):
    some = [f"text {number}" for number in range(300)]
    results: list[list[int]] = []
    threads = [threading.Thread(target=lambda: results.append(measure(TiktokenCounter(), some, cache=cache).tokens.tolist())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [TiktokenCounter().count_texts(some).tolist()] * 4


def test_the_file_holds_hashes_and_counts_and_serves_another_process(tmp_path):
    path = tmp_path / "cache" / "counts.sqlite"
    secret = "sk-test-0123456789abcdef is my key"
    first = CountCache(path=path)
    measure(Spy(), [secret, "a b"], cache=first)
    assert first.on_disk
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first.close()
    raw = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"sk-test" not in raw
    assert b"words" not in raw
    with sqlite3.connect(path) as file:
        assert {(len(key), type(value)) for key, value in file.execute("SELECT * FROM counts")} == {(24, int)}
        assert "WITHOUT ROWID" in file.execute("SELECT sql FROM sqlite_master").fetchone()[0]
        assert file.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    spy = Spy()
    assert measure(spy, ["a b", secret, "new"], cache=CountCache(path=path)).tokens.tolist() == [2, 4, 1]
    assert spy.asked == ["new"]


def test_more_texts_than_a_query_may_name(tmp_path):
    some = [f"text {number}" for number in range(1700)]
    measure(Spy(), some, cache=CountCache(path=tmp_path / "c"))
    spy = Spy()
    measure(spy, some, cache=CountCache(path=tmp_path / "c"))
    assert spy.asked == []


@pytest.mark.parametrize("what", ["a folder", "no database", "another table", "no folder"])
def test_a_file_that_cannot_be_used_leaves_memory(what, tmp_path):
    path = tmp_path / "counts"
    if what == "a folder":
        path.mkdir()
    elif what == "no database":
        path.write_bytes(b"no database at all, " * 100)
    elif what == "another table":
        with sqlite3.connect(path) as file:
            file.execute("CREATE TABLE counts (name TEXT)")
    else:
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "counts"
    cache, spy = CountCache(path=path), Spy()
    assert not cache.on_disk
    for _ in range(2):
        assert measure(spy, ["a b"], cache=cache).tokens.tolist() == [2]
    assert spy.asked == ["a b"]


def test_a_file_that_fails_later_leaves_memory(tmp_path):
    cache, spy = CountCache(path=tmp_path / "c"), Spy()
    measure(spy, ["a"], cache=cache)
    with sqlite3.connect(tmp_path / "c") as file:
        file.execute("DROP TABLE counts")
    assert measure(spy, ["a", "b c"], cache=cache).tokens.tolist() == [1, 2]
    assert not cache.on_disk
    assert measure(spy, ["b c"], cache=cache).tokens.tolist() == [2]
    assert spy.asked == ["a", "b c"]


def test_the_process_can_keep_its_counts_in_a_file(tmp_path):
    try:
        assert use_file(tmp_path / "counts")
        measure(TiktokenCounter(), ["kept in the file"])
        assert not use_file(os.devnull + "/no")
    finally:
        use_file(None)
    assert len(CountCache(path=tmp_path / "counts").get("o200k_base", [digest("kept in the file")])) == 1
    assert len(store.shared()) == 0


def test_a_ratio_is_not_cached(cache):
    assert measure(RatioCounter(), ["abcde"], cache=cache).tokens.tolist() == [2]
    assert len(cache) == 0
