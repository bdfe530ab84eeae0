"""`compare`: the same answers as `select`, side by side; where they part; what cannot hold is a row."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import workbench as wb
from tests.synthetic import session
from tests.widgets.made import Everything, Newest
from tests.widgets.sessions import Mixed
from workbench.errors import BudgetError, PolicyError, WorkbenchError
from workbench.ledger import count
from workbench.model import KINDS, Budget
from workbench.policies import Comparison, Selection, compare
from workbench.policies.base import FATES, Edited, Kept, PolicyInfo
from workbench.policies.compare import WAYS, item_kinds, labels, sent_kinds
from workbench.policies.registry import SYSTEMS
from workbench.tokens import RatioCounter

BUDGET = Budget(20_000)


@pytest.fixture(scope="module")
def ledger():
    return count(session(200, compacted=True), RatioCounter())


@pytest.fixture(scope="module")
def made(ledger) -> Comparison:
    return compare(ledger, ["none", "scv", Newest(), Mixed()], BUDGET)


def test_each_answer_is_what_select_gives(made, ledger):
    for label, policy in zip(made.labels, made.policies, strict=True):
        alone = wb.select(ledger, policy, BUDGET)
        assert np.array_equal(made[label].fate_codes, alone.fate_codes)
        assert made[label].after_tokens == alone.after_tokens
        assert made[label].request is made.request


def test_the_frame_holds_the_numbers_of_the_selections(made):
    frame = wb.compare(made.view.ledger, list(made.policies), BUDGET)
    assert frame.equals(made.frame)
    assert frame.index.tolist() == list(made.labels) == ["none", "scv", "test.newest", "test.mixed"]
    assert (frame[list(FATES)].sum(axis=1) == len(made.view.indices)).all()
    assert (frame[list(KINDS)].sum(axis=1) == frame["after_tokens"]).all()
    for label, answer in made:
        row = frame.loc[label]
        assert (row["after_tokens"], row["before_tokens"]) == (answer.after_tokens, answer.before_tokens)
        assert (row["own_before"], row["own_after"]) == (answer.own_before, answer.own_after)
        assert row["notes"] == len(answer.notes)
        assert row["note_tokens"] == sum(answer.note_tokens)
        assert row["findings"] == len(answer.alarms)
        assert row["feasible"]
        assert row["problem"] == ""


def test_the_kinds_of_what_is_sent_are_exact(made):
    for _, answer in made:
        table = item_kinds(answer)
        assert np.array_equal(table.sum(axis=1), answer.item_tokens)
        assert sum(sent_kinds(answer).values()) == answer.after_tokens
    by_hand = made.view.by_kind
    assert sent_kinds(made["none"]) == by_hand
    assert 0 < sent_kinds(made["scv"])["note"] <= sum(made["scv"].note_tokens)


def test_they_part_where_the_fates_or_the_words_are_not_the_same(made, ledger):
    fates = {label: answer.fates for label, answer in made}
    differ = {item.index: item for item in made.differ}
    for row, index in enumerate(made.view.indices.tolist()):
        here = [of[row] for of in fates.values()]
        assert (index in differ) == (len(set(here)) > 1), index
        if index in differ:
            sent = [fate in ("kept", "edited") for fate in here]
            assert differ[index].way == ("text" if all(sent) else "sent" if any(sent) else "trace")
            assert dict(differ[index].fates) == {label: of[row] for label, of in fates.items()}
    assert made.messages.index.tolist() == list(differ)
    assert made.messages["scv"].tolist() == [item.fates["scv"] for item in differ.values()]


def test_every_way_of_parting_is_found(ledger):
    @dataclasses.dataclass(frozen=True)
    class Other(Mixed):
        info = PolicyInfo("test.other", "other", "The same as mixed, with other words.")

        @staticmethod
        def _sent(message):
            item = Mixed._sent(message)
            if isinstance(item, Kept):
                return item
            part = item.message.parts[0]
            return Edited(message.index, dataclasses.replace(item.message, parts=(dataclasses.replace(part, parts=()),)))

    mixed = compare(ledger, [Mixed(), Mixed(keep=0.5)], BUDGET)
    assert {item.way for item in mixed.differ} == {"sent", "trace"}
    texts = compare(ledger, [Mixed(), Other()], BUDGET)
    edited = [index for index, fate in zip(texts.view.indices.tolist(), texts["test.mixed"].fates, strict=True) if fate == "edited"]
    assert edited
    assert [item.index for item in texts.differ] == edited
    assert {item.way for item in texts.differ} == {"text"}
    assert compare(ledger, [Mixed(), Mixed()], BUDGET).differ == ()
    assert set(WAYS) == {"sent", "trace", "text"}


def test_stretches_cover_the_rows_and_each_has_one_pattern(made):
    rows = [row for start, stop in made.stretches for row in range(start, stop)]
    assert rows == made.differ_rows.tolist()
    for start, stop in made.stretches:
        assert len({tuple(answer.fates[row] for _, answer in made) for row in range(start, stop)}) == 1
    for (_, stop), (start, _) in zip(made.stretches, made.stretches[1:], strict=False):
        assert stop < start or [answer.fates[stop - 1] for _, answer in made] != [answer.fates[start] for _, answer in made]


def test_a_budget_that_cannot_hold_is_a_row(ledger):
    tight = compare(ledger, ["none", "scv"], Budget(10_300))
    assert isinstance(tight.outcomes[1], BudgetError)
    assert list(tight.selections) == ["none"]
    assert tight.differ == ()
    assert tight.stretches == ()
    row = tight.frame.loc["scv"]
    assert not row["feasible"]
    assert row["needed"] == tight.outcomes[1].needed > row["available"] == tight.outcomes[1].available
    assert row["culprit"]
    assert "\n" not in row["problem"]
    assert tight.frame["after_tokens"].isna().tolist() == [False, True]
    with pytest.raises(BudgetError):
        tight["scv"]
    with pytest.raises(PolicyError, match="no policy is called 'vak' in this comparison"):
        tight["vak"]
    assert "scv –" in repr(tight)


def test_another_error_of_a_policy_is_a_row_too(ledger):
    @dataclasses.dataclass(frozen=True)
    class Broken(Everything):
        info = PolicyInfo("test.broken", "broken", "Cannot answer.")

        def select(self, request, previous=None):
            raise PolicyError("it cannot answer; ask another")

    broken = compare(ledger, [Broken(), "none"], BUDGET)
    assert broken.frame.loc["test.broken", "problem"] == "it cannot answer; ask another"
    assert broken.frame["needed"].isna().all()
    assert isinstance(broken.outcomes[0], WorkbenchError)
    assert broken.outcomes[0].__traceback__ is None


def test_labels_tell_the_same_policy_apart():
    scv = wb.policies.Scv
    assert labels([scv(), scv(summary_max_chars=4_000)]) == ("scv", "scv summary_max_chars=4000")
    assert labels([scv(summary_max_chars=4_000)]) == ("scv",)
    assert labels([scv(), scv(), scv()]) == ("scv", "scv (2)", "scv (3)")
    long = labels([Newest(tag="x" * 500), Newest(tag="x" * 600)])
    assert len(set(long)) == 2
    assert max(map(len, long)) < 100


def test_the_four_systems_are_the_default(ledger):
    made = compare(ledger, budget=BUDGET)
    assert made.labels == SYSTEMS == ("kernel", "agentd", "scv", "vak")


def test_a_transcript_is_counted_and_one_name_is_enough():
    one = compare(session(20), "none")
    assert one.labels == ("none",)
    assert one.budget == Budget()
    assert isinstance(one["none"], Selection)
    assert one.differ == ()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"policies": []}, "no policy to compare"),
        ({"policies": ["nonsense"]}, "no policy is called 'nonsense'"),
        ({"policies": [wb.policies.Scv]}, "give a name"),
        ({"budget": 32_000}, "give a Budget"),
        ({"history": "old"}, "history = 'old'"),
        ({"thread": "nowhere"}, "no thread 'nowhere'"),
        ({"pins": ["x"]}, "pins ="),
        ({"source": "run.jsonl"}, "needs a ledger or a transcript, not str"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(args, says, ledger):
    with pytest.raises(PolicyError, match=says) as caught:
        compare(**{"source": ledger, "policies": ["none", "scv"], **args})
    assert "\n" not in str(caught.value)


def test_nothing_to_compare_is_no_error():
    from workbench.model import Source, Transcript

    empty = compare(Transcript("t", Source("made"), ()), ["none", "scv"], BUDGET)
    assert empty.differ == ()
    assert (empty.frame[list(FATES)].sum(axis=1) == 0).all()
