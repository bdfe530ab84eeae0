"""Reading a session of 20 MB, against parsing its lines with the fastest JSON library there is and keeping nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import orjson

from tests.bench.common import Figure, cpu_times, write_claude_code
from workbench import readers


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = write_claude_code(Path(folder) / "session.jsonl")

        def lines_of(decode: Callable[[bytes], object]) -> Callable[[], None]:
            def work() -> None:
                with path.open("rb") as file:
                    for line in file:
                        decode(line)

            return work

        def read() -> None:
            readers.read(path)

        by_orjson, by_msgspec, reading = cpu_times(lines_of(orjson.loads), lines_of(msgspec.json.Decoder().decode), read, rounds=9)
        yield Figure.at_most("read a 20 MB Claude Code file, of parsing each of its lines", reading / min(by_orjson, by_msgspec), 3)
