"""Run the benchmarks and print each figure beside its target: ``python -m tests.bench [--json] [NAME…]``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from .common import Figure


def names() -> list[str]:
    """The benchmarks: every ``bench_NAME.py`` beside this file."""
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def measure(chosen: list[str]) -> Iterator[Figure]:
    """Run benchmarks one after the other; each prints to standard error that it runs."""
    for name in chosen:
        print(f"… {name}", file=sys.stderr, flush=True)
        yield from import_module(f"tests.bench.bench_{name}").figures()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones; all if none is given: {', '.join(names())}")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    unknown = set(options.names) - set(names())
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    found = []
    for figure in measure(options.names or names()):
        found.append(figure)
        if not options.json:
            print(f"{'ok  ' if figure.ok else 'MISS'} {figure.name:<64} {figure.value:>12,.4g}   {figure.target}", flush=True)
    if options.json:
        print(json.dumps([asdict(figure) for figure in found], indent=2))
    return 0 if all(figure.ok for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
