"""What every benchmark needs: a figure with its target, a fair clock, and big inputs that are made here."""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.model import Message, Source, Text, ToolCall, ToolResult, Transcript, compact_json


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and what it must reach."""

    name: str
    value: float
    target: str
    ok: bool

    @classmethod
    def at_most(cls, name: str, value: float, limit: float, unit: str = "") -> Figure:
        """A figure that must not be above `limit`."""
        return cls(name, round(value, 4), f"<= {limit:g}{' ' + unit if unit else ''}", value <= limit)


def cpu_times(*works: Callable[[], object], rounds: int = 5) -> list[float]:
    """CPU seconds of this process for each work, all threads included.

    The works take turns within a round, so that a slow phase of the machine falls on all of them, and each result is
    the least over the rounds: what else the machine does only ever adds (as ``timeit`` advises). Wall time is not used.
    """
    spent: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for seconds, work in zip(spent, works, strict=True):
            start = time.process_time()
            work()
            seconds.append(time.process_time() - start)
    return [min(seconds) for seconds in spent]


_TEXT = (
    "the parser reads one record at a time and keeps its line number so that a damaged line can be named later "
    "return value index cursor offset budget window token cache prompt message result error retry timeout branch commit "
    "配置 文件 読み込み 結果 über größer naïve café def class import self None True for while lambda yield async await "
    "src/pipeline/load.py tests/test_load.py 0x7f3a 200 404 3.14159 2026-11-30T09:12:44Z https status ok failed"
)
WORDS = _TEXT.split()
_RECORD_BYTES = 520  # what a Claude Code record holds beside its text


def prose(random_: random.Random, size: int) -> str:
    """About `size` characters of mixed prose, code words, numbers and CJK, in lines."""
    words: list[str] = []
    length = 0
    while length < size:
        word = random_.choice(WORDS)
        words.append(word)
        length += len(word) + 1
        if len(words) % 14 == 0:
            words.append("\n" + " " * random_.choice((0, 4, 8)))
    return " ".join(words)[:size]


def rounds_of_work(messages: int, total_bytes: int, seed: int = 7) -> Iterator[tuple[str, Any]]:
    """A session as (role, content): a person asks, the assistant calls a tool, gets its result, and answers.

    Results are the long part, as in real sessions. No two texts are equal, so that a cache cannot help a cold run.
    """
    random_ = random.Random(seed)
    unit = total_bytes / max(messages, 1) / 1.05  # the CJK words take three bytes a letter
    for at in range(messages):
        step = at % 8
        if step == 0:
            yield "user", f"{at}: " + prose(random_, int(unit * 0.3))
        elif step == 7:
            yield "assistant", f"{at}: " + prose(random_, int(unit * 0.8))
        elif step % 2:
            yield "call", (f"call_{at}", "run", {"command": f"step {at}: " + prose(random_, int(unit * 0.3))})
        else:
            yield "tool", (f"call_{at - 1}", f"{at}: " + prose(random_, int(unit * 2.0)))


def big_transcript(messages: int = 10_000, total_bytes: int = 20_000_000, seed: int = 7) -> Transcript:
    """A transcript of so many messages and about so many bytes of text."""
    rows = []
    for at, (role, content) in enumerate(rounds_of_work(messages, total_bytes, seed)):
        if role == "call":
            id_, name, arguments = content
            rows.append(Message(at, "", "assistant", (ToolCall(id_, name, arguments, compact_json(arguments)),)))
        elif role == "tool":
            rows.append(Message(at, "", "tool", (ToolResult(content[0], "run", (Text(content[1]),)),)))
        else:
            rows.append(Message(at, "", role, (Text(content),)))  # type: ignore[arg-type]
    return Transcript(f"generated-{messages}", Source("generated"), tuple(rows), meta={"model": "gpt-5"})


def write_claude_code(path: Path, messages: int = 10_000, total_bytes: int = 20_000_000, seed: int = 7) -> Path:
    """Write such a session as a Claude Code file of about `total_bytes`: one record a line, with ids, parents, time stamps and usage."""
    with path.open("w", encoding="utf-8") as file:
        for at, (role, content) in enumerate(rounds_of_work(messages, total_bytes - _RECORD_BYTES * messages, seed)):
            file.write(json.dumps(claude_code_record(at, role, content), ensure_ascii=False, separators=(",", ":")) + "\n")
    return path


def claude_code_record(at: int, role: str, content: Any) -> dict[str, Any]:
    """A record of a Claude Code session."""
    assistant = role in ("assistant", "call")
    if role == "call":
        blocks: Sequence[dict[str, Any]] = [{"type": "tool_use", "id": content[0], "name": content[1], "input": content[2]}]
    elif role == "tool":
        blocks = [{"type": "tool_result", "tool_use_id": content[0], "content": content[1]}]
    else:
        blocks = [{"type": "text", "text": content}]
    message: dict[str, Any] = {"role": "assistant" if assistant else "user", "content": blocks if role != "user" else content}
    if assistant:
        message |= {"id": f"msg_{at:06}", "type": "message", "model": "claude-sonnet-4-5", "stop_reason": "tool_use" if role == "call" else "end_turn"}
        message["usage"] = {"input_tokens": 4, "cache_read_input_tokens": 900 + at, "cache_creation_input_tokens": 120, "output_tokens": 60}
    return {
        "parentUuid": f"{at - 1:08x}-0000-4000-8000-000000000000" if at else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/srv/project",
        "sessionId": "5a0c0000-0000-4000-8000-000000000000",
        "version": "2.0.14",
        "type": "assistant" if assistant else "user",
        "message": message,
        "uuid": f"{at:08x}-0000-4000-8000-000000000000",
        "timestamp": f"2026-11-{1 + at // 86_400:02}T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}.000Z",
    }


#: CPU seconds of `pace` on the kind of machine that targets in ms are meant for (2 shared cores of a cloud server).
REFERENCE_PACE = 0.005


def pace() -> int:
    """A fixed amount of plain Python: how fast is this machine now?"""
    total = 0
    for number in range(150_000):
        total += number % 7
    return total


def parse_lines(path: Path, decode: Callable[[bytes], object]) -> Callable[[], None]:
    """Work that parses each line of a file and keeps what it gives, as a reader must: the reference of every reading figure."""

    def work() -> None:
        gc.disable()
        with path.open("rb") as file:
            values = [decode(line) for line in file]
        del values
        gc.enable()

    return work
