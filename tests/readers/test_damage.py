"""Real files of every format, cut, overwritten and out of order: read as far as they go, what is lost is counted, and soon.

The files are a small and a long one of each format that the manifest has, and our own samples.
"""

from __future__ import annotations

import csv
import json
import random
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import check
from tests.shared import SAMPLES, SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Transcript

_SMALLEST, _LARGEST = 300, 100_000
#: Seconds of CPU for a file of at most 300 kB: a hundred times what it takes.
_SOON = 5.0
_WAYS = 8
#: Formats of which each line is a whole run, or an export of many spans.
_RUNS = {"atif", "tau-bench", "otel-genai"}


@cache
def seeds() -> tuple[str, ...]:
    """Paths below the folder of transcripts: of each format that has a reader the smallest file, and the longest of those that are read soon."""
    known = {*readers.SYNONYMS, *(info.name for info in readers.list())}
    manifest = SHARED / "transcripts" / "MANIFEST.tsv"
    found: list[tuple[int, str, str]] = []
    if manifest.is_file():
        with manifest.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t")
            found = sorted((int(row["bytes"]), row["format"], row["path"]) for row in rows if row["format"] in known and row["bytes"])
    kinds: dict[str, list[str]] = {}
    for size, format, path in found:  # the kinds of files of one format differ by their endings
        if _SMALLEST <= size <= _LARGEST and (SHARED / "transcripts" / path).is_file():
            kinds.setdefault(f"{format}{Path(path).suffix}", []).append(path)
    paths = {path for some in kinds.values() for path in (some[0], some[-1])}
    return tuple(sorted(paths)) or ("",)  # one case, which the mark skips with its reason


def source(seed: str) -> Path:
    own = SAMPLES / seed
    return own if own.is_file() else SHARED / "transcripts" / seed


def read(path: Path, data: bytes, format: str | None = None) -> Sequence[Transcript]:
    """What is read of some bytes, checked; nothing if they are refused, in one line and soon."""
    path.write_bytes(data)
    begin = time.process_time()
    why = path.name
    runs: Sequence[Transcript] = ()
    try:
        runs = readers.read_all(path, format=format)
    except ReadError as error:
        why = str(error)
    assert time.process_time() - begin < _SOON
    assert why.isprintable()
    assert path.name in why
    for run in runs:
        check(run)
        assert all(len(found.text) < 2_000 for found in run.diagnostics)
    return runs


def is_json(line: bytes) -> bool:
    try:
        json.loads(line.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def lines_of(seed: str) -> list[bytes]:
    """The lines of a file of lines; nothing of any other."""
    data = source(seed).read_bytes()
    lines = [line for line in data.split(b"\n") if line.strip()]
    return lines if len(lines) > 1 and lines[0][:1] == b"{" and all(map(is_json, lines[:2])) else []


def counts_lines(runs: Sequence[Transcript], lines: Sequence[bytes]) -> bool:
    """Say whether the records of a format are the lines, as this file was read; the lines of `_RUNS` hold many records each."""
    return bool(lines) and runs[0].source.format not in _RUNS and sum(run.records.total for run in runs) == len(lines)


def accounted(runs: Sequence[Transcript], lines: Sequence[bytes]) -> None:
    """Every line is counted, and every damaged one as skipped, with a diagnostic that names its line."""
    lost = [number for number, line in enumerate(lines, 1) if line.strip() and not is_json(line)]
    assert sum(run.records.total for run in runs) == sum(bool(line.strip()) for line in lines)
    assert sum(run.records.skipped for run in runs) >= len(lost)
    assert {found.line for run in runs for found in run.diagnostics if found.code == "json"} >= set(lost)


def cases(of_lines: bool = False) -> list[Any]:
    own = sorted(path.name for path in SAMPLES.iterdir() if path.suffix in (".json", ".jsonl") and path.stat().st_size < 2 * _LARGEST)
    others = [pytest.param(path, marks=pytest.mark.transcripts) for path in seeds() if not (path and of_lines) or lines_of(path)]
    return [*others, *(name for name in own if not of_lines or lines_of(name))]


each_seed = pytest.mark.parametrize("seed", cases())
each_file_of_lines = pytest.mark.parametrize("seed", cases(of_lines=True))


@each_seed
def test_cut_at_any_byte(seed: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path, data, lines = tmp_path / source(seed).name, source(seed).read_bytes(), lines_of(seed)
    whole = read(path, data)
    assert whole
    counted = counts_lines(whole, lines)
    for cut in (1, len(data) // 2, len(data) - 2, *(rng.randrange(len(data)) for _ in range(_WAYS))):
        runs = read(path, data[:cut])
        if counted and runs and runs[0].source.format == whole[0].source.format and data[:cut].count(b"\n") > 1:
            accounted(runs, data[:cut].split(b"\n"))
        elif not lines and data.lstrip()[:1] in (b"{", b"[") and not is_json(data[:cut]):
            assert not runs or any(run.diagnostics for run in runs), cut
        read(path, data[cut:])
        read(path, data[:cut], whole[0].source.format)


@each_seed
def test_bytes_overwritten(seed: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path, data, lines = tmp_path / source(seed).name, source(seed).read_bytes(), lines_of(seed)
    whole = read(path, data)
    counted = counts_lines(whole, lines)
    for number in range(_WAYS):
        changed = bytearray(data)
        for _ in range(1 << number % 6):
            changed[rng.randrange(len(data))] = rng.choice((rng.randrange(256), *b'{}[]",:\\0n\n '))
        runs = read(path, bytes(changed))
        if counted and runs and runs[0].source.format == whole[0].source.format and len(bytes(changed).strip().split(b"\n")) > 2:
            accounted(runs, bytes(changed).split(b"\n"))
    read(path, data[: len(data) // 2] + bytes(4_096) + data[len(data) // 2 :])  # as after a power cut


@each_file_of_lines
def test_lines_shuffled_doubled_and_left_out(seed: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path, lines = tmp_path / source(seed).name, lines_of(seed)
    whole = read(path, b"\n".join(lines))
    counted = counts_lines(whole, lines)
    for number in range(_WAYS):
        if number % 3 == 0:
            some = rng.sample(lines, len(lines))
        elif number % 3 == 1:
            some = rng.choices(lines, k=len(lines))
        else:
            some = sorted(rng.sample(lines, rng.randint(2, len(lines))), key=lines.index)
        runs = read(path, b"\n".join(some))
        if counted and runs and runs[0].source.format == whole[0].source.format and len(some) > 1:
            accounted(runs, some)
