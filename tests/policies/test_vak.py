"""The fast vak is the readable one, on any transcript."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.strategies import conversation, counted, transcripts
from workbench import notes, policies
from workbench.errors import BudgetError, PolicyError
from workbench.model import Budget, Media, Message, Source, Text, ToolCall, ToolResult, Transcript
from workbench.policies import Edited, Kept, Vak
from workbench.policies.base import Request, derive_fates
from workbench.policies.vak_costs import Costs
from workbench.systems import vak, vak_assemble, vak_workset
from workbench.systems.mapping.vak import as_messages, as_tools, as_vak
from workbench.turns import starts_turn

chars = st.sampled_from((0, 10, 64, 100, 400, 4_096))
vaks = st.builds(
    Vak,
    ranking=st.sampled_from(("recency", "relevance")),
    packet_max_chars=chars,
    tokens_per_char=st.sampled_from((0.25, 0.25, 0.01, 0.3, 1.0, 2.0)),
    horizon=st.none() | st.integers(1, 2_000),
    learn_turns=st.booleans(),
    temporal=st.sampled_from(("", "", " It is noon.\n")),
    thread=st.sampled_from(("", "", "T\u00e9")),
)


def profile_of(policy, view, budget):
    """The capacity that the policy works with, made as one would."""
    profile = vak.Capacity.from_metadata(budget.max_tokens, budget.reserve_output_tokens + budget.safety_margin_tokens)
    profile = replace(profile, tokens_per_char=vak.Ewma(policy.tokens_per_char, samples=1))
    if policy.horizon is not None:
        profile = replace(profile, instruction_horizon=vak.Horizon(policy.horizon, 0.3))
    if policy.learn_turns:
        for turn in turns_of(view)[:-1]:
            profile = profile.observe_turn(sum(profile.estimate_tokens(vak.message_chars(message)) for message in turn))
    return profile


def turns_of(view):
    turns = []
    for message in view.messages[view.lead :]:
        if starts_turn(message) or not turns:
            turns.append([])
        turns[-1] += as_messages([message])
    return turns


def twin(view, policy, budget):
    """The readable vak on the same view: what it assembles, or None if that is too large."""
    prompt, tools, history = as_vak(view)
    turns = turns_of(view)
    assert [message for turn in turns for message in turn] == history
    opening = len(view.messages) > view.lead and not starts_turn(view.messages[view.lead])
    tail = vak.compose_tail(policy.temporal, policy.stance, {"thread": policy.thread} if policy.thread else {})
    try:
        return vak_assemble.assemble(
            profile_of(policy, view, budget),
            prompt,
            tools,
            turns,
            opening=opening,
            tail=tail,
            ranking=policy.ranking,
            packet_chars=policy.packet_max_chars,
        )
    except vak_assemble.TooLarge:
        return None


def check_equal(view, policy, budget):
    """The fast and the readable vak say the same, whatever they say."""
    expected = twin(view, policy, budget)
    if expected is None or budget.available < 0:
        with pytest.raises(BudgetError) as raised:
            policy.select(Request(view, budget))
        assert raised.value.needed > raised.value.available
        return
    chosen = policy.select(Request(view, budget))
    assert all(message.role == "system" for message in chosen.messages[: view.lead])
    sent = as_messages(chosen.messages[view.lead :])
    assert [part_texts(message) for message in sent] == [part_texts(message) for message in expected.messages]
    assert (chosen.own_before, chosen.own_after) == (expected.before, expected.after)
    assert chosen.own_after <= min(budget.available, policy.horizon or budget.max_tokens)
    assert (chosen.fate_codes == derive_fates(view, chosen.items)).all()
    assert chosen.item_tokens.tolist() == view.ledger.count_messages(chosen.messages).tolist()
    packets = [note for note in chosen.notes if note.role == "packet"]
    assert [note.message.text for note in packets] == ([expected.packet] if expected.packet else [])
    for note in chosen.notes:
        assert set(note.quotes) <= set(note.covers)
    for index in view.indices.tolist():
        assert "no rule of this policy" not in chosen.explain(index)
    event(str(sorted(set(expected.plan.fidelity))))


def part_texts(message):
    """A message's blocks, its texts joined: a tail is a part of its own there and here, but the mapping joins all texts."""
    others = [block for block in message.content if type(block) is not vak.Text]
    return message.role, message.text, others


