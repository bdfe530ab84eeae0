"""A wheel is built, installed into a new environment, and used from an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.shared import ROOT, SAMPLES


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of a new environment with the wheel in it. The dependencies are those of this one; the project itself is not."""
    env = tmp_path_factory.mktemp("env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    python = env / "bin" / "python"
    site = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True).strip()
    # A line of a .pth file adds a folder, but does not read the .pth files in it: the checkout stays out of reach.
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    try:
        import pip  # noqa: F401

        install = [str(python), "-m", "pip", "install", "--no-deps", "--no-index", "--ignore-installed", "--disable-pip-version-check", "--no-input"]
    except ImportError:  # the environment was made by uv
        install = ["uv", "pip", "install", "--python", str(python), "--no-deps", "--no-index", "--reinstall"]
    done = subprocess.run([*install, str(wheel)], cwd=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return env / "bin"


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_it_holds_all_that_is_needed_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name for name in names if name.startswith("workbench/")}
    for path in (ROOT / "workbench").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(ROOT).as_posix() in inside
    samples = {name.rsplit("/", 1)[1] for name in inside if name.startswith("workbench/sample_transcripts/")}
    assert samples == {path.name for path in SAMPLES.glob("*.json*")}, "keep the list in pyproject.toml as it is in the folder"
    assert {name.split("/")[0] for name in names} == {"workbench", f"{wheel.name.split('-py3')[0]}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_it_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < 8_000_000


def test_it_is_used_from_an_empty_folder(bin_folder: Path, tmp_path: Path) -> None:
    where = run(bin_folder / "python", "-c", "import workbench; print(workbench.__file__)", cwd=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(bin_folder.parent), where
    sample = run(bin_folder / "python", "-c", "from workbench import launch; print(launch.sample())", cwd=tmp_path)
    path = sample.stdout.strip()
    assert Path(path).is_relative_to(bin_folder.parent), sample

    inspected = run(bin_folder / "workbench", "inspect", path, "--json", cwd=tmp_path)
    assert inspected.returncode == 0, inspected.stderr
    [entry] = json.loads(inspected.stdout)["transcripts"]
    assert entry["format"] == "claude-code"
    selected = run(bin_folder / "python", "-m", "workbench", "select", path, "--max-tokens", "32000", "--json", cwd=tmp_path)
    assert selected.returncode == 0, selected.stderr
    assert json.loads(selected.stdout)["before_tokens"] == entry["tokens"]["total"]
    assert list(tmp_path.iterdir()) == []


def test_what_belongs_to_a_clone_says_so(bin_folder: Path, tmp_path: Path) -> None:
    setup = run(bin_folder / "python", "-m", "workbench", "setup", cwd=tmp_path)
    assert (setup.returncode, setup.stdout) == (0, "")
    assert "Nothing to set up" in setup.stderr
    for command in ([bin_folder / "workbench", "test"], [bin_folder / "python", "-m", "workbench", "test"]):
        tests = run(*command, cwd=tmp_path)
        assert tests.returncode == 1
        assert "a clone of the project" in tests.stderr
    assert list(tmp_path.iterdir()) == []
