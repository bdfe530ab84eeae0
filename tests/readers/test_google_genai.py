"""Gemini API contents: pairs, requests, streams, lists; parts in both spellings; usage whose answer leaves the thoughts out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from tests.shared import SHARED
from workbench import readers
from workbench.errors import ReadError
from workbench.model import Media, Opaque, Reasoning, Text, ToolSpec, Transcript, Usage

FOLDER = SHARED / "transcripts" / "google-genai"
SPENT = {"promptTokenCount": 100, "cachedContentTokenCount": 80, "candidatesTokenCount": 7, "thoughtsTokenCount": 5, "toolUsePromptTokenCount": 3}


def said(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def response(*parts: Any, usage: Any = None, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": said("model", *parts), "finishReason": "STOP"}], "modelVersion": "g-1", "usageMetadata": usage or SPENT, **more}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"q": 1}, **more}}


def result(name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": value, **more}}


def read(path: Path) -> list[Transcript]:
    found = list(readers.read_all(path))
    for transcript in found:
        check(transcript)
        assert transcript.source.format == "google-genai"
    return found


def test_pairs_are_one_conversation_with_the_context_of_each(tmp_path: Path) -> None:
    first = {
        "contents": [said("user", "q")],
        "systemInstruction": said("user", "be brief"),
        "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}],
    }
    asked = [said("user", "q"), said("model", call("f", id="c1")), said("user", result("f", {"output": "r"}, id="c1"), "and?")]
    pairs = [
        {"request": first, "response": response({"text": "hm", "thought": True}, {**call("f", id="c1"), "thoughtSignature": "abcd"}, responseId="r1")},
        {"request": {**first, "contents": asked}, "response": response("done", responseId="r2")},
    ]
    for path in (as_json(tmp_path / "t.json", pairs), jsonl(tmp_path / "t.jsonl", pairs)):
        (t,) = read(path)
        assert shape(t) == [("user", "q", ()), ("assistant", "", ("c1",)), ("tool", "r", ("c1",)), ("user", "and?", ()), ("assistant", "done", ())]
        assert t.messages[1].parts[0] == Reasoning("hm", 4)
        assert [item.context for item in t.calls] == [(0,), (0, 1, 2, 3)]
        assert [item.usage for item in t.calls] == [Usage(23, 80, None, None, 12, 5)] * 2
        assert (t.calls[0].id, t.calls[0].model, t.calls[0].stop_reason) == ("r1", "g-1", "STOP")
        assert t.system == ("be brief",)
        assert t.tools == (ToolSpec("f"), ToolSpec("googleSearch"))
        assert t.calls[0].prefix is t.calls[1].prefix
        assert (t.records.total, t.records.skipped) == (2, 0)


def test_pairs_that_do_not_belong_together_are_runs(tmp_path: Path) -> None:
    pairs = [{"request": {"contents": [said("user", text)]}, "response": response(text.upper())} for text in ("a", "b")]
    found = read(as_json(tmp_path / "t.json", pairs))
    assert [[message.text for message in t.messages] for t in found] == [["a", "A"], ["b", "B"]]
    assert sum(t.records.total for t in found) == 2


def test_a_stream_is_put_together(tmp_path: Path) -> None:
    chunks = [response("He"), response("llo", {"text": "hm", "thought": True}), response(call("f"), usage={"promptTokenCount": 4, "candidatesTokenCount": 2})]
    events = "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks)
    for body in (chunks, events):
        (t,) = read(as_json(tmp_path / "t.json", [{"request": {"contents": "q"}, "response": body}]))
        assert [message.text for message in t.messages] == ["q", "Hello"]
        assert [type(part).__name__ for part in t.messages[1].parts] == ["Text", "Reasoning", "ToolCall"]
        assert t.calls[0].usage == Usage(4, None, None, None, 2)
    (t,) = read(jsonl(tmp_path / "r.jsonl", [{**chunk, "responseId": "r"} for chunk in chunks]))
    assert [message.text for message in t.messages] == ["Hello"]
    assert (t.records.total, t.records.messages) == (3, 3)


def test_contents_alone_and_one_request(tmp_path: Path) -> None:
    contents = [said("user", "q"), said("model", "a"), said("model", "b"), said("user", "q2"), said("model", "c")]
    (listed,) = read(as_json(tmp_path / "t.json", contents))
    (lines,) = read(jsonl(tmp_path / "t.jsonl", contents))
    (asked,) = read(as_json(tmp_path / "r.json", {"contents": contents, "system_instruction": {"parts": [{"text": "s"}]}, "model": "g"}))
    assert shape(listed) == shape(lines) == shape(asked) == [("user", "q", ()), ("assistant", "a\nb", ()), ("user", "q2", ()), ("assistant", "c", ())]
    assert listed.records == lines.records == asked.records
    assert listed.records.messages == 5
    assert (asked.system, asked.model) == (("s",), "g")


def test_results_in_the_models_name_are_results(tmp_path: Path) -> None:
    contents = [said("user", "q"), said("model", call("f")), said("model", result("f", {"output": "r"})), said("model", "a")]
    for held in ({"contents": contents}, contents):
        (t,) = read(as_json(tmp_path / "t.json", held))
        assert [(message.role, message.text) for message in t.messages] == [("user", "q"), ("assistant", ""), ("tool", ""), ("assistant", "a")]
        assert t.messages[2].result is not None
        assert t.messages[2].result.text == "r"
        assert t.records.messages == 4


def test_lines_with_a_conversation_each(tmp_path: Path) -> None:
    found = read(jsonl(tmp_path / "t.jsonl", [{"contents": [said("user", text), said("model", "a")]} for text in "xyz"]))
    assert [t.messages[0].text for t in found] == ["x", "y", "z"]
    assert [t.records.total for t in found] == [1, 1, 1]


def test_every_kind_of_part_in_both_spellings(tmp_path: Path) -> None:
    parts = [
        {"inline_data": {"mime_type": "image/gif", "data": "R0lGODlhAgADAA=="}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://x/y"}},
        result("f", {"a": 1, "b": 2}),
        result("g", {"error": "no"}),
        result("h", None),
        {"sparkle": {"a": 1}},
        {"text": ["odd"]},
    ]
    ran = [{"executable_code": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "x"}}]
    (t,) = read(as_json(tmp_path / "t.json", [said("user", *parts), said("model", *ran)]))
    assert [message.role for message in t.messages] == ["tool", "tool", "tool", "user", "assistant"]
    results = [message.result for message in t.messages[:3]]
    assert [(held.name, held.text, held.is_error) for held in results if held] == [("f", '{"a":1,"b":2}', False), ("g", "no", True), ("h", "", False)]
    picture, film, odd, text = t.messages[3].parts
    assert isinstance(picture, Media)
    assert isinstance(film, Media)
    assert (picture.kind, picture.width, film.kind, film.mime) == ("image", 2, "video", "video/mp4")
    assert isinstance(odd, Opaque)
    assert text == Text('["odd"]')
    ran_call, ran_result = t.messages[4].parts
    assert getattr(ran_call, "server_side", None) is True
    assert getattr(ran_result, "is_error", None) is True
    assert [item.code for item in t.diagnostics] == ["content", "content"]


def test_a_refusal_an_error_and_a_wrong_total_are_said(tmp_path: Path) -> None:
    refused = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 9}}
    (t,) = read(as_json(tmp_path / "t.json", [{"request": {"contents": "q"}, "response": refused}]))
    assert [item.code for item in t.diagnostics] == ["usage_total", "error"]
    assert t.calls[0].usage == Usage(3)
    assert t.calls[0].produced == ()
    (t,) = read(as_json(tmp_path / "t.json", [{"request": {"contents": "q"}, "response": {"error": {"code": 500}}}]))
    assert [item.code for item in t.diagnostics] == ["error"]
    assert t.calls == ()


def test_messages_of_others_with_parts_are_not_contents(tmp_path: Path) -> None:
    rows = [{"role": "user", "parts": [{"type": "text", "text": "q"}]}, {"role": "assistant", "parts": [{"type": "text", "text": "a"}]}]
    with pytest.raises(ReadError):
        readers.read(as_json(tmp_path / "t.json", rows))


@pytest.mark.transcripts
def test_real_pairs_state_the_totals_that_their_parts_have() -> None:
    for path in sorted(FOLDER.glob("*.json")):
        pairs = json.loads(path.read_text("utf-8"))
        (t,) = read(path)
        assert [call.usage.total for call in t.calls if call.usage] == [pair["response"]["usageMetadata"]["totalTokenCount"] for pair in pairs]
        assert t.diagnostics == ()
