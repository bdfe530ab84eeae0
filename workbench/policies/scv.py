"""scv on a canonical transcript: whole newest turns, and one bounded note in place of the rest.

The rules are those of `workbench.systems.scv`, which is the readable twin: it writes every message as JSON and builds
the note anew for each cut that it tries. Here each message is measured once for a view. The cost of the turns from
each turn on, and the cost of the note for each cut, then are two arrays, and the walk and the note's loop of the
original are one question: which is the first cut where both fit together?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import notes
from ..errors import BudgetError
from ..ledger import View
from ..model import Message as Canonical
from ..model import Text as CanonicalText
from ..notes import Draft
from ..notes.extracts import said_at
from ..systems import scv
from ..systems.mapping.scv import as_messages, as_scv
from ..systems.rustjson import char_bytes, utf8_len
from ..tokens.base import Ints
from .base import Event, Fate, Note, PolicyInfo, Request, Selection, Step, Steps, check_params, kept_items, make_selection, param, row_indices

_EMPTY_NOTE_BYTES = utf8_len(scv.message_json(scv.Message("history_note", "")))
_HEADER_CHARS = len(scv.header(0)) - 1  # without the digits of the number
_POWERS = 10 ** np.arange(1, 19)
_FAR = 2**62  # no sum of costs reaches it


@dataclass(frozen=True)
class Scv:
    """Keeps the newest whole turns that fit, and replaces the rest by one note of bounded extracts.

    Window, reserve and margin are the budget's. Its own estimate is JSON bytes in tokens, with constants for a
    message and an image. Pairs are not promised: a result that comes a turn after its call can lose it.
    """

    bytes_per_token: int = param(3, label="Bytes per token", help="JSON bytes that count as one token in its own estimate.", low=1, high=16, step=1)
    summary_max_chars: int = param(6_000, label="Longest note", help="The note is cut to so many characters.", unit="chars", low=0, high=100_000, step=500)
    note: str = param("extracts", label="Note", help="What stands for the rest. The origin knows extracts only.", choices=notes.NAMES)

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="scv",
        title="scv",
        summary="Newest whole turns within the budget; one note with the end of each older message.",
        origin="scv",
        version="as specified",
        as_of="2026-11-30",
        evidence="golden vectors of the original program",
        mechanisms=("newest turns", "note"),
    )
    promises: ClassVar[frozenset[str]] = frozenset({"budget", "last_user", "idempotent", "monotone"})

    def __post_init__(self) -> None:
        check_params(self)

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        """Choose; the selection before does not matter.

        Raises
        ------
        BudgetError
            With the original's error as culprit. ``available`` is window − reserve − margin, ``needed`` the least that
            fixed part, newest turn and note can be: the window must grow by the difference.
        """
        bill = _Bill(self, request.view)
        budget = request.budget
        available = budget.available  # exact: the original's sum stops at 64 bits, but its window is below that
        if available <= 0:
            spent = budget.reserve_output_tokens + budget.safety_margin_tokens
            sizes = f"reserve and margin {spent:,} {_over(spent, budget.max_tokens)} window {budget.max_tokens:,}"
            raise BudgetError(bill.least, available, scv.RESERVE, detail=sizes)
        if not len(bill.costs):
            return self._nothing(request)
        room = min(available - bill.fixed, _FAR)
        if room <= 0:
            raise BudgetError(bill.least, available, scv.STATIC, detail=f"fixed part {bill.fixed:,} {_over(bill.fixed, available)} {available:,}")
        newest = int(bill.tails[-1])
        if newest > room:
            raise BudgetError(bill.least, available, scv.NEWEST, detail=f"newest turn {newest:,} > {room:,}")
        if bill.tails[0] <= room:
            return self._all(request, bill)

        cuts = bill.starts[1:]
        costs = bill.note_costs(room)
        fits = bill.tails[1:] + costs <= room
        at = int(fits.argmax())
        if fits[at]:
            cut = int(cuts[at])
            return self._cut(request, bill, cut, bill.draft(cut), int(costs[at]), costs)
        # only the newest turn is left, and the note must be cut
        if newest + bill.empty_note > room:
            raise BudgetError(bill.least, available, scv.NOTE, detail=f"newest turn {newest:,} + empty note {bill.empty_note:,} > {room:,}")
        draft = bill.fit(room - newest)
        return self._cut(request, bill, int(cuts[-1]), draft, bill.cost_of(draft.text), costs)

    def smallest_window(self, request: Request) -> int | None:
        """The smallest window at which it can choose, with the request's reserve and margin."""
        bill = _Bill(self, request.view)
        return request.budget.reserve_output_tokens + request.budget.safety_margin_tokens + bill.least

    def own_costs(self, view: View) -> tuple[int, Ints]:
        """Its own estimate of the fixed part, and of each row beside that. See `own.own_costs`."""
        bill = _Bill(self, view)
        return bill.fixed, np.concatenate([np.zeros(view.lead, np.int64), bill.costs])

    def _nothing(self, request: Request) -> Selection:
        view = request.view
        lead = len(view.indices)  # leading system messages at the most
        steps = (Step("there is no history: nothing is counted", row_indices(view)),)
        return make_selection(self, request, kept_items(view), own=(0, 0), rows=np.arange(lead), fates=np.zeros(lead, np.uint8), steps=steps)

    def _all(self, request: Request, bill: _Bill) -> Selection:
        total = bill.fixed + int(bill.tails[0])
        count = len(request.view.indices)
        return make_selection(
            self,
            request,
            kept_items(request.view),
            own=(total, total),
            rows=np.arange(count),
            fates=np.full(count, Fate.KEPT, np.uint8),
            steps=Steps(lambda: _log(request, bill, 0)),
        )

    def _cut(self, request: Request, bill: _Bill, cut: int, draft: Draft, cost: int, costs: Ints) -> Selection:
        view = request.view
        lead, kept = view.lead, kept_items(view)
        first = lead + cut
        note = Note(Canonical(-1, "", "note", (CanonicalText(draft.text),), thread=view.thread), row_indices(view)[lead:first], draft.quotes, "history_note")
        fates = np.full(len(kept), Fate.KEPT, np.uint8)
        fates[lead:first] = Fate.SUMMARIZED
        rows = np.arange(-1, len(kept) - cut)
        rows[:lead] = range(lead)
        rows[lead] = -1
        rows[lead + 1 :] += cut
        before = bill.fixed + int(bill.tails[0])
        after = bill.fixed + bill.cost_from(cut) + cost
        return make_selection(
            self,
            request,
            (*kept[:lead], note, *kept[first:]),
            own=(before, after),
            rows=rows,
            fates=fates,
            steps=Steps(lambda: _log(request, bill, cut, note, cost, costs)),
            event=Event("summary", "budget", before, after),
        )


@dataclass(frozen=True)
class _Facts:
    """What no parameter changes: one row per message of the history."""

    sizes: Ints  # JSON bytes
    images: Ints
    starts: Ints  # first row of each turn
    prompt_bytes: int
    tools_bytes: int


def _facts(view: View) -> _Facts:
    prompt, tools, history = as_scv(view)
    users = np.array([message.role == "user" for message in history], bool)
    users[:1] = True  # the first message starts a turn, whoever wrote it
    return _Facts(
        sizes=np.array([scv.message_bytes(message) for message in history], np.int64),
        images=np.array([len(message.images) for message in history], np.int64),
        starts=np.flatnonzero(users),
        prompt_bytes=utf8_len(prompt),
        tools_bytes=utf8_len(scv.tools_json(tools)),
    )


@dataclass(frozen=True)
class _Lines:
    """The notes' lines, oldest first, as far as any note of some length can show them."""

    text: str
    ends: Ints  # ends[i]: characters of the first i lines
    said: Ints  # said[i]: characters up to the first of line i's words
    json_bytes: Ints  # json_bytes[c]: bytes of the first c characters inside a JSON string


def _lines(view: View, chars: int) -> _Lines:
    lines, ends, said = [], [0], []
    for canonical in view.messages[view.lead :]:
        if ends[-1] >= chars:
            break
        message = as_messages(view, (canonical,))[0]
        lines.append(scv.extract(message))
        said.append(ends[-1] + said_at(message, lines[-1]))
        ends.append(ends[-1] + len(lines[-1]))
    text = "".join(lines)
    return _Lines(text, np.array(ends, np.int64), np.array(said, np.int64), np.concatenate([[0], np.cumsum(char_bytes(text))]))


