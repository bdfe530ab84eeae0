"""Files as they really are: encodings, damage, and bad input that gets one clear line."""

from __future__ import annotations

import json
import math
import os
import tracemalloc
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl
from workbench import readers
from workbench.errors import ReadError, UnknownFormat, WorkbenchError
from workbench.model import Transcript, Usage
from workbench.readers.source import open_document

CLAUDE: list[dict[str, Any]] = [
    {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "q1"}},
    {
        "type": "assistant",
        "uuid": "a1",
        "parentUuid": "u1",
        "sessionId": "s",
        "message": {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "a1"}]},
    },
    {"type": "user", "uuid": "u2", "parentUuid": "a1", "sessionId": "s", "message": {"role": "user", "content": "q2"}},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "q1"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
]
ROWS = pytest.mark.parametrize("rows", [CLAUDE, ANTHROPIC], ids=["claude-code", "anthropic"])


def text_of(rows: list[Any]) -> str:
    return "\n".join(row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows) + "\n"


def read(path: Path, **options: Any) -> Transcript:
    transcript = readers.read(path, **options)
    check(transcript)
    return transcript


# -- damage


@ROWS
def test_b07_b08_damaged_lines_are_counted_and_named(tmp_path: Path, rows: list[Any]) -> None:
    t = read(jsonl(tmp_path / "x.jsonl", [rows[0], "{oops", rows[1], '{"unfinished": "', rows[2]]))
    assert len(t.messages) == 3
    assert t.records.skipped == 2
    assert [d.line for d in t.diagnostics] == [2, 4]
    assert t.diagnostics[0].text.startswith("line 2: not JSON")
    assert [m.raw for m in t.messages] == [(1,), (3,), (5,)]


@ROWS
def test_an_array_with_a_damaged_element(tmp_path: Path, rows: list[Any]) -> None:
    path = tmp_path / "x.json"
    path.write_text("[" + ",\n".join([json.dumps(rows[0]), "{oops}", json.dumps(rows[1]), json.dumps(rows[2])]) + ', {"cut": "of', "utf-8")
    t = read(path)
    assert len(t.messages) == 3
    assert (t.records.total, t.records.skipped) == (5, 2)
    assert {2, 5} <= {d.line for d in t.diagnostics}


def test_an_object_with_a_damaged_message(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        '{"system": "s", "messages": [' + ", ".join([json.dumps(ANTHROPIC[0]), "{oops}", json.dumps(ANTHROPIC[1])]) + '], "model": "claude-x"}', "utf-8"
    )
    t = read(path)
    assert len(t.messages) == 2
    assert (t.records.total, t.records.skipped) == (3, 1)
    assert (t.system, t.meta["model"]) == (("s",), "claude-x")


@ROWS
def test_a_role_that_stands_twice_is_reported(tmp_path: Path, rows: list[Any]) -> None:
    twice = json.dumps(rows[0]).replace('"role": "user"', '"role":"assistant","role":"user"')
    t = read(jsonl(tmp_path / "x.jsonl", [twice, *rows[1:]]))
    assert len(t.messages) == 3
    assert t.messages[0].role == "user"
    assert [(d.line, d.code) for d in t.diagnostics] == [(1, "json")]
    assert '"role" stands twice' in t.diagnostics[0].text


@pytest.mark.parametrize("number", ["NaN", "1e400", "-Infinity", "9" * 5_000, "-1", '"12"', "1.5", "true", "[]"])
def test_no_total_becomes_nan_or_infinite(tmp_path: Path, number: str) -> None:
    line = '{"type":"assistant","sessionId":"s","message":{"id":"ID","content":[],"usage":{"input_tokens":NUMBER,"output_tokens":7}}}'
    bad, good = line.replace("ID", "m2").replace("NUMBER", number), line.replace("ID", "m3").replace("NUMBER", "5")
    t = read(jsonl(tmp_path / "x.jsonl", [*CLAUDE, bad, good]))
    total = Usage.sum([call.usage for call in t.calls])
    assert (total.input_uncached, total.output) == (5, 14)
    assert all(value is None or math.isfinite(value) for field in fields(total) if isinstance(value := getattr(total, field.name), int | float))
    assert t.diagnostics
    assert {d.line for d in t.diagnostics} == {4}


