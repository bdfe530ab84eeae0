"""What is said of a source that no reader knows: what was seen, and which reader came nearest; folders too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, jsonl
from workbench import readers
from workbench.errors import ReadError, UnknownFormat

CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
CODEX = [{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}},
         {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": {"type": "message", "role": "user", "content": []}}]  # fmt: skip


def said(path: Path) -> str:
    with pytest.raises(UnknownFormat) as caught:
        readers.read(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_the_nearest_reader_is_named_with_what_it_would_read(tmp_path: Path) -> None:
    rows = [{"event": "x", "n": n} for n in range(6)] + CHAT
    assert "no reader knows t.jsonl (first keys: event, n); nearest is openai-chat, which would read 2 of 8 records; known: " in said(
        jsonl(tmp_path / "t.jsonl", rows)
    )
    assert "; no reader comes near; known: " in said(as_json(tmp_path / "t.json", {"alpha": 1}))


def test_a_folder_of_sessions_says_what_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    (folder / "b").mkdir(parents=True)
    jsonl(folder / "one.jsonl", CHAT)
    jsonl(folder / "two.jsonl", CHAT)
    jsonl(folder / "b" / "three.jsonl", CODEX)
    (folder / "notes.txt").write_text("nothing\n", "utf-8")
    (folder / ".hidden.jsonl").write_text(json.dumps(CHAT), "utf-8")
    seen = "no reader knows sessions (a directory of b, notes.txt, one.jsonl, two.jsonl); "
    assert f"{seen}of its first 4 files 2 are openai-chat (one.jsonl, …), 1 is codex (b/three.jsonl): read one of them" in said(folder)


def test_a_folder_of_nothing_known(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    assert "(a directory of no files); none of its first files is of a known format; known: " in said(folder)
    (folder / "a\nb\x1b[31m.txt").write_text("x", "utf-8")
    assert r"a directory of a\nb\x1b[31m.txt" in said(folder)


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "x", tmp_path / "y"
    folder.mkdir()
    elsewhere.mkdir()
    jsonl(elsewhere / "secret.jsonl", CHAT)
    try:
        (folder / "file.jsonl").symlink_to(elsewhere / "secret.jsonl")
        (folder / "dir").symlink_to(elsewhere, target_is_directory=True)
    except OSError:
        pytest.skip("links cannot be made here")
    assert "none of its first files" in said(folder)


def test_a_folder_with_many_files_is_looked_at_briefly(tmp_path: Path) -> None:
    for number in range(40):
        jsonl(tmp_path / f"{number:02}.jsonl", CHAT)
    assert "of its first 12 files 12 are openai-chat (00.jsonl, …): read one of them" in said(tmp_path)


@pytest.mark.parametrize("name", ["openai-chat", "otel-genai", "http-capture"])
def test_a_folder_and_a_reader_that_opens_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReadError, match=r"is a directory: the reader .* does not open that"):
        readers.read(tmp_path, format=name)


@pytest.mark.parametrize(
    "value", [[1, 2], [[]], ["x"], {"": None}, {"messages": 7}, [{"role": 1}] * 3, {"log": {}}, {"resourceSpans": 5}, {"observations": {}}]
)
def test_nothing_but_one_line_whatever_is_in_it(tmp_path: Path, value: Any) -> None:
    path = as_json(tmp_path / "t.json", value)
    with pytest.raises(ReadError, match=r"t\.json") as caught:
        readers.read(path)
    assert "\n" not in str(caught.value)
