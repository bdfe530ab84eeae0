"""Counting: cold against a bare loop of tiktoken, again from the cache, and what another thread feels meanwhile."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

from tests.bench.common import Figure, big_transcript, cpu_times
from workbench.ledger import count
from workbench.model import Message, Text, ToolCall, ToolResult, Transcript
from workbench.tokens import TiktokenCounter, store, vocabulary


def figures() -> Iterator[Figure]:
    transcript = big_transcript(10_000, 20_000_000)
    texts = _texts(transcript)
    counter = TiktokenCounter("o200k_base")
    encode = vocabulary.load("o200k_base").encode_ordinary

    def bare() -> None:
        for text in texts:
            encode(text)

    def cold() -> None:
        store.use_file(None)  # a new, empty cache
        count(transcript, counter)

    def again() -> None:
        count(transcript, counter)

    loop, first, second = cpu_times(bare, cold, again)
    yield Figure.at_most("count 10k messages / 20 MB cold, of a bare encode_ordinary loop's CPU", first / loop, 1.1)
    yield Figure.at_most("count again, of cold", second / first, 0.06)
    yield Figure.at_most("longest stall of another thread while counting cold, ms", _longest_stall(cold) * 1000, 100)


def _texts(transcript: Transcript) -> list[str]:
    """The texts that a count must look at, taken from the parts without the code under test."""
    found: list[str] = []
    for message in transcript.messages:
        found += _message_texts(message)
    return found


def _message_texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall):
            yield from (part.name, part.arguments_raw)
        elif isinstance(part, ToolResult):
            yield from (child.text for child in part.parts if isinstance(child, Text))


def _longest_stall(work: object) -> float:
    """Longest time in seconds that a thread which only wants to tick each millisecond had to wait while `work` ran."""
    worker = threading.Thread(target=work)  # type: ignore[arg-type]
    longest, last = 0.0, time.perf_counter()
    worker.start()
    while worker.is_alive():
        time.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


if __name__ == "__main__":
    for figure in figures():
        print(figure, file=sys.stdout)
