"""The command line as a whole: what is listed, what is opened, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.shared import ROOT
from workbench import launch, policies, readers

from .conftest import Done

Run = Callable[..., Done]


def test_policies_are_listed_with_all_that_is_known(run: Run) -> None:
    document = run("policies", "--json").document
    assert [item["name"] for item in document["policies"]] == list(policies.list())
    for item in document["policies"]:
        assert {"name", "summary", "origin", "version", "as_of", "evidence", "mechanisms", "persistent", "params"} <= set(item)
    scv = next(item for item in document["policies"] if item["name"] == "scv")
    assert scv["params"]["summary_max_chars"]["default"] == 6000
    assert "summary_max_chars" in run("policies").out


def test_formats_are_listed(run: Run) -> None:
    document = run("formats", "--json").document
    assert document == {"readers": [{"name": item.name, "summary": item.summary, "example": item.example} for item in readers.list()], "writers": []}
    assert {"claude-code", "codex", "openai-chat", "openai-responses", "anthropic"} <= {item["name"] for item in document["readers"]}
    assert "claude-code" in run("formats").out


@pytest.mark.parametrize("arguments", [["nonsense"], ["inspect"], ["select"], ["policies", "extra"], ["inspect", "x", "--nonsense"]], ids=" ".join)
def test_wrong_usage_is_2(arguments: list[str], run: Run) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")


def test_help_and_version(run: Run) -> None:
    import workbench

    assert run("--version").out == f"context-workbench {workbench.__version__}\n"
    listed = run("--help").out
    assert all(name in listed for name in ("open", "inspect", "select", "policies", "formats"))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What JupyterLab would have been started with."""
    calls: list[dict[str, Any]] = []

    def open_lab(path: Path | None, **options: Any) -> int:
        calls.append({"path": None if path is None else str(path), **options})
        return 5

    monkeypatch.setattr(launch, "open_lab", open_lab)
    return calls


@pytest.mark.parametrize(
    ("arguments", "path", "browser", "lab"),
    [
        ([], None, True, []),
        (["--no-browser"], None, False, []),
        (["--", "--ServerApp.port=9"], None, True, ["--ServerApp.port=9"]),
        (["open"], None, True, []),
        (["open", "a.jsonl", "--no-browser"], "a.jsonl", False, []),
        (["open", "--", "--debug", "x"], None, True, ["--debug", "x"]),
        (["open", "a.jsonl", "--", "--debug", "--", "y"], "a.jsonl", True, ["--debug", "--", "y"]),
    ],
    ids=str,
)
def test_open(arguments: list[str], path: str | None, browser: bool, lab: list[str], run: Run, opened: list[dict[str, Any]]) -> None:
    assert run(*arguments).code == 5
    assert opened == [{"path": path, "format": None, "run": None, "browser": browser, "lab_args": lab}]


@pytest.mark.parametrize("kind", ["missing", "directory", "binary", "empty"])
def test_a_bad_file_is_one_line_before_anything_starts(kind: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    if kind == "directory":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(b"\0\x01\xff" * 99 if kind == "binary" else b"")
    monkeypatch.setattr(launch, "private_folder", lambda: pytest.fail("nothing may be written yet"))
    assert "x.jsonl" in run("open", path, "--no-browser").complaint


COMMAND = [sys.executable, "-c", "import sys; from workbench.cli import main; sys.exit(main())"]


def test_a_closed_pipe_ends_quietly(chat: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, "inspect", str(chat), "--json"], cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.stderr == b""
    assert done.returncode in (0, 1)  # Typer's own end at a closed pipe is 1


def test_json_is_ascii_whatever_the_terminal(chat: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [*COMMAND, "inspect", str(chat)]
    plain = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (plain.returncode, plain.stderr) == (0, b"")
    done = subprocess.run([*command, "--json"], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout.decode("ascii"))["transcripts"]
