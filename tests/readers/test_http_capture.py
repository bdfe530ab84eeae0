"""Captures of HTTP traffic: the bodies are read as the providers' pairs are, all else is dropped."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.readers.made import as_json, check, jsonl, shape
from workbench import readers
from workbench.errors import ReadError
from workbench.readers import http_capture

KEY = "sk-secret-0123456789"
ASK = {"model": "m", "system": "Be brief.", "messages": [{"role": "user", "content": "q1"}]}
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "a1"}],
    "usage": {"input_tokens": 7, "output_tokens": 2},
}
AGAIN = {**ASK, "messages": [*ASK["messages"], {"role": "assistant", "content": "a1"}, {"role": "user", "content": "q2"}]}
ANSWER_2 = {**ANSWER, "id": "msg_2", "content": [{"type": "text", "text": "a2"}], "usage": {"input_tokens": 11, "output_tokens": 3}}


def entry(url: str, sent: Any, got: Any, *, time: str = "2026-03-01T10:00:00.000Z", **content: Any) -> dict[str, Any]:
    """An entry of a HAR archive, with keys everywhere where a browser or a proxy leaves them."""
    secret = [{"name": "Authorization", "value": f"Bearer {KEY}"}, {"name": "x-api-key", "value": KEY}, {"name": "Cookie", "value": KEY}]
    text = got if isinstance(got, str) else json.dumps(got)
    return {
        "startedDateTime": time,
        "time": 1500,
        "request": {
            "method": "POST",
            "url": f"{url}?key={KEY}",
            "headers": secret,
            "cookies": secret,
            "postData": {"mimeType": "application/json", "text": json.dumps(sent)},
        },
        "response": {"status": 200, "headers": secret, "content": {"mimeType": "application/json", "text": text, **content}},
    }


def har(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"log": {"version": "1.2", "creator": {"name": "t"}, "entries": [*entries]}}


MESSAGES = "https://api.anthropic.com/v1/messages"
TALK = (entry(MESSAGES, ASK, ANSWER), entry(MESSAGES, AGAIN, ANSWER_2, time="2026-03-01T10:00:10.000Z"))


def test_conversation_of_a_har_is_read_once(tmp_path: Path) -> None:
    transcript = readers.read(as_json(tmp_path / "t.har", har(*TALK)))
    check(transcript)
    assert (transcript.source.format, transcript.source.confidence) == ("http-capture", 0.97)
    assert [row[:2] for row in shape(transcript)] == [("user", "q1"), ("assistant", "a1"), ("user", "q2"), ("assistant", "a2")]
    assert [call.context for call in transcript.calls] == [(0,), (0, 1, 2)]
    assert sum(call.usage.total for call in transcript.calls if call.usage) == 23
    assert (transcript.system, transcript.meta["api"], transcript.records.total, transcript.records.messages) == (("Be brief.",), "anthropic", 2, 2)
    start = 1772359200000
    assert [message.ts for message in transcript.messages] == [start, start + 1500, start + 10_000, start + 11_500]
    assert [call.ts for call in transcript.calls] == [start + 1500, start + 11_500]


def test_no_key_gets_into_a_transcript(tmp_path: Path) -> None:
    for value in (har(*TALK), har(entry(MESSAGES, ASK, {"type": "error", "error": {"type": "authentication_error"}})), har(entry("https://x/", {}, ""), *TALK)):
        for transcript in readers.read_all(as_json(tmp_path / "t.har", value)):
            assert KEY not in repr(transcript) + repr([message.parts for message in transcript.messages]) + repr(transcript.diagnostics)


def test_streams_of_each_provider(tmp_path: Path) -> None:
    def stream(*events: dict[str, Any]) -> str:
        return "".join(f"event: x\ndata: {json.dumps(event)}\n\n" for event in events)

    claude = stream(
        {"type": "message_start", "message": {"id": "m1", "role": "assistant", "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "from Claude"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    )
    chat = stream({"choices": [{"delta": {"content": "from chat"}}]}, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
    responses = stream({"type": "response.output_text.delta", "delta": "from "}, {"type": "response.output_text.delta", "delta": "responses"},
                       {"type": "response.completed", "response": {"id": "r", "usage": {"input_tokens": 4, "output_tokens": 2}}})  # fmt: skip
    gemini = stream(
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "from Gemini"}]}}],
            "usageMetadata": {"promptTokenCount": 6, "candidatesTokenCount": 2},
        }
    )
    user = {"role": "user", "content": "q"}
    value = har(
        entry(MESSAGES, {"messages": [user]}, claude),
        entry("https://api.openai.com/v1/chat/completions", {"model": "m", "messages": [user]}, chat),
        entry("https://api.openai.com/v1/responses", {"model": "m", "input": "q"}, responses),
        entry("https://g/v1beta/models/gemini-x:streamGenerateContent", {"contents": [{"role": "user", "parts": [{"text": "q"}]}]}, gemini),
    )
    runs = readers.read_all(as_json(tmp_path / "t.har", value))
    for run in runs:
        check(run)
    assert [run.meta["api"] for run in runs] == ["anthropic", "openai-chat", "openai-responses", "google-genai"]
    assert [shape(run)[-1][1] for run in runs] == ["from Claude", "from chat", "from responses", "from Gemini"]
    assert [sum(call.usage.total or 0 for call in run.calls if call.usage) for run in runs] == [7, 4, 6, 8]
    assert len({run.id for run in runs}) == 4
    assert sum(run.records.total for run in runs) == 4


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_bodies_in_base64_and_packed(tmp_path: Path, pack: Any) -> None:
    packed = base64.b64encode(pack(json.dumps(ANSWER).encode())).decode()
    transcript = readers.read(as_json(tmp_path / "t.har", har(entry(MESSAGES, ASK, packed, encoding="base64"))))
    assert [row[1] for row in shape(transcript)] == ["q1", "a1"]


def test_a_bomb_in_a_body_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_capture, "MAX_BODY", 1 << 16)
    bomb = base64.b64encode(gzip.compress(b" " * (1 << 20))).decode()
    transcript = readers.read(as_json(tmp_path / "t.har", har(entry(MESSAGES, ASK, bomb, encoding="base64"), *TALK)))
    check(transcript)
    assert [item.code for item in transcript.diagnostics if item.line == 1] == ["body", "response"]
    assert shape(transcript)[-1][1] == "a2"


def test_all_bodies_together_are_bounded(tmp_path: Path) -> None:
    one = base64.b64encode(gzip.compress(json.dumps({**ANSWER, "pad": "x" * 40_000}).encode())).decode()
    bodies = http_capture.Bodies(left=100_000)
    found = [bodies.of({"text": one, "encoding": "base64"}) for _ in range(4)]
    assert [isinstance(value, dict) for value in found] == [True, True, False, False]
    assert "larger than any transcript" in bodies.fault


def test_other_traffic_is_metadata(tmp_path: Path) -> None:
    others = (
        entry("https://api.openai.com/v1/embeddings", {"model": "e", "input": "q"}, {"data": [{"embedding": [1.0]}]}),
        entry(f"{MESSAGES}/count_tokens", ASK, {"input_tokens": 7}),
        entry("https://example.org/index.html", {}, "<html>"),
        {"request": 7, "response": []},
    )
    transcript = readers.read(as_json(tmp_path / "t.har", har(*others, *TALK)))
    check(transcript)
    assert (len(transcript.messages), transcript.records.metadata, transcript.records.total) == (4, 4, 6)
    with pytest.raises(ReadError, match=r"no reader knows"):
        readers.read(as_json(tmp_path / "o.har", har(*others)))


def test_an_answer_that_failed_keeps_the_conversation_whole(tmp_path: Path) -> None:
    failed = entry(MESSAGES, AGAIN, {"type": "error", "error": {"type": "overloaded_error", "message": "x"}})
    transcript = readers.read(as_json(tmp_path / "t.har", har(TALK[0], failed, TALK[1])))
    check(transcript)
    assert [row[1] for row in shape(transcript)] == ["q1", "a1", "q2", "a2"]
    assert [item.text for item in transcript.diagnostics] == ["record 2: the request has no complete answer (overloaded_error)"]


def test_cassettes_and_lines_with_addresses(tmp_path: Path) -> None:
    both = ((ASK, ANSWER), (AGAIN, ANSWER_2))
    kept = [
        {
            "request": {"method": "POST", "uri": MESSAGES, "headers": {"x-api-key": [KEY]}, "body": json.dumps(sent)},
            "response": {"status": {"code": 200}, "body": {"string": json.dumps(got)}},
        }
        for sent, got in both
    ]
    lines = [
        {
            "request": {"timestamp": 1772359200.0, "method": "POST", "url": MESSAGES, "headers": {"authorization": KEY}, "body": sent},
            "response": {"timestamp": 1772359201.5, "status_code": 200, "headers": {}, "body_raw": json.dumps(got)},
        }
        for sent, got in both
    ]
    cassette = {"version": 1, "interactions": kept}
    for path in (as_json(tmp_path / "cassette.json", cassette), jsonl(tmp_path / "log.jsonl", lines), as_json(tmp_path / "log.json", lines)):
        transcript = readers.read(path)
        check(transcript)
        assert (transcript.source.format, transcript.records.total) == ("http-capture", 2)
        assert [row[1] for row in shape(transcript)] == ["q1", "a1", "q2", "a2"]
        assert KEY not in repr([message.parts for message in transcript.messages]) + repr(transcript.diagnostics) + repr(dict(transcript.meta))


def test_addresses_that_are_not_known_are_told_by_their_bodies(tmp_path: Path) -> None:
    sure = entry("https://proxy.local/llm", ASK, ANSWER)
    assert readers.read(as_json(tmp_path / "t.har", har(sure))).meta["api"] == "anthropic"
    with pytest.raises(ReadError):
        readers.read(as_json(tmp_path / "t.har", har(entry("https://proxy.local/search", {"input": "x", "model": "y"}, {"data": []}))))


@pytest.mark.parametrize("odd", [None, 7, "x", [], {}, [None], {"entries": 5}, {"entries": [None, 3, {"request": None}]}])
def test_odd_archives(tmp_path: Path, odd: Any) -> None:
    for value in ({"log": odd}, {"log": {"entries": odd}}, {"interactions": odd}):
        with pytest.raises(ReadError):
            readers.read(as_json(tmp_path / "t.har", value))
        with pytest.raises(ReadError):
            readers.read(tmp_path / "t.har", format="http-capture")
