"""The workbench in a real JupyterLab: every number in the page is the kernel's, whatever was done with keys, mouse or Python."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import SLOW, Notebook

pytestmark = pytest.mark.browser

SET_UP = """
import workbench as wb
from ipywidgets.widgets.widget import _instances
from tests.synthetic import session
from tests.widgets.made import Newest
from tests.widgets.sessions import MARKUP, hostile

def state(w):
    "What a fresh computation says now; the page must show it."
    budget, fixed = w.budget, w.ledger.view(history=w.history)
    out = {'policy': w.policy.info.name, 'budget': [budget.max_tokens, budget.reserve_output_tokens, budget.safety_margin_tokens],
           'before': fixed.total, 'selected': -1 if w.selected is None else w.selected}
    try:
        fresh = wb.select(w.ledger, w.policy, budget, history=w.history, pins=w.pins)
    except wb.errors.BudgetError as error:
        assert w.selection is None
        return out | {'after': None, 'needed': error.needed, 'available': error.available}
    assert fresh.after_tokens == w.selection.after_tokens and (fresh.fate_codes == w.selection.fate_codes).all()
    return out | {'after': fresh.after_tokens, 'own': fresh.own_after, 'counts': fresh.counts}
"""

#: What the page shows, from every view that shows it, in the form of `state`. A list where several views must agree.
SHOWN = """() => {
  const number = (text) => Number((text ?? '').replace(/[^0-9.-]/g, ''));
  const all = (query) => [...document.querySelectorAll(query)];
  const rows = Object.fromEntries(all('.cw-result div').map((row) => [row.children[0].textContent, row.children[1].textContent]));
  const strip = document.querySelector('.cw-strip').dataset, reader = document.querySelector('.cw-reader').dataset;
  const shown = {
    policy: document.querySelector('.cw-policy').value,
    budget: all('.cw-controls .cw-field[data-field$=_tokens] .cw-box').map((box) => number(box.value)),
    max: Number(strip.max),
    before: [number(rows.before), Number(strip.before), number(document.querySelector('.cw-header .cw-total').textContent)],
    selected: [Number(strip.selected), Number(reader.selected)],
  };
  if (rows.needed) return { ...shown, after: null, needed: number(rows.needed), available: number(rows.available), state: strip.state };
  const fate = (name) => [number((rows[name] ?? '0').split(' ')[0]), Number(strip[name])];
  const counts = Object.fromEntries(['kept', 'edited', 'summarized', 'dropped'].map((name) => [name, fate(name)]));
  return { ...shown, after: [number(rows.after), Number(strip.after)], own: number(rows["policy's own estimate"]), counts };
}"""

MATCHES = """(want) => {
  const shown = (SHOWN)();
  function same(a, b) {
    if (Array.isArray(a)) return a.length === b.length && a.every((one, i) => one === b[i]);
    if (Array.isArray(b)) return b.every((one) => one === a);
    return a && typeof a === 'object' ? Object.keys(a).every((key) => same(a[key], b[key])) : a === b;
  }
  return same(want, shown) && shown.max === want.budget[0];
}""".replace("SHOWN", SHOWN)


def agree(book: Notebook, name: str = "w") -> dict[str, Any]:
    """Wait until every view shows what a fresh computation in the kernel gives at the kernel's present values."""
    end = time.monotonic() + 30 * SLOW
    while True:  # a value may still be on its way to the kernel when it is asked
        want: dict[str, Any] = book.python(f"state({name})")
        if book.page.evaluate(f"({MATCHES})({json.dumps(want)})"):
            return want
        assert time.monotonic() < end, f"the page shows {book.page.evaluate(SHOWN)}, the kernel says {want}"