@given(transcripts(), vaks, st.integers(0, 1_500), st.integers(0, 40), st.integers(0, 40), st.data())
@settings(max_examples=250, deadline=None)
def test_it_is_its_readable_twin(transcript, policy, window, reserve, margin, data):
    ledger = counted(transcript)
    view = ledger.view(data.draw(st.sampled_from([thread.id for thread in transcript.threads])), data.draw(st.sampled_from(("full", "live"))))
    check_equal(view, policy, Budget(window, reserve, margin))
    check_equal(view, policy, Budget(10**6, reserve, margin))
    smallest = policy.smallest_window(Request(view, Budget(0, reserve, margin)))
    if smallest is not None:
        for nearby in (smallest, smallest + data.draw(st.integers(1, 200)), max(0, smallest - 1)):
            check_equal(view, policy, Budget(nearby, reserve, margin))


turns = st.lists(
    st.tuples(st.sampled_from(("user", "assistant")), st.sampled_from(("", "a", "é\n", "Is it so? " * 9, "漢字. " * 30, "parser test " * 40))),
    min_size=4,
    max_size=50,
)


@given(turns, vaks, st.floats(0, 1.1))
@settings(max_examples=250, deadline=None)
def test_it_is_its_readable_twin_between_the_least_and_all(rows, policy, share):
    view = counted(conversation(*rows)).view()
    policy = replace(policy, horizon=None)
    smallest = policy.smallest_window(Request(view, Budget(0, 3, 3)))
    everything = Costs(policy, view, Budget(10**9, 3, 3))
    check_equal(view, policy, Budget(smallest + int(share * (everything.least + int(everything.turns[:-1].sum()) - smallest + 6)), 3, 3))


