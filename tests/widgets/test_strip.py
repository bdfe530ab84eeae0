"""The strip in the kernel: what crosses, what is shown, what is freed. Its browser code by node, where there is one."""

from __future__ import annotations

import base64
import gc
import json
import re
import shutil
import subprocess
import weakref
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.widgets.sessions import MARKUP, Mixed, hostile, session, view
from workbench.ledger import View
from workbench.model import KINDS, Budget, Message, Source, Text, Transcript
from workbench.policies import Scv
from workbench.policies.base import Request, Selection
from workbench.widgets.assets import css, esm
from workbench.widgets.static_form import COLUMNS, strip_svg
from workbench.widgets.strip import Strip
from workbench.widgets.wire import cuts, pack_fates, pack_rows, sent, varints, zigzag

BUDGET = Budget(32_000, 2_048, 512)


def choose(of: View, policy: Any = None, budget: Budget = BUDGET) -> Selection:
    selection: Selection = (policy or Scv()).select(Request(of, budget))
    return selection


def read_varints(data: bytes) -> list[int]:
    out, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift = shift + 7 if byte > 127 else 0
        if byte < 128:
            out.append(value)
            value = 0
    return out


def step_bytes(step: dict[str, Any]) -> int:
    """Bytes of a step on the wire: its buffers, and the rest as JSON."""
    buffers = sum(len(value) for value in step.values() if isinstance(value, bytes))
    return buffers + len(json.dumps({name: value for name, value in step.items() if not isinstance(value, bytes)}))


@given(st.lists(st.integers(0, 2**40)))
def test_varints_come_back(numbers: list[int]) -> None:
    assert read_varints(varints(numbers)) == numbers


