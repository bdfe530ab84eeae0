"""The README is true: its code runs, its commands work, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.shared import ROOT
from workbench.cli import main

README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_ten_lines_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    [code] = blocks("python")
    assert len(code.strip().splitlines()) <= 10
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    import workbench as wb

    assert isinstance(names["t"], wb.Transcript)
    assert isinstance(names["sel"], wb.Selection)


def commands() -> list[str]:
    return [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines() if line.startswith(".venv/bin/workbench ")]


@pytest.mark.parametrize("command", commands())
@pytest.mark.parametrize("extra", [[], ["--json"]], ids=["", "json"])
def test_a_command_works(command: str, extra: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)[1:] + extra) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_paths_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:workbench|tests|sample_transcripts)/[\w./]*)`", text))
    assert len(named) > 8
    assert [name for name in sorted(named) if not Path(ROOT / name).exists()] == []
