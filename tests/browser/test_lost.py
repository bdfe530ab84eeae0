"""The Lost tab in real JupyterLab: its numbers are the measures', its links select, its slider asks in an earlier turn."""

from __future__ import annotations

import pytest

from tests.shared import SAMPLES

pytestmark = pytest.mark.browser


def test_lost(notebook):
    file = str(SAMPLES / "coding_agent.jsonl")
    book = notebook([f"import workbench as wb\nfrom workbench import losses\nw = wb.Workbench(wb.read({file!r}), policy='scv', budget=24_000)\nw"])
    page = book.page
    page.get_by_role("tab", name="Lost", exact=True).click()
    page.wait_for_selector(".cw-panel[data-tab=lost] .cw-lost-measure")
    titles = page.locator(".cw-panel > .cw-lost-measure .cw-lost-title, .cw-panel > details.cw-lost-measure summary .cw-lost-title").all_inner_texts()
    assert titles == book.python("[m.title for m in losses.of(w.selection) if m.of]")
    page.get_by_text("Used later").first.click()
    page.wait_for_selector(".cw-panel > details.cw-lost-measure[open] li")
    rows = page.locator(".cw-panel > details.cw-lost-measure[open] .cw-lost-text")
    assert rows.all_inner_texts() == book.python("[row.text for row in losses.of(w.selection)['used_later'].lost]")
    book.shot("lost_now")

    # A link selects the message where it was needed.
    page.locator(".cw-panel > details.cw-lost-measure[open] .cw-lost-places .cw-link").last.click()
    book.becomes("w.selected", book.python("losses.of(w.selection)['used_later'].lost[-1].needed"))

    # The slider, by keys: its focus stays, and what is open stays open.
    slider = page.get_by_role("slider", name="Turn in which the policy is asked")
    slider.focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    turns = book.python("len(w.selection.request.view.turns)")
    book.becomes("w.side.content['lost']['turn']", turns - 8)
    page.wait_for_function("turn => document.querySelector('.cw-lost-head').textContent.startsWith('Asked in turn ' + turn)", arg=turns - 8)
    assert slider.get_attribute("aria-valuetext") == f"in turn {turns - 8}"
    assert page.evaluate("document.activeElement.classList.contains('cw-lost-turn')")
    assert page.locator(".cw-panel > details.cw-lost-measure[open]").count() == 1
    page.locator(".cw-panel > details.cw-group summary").first.click()
    book.shot("lost_then")
    book.theme(light=False)
    page.locator(".cw-panel > details.cw-group summary").first.scroll_into_view_if_needed()
    book.shot("lost_dark")