@given(st.lists(st.integers(-(2**30), 2**30)))
def test_zigzag_comes_back(numbers: list[int]) -> None:
    mapped = zigzag(np.array(numbers, np.int64))
    assert all(number >= 0 for number in mapped)
    assert [number // 2 if number % 2 == 0 else -(number + 1) // 2 for number in mapped] == numbers


@given(st.lists(st.integers(0, 3)))
def test_fates_come_back(codes: list[int]) -> None:
    packed = pack_fates(np.array(codes, np.uint8))
    assert [packed[i // 4] >> i % 4 * 2 & 3 for i in range(len(codes))] == codes
    assert len(packed) == -(-len(codes) // 4)


def test_rows_hold_every_token_of_the_request() -> None:
    seen = view(session(200))
    rows: Any = pack_rows(seen)
    outside = sum(tokens for _, tokens in rows["fixed"])
    assert outside + np.frombuffer(rows["segment_tokens"], np.int32).sum() == seen.total
    per_row = np.split(np.frombuffer(rows["segment_tokens"], np.int32), np.cumsum(np.frombuffer(rows["segments"], np.uint8))[:-1])
    assert [int(part.sum()) for part in per_row] == seen.tokens.tolist()
    assert np.frombuffer(rows["index"], np.int32).tolist() == seen.indices.tolist()


@pytest.mark.parametrize("policy", [Scv(), Mixed(), Mixed(shuffled=True)])
def test_what_is_sent_adds_up_to_the_tokens_after(policy: Any) -> None:
    seen = view(session(203))
    selection = choose(seen, policy)
    what = sent(selection)
    outside = seen.fixed - int(seen.tokens[: seen.lead].sum())
    kept = sum(int(seen.tokens[row]) for row in what.rows.tolist() if selection.fate_codes[row] == 0)
    assert outside + kept + sum(what.edits) + sum(item.tokens for item in what.inserts) == selection.after_tokens
    assert seen.indices[what.rows].tolist() == list(selection.indices)
    assert [item.covers for item in what.inserts if item.is_note] == [len(note.covers) for note in selection.notes]


def test_a_changed_order_is_sent_and_the_usual_one_is_not() -> None:
    seen, strip = view(session(203)), None
    strip = Strip(seen)
    strip.show(choose(seen, Mixed()), BUDGET)
    assert strip.step["order"] == b""
    strip.show(choose(seen, Mixed(shuffled=True)), BUDGET)
    count, *deltas = read_varints(strip.step["order"])
    rows = np.cumsum([number // 2 if number % 2 == 0 else -(number + 1) // 2 for number in deltas])
    assert count == len(rows)
    assert seen.indices[rows].tolist() == list(choose(seen, Mixed(shuffled=True)).indices)
    strip.close()


@pytest.mark.parametrize("messages", [2_000, 20_000])
def test_a_step_is_small(messages: int) -> None:
    seen = view(session(messages))
    strip = Strip(seen)
    for policy in (Scv(), Mixed(keep=0.9)):
        strip.show(choose(seen, policy, Budget(400_000, 2_048, 512)), BUDGET)
        assert step_bytes(strip.step) <= messages
    strip.close()


def test_show_gives_the_selection_s_own_numbers() -> None:
    seen = view(session(200))
    strip = Strip(seen)
    selection = choose(seen)
    strip.show(selection, BUDGET, own_limit="40 messages")
    numbers = strip.step["numbers"]
    assert (numbers["before"], numbers["after"], numbers["available"]) == (selection.before_tokens, selection.after_tokens, BUDGET.available)
    assert (strip.max_tokens, strip.step["limit"]) == (BUDGET.max_tokens, "40 messages")
    version = strip.step["version"]
    strip.show(None, Budget(12_000, 200, 100), needed=12_000, available=11_700)
    assert strip.step["over"] == {"needed": 12_000, "available": 11_700}
    assert "fates" not in strip.step
    assert "limit" not in strip.step
    assert strip.step["version"] == version + 1
    strip.close()


def test_a_selection_of_another_view_is_refused() -> None:
    strip, other = Strip(view(session(20))), view(session(30))
    with pytest.raises(ValueError, match="rebind"):
        strip.show(choose(other), BUDGET)
    strip.rebind(other)
    strip.show(choose(other), BUDGET)
    assert strip.rows["n"] == 30
    strip.close()
    with pytest.raises(ValueError, match="closed"):
        strip.show(None, BUDGET)


def test_close_frees_the_transcript() -> None:
    transcript = session(50)
    strip, seen = Strip(view(transcript)), None
    seen = strip._view
    assert seen is not None
    strip.show(choose(seen), BUDGET)
    dead = weakref.ref(transcript)
    strip.close()
    del transcript, seen
    gc.collect()
    assert dead() is None
    assert repr(strip) == "<Strip: closed>"


def test_real_compactions_are_cuts_in_both_histories() -> None:
    transcript = session(100)
    assert cuts(view(transcript)) == [41]
    from workbench.ledger import count

    live = count(transcript).view(history="live")
    assert cuts(live) == [1]  # after the system message; all that follows is newer
    assert cuts(view(session(100, compacted=False))) == []


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def tags_of(markup: str) -> tuple[list[str], str]:
    parser = _Tags()
    parser.feed(markup)
    return parser.seen, " ".join(parser.words)


@pytest.mark.parametrize("messages", [200, 20_000])
def test_the_static_drawing_is_bounded_and_says_the_numbers(messages: int) -> None:
    seen = view(session(messages))
    for policy in (Scv(), Mixed()):
        selection = choose(seen, policy, Budget(400_000, 2_048, 512))
        markup = strip_svg(selection)
        tags, words = tags_of(markup)
        assert tags.count("rect") <= 2 * COLUMNS
        assert f"before {selection.before_tokens:,} tokens, after {selection.after_tokens:,}" in words
        assert f"{selection.counts['summarized']:,} summarized" in words
        assert set(tags) <= {"figure", "svg", "rect", "path", "text", "circle", "figcaption"}


def test_static_widths_are_the_tokens() -> None:
    seen = view(session(200))
    selection = choose(seen)
    rects = [(float(x), float(y), float(w)) for x, y, w in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', strip_svg(selection))]
    after = sum(width for _, y, width in rects if y >= 102)
    before = sum(width for _, y, width in rects if y < 102)
    assert after / before == pytest.approx(selection.after_tokens / selection.before_tokens, abs=0.01)


def test_the_live_view_carries_the_static_one() -> None:
    seen = view(hostile())
    strip = Strip(seen)
    strip.show(choose(seen, Mixed(keep=0.5)), BUDGET)
    data, _ = strip._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"].startswith("<figure")
    assert MARKUP not in data["text/html"]
    assert "tokens" in data["text/plain"]
    strip.close()


def test_an_empty_transcript_is_shown() -> None:
    seen = view(Transcript("none", Source("made")))
    strip = Strip(seen)
    strip.show(choose(seen, Mixed()), BUDGET)
    assert strip.rows["n"] == 0
    assert "<svg" in strip_svg(choose(seen, Mixed()))
    strip.close()


def test_names_of_tools_cross_as_plain_short_text() -> None:
    rows: Any = pack_rows(view(hostile()))
    assert rows["names"] == [MARKUP[:80]]
    assert np.frombuffer(rows["name"], np.uint16).tolist() == [0, 1, 1, 0, 0]
    json.dumps(rows["names"]).encode()


def test_the_code_of_both_views_is_small_and_asks_for_nothing() -> None:
    code = [esm("strip"), esm("reader"), css("strip"), css("reader")]
    assert sum(len(text.encode()) for text in code) <= 75_000
    for text in code:
        assert not re.search(r"https?://|@import|url\(|innerHTML|insertAdjacentHTML|document\.write|\beval\(", text)


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def theme(dark: bool) -> dict[str, str]:
    """The colour variables of a theme; JupyterLab's own are taken at their fallback."""
    light_block, dark_block = css().split('[data-jp-theme-light="false"]')
    found: dict[str, str] = {}
    for block in (light_block, dark_block) if dark else (light_block,):
        found |= {
            name: value if len(value) == 7 else "#" + "".join(2 * c for c in value[1:])
            for name, value in re.findall(r"--cw-([\w-]+): (?:var\([\w-]+, )?(#[0-9a-f]+)", block)
        }
    return found


@pytest.mark.parametrize("dark", [False, True])
def test_contrast_is_enough_in_both_themes(dark: bool) -> None:
    colours = theme(dark)
    for ground in ("bg", "bg1", "bg2", "sel"):
        for text in ("fg", "fg2", "bad"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    assert contrast(colours["fg"], colours["hit"]) >= 4.5
    assert contrast(colours["bg"], colours["accent"]) >= 4.5  # a pin that is set
    for kind in KINDS:
        for ground in ("bg", "bg1", "sel"):
            assert contrast(colours[f"{kind}-ink"], colours[ground]) >= 3, (kind, ground)


# The browser code, by node.

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no node to run the browser code in")


def run_node(folder: Path, name: str, body: str, data: object = None) -> Any:
    """Run a few lines against a view's module and give back what they assign to ``out``."""
    (folder / "view.mjs").write_text(esm(name))
    (folder / "data.json").write_text(json.dumps(data))
    (folder / "run.mjs").write_text(
        "import * as view from './view.mjs'; import { readFileSync } from 'node:fs';\n"
        "const data = JSON.parse(readFileSync(new URL('./data.json', import.meta.url)));\n"
        "const bytes = text => new DataView(new Uint8Array(Buffer.from(text, 'base64')).buffer);\n"
        f"let out; {body}\nconsole.log(JSON.stringify(out));\n"
    )
    assert NODE
    done = subprocess.run([NODE, "run.mjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def as_base64(values: dict[str, Any]) -> dict[str, Any]:
    return {name: {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value for name, value in values.items()}


DECODE = "const decode = o => Object.fromEntries(Object.entries(o).map(([k, v]) => [k, v && v.base64 !== undefined ? bytes(v.base64) : v]));"


@needs_node
@pytest.mark.parametrize("policy", [Scv(), Mixed(), Mixed(shuffled=True)])
def test_the_browser_reads_what_the_kernel_wrote(tmp_path: Path, policy: Any) -> None:
    seen = view(session(203))
    selection = choose(seen, policy)
    strip = Strip(seen)
    strip.show(selection, BUDGET)
    out = run_node(
        tmp_path,
        "strip",
        DECODE + "const rows = view.readRows(decode(data.rows)), step = view.readStep(rows, decode(data.step));"
        "out = { before: rows.edges[rows.segments], after: step.after.total, counts: step.counts, rows: step.rows.map(r => rows.index[r]),"
        " starts: [...rows.rowEdges], notes: step.inserts.filter(i => i.note).map(i => [i.covers, i.quotes]) };",
        {"rows": as_base64(strip.rows), "step": as_base64(strip.step)},
    )
    assert (out["before"], round(out["after"])) == (selection.before_tokens, selection.after_tokens)
    assert out["counts"] == list(selection.counts.values())
    assert out["rows"] == list(selection.indices)
    assert np.diff(out["starts"]).tolist() == seen.tokens.tolist()
    assert out["notes"] == [[len(note.covers), len(note.quotes)] for note in selection.notes]
    strip.close()


@needs_node
def test_columns_are_bounded_and_keep_the_shares(tmp_path: Path) -> None:
    out = run_node(
        tmp_path,
        "strip",
        """const n = 20000, edges = new Float64Array(n + 1), styles = new Uint8Array(n);
        for (let i = 0; i < n; i++) { styles[i] = i % 10 ? 6 : 2; edges[i + 1] = edges[i] + (i % 10 ? 300 : 100); }
        const columns = view.columnStyles(edges, styles, n, 0, 1000 / edges[n], 1000);
        const wide = view.columnStyles(Float64Array.of(0, 2, 8, 10), Uint8Array.of(1, 2, 3), 3, 0, 10, 100);
        const many = (list, style) => list.filter(s => s === style).length;
        out = { length: columns.length, small: many(columns, 2), empty: many(columns, 255), wide: [1, 2, 3].map(s => many(wide, s)),
          zoomed: [...view.columnStyles(Float64Array.of(0, 2, 8, 10), Uint8Array.of(1, 2, 3), 3, 7, 2, 8)] };""",
    )
    assert out["length"] == 1000
    assert out["empty"] == 0
    assert out["small"] == pytest.approx(1000 * 100 / 2800, abs=3)
    assert out["wide"] == [20, 60, 20]
    assert out["zoomed"] == [2, 2, 3, 3, 3, 3, 255, 255]


@needs_node
def test_bands_closer_than_a_pixel_are_one(tmp_path: Path) -> None:
    body = "out = view.bands([[0, 1, 0, 1], [1.4, 2, 1.2, 2], [9, 10, 3, 4]]);"
    assert run_node(tmp_path, "strip", body) == [[0, 2, 0, 2], [9, 10, 3, 4]]


def test_a_message_without_tokens_is_no_trouble() -> None:
    seen = view(Transcript("t", Source("made"), (Message(0, "", "user", (Text(""),)), Message(1, "", "assistant", ()))))
    rows: Any = pack_rows(seen)
    assert rows["n"] == 2
    Strip(seen).close()
