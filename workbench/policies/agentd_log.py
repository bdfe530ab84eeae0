"""The decision log of agentd in words: what was appended, whether the window is nearly full, where the fold ends, what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..notes.structured_fill import LISTS
from ..systems.agentd import estimate
from ..systems.agentd_fold import FEWEST_FOLDED, FEWEST_KEPT
from ..systems.agentd_summary import MOST_ITEMS
from .agentd_state import Fold, Measured
from .base import Note, Request, Step, row_indices

if TYPE_CHECKING:
    from .agentd import Agentd


def log(policy: Agentd, request: Request, measured: Measured, fold: Fold, note: Note | None) -> Iterator[Step]:
    """The steps of a selection."""
    view, window = request.view, request.budget.max_tokens
    start, grown, end = fold.start, fold.grown, fold.end
    every = row_indices(view)
    indices = every[view.lead :]
    if fold.resumed:
        yield Step(fold.resumed)
    if view.lead:
        yield Step("leading system text is the prompt: it is always sent, and in no estimate", every[: view.lead])
    if request.pins:
        yield Step("agentd cannot pin: a pinned message is treated like any other", tuple(index for index in sorted(request.pins) if index in view.row_of))
    if not indices:
        yield Step("there is no history: nothing to fold")
        return
    if start.seen:
        folded = f", {start.folded:,} of them folded" if start.folded else ""
        yield Step(f"goes on from the request before: {start.seen:,} messages{folded}, estimate {start.est_tokens:,}")
        if start.folded:
            yield Step("folded for an earlier request", indices[: start.folded])
    yield Step(
        f"{grown.seen - start.seen:,} messages appended: estimate {grown.est_tokens:,} (characters ÷ 4, and 4 a message; prompt and tools are not in it)"
    )

    yield _trigger(policy, grown.est_tokens, window, fold.full)
    if fold.full:
        yield from _plan(policy, measured, fold, indices)
    if fold.folds:
        yield from _apply(policy, measured, fold, indices)
        if window and end.est_tokens > policy.compact_at * window:
            yield Step("the estimate is still above that: nothing more is folded for this request")
    if note is not None:
        quoted = set(note.quotes)
        rest = tuple(index for index in note.covers if index not in quoted)
        if quoted:
            yield Step(f"the summary holds words of {len(quoted):,} of {end.folded:,} folded messages, this one among them", note.quotes)
        if rest:
            yield Step(f"the summary stands for this message, but holds no word of it, as of {len(rest):,} of {end.folded:,}", rest)
    elif end.folded:
        yield Step("the summary says nothing, so it is not sent: what was folded is gone", indices[: end.folded])
    yield Step("sent as it is" if end.folded else "everything is sent as it is", indices[end.folded :])


def _trigger(policy: Agentd, estimated: int, window: int, full: bool) -> Step:
    if not window:
        return Step("a window of 0 is unknown to it: no compaction")
    limit = f"{policy.compact_at:g} × {window:,} = {policy.compact_at * window:,.{0 if policy.compact_at * window >= 100 else 2}f}"
    return Step(f"estimate {estimated:,} > {limit}: compact" if full else f"estimate {estimated:,} ≤ {limit}: no compaction")


def _plan(policy: Agentd, measured: Measured, fold: Fold, indices: tuple[int, ...]) -> Iterator[Step]:
    """The walk of the plan, worked out again."""
    start, keep = fold.grown.folded, policy.keep_last
    count = measured.count - start
    if count < keep + FEWEST_FOLDED:
        yield Step(f"{count:,} messages are live, fewer than {keep:,} + {FEWEST_FOLDED}: nothing is folded")
        return
    first = measured.count - keep
    yield Step(f"{count:,} messages are live; all but the newest {keep:,} are to be folded: {first - start:,}", indices[first:])
    if policy.target is not None:
        kept, further = measured.tokens(first, measured.count), measured.aim(keep, policy.target)
        if further > first:
            left = measured.tokens(further, measured.count)
            stop = f"≤ {policy.target:,}" if left <= policy.target else f"still above, but only {FEWEST_KEPT} messages"
            yield Step(f"they have {kept:,} tokens > target {policy.target:,}: {further - first:,} more are folded, {left:,} are left, {stop}")
        else:
            more = f"≤ target {policy.target:,}" if kept <= policy.target else f"> target {policy.target:,}, but only {keep:,} messages"
            yield Step(f"they have {kept:,} tokens, {more}: no more are folded")
        first = further
    end = fold.end.folded
    if end < first:
        where = f"#{indices[end]}" if end > start else "the beginning"
        back = indices[end:first]
        yield Step(f"the first kept message must be a user's, and #{indices[first]} is none: the fold ends {first - end:,} earlier, at {where}", back)
    if end == start:
        yield Step("nothing is left to fold")


def _apply(policy: Agentd, measured: Measured, fold: Fold, indices: tuple[int, ...]) -> Iterator[Step]:
    grown, end = fold.grown, fold.end
    if policy.note == "structured":
        said = ", ".join(f"{len(getattr(end.summary, name)):,} {name if name != 'open' else 'open items'}" for name in LISTS)
        full = [name for name in LISTS if len(getattr(end.summary, name)) == MOST_ITEMS]
        capped = f"; {', '.join(full)} at the cap of {MOST_ITEMS}, where the newest stay" if full else ""
        said = f"the summary now has {said}{capped}"
    else:
        said = f"the note {policy.note} is its narrative, {len(end.summary.narrative or ''):,} characters"
    yield Step(f"{end.folded - grown.folded:,} messages folded, version {end.version}: {said}", indices[grown.folded : end.folded])
    kept = measured.tokens(end.folded, end.seen)
    summary = estimate(end.summary.render())
    empty = ", of which nothing is sent: an empty summary still counts its heading" if end.summary.is_empty() else ""
    yield Step(f"counted anew: messages {kept:,} + summary {summary:,}{empty} = {end.est_tokens:,}; before {grown.est_tokens:,}")
