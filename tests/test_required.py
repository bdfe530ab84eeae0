"""WORKBENCH_REQUIRE: where it names a mark, a skip is a failure; elsewhere what a machine lacks is skipped with the reason."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.shared import ROOT, SHARED, needs_shared


@needs_shared
def test_the_shared_data_is_there() -> None:
    assert (SHARED / "transcripts").is_dir()


def run(require: str, shared: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WORKBENCH_REQUIRE": require, "WORKBENCH_SHARED": shared}
    return subprocess.run([sys.executable, "-m", "pytest", "-ra", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


NODE = "tests/test_required.py::test_the_shared_data_is_there"


def test_what_is_missing_is_skipped_with_the_reason(tmp_path: object) -> None:
    done = run("", f"{tmp_path}", NODE)
    assert done.returncode == 0
    assert "1 skipped" in done.stdout
    assert "name its folder in WORKBENCH_SHARED" in done.stdout


def test_what_is_required_may_not_be_skipped(tmp_path: object) -> None:
    done = run("transcripts", f"{tmp_path}", NODE)
    assert done.returncode == 1
    assert "1 error" in done.stdout  # it never came to its call
    assert "forbids it" in done.stdout


@pytest.mark.parametrize("require", ["transcript", "browser,cluster"])
def test_an_unknown_requirement_is_an_error(require: str, tmp_path: object) -> None:
    done = run(require, f"{tmp_path}", NODE)
    assert done.returncode == 4
    assert "known are browser, transcripts" in done.stderr
