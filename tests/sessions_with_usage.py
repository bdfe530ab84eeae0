"""Made sessions whose provider reports each prompt, by a rule that the test knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.synthetic import session
from workbench.ledger import count
from workbench.model import MAIN, Call, Message, Thread, Transcript, Usage
from workbench.tokens.base import Counter

MODEL = "gpt-4o"


def with_calls(transcript: Transcript, model: str | Sequence[str] = MODEL) -> Transcript:
    """One call for every assistant message, without usage. Models take turns in equal parts of the session."""
    names = [model] if isinstance(model, str) else list(model)
    answers = [message for message in transcript.messages if message.role == "assistant"]
    calls = tuple(
        Call(at, f"c{at}", names[at * len(names) // len(answers)], produced=(message.index,), thread=message.thread) for at, message in enumerate(answers)
    )
    return replace(transcript, calls=calls)


def reporting(transcript: Transcript, counter: Counter | str, rule: Callable[[int, Call], int | None]) -> Transcript:
    """Report ``rule(counted, call)`` for every prompt, in buckets as a provider with a cache has them; None: no usage."""
    told = [rule(row.estimated, transcript.calls[row.call]) for row in count(transcript, counter).reported if row.estimated is not None]
    assert len(told) == len(transcript.calls)
    return replace(
        transcript,
        calls=tuple(replace(call, usage=None if tokens is None else buckets(tokens, call.index)) for call, tokens in zip(transcript.calls, told, strict=True)),
    )


def buckets(prompt: int, number: int) -> Usage:
    """A prompt in buckets: now all uncached, now nearly all read, now written for five minutes or an hour."""
    some = prompt // 3
    return (
        Usage(prompt, None, None, None, 20),
        Usage(prompt - some, some, 0, 0, 20),
        Usage(1, prompt - some - 1, some, 0, 20),
        Usage(prompt - 2 * some, 0, some, some, 20),
    )[number % 4]


def talk(messages: int = 120, seed: int = 1, *, compacted: bool = False, model: str | Sequence[str] = MODEL) -> Transcript:
    """A session of tool work with a call for each answer."""
    made = session(messages, seed, compacted=compacted)
    if compacted:  # the newest messages before it stay
        item = made.compactions[0]
        made = replace(made, compactions=(replace(item, kept=tuple(range(item.after - 5, item.after + 1))),))
    return with_calls(made, model)


def with_subagents(number: int = 2, messages: int = 40) -> Transcript:
    """A main thread and some subagents."""
    parts = [session(messages * 2, 1), *(session(messages, seed + 2) for seed in range(number))]
    threads = [Thread(MAIN), *(Thread(f"agent {at}", "subagent", MAIN) for at in range(number))]
    rows: list[Message] = []
    for part, thread in zip(parts, threads, strict=True):
        rows += [replace(message, thread=thread.id) for message in part.messages if thread.id == MAIN or message.role != "system"]
    made = replace(parts[0], messages=tuple(replace(message, index=at) for at, message in enumerate(rows)), threads=tuple(threads))
    return with_calls(made)
