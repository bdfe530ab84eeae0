"""A line through reported prompts: exact on exact data, unbent by outliers, cut where a level jumps for good."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.tokens.fitting import STAYS, fit, levels, predict, weighted_median


def grown(number: int, seed: int = 1) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).integers(20, 900, number)) + 1_000


@given(factor=st.integers(1, 40).map(lambda number: number / 8), level=st.integers(-500, 30_000), number=st.integers(2, 60), seed=st.integers(0, 99))
def test_exact_data_give_the_line_back(factor, level, number, seed):
    counted = 8 * grown(number, seed)  # so that every product is a whole number
    reported = (counted * factor).astype(np.int64) + level
    line = fit(counted, reported, np.zeros(number, int))
    assert line.factor == factor
    assert line.levels.tolist() == [level] * number
    assert line.runs.tolist() == [0] * number


@pytest.mark.parametrize("share", [0.1, 0.25, 0.4])
def test_outliers_do_not_bend_it(share):
    counted = grown(200)
    reported = 3 * counted + 7_000
    wrong = np.random.default_rng(3).choice(200, int(200 * share), replace=False)
    reported[wrong] = np.random.default_rng(4).integers(1, 400_000, len(wrong))
    line = fit(counted, reported, np.zeros(200, int))
    assert line.factor == pytest.approx(3, rel=0.02)
    good = np.setdiff1d(np.arange(200), wrong)
    assert np.median(np.abs(line.factor * counted + line.levels - reported)[good] / reported[good]) < 0.01


def test_each_thread_has_a_level_of_its_own_and_all_share_the_factor():
    counted = np.concatenate([grown(12, seed) for seed in range(3)])
    threads = np.repeat([5, 2, 9], 12)
    reported = 2 * counted + np.repeat([15_000, 11_000, 12_000], 12)
    line = fit(counted, reported, threads)
    assert line.factor == 2
    assert line.levels.tolist() == np.repeat([15_000, 11_000, 12_000], 12).tolist()


def test_a_session_that_was_resumed_with_other_tools_has_two_runs():
    counted = grown(60)
    reported = counted + np.where(np.arange(60) < 25, 4_000, 19_000)
    line = fit(counted, reported, np.zeros(60, int))
    assert line.factor == 1
    assert line.runs.tolist() == [0] * 25 + [1] * 35
    assert sorted(set(line.levels.tolist())) == [4_000, 19_000]


def test_a_jump_that_does_not_stay_is_an_outlier():
    counted = grown(60)
    reported = counted + 4_000
    reported[30 : 30 + STAYS - 1] += 30_000
    line = fit(counted, reported, np.zeros(60, int))
    assert set(line.runs.tolist()) == {0}
    assert set(line.levels.tolist()) == {4_000}


def test_prompts_that_shrink_at_a_compaction_are_pairs_like_others():
    counted = np.concatenate([grown(30), grown(30, 2)])
    line = fit(counted, 2 * counted + 900, np.zeros(60, int))
    assert (line.factor, set(line.levels.tolist())) == (2, {900})


def test_nothing_can_be_said_where_nothing_differs():
    same = np.full(9, 4_000)
    assert fit(same, same + 5, np.zeros(9, int)) is None
    assert fit(np.arange(9) * 100, np.arange(9) * 200, np.arange(9)) is None  # each request in a thread of its own
    assert fit(np.zeros(0, int), np.zeros(0, int), np.zeros(0, int)) is None


def test_what_is_predicted_is_not_looked_at():
    counted = grown(50)
    reported = 2 * counted + 300
    known = np.arange(50) < 30
    hidden = reported.copy()
    hidden[~known] = 1  # whatever stands there
    zeros = np.zeros(50, int)
    assert predict(counted, hidden, zeros, zeros, known).tolist() == reported.tolist()


def test_a_thread_that_is_not_known_is_like_those_of_its_kind():
    counted = np.concatenate([grown(12, seed) for seed in range(4)])
    threads, kinds = np.repeat(range(4), 12), np.repeat([0, 1, 1, 1], 12)
    reported = counted + np.repeat([15_000, 11_000, 12_000, 70_000], 12)
    found = predict(counted, reported, threads, kinds, threads != 3)
    assert (found - counted)[36:].tolist() == [11_500] * 12
    assert np.isnan(predict(counted, reported, threads, kinds, threads == 0)[12:]).all()  # no other subagent is known


def test_medians():
    assert weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0])) == 2
    assert levels(np.array([1.0, 9.0, 5.0, 100.0]), np.array([0, 0, 0, 4])).tolist() == [5, 5, 5, 100]
