"""vak's planner: an approximation by the rules that its versions share."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.systems.vak import Capacity, Message, Text, ToolResult, ToolUse
from workbench.systems.vak_assemble import TooLarge, assemble, cut_packet
from workbench.systems.vak_workset import (
    APPROXIMATION,
    CARD_CHARS,
    PACKET_SHARE,
    Turn,
    bm25,
    card,
    card_sources,
    last_sentence,
    plan,
    recency,
    refers_back,
    score,
)

turns = st.lists(st.builds(Turn, st.integers(0, 60), st.integers(0, 20)), max_size=12)


def costs(planned, given_turns):
    return sum(turn.full if fidelity == "full" else turn.card for turn, fidelity in zip(given_turns, planned.fidelity, strict=True) if fidelity != "packet")


@given(turns, st.integers(0, 300), st.integers(0, 80), st.booleans(), st.data())
def test_a_plan_keeps_its_rules(given_turns, budget, packet, skip, data):
    scores = data.draw(st.lists(st.sampled_from((0.1, 0.5, 1.0)), min_size=len(given_turns), max_size=len(given_turns)))
    planned = plan(given_turns, scores, budget, packet=packet, skip=skip)
    assert len(planned.fidelity) == len(given_turns)
    assert planned.spent == costs(planned, given_turns)
    assert planned.aside <= min(packet, budget // PACKET_SHARE)
    room = budget - planned.aside
    assert planned.spent <= room
    # no turn in full was taken after one of a higher score that would have fitted in its place
    order = sorted(range(len(given_turns)), key=lambda at: (-scores[at], -at))
    spent = 0
    for at in order:
        fits = spent + given_turns[at].full <= room
        if planned.fidelity[at] == "full":
            assert fits
            spent += given_turns[at].full
        else:
            assert not fits or not skip
    # cards stand newer than the packet
    rest = [fidelity for fidelity in planned.fidelity if fidelity != "full"]
    assert rest == sorted(rest, reverse=True)


@given(turns, st.integers(0, 300))
def test_by_recency_the_turns_in_full_are_the_newest(given_turns, budget):
    planned = plan(given_turns, recency(len(given_turns)), budget, skip=False)
    full = [fidelity == "full" for fidelity in planned.fidelity]
    assert full == sorted(full)


@given(turns)
def test_all_are_in_full_where_all_fit(given_turns):
    total = sum(turn.full for turn in given_turns)
    planned = plan(given_turns, recency(len(given_turns)), total, packet=50)
    assert (set(planned.fidelity) <= {"full"}, planned.spent, planned.aside) == (True, total, 0)


def test_recency_and_ties():
    assert recency(3) == [1 / 3, 1 / 2, 1.0]
    assert plan([Turn(5, 1)] * 3, [1.0, 1.0, 1.0], 6).fidelity == ("packet", "card", "full")


def test_a_turn_that_speaks_of_the_same_scores_higher():
    cards = ["asked: Rename the parser module.", "asked: What is for lunch?", "asked: Add tests."]
    scores = score(cards, "Does the parser still work?")
    assert scores == [1.0, 0.5, 1.0]
    assert bm25(cards, "nothing shared here") == [0.0, 0.0, 0.0]
    assert bm25([], "x") == []
    assert bm25(["", ""], "x") == [0.0, 0.0]
    assert score([], "it") == []


def test_a_rare_word_weighs_more_and_a_short_card_too():
    rare, common, _ = bm25(["zebra config", "config config", "config file"], "zebra config")
    assert rare > common > 0
    short, long = bm25(["zebra", "zebra and many other words besides"], "zebra")
    assert short > long


@pytest.mark.parametrize(("directive", "back"), [("Do that again", True), ("IT fails", True), ("Write a title", False), ("", False), ("with item", False)])
def test_a_directive_that_speaks_of_what_was_just_said(directive, back):
    assert refers_back(directive) == back


def user(text):
    return Message("user", (Text(text),))


def test_a_card_has_what_the_turn_has():
    turn = [
        user(" Fix the parser. It is slow. "),
        Message("assistant", (Text("Let me look. First."), ToolUse("1", "read", {}), ToolUse("2", "read", {}))),
        Message("user", (ToolResult("1", "x. y"),)),
        Message("assistant", (ToolUse("3", "bash", {}),)),
        Message("assistant", (Text("It was 2.5 times slower. Fixed!\n"),)),
        Message("assistant", (Text(" "),)),
    ]
    assert card(turn) == "asked: Fix the parser.\ndid: read ×2, bash\nanswered: Fixed!"
    assert card_sources(turn) == (0, 4)
    assert card(turn, request=False).startswith("did: ")
    assert card_sources(turn, request=False) == (None, 4)
    assert card([user("")]) == "nothing was said"
    assert card([user("x" * 1000)]) == "asked: " + "x" * CARD_CHARS + "…"
    assert card([user("a " * 100)]) == "asked: " + " ".join("a" * 60) + "…"


@pytest.mark.parametrize(
    ("text", "last"), [("", ""), ("One", "One"), ("One. Two", "Two"), ("One. Two.\n", "Two."), ("v1.2 is out!Really", "v1.2 is out!Really"), ("A?\n B", "B")]
)
def test_the_last_sentence(text, last):
    assert last_sentence(text) == last


def test_hostile_cards_take_linear_time():
    start = time.process_time()
    for piece in (". ", "!", "word ", "\n", "\u3000"):
        card([user(piece * 200_000), Message("assistant", (Text(piece * 200_000),))])
    score(["common words here"] * 2_000, "common " + " ".join(map(str, range(20_000))))
    assert time.process_time() - start < 4


@given(st.text("ab é漢😀\n", max_size=200), st.integers(0, 250), st.integers(0, 100))
def test_a_packet_is_the_longest_beginning_that_fits(transcript, most, room):
    profile = Capacity.from_metadata(1, 0)
    cut = cut_packet(profile, transcript, most, room)
    assert transcript.startswith(cut)
    assert len(cut) <= most
    if profile.estimate_tokens(min(64, most)) > room:
        assert cut == ""
        return
    assert profile.estimate_tokens(len(cut.encode())) <= room
    longer = transcript[: len(cut) + 1]
    assert cut == transcript or len(cut) == most or profile.estimate_tokens(len(longer.encode())) > room


def test_a_current_turn_that_is_too_large_is_an_error():
    with pytest.raises(TooLarge):
        assemble(Capacity.from_metadata(10, 0), "", [], [[user("x" * 100)]])
    assert "approximation" in APPROXIMATION
