"""The strip: a history before and after a policy, on one token scale."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from ..ledger import View
from ..model import Budget
from ..policies.base import Selection
from .assets import css, esm
from .static_form import strip_svg
from .wire import pack_fates, pack_rows, pack_sent, sent


class Strip(anywidget.AnyWidget):
    """Two rows whose width is tokens: what the history holds, and what the model would still see of it.

    Parameters
    ----------
    view : View
        The history that is shown. `rebind` gives another one.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none. Both ways.
    max_tokens : int
        The window. Dragging the budget line sets it; whoever owns the budget answers with `show`.

    Examples
    --------
    >>> import workbench as wb
    >>> from workbench.model import Message, Source, Text, Transcript
    >>> t = Transcript("t", Source("made"), (Message(0, "", "user", (Text("hello"),)),))
    >>> strip = Strip(wb.count(t).view())
    >>> strip.show(None, wb.Budget(32_000))
    >>> strip.step["numbers"]["available"]
    21760
    """

    _esm = traitlets.Unicode(esm("strip")).tag(sync=True)
    _css = traitlets.Unicode(css("strip")).tag(sync=True)
    rows = traitlets.Dict().tag(sync=True)
    step = traitlets.Dict().tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    max_tokens = traitlets.Int(Budget().max_tokens).tag(sync=True)

    def __init__(self, view: View, **kwargs: Any) -> None:
        self._view: View | None = view
        self._selection: Selection | None = None
        self._version = 0
        super().__init__(rows=pack_rows(view), **kwargs)
        self.show(None, Budget())

    def rebind(self, view: View) -> None:
        """Show another history, or the same one counted anew. The step that belongs to it follows with `show`."""
        self._view, self._selection = view, None
        self._version += 1
        with self.hold_sync():
            self.rows = pack_rows(view)
            self.step = {"version": self._version, "numbers": {"before": view.total}}

    def show(
        self,
        selection: Selection | None,
        budget: Budget,
        *,
        needed: int | None = None,
        available: int | None = None,
        own_limit: str | None = None,
    ) -> None:
        """Show a selection, or why there is none.

        Parameters
        ----------
        selection : Selection or None
            Of the view that this strip is bound to.
        needed, available : int, optional
            From a `BudgetError`: the strip shows the overflow. Why is the header's to say.
        own_limit : str, optional
            What bounds a policy that ignores the budget: "40 messages".

        Raises
        ------
        ValueError
            The selection is of another view.
        """
        view = self._bound(selection)
        self._selection = selection
        self._version += 1
        numbers: dict[str, int] = {
            "before": view.total,
            "available": budget.available,
            "reserve": budget.reserve_output_tokens,
            "margin": budget.safety_margin_tokens,
        }
        step: dict[str, Any] = {"version": self._version, "numbers": numbers}
        if selection is not None:
            numbers["after"] = selection.after_tokens
            step |= {"fates": pack_fates(selection.fate_codes), **pack_sent(sent(selection), selection.fate_codes)}
        elif needed is not None:
            step["over"] = {"needed": needed, "available": budget.available if available is None else available}
        if own_limit:
            step["limit"] = own_limit
        with self.hold_sync():
            self.max_tokens = budget.max_tokens
            self.step = step

    def _bound(self, selection: Selection | None) -> View:
        if self._view is None:
            raise ValueError("this strip is closed; make a new one")
        if selection is not None and selection.request.view is not self._view:
            raise ValueError("the selection is of another view; call rebind(view) first")
        return self._view

    def close(self) -> None:
        """Free everything: no reference to the transcript stays."""
        self._view = self._selection = None
        self.unobserve_all()
        super().close()

    def __repr__(self) -> str:
        return "<Strip: closed>" if self._view is None else f"<Strip: {len(self._view.indices):,} messages>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live view, with a drawing and words beside it for where there is no kernel."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if self._selection is None or bundle is None:
            return bundle
        static = {"text/html": strip_svg(self._selection), "text/plain": repr(self._selection)}
        if isinstance(bundle, tuple):  # anywidget answers (data, metadata), ipywidgets a dict
            return {**bundle[0], **static}, bundle[1]
        return {**bundle, **static}
