"""Calibrated counters: exact where the provider counts alike, robust where sessions are not tidy, honest about their range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import workbench as wb
from tests.sessions_with_usage import reporting, talk, with_calls, with_subagents
from tests.shared import SHARED, needs_shared
from tests.synthetic import session
from workbench.calibration import FEWEST, HELD, calibrate, ewma, held_out, relative, requests
from workbench.errors import CounterError
from workbench.ledger import count
from workbench.model import KINDS, MAIN, Usage
from workbench.policies import Request
from workbench.policies.none import NoPolicy
from workbench.systems.vak_capacity import Capacity
from workbench.systems.vak_capacity import Usage as VakUsage
from workbench.tokens import CalibratedCounter, RatioCounter, ScaledCounter, TiktokenCounter, get

O200K = TiktokenCounter("o200k_base")


def errors(transcript, counter):
    rows = [row for row in count(transcript, counter).reported if row.reported]
    return np.array([row.estimated - row.reported for row in rows]), np.array([row.reported for row in rows])


@pytest.mark.parametrize(
    "counter", [O200K, RatioCounter(4), ScaledCounter(O200K, 1.18), ScaledCounter(RatioCounter(3, "chars"), 1.53)], ids=lambda item: item.id
)
@pytest.mark.parametrize("hidden", [0, 5_000, 15_157])
@pytest.mark.parametrize("transcript", [talk(), talk(161, 2, compacted=True)], ids=["plain", "compacted"])
def test_exact_on_sessions_made_with_the_counter_itself(transcript, counter, hidden):
    made = reporting(transcript, counter, lambda counted, _: counted + hidden)
    fitted = calibrate(count(made, counter))
    assert fitted.overhead(MAIN) == hidden
    assert (fitted.error, fitted.median) == (0, 0)
    assert fitted.factor == (counter.factor if isinstance(counter, ScaledCounter) else 1)
    wrong, _ = errors(made, fitted)
    assert not wrong.any()
    assert fitted.exact == (counter is O200K)


def test_threads_have_their_own_overhead():
    hidden = {MAIN: 15_000, "agent 0": 11_000, "agent 1": 11_700}
    made = reporting(with_subagents(), O200K, lambda counted, call: counted + hidden[call.thread])
    fitted = calibrate(count(made, O200K))
    assert {thread: fitted.overhead(thread) for thread in hidden} == hidden
    assert fitted.elsewhere == fitted.overhead("an agent that reported nothing") == 11_350
    assert not errors(made, fitted)[0].any()
    ledger, plain = count(made, fitted), count(made, O200K)
    for thread, tokens in hidden.items():
        assert ledger.view(thread).fixed - plain.view(thread).fixed == tokens
        assert ledger.view(thread).total == NoPolicy().select(Request.on(ledger.view(thread))).after_tokens


def test_a_provider_that_counts_more_is_met_within_the_stated_range():
    made = reporting(talk(200), O200K, lambda counted, _: round(1.37 * counted) + 8_000)
    fitted = calibrate(count(made, O200K))
    assert fitted.factor == pytest.approx(1.37, rel=0.05)  # a little more: its framing grows too, and only texts are scaled
    wrong, told = errors(made, fitted)
    assert np.median(np.abs(wrong) / told) <= 0.01
    assert (np.abs(wrong) / told <= fitted.error).mean() >= HELD
    assert fitted.error <= 0.05


def test_a_tenth_of_nonsense_does_not_bend_it():
    made = reporting(talk(300), O200K, lambda counted, call: 17 if call.index % 11 == 3 else 900_000 if call.index % 23 == 5 else counted + 5_000)
    fitted = calibrate(count(made, O200K))
    assert (fitted.factor, fitted.overhead(MAIN)) == (1, 5_000)
    assert fitted.error > 1  # more than 5 % of the requests are nonsense, and it says so
    assert fitted.median == 0


def test_aborted_calls_without_usage_are_left_out():
    made = reporting(talk(160), O200K, lambda counted, call: None if call.index % 5 == 2 else counted + 900)
    fitted = calibrate(count(made, O200K))
    assert fitted.requests == sum(call.usage is not None for call in made.calls)
    assert fitted.overhead(MAIN) == 900
    assert not errors(made, fitted)[0].any()


def test_a_resumed_session_has_two_overheads_and_the_newest_counts():
    made = reporting(talk(200), O200K, lambda counted, call: counted + (4_000 if call.index < 40 else 19_000))
    fitted = calibrate(count(made, O200K))
    assert [(item.call, item.tokens) for item in fitted.overheads] == [(0, 4_000), (40, 19_000)]
    assert fitted.overhead(MAIN) == fitted.overhead(MAIN, 40) == 19_000
    assert fitted.overhead(MAIN, 39) == 4_000
    assert not errors(made, fitted)[0].any()


def test_more_counted_than_was_sent_is_a_negative_overhead_and_no_negative_part():
    made = reporting(talk(200), O200K, lambda counted, call: counted - 300)
    fitted = calibrate(count(made, O200K))
    assert fitted.overhead(MAIN) == -300
    assert "− 300" in fitted.label
    assert not errors(made, fitted)[0].any()
    view = count(made, fitted).view()
    assert (view.fixed_kinds >= 0).all()
    assert sum(view.by_kind.values()) == view.total


def test_each_model_is_fitted_to_its_own_requests():
    factor = {"gpt-4o": 1, "gpt-4o-mini": 2}
    made = reporting(talk(300, model=list(factor)), O200K, lambda counted, call: factor[call.model] * counted)
    ledger = count(made, O200K)
    assert made.model == "gpt-4o-mini"
    assert calibrate(ledger).factor == pytest.approx(2, rel=0.05)
    assert calibrate(ledger, model="openrouter/openai/gpt-4o").factor == 1


def test_what_a_server_made_of_one_call_is_compared_by_its_first_request():
    plain = reporting(talk(160), O200K, lambda counted, _: counted + 50)
    calls = [
        replace(call, usage=Usage(3 * call.usage.prompt, iterations=(call.usage, call.usage, call.usage))) if call.index % 3 == 0 else call
        for call in plain.calls
    ]
    fitted = calibrate(count(replace(plain, calls=tuple(calls)), O200K))
    assert (fitted.factor, fitted.overhead(MAIN), fitted.error) == (1, 50, 0)


def test_calls_that_made_a_summary_are_left_out():
    plain = reporting(talk(160), O200K, lambda counted, call: counted + (50 if call.index % 3 else 30_000))
    calls = tuple(call if call.index % 3 else replace(call, kind="compaction") for call in plain.calls)
    assert calibrate(count(replace(plain, calls=calls), O200K)).error == 0


def test_too_little_usage_says_so():
    few = reporting(talk(160), O200K, lambda counted, call: counted if call.index < FEWEST - 1 else None)
    with pytest.raises(CounterError, match=r"^too little usage to calibrate with: only 9 requests of gpt-4o report a prompt; 10 are needed$"):
        calibrate(count(few, O200K))
    for method in ("line", "ewma"):
        with pytest.raises(CounterError, match="no request of gpt-4o reports a prompt"):
            calibrate(count(talk(60), O200K), method=method)
    same = talk(60)
    same = replace(same, calls=tuple(replace(call, context=(0, 1), usage=Usage(900 + call.index)) for call in same.calls))
    with pytest.raises(CounterError, match="differ by 0 counted tokens; 500 are needed"):
        calibrate(count(same, O200K))


def test_the_range_is_of_requests_that_the_fit_had_not_seen():
    """A provider whose ratio drifts: what is fitted to all looks better than it is."""
    made = reporting(talk(400), O200K, lambda counted, call: round(counted * (1 + call.index / 400)))
    ledger = count(made, O200K)
    fitted, rows = calibrate(ledger), requests(ledger)
    seen = relative(requests(count(made, fitted)).counted, rows.reported)
    unseen = relative(held_out(rows), rows.reported)
    assert np.quantile(unseen, HELD) > np.quantile(seen, HELD)
    assert (unseen <= fitted.error).mean() >= HELD
    assert (seen <= fitted.error).mean() >= HELD


def test_it_is_a_counter_like_others():
    made = reporting(talk(160), O200K, lambda counted, _: 2 * counted)
    fitted = wb.calibrate(wb.count(made, "o200k_base"))
    assert isinstance(fitted, CalibratedCounter)
    assert isinstance(fitted, ScaledCounter)
    assert get(fitted.id) == ScaledCounter(O200K, fitted.factor)
    assert fitted.count_texts(["one two three"]).tolist() == [round(3 * fitted.factor)]
    ledger = wb.count(made, counter=fitted)
    assert ledger.low == round(ledger.total * (1 - fitted.error))
    assert f"fitted to {len(made.calls)} requests" in repr(ledger)
    assert calibrate(ledger).factor == pytest.approx(fitted.factor, rel=1e-3)  # again, on itself


def test_images_and_framing_are_not_scaled():
    made = reporting(talk(160), O200K, lambda counted, _: 2 * counted)
    ledger, fitted = count(made, O200K), calibrate(count(made, O200K))
    framing = KINDS.index("framing")
    assert count(made, fitted).kind_tokens[:, framing].tolist() == ledger.kind_tokens[:, framing].tolist()


def test_vaks_average_is_vaks():
    sizes, told = np.array([4_000, 9_000, 9_500, 20_000]), np.array([1_500, 2_000, 2_600, 5_000])
    profile = Capacity.from_metadata(200_000, 8_000)
    said = []
    for size, tokens in zip(sizes.tolist(), told.tolist(), strict=True):
        said.append(size * profile.ratio)
        profile = profile.observe_usage(size, VakUsage(tokens), None, False)
    average, found = ewma(sizes, told)
    assert average.value == profile.ratio
    assert found.tolist() == said


def test_calibrated_by_vaks_average():
    made = reporting(talk(160), RatioCounter(1), lambda counted, _: counted // 3)
    fitted = calibrate(count(made, O200K), method="ewma")
    assert fitted.method == "ewma"
    assert fitted.overheads == ()
    assert fitted.base == RatioCounter()
    assert fitted.factor == pytest.approx(4 / 3, rel=0.1)
    wrong, told = errors(made, fitted)
    assert np.median(np.abs(wrong) / told) < 0.1


def test_calls_alone_do_not_make_a_calibration():
    with pytest.raises(CounterError):
        calibrate(count(replace(with_calls(session(30)), messages=()), O200K))


REAL = [
    ("pi-session/pi-mono__before-compaction.jsonl", {471}),
    ("claude-code/claude-code-viewer__fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl", {170}),
    ("inspect-ai/docent__log.eval", {24}),
    ("openhands-eval-output/OpenHands__output.jsonl", {23, 33, 49}),
]


@needs_shared
@pytest.mark.parametrize(("name", "sizes"), REAL, ids=[name.split("/")[0] for name, _ in REAL])
def test_real_sessions_with_twenty_reported_calls(name, sizes):
    """After calibration: median error of prompt totals within 5 %, a stated range within ± 15 %, holding for 95 % of the requests."""
    seen = set()
    for transcript in wb.read_all(SHARED / "transcripts" / name):
        ledger = count(transcript)
        rows = requests(ledger, transcript.model)
        if len(rows.calls) < 20:
            continue
        seen.add(len(rows.calls))
        fitted = calibrate(ledger)
        unseen = relative(held_out(rows), rows.reported)
        wrong, told = errors(transcript, fitted)
        assert np.median(np.abs(wrong) / told) <= 0.05
        assert fitted.median <= 0.05
        assert fitted.error <= 0.15
        assert (np.abs(wrong) / told <= fitted.error).mean() >= 0.95
        assert (unseen <= fitted.error).mean() >= 0.95
    assert seen == sizes
