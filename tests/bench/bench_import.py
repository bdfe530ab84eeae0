"""`import workbench` must cost next to nothing over a bare Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterable

from .common import Figure


def figures(rounds: int = 9) -> Iterable[Figure]:
    """The difference of the medians, in ms, of processes that import it and processes that do nothing; they take turns."""
    bare, loaded = [], []
    for _ in range(rounds):
        bare.append(_run("pass"))
        loaded.append(_run("import workbench"))
    spent = (statistics.median(loaded) - statistics.median(bare)) * 1000
    yield Figure.at_most("import workbench over bare Python, ms", max(spent, 0.0), 50)


def _run(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start
