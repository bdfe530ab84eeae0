"""The workbench as a whole, without a browser: one answer everywhere, linked, static without a kernel, gone when closed."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import threading
import weakref

import numpy as np
import pytest
from ipywidgets.widgets.widget import _instances

import workbench as wb
from tests.synthetic import session as made_session
from tests.widgets import sessions
from tests.widgets.made import Everything, Newest
from workbench.errors import BudgetError, WorkbenchError
from workbench.ledger import count
from workbench.model import Budget
from workbench.tokens import RatioCounter
from workbench.widgets import workbench as root_module


@pytest.fixture(scope="module")
def transcript():
    return made_session(200, compacted=True)


@pytest.fixture
def bench(transcript):
    made = wb.Workbench(count(transcript, RatioCounter()), Newest(), 20_000)
    yield made
    made.close()


def numbers(bench) -> dict[str, str]:
    return {label: value for label, value, _ in bench.controls.state["result"]}


def agree(bench) -> None:
    """Every view shows the numbers of `selection`, and that is what a fresh computation gives."""
    bundle = bench._repr_mimebundle_()  # whatever is still to be done for the views is done before a display
    selection = bench.selection
    fresh = wb.select(bench.ledger, bench.policy, bench.budget, history=bench.history, pins=bench.pins)
    assert np.array_equal(selection.fate_codes, fresh.fate_codes)
    assert selection.after_tokens == fresh.after_tokens
    assert numbers(bench)["after"] == f"{fresh.after_tokens:,}"
    assert numbers(bench)["before"] == f"{fresh.before_tokens:,}"
    assert bench.header.facts["tokens"].removeprefix("≈ ") == f"{fresh.before_tokens:,}"
    assert bench.strip.step["numbers"]["after"] == fresh.after_tokens
    assert bench.strip.step["numbers"]["before"] == fresh.before_tokens
    assert bench.strip.step["fates"] == bench.reader.step["fates"]
    assert bench.strip.max_tokens == bench.budget.max_tokens == bench.controls.state["budget"][0]
    assert f"{fresh.after_tokens:,}" in bundle["text/plain"]
    assert f"{fresh.after_tokens:,}" in bundle["text/html"]


def test_every_change_from_python_is_the_same_in_every_view(bench):
    agree(bench)
    bench.budget = 15_000
    agree(bench)
    bench.budget = Budget(18_000, 1_000, 0)
    agree(bench)
    bench.policy = "scv"
    agree(bench)
    bench.policy = Newest(share=0.6)
    agree(bench)
    bench.history = "live"
    agree(bench)
    bench.pins = [199]
    agree(bench)
    assert bench.reader.pins == [199]


def test_slider_box_strip_and_python_set_the_same_budget(bench):
    bench.strip.max_tokens = 17_000
    agree(bench)
    assert bench.budget.max_tokens == 17_000
    state = bench.controls.state
    bench.controls.wanted = {**{name: state[name] for name in ("policy", "params", "history")}, "budget": [16_000, 500, 100], "seq": 1}
    agree(bench)
    assert bench.budget == Budget(16_000, 500, 100)
    bench.strip.max_tokens = -40  # a drag beyond the left edge
    assert bench.budget.max_tokens == 0
    assert isinstance(bench.problem, BudgetError)


def test_a_message_selected_anywhere_is_selected_everywhere(bench):
    views = (bench.strip, bench.reader, bench.side, bench.bottom)
    for index, view in enumerate(views, 10):
        view.selected = index
        assert [other.selected for other in views] == [index] * 4
        assert bench.selected == index
    bench.selected = 33
    assert [other.selected for other in views] == [33] * 4
    assert bench.side.content["why"]["title"].startswith("Why #33 is ")
    bench.selected = None
    assert [other.selected for other in views] == [-1] * 4


def test_a_choice_of_the_browser_is_not_told_back_to_views_that_are_linked_there(bench):
    """An answer that crosses a newer choice would undo it."""
    told: list[int] = []
    bench.reader.observe(lambda change: told.append(change["new"]), "selected")
    bench.strip.set_state({"selected": 12})
    assert bench.selected == 12
    assert told == []


def test_pins_of_the_reader_are_the_sessions(bench):
    bench.reader.pins = [3, 9]
    assert bench.pins == {3, 9}
    assert bench.selection.request.pins == {3, 9}


def test_views_go_back_when_what_they_ask_for_is_refused(bench):
    bench.reader.pins = [3]
    bench.selected = 5
    with pytest.raises(WorkbenchError, match="pin 9999"):
        bench.reader.set_state({"pins": [9_999]})
    assert (bench.reader.pins, bench.pins) == ([3], {3})
    for view in (bench.strip, bench.reader, bench.side):
        with pytest.raises(WorkbenchError, match="no message 9999"):
            view.set_state({"selected": 9_999})
        assert (view.selected, bench.selected) == (5, 5)


def test_an_infeasible_budget_is_a_state(bench):
    bench.budget = 10_300
    fixed = bench.ledger.view().fixed
    assert bench.selection is None
    assert bench.header.problem == f"fixed part {fixed:,} > 60 · smallest window that works: {fixed + 8_192 + 2_048:,}"
    assert bench.strip.step["over"]["needed"] == fixed
    assert bench.controls.state["least"] == fixed + 8_192 + 2_048
    assert "fates" not in bench.reader.step
    bundle = bench._repr_mimebundle_()
    assert bench.header.problem in bundle["text/plain"]
    bench.budget = bench.controls.state["least"]
    assert bench.header.problem == ""
    agree(bench)


def test_a_policy_that_ignores_the_budget_says_so_on_the_strip(bench):
    bench.policy = Everything()
    assert bench.strip.step["limit"] == "nothing is ever removed"
    agree(bench)


def test_what_was_skipped_stands_in_the_header(bench):
    assert bench.header.skipped == {"label": "1 remark", "bad": False, "rows": [[41, "bad_json", "unfinished line"]], "more": 0}


@pytest.mark.parametrize("wrong", [{"nonsense": 1}, {"max_tokens": 5}, {"layout": None}])
def test_an_unknown_keyword_is_refused(transcript, wrong):
    before = len(_instances)
    with pytest.raises(TypeError, match="unexpected keyword"):
        wb.Workbench(transcript, **wrong)
    gc.collect()
    assert len(_instances) == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"source": "run.jsonl"}, "needs a transcript or a ledger"),
        ({"policy": "nonsense"}, "no policy is called 'nonsense'"),
        ({"budget": -1}, "whole number"),
        ({"history": "old"}, "history 'old'"),
        ({"thread": "nowhere"}, "no thread 'nowhere'"),
        ({"counter": "nonsense"}, "no counter 'nonsense'"),
        ({"pins": [9_999]}, "pin 9999"),
    ],
)
def test_a_wrong_argument_is_one_clear_line_and_leaves_nothing_behind(transcript, args, message):
    before = len(_instances)
    with pytest.raises(WorkbenchError, match=message) as caught:
        wb.Workbench(**{"source": transcript, **args})
    assert "\n" not in str(caught.value)
    gc.collect()
    assert len(_instances) == before


def test_b85_b92_every_display_carries_the_same_numbers_without_a_kernel(bench):
    """B85, B92: a front end without the widget module, and a notebook opened again, still show the numbers."""
    bundle = bench._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == bench.model_id
    for label, value in numbers(bench).items():
        assert label in bundle["text/plain"]
        assert value in bundle["text/plain"]
        assert value in bundle["text/html"]
    assert "<svg" in bundle["text/html"]
    assert bench.selection.notes[0].message.text in bundle["text/html"]


def test_b97_b98_the_static_page_escapes_every_text():
    """B97, B98: markup in messages, tool names and the file's name makes no element."""
    bench = wb.Workbench(count(sessions.hostile(), RatioCounter()), Newest(tag=sessions.MARKUP), 11_000)
    page = bench._repr_mimebundle_()["text/html"]
    assert "<img" not in page
    assert "<script" not in page
    assert "&lt;img" in page
    assert "\x1b" not in page
    bench.close()