def test_the_first_sight_and_every_control(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "w = wb.Workbench(session(202, compacted=True))\nw"])
    page = book.page
    first = agree(book)
    assert 0 < first["counts"]["summarized"] < 202
    assert "about half" in page.locator(".cw-budget-hint").inner_text()
    page.wait_for_selector(".cw-side .cw-note")
    page.wait_for_function("document.querySelector('.cw-reader').dataset.ready === 'true'")
    note = book.python("w.selection.notes[0].message.text")
    assert page.locator(".cw-side pre.cw-note").inner_text().split() == note.split()
    book.shot("workbench_light")

    # The window by keys: a burst, and the last value wins.
    window = page.get_by_role("slider", name="Window")
    window.focus()
    for _ in range(8):
        window.press("ArrowRight")
    book.becomes("w.budget.max_tokens", first["budget"][0] + 4_000)
    agree(book)
    for _ in range(3):
        window.press("PageDown")
    book.becomes("w.budget.max_tokens", first["budget"][0] + 4_000 - 3 * 5_000)
    assert agree(book)["counts"] != first["counts"]
    assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')") == f"{first['budget'][0] - 11_000:,} tokens"

    # The box beside it; nonsense in it is marked and changes nothing.
    box = page.locator(".cw-field[data-field=max_tokens] .cw-box")
    box.fill("19.5k")
    box.press("Enter")
    book.becomes("w.budget.max_tokens", 19_500)
    agree(book)
    box.fill("many")
    box.press("Enter")
    assert box.get_attribute("aria-invalid") == "true"
    box.press("Escape")
    assert book.python("w.budget.max_tokens") == 19_500
    reserve = page.get_by_role("slider", name="Reserve for output")
    reserve.focus()
    reserve.press("ArrowLeft")
    book.becomes("w.budget.reserve_output_tokens", 8_192 - 256)
    agree(book)

    # The line of the strip, by hand.
    line = page.locator(".cw-budget").bounding_box()
    page.mouse.move(line["x"] + line["width"] / 2, line["y"] + 20)
    page.mouse.down()
    page.mouse.move(line["x"] + line["width"] / 2 + 90, line["y"] + 20, steps=9)
    page.mouse.up()
    dragged = agree(book)
    assert dragged["budget"][0] > 19_500

    # Python.
    book.python("[setattr(w, 'budget', wb.Budget(24_000, 4_000, 500)), setattr(w, 'selected', 60)]")
    assert agree(book)["selected"] == 60
    page.wait_for_function("document.querySelector('.cw-why-title')?.textContent.startsWith('Why #60 is ')")

    # A parameter of the policy; a value that is not allowed is told.
    field = page.locator(".cw-field[data-field=summary_max_chars] .cw-box")
    field.fill("500")
    field.press("Enter")
    book.becomes("w.policy.summary_max_chars", 500)
    agree(book)
    field.fill("999999999")
    field.press("Enter")
    page.wait_for_selector(".cw-error:not([hidden])")
    assert "allowed are" in page.locator(".cw-error").inner_text()
    assert book.python("w.policy.summary_max_chars") == 500
    assert field.input_value() == "500" or page.evaluate("document.activeElement.blur()") is None

    # The policy and the history.
    page.locator(".cw-policy").select_option("none")
    book.becomes("w.policy.info.name", "none")
    agree(book)
    assert "nothing is ever removed" in page.locator(".cw-limit").inner_text()
    page.locator(".cw-policy").select_option("scv")
    book.becomes("w.policy == wb.policies.Scv(bytes_per_token=3, summary_max_chars=500)", True)
    page.get_by_role("radio", name="since the last compaction").check()
    book.becomes("w.history", "live")
    live = agree(book)
    assert live["before"] < first["before"]

    # Reset, and the Python that makes the state.
    page.get_by_role("button", name="Reset").click()
    book.becomes("w.history", "full")
    assert agree(book)["budget"] == first["budget"]
    page.get_by_role("button", name="Copy as Python").click()
    page.wait_for_selector(".cw-code:not([hidden])")
    assert "wb.select(led, wb.policies.Scv(), wb.Budget(max_tokens=" in page.locator(".cw-code").input_value()


