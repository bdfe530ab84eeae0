"""Chat rows: every spelling of a turn, calls and observations, media, preference pairs, Parquet, and what is no row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import MAIN, META, Media, Reasoning, Text, ToolSpec, Transcript
from workbench.readers import parquet_rows

FOLDER = SHARED / "transcripts" / "sharegpt"
TALK = [("human", "q"), ("gpt", "a"), ("human", "r"), ("gpt", "b")]
SHAPE = [("user", "q", ()), ("assistant", "a", ()), ("user", "r", ()), ("assistant", "b", ())]


def turns(*said: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"from": speaker, "value": value} for speaker, value in said]


def chat(*said: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"role": {"human": "user", "gpt": "assistant"}.get(speaker, speaker), "content": value} for speaker, value in said]


def read(path: Path, format: str | None = None) -> list[Transcript]:
    found = list(readers.read_all(path, format=format))
    for transcript in found:
        check(transcript)
        assert transcript.source.format == "sharegpt"
    return found


def parquet(path: Path, rows: list[dict[str, Any]], **more: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, **more)
    return path


ROWS = [
    {"conversations": turns(*TALK)},
    {"conversation": chat(*TALK)},
    {"conversations": json.dumps(turns(*TALK))},
    {"conversation": [{"human": "q", "assistant": "a"}, {"human": "r", "assistant": "b"}]},
    {"instruction": "r", "input": "", "output": "b", "history": [["q", "a"]]},
    {"prompt": chat(*TALK[:3]), "completion": chat(TALK[3])},
]


def test_a_parquet_file_in_many_row_groups(tmp_path: Path) -> None:
    """Every group has its own dictionary of texts; a batch of rows must not run over from one to the next."""
    rows = [{"messages": chat(("human", f"q{at}"), ("gpt", f"a{at}")), "tools": [{"function": {"name": "f"}}]} for at in range(7)]
    found = read(parquet(tmp_path / "t.parquet", rows, row_group_size=2))
    assert [shape(t) for t in found] == [[("user", f"q{at}", ()), ("assistant", f"a{at}", ())] for at in range(7)]


def test_rows_of_a_server_with_plain_messages(tmp_path: Path) -> None:
    rows = [{"row_idx": 0, "row": {"messages": [{**turn, "tool_calls": None} for turn in chat(*TALK)]}, "truncated_cells": []}]
    (t,) = read(as_json(tmp_path / "t.json", {"features": [], "rows": rows}))
    assert shape(t) == SHAPE


def test_rows_of_agents_runs(tmp_path: Path) -> None:
    """Data sets of coding agents: the turns under `trajectory`, the system's words under a key of their own, ids of calls in lists."""
    spoken = [
        {"role": "system", "system_prompt": "rules", "text": None, "mask": False},
        {"role": "user", "system_prompt": None, "text": "fix it", "mask": False},
        {"role": "ai", "system_prompt": None, "text": "open a.py", "mask": True},
    ]
    row = {"instance_id": "a__b-1", "model_name": "some-model", "trajectory": spoken, "exit_status": "submitted"}
    for path in (parquet(tmp_path / "t.parquet", [row]), jsonl(tmp_path / "t.jsonl", [row])):
        (t,) = read(path)
        assert shape(t) == [("system", "rules", ()), ("user", "fix it", ()), ("assistant", "open a.py", ())]
        assert (t.model, t.id) == ("some-model", "a__b-1")
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    called = [
        {"role": "user", "content": "fix it", "message_type": "observation"},
        {"role": "assistant", "content": "look", "tool_calls": [call], "message_type": "action"},
        {"role": "tool", "content": "seen", "tool_call_ids": ["c1"], "message_type": "observation"},
    ]
    (t,) = read(parquet(tmp_path / "c.parquet", [{"messages": json.dumps(called), "traj_id": "r"}]))
    assert shape(t)[1:] == [("assistant", "look", ("c1",)), ("tool", "seen", ("c1",))]
    assert t.id == "r"


@pytest.mark.parametrize("row", ROWS)
def test_every_spelling_of_a_conversation(tmp_path: Path, row: dict[str, Any]) -> None:
    for path in (as_json(tmp_path / "t.json", [row]), jsonl(tmp_path / "t.jsonl", [row]), parquet(tmp_path / "t.parquet", [row])):
        (t,) = read(path)
        assert shape(t) == SHAPE
        assert t.records.skipped == 0
        assert len(t.calls) == 2


