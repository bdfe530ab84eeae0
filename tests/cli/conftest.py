"""Runs a command in this process, and writes small transcripts for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from workbench.cli import main


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as exactly one JSON document, of a command that went well."""
        assert (self.code, self.err) == (0, "")
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line of a command that failed."""
        assert (self.code, self.out) == (1, "")
        assert self.err.startswith("workbench: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        return self.err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    monkeypatch.setenv("COLUMNS", "160")

    def go(*arguments: object) -> Done:
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return go


CHAT = [
    {"role": "system", "content": "You help with [bold]brackets[/bold]."},
    {"role": "user", "content": "List the folder, please. " + "It is a large one. " * 40},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "a.txt\nb.txt\n" * 60},
    {"role": "assistant", "content": "There are two kinds of file."},
    {"role": "user", "content": "Thank you. Which is newer?"},
    {"role": "assistant", "content": "b.txt is newer."},
]


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """Seven messages in OpenAI's format, in two turn groups, without any usage."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"model": "gpt-4o", "messages": CHAT}))
    return path
