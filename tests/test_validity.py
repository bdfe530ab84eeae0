"""What is wrong with a list of messages."""

from hypothesis import given

from tests.strategies import conversation, transcripts
from workbench.turns import tool_pairs
from workbench.validity import check_pairs


def said(*rows):
    return [(finding.rule, finding.messages, finding.text) for finding in check_pairs(conversation(*rows).messages)]


def test_whole_pairs_are_fine():
    assert said(("user", "q"), ("assistant", "", "a", "b"), ("tool", "b", "x"), ("tool", "a", "y"), ("assistant", "done")) == []
    assert said() == []


def test_b46_an_orphan_result():
    assert said(("tool", "a", "x"), ("user", "q")) == [("orphan_result", (0,), "result #0 has no call")]


def test_b47_b56_an_unanswered_call():
    assert said(("assistant", "", "a", "b"), ("tool", "a", "x")) == [("unanswered_call", (0,), "call b in #0 has no result")]
    assert said(("assistant", "", "")) == [("unanswered_call", (0,), "call (no id) in #0 has no result")]


def test_b53_a_doubled_result():
    assert said(("assistant", "", "a"), ("tool", "a", "x"), ("tool", "a", "y")) == [("duplicate_result", (2,), "result #2 answers a a second time")]


@given(transcripts())
def test_each_half_pair_is_one_finding(transcript):
    pairs = tool_pairs(transcript.messages)
    halves = sum(pair.call is None or pair.result is None for pair in pairs)
    assert len(check_pairs(transcript.messages)) == halves + sum(len(pair.duplicates) for pair in pairs)
