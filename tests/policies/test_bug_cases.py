"""Inputs that broke similar tools. Where a faithful port keeps its origin's behaviour, the finding is what is asserted."""

from contextlib import suppress

import pytest

from tests.strategies import conversation, counted
from workbench import policies
from workbench.errors import BudgetError, WorkbenchError
from workbench.model import Budget, Message, Source, Text, ToolResult, Transcript
from workbench.policies.base import Note
from workbench.policies.scv import Scv
from workbench.systems import scv
from workbench.systems.mapping.scv import as_scv
from workbench.validity import check_pairs, sent_as

every_policy = pytest.mark.parametrize("name", policies.list())


def own_cost(transcript, rows):
    """What some rows cost in scv's own estimate."""
    history = as_scv(counted(transcript).view())[2]
    return sum(scv.estimated_tokens(history[row], 3) for row in rows)


def at(transcript, tokens, policy="scv"):
    """The selection at a budget of so many own tokens for the history (1 for no tools)."""
    return policies.select(counted(transcript), policy, Budget(tokens + 1, 0, 0))


def at_each(transcript, rooms):
    """The selection at each budget that can work."""
    for room in rooms:
        with suppress(BudgetError):
            yield at(transcript, room)


def test_b46_the_kept_history_never_starts_with_a_result_whose_call_was_cut():
    transcript = conversation(
        ("system", "sys"), ("user", "u" * 90), ("assistant", "", "a"), ("tool", "a", "out" * 20), ("assistant", "done"), ("user", "u2"), ("assistant", "ok")
    )
    seen = set()
    for chosen in at_each(transcript, range(300)):
        kept = [message for message in chosen.messages if message.role not in ("system", "note")]
        assert kept[0].role == "user"
        assert check_pairs(chosen.messages) == ()
        assert (2 in chosen.indices) == (3 in chosen.indices)
        seen.add(2 in chosen.indices)
    assert seen == {True, False}


def test_b47_b52_parallel_calls_and_their_results_stay_together():
    transcript = conversation(
        ("user", "first"), ("assistant", "", "a", "b"), ("tool", "a", "x"), ("tool", "b", "y" * 1200), ("user", "second"), ("assistant", "fine")
    )
    seen = set()
    for chosen in at_each(transcript, range(0, 900, 7)):
        together = {index in chosen.indices for index in (1, 2, 3)}
        assert len(together) == 1
        assert check_pairs(chosen.messages) == ()
        seen |= together
    assert seen == {True, False}


@every_policy
def test_b49_an_empty_list_is_an_empty_view(name):
    chosen = policies.select(counted(Transcript("t", Source("t"))), name)
    assert (chosen.items, chosen.fates, chosen.findings) == ((), (), ())
    assert (chosen.before_tokens, chosen.after_tokens) == (chosen.request.view.fixed,) * 2
    assert repr(chosen).endswith("no messages>")


@every_policy
def test_b50_system_and_empty_user_text_are_both_kept(name):
    transcript = Transcript("t", Source("t"), (Message(0, "", "system", (Text("x"),)), Message(1, "", "user", (Text(""),))))
    assert policies.select(counted(transcript), name).fates == ("kept", "kept")


@every_policy
def test_b50_only_a_system_message(name):
    chosen = policies.select(counted(conversation(("system", "x"))), name)
    assert chosen.fates == ("kept",)
    assert chosen.before_tokens == chosen.after_tokens


@every_policy
def test_b53_a_doubled_result_is_shown_and_flagged(name):
    ledger = counted(conversation(("user", "q"), ("assistant", "", "a"), ("tool", "a", "one"), ("tool", "a", "one")))
    chosen = policies.select(ledger, name)
    assert len(chosen.messages) == 4
    assert [(finding.rule, finding.messages) for finding in chosen.findings] == [("duplicate_result", (3,))]
    assert chosen.before_tokens == ledger.view().fixed + int(ledger.message_tokens.sum())


@every_policy
def test_b56_an_interrupted_run_is_kept_and_its_pending_call_flagged(name):
    chosen = policies.select(counted(conversation(("user", "q"), ("assistant", "", "a"))), name)
    assert chosen.fates == ("kept", "kept")
    assert [(finding.rule, finding.messages) for finding in chosen.findings] == [("unanswered_call", (1,))]


