"""The header: which transcript, how large, what was skipped, and whether something is wrong or still running."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from ..errors import WorkbenchError
from .assets import css, esm
from .session import Session
from .texts import one_line
from .words import problem_text

DIAGNOSTICS = 200  # shown; the rest is a number
_LINE = 300  # characters of one


class Header(anywidget.AnyWidget):
    """One line about the transcript. `refresh` shows what the session holds now.

    Attributes
    ----------
    progress : float
        0 to 1 while something long runs; -1 if nothing does.
    task : str
        What runs, or why it ended early.
    """

    _esm = traitlets.Unicode(esm("header")).tag(sync=True)
    _css = traitlets.Unicode(css("header", "workbench")).tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)
    skipped = traitlets.Dict().tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)
    progress = traitlets.Float(-1.0).tag(sync=True)
    task = traitlets.Unicode("").tag(sync=True)
    action = traitlets.Unicode("").tag(sync=True)

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        super().__init__(skipped=skipped_of(session))
        self.refresh()

    def refresh(self) -> None:
        """Show what the session holds now."""
        session = self._session
        if session is None:
            return
        with self.hold_sync():
            self.facts = facts_of(session)
            self.problem = header_problem(session.problem, session)

    def close(self) -> None:
        """Free everything: no reference to the session stays."""
        self._session = None
        self.unobserve_all()
        super().close()

    def __repr__(self) -> str:
        return "<Header: closed>" if self._session is None else f"<Header: {self.facts['name']}>"


def header_problem(problem: WorkbenchError | None, session: Session) -> str:
    """Why there is no selection, or an empty text."""
    return "" if problem is None else problem_text(problem, session.smallest_known)


def facts_of(session: Session) -> dict[str, Any]:
    """What the header says of the transcript: texts only."""
    view, transcript = session.view, session.ledger.transcript
    counter = session.ledger.counter
    turns = len(view.turns)
    words = [transcript.source.format, transcript.model or "model not recorded", _many(len(view.indices), "message"), _many(turns, "turn group")]
    if session.thread != "main":
        words.insert(2, f"thread {session.thread}")
    if session.history == "live":
        words.insert(2, "since the last compaction")
    return {
        "name": one_line(transcript.name),
        "words": [one_line(word)[:_LINE] for word in words],
        "tokens": ("" if counter.exact else "≈ ") + f"{view.total:,}",
        "counter": counter.label,
        "range": f"exactly {view.total:,}" if counter.exact else f"between {view.low:,} and {view.high:,}",
    }


def skipped_of(session: Session) -> dict[str, Any]:
    """What the reader could not take as it was: a label, the diagnostics shown, and how many more there are."""
    transcript = session.ledger.transcript
    diagnostics, lines = transcript.diagnostics, transcript.records.skipped
    label = f"{_many(lines, 'line')} skipped" if lines else _many(len(diagnostics), "remark") if diagnostics else ""
    shown = [[item.line, item.code, one_line(item.text)[:_LINE]] for item in diagnostics[:DIAGNOSTICS]]
    return {"label": label, "bad": lines > 0, "rows": shown, "more": max(0, len(diagnostics) - DIAGNOSTICS)}


def _many(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")
