"""Strip and reader in a real JupyterLab: every number in the page is the kernel's, and nothing reaches Lab or the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Notebook

pytestmark = pytest.mark.browser

SET_UP = """
import ipywidgets, json
from tests.widgets.sessions import Mixed, hostile, session, view, MARKUP
from workbench.errors import BudgetError
from workbench.model import Budget, Source, Transcript
from workbench.policies import Scv
from workbench.policies.base import Request
from workbench.widgets.reader import Reader
from workbench.widgets.strip import Strip

class Pair:
    "A strip and a reader under a policy, with a slider of ipywidgets beside them."
    def __init__(self, messages, window, policy=Scv(), transcript=None):
        self.view = view(transcript or session(messages))
        self.policy, self.selection = policy, None
        self.strip, self.reader = Strip(self.view), Reader(self.view)
        self.slider = ipywidgets.IntSlider(window, 2_600, 20_000_000, 1, description='window', continuous_update=True)
        self.strip.max_tokens = window
        self.step()
        self.strip.observe(self.step, 'max_tokens')
        self.reader.observe(self.step, 'pins')
        ipywidgets.link((self.strip, 'max_tokens'), (self.slider, 'value'))
        self.link = ipywidgets.jslink((self.strip, 'selected'), (self.reader, 'selected'))
        self.box = ipywidgets.VBox([self.slider, self.strip, self.reader])
    def step(self, _=None):
        budget = Budget(self.strip.max_tokens, 2_048, 512)
        try:
            self.selection = self.policy.select(Request(self.view, budget, pins=frozenset(self.reader.pins)))
            self.strip.show(self.selection, budget)
        except BudgetError as error:
            self.selection = None
            self.strip.show(None, budget, needed=error.needed, available=error.available)
        self.reader.show(self.selection)
    def state(self):
        s = self.selection
        shown = {'max': self.strip.max_tokens, 'budget': self.strip.max_tokens - 2_560, 'before': self.view.total}
        return shown | ({'after': s.after_tokens, **s.counts, 'notes': len(s.notes)} if s else {})
    def close(self):
        for widget in (self.link, self.box, self.slider, self.strip, self.reader):
            widget.close()
"""


def data(book: Notebook, view: str = "strip") -> dict[str, str]:
    found: dict[str, str] = book.page.evaluate(f"({{...document.querySelector('.cw-{view}').dataset}})")
    return found


def agree(book: Notebook, name: str = "pair") -> dict[str, Any]:
    """Wait until the page shows the kernel's present selection, and compare every number."""
    book.becomes(f"{name}.strip.max_tokens", int(data(book)["max"]))
    kernel: dict[str, Any] = book.python(f"{name}.state() | {{'version': {name}.strip.step['version'], 'texts': {name}.reader.step['version']}}")
    book.page.wait_for_function(
        """([strip, reader]) => document.querySelector('.cw-strip')?.dataset.version === strip
            && document.querySelector('.cw-reader')?.dataset.version === reader""",
        arg=[str(kernel.pop("version")), str(kernel.pop("texts"))],
    )
    page = data(book)
    assert {key: page[key] for key in kernel} == {key: str(value) for key, value in kernel.items()}
    return kernel


def pixels(book: Notebook) -> str:
    drawn: str = book.page.evaluate("document.querySelector('.cw-strip canvas').toDataURL()")
    return drawn


def wait(book: Notebook, condition: str) -> None:
    book.page.wait_for_function(
        f"() => {{ const s = document.querySelector('.cw-strip').dataset, r = document.querySelector('.cw-reader').dataset; return {condition}; }}"
    )


def test_one_selection_everywhere(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP, "pair = Pair(200, 32_000)\npair.box"])
    book.only_outputs()
    page = book.page
    first = agree(book)
    assert first["summarized"] > 100
    assert 0 < first["kept"] < 100
    wait(book, "r.ready === 'true'")
    book.shot("strip_reader_light")

    # A burst on a slider of ipywidgets: the last value wins.
    handle = page.locator(".widget-slider .noUi-handle").first
    handle.focus()
    for _ in range(12):
        handle.press("ArrowRight")
    wait(book, "s.max === '32012'")
    assert agree(book)["max"] == 32_012

    # The budget line: by key, and by hand to a place that the scale gives.
    line = page.get_by_role("slider", name="budget line")
    line.focus()
    line.press("PageUp")
    line.press("ArrowLeft")
    wait(book, f"s.max === '{32_012 + 4_096 - 256}'")
    agree(book)
    assert "budget 33,292 = 35,852 − 2,048 − 512" in line.get_attribute("aria-valuetext")
    assert page.locator(".cw-label").inner_text() == line.get_attribute("aria-valuetext")
    box, plot = line.bounding_box(), page.locator(".cw-plot").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 30
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 200, y, steps=10)
    page.mouse.up()
    scale = (plot["width"] - 90) / first["before"]
    page.wait_for_function("want => Math.abs(Number(document.querySelector('.cw-strip').dataset.budget) - want) < 400", arg=33_292 - 200 / scale)
    book.becomes("[pair.strip.max_tokens, pair.slider.value]", [int(data(book)["max"])] * 2)
    agree(book)

    # A window too small is a state, not a traceback.
    line.focus()
    line.press("Home")
    wait(book, "s.state === 'overflow'")
    assert agree(book)["budget"] == 0
    assert page.locator(".cw-label").inner_text().startswith("needs ")
    book.shot("strip_overflow")
    line.press("End")
    wait(book, "s.state === 'ok' && s.budget === s.before")
    agree(book)
    book.python("setattr(pair.strip, 'max_tokens', 32000)")
    wait(book, "s.max === '32000'")

    # Selecting: from the strip by key and click, from the reader by key; both ways, in the kernel too.
    strip = page.get_by_role("slider", name="messages")
    strip.focus()
    strip.press("End")
    wait(book, "r.selected === '199' && r.ready === 'true'")
    row = page.locator(".cw-row.cw-sel")
    assert row.locator(".cw-index").inner_text() == "#199"
    assert strip.get_attribute("aria-valuetext").startswith("#199 ")
    strip.press("PageUp")
    starts = book.python("[turn.messages[0] for turn in pair.view.turns if turn.user is not None]")
    wait(book, f"r.selected === '{max(start for start in starts if start < 199)}'")
    strip.press("Home")
    wait(book, "r.selected === '0' && r.ready === 'true'")
    book.becomes("[pair.strip.selected, pair.reader.selected]", [0, 0])
    page.mouse.click(plot["x"] + plot["width"] - 24, page.locator(".cw-plot").bounding_box()["y"] + 40)
    wait(book, "Number(s.selected) >= 197 && r.selected === s.selected")
    grid = page.get_by_role("grid", name="messages")
    grid.focus()
    grid.press("Home")
    grid.press("ArrowDown")
    wait(book, "s.selected === '1' && r.selected === '1'")
    active = page.locator(".cw-list").get_attribute("aria-activedescendant")
    assert page.locator(f"[id='{active}'] .cw-index").inner_text() == "#1"

    # Lab's shortcuts (add, delete, cut, run) never fire from a view.
    cells = "[...window.jupyterapp.shell.currentWidget.content.model.cells].length"
    for view in (strip, grid, line):
        view.focus()
        for key in ("a", "b", "d", "d", "x", "z", "Shift+Enter", "Enter", "Escape"):
            view.press(key)
    assert page.evaluate(cells) == 2
    assert page.evaluate("window.jupyterapp.shell.currentWidget.content.mode") != "edit"

    # Pins go to the kernel and back.
    grid.focus()
    grid.press("p")
    wait(book, "r.pins === '1'")
    book.becomes("[pair.reader.pins, sorted(pair.selection.request.pins)]", [[1], [1]])
    book.python("setattr(pair.reader, 'pins', [])")
    wait(book, "r.pins === '0'")
    agree(book)

    # Zoom, pan, and back.
    before = pixels(book)
    strip.focus()
    strip.press("+")
    strip.press("+")
    wait(book, "s.zoom === '2.25'")
    assert pixels(book) != before
    strip.press("0")
    wait(book, "s.zoom === '1.00'")
    area = page.locator(".cw-plot").bounding_box()
    page.mouse.move(area["x"] + 300, area["y"] + 40)
    page.mouse.move(area["x"] + 310, area["y"] + 41)
    tip = page.locator(".cw-tip").inner_text()
    assert tip.startswith("#")
    assert tip.endswith(("summarized", "kept"))
    page.mouse.wheel(0, -240)
    wait(book, "Number(s.zoom) > 1")
    strip.press("0")
    wait(book, "s.zoom === '1.00'")

    # Search in the kernel, filters, expanding.
    search = page.get_by_role("searchbox", name="search the transcript")
    search.fill("KeyError")
    wait(book, "r.query === 'KeyError' && r.ready === 'true'")
    hits = book.python("[m.index for m in pair.view.messages if m.result and 'KeyError' in m.result.text]")
    assert page.locator(".cw-found").inner_text() == f"{len(hits)} of 200"
    assert page.locator(".cw-row:visible .cw-index").first.inner_text() == f"#{hits[0]}"
    assert page.locator(".cw-row:visible mark").first.inner_text() == "KeyError"
    page.get_by_role("combobox", name="fate").select_option("kept")
    kept = book.python(f"[i for i in {hits} if pair.selection.fates[pair.view.row_of[i]] == 'kept']")
    wait(book, f"r.shown === '{len(kept)}' && r.ready === 'true'")
    page.get_by_role("combobox", name="fate").select_option("")
    search.fill("")
    wait(book, f"r.query === '' && r.shown === '{200 + len(book.python('[1 for _ in pair.selection.notes]'))}'")
    wanted = hits[0]
    book.python(f"setattr(pair.strip, 'selected', {wanted})")
    wait(book, f"r.selected === '{wanted}' && r.ready === 'true'")
    grid.focus()
    grid.press("Enter")
    wait(book, f"r.opened === '{wanted}'")
    shown = page.locator(".cw-full pre").first.evaluate("e => e.textContent")
    text = book.python(f"pair.view.ledger.transcript.messages[{wanted}].result.text")
    assert shown == text.replace("\x1b[31m", "").replace("\x1b[0m", "")
    book.shot("reader_opened")
    grid.press("Enter")
    wait(book, "r.opened === ''")

    # The theme switch redraws; few rows stand in the page.
    light = pixels(book)
    book.theme(light=False)
    wait(book, "s.theme === 'dark'")
    assert pixels(book) != light
    book.shot("strip_reader_dark")
    assert page.locator(".cw-row").count() <= 30

    # Closing frees the views and their comms.
    open_before = book.python("len(ipywidgets.Widget.get_manager_state()['state'])")
    book.python("pair.close()")
    page.wait_for_function("() => !document.querySelector('.cw-strip') && !document.querySelector('.cw-reader')")
    assert book.python("len(ipywidgets.Widget.get_manager_state()['state'])") < open_before - 4