def test_b89_toggling_leaves_no_widget_behind(bench):
    """B89: 200 toggles of policy and budget, the last of them with the chart open."""
    bench.bottom.tab = "turns"
    before = dict(_instances)
    for number in range(200):
        bench.bottom.tab = "turns" if number > 180 else ""
        bench.policy = ("scv", "none", Newest())[number % 3]
        bench.budget = 18_000 + number
        bench.side.tab = ("note", "diff", "why", "checks")[number % 4]
    assert _instances.keys() == before.keys()
    agree(bench)


@pytest.mark.parametrize("chart", [False, True])
def test_b91_close_frees_the_transcript_and_every_widget(chart):
    """B91: a signal keeps the figure, and so the data, alive after close."""
    before = set(_instances)
    transcript = made_session(100)
    alive = weakref.ref(transcript)
    bench = wb.Workbench(transcript, "scv", 20_000)
    root = weakref.ref(bench)
    if chart:
        bench.bottom.tab = "turns"
    bench.budget = 12_000
    bench.close()
    assert set(_instances) == before
    del bench, transcript
    gc.collect()
    assert root() is None
    assert alive() is None


def test_close_twice_is_close_once(transcript):
    bench = wb.Workbench(count(transcript, RatioCounter()), Newest(), 20_000)
    bench.close()
    bench.close()


