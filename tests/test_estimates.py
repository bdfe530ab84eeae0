"""Estimates against reported usage: each is what it says, margins hold as often as they say, kinds get what is theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import workbench as wb
from tests.sessions_with_usage import reporting, talk, with_subagents
from tests.shared import SHARED, needs_shared
from workbench import estimates, frames
from workbench.calibration import requests
from workbench.estimates import AVERAGE, SHARES, by_kind, everything, misses, of, own_tokens
from workbench.ledger import count
from workbench.model import KINDS, MAIN, Budget, Call
from workbench.policies import Agentd, Kernel, NoPolicy, Scv, Vak
from workbench.policies.base import Request
from workbench.tokens import RatioCounter, TiktokenCounter

O200K = TiktokenCounter("o200k_base")


@pytest.fixture(scope="module")
def found():
    return of(count(reporting(talk(200, compacted=True), O200K, lambda counted, call: counted + 6_000 + 40 * (call.index % 7)), O200K))


def test_every_estimate_is_of_every_reported_request(found):
    names = [item.name for item in found.estimates]
    assert names == ["o200k_base", found.calibrated.label, "UTF-8 bytes ÷ 4", "characters ÷ 4", AVERAGE, "agentd", "scv", "vak"]
    assert all(item.tokens.shape == found.reported.shape for item in found.estimates)
    assert [item.source for item in found.estimates] == ["counter", "calibrated", "ratio", "ratio", "ratio", "policy", "policy", "policy"]
    ledger = found.ledger
    assert found["o200k_base"].tokens.tolist() == [row.estimated for row in ledger.reported]
    fitted = count(ledger.transcript, found.calibrated)
    assert found[found.calibrated.label].tokens.tolist() == [row.estimated for row in fitted.reported]


@pytest.mark.parametrize("policy", [Scv(), Scv(bytes_per_token=4), Agentd(), Vak(), Vak(tokens_per_char=0.4)], ids=repr)
@pytest.mark.parametrize("transcript", [talk(60), talk(61, compacted=True)], ids=["plain", "compacted"])
def test_a_policys_own_estimate_of_a_request_is_that_of_its_selection(policy, transcript):
    ledger = count(reporting(transcript, RatioCounter(), lambda counted, _: counted), RatioCounter())
    rows = requests(ledger)
    own = own_tokens(policy, ledger, rows)
    for call, tokens in zip(transcript.calls[::7], own[::7], strict=True):
        known = tuple(message for message in transcript.messages if message.index < call.produced[0])
        done = tuple(item for item in transcript.compactions if item.after < call.produced[0])
        view = count(replace(transcript, messages=known, compactions=done, calls=()), RatioCounter()).view("main", "live")
        assert tokens == policy.select(Request.on(view, Budget(10_000_000))).own_before


def test_policies_without_an_estimate_of_their_own_are_left_out(found):
    rows = found.requests
    assert own_tokens(Kernel(), found.ledger, rows) is None
    assert own_tokens(NoPolicy(), found.ledger, rows) is None
    assert [item.name for item in of(found.ledger, [Kernel(), "none", "scv"]).estimates if item.source == "policy"] == ["scv"]


@pytest.mark.parametrize("hidden", [False, True])
def test_margins_hold_as_often_as_they_say(found, hidden):
    for row, item in zip(found.accuracy(hidden=hidden), found.estimates, strict=True):
        tokens = item.tokens + (found.hidden if hidden and not item.whole else 0)
        held = [(tokens + margin >= found.reported).mean() for margin in row.margins]
        assert all(now >= share for now, share in zip(held, SHARES, strict=True))
        assert list(row.margins) == sorted(row.margins)
        for margin, share in zip(row.margins, SHARES, strict=True):  # and no smaller one does
            assert margin == 0 or (tokens + margin - 1 >= found.reported).mean() < share
        error = np.abs(tokens - found.reported) / found.reported
        assert (error <= row.within).mean() >= 0.9
        assert row.most == error.max()
        assert row.median == np.median(error)


@pytest.mark.parametrize("hidden", [False, True])
def test_bytes_per_token_hold_as_often_as_they_say(found, hidden):
    tokens = found.reported - (found.hidden if hidden else 0)
    for ratio, share in zip(found.bytes_per_token(hidden=hidden), SHARES, strict=True):
        assert (found.sizes / ratio >= tokens * (1 - 1e-9)).mean() >= share
    assert list(found.bytes_per_token()) == sorted(found.bytes_per_token(), reverse=True)


def test_what_is_hidden_is_given_to_those_that_do_not_know_it(found):
    plain, given = found.accuracy(), found.accuracy(hidden=True)
    assert given[0].median < 0.02 < plain[0].median
    assert given[1] == plain[1]  # the calibrated one knows
    assert given[4] == plain[4]  # so does the average: it was measured on whole prompts


def test_a_session_without_usage_and_one_with_too_little():
    none = of(count(talk(40), O200K))
    assert len(none.reported) == 0
    assert none.calibrated is None
    assert misses(none) == ()
    assert by_kind(none.ledger) == ()
    assert none.bytes_per_token() == ()
    assert {row.margins for row in none.accuracy()} == {(0, 0, 0, 0)}
    few = of(count(reporting(talk(40), O200K, lambda counted, call: counted if call.index < 4 else None), O200K))
    assert len(few.reported) == 4
    assert few.calibrated is None
    assert few.problem == "too little usage to calibrate with: only 4 requests of gpt-4o report a prompt; 10 are needed"
    assert all(np.isfinite(item.tokens).all() for item in few.estimates)


def test_a_ledger_that_is_calibrated_already_is_not_listed_twice(found):
    again = of(count(found.ledger.transcript, found.calibrated))
    assert [item.source for item in again.estimates].count("calibrated") == 1
    assert again.calibrated is found.calibrated
    assert again.hidden.tolist() == found.hidden.tolist()
    assert misses(again) == misses(found)


def test_all_of_a_thread_is_both_histories():
    ledger = count(talk(61, compacted=True), RatioCounter())
    view = everything(ledger)
    assert set(view.indices) == set(ledger.view().indices) | set(ledger.view(MAIN, "live").indices)


def test_kinds_get_what_is_theirs():
    """A provider that counts tool results half as much again, and nothing else."""
    transcript = talk(400)
    plain = count(transcript, O200K)
    result = KINDS.index("tool_result")
    more = plain.prompts.sums[:, result] // 2
    made = reporting(transcript, O200K, lambda counted, call: counted + int(more[call.index]))
    kinds = {item.kind: item for item in by_kind(count(made, O200K))}
    assert kinds["tool_result"].factor == pytest.approx(1.5, abs=0.03)
    for name in ("assistant", "tool_call", "reasoning"):
        assert kinds[name].factor == pytest.approx(1, abs=0.15)
    assert kinds["tool_result"].tokens <= plain.prompts.sums[:, result].max()
    assert "framing" not in kinds


def test_a_kind_that_hardly_stands_there_is_not_judged():
    made = reporting(talk(60), O200K, lambda counted, _: counted)
    few = [item for item in by_kind(count(made, O200K)) if item.steps < estimates.FEWEST_STEPS or item.tokens < estimates.FEWEST_TOKENS]
    assert few
    assert all(item.factor is None and item.error is None for item in few)


def test_misses_say_what_is_known_of_the_reason():
    def rule(counted: int, call: Call) -> int:
        return counted * 2 if call.index == 40 else counted + (6_000 if call.index > 1 else 500)

    found = of(count(reporting(talk(300), O200K, rule), O200K))
    missed = {miss.call: miss for miss in misses(found)}
    assert set(missed) == {0, 1, 40}
    assert missed[0].why == "5,500 tokens too many, where 19 of 20 requests of its thread are within 0: it stands out"
    assert "tokens too few, where 19 of 20" in missed[40].why
    assert all(miss.reported != miss.estimated for miss in missed.values())


def test_an_answer_that_was_cut_off_and_not_sent_again_is_named():
    transcript = talk(200)
    big = next(message for message in transcript.messages if message.index > 80 and message.role == "assistant")
    text = replace(big, parts=(*big.parts, *big.parts * 400))
    messages = tuple(text if message.index == big.index else message for message in transcript.messages)
    calls = tuple(replace(call, stop_reason="aborted") if big.index in call.produced else call for call in transcript.calls)
    transcript = replace(transcript, messages=messages, calls=calls)
    size = int(count(transcript, O200K).message_tokens[big.index])
    assert size > 2_000
    made = reporting(transcript, O200K, lambda counted, call: counted + 3_000 - (size if call.produced[0] > big.index else 0))
    found = of(count(made, O200K))
    assert [item.tokens for item in found.calibrated.overheads] == [3_000, 3_000 - size]
    assert estimates.jump(found, MAIN, 1).endswith(f"#{big.index}, an answer that was cut off ({size:,} tokens), seems not to have been sent again")


def test_frames_hold_the_same_numbers(found):
    table = frames.estimates(found, hidden=True)
    for (name, row), item in zip(table.iterrows(), found.accuracy(hidden=True), strict=True):
        assert (name, row.source, row["median"], row.worst) == (item.name, item.source, item.median, item.most)
        assert tuple(row[["margin_50", "margin_90", "margin_99", "margin_100"]]) == item.margins
    requests = frames.estimated_requests(found)
    assert requests.reported.tolist() == found.reported.tolist()
    assert requests["scv"].tolist() == found["scv"].tokens.tolist()
    assert requests.index.tolist() == found.requests.calls.tolist()
    kinds = frames.kind_errors(found.ledger)
    assert kinds.index.tolist() == [item.kind for item in by_kind(found.ledger)]
    assert kinds.factor.isna().tolist() == [item.factor is None for item in by_kind(found.ledger)]
    empty = of(count(talk(20), O200K))
    assert len(frames.estimated_requests(empty)) == 0
    assert len(frames.kind_errors(empty.ledger)) == 0


def test_threads_are_told_apart():
    found = of(count(reporting(with_subagents(), O200K, lambda counted, call: counted + (9_000 if call.thread == MAIN else 4_000)), O200K))
    assert sorted(set(found.hidden.tolist())) == [4_000, 9_000]
    assert misses(found) == ()


@needs_shared
def test_the_requests_of_pi_that_are_out_of_range_have_reasons():
    found = of(wb.count(wb.read(SHARED / "transcripts/pi-session/pi-mono__before-compaction.jsonl")))
    missed = misses(found)
    assert [miss.call for miss in missed] == [0, *range(327, 334)]
    assert missed[0].why.startswith("747 tokens too many, no more than others of its thread")
    assert missed[0].why.endswith("but its prompt is small")
    assert all("#672, an answer that was cut off" in miss.why for miss in missed[1:])
    kinds = {item.kind: item.factor for item in by_kind(found.ledger)}
    assert kinds["tool_call"] < 1 < kinds["tool_result"]  # code that was written costs less than 1.18 × o200k, output more
