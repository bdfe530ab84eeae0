"""The Layout tab in a real JupyterLab: the page shows the kernel's blocks, by mouse and by keys; text is never markup."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Notebook

pytestmark = pytest.mark.browser

SET_UP = """
import json
import workbench as wb
from ipywidgets.widgets.widget import _instances
from tests.readers.test_prefix import pair
from tests.synthetic import session
from tests.widgets.sessions import MARKUP
from workbench.widgets.layout import Layout
from workbench.widgets.session import Session

def shown(transcript, *how):
    s = Session(wb.count(transcript, 'chars/4'), *how)
    v = Layout(s)
    s.on_settle(v.refresh)
    return s, v

def captured():
    "A recorded session: the clock in its system text moves on, then a tool comes, named in markup."
    rows = [pair('anthropic', n, f'You are careful. It is 10:0{n // 4}.', ['ls'] if n < 6 else ['ls', MARKUP]) for n in range(8)]
    for n, row in enumerate(rows):
        row['response']['usage'] = {'input_tokens': 9, 'cache_read_input_tokens': 0 if n in (0, 4, 6) else 800, 'output_tokens': 5}
    with open('capture.jsonl', 'w') as file:
        file.writelines(json.dumps(row) + chr(10) for row in rows)
    return wb.read('capture.jsonl')
