"""The Estimate tab: the policies' own estimates and the counters against what the provider reported, request by request."""

from __future__ import annotations

from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets

from .. import estimates, figures
from ..calibration import FEWEST
from ..errors import WorkbenchError
from ..estimates import Accuracy, Estimates, KindError
from ..ledger import Ledger, count
from ..policies import registry
from ..policies.base import Policy
from ..tokens.calibrated import CalibratedCounter
from .assets import css, esm
from .closing import close_whole
from .session import Session
from .texts import one_line

MISSES = 50  # requests out of range that are listed
RUNS = 30  # threads, and runs of one, that are listed
_SAID = 300  # characters of a name or a reason


class Sheet(anywidget.AnyWidget):
    """The numbers under the figure. `hidden` adds to every estimate what the file does not hold."""

    _esm = traitlets.Unicode(esm("estimate")).tag(sync=True)
    _css = traitlets.Unicode(css("estimate")).tag(sync=True)
    content = traitlets.Dict().tag(sync=True)
    hidden = traitlets.Bool(False).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)


class Estimate(ipywidgets.VBox):
    """Estimates against reported usage: a figure, and a sheet of numbers.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none. Both ways: a request stands for the answer that it got.
    hidden : bool
        Whether every estimate is given the tokens that the file does not hold.
    width, dark : int, bool
        Of the page: plotly can measure neither.
    status : str
        What there is to say beside the tabs.
    """

    unit = "request"  # what `step` steps by

    children: Any  # its stub would fix the tuple to its first value
    selected = traitlets.Int(-1)
    hidden = traitlets.Bool(False)
    width = traitlets.Int(0)
    dark = traitlets.Bool(False)
    status = traitlets.Unicode("")

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self._key: tuple[Ledger, Policy] | None = None
        self._plain: Ledger | None = None  # the ledger before it was calibrated
        self._found: Estimates | None = None
        self._kinds: tuple[KindError, ...] = ()
        self._figure: Any = None
        self._sheet: Any = Sheet()
        self._place: Any = ipywidgets.Box(layout={"display": "none"})
        self._place.add_class("cw-place")
        super().__init__([self._place, self._sheet])
        self.add_class("cw-place")
        self._links = [traitlets.link((self, "hidden"), (self._sheet, "hidden")), traitlets.link((self, "selected"), (self._sheet, "selected"))]
        self._sheet.on_msg(self._told)
        self.observe(self._redraw, "hidden")
        self.observe(self._mark, "selected")
        self.observe(self._resize, "width")
        self.observe(self._redraw, "dark")

    @property
    def figure(self) -> Any:
        """The FigureWidget; None before there is something to draw."""
        return self._figure

    @property
    def estimates(self) -> Estimates | None:
        """What is shown; None before the first `refresh`."""
        return self._found

    def refresh(self) -> None:
        """Follow the session: another ledger or policy gives other estimates."""
        session = self._session
        if session is None or self._key == (session.ledger, session.policy):
            return
        self._key = (session.ledger, session.policy)
        others = [name for name in registry.SYSTEMS if name != session.policy.info.name]
        try:
            self._found = estimates.of(session.ledger, [session.policy, *others])
        except WorkbenchError as error:  # a damaged vocabulary
            self._found, self._kinds = None, ()
            self._sheet.content = {"problem": one_line(str(error))[:_SAID]}
            self._place.layout.display = "none"
            return
        self._kinds = estimates.by_kind(session.ledger)
        number = len(self._found.reported)
        self.status = f"{number:,} request{'' if number == 1 else 's'} with reported usage" if number else "no usage was reported"
        self._sheet.content = content(self._found, self._kinds)
        self._draw()

    def step(self, by: int) -> None:
        """Select the answer to the reported request before (-1) or after (1) the selected message."""
        starts = self._starts()
        if not len(starts):
            return
        if self.selected < 0:
            self.selected = int(starts[0 if by > 0 else -1])
            return
        place = int(np.searchsorted(starts, self.selected, "right")) if by > 0 else int(np.searchsorted(starts, self.selected, "left")) - 1
        self.selected = int(starts[min(len(starts) - 1, max(0, place))])

    def close(self) -> None:
        """Free everything, the figure too."""
        if self.comm is None:
            return
        self._session = self._key = self._plain = self._found = None
        for link in self._links:
            link.unlink()
        self._sheet.on_msg(self._told, remove=True)
        self._place.children = ()  # the page takes the figure out while it can still say so: plotly counts its views
        for trace in () if self._figure is None else self._figure.data:
            trace._click_callbacks.clear()
        for widget in (self._place, self._sheet, self._figure):
            if widget is not None:
                close_whole(widget)
        self._figure = None
        self.unobserve_all()
        self.children = ()
        super().close()

    def __repr__(self) -> str:
        return "<Estimate: closed>" if self._session is None else f"<Estimate: {self.status or 'not shown yet'}>"

    def calibrate(self, on: bool = True) -> None:
        """Count with the calibrated counter, in all views; or as before."""
        session, found = self._session, self._found
        if session is None or found is None:
            return
        if on and found.calibrated is not None and not isinstance(session.ledger.counter, CalibratedCounter):
            self._plain = session.ledger
            session.ledger = count(session.ledger.transcript, found.calibrated, framing=session.ledger.frame_rule)
        elif not on and isinstance(session.ledger.counter, CalibratedCounter):
            session.ledger = self._plain or count(session.ledger.transcript)

    def _told(self, _: object, told: Any, __: object) -> None:
        if isinstance(told, dict) and told.get("ask") == "calibrate":
            self.calibrate(bool(told.get("on")))

    # The figure.

    def _draw(self) -> None:
        """Make the figure, or give it the new numbers."""
        found = self._found
        shown = found is not None and len(found.reported) > 0
        self._place.layout.display = "block" if shown else "none"
        if found is None or not shown:
            return
        if self._figure is None:
            self._figure = self._make(found)
            self._place.children = (self._figure,)
        else:
            traces = figures.estimate_traces(figures.estimate_lines(found, hidden=self.hidden, kinds=self._kinds), self.dark)
            with self._figure.batch_update():
                for trace, values in zip(self._figure.data, traces, strict=True):
                    trace.update(values)
        self._mark()

    def _make(self, found: Estimates) -> Any:
        import plotly.graph_objects as go

        made = go.FigureWidget(figures.estimates(found, hidden=self.hidden, kinds=self._kinds, dark=self.dark))
        for trace in made.data:
            if trace.name == "reported":
                trace.on_click(self._click)
        made.add_class("cw-figure")
        made.layout.width = self.width or None
        made._config = {**made._config, "displayModeBar": False}  # it links to a site
        return made

    def _redraw(self, _: object) -> None:
        if self._figure is not None:
            self._draw()

    def _resize(self, _: object) -> None:
        if self._figure is not None:
            self._figure.layout.width = self.width or None

    def _mark(self, _: object = None) -> None:
        """Mark the request that the selected message was the answer to, or was sent with next."""
        starts = self._starts()
        if self._figure is None or self.layout.display == "none":
            return
        shapes = []
        place = int(np.searchsorted(starts, self.selected, "left")) if self.selected >= 0 else len(starts)
        if place < len(starts):
            at = int(self._order[place])
            edges = {"x0": at + 0.5, "x1": at + 1.5}
            grey = {"line": {"width": 0}, "fillcolor": "rgba(128,128,128,.3)"}
            shapes = [{"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", **grey, **edges}]
        self._figure.layout.shapes = shapes

    def _starts(self) -> Any:
        """First message that each reported request produced, ascending."""
        found = self._found
        if found is None:
            return np.zeros(0, np.int64)
        calls = found.ledger.transcript.calls
        first = np.array([min(calls[call].produced, default=-1) for call in found.requests.calls.tolist()], np.int64)
        self._order = np.argsort(first, kind="stable")
        return first[self._order]

    def _click(self, _: object, points: Any, __: object) -> None:
        found = self._found
        if found is not None and points.xs:
            at = int(points.xs[0]) - 1
            if 0 <= at < len(found.reported):
                self.selected = min(found.ledger.transcript.calls[int(found.requests.calls[at])].produced, default=-1)


