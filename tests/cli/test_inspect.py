"""`workbench inspect`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shared import SAMPLES
from workbench.model import KINDS, Usage

from .conftest import CHAT, Done

Run = Callable[..., Done]


def whole_numbers(value: object) -> bool:
    """True if no number in a document is a fraction."""
    if isinstance(value, dict):
        return all(whole_numbers(item) for item in value.values())
    return all(map(whole_numbers, value)) if isinstance(value, list) else not isinstance(value, float)


def test_the_document_has_the_promised_keys(run: Run, chat: Path) -> None:
    document = run("inspect", chat, "--json").document
    assert list(document) == ["transcripts"]
    [entry] = document["transcripts"]
    assert entry["title"] == "chat.json"
    assert (entry["model"], entry["messages"], entry["turn_groups"]) == ("gpt-4o", 7, 2)
    assert entry["threads"] == [{"id": "main", "kind": "main", "messages": 7, "tokens": entry["tokens"]["total"]}]
    assert set(entry["tokens"]["by_kind"]) == set(KINDS)
    assert sum(entry["tokens"]["by_kind"].values()) == entry["tokens"]["total"]
    assert entry["tokens"]["by_kind"]["system"] > 0
    assert 0 < entry["tokens"]["fixed"] < entry["tokens"]["total"]
    total = entry["tokens"]["total"]
    assert {key: entry["counter"][key] for key in ("id", "exact", "low", "high")} == {"id": "o200k_base", "exact": True, "low": total, "high": total}
    assert entry["usage"] == dict.fromkeys(Usage.BUCKETS), "what is not recorded is null, never 0"
    assert entry["compactions"] == entry["diagnostics"] == []
    assert set(entry["records"]) == {"messages", "calls", "compactions", "metadata", "skipped", "total"}
    assert sum(value for key, value in entry["records"].items() if key != "total") == entry["records"]["total"]
    assert 0 < entry.pop("confidence") <= 1
    assert whole_numbers(entry)


def test_usage_and_range_of_a_session(run: Run) -> None:
    [entry] = run("inspect", SAMPLES / "coding_agent.jsonl", "--json").document["transcripts"]
    assert entry["format"] == "claude-code"
    assert entry["calls"] > 0
    assert all(isinstance(entry["usage"][name], int) for name in ("input_uncached", "cache_read", "output"))
    assert not entry["counter"]["exact"]
    assert entry["counter"]["low"] < entry["tokens"]["total"] < entry["counter"]["high"]


def test_a_counter_may_be_chosen(run: Run, chat: Path) -> None:
    [entry] = run("inspect", chat, "--json", "--counter", "chars/4").document["transcripts"]
    assert (entry["counter"]["id"], entry["counter"]["exact"]) == ("chars/4", False)


def test_several_files_are_one_document(run: Run, chat: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps(CHAT[1:2]))
    entries = run("inspect", chat, other, "--json").document["transcripts"]
    assert [(entry["title"], entry["messages"]) for entry in entries] == [("chat.json", 7), ("other.json", 1)]


def test_a_bad_file_hides_no_good_one(run: Run, chat: Path, tmp_path: Path) -> None:
    done = run("inspect", tmp_path / "none.json", chat, "--json")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "none.json" in done.err
    assert len(json.loads(done.out)["transcripts"]) == 1


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Three conversations, one a line."""
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"messages": [{"role": "user", "content": f"question {at}"}] * (at + 1)}) + "\n" for at in range(3)))
    return path


def test_a_file_of_many_runs_gives_an_entry_for_each(run: Run, many: Path) -> None:
    entries = run("inspect", many, "--json").document["transcripts"]
    assert [entry["messages"] for entry in entries] == [1, 2, 3]
    [second] = run("inspect", many, "--json", "--run", "1").document["transcripts"]
    [by_id] = run("inspect", many, "--json", "--run", entries[1]["id"]).document["transcripts"]
    assert second == by_id == entries[1]


def bad(folder: Path, kind: str) -> list[object]:
    """Arguments that cannot be read as a transcript, by what is wrong with them."""
    path = folder / "bad.jsonl"
    if kind == "a directory":
        return [folder]
    if kind != "nothing there":
        path.write_bytes(
            {"empty": b"", "binary": bytes(range(256)) * 40, "no line that can be read": b"{\n}}\n[[[\n", "only spaces": b" \n \n"}.get(kind, b'{"a": 1}\n')
        )
    return {"a wrong format": [path, "--format", "codex"], "no such format": [path, "--format", "nonsense"]}.get(kind, [path])


BAD = ["nothing there", "a directory", "empty", "binary", "no line that can be read", "only spaces", "an unknown format", "a wrong format", "no such format"]


@pytest.mark.parametrize("command", ["inspect", "select"])
@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_line_that_names_the_file(kind: str, command: str, run: Run, tmp_path: Path) -> None:
    complaint = run(command, *bad(tmp_path, kind), "--json").complaint
    assert (tmp_path.name if kind == "a directory" else "nonsense" if kind == "no such format" else "bad.jsonl") in complaint


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [("--thread", "elsewhere", "it has 'main'"), ("--run", "7", "has no run '7'"), ("--counter", "guess", "no counter 'guess'")],
)
def test_what_is_not_there_is_one_line(option: str, value: str, says: str, run: Run, chat: Path) -> None:
    assert says in run("inspect", chat, option, value).complaint


def test_a_file_name_and_its_texts_are_never_markup(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "[red]\x1b[31m[link=x]\u202e\n.json"
    path.write_text(json.dumps([{"role": "user", "content": "[/red] \x1b]8;;x\x07"}]))
    done = run("inspect", path)
    assert done.code == 0
    assert "[red]\\x1b[31m[link=x]\\u202e\\n.json" in done.out
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out
    path.unlink()
    assert "\x1b" not in run("inspect", path).complaint


def test_a_lone_surrogate_spoils_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"role": "user", "content": "\\ud83d and \\udc00", "name": "\\ud800"}]')
    assert run("inspect", path, "--json").document["transcripts"][0]["messages"] == 1
    assert run("inspect", path).code == 0
    items = run("select", path, "--policy", "none", "--json").document["items"]
    assert items == [{"keep": 0}]


@pytest.mark.skipif(os.name == "nt", reason="file names are text there")
def test_a_file_name_that_is_no_text_is_read(run: Run, tmp_path: Path, chat: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    try:
        Path(path).write_bytes(chat.read_bytes())
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    assert run("inspect", path, "--json").document["transcripts"][0]["messages"] == 7
    assert run("inspect", path).code == 0


def test_the_table_says_what_the_document_says(run: Run, chat: Path) -> None:
    [entry] = run("inspect", chat, "--json").document["transcripts"]
    out = run("inspect", chat).out
    assert f"{entry['tokens']['total']:,} tokens" in out
    for kind, tokens in entry["tokens"]["by_kind"].items():
        assert (f"{tokens:,}" in out and kind in out) or not tokens
    assert "no usage is recorded" in out


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json*")), ids=lambda path: path.name)
def test_every_sample_is_inspected_and_left_as_it_is(path: Path, run: Run) -> None:
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    entries = run("inspect", path, "--json").document["transcripts"]
    assert entries
    assert all(entry["messages"] and sum(entry["tokens"]["by_kind"].values()) == entry["tokens"]["total"] for entry in entries)
    assert run("inspect", path).code == 0
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
