"""``python3 -m workbench test``: every check of the project, one after the other, and what came of each."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(pytest_args: list[str]) -> int:
    """Run the tests, then the linter, the formatter and the type checker.

    Notebooks and the wheel are checked by tests. All checks run, whatever the first of them say.

    Parameters
    ----------
    pytest_args : list of str
        Handed to pytest. If there are any, only pytest runs: they ask for a part of the suite.

    Returns
    -------
    int
        0 if every check passed, else 1 (or pytest's own exit code if only pytest ran).
    """
    if not (ROOT / "tests").is_dir():
        print("workbench: the tests are not part of the installed package; run this in a clone of the project", file=sys.stderr)
        return 1
    python = sys.executable
    if pytest_args:
        return _run([python, "-m", "pytest", *pytest_args])
    checks = {
        "tests": [python, "-m", "pytest", "-ra"],
        "ruff check": [python, "-m", "ruff", "check", "."],
        "ruff format": [python, "-m", "ruff", "format", "--check", "."],
        "mypy": [python, "-m", "mypy"],
    }
    results = []
    for name, command in checks.items():
        print(f"── {name}", flush=True)
        start = time.monotonic()
        code = _run(command)
        results.append((name, code, time.monotonic() - start))
    print("── summary")
    for name, code, seconds in results:
        print(f"{'passed' if code == 0 else 'FAILED':<8}{name:<14}{seconds:7.0f} s")
    return int(any(code for _, code, _ in results))


def _run(command: list[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode
