"""The Estimate tab in a real JupyterLab: the page shows the kernel's numbers, by mouse and by keys, light and dark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Notebook

pytestmark = pytest.mark.browser

SET_UP = """
import workbench as wb
from ipywidgets.widgets.widget import _instances
from tests.sessions_with_usage import reporting, talk
from tests.widgets.sessions import MARKUP

def rule(counted, call):
    return counted + 6_000 + 1_500 * (call.index == 7)

before = set(_instances)
w = wb.Workbench(wb.count(reporting(talk(160, model=MARKUP), 'o200k_base', rule), 'o200k_base'), 'scv', 30_000)
w
"""
MARGINS = """() => [...document.querySelectorAll('.cw-estimate .cw-e-list tbody tr:not(.cw-e-bytes)')]
    .map((row) => [...row.querySelectorAll('td')].slice(-4).map((cell) => Number(cell.textContent.replaceAll(',', ''))))"""
POINTS = "() => document.querySelectorAll('.cw-figure .scatterlayer .trace .points path').length"


def test_estimates_of_a_session_with_reported_usage(notebook: Callable[..., Notebook]) -> None:
    book = notebook([SET_UP], size=(1400, 1250))
    page = book.page
    page.wait_for_selector(".cw-bottom-bar")
    page.locator(".cw-bottom-bar button", has_text="Estimate").click()
    page.wait_for_selector(".cw-estimate table")
    page.wait_for_function(f"() => ({POINTS})() >= 79")
    panel = "w.bottom.panels['estimate']"
    assert page.evaluate(MARGINS) == book.python(f"[list(row.margins) for row in {panel}.estimates.accuracy()]")
    assert page.evaluate(POINTS) == book.python(f"len({panel}.estimates.reported) + sum(item.factor is not None for item in {panel}._kinds)")
    book.only_outputs()
    page.locator(".cw-estimate").scroll_into_view_if_needed()
    book.shot("estimate_light")

    # What the file does not hold, by keys.
    box = page.locator(".cw-estimate input[type=checkbox]")
    box.focus()
    page.keyboard.press("Space")
    book.becomes(f"{panel}.hidden", True)
    wanted = book.python(f"[list(row.margins) for row in {panel}.estimates.accuracy(hidden=True)]")
    page.wait_for_function(f"want => JSON.stringify(({MARGINS})()) === JSON.stringify(want)", arg=wanted)
    assert page.evaluate("document.activeElement.dataset.do") == "hidden"  # the focus stays although the sheet is drawn anew

    # The request that is out of range, and the next one.
    page.locator(".cw-e-misses button").click()
    book.becomes("w.selected", book.python("w.transcript.calls[7].produced[0]"))
    page.get_by_role("button", name="select the next request").click()
    book.becomes("w.selected", book.python("w.transcript.calls[8].produced[0]"))
    book.theme(light=False)
    book.shot("estimate_dark")

    # Count with the fitted counter: everywhere, and back.
    page.get_by_role("button", name="Count with the fitted counter").click()
    book.becomes("w.ledger.counter.overhead('main')", 6_000)
    page.get_by_role("button", name="Count as before").wait_for()
    page.wait_for_function("label => document.querySelector('.cw-header').textContent.includes(label)", arg=book.python("w.ledger.counter.label"))
    page.get_by_role("button", name="Count as before").click()
    book.becomes("w.ledger.counter.label", "o200k_base")
    assert page.evaluate("[window.broken, document.querySelectorAll('.cw-estimate img, .cw-estimate script').length]") == [None, 0]

    page.set_viewport_size({"width": 760, "height": 1250})
    page.locator(".cw-estimate").scroll_into_view_if_needed()
    book.shot("estimate_narrow")
    book.python("w.close()")
    book.becomes("len(set(_instances) - before)", 0)
