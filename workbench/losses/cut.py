"""The measures of one cut: what a selection removes, and what comes after it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import WorkbenchError
from ..ledger import Ledger
from ..model import Message, Text, ToolResult, Transcript
from ..policies.base import Fate, Kept, Selection
from .index import Index, index_of
from .measure import Losses, Measure, Row, held_measure
from .standing import artifact_trail, instruction_survival, note_precision, pending_work, user_messages
from .walk import Change, Moment, Walked, walk


def of(selection: Selection, ledger: Ledger | None = None, after: int | None = None) -> Losses:
    """What a selection removes that was needed after it.

    The messages that come after the cut are its future. A selection for a request in the middle of a session has the rest
    of the thread; for one on the whole history the cut is put right after the last message that it removed, so that what
    it keeps shows what it would have needed: "if these messages had been removed before #136".

    Parameters
    ----------
    ledger : Ledger, optional
        Whose transcript holds the future. Default: the selection's own.
    after : int, optional
        ``Message.index`` of the first message after the cut. Only what the selection removes before it counts as removed.

    Raises
    ------
    WorkbenchError
        The ledger counts another transcript; or no message has this index.
    """
    view = selection.request.view
    ledger = ledger or view.ledger
    transcript = ledger.transcript
    if transcript is not view.ledger.transcript and transcript.messages[: len(view.ledger.transcript.messages)] != view.ledger.transcript.messages:
        raise WorkbenchError("the ledger counts another transcript; give the one that the selection is about, or none")
    if after is not None and not 0 <= after <= len(transcript.messages):
        raise WorkbenchError(f"after = {after}: there is no such message; choose 0 to {len(transcript.messages)}")
    index = index_of(ledger)
    rows = sorted({*view.indices.tolist(), *_newer(ledger, selection)})
    away = sorted(view.indices[selection.fate_codes != Fate.KEPT].tolist())
    at = _cut(rows, away, view.indices.tolist(), after)
    gone = [row for row in away if row < at]
    change = Change(at, gone, texts=new_texts(selection))
    end = rows[-1] + 1 if rows else 0
    asked = request_after(transcript, rows, at)
    walked = walk(index, rows, [change], [asked])
    notes = [(text_of(note.message), note.covers) for note in selection.notes]
    return assemble(index, rows, walked, walked.moments[0], notes, (at if gone else -1, end))


def _newer(ledger: Ledger, selection: Selection) -> list[int]:
    """The messages of the thread that the selection's request did not hold yet."""
    view = selection.request.view
    last = int(view.indices.max()) if len(view.indices) else -1
    every = ledger.view(view.thread, "full").indices
    return [int(row) for row in every[every > last]]


def _cut(rows: Sequence[int], away: Sequence[int], seen: Sequence[int], after: int | None) -> int:
    if after is not None:
        return after
    last = max(seen, default=-1)
    end = rows[-1] + 1 if rows else 0
    if rows and rows[-1] > last:  # the request stands in the middle of the session
        return next(row for row in rows if row > last)
    return next((row for row in rows if row > away[-1]), end) if away else end


def request_after(transcript: Transcript, rows: Sequence[int], at: int) -> int:
    """``Message.index`` of the first answer from a place on: the request for it is the first that has the new context."""
    return next((row for row in rows if row >= at and transcript.messages[row].role == "assistant"), rows[-1] + 1 if rows else 0)


def new_texts(selection: Selection) -> tuple[str, ...]:
    """The texts of what is sent and is no recorded message: notes, edited messages, added text."""
    return tuple(text_of(selection.items[at].message) for at in np.flatnonzero(selection.item_rows < 0).tolist() if not isinstance(selection.items[at], Kept))  # type: ignore[union-attr]


def text_of(message: Message) -> str:
    """All readable text of a message that is sent: texts, results, arguments of calls."""
    found = []
    for part in message.parts:
        if type(part) is Text or type(part) is ToolResult:
            found.append(part.text)
    found += [call.arguments_raw for call in message.calls]
    return "\n".join(found)


def assemble(index: Index, rows: Sequence[int], walked: Walked, moment: Moment, notes: Sequence[tuple[str, Sequence[int]]], period: tuple[int, int]) -> Losses:
    """All measures of what was needed in a period, and of what stood in the context at a moment."""
    cut, end = period
    used = _in(walked.used, cut, end)
    changes = walked.changes
    measures = (
        held_measure(
            "used_later",
            "Used later and still there",
            "Identifiers first seen in removed messages that the model used after the cut, and that what is sent holds.",
            used,
        ),
        _again(
            "read_again", "Files read again", "Readings of a file whose last reading was removed, written to since or not.", walked.reread, walked.reads, period
        ),
        _again("called_again", "Calls made again", "Calls that equal a removed one, by tool and arguments.", walked.repeated, walked.calls, period),
        _again("rework", "Work done again", "Those of them before which nothing was written that they depend on.", walked.rework, walked.calls, period),
        artifact_trail(index, rows, moment, changes),
        instruction_survival(index, rows, moment, changes),
        user_messages(index, rows, moment, changes),
        pending_work(index, rows, moment, changes),
        note_precision(index, rows, notes),
    )
    return Losses(cut, end, tuple(sorted({*changes})) if cut >= 0 else (), measures)


def _in(rows: Sequence[Row], start: int, end: int) -> list[Row]:
    return [row for row in rows if 0 <= start <= row.needed < end]


def _again(name: str, title: str, says: str, rows: Sequence[Row], places: Sequence[int], period: tuple[int, int]) -> Measure:
    """A measure of what was done again after the cut, out of all that was done."""
    found = _in(rows, *period)
    of_all = sum(0 <= period[0] <= place < period[1] for place in places)
    return Measure(name, title, says, len(found), of_all, tuple(found), more_is_worse=True)
