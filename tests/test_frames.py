"""Frames say what the ledger says, and no text of a transcript breaks them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import transcripts
from workbench import frames, policies, preview
from workbench.errors import BudgetError
from workbench.ledger import count
from workbench.model import KINDS, Budget, Call, Media, Message, Opaque, Reasoning, Source, Text, Thread, ToolCall, ToolResult, Transcript, Usage


@settings(deadline=None)
@given(transcripts())
def test_the_numbers_agree_everywhere(transcript):
    ledger = count(transcript, "bytes/4")
    rows, parts, kinds = ledger.messages, ledger.parts, ledger.kinds
    assert rows.index.tolist() == list(range(len(transcript.messages)))
    assert rows["tokens"].tolist() == ledger.message_tokens.tolist() == rows[list(KINDS)].sum(axis=1).tolist()
    by_message = parts.groupby("message")["tokens"].sum().reindex(rows.index, fill_value=0)
    assert (by_message + rows["framing"]).tolist() == rows["tokens"].tolist()
    assert parts.groupby("message")["estimated"].any().reindex(rows.index, fill_value=False).tolist() == rows["estimated"].tolist()
    for thread in transcript.threads:
        for history in ("full", "live"):
            view = ledger.view(thread.id, history)
            turns = frames.turns(ledger, thread.id, history)
            assert turns["tokens"].sum() + view.fixed == view.total == frames.kinds(ledger, thread.id, history)["tokens"].sum()
            assert turns["tokens"].tolist() == turns[list(KINDS)].sum(axis=1).tolist()
            assert turns["messages"].sum() == len(view.indices) - view.lead
    assert kinds.index.tolist() == list(KINDS)
    assert abs(kinds["share"].sum() - (1 if ledger.total else 0)) < 1e-9
    for frame in (rows, parts, kinds, ledger.turns, frames.calls(ledger)):
        frame.to_csv(sep="\t").encode()  # B16: every export succeeds
        frame.to_json(force_ascii=False, date_format="iso").encode()
        frame.to_html().encode()


@settings(deadline=None)
@given(transcripts(), st.integers(0, 500))
def test_a_selection_has_one_row_per_message_of_its_history(transcript, room):
    ledger = count(transcript, "bytes/4")
    try:
        chosen = policies.select(ledger, "scv", Budget(ledger.view().fixed + room, 0, 0))
    except BudgetError:
        return
    frame = chosen.frame
    assert frame.index.tolist() == list(transcript.history())
    assert frame["fate"].tolist() == list(chosen.fates)
    assert frame.groupby("fate")["tokens"].sum().to_dict() == {fate: tokens for fate, tokens in chosen.fate_tokens.items() if chosen.counts[fate]}
    assert (frame["sent_tokens"][frame["fate"].isin(["summarized", "dropped"])] == 0).all()


def test_columns_and_types_do_not_depend_on_the_content():
    empty = count(Transcript("t", Source("x")), "bytes/4")
    calls = (Call(0, "r", "gpt-5", Usage(input_uncached=5), "stop", (1,), ts=1_700_000_000_000),)
    full = count(
        Transcript("t", Source("x"), (Message(0, "", "user", (Text("a"),), ts=1), Message(1, "", "assistant", (Text("b"),), call=0)), calls), "bytes/4"
    )
    for make in (frames.messages, frames.turns, frames.kinds, frames.parts, frames.calls):
        assert make(empty).dtypes.to_dict() == make(full).dtypes.to_dict(), make.__name__


def test_what_was_not_recorded_is_na_and_never_0():
    calls = (
        Call(0, "r0", "gpt-5", Usage(input_uncached=30, output=2), "stop", (1,)),
        Call(1, "r1", None, None, None, ()),
        Call(2, "r2", None, Usage(input_uncached=2**70), None, (1,)),
    )
    transcript = Transcript("t", Source("x"), (Message(0, "", "user", (Text("hi"),)), Message(1, "", "assistant", (Text("yo"),), call=0)), calls)
    frame = frames.calls(count(transcript, "o200k_base"))
    assert frame.loc[0, ["input_uncached", "output", "prompt", "total"]].tolist() == [30, 2, 30, 32]
    assert frame.loc[0, "estimated_prompt"] == 8
    assert frame.loc[0, "unattributed"] == 22
    assert frame.loc[0, ["cache_read", "cache_write_5m", "reasoning"]].isna().all()
    assert frame.loc[1, [*Usage.BUCKETS, "prompt", "total", "estimated_prompt", "unattributed"]].isna().all()
    assert pd.isna(frame.loc[2, "prompt"])  # no column holds such a number
    assert str(frame["prompt"].dtype) == "Int64"


def test_messages_by_thread_with_turns_times_tools_and_opaque_bytes():
    rows = (
        Message(0, "", "system", (Text("s"),)),
        Message(1, "", "user", (Text("first"),), ts=1_700_000_000_123),
        Message(2, "", "user", (Text("sub"),), thread="sub"),
        Message(3, "", "assistant", (Reasoning(None, 700), ToolCall("a", "run", {}, '{"x":1}'), ToolCall("b", "run", {}, "{}"))),
        Message(4, "", "tool", (ToolResult("a", None, ()),), ts=10**18),
        Message(5, "", "user", (Media("image", width=9, height=9), Opaque("audio", None))),
    )
    ledger = count(replace(Transcript("t", Source("x"), rows), threads=(Thread("main"), Thread("sub", "subagent", "main"))), "bytes/4")
    frame = ledger.messages
    assert frame["turn"].fillna(-1).tolist() == [-1, 0, 0, 0, 0, 1]
    assert frame["kind"].tolist() == ["system", "user", "user", "tool_call", "tool_result", "media"]
    assert frame["tool"].tolist() == ["", "", "", "run", "", ""]
    assert frame["opaque_bytes"].tolist() == [0, 0, 0, 700, 0, 0]
    assert frame["time"].isna().tolist() == [True, False, True, True, True, True]
    assert frame.loc[1, "time"] == pd.Timestamp("2023-11-14T22:13:20.123Z")
    assert frame["preview"].tolist() == ["s", "first", "sub", '(hidden reasoning) run {"x":1} run {}', "(empty)", "(image 9 × 9) (audio)"]
    assert frames.messages(ledger, "sub").index.tolist() == [2]
    assert frames.messages(ledger, "sub")["preview"].tolist() == ["sub"]
    opaque = ledger.parts.set_index("message")["opaque_bytes"]
    assert opaque[3].tolist() == [700, 0, 0]
    assert opaque[5].isna().tolist() == [False, True]


def test_hostile_texts_stay_text():
    """B97, B98, B100: no markup, no escape sequences, no lone surrogate in any cell."""
    rows = (
        Message(0, "", "assistant", (ToolCall("a", "<img src=x onerror=alert(1)>\ud800", {}, "{}"),)),
        Message(1, "", "tool", (ToolResult("a", "<b>", (Text("\x1b[31mred\x1b[0m \r 50%\x00 <script>x=1</script>"),)),)),
    )
    ledger = count(Transcript("t", Source("x"), rows), "bytes/4")
    for frame in (ledger.messages, ledger.parts):
        html = frame.to_html()
        assert "<img" not in html
        assert "<script" not in html
        assert "\x1b" not in html
        assert "\ud800" not in html
    assert ledger.messages.loc[1, "preview"] == "[31mred [0m 50% <script>x=1</script>"


def test_a_preview_of_megabytes_is_cheap_and_short():
    huge = Message(0, "", "user", (Text("word " * 2_000_000),))
    shown = preview.preview(huge)
    assert len(shown) == preview.PREVIEW
    assert shown.endswith("…")