def test_b58_no_user_in_the_long_tail_scv_says_that_the_turn_is_too_large():
    rows = [("user", "go")]
    for step in range(20):
        rows += [("assistant", "", f"c{step}"), ("tool", f"c{step}", "result " * 20)]
    transcript = conversation(*rows)
    room = own_cost(transcript, [0, *range(29, 41)])  # the user and six pairs
    with pytest.raises(BudgetError) as raised:  # the origin never cuts inside a turn
        at(transcript, room)
    assert raised.value.culprit == "newest turn exceeds context budget"
    assert raised.value.needed - raised.value.available == own_cost(transcript, range(1, 29))


def test_b59_a_last_group_over_the_budget_is_a_state_and_a_little_more_compacts_the_older():
    rows = []
    for turn in range(50):
        rows += [("user", f"question {turn}"), ("assistant", "answer " * 30)]
    rows += [("user", "last"), ("assistant", "", "z"), ("tool", "z", "x" * 66_000)]
    transcript = conversation(*rows)
    with pytest.raises(BudgetError) as raised:
        at(transcript, 20_000)
    assert raised.value.culprit == "newest turn exceeds context budget"
    grown = at(transcript, 20_000 + raised.value.needed - raised.value.available)
    assert grown.counts == {"kept": 3, "edited": 0, "summarized": 100, "dropped": 0}


@every_policy
def test_b61_a_later_system_message_is_an_ordinary_row(name):
    transcript = conversation(("system", "prompt"), ("user", "q"), ("assistant", "a" * 600), ("system", "user is idle"), ("user", "again"))
    whole = policies.select(counted(transcript), name)
    assert whole.fates == ("kept",) * 5
    if name == "scv":
        assert at(transcript, 200).fates == ("kept", "summarized", "summarized", "summarized", "kept")
        assert "earlier: user is idle" in at(transcript, 200).notes[0].message.text


def test_b62_the_current_question_is_kept_at_every_window_that_works():
    rows = [("user", "old question " * 30), ("assistant", "old answer " * 30)] * 30
    transcript = conversation(*rows, ("user", "now fix X"))
    ledger = counted(transcript)
    smallest = policies.smallest_window(Scv(), policies.Request(ledger.view(), Budget(0, 0, 0)))
    for window in (smallest, smallest + 1, smallest + 40, smallest + 4000):
        assert policies.select(ledger, "scv", Budget(window, 0, 0)).messages[-1].text == "now fix X"
    with pytest.raises(BudgetError):
        policies.select(ledger, "scv", Budget(smallest - 1, 0, 0))


def test_b64_the_note_has_a_role_of_its_own():
    chosen = at(conversation(("user", "u" * 900), ("assistant", "a"), ("user", "u2")), 150)
    assert chosen.notes[0].role == "history_note"
    assert chosen.messages[0].role == "note"


def test_b67_a_note_larger_than_what_it_replaced_is_flagged():
    # scv pays for ids, the counter does not: the ids make room in scv's estimate, and the note costs more than was cut
    transcript = conversation(("tool", "x" * 900, ""), ("user", "next"))
    chosen = at(transcript, 200)
    assert chosen.own_after < chosen.own_before
    more = chosen.after_tokens - chosen.before_tokens
    assert more > 0
    assert [(finding.rule, finding.text) for finding in chosen.alarms] == [("grew", f"the request grew by {more:,} tokens")]


def test_b68_repeated_passes_leave_one_note():
    rows = [("user", f"question {turn} " * 9) if part == 0 else ("assistant", "answer " * 40) for turn in range(12) for part in range(2)]
    transcript = conversation(*rows)
    budget = Budget(900, 0, 0)
    policy = Scv(summary_max_chars=400)
    first = policies.select(counted(transcript), policy, budget)
    assert len(first.notes) == 1
    sent = first.messages
    for _ in range(3):
        again = policies.select(counted(Transcript("t", Source("t"), tuple(Message(i, "", m.role, m.parts) for i, m in enumerate(sent)))), policy, budget)
        assert [message.parts for message in again.messages] == [message.parts for message in sent]
        assert sum(message.role == "note" for message in again.messages) == 1
        assert again.counts["dropped"] + again.counts["summarized"] == 0
        sent = again.messages


def test_b70_the_kept_tail_leaves_room_for_the_note():
    rows = [("user", "u" * 20) if part == 0 else ("assistant", "a" * 20) for _ in range(20) for part in range(2)]
    transcript = conversation(*rows)
    for room in range(60, 400):
        chosen = at(transcript, room, Scv(summary_max_chars=20))
        assert chosen.own_after <= room + 1
        note = scv.estimated_tokens(scv.Message("history_note", chosen.notes[0].message.text), 3)
        assert own_cost(transcript, chosen.indices) <= room - note