def test_deep_nesting_is_a_damaged_line(tmp_path: Path) -> None:
    deep = '{"type": "user", "message": {"content": ' + "[" * 100_000 + "]" * 100_000 + "}}"
    t = read(jsonl(tmp_path / "x.jsonl", [*CLAUDE, deep, "[" * 100_000]))
    assert len(t.messages) == 3
    assert [d.line for d in t.diagnostics] == [4, 5]
    assert "nested too deeply" in t.diagnostics[0].text


def test_nesting_that_the_parser_allows(tmp_path: Path) -> None:
    """Deep enough to trouble whatever walks or writes it."""
    for depth in (50, 400, 900):
        inner = '[{"type":"tool_result","tool_use_id":"t","content":' * depth + '"x"' + "}]" * depth
        call = '{"type":"tool_use","id":"t","name":"n","input":{"a":' + "[" * depth + "]" * depth + "}}"
        messages = [f'{{"role":"user","content":{inner}}}', f'{{"role":"assistant","content":[{call}]}}']
        assert read(jsonl(tmp_path / "x.jsonl", messages)).messages
        lines = [f'{{"type":"{role}","sessionId":"s","message":{message}}}' for role, message in zip(("user", "assistant"), messages, strict=True)]
        assert read(jsonl(tmp_path / "x.jsonl", [*CLAUDE, *lines])).messages


# -- encodings


@ROWS
def test_b10_a_byte_order_mark_is_no_content(tmp_path: Path, rows: list[Any]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + text_of(rows).encode())
    t = read(path)
    assert len(t.messages) == 3
    assert t.diagnostics == ()
    assert "\ufeff" not in repr(t.messages)


@ROWS
@pytest.mark.parametrize(("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"", "utf-16-le"), (b"", "utf-16-be")])
def test_b11_utf_16(tmp_path: Path, rows: list[Any], mark: bytes, encoding: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(mark + text_of(rows).encode(encoding))
    assert len(read(path).messages) == 3


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\r", "\x0b", "\x1c"])
def test_b13_b14_only_a_line_feed_ends_a_line(tmp_path: Path, mark: str) -> None:
    first = {"type": "user", "sessionId": "s", "message": {"content": [{"type": "tool_result", "tool_use_id": "a", "content": f"x{mark}y"}]}}
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=mark == "\r") for row in [first, *CLAUDE, *CLAUDE[:0]]), "utf-8", newline="")
    t = read(path)
    assert len(t.messages) == 4
    assert t.messages[0].result is not None
    assert t.messages[0].result.text == f"x{mark}y"
    assert t.records.total == 4


def test_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\r\n \r\n" + b"\r\n\r\n".join(json.dumps(row).encode() for row in CLAUDE) + b"\r\n")
    t = read(path)
    assert [m.raw for m in t.messages] == [(3,), (5,), (7,)]
    assert (t.records.total, t.diagnostics) == (3, ())


def test_bytes_that_are_not_utf_8_cost_no_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(text_of(CLAUDE).encode().replace(b"q1", b"q\xff1"))
    t = read(path)
    assert t.messages[0].text == "q\ufffd1"
    assert [d.line for d in t.diagnostics] == [1]


# -- bad input


def test_a_line_of_zeros_is_a_damaged_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b'{"role":"user","content":"q"}\n' + bytes(64) + b'\n{"role":"assistant","content":"a"}\n')
    transcript = readers.read(path)
    assert [message.text for message in transcript.messages] == ["q", "a"]
    assert (transcript.records.skipped, transcript.diagnostics[0].line) == (1, 2)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("empty.jsonl", b"", "is empty"),
        ("blank.jsonl", b" \n\t\n", "is empty"),
        ("mark.jsonl", b"\xef\xbb\xbf", "is empty"),
        ("binary.jsonl", b"\x00\x01\x02\x03" * 100, "binary"),
        ("log.zip", b"PK\x03\x04xxxx", "zip archive"),
        ("log.gz", b"\x1f\x8b\x08xxxx", "gzip"),
        ("db.sqlite", b"SQLite format 3\x00" + bytes(100), "SQLite"),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(20), "picture"),
        ("notes.txt", b"Dear diary,\nnothing is JSON here.\n", "none of its 2 records"),
        ("cut.json", b'{"messages": [{"role": "us', "cut.json"),
        ("number.json", b"42", "number.json"),
        ("deep.json", b"[" * 100_000, "deep.json"),
    ],
)
@pytest.mark.parametrize("format", [None, "claude-code", "anthropic"])
def test_bad_files_get_one_clear_line(tmp_path: Path, name: str, data: bytes, why: str, format: str | None) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ReadError) as error:
        readers.read(path, format=format)
    assert why in str(error.value)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.jsonl"):
        with pytest.raises(ReadError, match=path.name):
            readers.read(path)


