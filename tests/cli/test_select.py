"""`workbench select`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shared import SAMPLES
from workbench.cli.select import item_document
from workbench.model import Budget, Message, Text, ToolCall, ToolResult
from workbench.policies.base import Added, Edited

from .conftest import Done

Run = Callable[..., Done]
TIGHT = ("--max-tokens", "240", "--reserve-output-tokens", "0", "--safety-margin-tokens", "0")


def test_the_document_has_the_promised_keys(run: Run, chat: Path) -> None:
    document = run("select", chat, "--json", *TIGHT).document
    assert document["policy"] == "scv"
    assert document["params"] == {"bytes_per_token": 3, "summary_max_chars": 6000, "note": "extracts"}
    assert document["budget"] == {"max_tokens": 240, "reserve_output_tokens": 0, "safety_margin_tokens": 0, "available": 240}
    assert document["feasible"] is True
    assert document["after_tokens"] < document["before_tokens"]
    assert set(document["own_estimate"]) == {"before", "after"}
    assert set(document["counts"]) == {"kept", "edited", "summarized", "dropped"}
    assert sum(document["counts"].values()) == len(document["fates"]) == 7
    assert [document["fates"].count(fate) for fate in document["counts"]] == list(document["counts"].values())
    assert document["indices"] == [item["keep"] for item in document["items"] if "keep" in item]
    [note] = document["notes"]
    [sent] = [item for item in document["items"] if "note" in item]
    assert (sent["note"], sent["covers"], sent["quotes"]) == (note["text"], note["covers"], note["quotes"])
    assert note["tokens"] > 0
    assert [at for at, fate in enumerate(document["fates"]) if fate == "summarized"] == note["covers"]
    assert all(step["text"] for step in document["steps"])
    assert all(set(finding) == {"provider", "rule", "messages", "text"} for finding in document["findings"])


def test_a_budget_that_cannot_hold_is_an_answer(run: Run, chat: Path) -> None:
    document = run("select", chat, "--json", "--max-tokens", "10", "--reserve-output-tokens", "0").document
    assert document["feasible"] is False
    assert document["needed"] > document["available"]
    assert document["culprit"]
    assert "fates" not in document
    done = run("select", chat, "--max-tokens", "10")
    assert done.code == 0
    assert "cannot hold" in done.out


def test_it_agrees_with_the_library(run: Run) -> None:
    import workbench as wb

    path = SAMPLES / "coding_agent.jsonl"
    selection = wb.select(wb.count(wb.read(path)), wb.policies.Scv(summary_max_chars=500), wb.Budget(32_000))
    document = run("select", path, "--json", "--max-tokens", "32000", "--set", "summary_max_chars=500").document
    assert (document["before_tokens"], document["after_tokens"]) == (selection.before_tokens, selection.after_tokens)
    assert document["fates"] == list(selection.fates)
    assert document["own_estimate"] == {"before": selection.own_before, "after": selection.own_after}
    assert [note["text"] for note in document["notes"]] == [note.message.text for note in selection.notes]


@pytest.mark.parametrize("setting", ["summary_max_chars=200", "scv.summary_max_chars=200", " scv.summary_max_chars = 200"])
def test_a_parameter_is_set_by_name(setting: str, run: Run, chat: Path) -> None:
    assert run("select", chat, "--json", "--set", setting).document["params"]["summary_max_chars"] == 200


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("colour=red", "has no parameter 'colour'"),
        ("summary_max_chars=many", "give a whole number"),
        ("summary_max_chars=-5", "allowed are"),
        ("none.x=1", "no policy 'none' is chosen"),
    ],
)
def test_a_wrong_setting_is_one_line(setting: str, says: str, run: Run, chat: Path) -> None:
    assert says in run("select", chat, "--set", setting).complaint


def test_a_policy_file_is_json_or_toml(run: Run, chat: Path, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"policy": "scv", "params": {"summary_max_chars": 300}}')
    (tmp_path / "p.toml").write_text('policy = "scv"\n[params]\nsummary_max_chars = 300\n')
    for name in ("p.json", "p.toml"):
        assert run("select", chat, "--json", "--policy-file", tmp_path / name).document["params"]["summary_max_chars"] == 300
    both = run("select", chat, "--json", "--policy-file", tmp_path / "p.json", "--set", "summary_max_chars=400", "--policy", "scv").document
    assert both["params"]["summary_max_chars"] == 400, "what is typed wins"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "neither JSON nor TOML"),
        ("[" * 100_000, "neither JSON nor TOML"),
        ("[1]", 'no "policy"'),
        ('{"policy": "scv", "params": 3}', "params is no object"),
        ('{"policy": "scv", "endpoint": "x"}', "'endpoint' is not known here"),
        ('{"policy": "scv", "params": {"bytes_per_token": "3"}}', "give a whole number"),
        ('{"policy": "scv", "params": {"__class__": 1}}', "has no parameter"),
        ('{"policy": "nonsense"}', "no policy is called 'nonsense'"),
        ('{"policy": "none"}', "but --policy asks for scv"),
    ],
)
def test_a_policy_file_is_not_trusted(text: str, says: str, run: Run, chat: Path, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text)
    extra = ("--policy", "scv") if "asks for" in says else ()
    assert says in run("select", chat, "--policy-file", tmp_path / "p.json", *extra).complaint


def test_a_policy_file_that_is_not_there_is_one_line(run: Run, chat: Path, tmp_path: Path) -> None:
    assert "cannot be read" in run("select", chat, "--policy-file", tmp_path / "none.json").complaint
    assert "cannot be read" in run("select", chat, "--policy-file", tmp_path).complaint
    (tmp_path / "big.json").write_text(" " * 1_000_001)
    assert "larger than" in run("select", chat, "--policy-file", tmp_path / "big.json").complaint


@pytest.mark.parametrize(
    "arguments",
    [
        ["--policy", "scv", "--policy", "none"],
        ["--set", "summary_max_chars"],
        ["--max-tokens", "-1"],
        ["--max-tokens", "many"],
        ["--history", "half"],
        ["--nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(arguments: list[str], run: Run, chat: Path) -> None:
    done = run("select", chat, *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err


def test_an_unknown_policy_or_thread_is_one_line(run: Run, chat: Path) -> None:
    assert "no policy is called 'scw'. Did you mean scv?" in run("select", chat, "--policy", "scw").complaint
    assert "no thread 'x'" in run("select", chat, "--thread", "x").complaint


def test_both_histories_can_be_asked_for(run: Run) -> None:
    path = SAMPLES / "long_session.jsonl"
    full = run("select", path, "--json", "--policy", "none").document
    live = run("select", path, "--json", "--policy", "none", "--history", "live").document
    assert live["before_tokens"] < full["before_tokens"]
    assert len(live["fates"]) < len(full["fates"])


def test_the_picture_shows_the_numbers_and_the_strip(run: Run, chat: Path) -> None:
    document = run("select", chat, "--json", *TIGHT).document
    out = run("select", chat, *TIGHT).out
    assert f"{document['before_tokens']:,} → {document['after_tokens']:,} tokens" in out
    [before] = [line for line in out.splitlines() if line.startswith("before")]
    [after] = [line for line in out.splitlines() if line.startswith("after")]
    assert set(before.removeprefix("before").strip()) == {"▒", "█"}
    assert len(after.strip()) < len(before.strip())
    assert document["steps"][0]["text"] in out


def message(*parts: object, role: str = "assistant") -> Message:
    return Message(0, "", role, parts)  # type: ignore[arg-type]


def test_an_edited_message_says_what_was_changed() -> None:
    calls = (ToolCall("a", "ls", {"p": 1}, '{"p":1}'), ToolCall("b", "ls", {}, "{}"), ToolCall("c", "ls", {"p": 2}, '{"p":2}'))
    before = message(Text("old"), *calls)
    after = message(Text("new"), dataclasses.replace(calls[0], arguments={}, arguments_raw="{}"), calls[1])
    assert item_document(Edited(0, after), (before,)) == {
        "edit": 0,
        "content": "new",
        "args_cleared": True,
        "args_cleared_ids": ["a"],
        "calls_kept": ["a", "b"],
    }
    result = message(ToolResult("a", "ls", (Text("[cleared]"),)), role="tool")
    cleared = item_document(Edited(0, result), (before,))
    assert (cleared["content"], cleared["args_cleared"]) == ("[cleared]", False)
    assert item_document(Added(message(Text("go on"), role="user"), "a nudge"), ()) == {"added": "go on", "role": "user", "reason": "a nudge"}


def test_the_default_budget_is_the_library_s(run: Run, chat: Path) -> None:
    budget = run("select", chat, "--json").document["budget"]
    assert {key: budget[key] for key in budget if key != "available"} == dataclasses.asdict(Budget())


def test_numbers_stay_whole(run: Run, chat: Path) -> None:
    out = run("select", chat, "--json", *TIGHT).out
    assert json.loads(out, parse_float=lambda text: pytest.fail(f"{text} is no whole number"))


@pytest.mark.parametrize("history", ["full", "live"])
def test_its_counts_are_those_of_inspect(history: str, run: Run) -> None:
    path = SAMPLES / "coding_agent.jsonl"  # its summary of a real compaction stands in one of the two histories only
    [seen] = run("inspect", path, "--json", "--history", history).document["transcripts"]
    chosen = run("select", path, "--json", "--history", history, "--max-tokens", "32000").document
    assert sum(chosen["counts"].values()) == seen["messages"]
    assert chosen["before_tokens"] == seen["tokens"]["total"]