def test_panels_keys_themes_and_an_infeasible_budget(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "w = wb.Workbench(session(202), budget=24_000)\nw"], size=(1400, 1250))
    page = book.page
    agree(book)
    page.wait_for_function("document.querySelector('.cw-reader').dataset.ready === 'true'")

    # Tabs by keys; a run of the diff and a step of the log lead to their messages.
    page.get_by_role("tab", name="Note").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".cw-panel[data-tab=diff] .cw-run")
    assert page.locator(".cw-diff-head").inner_text() == book.python(
        "f'{len(w.selection.fates):,} messages, {w.selection.before_tokens:,} tokens → {len(w.selection.items):,} items, {w.selection.after_tokens:,} tokens'"
    )
    page.locator(".cw-run.cw-is-summarized .cw-link").first.click()
    first_gone = book.python("w.selection.fates.index('summarized')")
    book.becomes("w.selected", first_gone)
    assert agree(book)["selected"] == first_gone
    page.get_by_role("tab", name="Why").click()
    page.wait_for_selector(".cw-panel[data-tab=why] .cw-log li")
    assert page.locator(".cw-log li").count() == min(100, book.python("len(w.selection.steps)"))
    assert page.locator(".cw-why-title").inner_text() == f"Why #{first_gone} is summarized"
    page.get_by_role("tab", name=re.compile("Checks")).click()
    page.wait_for_selector(".cw-panel[data-tab=checks]")

    # What was skipped opens and closes by key.
    skipped = page.get_by_role("button", name="1 remark")
    skipped.focus()
    page.keyboard.press("Enter")
    assert page.locator(".cw-diagnostics li").inner_text().split("\n") == ["line 41", "bad_json", "unfinished line"]
    page.keyboard.press("Escape")
    assert page.locator(".cw-diagnostics").is_hidden()

    # Lab's shortcuts do not fire from any view.
    cells = "[...window.jupyterapp.shell.currentWidget.content.model.cells].length"
    before = page.evaluate(cells)
    for focus in ("slider", "tab", "button"):
        page.locator(f".cw-controls input[type=range], .cw-side [role={focus}], .cw-bottom-bar {focus}").first.focus()
        for key in ("a", "b", "x", "d", "d", "m", "Enter"):
            page.keyboard.press(key)
    assert page.evaluate(cells) == before

    # The chart: made when its tab is opened; its bars are the selection's; a click selects.
    assert book.python("list(w.bottom.panels)") == []
    page.get_by_role("button", name="Turns").click()
    page.wait_for_selector(".cw-figure .bars path")
    page.wait_for_function("Math.abs(document.querySelector('.cw-figure .main-svg').clientWidth - document.querySelector('.cw-bottom-bar').clientWidth) < 20")
    fates = book.python("w.selection.fate_tokens")
    lead = book.python("int(w.selection.request.view.tokens[0])")
    assert book.python("sum(sum(t.y) for t in w.bottom.panels['turns'].figure.data)") == sum(fates.values()) - lead
    page.get_by_role("button", name="select the next turn").click()
    agree(book)
    last = page.locator(".cw-figure .bars path").last
    last.scroll_into_view_if_needed()
    at = last.bounding_box()
    page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    page.wait_for_selector(".cw-figure .hoverlayer .hovertext")
    page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    book.becomes(
        "w.selected", book.python("w.ledger.view().turns[round([t for t in w.bottom.panels['turns'].figure.data if len(t.x or ())][-1].x[-1])].messages[0]")
    )
    agree(book)

    # Dark, wide and narrow.
    book.theme(light=False)
    page.wait_for_function("document.querySelector('.cw-strip').dataset.theme === 'dark' && !document.querySelector('#jupyterlab-splash')")
    book.shot("workbench_dark")
    page.set_viewport_size({"width": 1180, "height": 1000})
    page.wait_for_function("getComputedStyle(document.querySelector('.cw-grid')).gridTemplateColumns.split(' ').length === 2")
    page.wait_for_function(
        """() => { const grid = document.querySelector('.cw-grid'), { left, right } = grid.getBoundingClientRect();
            const inside = (box) => box.left >= left - 1 && box.right <= right + 1;
            return [...grid.children].every((view) => inside(view.getBoundingClientRect())); }"""
    )
    book.shot("workbench_narrow")
    page.set_viewport_size({"width": 1400, "height": 1250})

    # An infeasible budget is a state; the slider marks the smallest window that works, and there it works.
    window = page.get_by_role("slider", name="Window")
    window.focus()
    window.press("Home")
    book.becomes("w.budget.max_tokens", 1_000)
    state = agree(book)
    assert state["after"] is None
    page.wait_for_function("document.querySelector('.cw-strip').dataset.state === 'overflow'")
    least = book.python("w._session.smallest_window")
    page.wait_for_function("text => document.querySelector('.cw-header .cw-problem').textContent.includes(text)", arg=f"smallest window that works: {least:,}")
    assert page.locator("[data-field=max_tokens] .cw-least").is_visible()
    assert page.locator(".cw-panel .cw-problem").inner_text() == page.locator(".cw-header .cw-problem").inner_text()
    page.wait_for_selector(".cw-figure", state="hidden")  # no bars of another budget
    book.shot("workbench_infeasible")
    box = page.locator(".cw-field[data-field=max_tokens] .cw-box")
    box.fill(str(least))
    box.press("Enter")
    book.becomes("w.selection is None", False)
    agree(book)
    assert page.locator(".cw-header .cw-problem").is_hidden()
    page.wait_for_selector(".cw-figure", state="visible")