def content(found: Estimates, kinds: tuple[KindError, ...]) -> dict[str, Any]:
    """The numbers, as text and numbers."""
    if not len(found.reported):
        of = f" of {found.ledger.transcript.model}" if found.ledger.transcript.model else ""
        return {"problem": one_line(f"No request{of} reports how many tokens its prompt had, so there is nothing to compare estimates with.")[:_SAID]}
    missed = estimates.misses(found)
    calls = found.ledger.transcript.calls
    return {
        "problem": "",
        "said": headline(found),
        "calibrated": found.calibrated is not None,
        "on": isinstance(found.ledger.counter, CalibratedCounter),
        "hidden": hidden_text(found),
        "rows": [[_row(item) for item in found.accuracy(hidden=hidden)] for hidden in (False, True)],
        "bytes": [[round(ratio, 2) for ratio in found.bytes_per_token(hidden=hidden)] for hidden in (False, True)],
        "kinds": [[item.kind.replace("_", " "), item.kind, item.tokens, _percent(item)] for item in kinds],
        "misses": [
            [f"request {found.number(miss.call):,}", min(calls[miss.call].produced, default=-1), miss.reported, miss.estimated, one_line(miss.why)[:_SAID]]
            for miss in missed[:MISSES]
        ],
        "missed": len(missed),
        "beside": beside(found),
        "few": f"Fewer than {estimates.FEWEST_STEPS} steps or {estimates.FEWEST_TOKENS} tokens: cannot be told.",
    }


