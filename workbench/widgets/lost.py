"""The Lost tab: what the selection removes and what was needed after it, each with the place where it was said and needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import losses
from ..errors import WorkbenchError
from ..losses import Losses, Measure, Recorded, Row
from ..losses.moment import select_then
from ..policies.base import Selection
from .session import Session
from .texts import one_line

ROWS = 30  # of one measure
ALL_ROWS = 300
COMPACTIONS = 20
_SAID = 160  # characters of a row's text


def lost(session: Session, selection: Selection, turn: int | None) -> dict[str, Any]:
    """What is lost.

    Parameters
    ----------
    turn : int or None
        The policy is asked before this turn group, and the rest of the session is its future. None: the present
        selection, cut after the last message that it removes.

    Returns
    -------
    dict
        ``head``, ``proxies``, ``turn`` (-1 for None), ``turns`` (how many there are), ``measures`` and ``recorded``.
        A measure: title, number, share, sentence, whether it speaks of a loss, rows, how many more. A row: kind, text,
        and three messages to go to: where it stood, before which it was removed, where it was needed; -1 for none.
    """
    turns = selection.request.view.turns
    problem, found = "", None
    if turn is not None and not 0 < turn < len(turns):
        turn = None
    try:
        chosen = selection if turn is None else select_then(session.policy, selection.request, selection.request.view.row_of[turns[turn].messages[0]] + 1)
        found = losses.of(chosen)
    except WorkbenchError as error:
        problem = str(error)
    room = _Room(ALL_ROWS)
    return {
        "head": one_line(problem) if found is None else _head(found, chosen, turn),
        "problem": found is None,
        "proxies": losses.PROXIES,
        "turn": -1 if turn is None else turn,
        "turns": len(turns),
        "measures": [] if found is None else [room.measure(measure) for measure in found if measure.of],
        "recorded": [_recorded(item, number, room) for number, item in enumerate(_compactions(session), 1)],
    }


def _head(found: Losses, chosen: Selection, turn: int | None) -> str:
    gone = chosen.counts["summarized"] + chosen.counts["dropped"] + chosen.counts["edited"]
    if found.cut < 0:
        return "Nothing is removed, so nothing is lost." if turn is None else f"Before turn {turn} nothing is removed yet."
    messages = "1 message" if gone == 1 else f"{gone:,} messages"
    if turn is None:
        return f"If these {messages} had been removed before #{found.cut}, the first one after them:"
    return f"Asked in turn {turn}, the policy removes {messages}. The session then went on:"


def _compactions(session: Session) -> tuple[Recorded, ...]:
    ledger, thread = session.ledger, session.thread
    return ledger.memo.get(("losses recorded", thread), lambda: losses.of_recorded(ledger, thread))[:COMPACTIONS]


def _recorded(item: Recorded, number: int, room: _Room) -> dict[str, Any]:
    facts = [f"{_number(item.tokens_before)} → {_number(item.tokens_after)} tokens", f"after {item.answers:,} answers and {item.messages:,} messages"]
    if item.note_tokens is not None:
        facts.append(f"note of {item.note_tokens:,} tokens")
    if item.thrash:
        facts.append("full again at once")
    if not item.readable:
        facts.append("its note cannot be read, so what it held is unknown")
    measures = [room.measure(measure) for measure in item.losses if measure.of]
    return {"title": f"Real compaction {number}, before #{item.at}", "facts": " · ".join(facts), "measures": measures}


def _number(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"


class _Room:
    """Rows that still may cross to the browser."""

    def __init__(self, rows: int) -> None:
        self.left = rows

    def measure(self, measure: Measure) -> list[Any]:
        rows = measure.lost
        shown = rows[: min(ROWS, self.left)]
        self.left -= len(shown)
        share = f"{measure.share:.0%}".replace("%", " %") if measure.share is not None else ""
        number = f"{measure.count:,} of {measure.of:,}"
        return [measure.title, number, share, measure.says, bool(rows), list(_rows(shown)), len(rows) - len(shown)]


def _rows(rows: Iterable[Row]) -> Iterable[list[Any]]:
    for row in rows:
        text = one_line(row.text[: 4 * _SAID])
        yield [row.kind, text[: _SAID - 1] + "…" if len(text) > _SAID else text, row.source, row.removed, row.needed]