def test_text_is_never_markup(notebook: Callable[..., Notebook]) -> None:
    """B97, B98, B100: in the header, rows, note, diff, why and the chart's labels."""
    cells = [
        SET_UP,
        "w = wb.Workbench(wb.count(hostile(), 'bytes/4'), Newest(tag=MARKUP), wb.Budget(500_100, 0, 0))",
        "w.bottom.tab = 'turns'\nw.selected = 1\nw",
    ]
    book = notebook(cells)
    page = book.page
    agree(book)
    page.wait_for_selector(".cw-figure .bars path", state="attached")
    for tab in ("Diff", "Why", "Note"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_selector(f".cw-panel[data-tab={tab.lower()}]")
        assert page.locator(".cw-root img, .cw-root script").count() == 0
    assert page.locator(".cw-header .cw-file").inner_text() == book.python("w.transcript.name")
    assert book.python("MARKUP") in page.locator(".cw-side pre.cw-note").inner_text()
    tall = "(a, b) => b.getBoundingClientRect().height - a.getBoundingClientRect().height"
    page.evaluate(f"[...document.querySelectorAll('.cw-figure .bars path')].sort({tall})[0].id = 'tall'")
    bar = page.locator("#tall")
    bar.scroll_into_view_if_needed()
    at = bar.bounding_box()
    page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    page.wait_for_selector(".cw-figure .hoverlayer .hovertext")
    assert page.evaluate("window.broken") is None
    assert page.locator(".cw-root img, .cw-root script, .cw-figure a").count() == 0
    assert "\x1b" not in page.locator(".cw-root").inner_text()


def test_b86_set_in_code_before_the_first_display(notebook: Callable[..., Notebook]) -> None:
    """B86: built, changed in code, the chart opened, then shown inside another box: the first paint is the present state."""
    cells = [
        SET_UP,
        "import ipywidgets\nbefore = set(_instances)\nw = wb.Workbench(session(120), 'none')\nw.bottom.tab = 'turns'",
        "w.policy, w.budget = 'scv', 15_000\nbox = ipywidgets.HBox([w], layout={'display': 'block'})\nbox",
    ]
    book = notebook(cells)
    state = agree(book)
    assert state["policy"] == "scv"
    assert state["counts"]["summarized"] > 0
    book.page.wait_for_selector(".cw-figure .bars path")
    assert book.python("sum(sum(t.y) for t in w.bottom.panels['turns'].figure.data if t.marker.pattern.shape)") == book.python(
        "w.selection.fate_tokens['summarized']"
    )

    # Closed, every view goes, and nothing of it stays in the kernel.
    book.python("[w.close(), box.layout.close(), box.close()]")
    book.page.wait_for_function("!document.querySelector('.cw, .cw-figure')")
    assert book.python("len(set(_instances) - before)") == 0


def test_twenty_thousand_messages(notebook: Callable[..., Notebook]) -> None:
    """B94: bounded marks, exact totals; quick numbers first, then the exact ones."""
    book = notebook([SET_UP, "w = wb.Workbench(session(20_000), budget=200_000)\nw"])
    page = book.page
    page.wait_for_function("!document.querySelector('.cw-task')?.textContent && document.querySelector('.cw-total')?.textContent")
    book.becomes("w.header.task", "")
    assert book.python("w.ledger.counter.label") in page.locator(".cw-header").inner_text()
    agree(book)
    window = page.get_by_role("slider", name="Window")
    window.focus()
    for _ in range(5):
        window.press("ArrowLeft")
    book.becomes("w.budget.max_tokens", 175_000)
    agree(book)
    page.get_by_role("button", name="Turns").click()
    page.wait_for_selector(".cw-figure .bars path")
    assert 0 < page.locator(".cw-figure .bars path").count() <= 300
    assert page.locator(".cw-reader .cw-row").count() < 60
    book.shot("workbench_20000")