def test_a_row_is_a_run_and_its_turns_are_records(tmp_path: Path) -> None:
    rows = [{"conversations": turns(*TALK), "id": "one", "system": "be brief", "model": "m"}, {"conversations": turns(*TALK[:2])}]
    for path in (as_json(tmp_path / "t.json", rows), jsonl(tmp_path / "t.jsonl", rows), parquet(tmp_path / "t.parquet", rows)):
        first, second = read(path)
        assert (first.id, first.system, first.model, second.id, second.system) == ("one", ("be brief",), "m", "t-1", ())
        assert [(t.records.total, t.records.messages) for t in (first, second)] == [(4, 4), (2, 2)]
        assert [message.raw for message in second.messages] == [(2,), (2,)]
    served = {"features": [], "rows": [{"row_idx": at, "row": row} for at, row in enumerate(rows)]}
    assert [t.records.total for t in read(as_json(tmp_path / "s.json", served))] == [4, 2]


def test_calls_and_observations(tmp_path: Path) -> None:
    two = json.dumps([{"name": "f", "arguments": {"q": 1}}, {"name": "g", "arguments": "{}"}])
    said = [("human", "q"), ("gpt", "look"), ("function_call", two), ("observation", "r1"), ("observation", "r2"), ("gpt", "done"), ("function_call", "oops")]
    tools = json.dumps([{"name": "f", "description": "d", "parameters": {"type": "object"}}])
    (t,) = read(as_json(tmp_path / "t.json", [{"conversations": turns(*said), "tools": tools}]))
    assert [message.role for message in t.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [(call.name, call.arguments) for call in t.messages[1].calls] == [("f", {"q": 1}), ("g", {})]
    assert [message.result.name for message in t.messages if message.result] == ["f", "g"]
    assert t.tools == (ToolSpec("f", "d", {"type": "object"}),)
    assert (t.records.messages, t.messages[4].text) == (7, "done\noops")
    assert [item.code for item in t.diagnostics] == ["call"]


def test_openai_calls_in_a_column_of_structs(tmp_path: Path) -> None:
    """Such a column gives every row the fields of all others: arguments of other tools are null there, and mean nothing."""
    calls = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": args}}
        for at, (name, args) in enumerate((("f", {"a": 1}), ("g", {"b": "x"})))
    ]
    rows = [
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": "c1", "content": "r"}]}
    ]
    (t,) = read(parquet(tmp_path / "t.parquet", rows))
    assert [(call.id, call.arguments) for call in t.messages[1].calls] == [("c0", {"a": 1}), ("c1", {"b": "x"})]
    assert t.messages[2].result is not None
    assert (t.messages[2].result.call_id, t.messages[2].result.name) == ("c1", "g")


def test_marks_in_the_text_are_media(tmp_path: Path) -> None:
    said = [("human", "<image>one<image>\ntwo"), ("gpt", "a"), ("human", "<image>three<video>")]
    (t,) = read(as_json(tmp_path / "t.json", [{"messages": chat(*said), "images": ["1.jpg", "2.jpg"], "videos": ["v.mp4"]}]))
    assert [part.kind if isinstance(part, Media) else part for part in t.messages[0].parts] == ["image", Text("one"), "image", Text("\ntwo")]
    assert [part.kind if isinstance(part, Media) else part for part in t.messages[2].parts] == [Text("<image>"), Text("three"), "video"]
    assert [item.code for item in t.diagnostics] == ["media"]
    gif = bytes.fromhex("47494638396102000300")
    rows = [{"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "see"}]}], "images": [{"bytes": gif, "path": None}]}]
    (t,) = read(parquet(tmp_path / "t.parquet", rows))
    assert isinstance(t.messages[0].parts[0], Media)
    assert (t.messages[0].parts[0].width, t.messages[0].parts[0].height, t.messages[0].parts[0].size) == (2, 3, 10)


def test_content_of_types_and_values(tmp_path: Path) -> None:
    asked = [{"type": "image_url", "value": "1.jpg"}, {"type": "text", "value": "q"}, {"type": "tools", "value": '[{"name": "f"}]'}]
    answer = [{"type": "reasoning", "value": "hm"}, {"type": "tool_call", "value": '{"name": "f", "arguments": {}}'}, {"type": "odd", "value": 1}]
    (t,) = read(jsonl(tmp_path / "t.jsonl", [{"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": answer, "loss_weight": 1.0}]}]))
    assert [type(part).__name__ for part in t.messages[0].parts] == ["Media", "Text"]
    assert t.messages[1].parts[0] == Reasoning("hm")
    assert [call.name for call in t.messages[1].calls] == ["f"]
    assert (t.messages[1].text, t.tools) == ("1", (ToolSpec("f"),))


def test_a_rejected_answer_is_a_branch(tmp_path: Path) -> None:
    good, bad = turns(("gpt", "yes"))[0], turns(("gpt", "no"))[0]
    asked = turns(("human", "q"))
    rows = [
        {"conversations": asked, "chosen": good, "rejected": bad},
        {"prompt": "q", "chosen": [*chat(("human", "q")), *chat(("gpt", "yes"))], "rejected": [*chat(("human", "q")), *chat(("gpt", "no"))]},
        {"prompt": "q", "chosen": "yes", "rejected": "no"},
        {"chosen": [*asked, good], "rejected": [*asked, bad]},
    ]
    for at, row in enumerate(rows):
        (t,) = read(as_json(tmp_path / "t.json", [row]))
        assert [t.messages[index].text for index in t.history()] == ["q", "yes"]
        assert [(item.id, item.kind) for item in t.threads] == [(MAIN, "main"), ("rejected", "branch")]
        (other,) = t.thread("rejected")
        assert (t.messages[other].text, t.messages[other].parent) == ("no", 0)
        assert t.records.total == (2 if at == 3 else 1)


