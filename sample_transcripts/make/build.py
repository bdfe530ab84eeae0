"""Make the sample transcripts: ``python sample_transcripts/make/build.py [NAME ...] [--check] [--record]``.

``--check`` compares with the files that are there and writes nothing. ``--record`` runs the shell commands of the coding
story for real, in /home/dev/tallyport, and keeps their output; it is needed only after the story's commands changed.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from common import OUT

NAMES = {
    "coding_agent": "coding_agent.jsonl",
    "research_chat": "research_chat.json",
    "support_session": "support_session.json",
    "long_session": "long_session.jsonl",
    "damaged": "damaged.jsonl",
}


def make(name: str, record: bool = False) -> bytes:
    """The bytes of one sample."""
    build = importlib.import_module(name).build
    return build(record) if name == "coding_agent" else build()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    stale = 0
    for name in args.names:
        path, data = OUT / NAMES[name], make(name, args.record)
        if args.check:
            same = path.exists() and path.read_bytes() == data
            stale += not same
            print(f"{path.name}: {'as built' if same else 'differs'}")
        else:
            path.write_bytes(data)
            print(f"{path.name}: {len(data):,} bytes")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
