"""The Compare tab in a real JupyterLab: its numbers are the kernel's, by mouse, keys and picker, in both themes, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Notebook

pytestmark = pytest.mark.browser

SET_UP = """
import workbench as wb
from tests.synthetic import session
from tests.widgets import sessions
from tests.widgets.made import Newest
from tests.widgets.sessions import MARKUP, Mixed

def compared(w):
    panel = w.bottom.panels['compare']
    frame = wb.policies.compare(w.ledger, [w.policy, *(p for p in panel.others if p != w.policy)], w.budget, history=w.history, pins=w.pins).frame
    return [[label, None if not row['feasible'] else [int(row[name]) for name in ('after_tokens', 'kept', 'edited', 'summarized', 'dropped')]]
            for label, row in frame.iterrows()]
"""

#: Of each policy its label and numbers as the page shows them; null where it shows why there are none.
SHOWN = """() => [...document.querySelectorAll('.cw-cmp-row')].map((row) => {
  const number = (name) => Number(row.querySelector(name).textContent.replace(/[^0-9]/g, ''));
  return [row.querySelector('b').textContent, row.querySelector('.cw-cmp-problem') ? null
    : ['.cw-cmp-after', '.cw-cmp-kept', '.cw-cmp-edited', '.cw-cmp-summarized', '.cw-cmp-dropped'].map(number)];
})"""
#: The inks of a canvas: how many pixels are not empty, in a band of it.
INKED = """([strip, top, high]) => {
  const canvas = document.querySelector(`.cw-cmp-box[data-strip="${strip}"] canvas`), ratio = window.devicePixelRatio || 1;
  const { data } = canvas.getContext('2d').getImageData(0, Math.round(top * ratio), canvas.width, Math.max(1, Math.round(high * ratio)));
  let seen = 0;
  for (let i = 3; i < data.length; i += 4) seen += data[i] > 0;
  return seen / (data.length / 4);
}"""


def agree(book: Notebook) -> list[Any]:
    """Wait until the page shows what a fresh comparison in the kernel gives."""
    want: list[Any] = book.python("compared(w)")
    book.page.wait_for_function(f"(want) => JSON.stringify(({SHOWN})()) === JSON.stringify(want)", arg=want)
    return want


def test_compare(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "w = wb.Workbench(session(202, compacted=True), 'scv', 20_000)\nw"], size=(1400, 1400))
    page = book.page
    assert book.python("list(w.bottom.panels)") == []
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector(".cw-compare[data-version]")
    first = agree(book)
    assert [label for label, _ in first] == ["scv", *book.python("[n for n in wb.policies.registry.SYSTEMS if n != 'scv']")]
    status = page.locator(".cw-bottom-bar [role=status]")
    assert "part on" in status.inner_text()

    # The strips: the whole history before, as much as is sent after.
    page.wait_for_function("document.querySelector('.cw-cmp-box canvas').width > 600")
    total, domain = book.python("[w.bottom.panels['compare'].content[k] for k in ('tokens', 'domain')]")
    page.wait_for_function(f"Math.abs(({INKED})([-1, 12, 1]) - {total / domain}) < 0.25")
    sent = page.evaluate(INKED, [0, 30, 1])
    assert abs(sent - first[0][1][0] / domain) < 0.05
    assert page.evaluate(INKED, [-1, 28, 2]) > 0.02, "marks where they part"

    # The session's policy, its budget and the tab are one.
    window = page.get_by_role("slider", name="Window")
    window.focus()
    for _ in range(4):
        window.press("ArrowLeft")
    book.becomes("w.budget.max_tokens", 18_000)
    assert agree(book) != first
    page.locator(".cw-policy").select_option("none")
    book.becomes("w.policy.info.name", "none")
    assert agree(book)[0][0] == "none"
    page.locator(".cw-policy").select_option("scv")
    book.becomes("w.policy.info.name", "scv")
    agree(book)

    # A click in a strip selects everywhere; the pointer names what it is on.
    box = page.locator(".cw-cmp-box[data-strip='1']")
    box.scroll_into_view_if_needed()
    at = box.bounding_box()
    page.mouse.move(at["x"] + at["width"] * 0.9, at["y"] + 12)
    tip = page.locator(".cw-compare .cw-tip")
    tip.wait_for()
    named = tip.inner_text()
    page.mouse.click(at["x"] + at["width"] * 0.9, at["y"] + 12)
    page.wait_for_function("Number(document.querySelector('.cw-compare').dataset.selected) >= 0")
    picked = book.python("w.selected")
    assert named.startswith(f"#{picked} ")
    page.wait_for_function("want => Number(document.querySelector('.cw-strip').dataset.selected) === want", arg=picked)
    assert page.locator(".cw-cmp-what b").inner_text() == named
    said = page.locator(".cw-cmp-fates tr").all_inner_texts()
    assert len(said) == len(first)
    fates = book.python("[a.fates[a.request.view.row_of[w.selected]] for _, a in w.bottom.panels['compare'].comparison]")
    for line, fate in zip(said, fates, strict=True):
        assert fate in line

    # Keys: where they part, and message by message. No shortcut of Lab fires.
    slider = page.locator(".cw-compare [role=slider]")
    starts = book.python("[int(x.view.indices[a]) for x in [w.bottom.panels['compare'].comparison] for a, _ in x.stretches]")
    slider.focus()
    slider.press("Home")
    book.becomes("w.selected", starts[0])
    for start in starts[1:3]:
        slider.press("PageDown")
        book.becomes("w.selected", start)
    slider.press("ArrowRight")
    book.becomes("w.selected", starts[min(2, len(starts) - 1)] + 1)
    page.wait_for_function(
        "want => document.querySelector('.cw-compare [role=slider]').getAttribute('aria-valuetext').startsWith(`#${want} `)", arg=book.python("w.selected")
    )
    cells = "[...window.jupyterapp.shell.currentWidget.content.model.cells].length"
    before = page.evaluate(cells)
    for key in ("a", "b", "d", "d", "Enter"):
        slider.press(key)
    assert page.evaluate(cells) == before
    page.get_by_role("button", name="select the difference before").click()
    book.becomes("w.selected in set(d.index for d in w.bottom.panels['compare'].comparison.differ)", True)

    # The picker: at most four; one that is removed leaves room for another.
    picker = page.get_by_label("add a policy")
    assert picker.is_disabled()
    gone = book.python("w.bottom.panels['compare'].comparison.labels[1]")
    page.get_by_role("button", name=f"remove {gone}").click()
    book.becomes(f"{gone!r} in w.bottom.panels['compare'].comparison.labels", False)
    agree(book)
    page.wait_for_function("!document.querySelector('.cw-cmp-add').disabled")
    picker.select_option("=none")
    book.becomes("w.bottom.panels['compare'].comparison.labels[-1]", "none")
    agree(book)
    assert picker.is_disabled()

    # Notes are text, and open where they are asked for; they stay open while a budget changes.
    page.locator(".cw-cmp-notes summary").first.click()
    shown = page.locator(".cw-cmp-notes pre").first.inner_text()
    assert shown.split()[:20] == book.python("w.selection.notes[0].message.text.split()[:20]")
    book.python("setattr(w, 'budget', 19_000)")
    agree(book)
    assert page.locator(".cw-cmp-notes details[open]").count() == 1

    # A policy without an answer says why in its line.
    book.python("setattr(w, 'budget', 10_300)")
    assert agree(book)[0][1] is None
    least = book.python("w.bottom.panels['compare']._session.smallest_window")
    assert page.locator(".cw-cmp-problem").first.inner_text().endswith(f"{least:,}")
    book.python("setattr(w, 'budget', 20_000)")
    agree(book)

    # Dark: the canvas is drawn anew in its colours; narrow: nothing sticks out.
    colour = """() => { const c = document.querySelector('.cw-cmp-box canvas');
      return [...c.getContext('2d').getImageData(Math.round(c.width * .5), 10, 8, 1).data].join(); }"""
    light = page.evaluate(colour)
    book.theme(light=False)
    page.wait_for_function(f"light => ({colour})() !== light", arg=light)
    page.wait_for_function("!document.querySelector('#jupyterlab-splash')")
    book.shot("compare_dark")
    page.set_viewport_size({"width": 760, "height": 1400})
    page.wait_for_function(
        """() => { const root = document.querySelector('.cw-compare'), right = root.getBoundingClientRect().right + 1;
            return root.clientWidth < 700 && [...root.querySelectorAll('.cw-cmp-row *, .cw-cmp-head *, .cw-cmp-side > *, canvas')]
                .every(e => e.getBoundingClientRect().right <= right); }"""
    )
    book.shot("compare_narrow")


def test_contrast_and_hostile_texts(notebook: Callable[..., Notebook]) -> None:
    cell = """