def test_b71_one_number_is_trigger_and_target():
    transcript = conversation(*[("user", "u" * 50) for _ in range(40)])
    everything = own_cost(transcript, range(40))
    assert at(transcript, everything).event is None
    cut = at(transcript, everything - 1)
    assert cut.event is not None
    assert cut.event.tokens_before == everything + 1
    assert cut.event.tokens_after == cut.own_after <= everything


@every_policy
def test_b73_a_recap_is_no_persons_message(name):
    recap = Message(1, "", "user", (Text("continued from before"),), flags=frozenset({"compact_summary"}))
    transcript = Transcript("t", Source("t"), (Message(0, "", "user", (Text("q"),)), recap, Message(2, "", "assistant", (Text("a"),))))
    view = counted(transcript).view()
    assert len(view.turns) == 1
    assert as_scv(view)[2][1].role == "history_note"
    assert policies.select(view.ledger, name).fates == ("kept",) * 3


@every_policy
def test_b02_results_without_content_are_ordinary_rows(name):
    parts = (ToolResult("a", None, ()), ToolResult("a", "run", (Text(""),)))
    for part in parts:
        rows = conversation(("user", "q"), ("assistant", "", "a")).messages
        transcript = Transcript("t", Source("t"), (*rows, Message(2, "", "tool", (part,))))
        chosen = policies.select(counted(transcript), name)
        assert chosen.fates == ("kept",) * 3
        assert chosen.findings == ()


# Every policy: what it promises holds, and where its origin does otherwise the finding says so.

WINDOWS = (*range(20, 400, 30), *range(400, 2_000, 200), 3_000, 6_000, 12_000, 24_000)


def working(name, transcript, windows=WINDOWS):
    """The selection at each window at which a policy answers; no exception but its own refusal."""
    ledger = counted(transcript)
    for window in windows:
        with suppress(WorkbenchError):
            yield policies.select(ledger, name, Budget(window, 0, 0))


def found(chosen, rule, provider="any"):
    """The messages of each finding of a rule."""
    return [finding.messages for finding in chosen.findings if (finding.rule, finding.provider) == (rule, provider)]


def promised(name, promise):
    return promise in policies.get(name).promises


def bulky(pairs):
    """One question and so many calls with their results."""
    rows = [("user", "go")]
    for step in range(pairs):
        rows += [("assistant", "", f"c{step}"), ("tool", f"c{step}", "result " * 20)]
    return conversation(*rows)


@every_policy
def test_b46_a_result_whose_call_was_cut_is_told_or_never_left(name):
    transcript = conversation(
        ("system", "sys"), ("user", "u" * 90), ("assistant", "", "a"), ("tool", "a", "out" * 20), ("assistant", "done"), ("user", "u2"), ("assistant", "ok")
    )
    for chosen in working(name, transcript):
        alone = 3 in chosen.indices and 2 not in chosen.indices
        assert found(chosen, "orphan_result") == ([(3,)] if alone else [])
        assert found(chosen, "unanswered_call") == ([(2,)] if 2 in chosen.indices and 3 not in chosen.indices else [])
        assert not (promised(name, "pairs") and alone)


@every_policy
def test_b47_b52_what_is_left_of_parallel_calls_is_told(name):
    transcript = conversation(
        ("user", "first"), ("assistant", "", "a", "b"), ("tool", "a", "x"), ("tool", "b", "y" * 1200), ("user", "second"), ("assistant", "fine")
    )
    for chosen in working(name, transcript):
        kept = {index for index in (1, 2, 3) if index in chosen.indices}
        orphans, open_calls = found(chosen, "orphan_result"), found(chosen, "unanswered_call")
        assert orphans == ([(index,) for index in sorted(kept - {1})] if 1 not in kept else [])
        assert len(open_calls) == (len({2, 3} - kept) if 1 in kept else 0)
        assert all(not finding.in_source for finding in chosen.alarms)
        if promised(name, "pairs"):
            assert kept in (set(), {1, 2, 3})


@every_policy
def test_b58_a_long_turn_without_a_user_is_cut_at_pairs_or_told(name):
    transcript = bulky(20)
    for chosen in working(name, transcript):
        kept = set(chosen.indices)
        whole = all((call in kept) == (call + 1 in kept) for call in range(1, 41, 2))
        assert whole == (not found(chosen, "orphan_result") and not found(chosen, "unanswered_call"))
        assert whole or not promised(name, "pairs")
        assert found(chosen, "last_user_removed") == ([] if 0 in kept else [(0,)])
        assert 0 in kept or not promised(name, "last_user")