class _Bill:
    """What each part of a view costs, and what a note would, by a policy's parameters."""

    def __init__(self, policy: Scv, view: View) -> None:
        self.bytes_per_token = policy.bytes_per_token
        self.max_chars = policy.summary_max_chars
        self.writer = None if policy.note == "extracts" else notes.get(policy.note)
        self._drafts: dict[tuple[int, int], Draft] = {}
        self.view = view
        facts = view.memo.get("scv facts", lambda: _facts(view))
        self.prompt = scv.tokens_of(facts.prompt_bytes, self.bytes_per_token)
        self.tools = scv.tokens_of(facts.tools_bytes, self.bytes_per_token)
        self.fixed = self.prompt + self.tools
        self.starts = facts.starts
        self.costs = self._tokens(facts.sizes) + scv.TOKENS_PER_MESSAGE + scv.TOKENS_PER_IMAGE * facts.images
        sums = np.cumsum(self.costs)
        self.tails = (sums[-1:] - sums + self.costs)[self.starts]  # cost of each turn and all that follow
        self.empty_note = int(self._tokens(np.array(_EMPTY_NOTE_BYTES))) + scv.TOKENS_PER_MESSAGE
        if not len(self.tails):
            self.least = 1  # a history of nothing needs a budget that is not used up
        elif len(self.tails) == 1:
            self.least = self.fixed + int(self.tails[0])
        else:
            self.least = self.fixed + min(int(self.tails[0]), int(self.tails[-1]) + self.empty_note)

    @property
    def _lines(self) -> _Lines:
        size = 1 << max(self.max_chars, 1).bit_length()  # few sizes for all lengths that a slider can give
        return self.view.memo.get(("scv lines", size), lambda: _lines(self.view, size))

    def cost_from(self, row: int) -> int:
        """Cost of the history from a row on."""
        return int(self.costs[row:].sum())

    def note_costs(self, room: int) -> Ints:
        """Cost of the whole note for each place where the history can be cut, shape (turns - 1,).

        A note that is not scv's own is written to be weighed: only for the cuts that the original's loop tries, from
        the first whose turns fit `room` to the first whose note fits beside them. The others cost more than any room.
        """
        cuts = self.starts[1:]
        if self.writer is None:
            return self._own_costs(cuts)
        costs = np.full(len(cuts), _FAR)
        for at in range(int((self.tails[1:] <= room).argmax()), len(cuts)):
            costs[at] = self.cost_of(self.draft(int(cuts[at])).text)
            if self.tails[at + 1] + costs[at] <= room:
                break
        return costs

    def _own_costs(self, counts: Ints) -> Ints:
        lines = self._lines
        header = _header_chars(counts)
        chars = np.minimum(header + lines.ends[np.minimum(counts, len(lines.ends) - 1)], self.max_chars)
        inside = chars >= header  # else the cut is inside the header, before its line feed, whose JSON takes two bytes
        sizes = np.where(inside, header + 1 + lines.json_bytes[np.maximum(chars - header, 0)], chars)
        return self._tokens(_EMPTY_NOTE_BYTES + sizes) + scv.TOKENS_PER_MESSAGE

    def cost_of(self, text: str) -> int:
        """Cost of a note."""
        return int(self._tokens(np.array(_EMPTY_NOTE_BYTES + int(char_bytes(text).sum())))) + scv.TOKENS_PER_MESSAGE

    def draft(self, count: int, most_chars: int | None = None) -> Draft:
        """The note for a number of left-out messages, of at most so many characters."""
        view = self.view
        most = self.max_chars if most_chars is None else most_chars
        if self.writer is not None:
            if (count, most) not in self._drafts:
                self._drafts[count, most] = self.writer.write(view, range(view.lead, view.lead + count), most)
            return self._drafts[count, most]
        lines = self._lines
        text = (scv.header(count) + lines.text[: lines.ends[min(count, len(lines.ends) - 1)]])[:most]
        return Draft(text, row_indices(view)[view.lead : view.lead + self._quoted(count, len(text))])

    def fit(self, available: int) -> Draft:
        """The longest beginning of the note for all but the newest turn that fits. The empty note must fit."""
        count = int(self.starts[-1])
        draft = self.draft(count)
        sizes = np.concatenate([[0], np.cumsum(char_bytes(draft.text))])
        room = (available - scv.TOKENS_PER_MESSAGE) * self.bytes_per_token - _EMPTY_NOTE_BYTES
        chars = int(np.searchsorted(sizes, room, "right")) - 1
        draft = self.draft(count, chars)
        while self.cost_of(draft.text) > available:  # another kind of note may choose other words when it must be shorter
            chars = chars * 3 // 4
            draft = self.draft(count, chars)
        return draft

    def _quoted(self, count: int, chars: int) -> int:
        """How many of the left-out messages have words of theirs in a note of this length; see `said_at`."""
        return int(np.searchsorted(self._lines.said[:count], chars - int(_header_chars(np.array(count))), "right"))

    def _tokens(self, sizes: Ints) -> Ints:
        return -(-sizes // self.bytes_per_token)


def _header_chars(counts: Ints) -> Ints:
    return _HEADER_CHARS + 1 + np.searchsorted(_POWERS, counts, "right")


def _over(left: int, right: int) -> str:
    return ">" if left > right else "≥"


def _log(request: Request, bill: _Bill, cut: int, note: Note | None = None, cost: int = 0, costs: Ints | None = None) -> Iterator[Step]:
    """The original's walk in words, worked out again from the costs. `cut` is the first row that is kept."""
    view, budget = request.view, request.budget
    indices = row_indices(view)[view.lead :]
    room = budget.available - bill.fixed
    yield Step(
        f"window {budget.max_tokens:,} − reserve {budget.reserve_output_tokens:,} − margin {budget.safety_margin_tokens:,} "
        f"− fixed part {bill.fixed:,} (prompt {bill.prompt:,}, tools {bill.tools:,}) = {room:,} for the history"
    )
    if view.lead:
        yield Step("leading system text is the prompt: it is always sent", row_indices(view)[: view.lead])
    if request.pins:
        yield Step("scv cannot pin: a pinned message is treated like any other", tuple(index for index in sorted(request.pins) if index in view.row_of))

    bounds = [*bill.starts.tolist(), len(indices)]
    tails = [*bill.tails.tolist(), 0]
    last = len(tails) - 2
    turn = last
    while turn >= 0:
        size, rest, rows = tails[turn] - tails[turn + 1], tails[turn + 1], indices[bounds[turn] : bounds[turn + 1]]
        said = f"{size:,} tokens" + ("" if turn == last else f", {rest:,} + {size:,}")
        if tails[turn] > room:
            said = f"{said} > {room:,}"
            yield Step(f"turn {turn}: {said}: stop", rows)
            break
        yield Step(f"turn {turn}: {said} ≤ {room:,}: kept" + (", as the newest turn must be" if turn == last else ""), rows)
        turn -= 1
    if turn < 0 or note is None or costs is None:
        yield Step("all of the history fits: nothing is removed and no note is made")
        return
    if turn > 0:
        older = "turn 0 is" if turn == 1 else f"turns 0 to {turn - 1} are"
        yield Step(f"{older} older than turn {turn}, the first that did not fit ({said}): left out, whatever their size", indices[: bounds[turn]])

    for kept in range(turn + 1, last + 1):
        whole, rest, count = int(costs[kept - 1]), tails[kept], bounds[kept]
        said = f"a note for {count:,} messages costs {whole:,}: {rest:,} + {whole:,}"
        if rest + whole <= room:
            yield Step(f"{said} ≤ {room:,}: done", note.covers)
        elif kept < last:
            yield Step(f"{said} > {room:,}: turn {kept} joins the note", indices[count : bounds[kept + 1]])
            continue
        else:
            left = f"its first {len(note.message.text):,} characters, {cost:,} tokens," if note.message.text else f"an empty note, {cost:,} tokens,"
            yield Step(f"{said} > {room:,}, and only the newest turn is kept: {left} fit beside it", note.covers)
        break
    if note.quotes:
        yield Step(f"the note holds the end of {len(note.quotes):,} of {cut:,} messages, this one among them", note.quotes)
    beyond = note.covers[len(note.quotes) :]
    if beyond:
        yield Step(f"the note ends before the words of {len(beyond):,} of {cut:,} messages: it only counts this one", beyond)
