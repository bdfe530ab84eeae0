"""The workbench: one session, and the small views of it, laid out and linked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ipywidgets

from .. import policies
from ..errors import BudgetError, WorkbenchError
from ..ledger import Ledger, count
from ..model import MAIN, Budget, History, Transcript
from ..policies.base import Policy, PolicyInfo, Selection, limit_of
from ..tokens import Counter, RatioCounter
from .bottom import Bottom
from .closing import close_whole
from .controls import Controls
from .counting import LARGE, Counting, stopped
from .header import Header
from .reader import Reader
from .session import Session, running_loop
from .side import Side
from .static_page import static_html, static_text
from .strip import Strip


class Workbench(ipywidgets.Box):
    """What would the model still see of a transcript, under this policy and this budget?

    Everything can be read and set from Python at any time; the views follow, and the other way round.

    Parameters
    ----------
    source : Transcript or Ledger
        A transcript is counted; a large one in the background, with quick numbers meanwhile (see `wait`).
    policy : str or Policy
        A name, or a policy with its parameters.
    budget : Budget or int, optional
        An int is the window. Default: 128,000, or if all fits in that, a round window that holds about half of the
        session, so that there is something to see.
    history : {"full", "live"}
        All that was ever said, or what the model had after the last real compaction.
    counter : Counter or str, optional
        Default: the best one for the transcript's model. Not with a ledger.

    Raises
    ------
    WorkbenchError
        A name or a number is not allowed.

    Examples
    --------
    >>> import workbench as wb
    >>> from workbench.model import Message, Source, Text, Transcript
    >>> t = Transcript("t", Source("made"), (Message(0, "", "user", (Text("hello"),)),))
    >>> w = wb.Workbench(t, "scv", budget=32_000)
    >>> w.selection.counts["kept"], w.budget.available
    (1, 21760)
    >>> w.close()
    """

    def __init__(
        self,
        source: Transcript | Ledger,
        policy: str | Policy = "scv",
        budget: Budget | int | None = None,
        *,
        history: History = "full",
        thread: str = MAIN,
        pins: Iterable[int] = (),
        counter: Counter | str | None = None,
    ) -> None:
        if not isinstance(source, Transcript | Ledger):
            raise WorkbenchError(f"Workbench needs a transcript or a ledger, not {type(source).__name__}; try Workbench(wb.read(path))")
        if isinstance(source, Ledger) and counter is not None:
            raise WorkbenchError("a ledger is counted already; leave counter out, or give the transcript")
        ledger, later = (source, False) if isinstance(source, Ledger) else _first_ledger(source, counter)
        self._counter = counter
        self._counting: Counting | None = None
        session = self._session = Session(ledger, policy, budget, history=history, thread=thread, pins=pins)
        session.flush()
        self.header = Header(session)
        self.controls = Controls(session, _infos())
        self.strip = Strip(session.view)
        self.reader = Reader(session.view, pins=sorted(session.pins))
        self.side = Side(session)
        self.bottom = Bottom(session)
        self._views = (self.header, self.controls, self.strip, self.reader, self.side, self.bottom)
        views: tuple[Any, ...] = self._views
        for view, area in zip(views, ("header", "controls", "strip", "reader", "side", "bottom"), strict=True):
            view.add_class(f"cw-area-{area}")
        self._grid = ipywidgets.Box(self._views)
        self._grid.add_class("cw-grid")
        # In the browser a selected message moves in all three at once, without the kernel.
        self._links = [ipywidgets.jslink((self.strip, "selected"), (view, "selected")) for view in (self.reader, self.side)]
        super().__init__((self._grid,))
        self.add_class("cw-root")
        self._shown: tuple[object, object] = (session.view, None)
        self._link()
        self._step()
        self._settle()
        if later:
            self._count()

    # What is asked, and the answer.

    @property
    def transcript(self) -> Transcript:
        """The transcript that is shown."""
        return self._session.ledger.transcript

    @property
    def ledger(self) -> Ledger:
        """Its counts. Settable to another ledger of the same transcript."""
        return self._session.ledger

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        self._stop_counting()
        self._session.ledger = ledger

    @property
    def policy(self) -> Policy:
        """The policy with its parameters. Settable, also to a name."""
        return self._session.policy

    @policy.setter
    def policy(self, policy: str | Policy) -> None:
        self._session.policy = policy

    @property
    def budget(self) -> Budget:
        """What a request may hold. Settable; an int is the window."""
        return self._session.budget

    @budget.setter
    def budget(self, budget: Budget | int) -> None:
        self._session.budget = budget

    @property
    def history(self) -> History:
        """``full`` or ``live``. Settable where a real compaction exists."""
        return self._session.history

    @history.setter
    def history(self, history: History) -> None:
        self._session.history = history

    @property
    def pins(self) -> frozenset[int]:
        """Messages that must stay, by ``Message.index``. Settable."""
        return self._session.pins

    @pins.setter
    def pins(self, pins: Iterable[int]) -> None:
        self._session.pins = pins

    @property
    def selected(self) -> int | None:
        """The selected message, or None. Settable."""
        return self._session.selected

    @selected.setter
    def selected(self, index: int | None) -> None:
        self._session.selected = index
        self._point()

    @property
    def selection(self) -> Selection | None:
        """The answer, the one that every view shows; None if the policy cannot give one (see `problem`)."""
        return self._session.selection

    @property
    def problem(self) -> WorkbenchError | None:
        """Why there is no selection: a `BudgetError` with its numbers, or None."""
        return self._session.problem

    def wait(self) -> None:
        """Block until a count in the background has ended and is shown."""
        if self._counting is not None:
            self._counting.wait()

    def close(self) -> None:
        """Free everything: widgets, their comms, the figure, and every reference to the transcript."""
        if self.comm is None or not hasattr(self, "_views"):  # closed already, or never finished
            return
        self._stop_counting()
        self._session.close()
        for widget in (*self._links, *self._views, self._grid):
            close_whole(widget)
        self._grid.children = self.children = ()
        self.unobserve_all()
        close_whole(self, super().close)

    def __repr__(self) -> str:
        return f"<Workbench: {self.header!r}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live view, with HTML and text that hold the same numbers for where there is no kernel."""
        self._session.flush(settle=True)
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs) or {}
        return {**bundle, "text/html": static_html(self._session), "text/plain": static_text(self._session)}

    # Between the session and the views.

    def _link(self) -> None:
        self._session.on_step(self._step)
        self._session.on_settle(self._settle)
        self.strip.observe(self._dragged, "max_tokens")
        self.reader.observe(self._pinned, "pins")
        for view in (self.strip, self.reader, self.side, self.bottom):
            view.observe(self._picked, "selected")
        self.header.on_msg(self._told)

    def _step(self) -> None:
        """After every new answer: what a drag shows at once."""
        session = self._session
        view, selection, problem = session.view, session.selection, session.problem
        if self._shown[0] is not view:  # another history, or better counts
            self._shown = (view, None)
            self.strip.rebind(view)
            self.reader.rebind(view)
            self.controls.refresh_bounds()
        self.reader.pins = sorted(session.pins)
        needed, available = (problem.needed, problem.available) if isinstance(problem, BudgetError) else (None, None)
        self.strip.show(selection, session.budget, needed=needed, available=available, own_limit=limit_of(session.policy))
        self.controls.refresh()
        self.header.refresh()

    def _settle(self) -> None:
        """When a drag has come to rest, or another message is selected."""
        session = self._session
        if self._shown[1] is not session.selection or session.selection is None:
            self._shown = (self._shown[0], session.selection)
            self.reader.show(session.selection)
            self.bottom.refresh()
        self.controls.refresh()  # the smallest window that works is known now
        self.header.refresh()
        self.side.refresh()

    def _selected(self) -> int:
        return -1 if self._session.selected is None else self._session.selected

    def _point(self) -> None:
        at = self._selected()
        for view in (self.strip, self.reader, self.side, self.bottom):
            view.selected = at

    def _picked(self, change: Any) -> None:
        if max(change["new"], -1) == self._selected():
            return  # it was told
        try:
            self._session.selected = change["new"]
        except WorkbenchError:
            self._point()  # the views show what holds
            raise
        # The browser has told the linked views already; telling them again could undo a newer choice.
        if not _from_browser(change):
            self._point()
        else:
            self.bottom.selected = self._selected()  # its panels are not linked in the browser

    def _dragged(self, change: Any) -> None:
        self._session.change(budget=max(0, change["new"]))

    def _pinned(self, change: Any) -> None:
        try:
            self._session.pins = frozenset(change["new"])
        except WorkbenchError:  # a pin that was on its way while the history changed
            self.reader.pins = sorted(self._session.pins)
            raise

    # Counting in the background.

    def _count(self) -> None:
        loop = running_loop()
        assert loop is not None
        self._stop_counting()
        self.header.task, self.header.action, self.header.progress = "counting", "Cancel", 0.0
        self._counting = Counting(self.transcript, self._counter, self._progress, self._counted, loop)

    def _progress(self, part: float) -> None:
        self.header.progress = round(part, 2)

    def _counted(self, result: Ledger | WorkbenchError) -> None:
        self._counting = None
        self.header.progress = -1.0
        if isinstance(result, Ledger):
            self.header.task = self.header.action = ""
            self._session.ledger = result
        else:
            self.header.task, self.header.action = stopped(result), "Count"

    def _stop_counting(self) -> None:
        if self._counting is not None:
            self._counting.drop()
            self._counting = None
            self.header.task, self.header.action, self.header.progress = "", "", -1.0

    def _told(self, _: object, content: Any, __: object) -> None:
        if not isinstance(content, dict) or content.get("type") != "act":
            return
        if self._counting is not None:
            self._counting.cancel()
        elif self.header.action:
            self._count()


def _first_ledger(transcript: Transcript, counter: Counter | str | None) -> tuple[Ledger, bool]:
    """The ledger to begin with, and whether a better one must follow."""
    if running_loop() is not None and not isinstance(counter, RatioCounter):
        quick = count(transcript, RatioCounter())
        if int(quick.message_tokens.sum()) > LARGE:
            return quick, True
    return count(transcript, counter), False


def _infos() -> list[PolicyInfo]:
    """What the picker offers. A plug-in that cannot be loaded stays in it: choosing it says why."""
    found = []
    for name in policies.list():
        try:
            found.append(policies.get(name).info)
        except WorkbenchError as error:
            found.append(PolicyInfo(name, "cannot be loaded", str(error), origin="plug-ins"))
    return found


def _from_browser(change: Any) -> bool:
    return change["name"] in getattr(change["owner"], "_property_lock", {})
