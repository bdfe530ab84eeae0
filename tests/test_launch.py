"""JupyterLab on a notebook that is made for one file."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.shared import ROOT, SAMPLES
from workbench import launch

HOSTILE = 'x"); import os #.jsonl'


@pytest.mark.parametrize("path", [HOSTILE, "a\nimport os", "'''", "\\", "{x}", "%run y", "!ls", "日本.jsonl", "\udcff", "\u202egpj.exe"])
def test_a_path_is_data(path: str) -> None:
    book = launch.notebook(path, format=path, run=path)
    nbformat.validate(nbformat.from_dict(json.loads(json.dumps(book))))
    imported, read, widget, shown = ast.parse(book["cells"][1]["source"]).body
    assert ast.unparse(imported) == "import workbench as wb"
    assert isinstance(read, ast.Assign)
    call = read.value
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == "wb.read"
    assert [argument.value for argument in call.args if isinstance(argument, ast.Constant)] == [path]
    assert {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)} == {"format": path, "run": path}
    assert (ast.unparse(widget), ast.unparse(shown)) == ("w = wb.Workbench(t)", "w")
    assert path not in book["cells"][0]["source"]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "context-workbench"


def test_the_folder_is_private_and_not_beside_the_source(state: Path, tmp_path: Path) -> None:
    source = tmp_path / "sources" / HOSTILE
    source.parent.mkdir()
    folder = launch.private_folder()
    assert folder == state
    target = launch.write_notebook(folder, source)
    assert target.parent == state / "notebooks"
    assert re.fullmatch(r"x-import-os-[0-9a-f]{8}\.ipynb", target.name)
    assert list(source.parent.iterdir()) == []
    if os.name != "nt":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(target.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_an_open_folder_is_closed_to_others(state: Path) -> None:
    state.mkdir(parents=True)
    state.chmod(0o777)
    assert stat.S_IMODE(launch.private_folder().stat().st_mode) == 0o700


def test_a_link_in_its_place_is_not_followed(state: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    state.parent.mkdir()
    state.symlink_to(tmp_path / "theirs")
    folder = launch.private_folder()
    try:
        assert folder.resolve() not in (state.resolve(), tmp_path / "theirs")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        shutil.rmtree(folder)


def test_what_a_person_wrote_into_a_notebook_stays(state: Path) -> None:
    folder = launch.private_folder()
    first = launch.write_notebook(folder, Path("a/run.jsonl"))
    first.write_text("mine")
    assert launch.write_notebook(folder, Path("a/run.jsonl")) == first
    assert first.read_text() == "mine"
    others = {launch.write_notebook(folder, Path(name), format_) for name, format_ in (("b/run.jsonl", None), ("a/run.jsonl", "codex"))}
    assert first not in others
    assert len(others) == 2


def test_what_jupyterlab_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    target = tmp_path / "run-1a.ipynb"
    arguments = launch.lab_arguments(target, browser=True, extra=["--ServerApp.port=1"])
    assert f"--ServerApp.root_dir={tmp_path}" in arguments
    assert "--LabApp.default_url=/lab/tree/run-1a.ipynb" in arguments
    assert "--no-browser" in arguments  # there is no display
    assert "--allow-root" not in arguments
    assert arguments[-1] == "--ServerApp.port=1"
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    arguments = launch.lab_arguments(target, browser=True)
    assert "--no-browser" not in arguments
    assert "--allow-root" in arguments
    assert "--no-browser" in launch.lab_arguments(target, browser=False)


def test_the_sample_is_there() -> None:
    assert launch.sample() == SAMPLES / "coding_agent.jsonl"
    with pytest.raises(launch.WorkbenchError, match=r"nothing\.jsonl is not installed"):
        launch.sample("nothing.jsonl")


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def test_jupyterlab_starts_on_the_notebook(state: Path, tmp_path: Path) -> None:
    """One real start: the printed address leads to the notebook, its kernel is this Python, no news are fetched."""
    source = tmp_path / HOSTILE
    source.write_bytes((SAMPLES / "coding_agent.jsonl").read_bytes())
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    environment |= {name: str(tmp_path / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    command = [sys.executable, "-c", "import sys; from workbench.cli import main; sys.exit(main())", "open", str(source)]
    log = tmp_path / "log"
    with log.open("wb") as file:
        lab = subprocess.Popen([*command, "--", "--ServerApp.port=0"], cwd=ROOT, env=environment, stdout=file, stderr=file, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not (found := re.search(r"(http://127\.0\.0\.1:\d+)/lab/tree/(\S+\.ipynb)\?token=(\w+)", log.read_text("utf-8", "replace"))):
            assert lab.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        server, name, token = found.groups()
        book = ask(f"{server}/api/contents/{name}?token={token}")["content"]
        assert f"wb.read({str(source)!r})" in book["cells"][1]["source"]
        kernels = ask(f"{server}/api/kernelspecs?token={token}")
        assert kernels["kernelspecs"]["python3"]["spec"]["argv"][0] == sys.executable
        settings = ask(f"{server}/lab/api/settings/@jupyterlab/apputils-extension:notification?token={token}")
        assert settings["schema"]["properties"]["fetchNews"]["default"] == "false"
    finally:
        lab.send_signal(signal.SIGTERM)
        lab.wait(30)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".ipynb") == []
