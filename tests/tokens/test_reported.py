"""What stood before each call: sums over what was live in its thread, by what the source records where it records it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.sessions_with_usage import talk, with_subagents
from workbench.ledger import count
from workbench.model import KINDS, Call, Message, Prefix, Source, Text, ToolSpec, Transcript, Usage
from workbench.tokens import RatioCounter
from workbench.tokens.reported import prompts


def live_before(transcript: Transcript, call: Call) -> list[int]:
    """By the definition, slowly: the live history of the thread as it was before the call's answer."""
    first = min(call.produced)
    known = tuple(message for message in transcript.messages if message.index < first)
    done = tuple(item for item in transcript.compactions if item.after < first and (item.summary or 0) < first)
    return list(replace(transcript, messages=known, compactions=done).history(call.thread, "live"))


@pytest.mark.parametrize("transcript", [talk(90), talk(91, compacted=True), with_subagents()], ids=["plain", "compacted", "subagents"])
def test_sums_are_those_of_the_live_history_before_each_call(transcript):
    columns = np.random.default_rng(5).integers(0, 1_000, (len(transcript.messages), 3))
    outside = {thread.id: np.array([at, 10, 100]) for at, thread in enumerate(transcript.threads)}
    found = prompts(transcript, columns, lambda call: outside[call.thread])
    assert found.known.all()
    for call, sums in zip(transcript.calls, found.sums, strict=True):
        assert sums.tolist() == (columns[live_before(transcript, call)].sum(axis=0) + outside[call.thread]).tolist()


def test_what_the_source_records_wins():
    transcript = talk(30)
    calls = (replace(transcript.calls[3], context=(0, 2, 2, 5)), *transcript.calls[4:])
    columns = np.arange(30)[:, None] ** 2
    found = prompts(replace(transcript, calls=calls), columns, lambda call: np.array([7]))
    assert found.sums[0].tolist() == [0 + 4 + 4 + 25 + 7]


def test_a_call_whose_place_is_not_known_has_no_sum():
    transcript = talk(30)
    calls = (replace(transcript.calls[0], produced=()), replace(transcript.calls[1], thread="nowhere"))
    found = prompts(replace(transcript, calls=calls), np.ones((30, 2), np.int64), lambda call: np.array([5, 5]))
    assert found.known.tolist() == [False, False]
    assert found.sums.tolist() == [[0, 0], [0, 0]]
    assert [row.estimated for row in count(replace(transcript, calls=calls), RatioCounter()).reported] == [None, None]


def test_the_ledgers_prompts_by_kind_sum_to_the_estimates():
    transcript = talk(91, compacted=True)
    ledger = count(transcript, RatioCounter())
    assert ledger.prompts.sums.shape == (len(transcript.calls), len(KINDS))
    assert ledger.prompts.sums.sum(axis=1).tolist() == [row.estimated for row in ledger.reported]
    last = transcript.calls[-1].produced[0]
    cut = replace(transcript, messages=transcript.messages[:last], calls=())
    assert dict(zip(KINDS, ledger.prompts.sums[-1].tolist(), strict=True)) == count(cut, RatioCounter()).view("main", "live").by_kind


def test_a_request_with_its_own_prefix_is_counted_with_that():
    said = ("system", "user", "assistant", "user", "assistant")
    messages = tuple(Message(at, "", role, (Text(f"{role} text number {at}"),)) for at, role in enumerate(said))  # type: ignore[arg-type]
    tool = ToolSpec("ls", "List files.", {"type": "object"})
    lead = messages[0].text
    first, second = Prefix(("outside", lead), (tool,)), Prefix(("outside, and longer by a good deal", lead), (tool, tool))
    calls = (
        Call(0, "a", produced=(2,), prefix=first),
        Call(1, "b", produced=(4,), prefix=second),
        Call(2, "c", produced=(4,), prefix=first, context=(1, 2, 3)),
    )
    transcript = Transcript("t", Source("openai-chat"), messages, calls, system=("outside",), tools=(tool,))
    counter = RatioCounter(1)
    found = count(transcript, counter).prompts.sums
    plain = count(replace(transcript, calls=tuple(replace(call, prefix=None) for call in calls)), counter).prompts.sums
    assert found[0].tolist() == plain[0].tolist()  # the same as what the transcript says of all
    kind = {name: at for at, name in enumerate(KINDS)}
    assert found[1, kind["tools"]] == 2 * plain[1, kind["tools"]]
    assert found[1, kind["system"]] - plain[1, kind["system"]] == len(", and longer by a good deal")
    assert found[2, kind["system"]] == len("outside") + len(lead)  # a leading message that its context leaves out stands in its prefix only


def test_reported_prompts_with_a_negative_bucket_are_none():
    transcript = talk(12)
    usage = (Usage(100, 5), Usage(100, -5), Usage(None, None, None, None, 7))
    calls = tuple(replace(call, usage=each) for call, each in zip(transcript.calls, usage, strict=False))
    assert [row.reported for row in count(replace(transcript, calls=calls), RatioCounter()).reported] == [105, None, None]