w = wb.Workbench(sessions.ledger(sessions.hostile()), Newest(tag=MARKUP), 700_000)
w.bottom.tab = 'compare'
w.bottom.panels['compare'].others = [Mixed(), 'none', Newest(tag='x' + MARKUP)]
w.selected = 2
w"""
    book = notebook([SET_UP, cell])
    page = book.page
    page.wait_for_selector(".cw-cmp-fates tr")
    assert page.evaluate("document.querySelectorAll('.cw-compare img, .cw-compare script').length") == 0
    assert page.evaluate("window.broken === undefined")
    assert "<img" in page.locator(".cw-cmp-what").inner_text() + page.locator(".cw-cmp-preview").inner_text()
    assert "<img" in page.locator(".cw-cmp-row b").last.inner_text()
    contrast = """() => {
      const lum = (c) => c.map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
      const rgb = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number), low = [];
      const root = document.querySelector('.cw-compare'), back = lum(rgb(getComputedStyle(root).backgroundColor));
      for (const e of root.querySelectorAll('span, b, th, td, p, summary, caption, button')) {
        if (!e.textContent.trim() || e.children.length || e.closest('.cw-tip')) continue;
        const fore = lum(rgb(getComputedStyle(e).color)), ratio = (Math.max(fore, back) + .05) / (Math.min(fore, back) + .05);
        if (ratio < 4.5) low.push([e.className, e.textContent.slice(0, 30), ratio]);
      }
      return low;
    }"""
    for light in (True, False):
        book.theme(light=light)
        page.wait_for_function(f"({contrast})().length === 0")


def test_compare_at_20000_messages(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "w = wb.Workbench(sessions.ledger(sessions.session(20_000)), 'scv', 400_000)\nw.bottom.tab = 'compare'\nw"])
    agree(book)
    page = book.page
    received = book.received
    book.python("setattr(w, 'budget', 500_000)")
    agree(book)
    assert book.received - received < 400_000
    # A pixel before the end stands one of the last messages: where a run is thinner than a pixel, the kernel still knows it.
    page.evaluate(
        """() => { const box = document.querySelector('.cw-cmp-box[data-strip="-1"]'), { left, width, top } = box.getBoundingClientRect();
            box.dispatchEvent(new MouseEvent('click', { clientX: left + width - 1, clientY: top + 10, bubbles: true })); }"""
    )
    book.becomes("(w.selected or 0) > 19_900", True)
    agree(book)
