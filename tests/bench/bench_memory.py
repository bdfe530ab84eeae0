"""Peak memory of reading sessions of 300 MB that hold one tool result of 40 MB, against their size.

Each is read in a process of its own, whose peak the system reports: the interpreter and the libraries are in the figure.
Every text holds CJK characters, so that Python needs two bytes for each of its characters: a text takes 1.9 times its bytes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.bench.common import Figure, claude_code_record, prose, rounds_of_work
from tests.shared import ROOT

_MESSAGES, _TEXT, _LONG = 40_000, 245_000_000, 40_000_000
_TS = "2026-11-01T10:00:00.000Z"
_READ = """
import sys
import workbench as wb
transcript = wb.read(sys.argv[1])
if sys.argv[2] == "open":
    import json
    from ipywidgets.embed import embed_data
    page = json.dumps(embed_data(views=[wb.Workbench(transcript)])["manager_state"])
    print(len(transcript.messages), len(page), end=" ")
else:
    print(len(transcript.messages), 0, end=" ")
try:
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
except OSError:
    import resource
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(most // 1024 if sys.platform == "darwin" else most)
"""


@cache
def _rounds() -> tuple[tuple[int, str, Any], ...]:
    return tuple(_made())


def _made() -> Iterator[tuple[int, str, Any]]:
    long = prose(random.Random(3), _LONG // 10) * 9
    waits = True
    for at, (role, content) in enumerate(rounds_of_work(_MESSAGES, _TEXT)):
        if waits and role == "tool" and at > _MESSAGES // 2:
            waits, content = False, (content[0], long)
        yield at, role, content


def _claude_code() -> Iterator[dict[str, Any]]:
    for at, role, content in _rounds():
        yield claude_code_record(at, role, content)


def _openai_chat() -> Iterator[dict[str, Any]]:
    for _, role, content in _rounds():
        if role == "call":
            function = {"name": content[1], "arguments": json.dumps(content[2], ensure_ascii=False)}
            yield {"role": "assistant", "content": None, "tool_calls": [{"id": content[0], "type": "function", "function": function}]}
        elif role == "tool":
            yield {"role": "tool", "tool_call_id": content[0], "content": content[1]}
        else:
            yield {"role": role, "content": content}


def _codex() -> Iterator[dict[str, Any]]:
    about = {"id": "5a0c", "timestamp": _TS, "cwd": "/srv/project", "originator": "codex_cli_rs", "cli_version": "0.50.0", "instructions": None}
    yield {"timestamp": _TS, "type": "session_meta", "payload": about}
    for at, role, content in _rounds():
        if role == "call":
            item = {"type": "function_call", "name": content[1], "arguments": json.dumps(content[2], ensure_ascii=False), "call_id": content[0]}
        elif role == "tool":
            item = {"type": "function_call_output", "call_id": content[0], "output": content[1]}
        else:
            kind = "input_text" if role == "user" else "output_text"
            item = {"type": "message", "role": role, "content": [{"type": kind, "text": content}]}
        yield {"timestamp": _TS, "type": "response_item", "payload": item}
        if role in ("call", "assistant"):
            last = {"input_tokens": 1_000 + at, "cached_input_tokens": 900, "output_tokens": 50, "reasoning_output_tokens": 0, "total_tokens": 1_050 + at}
            payload = {"type": "token_count", "info": {"total_token_usage": {**last, "output_tokens": 50 * (at + 1)}, "last_token_usage": last}}
            yield {"timestamp": _TS, "type": "event_msg", "payload": payload}


_FORMATS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"Claude Code": _claude_code, "OpenAI chat": _openai_chat, "Codex": _codex}


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in _FORMATS.items():
            path = Path(folder) / "session.jsonl"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows())
            size = path.stat().st_size
            peak, _ = _run(path, "read")
            yield Figure.at_most(f"peak memory to read a {size / 1e6:.0f} MB file of {name}, of its size", peak / size, 3)
            if name == "Claude Code":
                peak, page = _run(path, "open")
                yield Figure("peak memory to read, count and open it in the workbench", round(peak / size, 4), "for comparison", True)
                yield Figure.at_most("what the page then holds", page / 1e6, 3, "MB")


def _run(path: Path, what: str) -> tuple[int, int]:
    """Bytes of memory at the peak, and bytes that the page holds."""
    run = subprocess.run([sys.executable, "-c", _READ, str(path), what], cwd=ROOT, capture_output=True, text=True, check=True)
    messages, page, kilobytes = map(int, run.stdout.split()[-3:])
    assert messages == _MESSAGES
    return kilobytes * 1024, page