def test_the_chart_is_made_when_its_tab_is_first_opened_and_then_only_updated(bench):
    assert bench.bottom.panels == {}
    bench.bottom.tab = "turns"
    panel = bench.bottom.panels["turns"]
    figure = panel.figure
    assert panel.shown
    assert panel.layout.display is None
    bench.budget = 12_000
    assert bench.bottom.panels["turns"].figure is figure
    lead = int(bench.selection.request.view.tokens[0])
    assert sum(sum(trace.y) for trace in figure.data) == sum(bench.selection.fate_tokens.values()) - lead
    bench.bottom.tab = ""
    assert panel.layout.display == "none"
    bench.budget = 14_000
    bench.bottom.tab = "turns"
    removed = sum(sum(trace.y) for trace in figure.data if trace.marker.pattern.shape == "/")
    assert removed == bench.selection.fate_tokens["summarized"]
    bench.budget = 10_300
    assert panel.layout.display is None
    assert not panel.shown  # no bars of another budget


def test_a_turn_is_selected_by_click_and_by_key(bench):
    bench.bottom.tab = "turns"
    panel = bench.bottom.panels["turns"]
    groups = bench.ledger.view().turns
    bench.bottom._told(None, {"type": "step", "by": 1}, [])
    assert bench.selected == groups[0].messages[0]
    bench.bottom._told(None, {"type": "step", "by": 1}, [])
    assert bench.selected == groups[1].messages[0]
    trace = next(trace for trace in panel.figure.data if len(trace.x or ()))

    class Points:
        xs = (trace.x[-1],)

    panel._click(trace, Points, None)
    assert bench.selected == groups[round(trace.x[-1])].messages[0]
    assert panel.figure.layout.shapes[0].x0 == round(trace.x[-1]) - 0.5