"""
TOKENS = "() => [...document.querySelectorAll('.cw-layout tr[data-row] td:nth-child(3)')].map((cell) => Number(cell.textContent.replaceAll(',', '')))"
PARTS = "() => [...document.querySelectorAll('.cw-l-part')].map((part) => part.getBoundingClientRect()).map((box) => [box.left, box.width])"


def test_the_request_in_order(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "s, v = shown(session(202), 'kernel', 32_000)\nv"], size=(1300, 700))
    page = book.page
    page.wait_for_selector(".cw-layout tr[data-row]")
    tokens = book.python("[block.tokens for block in v.shown.blocks]")
    assert page.evaluate(TOKENS) == tokens
    assert sum(tokens) == book.python("s.selection.after_tokens")
    left, width = page.evaluate("(() => { const box = document.querySelector('.cw-l-track').getBoundingClientRect(); return [box.left, box.width]; })()")
    total, before = sum(tokens), 0
    for (x, w), size in zip(page.evaluate(PARTS), tokens, strict=True):  # true proportions, at least a pixel
        assert x == pytest.approx(left + width * before / total, abs=0.6)
        assert w == pytest.approx(max(1, width * size / total), abs=0.6)
        before += size
    assert page.locator(".cw-l-cut td:first-child").all_inner_texts() == [
        "cache breakpoint 1: after the prefix",
        "cache breakpoint 2: before the current turn",
        "cache breakpoint 3: after the last message",
    ]
    book.only_outputs()
    book.shot("layout_light")
    book.theme(light=False)

    # Click and keys select; Python selects.
    row = page.locator(".cw-layout tr[data-row]").nth(3)
    first = book.python("v.shown.blocks[3].messages[0]")
    row.locator("button").click()
    book.becomes("v.selected", first)
    page.wait_for_selector(".cw-layout tr[data-row='3'][aria-current=true]")
    page.locator(".cw-layout tr[data-row='4'] button").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".cw-layout tr[data-row='4'][aria-current=true]")
    book.python("setattr(v, 'selected', v.shown.blocks[-2].messages[-1])")
    page.wait_for_selector(".cw-layout tr.cw-l-on:nth-last-child(3)")
    book.shot("layout_dark")

    # The digest: short, whole on demand, by keys.
    digest = page.get_by_role("button", name=book.python("v.shown.digest")[:12])
    assert digest.inner_text() == book.python("v.shown.digest")[:12]
    digest.press("Enter")
    page.get_by_role("button", name=book.python("v.shown.digest"), exact=True).wait_for()
    assert page.evaluate("document.activeElement.dataset.do") == "whole"

    # Another budget, an infeasible one, and back.
    book.python("setattr(s, 'policy', 'scv')")
    page.wait_for_function(f"want => ({TOKENS})().reduce((a, b) => a + b) === want", arg=book.python("s.selection.after_tokens"))
    book.python("setattr(s, 'budget', 11_000)")
    page.wait_for_selector(".cw-layout .cw-l-problem")
    assert page.locator(".cw-layout .cw-l-problem").inner_text().endswith(f"smallest window that works: {book.python('s.smallest_window'):,}")
    assert page.locator(".cw-layout tr[data-row]").count() == 0
    book.python("setattr(s, 'budget', 30_000)")
    page.wait_for_selector(".cw-layout tr[data-row]")
    assert page.evaluate(TOKENS) == book.python("[block.tokens for block in v.shown.blocks]")


def test_prefix_changes_of_a_recorded_session(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "s, v = shown(captured(), 'none')\nv"], size=(1300, 700))
    page = book.page
    page.wait_for_selector(".cw-l-changes li")
    first, second = page.locator(".cw-l-changes li").all()
    assert first.locator(".cw-l-what").first.inner_text() == "system text changed at the same length, the first change at character 28"
    assert second.locator(".cw-l-what").first.inner_text() == f"tool {book.python('MARKUP')} added"
    assert "0 of 9 prompt tokens" in second.inner_text()
    book.only_outputs()
    book.shot("layout_changes_light")
    book.theme(light=False)
    first.locator("button").click()
    book.becomes("v.selected", 8)
    book.shot("layout_changes_dark")
    assert page.evaluate("[window.broken, document.querySelectorAll('.cw-layout img, .cw-layout script').length]") == [None, 0]


def test_a_long_session_is_bounded(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "s, v = shown(session(20_000), 'none')\nv"], size=(1300, 700))
    page = book.page
    page.wait_for_selector(".cw-layout tr[data-row]")
    assert sum(page.evaluate(TOKENS)) == book.python("s.selection.after_tokens")
    assert 100 < page.locator(".cw-layout tr[data-row]").count() <= 210
    book.only_outputs()
    book.python("setattr(v, 'selected', 10_000)")
    page.wait_for_selector(".cw-layout tr.cw-l-on")
    row, view = page.locator("tr.cw-l-on").bounding_box(), page.locator(".cw-l-list").bounding_box()
    assert row
    assert view
    assert view["y"] <= row["y"] <= view["y"] + view["height"] - row["height"] + 1
    book.shot("layout_long")
    page.set_viewport_size({"width": 560, "height": 900})
    book.shot("layout_narrow")
    before = book.python("len(_instances)")
    book.python("v.close()")
    assert book.python("len(_instances)") < before
    page.wait_for_selector(".cw-layout", state="detached")


def test_as_a_tab_of_the_workbench(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "w = wb.Workbench(session(202), policy='scv', budget=24_000)\nw"], size=(1400, 1250))
    page = book.page
    book.only_outputs()
    page.get_by_role("button", name="Layout", exact=True).click()
    page.wait_for_selector(".cw-layout tr[data-row]")
    assert sum(page.evaluate(TOKENS)) == book.python("w.selection.after_tokens")
    row = page.locator(".cw-layout tr[data-row] button").last
    row.click()
    book.becomes("w.selected", int(page.locator(".cw-layout .cw-l-on[data-go]").get_attribute("data-go") or -1))
    page.wait_for_function("want => Number(document.querySelector('.cw-reader').dataset.selected) === want", arg=book.python("w.selected"))
    book.python("setattr(w, 'selected', w.selection.indices[-3])")
    page.wait_for_selector(".cw-layout tr[aria-current=true]")
    book.shot("layout_in_workbench")
    book.python("setattr(w, 'budget', 40_000)")
    page.wait_for_function(f"want => ({TOKENS})().reduce((a, b) => a + b) === want", arg=book.python("w.selection.after_tokens"))
    book.python("setattr(w, 'budget', 9_000)")
    page.wait_for_selector(".cw-layout .cw-l-problem")
