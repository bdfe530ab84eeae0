"""The reader in the kernel: pages, search, filters, errors as data, what is freed."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.widgets.sessions import MARKUP, Mixed, hostile, session, view
from tests.widgets.test_strip import choose, needs_node, run_node, step_bytes, tags_of
from workbench.model import Media, Message, Reasoning, Source, Text, ToolCall, ToolResult, Transcript
from workbench.policies import Scv
from workbench.widgets.reader import MAX_ROWS, Reader, reader_table
from workbench.widgets.texts import PAGE, PREVIEW, clean, page, preview


class Page:
    """What the browser would do: ask with an id, get one reply."""

    def __init__(self, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reader, self.replies = reader, []
        monkeypatch.setattr(reader, "send", lambda content, buffers=None: self.replies.append((content, buffers)))

    replies: list[tuple[dict[str, Any], Any]]

    def ask(self, what: str, **content: Any) -> dict[str, Any]:
        self.reader._answer(self.reader, {"ask": what, "id": f"p:{len(self.replies)}", **content}, [])
        reply, buffers = self.replies[-1]
        assert reply["id"] == f"p:{len(self.replies) - 1}"
        json.dumps(reply).encode()  # it can cross the wire
        return reply | {"buffers": buffers}

    def find(self, **content: Any) -> list[int]:
        reply = self.ask("find", **content)
        rows: list[int] = np.frombuffer(reply["buffers"][0], np.int32).tolist()
        assert reply["count"] == len(rows)
        return rows


def text_of(messages: Page, row: int) -> str:
    """A whole message, page by page."""
    said, offset = "", 0
    while offset is not None:
        reply = messages.ask("text", row=row, offset=offset)
        assert reply["ok"], reply
        assert sum(len(piece[2]) for piece in reply["pieces"]) <= PAGE
        said += "".join(piece[2] for piece in reply["pieces"])
        assert reply["next"] is None or reply["next"] > offset
        offset = reply["next"]
    return said


def test_rows_come_by_page_with_the_ledger_s_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = view(session(200))
    browser = Page(Reader(seen), monkeypatch)
    reply = browser.ask("rows", rows=list(range(3, 40)))
    assert [row[0] for row in reply["rows"]] == list(range(3, 40))
    assert [row[3] for row in reply["rows"]] == seen.tokens[3:40].tolist()
    assert [row[1] for row in reply["rows"]] == [message.role for message in seen.messages[3:40]]
    starts = {turn.messages[0] for turn in seen.turns}
    assert [row[7] for row in reply["rows"]] == [index in starts for index in range(3, 40)]
    assert all(len(row[5]) <= PREVIEW and "\n" not in row[5] and "\x1b" not in row[5] for row in reply["rows"])
    assert len(browser.ask("rows", rows=list(range(199)) * 4)["rows"]) == MAX_ROWS


def test_no_text_stands_in_the_state() -> None:
    seen = view(session(300))
    reader = Reader(seen)
    reader.show(choose(seen))
    state = json.dumps({name: str(value) for name, value in reader.get_state().items() if name not in ("_esm", "_css")})
    assert "currency" not in state
    assert "careful engineer" not in state
    reader.close()


@pytest.mark.parametrize("messages", [2_000, 20_000])
def test_a_step_is_small(messages: int) -> None:
    seen = view(session(messages))
    reader = Reader(seen)
    for policy in (Scv(), Mixed()):
        reader.show(choose(seen, policy))
        assert step_bytes(reader.step) <= messages / 4 + 400
    reader.close()


def test_search_and_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    transcript = session(200)
    seen = view(transcript)
    browser = Page(Reader(seen), monkeypatch)
    want = [m.index for m in transcript.messages if m.result and "KeyError" in m.result.text]
    assert browser.find(query="keyERROR") == want
    assert browser.find(query="KeyError", role="user") == []
    assert browser.find(role="user") == [m.index for m in transcript.messages if m.role == "user"]
    assert browser.find(kind="reasoning") == [m.index for m in transcript.messages if any(type(p) is Reasoning for p in m.parts)]
    grep = [m.index for m in transcript.messages if any(c.name == "grep" for c in m.calls) or (m.result and m.result.name == "grep")]
    assert browser.find(tool="grep") == grep
    assert browser.find(tool="no such tool") == []
    assert browser.find(query="pytest -q") == [m.index for m in transcript.messages if any("pytest" in c.arguments_raw for c in m.calls)]
    row = next(row for row in browser.ask("rows", rows=want[:1], query="KEYERROR")["rows"])
    start, end = row[8]
    assert row[5][start:end] == "KeyError"


def test_a_result_without_a_name_is_found_by_its_call_s_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (Message(0, "", "assistant", (ToolCall("a", "grep", {}, "{}"),)), Message(1, "", "tool", (ToolResult("a", None, (Text("x"),)),)))
    assert Page(Reader(view(Transcript("t", Source("made"), rows))), monkeypatch).find(tool="grep") == [0, 1]


def test_a_huge_text_crosses_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "\x1b[1mline\x1b[0m of output\n" * 1_800_000  # 40 MB
    seen = view(Transcript("t", Source("made"), (Message(0, "", "tool", (ToolResult("a", "run", (Text(words),)),)),)))
    browser = Page(Reader(seen), monkeypatch)
    (row,) = browser.ask("rows", rows=[0])["rows"]
    assert row[4] == len(words)
    assert len(row[5]) <= PREVIEW
    reply = browser.ask("text", row=0)
    assert reply["total"] == len(words)
    assert len(json.dumps(reply["pieces"])) < 2 * PAGE
    far = browser.ask("text", row=0, offset=len(words) - 100)
    assert far["next"] is None
    assert far["pieces"][0][2].endswith("line of output\n")


def test_pages_together_are_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "".join(f"{i} \x1b[3{i % 8}mword\x1b[0m\r\n" for i in range(9_000))
    parts = (Reasoning("thought " * 4_000), Text("said"), ToolCall("a", "run", {}, "{}"), ToolCall("b", "run", {}, words), Media("image"))
    browser = Page(Reader(view(Transcript("t", Source("made"), (Message(0, "", "assistant", parts),)))), monkeypatch)
    assert text_of(browser, 0) == "thought " * 4_000 + "said" + "{}" + clean(words)


@given(st.lists(st.text(max_size=12), max_size=4), st.integers(1, 9))
def test_pages_of_any_size_lose_nothing(texts: list[str], limit: int) -> None:
    message = Message(0, "", "assistant", tuple(Text(text.replace("\x1b", "").replace("\r", "").replace("\x9b", "")) for text in texts))
    titles, said, offset = 0, "", 0
    while offset is not None:
        part = page(message, offset, limit)
        said += "".join(piece.text for piece in part.pieces)
        titles += sum(1 for piece in part.pieces if piece.title)
        offset = part.next  # type: ignore[assignment]
    assert said == clean("".join(part.text for part in message.parts if type(part) is Text))
    assert titles == len(texts)


@given(st.text())
def test_clean_text_is_printable_and_crosses(text: str) -> None:
    shown = clean(text)
    shown.encode()
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in shown)


def test_hostile_text_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = view(hostile())
    reader = Reader(seen)
    browser = Page(reader, monkeypatch)
    rows = browser.ask("rows", rows=[0, 1, 2])["rows"]
    assert rows[0][5] == MARKUP  # as it is: the page shows it as text
    assert rows[1][5].startswith(f"→ {MARKUP}")
    assert "red 50% \ufffd end" in rows[2][5]
    assert reader.rows["tools"] == [MARKUP[:80]]
    tags, words = tags_of(reader_table(seen, choose(seen, Mixed())))
    assert set(tags) == {"table", "caption", "tr", "th", "td"}
    assert MARKUP in words
    reader.close()


def test_notes_stand_after_what_they_cover_and_open_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = view(session(200))
    reader = Reader(seen)
    browser = Page(reader, monkeypatch)
    selection = choose(seen, Mixed())
    reader.show(selection)
    shown = reader.step["notes"]
    assert [note[0] for note in shown if note[4]] == [max(note.covers) for note in selection.notes]
    assert [note[4] for note in shown] == [1, 1, 0]
    for number, note in enumerate(selection.notes):
        reply = browser.ask("text", note=number, version=reader.step["version"])
        assert "".join(piece[2] for piece in reply["pieces"]) == note.message.text
    added = browser.ask("text", note=2, version=reader.step["version"])
    assert added["pieces"][0][2] == "Go on."
    old = browser.ask("text", note=0, version=reader.step["version"] - 1)
    assert (old["ok"], old["error"]) == (False, "this note is of an older selection; open it again")


@pytest.mark.parametrize(
    "content", [{"ask": "rows"}, {"ask": "rows", "rows": [10**9]}, {"ask": "text", "row": "x"}, {"ask": "find", "kind": "?"}, {"ask": "__class__"}, {}]
)
def test_an_error_comes_back_as_data(content: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Page(Reader(view(session(10))), monkeypatch)
    reply = browser.ask(content.pop("ask", ""), **content)
    assert reply["ok"] is False
    assert reply["error"].startswith("the reader could not answer")


def test_close_frees_the_transcript() -> None:
    transcript = session(50)
    reader = Reader(view(transcript))
    seen = reader._view
    assert seen is not None
    reader.show(choose(seen, Mixed()))
    reader._repr_mimebundle_()
    dead = weakref.ref(transcript)
    reader.close()
    del transcript, seen
    gc.collect()
    assert dead() is None
    assert repr(reader) == "<Reader: closed>"
    reader._answer(reader, {"ask": "rows", "rows": [0], "id": 1}, [])  # a late request is no error


def test_rebind_takes_off_pins_that_are_not_there() -> None:
    reader = Reader(view(session(50)), pins=[3, 40])
    reader.rebind(view(session(20)))
    assert (reader.pins, reader.rows["n"]) == ([3], 20)
    with pytest.raises(ValueError, match="rebind"):
        reader.show(choose(view(session(50))))
    reader.close()


def test_an_empty_transcript_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(view(Transcript("none", Source("made"))))
    browser = Page(reader, monkeypatch)
    assert browser.find(query="x") == []
    data, _ = reader._repr_mimebundle_()
    assert data["text/html"] == "<table><caption>no messages</caption></table>"
    reader.close()


def test_every_kind_is_previewed_to_the_same_limit() -> None:
    long = "word " * 400
    kinds: list[Any] = [Text(long), Reasoning(long), ToolCall("a", "run", {}, long), ToolResult("a", "run", (Text(long),))]
    assert {len(preview(Message(0, "", "assistant", (part,))).text) for part in kinds} <= set(range(PREVIEW - 2, PREVIEW + 1))
    assert preview(Message(0, "", "user", (Media("image", width=3, height=4, size=9),))).text == "▣ image 3 × 4, 9 bytes"
    assert preview(Message(0, "", "assistant", (Reasoning(None, 300),))).text == "[reasoning (300 bytes not readable), empty]"
    assert preview(Message(0, "", "assistant", ())).text == ""


@needs_node
def test_the_window_of_rows(tmp_path: Path) -> None:
    asked = ["20000, 0, 378", "20000, 270000, 378", "20000, 539622, 378", "3, 0, 378", "100, 400, 300, 2, 300"]
    body = f"out = [{', '.join(f'view.windowOf({what})' for what in asked)}];"
    assert run_node(tmp_path, "reader", body) == [[0, 18], [9997, 10018], [19983, 20000], [0, 3], [0, 18]]


@needs_node
def test_notes_are_woven_in_where_they_stand(tmp_path: Path) -> None:
    body = "out = [view.weave([0, 1, 2, 3], [[1, 9], [-1, 9], [3, 9], [1, 9]]), view.weave([], [])];"
    assert run_node(tmp_path, "reader", body) == [[-2, 0, 1, -1, -4, 2, 3, -3], []]
