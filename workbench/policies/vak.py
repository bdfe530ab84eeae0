"""vak on a canonical transcript: newest turns whole, older ones on cards, the rest in one packet. AN APPROXIMATION.

The layout of the request, its byte accounting and its capacity are the original's (`workbench.systems.vak`). Which turns
ride along is an approximation: the planner exists in several versions and was not pinned. A request is, in order:

1. the prefix: leading system text (and the tools, which stand in no message);
2. the packet: one note, the transcript of the turns that get no card;
3. the other closed turns in the order of the history, each whole or as a card;
4. the current turn, from the newest person's message (the directive) on, with the tail attached to that message.

Each card is a note of its own. One note with all cards would be another text at every budget, to be counted anew; its
fates would name one block for hundreds of turns; and with the ranking by relevance cards stand between whole turns. So
the strip shows for every turn what is left of it, and a drag counts nothing but the packet.

The readable twin is `workbench.systems.vak_assemble`. A packet that has no room, or none that could say anything, is not sent: its turns are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .. import notes
from ..errors import BudgetError
from ..ledger import View
from ..model import Message, Text
from ..notes import Draft
from ..systems import vak
from ..systems.rustjson import utf8_len
from ..systems.rusttext import head
from ..systems.vak_assemble import PACKET_CHARS
from ..systems.vak_workset import LEAST_PACKET_BYTES
from ..tokens.base import Ints
from .base import (
    DEFAULT_BUDGET,
    Edited,
    Event,
    Fate,
    Item,
    Note,
    PolicyInfo,
    Request,
    Selection,
    Steps,
    check_params,
    kept_items,
    make_selection,
    param,
    row_indices,
)
from .vak_costs import CARD, FULL, PACKET, Costs, Planned, cards_of, plan
from .vak_log import log

_PREFIX = "prefix and tail exceed the prompt ceiling"
_TURN = "current turn exceeds the prompt ceiling"


def _tail(label: str, help: str) -> str:
    text: str = param("", label=label, help=f"{help} Stands in the tail of the newest person's message.")
    return text


@dataclass(frozen=True)
class Vak:
    """Keeps what fits of the newest turns, remembers the older ones by a card each, and the oldest by one packet.

    An approximation: the original's planner was not pinned. Window, reserve and margin are the budget's; the margin counts
    as part of the output reserve. Its own estimate is bytes of text times a ratio, message by message. The newest person's
    message is always sent whole; with a tail it is an edited one. A larger window may keep fewer messages: one more turn
    in full can take the room of several cards, so that a packet must be made.
    """

    ranking: str = param(
        "recency",
        label="Ranking",
        help="recency: the newest turns in full, until one does not fit. relevance: by the planner's score, passing over what does not fit.",
        choices=("recency", "relevance"),
        ours=True,
    )
    note: str = param(
        "digest", label="Packet", help="What stands for the turns without a card. The origin has a model summarise the digest.", choices=notes.NAMES
    )
    packet_max_chars: int = param(
        PACKET_CHARS,
        label="Longest packet",
        help="The packet is cut to so many characters. 4,096 are the 1,024 tokens of the original's summary.",
        unit="chars",
        low=0,
        high=100_000,
        step=256,
        ours=True,
    )
    tokens_per_char: float = param(
        vak.UNCALIBRATED_TOKENS_PER_CHAR,
        label="Tokens per byte",
        help="Ratio of its own estimate; the origin measures it once a provider reports.",
        low=0.01,
        high=2,
        step=0.01,
    )
    horizon: int | None = param(
        None, label="Instruction horizon", help="The largest prompt that the model still follows.", unit="tokens", low=1, follows="window"
    )
    learn_turns: bool = param(
        False, label="Reserve by past turns", help="Keep room for the current turn to grow to the size that turns have had (a moving average).", ours=True
    )
    temporal: str = _tail("Tail: time", "What is true now.")
    intent: str = _tail("Tail: intent", "What is wanted.")
    stance: str = _tail("Tail: stance", "How to answer.")
    work_contract: str = _tail("Tail: work contract", "What was agreed.")
    workspace: str = _tail("Tail: workspace", "The state of the files.")
    thread: str = _tail("Tail: thread", "The thread's own notes.")

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="vak",
        title="vak (approximation)",
        summary="Newest turns whole, older ones on cards, one packet for the rest (an approximation), and a tail at the newest request.",
        origin="vak",
        version="as specified",
        as_of="2026-12-01",
        evidence="golden vectors of the original's request, digests and capacity; its planner is an approximation",
        mechanisms=("newest turns", "cards", "note", "tail"),
    )
    promises: ClassVar[frozenset[str]] = frozenset({"budget", "last_user", "idempotent"})

    def __post_init__(self) -> None:
        check_params(self)

    @property
    def tail(self) -> str:
        """The tail that is attached to the newest person's message; an empty field is no part of it."""
        sections = {name: text for name in vak.SECTIONS if name != "stance" and (text := getattr(self, name))}
        return vak.compose_tail(self.temporal, self.stance, sections)

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        """Choose; the selection before does not matter.

        Raises
        ------
        BudgetError
            Prefix, tail and current turn are more than the prompt may be; they are always sent.
        """
        view = request.view
        costs = Costs(self, view, request.budget)
        if costs.least > costs.ceiling:
            parts = f"prefix {costs.prefix:,} + tail {costs.tail:,}"
            raise BudgetError(
                costs.least,
                costs.ceiling,
                _PREFIX if costs.prefix + costs.tail > costs.ceiling else _TURN,
                detail=f"{parts} + current turn {costs.open:,} > {costs.ceiling:,}",
            )
        planned = plan(self, view, costs)
        packet = self._packet(view, costs, planned)
        return self._selection(request, costs, planned, packet)

    def own_costs(self, view: View) -> tuple[int, Ints]:
        """Its own estimate of the fixed part (prefix and tail), and of each row beside that. See `own.own_costs`."""
        costs = Costs(self, view, DEFAULT_BUDGET)
        return costs.prefix + costs.tail, np.concatenate([np.zeros(view.lead, np.int64), costs.rows])

    def smallest_window(self, request: Request) -> int | None:
        """The smallest window at which it can choose; None if the horizon is too small for any."""
        costs = Costs(self, request.view, request.budget)
        if self.horizon is not None and costs.least > self.horizon:
            return None
        return request.budget.reserve_output_tokens + request.budget.safety_margin_tokens + costs.least

    def _packet(self, view: View, costs: Costs, planned: Planned) -> Note | None:
        """The note for the turns that are neither in full nor on a card, as long as the room and its own bound let it be."""
        turns = np.flatnonzero(planned.fidelity == PACKET)
        if not len(turns):
            return None
        bounds = (costs.starts + view.lead).tolist()
        if len(turns) == turns[-1] - turns[0] + 1:
            rows: Sequence[int] = range(bounds[turns[0]], bounds[turns[-1] + 1])
        else:
            rows = [row for turn in turns.tolist() for row in range(bounds[turn], bounds[turn + 1])]
        draft = self._draft(view, rows, costs.bytes_for(costs.budget - planned.spent))
        if not draft.text:
            return None
        indices = row_indices(view)
        covers = indices[rows.start : rows.stop] if isinstance(rows, range) else tuple(indices[row] for row in rows)
        inside = set(covers)
        quotes = tuple(index for index in draft.quotes if index in inside)
        return Note(Message(-1, "", "note", (Text(draft.text),), thread=view.thread), covers, quotes, "packet")

    def _draft(self, view: View, rows: Sequence[int], room: int) -> Draft:
        """The note in so many bytes. Another kind of note may choose other words when it must be shorter, so it is asked again."""
        most = self.packet_max_chars
        if room < min(LEAST_PACKET_BYTES, most):
            return Draft("")
        writer = notes.get(self.note)
        draft = writer.write(view, rows, most)
        if utf8_len(draft.text) > room:
            draft = writer.write(view, rows, len(head(draft.text, room)))
        if utf8_len(draft.text) > room:
            draft = writer.write(view, rows, room // 4)  # no character has more bytes
        return draft

    def _selection(self, request: Request, costs: Costs, planned: Planned, packet: Note | None) -> Selection:
        view = request.view
        lead, kept = view.lead, kept_items(view)
        bounds = (costs.starts + lead).tolist()
        items: list[Item] = [*kept[:lead]]
        rows: list[Ints] = [np.arange(lead)]
        known: list[Ints] = [rows[0]]  # what a kept row has here is not looked at
        if packet is not None:
            items.append(packet)
            rows.append(_NEW)
            known.append(_NEW)
        for start, end in _runs(planned.fidelity):
            if planned.fidelity[start] == FULL:
                first, last = bounds[start], bounds[end]
                items += kept[first:last]
                rows.append(np.arange(first, last))
                known.append(rows[-1])
            elif planned.fidelity[start] == CARD:
                cards = cards_of(view)
                items += cards.notes[start:end]
                rows.append(np.full(end - start, -1))
                known.append(cards.tokens[start:end])

        fates = np.full(len(kept), Fate.KEPT, np.uint8)
        rest = Fate.SUMMARIZED if packet is not None else Fate.DROPPED
        sizes = np.diff(costs.starts)
        fates[lead : lead + int(sizes.sum())] = np.repeat(np.array([Fate.KEPT, Fate.SUMMARIZED, rest], np.uint8)[planned.fidelity], sizes)
        if bounds:
            at = bounds[-1]
            current = np.arange(at, len(kept))
            if costs.tail_text:
                directive = _with_tail(view, at, costs.tail_text)
                items.append(directive)
                current[0], fates[at] = -1, Fate.EDITED
                known.append(view.memo.get(("vak directive", costs.tail_text), lambda: view.ledger.count_messages([directive.message])))
                known.append(current[1:])
                items += kept[at + 1 :]
            else:
                items += kept[at:]
                known.append(current)
            rows.append(current)

        packed = vak.round_half_away(utf8_len(packet.message.text) * costs.ratio) if packet is not None else 0
        before = costs.prefix + int(costs.turns.sum())
        after = costs.least + planned.spent + packed
        whole = not (planned.fidelity != FULL).any()
        return make_selection(
            self,
            request,
            items,
            own=(before, after),
            rows=np.concatenate(rows),
            fates=fates,
            tokens=np.concatenate(known),
            steps=Steps(lambda: log(self, request, costs, planned, packet, packed)),
            event=None if whole else Event("working set", "budget", before, after),
        )


_NEW = np.array([-1])


def _runs(fidelity: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> list[tuple[int, int]]:
    """Bounds of the longest stretches of one fidelity."""
    if not len(fidelity):
        return []
    inner = (np.flatnonzero(np.diff(fidelity)) + 1).tolist()
    return list(zip([0, *inner], [*inner, len(fidelity)], strict=True))


def _with_tail(view: View, row: int, tail: str) -> Edited:
    message = view.messages[row]
    at = next((place for place, part in enumerate(message.parts) if type(part) is Text), len(message.parts))
    return Edited(message.index, replace(message, parts=(*message.parts[:at], Text(tail), *message.parts[at:])))
