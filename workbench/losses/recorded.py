"""The compactions that really happened, measured like those of a policy: what the note kept, and what came back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ledger import Ledger
from ..model import MAIN, Call, Compaction, Transcript
from ..turns import starts_turn
from .cut import assemble, request_after, text_of
from .index import index_of
from .measure import Losses
from .walk import Change, walk

#: A context that is full again after so few answers is thrashing.
THRASH = 3


@dataclass(frozen=True, slots=True)
class Recorded:
    """One real compaction.

    Parameters
    ----------
    at : int
        ``Message.index`` of the first message after it, its summary apart.
    tokens_before : int or None
        As recorded; else the prompt of the newest request before it that reported one.
    tokens_after : int or None
        As recorded; else the prompt of the first request after it that reported one.
    next_prompt : int or None
        That prompt, as the provider reported it. Requests without usage (stopped before an answer) are passed by.
    note_tokens : int or None
        Of the summary, as counted; None if there is none.
    readable : bool
        False if the summary cannot be read: what it held is then unknown, and every measure of what is held is too low.
    answers, messages, turns : int
        Between the compaction before (or the start) and this one.
    seconds : float or None
        Between the two, by the time stamps.
    thrash : bool
        The context was full again after at most `THRASH` answers.
    losses : Losses
        What was needed until the next compaction, or the end.
    """

    compaction: Compaction
    at: int
    tokens_before: int | None
    tokens_after: int | None
    next_prompt: int | None
    note_tokens: int | None
    readable: bool
    answers: int
    messages: int
    turns: int
    seconds: float | None
    thrash: bool
    losses: Losses

    def as_json(self, most: int | None = None) -> dict[str, Any]:
        """Plain data, with at most so many rows of each measure."""
        names = ("at", "tokens_before", "tokens_after", "next_prompt", "note_tokens", "readable", "answers", "messages", "turns", "seconds", "thrash")
        kinds = {"kind": self.compaction.kind, "trigger": self.compaction.trigger, "summary": self.compaction.summary}
        return {**kinds, **{name: getattr(self, name) for name in names}, "losses": self.losses.as_json(most)}


def of_recorded(ledger: Ledger, thread: str = MAIN) -> tuple[Recorded, ...]:
    """Measure each real compaction of a thread, in order.

    What was needed is looked for until the next compaction; it may have been removed by any compaction up to then.
    """
    transcript = ledger.transcript
    compactions = transcript.compacted(thread)
    if not compactions:
        return ()
    index = index_of(ledger)
    summaries = {item.summary for item in compactions if item.summary is not None}
    every = transcript.thread(thread)
    rows = [row for row in every if row not in summaries]
    end = (every[-1] + 1) if every else 0
    changes, covers = _changes(transcript, compactions, rows, thread)
    asked = [request_after(transcript, rows, change.at) for change in changes]
    walked = walk(index, rows, changes, asked)
    moments = {moment.at: moment for moment in walked.moments}
    calls = [call for call in transcript.calls if call.thread == thread and call.kind == "response"]
    found = []
    for number, item in enumerate(compactions):
        at = changes[number].at
        until = changes[number + 1].at if number + 1 < len(changes) else end
        note = "" if item.summary is None else text_of(transcript.messages[item.summary])
        notes = [(note, covers[number])] if note.strip() else []
        losses = assemble(index, rows, walked, moments[asked[number]], notes, (at, until))
        found.append(
            _recorded(
                ledger,
                item,
                at,
                changes[number - 1].at if number else 0,
                rows,
                calls,
                losses,
                readable=bool(notes) or (item.summary is None and item.kind != "opaque"),
            )
        )
    return tuple(found)


def _changes(transcript: Transcript, compactions: Sequence[Compaction], rows: Sequence[int], thread: str) -> tuple[list[Change], list[list[int]]]:
    """The changes of the context, and the messages that each summary stands for: those that were there and did not stay."""
    known, fixed = frozenset(rows), frozenset(transcript.fixed(thread))
    summaries = {item.summary for item in compactions}
    live: set[int] = set()
    changes: list[Change] = []
    covers: list[list[int]] = []
    seen = 0
    for item in compactions:
        stop = max(bisect_right(rows, item.after), seen)
        at = rows[stop] if stop < len(rows) else (rows[-1] + 1 if rows else 0)
        live.update(rows[seen:stop])
        seen = stop
        stays = {row for row in item.kept if row < at and row in known} | (fixed & live)
        told = [row for row in item.kept if row in summaries and row != item.summary]
        told += [item.summary] if item.summary is not None else []
        texts = tuple(text for text in (text_of(transcript.messages[row]) for row in told) if text.strip())
        gone = sorted(live - stays)
        changes.append(Change(at, gone, sorted(stays - live), texts))
        covers.append(gone)
        live = stays
    return changes, covers


def _recorded(ledger: Ledger, item: Compaction, at: int, since: int, rows: Sequence[int], calls: Sequence[Call], losses: Losses, *, readable: bool) -> Recorded:
    transcript = ledger.transcript
    before = [call for call in calls if call.produced and call.produced[0] <= item.after]
    prompts = [call.usage.prompt for call in calls if call.produced and call.produced[0] > item.after and call.usage is not None and call.usage.prompt]
    spent = [call.usage.total for call in before if call.usage is not None and call.usage.total]
    between = [row for row in rows if since <= row < at]
    answers = sum(transcript.messages[row].role == "assistant" for row in between)
    times = [ts for row in between if (ts := transcript.messages[row].ts) is not None]
    return Recorded(
        compaction=item,
        at=at,
        tokens_before=item.tokens_before if item.tokens_before is not None else spent[-1] if spent else None,
        tokens_after=item.tokens_after if item.tokens_after is not None else prompts[0] if prompts else None,
        next_prompt=prompts[0] if prompts else None,
        note_tokens=None if item.summary is None else int(ledger.message_tokens[item.summary]),
        readable=readable,
        answers=answers,
        messages=len(between),
        turns=sum(starts_turn(transcript.messages[row]) for row in between),
        seconds=(max(times) - min(times)) / 1000 if len(times) > 1 else None,
        thrash=since > 0 and answers <= THRASH,
        losses=losses,
    )