def test_odd_rows_and_turns_are_skipped_with_a_reason(tmp_path: Path) -> None:
    said = [*turns(*TALK), 7, {"value": "nobody"}, {"from": "narrator", "value": "x"}]
    first, second = read(jsonl(tmp_path / "t.jsonl", [{"conversations": said}, {"conversations": []}, "{bad", {"conversations": turns(*TALK)}]))
    assert shape(first)[:4] == SHAPE
    assert first.messages[4].flags == {META}
    assert (first.records.messages, first.records.skipped, second.records.total) == (5, 4, 4)
    assert [item.code for item in first.diagnostics] == ["turn", "turn", "role", "row", "json"]
    with pytest.raises(ReadError, match=r"t\.json holds no message that the reader sharegpt knows"):
        readers.read(as_json(tmp_path / "t.json", [{"a": 1}]), format="sharegpt")


def test_one_conversation_alone_counts_its_turns(tmp_path: Path) -> None:
    (t,) = read(as_json(tmp_path / "t.json", {"conversations": turns(*TALK)}))
    assert [message.raw for message in t.messages] == [(1,), (2,), (3,), (4,)]
    assert t.records.total == 4
    text = json.dumps({"conversations": turns(*TALK)})
    path = tmp_path / "cut.json"
    path.write_text(text.replace('"r"}', '"r" oops}'), "utf-8")
    (cut,) = read(path)
    assert [message.text for message in cut.messages] == ["q", "a\nb"]
    assert (cut.records.messages, cut.records.skipped) == (3, 1)


def test_a_parquet_file_that_is_no_data_set_of_chats(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"no reader knows t\.parquet \(a Parquet file\)"):
        readers.read(parquet(tmp_path / "t.parquet", [{"a": 1}]))


def outcome(path: Path) -> str:
    """What reading gives: a format, or one line that says why not."""
    try:
        found = readers.read_all(path)
    except ReadError as error:
        return str(error) if str(error).isprintable() else ""
    for transcript in found:
        check(transcript)
    return found[0].source.format


def test_damaged_parquet(tmp_path: Path) -> None:
    data = parquet(tmp_path / "t.parquet", [{"conversations": turns(*TALK)}] * 50, compression="snappy").read_bytes()
    path = tmp_path / "d.parquet"
    for at in range(0, len(data), max(1, len(data) // 60)):
        for damaged in (data[:at], data[:at] + b"\xff\x00\x7f" + data[at + 3 :]):
            path.write_bytes(damaged)
            assert outcome(path)


def test_a_small_file_that_unpacks_to_very_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One long text that a million turns name, in a file of a few kilobytes."""
    path = parquet(tmp_path / "t.parquet", [{"conversations": turns(*[("gpt", "x" * 20_000)] * 2_000)}] * 20)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(parquet_rows, "MAX_TOTAL", 100_000_000)
    with pytest.raises(ReadError, match=r"t\.parquet: unpacked it is larger than any transcript"):
        readers.read_all(path)
    monkeypatch.setattr(parquet_rows, "_MAX_VALUES", 10)
    monkeypatch.setattr(parquet_rows, "MAX_TOTAL", 1 << 40)
    with pytest.raises(ReadError, match="larger than any transcript"):
        readers.read_all(path)


FILES = {
    "dpo_en_demo.json": (300, 906),
    "glaive_toolcall_en_demo.json": (300, 1914),
    "mllm_demo.json": (6, 24),
    "v1_multimodal_demo.jsonl": (24, 96),
    "v1_sft_demo.jsonl": (500, 1000),
}


@pytest.mark.transcripts
@pytest.mark.parametrize("name", FILES)
def test_files_of_others(name: str) -> None:
    runs, records = FILES[name]
    found = read(FOLDER / f"LLaMA-Factory__{name}")
    assert len(found) == runs
    assert sum(t.records.total for t in found) == sum(t.records.messages for t in found) == records
    assert all(t.diagnostics == () for t in found)
    assert ("mm" in name or "mllm" in name or "multimodal" in name) == any(
        isinstance(part, Media) for t in found for message in t.messages for part in message.parts
    )
    if "dpo" in name:
        assert all([item.kind for item in t.threads] == ["main", "branch"] for t in found)
    if "glaive" in name:
        assert sum(len(message.calls) for t in found for message in t.messages) == sum(message.role == "tool" for t in found for message in t.messages) > 0
