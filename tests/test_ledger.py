"""Sums are exact, what was reported stays apart from what is counted, and nothing is silently 0."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import SHARED, needs_shared
from tests.strategies import conversation, transcripts
from workbench import readers
from workbench.errors import CounterError, WorkbenchError
from workbench.ledger import KIND, Ledger, count
from workbench.model import (
    KINDS,
    MAIN,
    Call,
    Compaction,
    Media,
    Message,
    Opaque,
    Reasoning,
    Source,
    Text,
    Thread,
    ToolCall,
    ToolResult,
    ToolSpec,
    Transcript,
    Usage,
)
from workbench.tokens import Cancelled, RatioCounter, TiktokenCounter, store, vocabulary
from workbench.tokens.framing import ANTHROPIC, OPENAI_CHAT


@pytest.fixture(autouse=True)
def _empty_cache():
    store.use_file(None)


def made(*messages: tuple[str, tuple], calls: tuple[Call, ...] = (), **more) -> Transcript:
    rows = tuple(Message(at, "", role, parts) for at, (role, parts) in enumerate(messages))  # type: ignore[arg-type]
    return Transcript("t", Source(more.pop("format", "openai-chat")), rows, calls, **more)


@st.composite
def recorded(draw) -> Transcript:
    """A generated transcript with a call for each answer, usage known or not, a model and a format."""
    transcript = draw(transcripts())
    number = st.none() | st.integers(-5, 200_000)
    usage = st.none() | st.builds(Usage, input_uncached=number, cache_read=number, cache_write_5m=number, output=number)
    answers = [message for message in transcript.messages if message.role == "assistant"]
    calls = []
    for at, message in enumerate(answers):
        earlier = st.lists(st.integers(0, message.index), max_size=4, unique=True).map(tuple)
        produced = draw(st.sampled_from([(message.index,), (message.index,), ()]))
        context = draw(st.none() | st.none() | earlier)
        calls.append(Call(at, f"r{at}", usage=draw(usage), produced=produced, context=context, thread=message.thread))
    model = draw(st.sampled_from([None, "gpt-5", "gpt-4", "claude-sonnet-4-5", "gemini-2.5-pro"]))
    source = Source(draw(st.sampled_from(["openai-chat", "claude-code", "codex"])))
    return replace(transcript, calls=tuple(calls), meta={"model": model}, source=source)


def check_sums(ledger: Ledger) -> None:
    """The invariants, computed anew from the parts."""
    transcript = ledger.transcript
    every = len(transcript.messages)
    parts = np.bincount(ledger.part_message, weights=ledger.part_tokens, minlength=every).astype(int) if every else np.empty(0, int)
    assert (ledger.part_tokens >= 0).all()
    assert (ledger.message_tokens == parts + ledger.framing).all()
    assert (ledger.kind_tokens.sum(axis=1) == ledger.message_tokens).all()
    for thread in transcript.threads:
        for history in ("full", "live"):
            view = ledger.view(thread.id, history)  # type: ignore[arg-type]
            assert view.indices.tolist() == list(transcript.history(thread.id, history))  # type: ignore[arg-type]
            outside = int(view.tokens[view.lead :].sum())
            assert view.total == view.fixed + outside == sum(view.by_kind.values())
            assert tuple(view.by_kind) == KINDS
            assert all(transcript.messages[index].role == "system" for index in view.indices[: view.lead].tolist())
            assert sum(view.tokens[[view.row_of[index] for index in group.messages]].sum() for group in view.turns) == outside
            assert view.low <= view.total <= view.high


@settings(deadline=None)
@given(recorded(), st.sampled_from([None, "o200k_base", "cl100k_base", "bytes/4", "o200k_base*1.53"]))
def test_sums_are_exact(transcript, counter):
    ledger = count(transcript, counter)
    check_sums(ledger)
    assert ledger.count_messages(transcript.messages).tolist() == ledger.message_tokens.tolist()
    assert (count(transcript, counter).message_tokens == ledger.message_tokens).all()


@settings(deadline=None)
@given(recorded())
def test_reported_and_estimated_stay_apart(transcript):
    ledger = count(transcript, "bytes/4")
    assert [row.call for row in ledger.reported] == [call.index for call in transcript.calls]
    for row, call in zip(ledger.reported, transcript.calls, strict=True):
        assert row.estimated == slow_estimate(ledger, call)
        if row.reported is not None:
            assert row.reported == call.usage.prompt >= 0
        if row.unattributed is not None:
            assert row.unattributed == max(0, row.reported - row.estimated)
    without = count(replace(transcript, calls=()), "bytes/4")
    assert without.kind_tokens.tolist() == ledger.kind_tokens.tolist()  # no reported token is ever poured into a kind


def slow_estimate(ledger: Ledger, call: Call) -> int | None:
    """The same by the definition: cut the transcript before the answer and ask for its live history."""
    transcript = ledger.transcript
    outside = ledger.view(call.thread).fixed - int(ledger.message_tokens[list(transcript.fixed(call.thread))].sum())
    if call.context is not None:
        return outside + int(ledger.message_tokens[list(call.context)].sum())
    if not call.produced:
        return None
    first = min(call.produced)
    before = replace(
        transcript,
        messages=transcript.messages[:first],
        compactions=tuple(item for item in transcript.compactions if item.after < first and (item.summary is None or item.summary < first)),
    )
    return outside + int(ledger.message_tokens[list(before.history(call.thread, "live"))].sum())


def test_kinds_and_framing_of_every_part():
    transcript = made(
        ("system", (Text("be brief"),)),
        ("user", (Text("look"), Media("image", width=512, height=512))),
        ("assistant", (Reasoning("let me see"), Text("I look"), ToolCall("a", "read", {"p": 1}, '{"p":1}'), ToolCall("b", "read", {}, "{}"))),
        ("tool", (ToolResult("a", "read", (Text("one"), Media("image"), Opaque("blob", 9))),)),
        ("tool", (ToolResult("b", "read", ()),)),
        ("note", (Text("a recap"),)),
        ("user", (Text("summary"),)),
        meta={"model": "gpt-4o"},
        tools=(ToolSpec("read", "Reads.", {"type": "object"}),),
        system=("outside the list",),
    )
    transcript = replace(transcript, messages=(*transcript.messages[:-1], replace(transcript.messages[-1], flags=frozenset({"compact_summary"}))))
    ledger = count(transcript)
    encode = vocabulary.load("o200k_base").encode_ordinary

    def n(*texts: str) -> int:
        return sum(len(encode(text)) for text in texts)

    table = [{kind: number for kind, number in zip(KINDS, row, strict=True) if number} for row in ledger.kind_tokens.tolist()]
    framing, call, result = OPENAI_CHAT.per_message, OPENAI_CHAT.per_call, OPENAI_CHAT.per_result
    assert table == [
        {"system": n("be brief"), "framing": framing},
        {"user": n("look"), "media": 255, "framing": framing},
        {"assistant": n("I look"), "reasoning": n("let me see"), "tool_call": n("read", '{"p":1}', "read", "{}"), "framing": framing + 2 * call},
        {"tool_result": n("one"), "media": 765, "framing": framing + result},
        {"framing": framing + result},
        {"note": n("a recap"), "framing": framing},
        {"note": n("summary"), "framing": framing},
    ]
    fixed = dict(zip(KINDS, ledger.view().fixed_kinds.tolist(), strict=True))
    assert fixed["system"] == n("be brief", "outside the list")
    assert fixed["tools"] == n('["read","Reads.",{"type":"object"}]')
    assert fixed["framing"] == framing + OPENAI_CHAT.of_request(1)
    assert ledger.part_estimated.tolist() == [False, False, True, False, False, False, False, False, True, True, False, False, False]
    assert ledger.part_opaque[ledger.part_opaque != 0].tolist() == [9]
    check_sums(ledger)


def test_the_counter_follows_the_model_or_is_named():
    claude = made(("user", (Text("hello world"),)), meta={"model": "claude-sonnet-4-5"})
    assert count(claude).counter.label == "o200k × 1.18 ± 25 %"
    assert count(claude).frame_rule is ANTHROPIC
    assert count(claude, "bytes/4").counter == RatioCounter(4)
    assert count(claude, TiktokenCounter("cl100k_base")).counter.id == "cl100k_base"
    with pytest.raises(CounterError, match="known: o200k_base"):
        count(claude, "gpt5-tokens")


def test_the_range_of_the_total():
    claude = made(("user", (Text("word " * 1000),)), meta={"model": "claude-sonnet-4-5"})
    ledger = count(claude)
    assert (ledger.low, ledger.high) == (round(ledger.total * 0.75), round(ledger.total * 1.25))
    exact = count(claude, "o200k_base")
    assert exact.low == exact.total == exact.high


def test_an_unknown_thread_is_a_key_error():
    with pytest.raises(KeyError):
        count(made()).view("sub-9")


def test_a_count_can_be_watched_and_stopped_and_goes_on():
    transcript = made(*(("user", (Text(f"{at} " + "word " * 3000),)) for at in range(40)))
    told: list[tuple[int, int]] = []
    flag = threading.Event()

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if done > total / 2:
            flag.set()

    with pytest.raises(Cancelled):
        count(transcript, "o200k_base", progress=progress, cancel=flag)
    half = told[-1][0]
    told.clear()
    ledger = count(transcript, "o200k_base", progress=lambda done, total: told.append((done, total)))
    assert told[0][0] >= half - 65_536 > 0  # it goes on from what was counted
    assert told[-1][0] == told[-1][1]
    assert ledger.total > 40 * 3000


def test_a_second_count_asks_the_tokenizer_nothing(monkeypatch):
    transcript = made(("user", (Text("hello there"),)), ("assistant", (ToolCall("a", "run", {}, "{}"),)), system=("be brief",))
    first = count(transcript, "o200k_base")

    class Never:
        def encode_ordinary(self, text: str) -> list[int]:
            raise AssertionError(f"{text!r} was counted twice")

    monkeypatch.setattr(vocabulary, "load", lambda name: Never())
    again = replace(transcript)
    assert count(again, "o200k_base").total == first.total
    assert count(again, "o200k_base").part_estimated.tolist() == first.part_estimated.tolist()


def test_reported_is_linear_in_calls_and_messages():
    """3,000 calls over 9,000 messages with 30 compactions: a quadratic sum would take minutes."""
    messages, calls, cuts = [], [], []
    for at in range(9000):
        messages.append(Message(at, "", "assistant" if at % 3 == 2 else "user", (Text(f"m{at}"),)))
        if at % 3 == 2:
            calls.append(Call(len(calls), "", usage=Usage(input_uncached=10), produced=(at,)))
        if at % 300 == 299:
            cuts.append(Compaction(at, "trim", kept=(at - 1, at)))
    ledger = count(Transcript("t", Source("x"), tuple(messages), tuple(calls), tuple(cuts)), "bytes/4")
    start = time.process_time()
    rows = ledger.reported
    assert time.process_time() - start < 1
    assert rows[-1].estimated == slow_estimate(ledger, calls[-1])
    assert rows[1500].estimated == slow_estimate(ledger, calls[1500])


# --- inputs that broke similar tools ---------------------------------------------------------------------------------


def test_b01_a_call_without_content_has_call_tokens_only():
    ledger = count(made(("assistant", (ToolCall("a", "ls", {}, "{}"),))), "o200k_base")
    row = dict(zip(KINDS, ledger.kind_tokens[0].tolist(), strict=True))
    assert row["assistant"] == 0
    assert row["tool_call"] > 0


def test_b31_the_prompt_holds_the_cached_part_too():
    usage = Usage(input_uncached=6, cache_write_5m=37_172, cache_read=0)
    ledger = count(made(("user", (Text("q"),)), ("assistant", (Text("a"),)), calls=(Call(0, "", usage=usage, produced=(1,)),)), "o200k_base")
    assert ledger.reported[0].reported == 37_178
    assert ledger.transcript.calls[0].usage.cache_write_5m == 37_172


def test_b32_a_negative_bucket_is_no_report():
    usage = Usage(input_uncached=-120, cache_read=500, output=5)
    ledger = count(made(("user", (Text("q"),)), ("assistant", (Text("a"),)), calls=(Call(0, "", usage=usage, produced=(1,)),)), "o200k_base")
    assert ledger.reported[0].reported is None
    assert ledger.reported[0].unattributed is None
    assert ledger.reported[0].estimated == 3 + 4 + 1
    assert ledger.unattributed is None


def test_b40_what_is_not_accounted_for_is_kept_apart():
    text = "word " * 28_289 + "x"  # 28,290 tokens and 4 + 3 + … of framing: 28,300 with the role
    asked = made(("user", (Text(text),)), ("assistant", (Text("a"),)), calls=(Call(0, "", usage=Usage(cache_read=37_178), produced=(1,)),))
    ledger = count(asked, "o200k_base")
    estimated = ledger.reported[0].estimated
    assert 28_290 < estimated < 28_310
    assert ledger.unattributed == 37_178 - estimated
    assert ledger.view().by_kind["tools"] == 0
    check_sums(ledger)


def test_unattributed_is_never_negative():
    asked = made(("user", (Text("word " * 500),)), ("assistant", (Text("a"),)), calls=(Call(0, "", usage=Usage(input_uncached=10), produced=(1,)),))
    assert count(asked, "o200k_base").unattributed == 0


def test_b41_without_usage_all_read_the_same_number():
    ledger = count(conversation(("user", "hello"), ("assistant", "hi")), None)
    view = ledger.view()
    assert ledger.total == view.total == sum(view.by_kind.values()) == int(ledger.kinds["tokens"].sum()) > 0
    assert not ledger.counter.exact  # the header says: estimated
    assert ledger.unattributed is None


def test_b43_a_subagent_has_its_own_total():
    rows = [Message(at, "", "user", (Text("word " * 10),), thread="sub" if at in (1, 2, 4) else MAIN) for at in range(7)]
    transcript = Transcript("t", Source("x"), tuple(rows), threads=(Thread(MAIN), Thread("sub", "subagent", MAIN)))
    ledger = count(transcript, "o200k_base")
    each = int(ledger.message_tokens[0])
    assert ledger.view().total == 4 * each + 3
    assert ledger.view("sub").total == 3 * each + 3
    assert int(ledger.message_tokens.sum()) == 7 * each


def test_b61_a_later_system_message_is_an_ordinary_row():
    ledger = count(conversation(("user", "a"), ("assistant", "b"), ("system", "user is idle"), ("user", "c")), "o200k_base")
    view = ledger.view()
    assert view.lead == 0
    assert int(view.tokens[2]) > 0
    assert view.fixed == 3


def test_b79_and_b80_a_text_that_had_to_be_guessed_flags_its_message():
    transcript = conversation(("user", "plain"), ("assistant", "", "c1"), ("tool", "c1", "-" * 500_000))
    ledger = count(transcript, "o200k_base")
    assert ledger.message_estimated.tolist() == [False, False, True]

    class Panic(BaseException):
        pass

    class Old:
        id = label = "old"
        exact, error = False, 0.5

        def count_texts(self, texts):
            if any("^" in text for text in texts):
                raise Panic
            return np.ones(len(texts), np.int64)

    ledger = count(conversation(("user", "plain"), ("assistant", "", "c1"), ("tool", "c1", "^" * 4000)), Old())
    assert ledger.message_estimated.tolist() == [False, False, True]
    assert int(ledger.kind_tokens[2, KIND["tool_result"]]) == 1000


def test_b82_a_picture_alone_costs_tokens():
    ledger = count(made(("user", (Media("image", "image/png", size=90),)), meta={"model": "claude-sonnet-4-5"}))
    assert int(ledger.kind_tokens[0, KIND["media"]]) == 1369
    assert ledger.message_estimated.tolist() == [True]
    assert len(ledger.view().turns) == 1


def test_b83_opaque_reasoning_is_shown_with_its_bytes_and_not_counted_as_text():
    ledger = count(made(("user", (Text("q"),)), ("assistant", (Reasoning(None, 20_480), Text("a"))), ("assistant", (Reasoning(None, None),))), "o200k_base")
    assert ledger.message_estimated.tolist() == [False, True, True]
    assert ledger.message_opaque.tolist() == [0, 20_480, 0]
    assert ledger.part_opaque.tolist() == [0, 20_480, 0, -1]
    assert ledger.view().opaque_bytes == 20_480
    assert int(ledger.message_tokens[1]) < 10


def test_b100_tokens_are_counted_on_the_text_as_it_is():
    ledger = count(made(("user", (Text("\x1b[31mred\x1b[0m \r 50%"),))), "o200k_base")
    assert int(ledger.part_tokens[0]) == len(vocabulary.load("o200k_base").encode_ordinary("\x1b[31mred\x1b[0m \r 50%"))


@needs_shared
@pytest.mark.parametrize("folder", ["claude-code", "codex-rollout", "openai-chat", "anthropic-messages", "openai-responses"])
def test_sums_are_exact_on_real_files(folder):
    """Small files of every kind; the counter is a ratio here, since the sums do not depend on it."""
    files = sorted(path for path in (SHARED / "transcripts" / folder).rglob("*") if path.is_file() and path.stat().st_size < 300_000)
    seen = 0
    for path in files:
        try:
            found = readers.read_all(path)
        except WorkbenchError:
            continue
        for transcript in found:
            check_sums(count(transcript, "bytes/4"))
            seen += 1
    assert seen > 3


def test_b49_a_conversation_in_which_nothing_was_said_costs_nothing():
    view = count(Transcript("t", Source("openai-chat")), RatioCounter()).view()
    assert (view.total, view.fixed, sum(view.by_kind.values())) == (0, 0, 0)
    asked = count(Transcript("t", Source("openai-chat"), system=("Be brief.",)), RatioCounter()).view()
    assert asked.total == asked.fixed > asked.by_kind["system"] > 0