@every_policy
def test_b59_a_last_group_over_the_budget_is_told(name):
    rows = []
    for turn in range(50):
        rows += [("user", f"question {turn}"), ("assistant", "answer " * 30)]
    transcript = conversation(*rows, ("user", "last"), ("assistant", "", "z"), ("tool", "z", "x" * 66_000))
    for chosen in working(name, transcript):
        assert bool(found(chosen, "over_window")) == (chosen.after_tokens > chosen.request.budget.max_tokens)
        assert chosen.own_after <= chosen.request.budget.available or not promised(name, "budget")


@every_policy
def test_b61_only_leading_system_messages_are_the_fixed_part(name):
    transcript = conversation(("system", "prompt"), ("user", "q " * 200), ("assistant", "a" * 600), ("system", "user is idle"), ("user", "again"))
    assert counted(transcript).view().lead == 1
    for chosen in working(name, transcript):
        assert chosen.fates[0] == "kept"
        assert found(chosen, "system_inside", "anthropic").count((3,)) == (3 in chosen.indices)
        assert all(finding.in_source for finding in chosen.findings if (finding.rule, finding.messages) == ("system_inside", (3,)))


@every_policy
def test_b62_the_current_question_stays_or_its_loss_is_told(name):
    rows = [("user", "old question " * 30), ("assistant", "old answer " * 30)] * 30
    transcript = conversation(*rows, ("user", "now fix X"))
    for chosen in working(name, transcript):
        stays = any(message.text == "now fix X" for message in chosen.messages if message.role == "user")
        assert found(chosen, "last_user_removed") == ([] if stays else [(60,)])
        assert stays or not promised(name, "last_user")


def turns(number, size=9):
    return conversation(*(row for turn in range(number) for row in (("user", f"question {turn} " * size), ("assistant", "answer " * 40))))


def sent_roles(chosen):
    """The role with which each item is sent."""
    return [sent_as(item.role) if isinstance(item, Note) else message.role for item, message in zip(chosen.items, chosen.messages, strict=True)]


@every_policy
def test_b64_a_note_beside_a_user_message_is_told_for_strict_providers(name):
    for chosen in working(name, turns(12)):
        roles = sent_roles(chosen)
        beside = [at for at in range(1, len(roles)) if roles[at] == roles[at - 1] == "user"]
        told = [tuple(message.index for message in chosen.messages[at - 1 : at + 1] if message.index >= 0) for at in beside]
        for provider in ("anthropic", "openai-chat"):
            assert found(chosen, "same_role", provider) == told
        assert all(finding.rule != "same_role" for finding in chosen.alarms)  # both providers themselves take it


@every_policy
def test_b65_a_note_that_is_sent_as_system_in_the_middle_is_told(name):
    transcript = conversation(("system", "prompt"), *((message.role, message.text) for message in turns(12).messages))
    for chosen in working(name, transcript):
        roles = sent_roles(chosen)
        others = [at for at, role in enumerate(roles) if role != "system"]
        inside = [at for at, role in enumerate(roles) if role == "system" and others and at > others[0]]
        assert len(found(chosen, "system_inside", "anthropic")) == len(inside)
        assert found(chosen, "system_inside", "openai-chat") == []


@every_policy
def test_b67_growth_is_told(name):
    for chosen in working(name, conversation(("tool", "x" * 900, ""), ("user", "next"))):
        assert bool(found(chosen, "grew")) == (chosen.after_tokens > chosen.before_tokens)
        if chosen.after_tokens > chosen.before_tokens:
            assert chosen.alarms


@every_policy
def test_b68_repeated_passes_never_lose_count(name):
    for window in (300, 900, 2_000):
        transcript = turns(12)
        sent = None
        for _ in range(3):
            chosen = next(working(name, transcript, [window]), None)
            if chosen is None:
                break
            assert sum(chosen.counts.values()) == len(transcript.messages)
            parts = [message.parts for message in chosen.messages]
            if promised(name, "idempotent") and sent is not None:
                assert parts == sent
                assert sum(message.role == "note" for message in chosen.messages) <= 1
            sent = parts
            transcript = Transcript("t", Source("t"), tuple(Message(at, "", message.role, message.parts) for at, message in enumerate(chosen.messages)))


@every_policy
def test_b70_b71_what_triggers_is_what_is_reached(name):
    for chosen in working(name, turns(20)):
        available = chosen.request.budget.available
        if promised(name, "budget"):
            assert chosen.own_after <= available
            assert chosen.event is not None or chosen.own_before <= available
        assert bool(found(chosen, "over_window")) == (chosen.after_tokens > chosen.request.budget.max_tokens)
