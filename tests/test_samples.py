"""The sample transcripts: built as their generator builds them, read as they are meant, believable, and free of secrets."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.shared import SAMPLES
from workbench.model import Media, Message, ToolCall, Transcript, compact_json
from workbench.turns import starts_turn, tool_pairs, turn_groups

NAMES = ("coding_agent.jsonl", "research_chat.json", "support_session.json", "long_session.jsonl", "damaged.jsonl")
SOUND = NAMES[:4]


@cache
def sample(name: str) -> Transcript:
    return wb.read(SAMPLES / name)


def main(name: str, which: Any = "full") -> list[Message]:
    transcript = sample(name)
    return [transcript.messages[index] for index in transcript.history(which=which)]


def words(message: Message) -> str:
    """All that a message says: text, tool result, arguments of calls."""
    result = message.result.text if message.result else ""
    return "\n".join([message.text, result, *(compact_json(call.arguments) for call in message.calls)])


def lines(name: str) -> Iterator[dict[str, Any]]:
    for line in (SAMPLES / name).read_text(encoding="utf-8").split("\n"):
        if line:
            yield json.loads(line)


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the generator; its plain names are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(SAMPLES / "make"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if not name.startswith(("workbench", "tiktoken")) and str(SAMPLES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


# -- made as said ------------------------------------------------------------------------------------------------------


def test_generator_makes_the_same_bytes() -> None:
    done = subprocess.run([sys.executable, str(SAMPLES / "make" / "build.py"), "--check"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{name}: as built" for name in NAMES], done.stderr
    assert done.returncode == 0


def test_sizes() -> None:
    assert (SAMPLES / "long_session.jsonl").stat().st_size < 2_500_000
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts) < 4_000_000


# -- read as meant -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "format", "messages", "full", "live", "people", "calls", "threads", "compactions"),
    [
        ("coding_agent.jsonl", "claude-code", 226, 225, 98, 31, 91, 2, 1),
        ("research_chat.json", "openai-chat", 69, 69, 69, 13, 29, 1, 0),
        ("support_session.json", "anthropic", 41, 41, 41, 9, 18, 1, 0),
        ("long_session.jsonl", "codex", 1535, 1534, 463, 83, 712, 1, 1),
        ("damaged.jsonl", "openai-chat", 25, 25, 25, 7, 11, 1, 0),
    ],
)
def test_counts(name: str, format: str, messages: int, full: int, live: int, people: int, calls: int, threads: int, compactions: int) -> None:
    transcript = sample(name)
    assert transcript.source.format == format
    assert len(transcript.thread()) == messages
    assert (len(main(name)), len(main(name, "live"))) == (full, live)
    assert sum(map(starts_turn, main(name))) == people
    assert (len(transcript.calls), len(transcript.threads), len(transcript.compactions)) == (calls, threads, compactions)


@pytest.mark.parametrize("name", SOUND)
def test_sound_samples_read_without_complaint(name: str) -> None:
    transcript = sample(name)
    assert transcript.diagnostics == ()
    assert transcript.records.skipped == 0
    pairs = tool_pairs([transcript.messages[index] for index in transcript.thread()])
    assert all(pair.call is not None and pair.result is not None and not pair.duplicates for pair in pairs)


def test_coding_agent_has_what_the_lessons_need() -> None:
    transcript = sample("coding_agent.jsonl")
    messages = main("coding_agent.jsonl")
    groups = turn_groups(messages)
    assert len(groups) == 31
    assert all(group.user is not None for group in groups)
    assert transcript.model is not None
    assert transcript.model.startswith("claude-sonnet-4-5")
    assert max(len(message.calls) for message in messages) >= 3, "parallel calls"
    assert sum(message.result is not None and message.result.is_error for message in messages) >= 5
    assert [message.role for message in messages if "meta" in message.flags] == ["user"]
    assert len(transcript.thread(transcript.threads[1].id)) == 8

    reads = [call.arguments["file_path"] for message in messages for call in message.calls if call.name == "Read"]
    assert max(map(reads.count, reads)) >= 2, "a file is read again"
    first, last = "\n".join(words(message) for message in messages[:20]), "\n".join(words(message) for message in messages[-40:])
    for identifier in ("C-20417", "FIN-1182", "docs/export_format.md", "repair-FIN-1182.csv", "collect_balances"):
        assert identifier in last
    for identifier in ("C-20417", "FIN-1182", "collect_balances", "Never change the order", "Always run the whole test suite"):
        assert identifier in first


def test_coding_agent_size() -> None:
    transcript = sample("coding_agent.jsonl")
    ledger = wb.count(transcript)
    assert 85_000 < sum(int(ledger.message_tokens[index]) for index in transcript.thread()) < 120_000


def test_claude_code_prompts_grow_and_fit_the_compaction() -> None:
    transcript = sample("coding_agent.jsonl")
    (compaction,) = transcript.compactions
    before: list[int] = []
    after: list[int] = []
    for call in transcript.calls:
        if call.thread == "main" and call.usage is not None and call.usage.prompt is not None:
            (after if call.produced[0] > compaction.after else before).append(call.usage.prompt)
            assert call.usage.input_uncached is not None
            assert call.usage.input_uncached < 10, "all but a few tokens are read from the cache or written to it"
    assert before == sorted(set(before))
    assert after == sorted(set(after))
    assert compaction.tokens_before is not None
    assert 0 < compaction.tokens_before - before[-1] < 2_000
    assert after[0] < before[-1] / 3


def test_claude_code_lines_of_one_response_repeat_usage() -> None:
    seen: dict[str, list[dict[str, int]]] = {}
    for row in lines("coding_agent.jsonl"):
        if row["type"] == "assistant":
            seen.setdefault(row["message"]["id"], []).append(row["message"]["usage"])
    split = [usages for usages in seen.values() if len(usages) > 1]
    assert len(split) > 40
    for usages in split:
        assert len({usage["cache_read_input_tokens"] for usage in usages}) == 1
        assert usages[-1]["output_tokens"] == max(usage["output_tokens"] for usage in usages)
    assert sum(usages[-1]["output_tokens"] for usages in seen.values()) == sum(
        call.usage.output or 0 for call in sample("coding_agent.jsonl").calls if call.usage
    )


def test_codex_calls_add_up_to_its_total() -> None:
    infos = [row["payload"]["info"] for row in lines("long_session.jsonl") if row["payload"].get("type") == "token_count"]
    total = infos[-1]["total_token_usage"]
    usages = [call.usage for call in sample("long_session.jsonl").calls if call.usage is not None]
    assert sum(usage.prompt or 0 for usage in usages) == total["input_tokens"]
    assert sum(usage.cache_read or 0 for usage in usages) == total["cached_input_tokens"]
    assert sum(usage.output or 0 for usage in usages) == total["output_tokens"]
    assert len(infos) > len(usages), "usage is written again without a new call"


def test_support_pictures_state_their_size() -> None:
    media = [part for message in main("support_session.json") for part in message.parts if type(part) is Media]
    assert [(part.mime, part.width, part.height) for part in media] == [
        ("image/png", 1280, 960),
        ("image/png", 900, 1200),
        ("image/png", 1600, 1200),
        ("image/jpeg", 640, 480),
        ("image/png", 800, 600),
    ]


def test_support_rule_is_early_and_needed_late() -> None:
    transcript = sample("support_session.json")
    assert "EUR 150.00" in "\n".join(transcript.system)
    late = main("support_session.json")[-12:]
    assert any(call.name == "ask_supervisor" for message in late for call in message.calls)


def test_research_chat_is_in_many_scripts() -> None:
    text = "\n".join(map(words, main("research_chat.json")))
    for script in (
        r"[\u3040-\u30ff]",
        r"[\u4e00-\u9fff]",
        r"[\uac00-\ud7af]",
        r"[\u0600-\u06ff]",
        r"[\u064b-\u0652\u3099]",
        r"[\U0001f300-\U0001faff]",
        "\u200d",
    ):
        assert re.search(script, text), script
    assert len(re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]", text)) > len(text) / 4


# -- damaged on purpose ------------------------------------------------------------------------------------------------


def test_every_damage_is_in_sources_and_nothing_else_is_damaged(maker: Any, tmp_path: Path) -> None:
    rows = [compact_json(row) for row in maker("damaged").sound()]
    path = tmp_path / "sound.jsonl"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    whole = wb.read(path)
    assert whole.diagnostics == ()
    assert len(whole.messages) == len(rows)

    raw = (SAMPLES / "damaged.jsonl").read_bytes()
    found = raw.decode("utf-8-sig").split("\n")
    listed = {int(number): text for number, text in re.findall(r"(?m)^\| (\d+) \| (.+) \|$", (SAMPLES / "SOURCES.md").read_text(encoding="utf-8"))}
    assert raw.startswith(b"\xef\xbb\xbf")
    assert '"tool_calls":null' in found[4]
    assert '"content":null' in found[6]
    assert ":NaN" in found[8]
    assert "\\ud83c." in found[10]
    assert ":-120" in found[12]
    assert found[13].endswith("that")
    assert "AnotherSession" in found[14]
    assert "\u2028" in found[15]
    assert found[17].count('"role":') == 2
    assert len(found) == 27
    assert sorted(listed) == [1, 5, 7, 9, 11, 13, 14, 15, 16, 18, 27]
    sound = set(rows)
    strange = {number for number, line in enumerate(found, 1) if line not in sound}
    assert strange | {1, 7} == set(listed), "line 1 is sound after its mark, line 7 but for its lost answer"


def test_damaged_sample_says_what_is_wrong_and_loads_the_rest() -> None:
    transcript = sample("damaged.jsonl")
    assert {item.line for item in transcript.diagnostics} >= {9, 13, 14, 18, 27}
    pairs = tool_pairs(transcript.messages)
    assert sum(pair.call is None for pair in pairs) >= 1
    assert sum(pair.result is None for pair in pairs) >= 1
    assert any("\u2028" in message.text for message in transcript.messages)
    for call in transcript.calls:
        assert call.usage is None or all(value is None or value >= 0 for value in (call.usage.prompt, call.usage.output))


# -- believable, and nobody's ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_not_one_template(name: str) -> None:
    texts = [text for message in sample(name).messages if len(text := message.result.text if message.result else message.text) >= 40]
    assert len(set(texts)) >= 0.9 * len(texts)


@pytest.mark.parametrize("name", ["coding_agent.jsonl", "long_session.jsonl"])
def test_calls_are_varied(name: str) -> None:
    calls = [(call.name, call.arguments_raw) for message in sample(name).messages for call in message.parts if type(call) is ToolCall]
    assert len(set(calls)) >= 0.8 * len(calls)


@pytest.mark.parametrize("path", [*NAMES, *(f"make/{path.name}" for path in sorted((SAMPLES / "make").glob("*.*")))])
def test_no_secret_no_person_no_machine(path: str) -> None:
    text = (SAMPLES / path).read_text(encoding="utf-8-sig")
    text = re.sub(r'"(signature|data|encrypted_content)": ?"[A-Za-z0-9+/=]+"', "", text)
    text = text.replace("\\n", " ")  # so that a decorator on a new line is no address
    hosts = {host.lower() for host in re.findall(r"[A-Za-z0-9][\w.+-]*@([\w-]+(?:\.[\w-]+)+)", text)}
    hosts |= {host.lower() for host in re.findall(r"https?://([\w.-]+)", text)}
    strange = {host for host in hosts if not re.search(r"(^|\.)(example\.com|test)$", host)}
    assert strange <= {"schemas.openxmlformats.org"}, strange
    assert not re.search(r"\b(sk-[A-Za-z0-9]{16}|gh[pousr]_[A-Za-z0-9]{20}|AKIA[A-Z0-9]{16}|xox[baprs]-)|BEGIN [A-Z ]*PRIVATE KEY", text)
    assert not re.search(r"/root/|/work/|/Users/", text)
    assert set(re.findall(r"/home/(\w+)", text)) <= {"dev"}
