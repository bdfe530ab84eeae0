"""The Turns tab: stacked tokens per turn group. Its figure is made for the first selection; from then on it follows."""

from __future__ import annotations

from typing import Any

import ipywidgets
import traitlets

from .. import figures
from ..figures import TurnBars, turn_bars, turn_traces
from ..policies.base import Selection
from .closing import close_whole
from .session import Session


class Turns(ipywidgets.Box):
    """Stacked tokens per turn group, linked with the selected message.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none. Both ways.
    width : int
        Pixels that the figure may take; 0 for as many as it likes. Plotly cannot measure a place that is not shown yet.
    dark : bool
        Whether the page is dark. Plotly knows no CSS variables.
    status : str
        What there is to say beside the tabs.
    """

    unit = "turn"  # what `step` steps by

    children: Any  # its stub would fix the tuple to its first value
    selected = traitlets.Int(-1)
    width = traitlets.Int(0)
    dark = traitlets.Bool(False)
    status = traitlets.Unicode("")

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self._figure: Any = None
        self._bars: TurnBars | None = None
        self._place: Any = ipywidgets.Box(layout={"display": "none"})
        self._place.add_class("cw-place")
        super().__init__([self._place])
        self.add_class("cw-place")
        self.observe(self._pointed, "selected")
        self.observe(self._resize, "width")
        self.observe(self._recolour, "dark")

    @property
    def figure(self) -> Any:
        """The FigureWidget; None before the first selection."""
        return self._figure

    @property
    def shown(self) -> bool:
        """Whether the figure is in sight."""
        return bool(self._place.layout.display == "block")

    def refresh(self) -> None:
        """Follow the session."""
        session = self._session
        if session is None:
            return
        selection = session.selection
        self.status = "" if selection is not None else "no selection at this budget"
        if selection is None:
            self._show(False)  # no bars of another budget
            return
        self._bars = turn_bars(selection)
        if self._figure is None:
            self._figure = self._make(selection)
        else:
            with self._figure.batch_update():
                for trace, values in zip(self._figure.data, turn_traces(self._bars), strict=True):
                    trace.update(values)
        self._mark()
        self._show(True)

    def step(self, by: int) -> None:
        """Select the turn before (-1) or after (1) the selected message's."""
        session = self._session
        if session is None or not (turns := session.view.turns):
            return
        now = self._turn_of(session, self.selected)
        turn = (0 if by > 0 else len(turns) - 1) if now is None else min(len(turns) - 1, max(0, now + by))
        self.selected = turns[turn].messages[0]

    def close(self) -> None:
        """Free everything, the figure too."""
        if self.comm is None:
            return
        self._session = None
        self._place.children = ()  # the page takes the figure out while it can still say so: plotly counts its views
        close_whole(self._place)
        if self._figure is not None:
            for trace in self._figure.data:
                trace._click_callbacks.clear()
            close_whole(self._figure)
        self._figure = self._bars = None
        self.unobserve_all()
        self.children = ()
        super().close()

    def __repr__(self) -> str:
        return "<Turns>" if self._session is not None else "<Turns: closed>"

    def _make(self, selection: Selection) -> Any:
        import plotly.graph_objects as go

        made = go.FigureWidget(figures.turns(selection, dark=self.dark))
        for trace in made.data:
            trace.on_click(self._click)
        made.add_class("cw-figure")
        made.layout.width = self.width or None
        made._config = {**made._config, "displayModeBar": False}  # it links to a site
        return made

    def _show(self, shown: bool) -> None:
        """Hide the figure, or show it. It stays in the page: a plotly view that was taken out would still answer to changes."""
        self._place.layout.display = "block" if shown else "none"
        if shown and not self._place.children:
            self._place.children = (self._figure,)

    def _mark(self) -> None:
        """Mark the bar of the selected message."""
        session, bars = self._session, self._bars
        if session is None or bars is None or self._figure is None:
            return
        turn = self._turn_of(session, self.selected)
        shapes = []
        if turn is not None and bars.first:
            bar = bars.bar_of(turn)
            edges = {"x0": bars.first[bar] - 0.5, "x1": bars.last[bar] + 0.5}
            shapes = [
                {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "line": {"width": 0}, "fillcolor": "rgba(128,128,128,.22)", **edges}
            ]
        self._figure.layout.shapes = shapes

    def _pointed(self, _: object) -> None:
        if self.layout.display != "none":  # `refresh` marks it when the tab is opened again
            self._mark()

    def _resize(self, _: object) -> None:
        if self._figure is not None:
            self._figure.layout.width = self.width or None

    def _recolour(self, _: object) -> None:
        if self._figure is not None:
            with self._figure.batch_update():
                for trace, marker in zip(self._figure.data, figures.turn_markers(self.dark), strict=True):
                    trace.marker.update(marker)

    def _click(self, _: object, points: Any, __: object) -> None:
        if self._bars is not None and points.xs:
            self.selected = self._bars.start[self._bars.bar_of(int(points.xs[0]))]

    @staticmethod
    def _turn_of(session: Session, index: int) -> int | None:
        view = session.view
        table = view.memo.get("turn_of", lambda: {message: turn.index for turn in view.turns for message in turn.messages})
        return table.get(index)
