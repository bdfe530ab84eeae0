"""What a slider step costs the page and the wire: `Workbench` beside an HTML label, both behind the same slider of ipywidgets.

Page cost is CPU of the page's main thread (DevTools ``Performance`` in ``threadTicks``), so that a busy machine counts
little. Label and workbench take turns within a round. A step is a key on the slider, and the next key comes when the
answer of the last is drawn, as in a drag: what follows a drag when it rests (note, diff, reader) falls on the round once.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browser.conftest import CHROME_ARGS, CHROMIUM, SLOW, Lab, Notebook, chromium_missing

from .common import Figure

STEPS, ROUNDS = 25, 5
REST = 300  # ms after a drag in which its late parts come
SET_UP = """
import ipywidgets, workbench as wb
from tests.bench.bench_widget import generated
ledger = generated({messages})
half = ledger.view().total // 2
w = wb.Workbench(ledger, "scv", half)
def slider(answer):
    made = ipywidgets.IntSlider(half, half // 2, 2 * half, max(1, half // 200), continuous_update=True)
    made.observe(lambda change: answer(change["new"]), "value")
    return made
label = ipywidgets.HTML("0")
label.add_class("bench-label")
to_label = slider(lambda value: setattr(label, "value", f"{{value:,}}"))
to_bench = slider(lambda value: setattr(w, "budget", value))
to_label.add_class("bench-to-label")
to_bench.add_class("bench-to-workbench")
"""
#: Press a key on a slider so many times; each time wait until the answer stands in the page and a frame has passed.
DRIVE = """async ([slider, target, attributes, steps, key]) => {
    const handle = document.querySelector(slider + ' .noUi-handle'), watched = () => document.querySelector(target);
    handle.focus();
    for (let i = 0; i < steps; i++) {
        await new Promise(done => {
            const watch = new MutationObserver(() => { watch.disconnect(); requestAnimationFrame(() => setTimeout(done)); });
            const what = attributes ? {attributeFilter: ['data-version']} : {childList: true, characterData: true, subtree: true};
            watch.observe(watched(), what);
            handle.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
        });
    }
}"""
WAYS = {"label": (".bench-to-label", ".bench-label", False), "workbench": (".bench-to-workbench", ".cw-strip", True)}


def generated(messages: int) -> Any:
    """A counted session of so many messages; counted by bytes, since only the page is measured."""
    from tests.widgets.sessions import ledger, session

    return ledger(session(messages))


def figures() -> Iterator[Figure]:
    """Page CPU and bytes per slider step at 2,000 and 20,000 messages, and the code sent for the first view."""
    yield Figure.at_most("widget: code sent for the first view, KB", _code_bytes() / 1000, 200)
    missing = chromium_missing()
    if missing:
        yield Figure(f"widget: page CPU per slider step ({missing})", float("nan"), "measured", False)
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        lab = Lab(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROME_ARGS)
        try:
            lab.wait()
            for messages, limit in ((2_000, 2.5), (20_000, 4.0)):
                page = browser.new_context(viewport={"width": 1400, "height": 1200}, reduced_motion="reduce").new_page()
                page.set_default_timeout(120_000 * SLOW)
                cpu, wire = _measure(page, lab, messages)
                name = f"at {messages:,} messages"
                yield Figure.at_most(f"widget: page CPU per slider step {name} / HTML label's", cpu["workbench"] / cpu["label"], limit)
                yield Figure.at_most(f"widget: bytes to the browser per slider step {name}", wire, 2 * messages + 4096, "B")
                page.context.close()
        finally:
            browser.close()
            lab.stop()


def _measure(page: Any, lab: Lab, messages: int) -> tuple[dict[str, float], float]:
    """Seconds of main-thread CPU per step for each way, and the workbench's bytes per step."""
    cells = [SET_UP.format(messages=messages), "ipywidgets.VBox([to_label, label, to_bench])", "w"]
    book = Notebook(page, lab).open(cells, f"bench_{messages}.ipynb")
    book.only_outputs()
    page.wait_for_function("() => document.querySelector('.cw-strip')?.dataset.version && document.querySelector('.cw-reader')?.dataset.ready === 'true'")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        return float({item["name"]: item["value"] for item in devtools.send("Performance.getMetrics")["metrics"]}["TaskDuration"])

    cpu: dict[str, list[float]] = {name: [] for name in WAYS}
    wire = []
    for turn in range(ROUNDS + 1):
        for name, way in WAYS.items():
            start, received = spent(), book.received
            page.evaluate(DRIVE, [*way, STEPS, "ArrowRight" if turn % 2 else "ArrowLeft"])
            sent = book.received - received
            page.wait_for_timeout(REST)
            if turn:  # the first round warms up
                cpu[name].append((spent() - start) / STEPS)
                wire += [sent / STEPS] if name == "workbench" else []
    return {name: statistics.median(values) for name, values in cpu.items()}, min(wire)


def _code_bytes() -> int:
    """Bytes of modules and styles of all widgets that the first view of a workbench makes."""
    import ipywidgets

    import workbench as wb

    made: list[Any] = []
    ipywidgets.Widget.on_widget_constructed(made.append)
    try:
        bench = wb.Workbench(generated(20))
        bench._repr_mimebundle_()
    finally:
        ipywidgets.Widget.on_widget_constructed(None)
    size = sum(len(str(getattr(widget, name, "")).encode()) for widget in made for name in ("_esm", "_css"))
    bench.close()
    return size