@pytest.mark.parametrize("name", notes.NAMES)
@given(turns, st.sampled_from((0, 30, 64, 200, 2_000)), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_any_note_is_a_packet_that_holds_the_budget(name, rows, packet, share):
    view = counted(conversation(*rows)).view()
    policy = Vak(note=name, packet_max_chars=packet)
    smallest = policy.smallest_window(Request(view, Budget(0, 5, 5)))
    budget = Budget(smallest + int(share * 900), 5, 5)
    chosen = policy.select(Request(view, budget))
    assert chosen.own_after <= budget.available
    for note in chosen.notes:
        assert set(note.quotes) <= set(note.covers)
        if note.role == "packet":
            assert 0 < len(note.message.text) <= packet
    assert list(chosen.steps)


@given(transcripts(), vaks, st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=80, deadline=None)
def test_the_smallest_window_is_where_it_begins_to_work(transcript, policy, reserve, margin):
    view = counted(transcript).view()
    smallest = policy.smallest_window(Request(view, Budget(0, reserve, margin)))
    if smallest is None:
        with pytest.raises(BudgetError):
            policy.select(Request(view, Budget(10**9, reserve, margin)))
        return
    policy.select(Request(view, Budget(smallest, reserve, margin)))
    for window in {smallest - 1, smallest // 2, 0} - {smallest, -1}:
        with pytest.raises(BudgetError) as raised:
            policy.select(Request(view, Budget(window, reserve, margin)))
        if policy.horizon is None:
            assert window + raised.value.needed - raised.value.available == smallest


def test_the_mapping():
    image = Media("image", "image/png", sha256="f00d")
    calls = (ToolCall("a", "read", {"p": 1}, '{"p":1}'), ToolCall("b", "run", None, "{oops"), ToolCall("n", "nil", None, "null"))
    messages = (
        Message(0, "", "system", (Text("be"), Text("kind"))),
        Message(1, "", "user", (image, Text("look"), Media("document", "application/pdf"), Text("here"))),
        Message(2, "", "assistant", (Text("ok"), *calls, ToolResult("s", "search", (Text("found"),)))),
        Message(3, "", "tool", (ToolResult("a", None, (Text("x"), Text("y"), image)),)),
        Message(4, "", "user", (Text("harness"), image), flags=frozenset({"meta"})),
        Message(5, "", "system", (Text("user is idle"),)),
        Message(6, "", "note", (Text("older note"),)),
        Message(7, "", "tool", (ToolResult("lost", None, (), True),)),
    )
    view = counted(Transcript("t", Source("t"), messages, system=("outside",))).view()
    prompt, tools, history = as_vak(view)
    assert (prompt, tools, as_tools(view)) == ("outside\nbe\nkind", [], [])
    picture = vak.Image({"type": "sha256", "media_type": "image/png", "data": "f00d"})
    assert history == [
        vak.Message("user", (picture, vak.Text("look\nhere"))),
        vak.Message(
            "assistant",
            (vak.Text("ok"), vak.ToolUse("a", "read", {"p": 1}), vak.ToolUse("b", "run", "{oops"), vak.ToolUse("n", "nil", None), vak.ToolResult("s", "found")),
        ),
        vak.Message("user", (vak.ToolResult("a", "x\ny"),)),
        vak.Message("user", (vak.Text("harness"),)),
        vak.Message("user", (vak.Text("user is idle"),)),
        vak.Message("user", (vak.Text("older note"),)),
        vak.Message("user", (vak.ToolResult("lost", "", True),)),
    ]


def chat(turns, size=60):
    rows = [("system", "You are careful.")]
    for turn in range(turns):
        rows += [("user", f"Question {turn}. " + "q" * size), ("assistant", "a" * size + f". Answer {turn}.")]
    return conversation(*rows)


def test_what_is_sent_and_in_which_order():
    chosen = policies.select(counted(chat(12)), Vak(packet_max_chars=200), Budget(300, 20, 20))
    assert [note.role for note in chosen.notes][:2] == ["packet", "card"]
    roles = [type(item).__name__ for item in chosen.items]
    assert roles == ["Kept", *["Note"] * len(chosen.notes), *["Kept"] * (len(roles) - 1 - len(chosen.notes))]
    packet, first = chosen.notes[:2]
    assert packet.message.text.startswith("[user]\nQuestion 0. qqq")
    assert len(packet.message.text) <= 200
    assert first.message.text.splitlines()[0].startswith("asked: Question")
    assert first.message.text.splitlines()[1].startswith("answered: Answer")
    assert first.covers == first.quotes
    assert packet.covers[-1] + 1 == first.covers[0]
    assert chosen.counts["dropped"] == 0
    assert chosen.event.kind == "working set"
    assert (chosen.event.tokens_before, chosen.event.tokens_after) == (chosen.own_before, chosen.own_after)


def test_the_steps_say_what_was_weighed():
    chosen = policies.select(counted(chat(12)), Vak(packet_max_chars=200), Budget(300, 20, 20), pins=(1,))
    said = [step.text for step in chosen.steps]
    assert said[0] == vak_workset.APPROXIMATION
    assert said[1] == "the horizon is the window: ceiling = window 300 − reserve 20 − margin 20 = 260"
    assert said[2] == "ceiling 260 − prefix 4 (prompt 4, tools 0) − tail 0 − current turn 36 = 220 for closed turns"
    assert any(text.startswith("leading system text is the prefix") for text in said)
    assert any("cannot pin" in text for text in said)
    assert any("set aside for the packet: 220 − 50 = 170" in text for text in said)
    assert "always sent in full" in chosen.explain(24)
    assert "turn 10: 0 + 36 ≤ 170: in full" in chosen.explain(21)
    assert "on a card" in chosen.explain(chosen.notes[1].covers[0])
    assert "one packet (digest)" in chosen.explain(1)
    assert "holds words of" in chosen.explain(1)
    assert "no words" in chosen.explain(chosen.notes[0].covers[-1])
    assert [finding.messages for finding in chosen.findings if finding.rule == "pin_removed"] == [(1,)]


def test_the_tail_stands_before_the_directives_text():
    policy = Vak(temporal="It is noon.", stance=" brief ", intent="I", work_contract="C", workspace="W", thread="T")
    assert policy.tail == "<turn_context>\nIt is noon.\n</turn_context>\nI\n<stance>\nbrief\n</stance>\nC\nW\nT"
    ledger = counted(chat(3))
    chosen = policies.select(ledger, policy)
    plain = policies.select(ledger, Vak())
    edited = [item for item in chosen.items if isinstance(item, Edited)]
    assert [(item.index, item.message.parts[0].text) for item in edited] == [(5, policy.tail)]
    assert edited[0].message.parts[1:] == ledger.transcript.messages[5].parts
    assert chosen.fates == ("kept",) * 5 + ("edited", "kept")
    assert chosen.own_after - plain.own_after == round(len(policy.tail) / 4)
    assert plain.items == tuple(Kept(index) for index in range(7))
    assert "the tail" in chosen.explain(5)
    image = Media("image", "image/png", sha256="a")
    picture = counted(Transcript("t", Source("t"), (Message(0, "", "user", (image,)),)))
    assert policies.select(picture, Vak(thread="T")).messages[0].parts == (image, Text("T"))
    nobody = policies.select(counted(conversation(("assistant", "hi"))), Vak(thread="T"))
    assert nobody.fates == ("kept",)
    assert any("nothing to attach the tail to" in step.text for step in nobody.steps)


@given(transcript=transcripts(), window=st.sampled_from((100, 400, 2_000)))
@settings(max_examples=60, deadline=None)
def test_the_tail_is_not_attached_to_what_has_it(transcript, window):
    policy = Vak(temporal="now", thread="T")
    try:
        chosen = policies.select(counted(transcript), policy, Budget(window, 0, 0))
    except BudgetError:
        return
    for _ in range(2):
        sent = tuple(replace(message, index=index) for index, message in enumerate(chosen.messages))
        again = policies.select(counted(replace(transcript, messages=sent, compactions=())), policy, Budget(window, 0, 0))
        assert again.messages == sent
        assert again.own_after <= window
        if any(map(starts_turn, sent)):
            assert "the newest person's message carries the tail already" in [step.text for step in again.steps]
        chosen = again


def test_relevance_brings_back_an_old_turn_and_passes_over_a_large_one():
    rows = [("user", "Where is the zebra config? Tell me."), ("assistant", "In etc.")]
    rows += [("user", "Large. " * 60), ("assistant", "done " * 60)]
    rows += [("user", "Other question."), ("assistant", "Some answer. " * 4)]
    rows += [("user", "Change the zebra value.")]
    ledger = counted(conversation(*rows))
    budget = Budget(60, 0, 0)
    near = policies.select(ledger, Vak(packet_max_chars=0), budget)
    far = policies.select(ledger, Vak(packet_max_chars=0, ranking="relevance"), budget)
    assert near.fates == ("dropped",) * 4 + ("kept",) * 3
    assert far.fates == ("kept",) * 2 + ("dropped",) * 2 + ("kept",) * 3
    assert "turn 0, score 1.00: 17 + 11 ≤ 54: in full" in far.explain(0)


@pytest.mark.parametrize(
    ("window", "policy", "culprit", "detail"),
    [
        (60, Vak(), "current turn exceeds the prompt ceiling", "prefix 4 + tail 0 + current turn 36 > 20"),
        (43, Vak(), "prefix and tail exceed the prompt ceiling", "prefix 4 + tail 0 + current turn 36 > 3"),
        (10_000, Vak(horizon=39), "current turn exceeds the prompt ceiling", "prefix 4 + tail 0 + current turn 36 > 39"),
        (30, Vak(), "prefix and tail exceed the prompt ceiling", "prefix 4 + tail 0 + current turn 36 > -10"),
    ],
)
def test_what_does_not_fit_is_named_with_its_numbers(window, policy, culprit, detail):
    with pytest.raises(BudgetError) as raised:
        policies.select(counted(chat(12)), policy, Budget(window, 20, 20))
    assert (raised.value.culprit, raised.value.detail) == (culprit, detail)


def test_a_packet_without_room_is_not_sent():
    least = policies.smallest_window(Vak(), Request(counted(chat(12)).view(), Budget(0, 20, 20)))
    bare = policies.select(counted(chat(12)), Vak(), Budget(least, 20, 20))
    assert bare.notes == ()
    assert bare.counts["dropped"] == 22
    assert "no packet, whose bound is 4,096 characters and 0 tokens: dropped" in bare.explain(1)


def test_a_second_selection_measures_nothing(monkeypatch):
    ledger = counted(chat(40))
    policies.select(ledger, Vak(packet_max_chars=100_000), Budget(165, 20, 20))  # renders every closed turn

    def refuse(*_):
        raise AssertionError("a message was measured again")

    for module, name in ((vak, "message_chars"), (vak, "render_message"), (vak_workset, "card"), (vak, "prefix_digest")):
        monkeypatch.setattr(module, name, refuse)
    for window in range(300, 900, 50):
        policies.select(ledger, "vak", Budget(window, 20, 20))


def test_estimates_of_many_are_those_of_one():
    view = counted(chat(1)).view()
    sizes = np.arange(4_000)
    for ratio in (0.01, 0.05, 0.25, 0.3, 0.5, 1.5):
        costs = Costs(Vak(tokens_per_char=ratio), view, Budget())
        profile = replace(vak.Capacity.from_metadata(1, 0), tokens_per_char=vak.Ewma(ratio, samples=1))
        assert costs.tokens(sizes).tolist() == [profile.estimate_tokens(size) for size in sizes.tolist()]
        for room in range(0, 400, 7):
            size = costs.bytes_for(room)
            assert profile.estimate_tokens(size) <= room < profile.estimate_tokens(size + 1)


def test_it_calls_itself_an_approximation():
    info = Vak.info
    assert "approximation" in info.title
    assert "approximation" in info.summary
    assert "approximation" in info.evidence
    with pytest.raises(PolicyError, match=r"vak\.ranking"):
        Vak(ranking="best")