def headline(found: Estimates) -> str:
    """What the calibration gave, in a sentence or two."""
    number = len(found.reported)
    counter = found.calibrated
    if counter is None:
        return one_line(f"Not calibrated: {found.problem}." if found.problem else f"Not calibrated: {FEWEST} requests are needed.")[:_SAID]
    inside = number - len(estimates.misses(found))
    return one_line(
        f"Calibrated: {counter.label}. The range is the one that held for 95 % of the requests when each was predicted from others"
        f" (median error there {100 * counter.median:.1f} %); fitted to all, it holds for {inside:,} of {number:,}."
    )


def hidden_text(found: Estimates) -> str:
    """How much the file does not hold."""
    if found.calibrated is None:
        return ""
    low, high = round(float(found.hidden.min())), round(float(found.hidden.max()))
    return minus(f"{high:,} tokens" if low == high else f"{low:,} to {high:,} tokens, by thread and time")


def minus(text: str) -> str:
    """With a minus sign that reads as one."""
    return text.replace("-", "−")


def beside(found: Estimates) -> list[list[Any]]:
    """What requests hold beside their recorded text, by thread, and where that changed for good."""
    counter = found.calibrated
    if counter is None:
        return []
    rows, runs = [], dict.fromkeys((item.thread for item in counter.overheads), 0)
    for item in counter.overheads[:RUNS]:
        why = estimates.jump(found, item.thread, runs[item.thread]) if runs[item.thread] else ""
        runs[item.thread] += 1
        first = min(found.ledger.transcript.calls[item.call].produced, default=-1)
        rows.append([one_line(item.thread)[:_SAID], first, minus(f"{item.tokens:,}"), item.requests, one_line(why)[:_SAID]])
    return rows


def _row(item: Accuracy) -> list[Any]:
    return [short(item), item.source, *(round(100 * value, 1) for value in (item.bias, item.median, item.within, item.most)), *item.margins]


def short(item: Accuracy) -> str:
    """A name for a narrow column: what was fitted to how much is said above."""
    return one_line("fitted: " + item.name.split(", fitted")[0] if item.source == "calibrated" else item.name)[:_SAID]


def _percent(item: KindError) -> list[float] | None:
    """The counter's error and two standard errors, in percent of what was reported."""
    if item.factor is None or item.error is None or item.factor <= 0:
        return None
    return [round(100 * (1 / item.factor - 1), 1), round(200 * item.error / item.factor**2, 1)]
