"""The tabs below. A tab's panel is made when it is first opened, and kept; the open one follows the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import ipywidgets
import traitlets

from .assets import css, esm
from .closing import close_whole
from .compare import Compare
from .estimate import Estimate
from .layout import Layout
from .session import Session
from .turns import Turns

#: Name, label, and what makes the panel of a session: a line adds a tab. What a panel must be is said at `Bottom`.
PANELS: tuple[tuple[str, str, Callable[[Session], Any]], ...] = (
    ("turns", "Turns", Turns),
    ("compare", "Compare", Compare),
    ("estimate", "Estimate", Estimate),
    ("layout", "Layout", Layout),
)


class Tabs(anywidget.AnyWidget):
    """The row of tabs. `tab` is the open one's name, or an empty text."""

    _esm = traitlets.Unicode(esm("bottom")).tag(sync=True)
    _css = traitlets.Unicode(css("bottom")).tag(sync=True)
    tabs = traitlets.List([[name, label] for name, label, _ in PANELS]).tag(sync=True)
    tab = traitlets.Unicode("").tag(sync=True)
    unit = traitlets.Unicode("").tag(sync=True)  # what the open panel steps by; empty if it does not step
    status = traitlets.Unicode("").tag(sync=True)
    width = traitlets.Int(0).tag(sync=True)
    dark = traitlets.Bool(False).tag(sync=True)


class Bottom(ipywidgets.VBox):
    """A row of tabs, and the panel of the open one.

    A panel is a widget, made by ``Panel(session)``, with

    - a trait ``selected``: ``Message.index`` of the selected message, -1 for none. It is set from outside, and the panel
      sets it when a message is picked there;
    - ``refresh()``: follow the session. Called when the panel is opened, and while it is open whenever a drag has come
      to rest; also when the policy cannot answer (``session.selection`` is None, ``session.problem`` says why);
    - ``close()``: free everything;

    and, where it has a use for them,

    - ``unit`` and ``step(by)``: the row then has buttons for the unit before (-1) and after (1) the selected message;
    - a trait ``status``: a few words that the row shows while the panel is open;
    - traits ``width`` (pixels of the row) and ``dark``, which follow the page: for what cannot read CSS.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none. Both ways.
    """

    children: Any  # its stub would fix the tuple to its first value
    selected = traitlets.Int(-1)

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self._tabs: Any = Tabs()
        self._panels: dict[str, Any] = {}
        self._links: list[Any] = []
        super().__init__([self._tabs])
        self.add_class("cw-bottom")
        self._tabs.observe(self._turn, "tab")
        self._tabs.on_msg(self._told)

    @property
    def tab(self) -> str:
        """The open tab's name, or an empty text. Settable."""
        return str(self._tabs.tab)

    @tab.setter
    def tab(self, name: str) -> None:
        self._tabs.tab = name

    @property
    def panels(self) -> dict[str, Any]:
        """The panels by the names of their tabs, as far as they were opened."""
        return dict(self._panels)

    def refresh(self) -> None:
        """Let the open panel follow the session."""
        panel = self._panels.get(self.tab)
        if panel is not None:
            panel.refresh()

    def close(self) -> None:
        """Free everything, the panels too."""
        if self.comm is None:
            return
        self._session = None
        self._tabs.unobserve_all()
        self._tabs.on_msg(self._told, remove=True)
        for link in self._links:
            link.unlink()
        self._links.clear()
        close_whole(self._tabs)
        for panel in self._panels.values():
            close_whole(panel)
        self._panels.clear()
        self.unobserve_all()
        self.children = ()
        super().close()

    def __repr__(self) -> str:
        return f"<Bottom: {self.tab or 'no tab open'}>"

    def _turn(self, _: object) -> None:
        if self._session is None:
            return
        name = self.tab
        if name not in self._panels:
            self._make(name, self._session)
        panel = self._panels.get(name)
        if panel is not None:
            panel.refresh()
        for other, each in self._panels.items():  # hidden, not taken out: a panel keeps its place in the page
            each.layout.display = None if other == name else "none"
        with self._tabs.hold_sync():
            self._tabs.unit = getattr(panel, "unit", "")
            self._tabs.status = getattr(panel, "status", "")

    def _make(self, name: str, session: Session) -> None:
        make = next((make for known, _, make in PANELS if known == name), None)
        if make is None:  # no tab is open, or a name from outside
            return
        panel = self._panels[name] = make(session)
        self._links.append(traitlets.link((self, "selected"), (panel, "selected")))
        self._links += [traitlets.dlink((self._tabs, trait), (panel, trait)) for trait in ("width", "dark") if panel.has_trait(trait)]
        if panel.has_trait("status"):
            panel.observe(lambda change: self._say(name, change["new"]), "status")
        self.children = (*self.children, panel)

    def _say(self, name: str, words: str) -> None:
        if name == self.tab:
            self._tabs.status = words

    def _told(self, _: object, content: Any, __: object) -> None:
        step = getattr(self._panels.get(self.tab), "step", None)
        if isinstance(content, dict) and content.get("type") == "step" and step is not None:
            step(1 if content.get("by", 1) > 0 else -1)
