"""``python -m tests.golden FILE…``: ``N passed, M failed`` and the first differences; exit 1 on failure."""

from __future__ import annotations

import sys
from pathlib import Path

from .runner import load, run

SHOWN = 20


def main(names: list[str]) -> int:
    if not names:
        print("usage: python -m tests.golden FILE…", file=sys.stderr)
        return 2
    passed = 0
    failed: list[str] = []
    for name in names:
        try:
            outcomes = list(run(load(Path(name))))
        except (OSError, ValueError) as error:
            failed.append(f"{name}: {error}")
            continue
        for outcome in outcomes:
            if outcome.differences:
                failed.append(f"{name}, {outcome.id}: " + "; ".join(outcome.differences[:3]))
            else:
                passed += 1
    print(f"{passed} passed, {len(failed)} failed")
    for line in failed[:SHOWN]:
        print("  " + line.encode("utf-8", "backslashreplace").decode())
    if len(failed) > SHOWN:
        print(f"  and {len(failed) - SHOWN} more")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
