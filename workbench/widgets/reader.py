"""The reader: the messages of a history as rows, their texts by page."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import anywidget
import numpy as np
import traitlets

from ..errors import WorkbenchError
from ..ledger import KIND, View
from ..model import KINDS, Message
from ..policies.base import FATES, Kept, Selection
from .assets import css, esm
from .texts import clean, matches, page, preview, tags
from .wire import Insert, pack_fates, sent

MAX_ROWS = 400  # rows that one request may ask for
MAX_NOTES = 2_000  # note rows that the list shows
STATIC_ROWS = 20
_TOOLS = 500  # names in the tool filter


class Reader(anywidget.AnyWidget):
    """The messages of a history: virtual rows, search and filters in the kernel, texts in pages on request.

    Parameters
    ----------
    view : View
        The history that is shown. `rebind` gives another one.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none. Both ways.
    pins : list of int
        ``Message.index`` of each message that must stay. Both ways.
    """

    _esm = traitlets.Unicode(esm("reader")).tag(sync=True)
    _css = traitlets.Unicode(css("reader")).tag(sync=True)
    rows = traitlets.Dict().tag(sync=True)
    step = traitlets.Dict().tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    pins = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, view: View, **kwargs: Any) -> None:
        self._view: View | None = view
        self._selection: Selection | None = None
        self._inserts: list[Insert] = []
        self._version = 0
        super().__init__(rows=_describe(view), step={"version": 0}, **kwargs)
        self.on_msg(self._answer)

    def rebind(self, view: View) -> None:
        """Show another history, or the same one counted anew. Pins that it does not hold are taken off."""
        self._view, self._selection = view, None
        self._version += 1
        with self.hold_sync():
            self.rows = _describe(view)
            self.step = {"version": self._version}
            self.pins = [index for index in self.pins if index in view.row_of]

    def show(self, selection: Selection | None) -> None:
        """Show what became of each message, and the notes where they stand.

        Raises
        ------
        ValueError
            The selection is of another view.
        """
        if self._view is None:
            raise ValueError("this reader is closed; make a new one")
        if selection is not None and selection.request.view is not self._view:
            raise ValueError("the selection is of another view; call rebind(view) first")
        self._selection = selection
        self._version += 1
        if selection is None:
            self._inserts = []
            self.step = {"version": self._version}
            return
        self._inserts = sent(selection).inserts[:MAX_NOTES]
        notes = [[item.at, item.tokens, item.covers, item.quotes, int(item.is_note)] for item in self._inserts]
        self.step = {"version": self._version, "fates": pack_fates(selection.fate_codes), "notes": notes}

    def close(self) -> None:
        """Free everything: no reference to the transcript stays."""
        self._view = self._selection = None
        self._inserts = []
        self.on_msg(self._answer, remove=True)
        self.unobserve_all()
        super().close()

    def __repr__(self) -> str:
        return "<Reader: closed>" if self._view is None else f"<Reader: {len(self._view.indices):,} messages>"

    # Requests of the page. Each has an id and gets one reply with it: an answer, or an error as data.

    def _answer(self, _: object, content: Any, __: object) -> None:
        if not isinstance(content, dict) or self._view is None:
            return
        reply: dict[str, Any] = {"id": content.get("id")}
        buffers: list[bytes] = []
        try:
            ask: Callable[[View, dict[str, Any], list[bytes]], dict[str, Any]] = {"rows": self._rows, "find": self._find, "text": self._text}[content["ask"]]
            reply |= ask(self._view, content, buffers) | {"ok": True}
        except WorkbenchError as error:
            reply |= {"ok": False, "error": str(error)}
        except Exception as error:  # the one place where a request ends: the page shows it, the kernel goes on
            reply |= {"ok": False, "error": f"the reader could not answer ({type(error).__name__})"}
        self.send(reply, buffers)

    def _rows(self, view: View, content: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
        query = str(content.get("query") or "").lower()
        return {"rows": [_row(view, int(row), query) for row in content["rows"][:MAX_ROWS]]}

    def _find(self, view: View, content: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """Rows that fit the search and the filters, as int32 in a buffer. The fate filter is the page's own."""
        query, role, kind, tool = (str(content.get(name) or "") for name in ("query", "role", "kind", "tool"))
        fits = np.ones(len(view.indices), bool)
        if kind:
            fits &= view.kinds[:, KIND[kind]] > 0
        if tool:
            fits &= np.isin(np.arange(len(fits)), _tools(view).get(tool, []))
        query = query.lower()
        rows = [
            row for row in np.flatnonzero(fits).tolist() if (not role or view.messages[row].role == role) and (not query or matches(view.messages[row], query))
        ]
        buffers.append(np.array(rows, np.int32).tobytes())
        return {"count": len(rows)}

    def _text(self, view: View, content: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
        """A page of one message, or of one note of the present selection."""
        note = content.get("note")
        message = view.messages[int(content["row"])] if note is None else self._note(int(note), content.get("version"))
        part = page(message, max(0, int(content.get("offset") or 0)))
        return {"pieces": [[piece.kind, piece.title, piece.text] for piece in part.pieces], "next": part.next, "total": part.total}

    def _note(self, number: int, version: object) -> Message:
        if self._selection is None or version != self._version:
            raise WorkbenchError("this note is of an older selection; open it again")
        item = self._selection.items[self._inserts[number].place + number]  # after the messages and the inserts before it
        assert not isinstance(item, Kept)
        return item.message

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live view, with a table of the first rows beside it for where there is no kernel."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if self._view is None or bundle is None:
            return bundle
        static = {"text/html": reader_table(self._view, self._selection), "text/plain": repr(self)}
        if isinstance(bundle, tuple):  # anywidget answers (data, metadata), ipywidgets a dict
            return {**bundle[0], **static}, bundle[1]
        return {**bundle, **static}


def _describe(view: View) -> dict[str, Any]:
    """What the page must know of all rows: where each stands, where turns begin, what the filters offer."""
    present = [name for code, name in enumerate(KINDS) if name != "framing" and view.kinds[:, code].any()]
    roles = sorted({message.role for message in view.messages}, key=["system", "user", "assistant", "tool", "note"].index)
    return {
        "n": len(view.indices),
        "index": view.indices.astype(np.int32).tobytes(),
        "roles": roles,
        "kinds": present,
        "tools": sorted(_tools(view))[:_TOOLS],
    }


def _tools(view: View) -> dict[str, list[int]]:
    """Rows that call a tool or hold its result, by the tool's name as shown."""
    return view.memo.get("reader_tools", lambda: _find_tools(view))


def _find_tools(view: View) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    owner = {call.id: call.name for message in view.messages for call in message.calls if call.id}
    for row, message in enumerate(view.messages):
        names = {call.name for call in message.calls}
        if message.result is not None:
            names.add(message.result.name or owner.get(message.result.call_id, ""))
        for name in names - {""}:
            rows.setdefault(clean(name)[:80], []).append(row)
    return rows


def _row(view: View, row: int, query: str) -> list[Any]:
    """What one row shows: row, role, kind, tokens, size, preview, tag, starts a turn, first hit."""
    message = view.messages[row]
    shown = preview(message, query)
    kind = int(np.argmax(view.kinds[row, :-1]))
    starts = view.memo.get("turn_starts", lambda: frozenset(turn.messages[0] for turn in view.turns))
    return [row, message.role, KINDS[kind], int(view.tokens[row]), shown.size, shown.text, tags(message), message.index in starts, shown.hit]


def reader_table(view: View, selection: Selection | None) -> str:
    """The first rows as an HTML table, every text escaped."""
    lines = []
    for row in range(min(STATIC_ROWS, len(view.indices))):
        message = view.messages[row]
        fate = FATES[int(selection.fate_codes[row])] if selection is not None else ""
        cells = (f"#{message.index}", fate, message.role, preview(message).text, f"{int(view.tokens[row]):,}")
        lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    total = len(view.indices)
    caption = "no messages" if not total else f"first {len(lines)} of {total:,} messages" if len(lines) < total else f"{total:,} messages"
    head = "<tr><th>message</th><th>fate</th><th>role</th><th>text</th><th>tokens</th></tr>" if lines else ""
    return f"<table><caption>{caption}</caption>{head}{''.join(lines)}</table>"