def test_long_and_hostile_and_empty(notebook: Callable[..., Notebook]) -> None:
    book = notebook(
        [
            SET_UP,
            "pair = Pair(20_000, 2_000_000)\npair.box",
            "mixed = Pair(200, 32_000, Mixed(0.6))\nbad = Pair(0, 32_000, Mixed(0.4), hostile())",
            "none = Pair(0, 32_000, Mixed(), Transcript('none', Source('made')))",
        ],
        scale=2,
    )
    book.only_outputs()
    page = book.page
    wait(book, "r.ready === 'true'")
    assert agree(book)["summarized"] > 1_000
    book.shot("strip_reader_20k_light")
    strip = page.get_by_role("slider", name="messages")
    strip.focus()
    strip.press("End")
    wait(book, "r.selected === '19999' && r.ready === 'true'")
    assert page.locator(".cw-row.cw-sel .cw-index").inner_text() == "#19999"
    assert page.locator(".cw-row").count() <= 30
    for _ in range(9):
        strip.press("+")
    wait(book, "Number(s.zoom) > 38")
    book.theme(light=False)
    wait(book, "s.theme === 'dark'")
    book.shot("strip_reader_20k_zoomed_dark")
    strip.press("0")
    search = page.get_by_role("searchbox", name="search the transcript")
    search.fill("1 failed")
    wait(book, "r.query === '1 failed' && r.ready === 'true'")
    hits = book.python("sum(1 for m in pair.view.messages if m.result and '1 failed' in m.result.text.replace(chr(27) + '[31m', ''))")
    assert page.locator(".cw-found").inner_text() == f"{hits:,} of 20,000"

    # Every fate at once, in the same place.
    page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
    for name in ("mixed", "bad", "none"):
        book.python(f"setattr(pair.box, 'children', [{name}.strip, {name}.reader])")
        page.wait_for_function("n => document.querySelector('.cw-strip')?.dataset.messages === n", arg=str(book.python(f"len({name}.view.indices)")))
        wait(book, "r.ready === 'true'")
        agree(book, name)
        book.shot(f"strip_reader_{name}_dark")
        if name == "bad":
            assert page.locator(".cw-row:visible:not(.cw-noted) .cw-text").first.inner_text().startswith("<img src=x onerror")
            assert page.evaluate("document.querySelectorAll('.cw img, .cw script, .cw b').length") == 0
            assert page.get_by_role("combobox", name="tool").locator("option").all_inner_texts()[1].startswith("<img src=x")
            page.locator(".cw-row:visible", has_text="M chars").click()
            wait(book, "r.opened === '4'")
            assert len(page.locator(".cw-full pre").inner_text()) <= 20_000
            page.get_by_role("button", name="show more").click()
            page.wait_for_function("() => document.querySelectorAll('.cw-full pre').length === 2")
            assert page.evaluate("window.broken") is None
    assert page.locator(".cw-empty").inner_text() == "no messages"
    assert page.get_by_role("slider", name="messages").get_attribute("aria-valuetext") == "no messages"
