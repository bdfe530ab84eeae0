"""Readers of third parties: a real package, installed without a network, and every way in which one can be broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import jsonl
from workbench import readers
from workbench.errors import PluginError, ReadError, UnknownFormat
from workbench.model import Transcript
from workbench.readers import Match, ReaderInfo, plugins

PLUGIN = Path(__file__).parents[1] / "plugin"
ROOT = Path(__file__).parents[2]
ROWS = [{"speaker": "Ann", "line": "Hello"}, {"speaker": "bot", "line": "Hi"}, {"speaker": 7}]
ASK = """
import json, sys
from workbench import readers
runs = readers.read_all(sys.argv[1])
source = runs[0].source
print(json.dumps([source.format, source.confidence, source.reasons, [[m.role, m.text] for m in runs[0].messages], runs[0].records.skipped,
                  [info.name for info in readers.list()][-1], readers.read(sys.argv[1], format="dialogue").source.confidence]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the package; its source is copied first, so that nothing is written here."""
    copy, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for file in ("pyproject.toml", "workbench_dialogue/__init__.py"):
        (copy / file).parent.mkdir(exist_ok=True)
        (copy / file).write_bytes((PLUGIN / file).read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--target", str(target), str(copy)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return target


def test_an_installed_package_reads_its_format(installed: Path, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "talk.jsonl", ROWS)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(installed), str(ROOT)))}
    done = subprocess.run([sys.executable, "-c", ASK, str(path)], capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    expected = ["dialogue", 0.9, ["lines with speaker and line"], [["user", "Hello"], ["assistant", "Hi"]], 1, "dialogue", 1.0]
    assert json.loads(done.stdout) == expected
    with pytest.raises(UnknownFormat, match=r"first keys: speaker, line"):
        readers.read(path)  # here it is not installed


class Dialogue:
    """A reader that does as it is told, for the ways in which one can fail."""

    info = ReaderInfo("dialogue", "For tests.")
    detects: Any = Match(0.99, ("told so",))
    reads: Any = ()

    def detect(self, document: Any) -> Any:
        return self._do(self.detects)

    def read(self, document: Any) -> Any:
        return self._do(self.reads)

    @staticmethod
    def _do(what: Any) -> Any:
        if isinstance(what, Exception):
            raise what
        return what


class NoReader:
    info = "dialogue"


def boom() -> None:
    raise RuntimeError("two\nlines")


class Unborn:
    def __init__(self) -> None:
        boom()


class Namesake(Dialogue):
    info = ReaderInfo("codex", "Takes the name of another.")


class Synonym(Dialogue):
    info = ReaderInfo("har", "Takes what another is called elsewhere.")


INSTANCE = Dialogue()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Make objects of this module look like installed plug-ins."""

    def make(*names: str) -> None:
        points = [EntryPoint(name.lower(), f"{__name__}:{name}", plugins.GROUP) for name in names]
        monkeypatch.setattr(plugins, "entry_points", lambda group: [point for point in points if point.group == group])
        readers._installed.cache_clear()

    yield make
    readers._installed.cache_clear()


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "t.jsonl", [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])


@pytest.mark.parametrize("name", ["Dialogue", "INSTANCE"])
def test_an_object_or_its_class(install: Callable[..., None], name: str) -> None:
    install(name)
    assert readers.list()[-1].name == "dialogue"
    assert readers.get("dialogue").info.summary == "For tests."


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NoReader", "cannot be loaded (TypeError: it is no reader: info, detect and read are needed); update or uninstall that package"),
        ("Unborn", "cannot be loaded (RuntimeError: two lines); update or uninstall that package"),
        ("Missing", "cannot be loaded (AttributeError: module "),
        ("Namesake", "is called 'codex', and so is another one; uninstall one of them"),
        ("Synonym", "is called 'har', and so is another one; uninstall one of them"),
    ],
)
def test_a_broken_one_is_told_and_stops_no_other(install: Callable[..., None], chat: Path, tmp_path: Path, name: str, said: str) -> None:
    install(name)
    assert readers.read(chat).source.format == "openai-chat"
    assert "dialogue" not in {info.name for info in readers.list()}
    with pytest.raises(PluginError) as caught:
        readers.get(name.lower())
    assert f"reader '{name.lower()}' of {__name__}:{name} {said}" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UnknownFormat) as unknown:
        readers.read(jsonl(tmp_path / "u.jsonl", ROWS))
    assert said in str(unknown.value)


def test_two_of_one_name(install: Callable[..., None], chat: Path) -> None:
    install("Dialogue", "INSTANCE")
    assert [info.name for info in readers.list()].count("dialogue") == 1
    with pytest.raises(PluginError, match=r"reader 'instance' of .* is called 'dialogue', and so is another one"):
        readers.get("instance")


@pytest.mark.parametrize("what", [ValueError("x\ny"), 7, "x"])
def test_one_that_fails_at_a_file_is_named(install: Callable[..., None], chat: Path, monkeypatch: pytest.MonkeyPatch, what: Any) -> None:
    install("Dialogue")
    monkeypatch.setattr(Dialogue, "detects", what)
    with pytest.raises(
        PluginError,
        match=r"^reader 'dialogue' of .* failed on t\.jsonl \((ValueError: x y|TypeError: detect gave \w+, not Match or None)\); pass another format=",
    ):
        readers.read(chat)
    assert readers.read(chat, format="openai-chat").messages
    monkeypatch.setattr(Dialogue, "detects", None)
    assert readers.read(chat).source.format == "openai-chat"
    monkeypatch.setattr(Dialogue, "reads", what)
    with pytest.raises(PluginError, match=r"failed on t\.jsonl"):
        readers.read(chat, format="dialogue")


def test_its_own_refusal_is_passed_on(install: Callable[..., None], chat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("Dialogue")
    monkeypatch.setattr(Dialogue, "reads", ReadError("t.jsonl: too old; export it again"))
    with pytest.raises(ReadError, match=r"too old"):
        readers.read(chat)
    monkeypatch.setattr(Dialogue, "reads", [Transcript("t", readers.read(chat, format="openai-chat").source, meta={})])
    assert readers.read(chat).title == "t.jsonl"
