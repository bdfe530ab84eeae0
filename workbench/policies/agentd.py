"""agentd on a canonical transcript: a context that grows, and is folded into a structured summary when it is nearly full.

The rules are those of `workbench.systems.agentd`, which is the readable twin: it holds every message, estimates all of
them anew after a fold, and writes the text to summarize. Here each message is estimated once for a ledger, so that
trigger, plan and recount are questions to sums; what a fold is filled with is kept for the folds asked for last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from .. import notes
from ..ledger import View
from ..model import Message, Text
from ..notes.structured import reader
from ..notes.structured_fill import LISTS, Filled, fill
from ..systems.agentd import Summary, estimate
from ..tokens.base import Ints
from .agentd_log import log
from .agentd_state import Fold, State, measure
from .base import Event, Fate, Note, PolicyInfo, Request, Selection, Steps, check_params, kept_items, make_selection, param, row_indices

STRUCTURED = "structured"
_FOLDS_KEPT = 16  # of a view: those that a slider passes by


@dataclass(frozen=True)
class Agentd:
    """Sends everything until its estimate passes a share of the window, then folds all but the newest messages into a summary.

    The summary is a system message in front. The fold ends before a user's message, so that a long newest turn stays whole
    and may exceed the window: no budget is promised. Nor are pairs: a result that comes a turn after its call can lose it.
    Without an LLM the summary is filled by rules (`notes.structured_fill`). Another note is what the original does with an
    answer that is a text: it becomes the narrative, and stands for all that was folded so far. (When its summarizer fails the
    original takes the end of the messages' own lines; ``note="extracts"`` is like it.)

    Its own estimate is the one that its trigger reads: characters ÷ 4 and 4 a message, without system prompt and tools, and
    after a fold with the summary. A request that follows one of this policy goes on from its state.
    """

    compact_at: float = param(0.8, label="Fold at", help="Share of the window that the estimate must pass.", unit="of the window", low=0.05, high=1, step=0.05)
    keep_last: int = param(
        8, label="Newest kept", help="Messages that are not folded, and more up to the user's message before.", unit="messages", low=1, high=10_000, step=1
    )
    target: int | None = param(
        None, label="Target", help="Fold on until what is kept has at most so many tokens; the newest 2 stay.", unit="tokens", low=0, high=2_000_000, step=1_000
    )
    note: str = param(
        STRUCTURED, label="Note", help="What stands for the rest. Another note than the structured one becomes the narrative.", choices=notes.NAMES
    )
    note_max_chars: int = param(
        6_000,
        label="Longest note",
        help="Another note than the structured one is cut to so many characters.",
        unit="chars",
        low=0,
        high=100_000,
        step=500,
        ours=True,
    )

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="agentd",
        title="agentd",
        summary="Folds all but the newest messages into a structured summary when the window is nearly full.",
        origin="agentd",
        version="as specified",
        as_of="2026-12-01",
        evidence="golden vectors of the original program",
        mechanisms=("trigger", "newest messages", "structured summary"),
        persistent=True,
    )
    promises: ClassVar[frozenset[str]] = frozenset({"last_user"})

    def __post_init__(self) -> None:
        check_params(self)

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        """Append what is new, fold if the window is nearly full, and send summary and messages.

        Parameters
        ----------
        previous : Selection, optional
            Its state is gone on from if it is this policy's and its messages are the first of this request's; else the
            context starts anew, and the log says so.
        """
        view = request.view
        measured = measure(view)
        start, resumed = _resume(request, previous)
        appended = measured.tokens(start.seen, measured.count)
        grown = replace(start, seen=measured.count, est_tokens=start.est_tokens + appended)
        window = request.budget.max_tokens
        full = window > 0 and float(grown.est_tokens) > self.compact_at * float(window)
        first = measured.fold(grown.folded, self.keep_last, self.target) if full else grown.folded
        end = self._fold(request, grown, first) if first > grown.folded else grown
        text = "" if end.summary.is_empty() else end.summary.render()
        fold = Fold(start, grown, end, full, resumed)
        return self._send(request, fold, text)

    def own_costs(self, view: View) -> tuple[int, Ints]:
        """Its own estimate of each row; it has none of the fixed part. See `own.own_costs`."""
        return 0, np.concatenate([np.zeros(view.lead, np.int64), np.diff(measure(view).sums)])

    def _fold(self, request: Request, grown: State, first: int) -> State:
        """The context after its messages up to row `first` of the history were folded: the original's apply."""
        view = request.view
        if self.note == STRUCTURED:
            filled = _filler(view)(grown.folded, first)
            newer = Summary(*(tuple(item.text for item in filled.of(name)) for name in LISTS))  # type: ignore[arg-type]
            told = grown.narrated
        else:
            filled = Filled()
            draft = _writer(view)(self.note, first, self.note_max_chars)
            newer = Summary(narrative=draft.text)
            folded = set(row_indices(view)[view.lead : view.lead + first])
            told = tuple(index for index in draft.quotes if index in folded)
        summary = grown.summary.absorb(replace(newer, covers_messages=first - grown.folded), max(request.now or 0, 0))
        kept = measure(view).tokens(first, grown.seen)
        return State(
            seen=grown.seen,
            folded=first,
            est_tokens=kept + estimate(summary.render()),  # that of an empty summary is its heading's
            version=grown.version + 1,
            summary=summary,
            sources={name: _sources(grown, filled, summary, name) for name in LISTS},
            narrated=told,
        )

    def _send(self, request: Request, fold: Fold, text: str) -> Selection:
        view, state = request.view, fold.end
        lead, kept, folded = view.lead, kept_items(view), state.folded
        first = lead + folded
        covers = row_indices(view)[lead:first]
        quotes = tuple(sorted({*state.narrated, *(index for found in state.sources.values() for index in found)}))
        note = Note(Message(-1, "", "note", (Text(text),), thread=view.thread), covers, quotes, "system") if text else None
        fates = np.full(len(kept), Fate.KEPT, np.uint8)
        fates[lead:first] = Fate.SUMMARIZED if note else Fate.DROPPED
        rows = np.concatenate([np.arange(lead), [-1] if note else [], np.arange(first, len(kept))]).astype(np.int64)
        measured = measure(view)
        grown = fold.grown
        return make_selection(
            self,
            request,
            (*kept[:lead], *((note,) if note else ()), *kept[first:]),
            own=(measured.tokens(0, measured.count), state.est_tokens),
            rows=rows,
            fates=fates,
            steps=Steps(lambda: log(self, request, measured, fold, note)),
            state=state.as_json(),
            event=Event("summary", "compact_at", grown.est_tokens, state.est_tokens) if fold.folds else None,
        )


def _resume(request: Request, previous: Selection | None) -> tuple[State, str | None]:
    """The state to go on from, and why it is a new one although there was a selection before."""
    if previous is None:
        return State(), None
    if not isinstance(previous.policy, Agentd):
        return State(), "the selection before is another policy's: the context starts anew"
    old, new = previous.request.view, request.view
    if old.lead != new.lead or new.messages[: len(old.messages)] != old.messages:
        return State(), "the messages of the selection before are not the first of this request's: the context starts anew"
    return State.from_json(previous.state), None


def _sources(grown: State, filled: Filled, summary: Summary, name: str) -> tuple[int, ...]:
    """The message of each item of a list of the summary; an item that was there before keeps its own."""
    known = {item.text: item.index for item in filled.of(name)}
    known.update(zip(getattr(grown.summary, name), grown.sources.get(name, ()), strict=True))
    return tuple(known[text] for text in getattr(summary, name))


def _filler(view: View) -> Callable[[int, int], Filled]:
    """Fills a summary from some rows of the history; remembers the last."""

    def make() -> Callable[[int, int], Filled]:
        def write(start: int, end: int) -> Filled:
            return fill(view.messages[view.lead + start : view.lead + end], reader(view))

        return lru_cache(_FOLDS_KEPT)(write)

    return view.memo.get("agentd filler", make)


def _writer(view: View) -> Callable[[str, int, int], notes.Draft]:
    """Writes another note for the first rows of the history; remembers the last."""

    def make() -> Callable[[str, int, int], notes.Draft]:
        def write(name: str, end: int, most_chars: int) -> notes.Draft:
            return notes.get(name).write(view, range(view.lead, view.lead + end), most_chars)

        return lru_cache(_FOLDS_KEPT)(write)

    return view.memo.get("agentd writer", make)
