"""Reading a session of 20 MB, against parsing each of its lines with the fastest JSON library there is.

The reference keeps what it parses, as any reader must keep the texts: both pay for the memory. The collector is off for
it, as it is while reading. Against parsing each line and dropping it at once, which no reader can do, the figure is
printed as well, without a target.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import orjson

from tests.bench.common import Figure, cpu_times, parse_lines, write_claude_code
from workbench import readers


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = write_claude_code(Path(folder) / "session.jsonl")

        def dropped() -> None:
            with path.open("rb") as file:
                for line in file:
                    orjson.loads(line)

        def read() -> None:
            readers.read(path)

        read()  # the readers are loaded on first use
        by_orjson, by_msgspec, bare, reading = cpu_times(
            parse_lines(path, orjson.loads), parse_lines(path, msgspec.json.Decoder().decode), dropped, read, rounds=9
        )
        yield Figure.at_most("read a 20 MB Claude Code file, of parsing each of its lines", reading / min(by_orjson, by_msgspec), 3)
        yield Figure("read a 20 MB Claude Code file, of parsing its lines and dropping them", round(reading / bare, 4), "for comparison", True)