def test_a_wrong_or_unknown_format(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", CLAUDE)
    with pytest.raises(ReadError, match=r"x\.jsonl holds no message that the reader anthropic knows"):
        readers.read(path, format="anthropic")
    with pytest.raises(UnknownFormat, match=r"no reader is called 'odd'; known: .*claude-code"):
        readers.read(path, format="odd")
    with pytest.raises(ReadError, match=r"y\.json"):
        readers.read(as_json(tmp_path / "y.json", ANTHROPIC), format="claude-code")
    assert readers.read(path, format="claude-code-lines").source.format == "claude-code"
    assert readers.read(as_json(tmp_path / "z.json", ANTHROPIC), format="anthropic-messages").source.format == "anthropic"


def test_names_are_data(tmp_path: Path) -> None:
    path = jsonl(tmp_path / 'x"); import os #.jsonl', CLAUDE)
    before = path.stat().st_mtime_ns, path.read_bytes()
    assert read(path).title == path.name
    assert read(Path(str(path))).source.path == str(path)
    assert before == (path.stat().st_mtime_ns, path.read_bytes())


def test_the_document_is_told_by_its_content(tmp_path: Path) -> None:
    one = jsonl(tmp_path / "one.jsonl", CLAUDE[:1])
    assert (open_document(one).kind, open_document(one).total) == ("json", 1)
    assert open_document(jsonl(tmp_path / "two.json", CLAUDE)).kind == "jsonl"
    assert open_document(as_json(tmp_path / "list.jsonl", CLAUDE)).kind == "json"
    lists = open_document(jsonl(tmp_path / "lists.jsonl", [CLAUDE, CLAUDE[:1], "[1, 2"]))
    assert (lists.kind, [len(record.value) for record in lists.records], lists.skipped) == ("jsonl", [3, 1], [3])
    matrix = tmp_path / "matrix.json"
    matrix.write_text("[\n[1, 2],\n[3, 4]\n]\n%", "utf-8")
    assert open_document(matrix).value == [[1, 2], [3, 4]]
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(CLAUDE[0], indent=2), "utf-8")
    assert open_document(pretty).value == CLAUDE[0]
    with pytest.raises(WorkbenchError):
        open_document(tmp_path / ("n" * 300))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_a_device_is_refused_before_it_can_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path / "pipe.jsonl", Path(os.devnull)):
        with pytest.raises(ReadError, match=rf"^{path.name} is a pipe or a device, not a file"):
            readers.read(path)


@pytest.mark.parametrize("first", ["", '{"type": "us\n', "er, the end of a record}\n", "\ufeff"])
def test_lines_are_taken_from_the_file_and_not_kept(tmp_path: Path, first: str) -> None:
    row = {"role": "user", "content": "long " * 20_000}
    path = tmp_path / "long.jsonl"
    path.write_text(first + (json.dumps(row) + "\n") * 100, "utf-8", newline="\n")
    damaged = int(first.endswith("\n"))
    tracemalloc.start()
    document = open_document(path, head=10)
    lines = sum(1 for _ in document.stream())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (lines, document.total, document.skipped) == (100, 100 + damaged, [1] * damaged)
    assert peak < 3_500_000  # the file has 10 MB
    path.rename(tmp_path / "closed.jsonl")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": [\n{"b": 1}\n,{"b": 2}]}', "json"),
        ('{"a":\n{"b": 1}\n}', "json"),
        ('[{"a": 1}\n,\n{"a": 2}]', "json"),
        ('{"a": 1}\n', "json"),
        ('{"a": 1}\n\n', "json"),
        ('{"a": 1}\n{', "jsonl"),
        ('{"a": 1}\nx', "jsonl"),
        ('{"a"\n{"a": 1}\n{"a": 1', "jsonl"),
        ('\n{"a": 1}\n{"a": 1}', "jsonl"),
    ],
)
def test_one_value_or_lines(tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "x").write_text(text, newline="\n")
    assert open_document(tmp_path / "x").kind == kind


def test_a_files_name_cannot_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\u202e\nb.jsonl"
    path.write_bytes(b"nothing")
    with pytest.raises(ReadError) as raised:
        readers.read(path)
    assert str(raised.value).isprintable()
    assert "a\ufffd[31m\ufffd\ufffdb.jsonl" in str(raised.value)
