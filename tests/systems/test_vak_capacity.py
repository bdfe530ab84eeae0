"""vak's measured capacity beyond its vectors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.systems.vak import Capacity, Ewma, Horizon, Usage, capacity_feedback_delta, display, relative_change, round_half_away

tokens = st.integers(0, 2**40)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_prints_without_exponent_and_reads_back(value):
    text = display(value)
    assert float(text) == value
    assert "e" not in text.lower()
    assert not text.endswith(".0")


@given(st.integers(0, 2**50), st.sampled_from((0.0, 0.25, 0.5, 0.75)))
def test_halves_round_up(whole, part):
    assert round_half_away(whole + part) == whole + (part >= 0.5)


@pytest.mark.parametrize(("value", "rounded"), [(-0.6, 0), (math.nan, 0), (math.inf, 2**64 - 1), (2.0**64, 2**64 - 1), (2.0**60, 2**60)])
def test_what_is_out_of_range_saturates(value, rounded):
    assert round_half_away(value) == rounded


@given(tokens, tokens, tokens, tokens, tokens)
def test_the_two_formulas_agree_where_the_horizon_is_the_window(window, output, prefix, tail, reserve):
    profile = Capacity.from_metadata(window, output)
    budget = profile.budget(prefix, tail, reserve)
    assert budget == max(0, window - output - prefix - tail - reserve)
    assert profile.budget_from_horizon(prefix, tail, reserve) == budget


def test_the_two_formulas_part_below_the_window():
    profile = Capacity(10_000, Horizon(6_000, 0.6), output_reserve=1_000)
    assert (profile.prompt_ceiling, profile.budget(500, 0, 0), profile.budget_from_horizon(500, 0, 0)) == (6_000, 5_500, 4_500)


def test_an_unused_output_reserve_above_the_window_leaves_nothing():
    assert Capacity.from_metadata(100, 500).prompt_ceiling == 0
    assert Capacity.from_metadata(100, 500).budget(0, 0, 0) == 0


def test_the_reserve_is_what_turns_have_had_and_at_least_what_this_one_holds():
    profile = Capacity.from_metadata(1000, 0)
    assert profile.turn_reserve(7) == 7
    learned = profile.observe_turn(100).observe_turn(201)  # 0.3 · 201 + 0.7 · 100 = 130.3
    assert learned.turn_reserve(7) == 130
    assert learned.turn_reserve(131) == 131


def test_the_ratio_is_measured_once_a_provider_reports():
    profile = Capacity.from_metadata(1000, 0)
    assert (profile.estimate_tokens(10), profile.chars_for_tokens(3)) == (3, 12)  # 2.5 rounds away from zero
    seen = profile.observe_usage(100, Usage(10, 20, 20), None, False)
    assert seen.ratio == 0.5
    assert seen.prefill_tps.samples == 0
    assert Capacity(1, Horizon(1, 1), tokens_per_char=Ewma(0.0, samples=1)).chars_for_tokens(5) == 0
    assert Capacity(1, Horizon(1, 1), tokens_per_char=Ewma(-1.0, samples=1)).estimate_tokens(5) == 0


@pytest.mark.parametrize(
    ("usage", "latency", "miss", "speed"),
    [
        (Usage(100, prefill_ms=50), 500, True, 2_000.0),
        (Usage(100), 500, True, 200.0),
        (Usage(100), 500, False, None),
        (Usage(100), None, True, None),
        (Usage(100, prefill_ms=0), 500, True, None),
        (Usage(0, 100), 500, True, None),
    ],
)
def test_prefill_is_measured_only_without_a_cache(usage, latency, miss, speed):
    average = Capacity.from_metadata(1000, 0).observe_usage(400, usage, latency, miss).prefill_tps
    assert (average.value if average.samples else None) == speed


def test_a_failure_counts_only_near_the_horizon_and_never_raises_it():
    profile = Capacity.from_metadata(1_000, 0)
    assert profile.observe_instruction_failure(799) is profile
    lower = profile.observe_instruction_failure(800)
    assert (lower.instruction_horizon, lower.needs_reprobe, lower.verified_window) == (Horizon(800, 0.6), True, None)
    above = profile.observe_instruction_failure(5_000)
    assert (above.instruction_horizon, above.needs_reprobe) == (Horizon(1_000, 0.6), True)


def test_over_length_is_a_limit_that_only_falls():
    profile = Capacity.from_metadata(8_000, 0).observe_over_length(7_001)
    assert (profile.verified_window, profile.instruction_horizon) == (7_001, Horizon(6_300, 0.6))
    assert profile.observe_over_length(9_000) == profile
    assert profile.observe_over_length(100).instruction_horizon.tokens == 90


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_relative_change_is_a_share_of_the_value_before(before, after):
    change = relative_change(before, after)
    assert change >= 0
    if before == after:
        assert change == 0
    if before == 0 != after:
        assert change == 1


def test_a_delta_names_what_changed_in_order():
    before = Capacity(10, Horizon(5, 1), tokens_per_char=Ewma(1.0, samples=1), prefill_tps=Ewma(100.0, samples=1))
    after = Capacity(10, Horizon(4, 1), tokens_per_char=Ewma(1e-7, samples=1), prefill_tps=Ewma(105.0, samples=1))
    delta = capacity_feedback_delta(before, after)
    assert list(delta.items()) == [("instruction_horizon_tokens", "5 -> 4"), ("tokens_per_char", "1 -> 0.0000001")]
    assert capacity_feedback_delta(before, before) == {}
