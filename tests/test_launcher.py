"""`python3 -m workbench`: the environment is made once, renewed when a pin changes, and never half used."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.shared import ROOT
from workbench import __main__ as launcher
from workbench import checks

PYTHON = "python.exe" if os.name == "nt" else "python"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "workbench").mkdir()
    (tmp_path / "workbench" / "constraints.txt").write_text("numpy==2.0\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "context-workbench"\n')
    return tmp_path


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Makes real environments, but installs nothing into them; records what it was asked to run."""
    asked: list[list[str]] = []

    def step(command: list[str], log: str, root: str) -> None:
        asked.append(command)
        if "venv" in command:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", command[-1]], check=True)

    monkeypatch.setattr(launcher, "step", step)
    monkeypatch.setattr("shutil.which", lambda name: None)
    return asked


def test_it_is_built_once(clone: Path, steps: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    python = launcher.prepare(str(clone))
    assert Path(python).exists()
    assert [command[2] for command in steps] == ["venv", "pip"]
    assert steps[1][-4:] == ["-c", os.path.join("workbench", "constraints.txt"), "-e", ".[test]"]
    assert launcher.prepare(str(clone)) == python
    assert len(steps) == 2
    assert capsys.readouterr().out == ""  # standard output belongs to the command


@pytest.mark.parametrize("name", ["pyproject.toml", "workbench/constraints.txt"])
def test_a_changed_pin_rebuilds_from_nothing(name: str, clone: Path, steps: list[list[str]]) -> None:
    launcher.prepare(str(clone))
    leftover = clone / ".venv" / "leftover"
    leftover.write_text("from the build before")
    with (clone / name).open("a") as file:
        file.write("# changed\n")
    launcher.prepare(str(clone))
    assert len(steps) == 4
    assert not leftover.exists()


def test_a_moved_clone_rebuilds(clone: Path, steps: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    launcher.prepare(str(clone))
    moved = tmp_path_factory.mktemp("elsewhere") / "moved"
    clone.rename(moved)
    launcher.prepare(str(moved))
    assert len(steps) == 4


def test_an_interrupted_build_is_redone(clone: Path, steps: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = launcher.step

    def interrupted(command: list[str], log: str, root: str) -> None:
        whole(command, log, root)
        if "pip" in command:
            raise KeyboardInterrupt

    monkeypatch.setattr(launcher, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launcher.prepare(str(clone))
    assert not launcher.is_ready(str(clone / ".venv"), str(clone))
    monkeypatch.setattr(launcher, "step", whole)
    launcher.prepare(str(clone))
    assert [command[2] for command in steps] == ["venv", "pip", "venv", "pip"]
    assert launcher.is_ready(str(clone / ".venv"), str(clone))


def test_an_environment_whose_python_is_gone_is_redone(clone: Path, steps: list[list[str]]) -> None:
    python = Path(launcher.prepare(str(clone)))
    python.unlink()
    launcher.prepare(str(clone))
    assert python.exists()


def test_an_environment_made_by_a_person_is_kept_and_brought_up_to_date(clone: Path, steps: list[list[str]]) -> None:
    env = clone / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    (env / "mine").write_text("keep me")
    for change in ("", "# changed\n"):
        with (clone / "pyproject.toml").open("a") as file:
            file.write(change)
        launcher.prepare(str(clone))
        assert (env / "mine").read_text() == "keep me"
    assert [command[2] for command in steps] == ["pip", "pip"]


def test_a_folder_that_is_no_environment_is_not_removed(clone: Path, steps: list[list[str]]) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv" / "thesis.txt").write_text("important")
    with pytest.raises(launcher.SetupError, match="was not made by the workbench"):
        launcher.prepare(str(clone))
    assert (clone / ".venv" / "thesis.txt").exists()


def test_a_link_is_replaced_and_what_it_leads_to_stays(clone: Path, steps: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("target")
    (clone / ".venv").symlink_to(target, target_is_directory=True)
    launcher.prepare(str(clone))
    assert target.is_dir()
    assert not (clone / ".venv").is_symlink()


def test_uv_is_used_if_it_is_there(clone: Path, steps: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/opt/uv" if name == "uv" else None)
    python = launcher.prepare(str(clone))
    assert steps[0][3] == "--without-pip"
    assert steps[1][:5] == ["/opt/uv", "pip", "install", "--python", python]


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_missing_module_is_one_line_that_says_what_to_install(module: str, clone: Path, steps: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(launcher.SetupError, match=rf"no {module} module; install it .*apt install python3\.\d+-venv") as caught:
        launcher.prepare(str(clone))
    assert "\n" not in str(caught.value)
    assert steps == []
    assert not (clone / ".venv").exists()


def test_a_failing_step_shows_the_end_of_its_log(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = clone / "log"
    with pytest.raises(launcher.SetupError, match="set-up failed"):
        launcher.step([sys.executable, "-c", "print('Collecting x'); print('no such package'); raise SystemExit(3)"], str(log), str(clone))
    said = capsys.readouterr()
    assert "no such package" in said.err
    assert said.out == ""


def test_two_starts_at_once_build_once(clone: Path) -> None:
    """The second waits for the first, and then finds a finished environment."""
    script = f"""
import subprocess, sys, time
sys.path.insert(0, {str(ROOT)!r})
from workbench import __main__ as launcher
def step(command, log, root):
    if "venv" in command:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", command[-1]], check=True)
        open({str(clone / "started")!r}, "a").write("x")
        time.sleep(1)
launcher.step = step
print(launcher.prepare({str(clone)!r}))
"""
    first = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (clone / "started").exists():
        assert time.monotonic() < deadline
        assert first.poll() is None
        time.sleep(0.02)
    second = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    out, _ = first.communicate(timeout=60)
    assert out == second.stdout
    assert (clone / "started").read_text() == "x"
    assert "waiting for it" in second.stderr


def test_an_old_python_is_told_which_is_needed() -> None:
    code = "import sys, runpy; sys.version_info = (3, 9, 1, 'final', 0); runpy.run_module('workbench', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "workbench: this is Python 3.9; Python 3.11 or newer is needed\n"


def test_a_clone_is_told_from_an_installed_package(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("site-packages")
    assert launcher.is_clone(str(clone))
    assert not launcher.is_clone(str(other))
    (other / "pyproject.toml").write_text('[project]\nname = "something-else"\n')
    assert not launcher.is_clone(str(other))


def test_a_folder_that_cannot_be_written_is_one_line(clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(env: str, root: str) -> bool:
        raise PermissionError(13, "Permission denied", env)

    monkeypatch.setattr(launcher, "is_ready", refuse)
    monkeypatch.setattr(launcher, "ROOT", str(clone))
    assert launcher.main(["inspect"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Permission denied" in said


def test_arguments_after_test_go_to_pytest(capfd: pytest.CaptureFixture[str]) -> None:
    assert checks.main(["--version"]) == 0
    assert "pytest" in "".join(capfd.readouterr())
    assert checks.main(["tests/there_is_no_such_test.py"]) == 4


def test_the_exit_code_says_whether_every_check_passed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[str] = []

    def run(command: list[str]) -> int:
        ran.append(command[2])
        return int(command[2] in broken)

    monkeypatch.setattr(checks, "_run", run)
    broken: set[str] = set()
    assert checks.main([]) == 0
    assert ran == ["pytest", "ruff", "ruff", "mypy"]
    broken.add("mypy")
    assert checks.main([]) == 1
    assert "FAILED  mypy" in capsys.readouterr().out