def test_a_large_transcript_shows_quick_numbers_and_then_the_exact_ones(monkeypatch, transcript):
    monkeypatch.setattr(root_module, "LARGE", 1_000)

    async def go():
        bench = wb.Workbench(transcript, "scv")
        assert bench.ledger.counter == RatioCounter()
        assert (bench.header.task, bench.header.action) == ("counting", "Cancel")
        before = bench.budget
        while bench.header.task:
            await asyncio.sleep(0.01)
        return bench, before

    bench, before = asyncio.run(go())
    fresh = wb.Workbench(count(transcript), "scv")
    assert bench.ledger.counter == fresh.ledger.counter
    assert np.array_equal(bench.ledger.message_tokens, fresh.ledger.message_tokens)
    assert bench.budget == fresh.budget != before
    assert bench.controls.state["result"] == fresh.controls.state["result"]
    assert bench.header.progress == -1
    agree(bench)
    bench.close()
    fresh.close()


def test_counting_can_be_cancelled_and_taken_up_again(monkeypatch):
    monkeypatch.setattr(root_module, "LARGE", 1_000)
    transcript = made_session(2_000)  # several steps of counting: the flag is looked at between them
    go_on = threading.Event()

    @dataclasses.dataclass(frozen=True)
    class Waits:
        id: str = "test/waits"
        label: str = "waits"
        exact: bool = True
        error: float = 0.0

        def count_texts(self, texts):
            go_on.wait(10)
            return np.full(len(texts), 7, np.int64)

    async def act():
        bench = wb.Workbench(transcript, "scv", 20_000, counter=Waits())
        bench._told(None, {"type": "act"}, [])
        go_on.set()
        while bench.header.task == "counting":
            await asyncio.sleep(0.01)
        assert (bench.header.task, bench.header.action, bench.header.progress) == ("quick numbers: counting was stopped", "Count", -1)
        assert bench.ledger.counter == RatioCounter()
        agree(bench)
        bench._told(None, {"type": "act"}, [])
        bench.wait()
        assert (bench.header.task, bench.header.action) == ("", "")
        assert bench.ledger.counter == Waits()
        agree_now = bench.selection.before_tokens
        bench.close()
        return agree_now

    assert asyncio.run(act()) > 0


def test_close_while_counting_leaves_nothing(monkeypatch):
    monkeypatch.setattr(root_module, "LARGE", 1_000)
    transcript = made_session(300)
    alive = weakref.ref(transcript)
    before = set(_instances)

    async def go(source):
        bench = wb.Workbench(source)
        thread = bench._counting._thread
        bench.close()
        thread.join()

    asyncio.run(go(transcript))
    del transcript
    gc.collect()
    assert set(_instances) == before
    assert alive() is None


def test_a_settled_panel_follows_a_burst_in_a_loop_once(bench):
    """B88 and rule 2: while values stream in, note and reader wait; afterwards they are those of the last value."""

    async def drag():
        seen: list[str] = []
        bench.side.observe(lambda change: seen.append(change["name"]), "content")
        for step in range(30):
            bench.budget = 15_000 + 50 * step
            await asyncio.sleep(0)
        during = len(seen)
        while bench.reader.step.get("fates") != bench.strip.step["fates"]:
            await asyncio.sleep(0.01)
        return during, len(seen)

    during, after = asyncio.run(drag())
    assert during == 0
    assert after <= 2
    agree(bench)


def test_nbconvert_shows_the_same_numbers(tmp_path, monkeypatch):
    """B92: a notebook that was run, saved and turned into HTML without a kernel."""
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    from tests.shared import ROOT

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    cell = "import workbench as wb\nfrom tests.synthetic import session\nw = wb.Workbench(session(60), budget=12_000)\nw"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell), nbformat.v4.new_code_cell("print(f'{w.selection.after_tokens:,}')")])
    NotebookClient(book, timeout=120, kernel_name="python3", store_widget_state=False, resources={"metadata": {"path": str(tmp_path)}}).execute()
    after = book.cells[1].outputs[0]["text"].strip()
    bundle = book.cells[0].outputs[0]["data"]
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= bundle.keys()
    page = HTMLExporter().from_notebook_node(book)[0]
    assert f"<td style='text-align:right'>{after}</td>" in page or f'<td style="text-align:right">{after}</td>' in page
    assert "<svg" in page
