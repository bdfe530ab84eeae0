"""The tabs below. A tab's figure is made when it is first opened; from then on it follows, one FigureWidget at the most."""

from __future__ import annotations

from typing import Any

import anywidget
import ipywidgets
import traitlets

from .. import figures
from ..figures import TurnBars, turn_bars, turn_traces
from .assets import css, esm
from .closing import close_whole
from .session import Session


class Tabs(anywidget.AnyWidget):
    """The row of tabs. `tab` is the open one's name, or an empty text."""

    _esm = traitlets.Unicode(esm("bottom")).tag(sync=True)
    _css = traitlets.Unicode(css("bottom")).tag(sync=True)
    tab = traitlets.Unicode("").tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)
    width = traitlets.Int(0).tag(sync=True)
    dark = traitlets.Bool(False).tag(sync=True)


class Bottom(ipywidgets.VBox):
    """Turns: stacked tokens per turn group, linked with the selected message.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none.
    """

    children: Any  # its stub would fix the tuple to its first value
    selected = traitlets.Int(-1)

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self._tabs: Any = Tabs()
        self._figure: Any = None
        self._bars: TurnBars | None = None
        self._place: Any = ipywidgets.Box(layout={"display": "none"})
        self._place.add_class("cw-place")
        super().__init__([self._tabs, self._place])
        self.add_class("cw-bottom")
        self._tabs.observe(self._turn, "tab")
        self._tabs.observe(self._resize, "width")
        self._tabs.observe(self._recolour, "dark")
        self._tabs.on_msg(self._told)

    @property
    def tab(self) -> str:
        """The open tab's name, or an empty text. Settable."""
        return str(self._tabs.tab)

    @tab.setter
    def tab(self, name: str) -> None:
        self._tabs.tab = name

    @property
    def figure(self) -> Any:
        """The FigureWidget of the open tab; None before the first opening."""
        return self._figure

    def refresh(self) -> None:
        """Follow the session, if a figure is in sight."""
        session = self._session
        if session is None or not self.tab:
            return
        selection = session.selection
        self._tabs.status = "" if selection is not None else "no selection at this budget"
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
        self.mark()
        self._show(True)

    @property
    def shown(self) -> bool:
        """Whether the figure is in sight."""
        return bool(self._place.layout.display == "block")

    def _show(self, shown: bool) -> None:
        """Hide the figure, or show it. It stays in the page: a plotly view that was taken out would still answer to changes."""
        self._place.layout.display = "block" if shown else "none"
        if shown and not self._place.children:
            self._place.children = (self._figure,)

    def mark(self) -> None:
        """Mark the bar of the selected message."""
        session, bars = self._session, self._bars
        if session is None or bars is None or self._figure is None or not self.tab:
            return
        turn = self._turn_of(session, session.selected)
        shapes = []
        if turn is not None and bars.first:
            bar = bars.bar_of(turn)
            edges = {"x0": bars.first[bar] - 0.5, "x1": bars.last[bar] + 0.5}
            shapes = [
                {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "line": {"width": 0}, "fillcolor": "rgba(128,128,128,.22)", **edges}
            ]
        self._figure.layout.shapes = shapes

    def close(self) -> None:
        """Free everything, the figure too."""
        if self.comm is None:
            return
        self._session = None
        self._place.children = ()  # the page takes the figure out while it can still say so: plotly counts its views
        self._tabs.unobserve_all()
        self._tabs.on_msg(self._told, remove=True)
        close_whole(self._tabs)
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
        return f"<Bottom: {self.tab or 'no tab open'}>"

    def _make(self, selection: Any) -> Any:
        import plotly.graph_objects as go

        made = go.FigureWidget(figures.turns(selection, dark=self._tabs.dark))
        for trace in made.data:
            trace.on_click(self._click)
        made.add_class("cw-figure")
        made.layout.width = self._tabs.width or None
        made._config = {**made._config, "displayModeBar": False}  # it links to a site
        return made

    def _turn(self, _: object) -> None:
        if self.tab:
            self.refresh()
        else:
            self._show(False)

    def _resize(self, change: Any) -> None:
        if self._figure is not None:
            self._figure.layout.width = change["new"] or None

    def _recolour(self, change: Any) -> None:
        if self._figure is not None:
            with self._figure.batch_update():
                for trace, marker in zip(self._figure.data, figures.turn_markers(change["new"]), strict=True):
                    trace.marker.update(marker)

    def _click(self, _: object, points: Any, __: object) -> None:
        if self._bars is not None and points.xs:
            self.selected = self._bars.start[self._bars.bar_of(int(points.xs[0]))]

    def _told(self, _: object, content: Any, __: object) -> None:
        """Keys: the turn before or after the selected message's."""
        session = self._session
        if session is None or not isinstance(content, dict) or content.get("type") != "turn":
            return
        turns = session.view.turns
        if not turns:
            return
        now = self._turn_of(session, session.selected)
        by = 1 if content.get("by", 1) > 0 else -1
        turn = (0 if by > 0 else len(turns) - 1) if now is None else min(len(turns) - 1, max(0, now + by))
        self.selected = turns[turn].messages[0]

    @staticmethod
    def _turn_of(session: Session, index: int | None) -> int | None:
        view = session.view
        table = view.memo.get("turn_of", lambda: {message: turn.index for turn in view.turns for message in turn.messages})
        return None if index is None else table.get(index)
