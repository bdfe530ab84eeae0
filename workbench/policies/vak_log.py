"""vak's decision log in plain words, worked out again from the costs when somebody reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..systems.vak_workset import APPROXIMATION
from .base import Note, Request, Step, row_indices
from .vak_costs import FULL, PACKET, Costs, Planned, cards_of, facts_of, relevance_order, scores_of

if TYPE_CHECKING:
    from .vak import Vak


def log(policy: Vak, request: Request, costs: Costs, planned: Planned, packet: Note | None, packed: int) -> Iterator[Step]:
    """One step per decision. `packed` is what the packet costs."""
    view = request.view
    indices = row_indices(view)
    yield Step(APPROXIMATION)
    yield _ceiling(policy, request, costs)
    held = "" if costs.reserve == costs.open else f" (what turns have had; it holds {costs.open:,})"
    yield Step(
        f"ceiling {costs.ceiling:,} − prefix {costs.prefix:,} (prompt {costs.prompt:,}, tools {costs.prefix - costs.prompt:,}) − tail {costs.tail:,} "
        f"− current turn {costs.reserve:,}{held} = {costs.budget:,} for closed turns"
    )
    if view.lead:
        yield Step(f"leading system text is the prefix: it is always sent; digest {facts_of(view).digest[:12]}", indices[: view.lead])
    if request.pins:
        yield Step("vak cannot pin: a pinned message is treated like any other", tuple(index for index in sorted(request.pins) if index in view.row_of))
    if not len(costs.starts):
        return
    turns = _Turns(view.lead, costs, indices)
    last = len(costs.starts) - 1
    yield Step(f"turn {last} is the current one, {costs.open:,} tokens: always sent in full", turns.messages(last))
    if costs.tail_text:
        yield Step(f"the tail, {costs.tail:,} tokens, is attached to the newest person's message", turns.messages(last)[:1])
    elif costs.attached:
        yield Step("the newest person's message carries the tail already", turns.messages(last)[:1])
    elif policy.tail:
        yield Step("no person has spoken, so there is nothing to attach the tail to")
    if not last:
        return
    if planned.aside:
        yield Step(
            f"not every turn fits whole or on a card, so {planned.aside:,} tokens are set aside for the packet: "
            f"{costs.budget:,} − {planned.aside:,} = {costs.budget - planned.aside:,}"
        )
    room = costs.budget - planned.aside
    yield from _full(policy, request, costs, planned, room, turns)
    yield from _cards(request, costs, planned, room, turns)
    yield from _packet(policy, costs, planned, packet, packed, turns)


class _Turns:
    def __init__(self, lead: int, costs: Costs, indices: tuple[int, ...]) -> None:
        self._bounds = [*(costs.starts + lead).tolist(), len(indices)]
        self._indices = indices

    def messages(self, turn: int) -> tuple[int, ...]:
        return self._indices[self._bounds[turn] : self._bounds[turn + 1]]


def _ceiling(policy: Vak, request: Request, costs: Costs) -> Step:
    budget = request.budget
    less = f"window {budget.max_tokens:,} − reserve {budget.reserve_output_tokens:,} − margin {budget.safety_margin_tokens:,}"
    if policy.horizon is None:
        return Step(f"the horizon is the window: ceiling = {less} = {costs.ceiling:,}")
    return Step(f"ceiling = the smaller of horizon {policy.horizon:,} and {less} = {costs.ceiling:,}")


def _full(policy: Vak, request: Request, costs: Costs, planned: Planned, room: int, turns: _Turns) -> Iterator[Step]:
    """The walk over the turns in full, in the order in which they were tried."""
    count = len(planned.fidelity)
    scores = scores_of(request.view) if policy.ranking == "relevance" and int(costs.turns[:-1].sum()) > costs.budget else None
    order = range(count - 1, -1, -1) if scores is None else relevance_order(request.view)
    spent = 0
    for turn in order:
        size = int(costs.turns[turn])
        said = f"turn {turn}" + ("" if scores is None else f", score {scores[turn]:.2f}") + f": {spent:,} + {size:,}"
        if planned.fidelity[turn] == FULL:
            spent += size
            yield Step(f"{said} ≤ {room:,}: in full", turns.messages(turn))
            continue
        ends = policy.ranking == "recency"
        yield Step(f"{said} > {room:,}: not in full" + (", and no older turn either" if ends and turn else ""), turns.messages(turn))
        if ends:
            older = tuple(index for earlier in range(turn) for index in turns.messages(earlier))
            if older:
                yield Step(f"older than turn {turn}, the first that did not fit in full ({spent:,} + {size:,} > {room:,}): not in full", older)
            break


def _cards(request: Request, costs: Costs, planned: Planned, room: int, turns: _Turns) -> Iterator[Step]:
    rest = np.flatnonzero(planned.fidelity != FULL)[::-1].tolist()
    if not rest:
        return
    cards = cards_of(request.view)
    sizes = costs.tokens(cards.sizes).tolist()
    spent = planned.full
    for turn in rest:
        said = f"turn {turn}: a card costs {sizes[turn]:,}: {spent:,} + {sizes[turn]:,}"
        if planned.fidelity[turn] == PACKET:
            yield Step(f"{said} > {room:,}: no card for it nor for any older turn that is not in full", turns.messages(turn))
            return
        spent += sizes[turn]
        yield Step(f"{said} ≤ {room:,}: on a card", turns.messages(turn))
        if cards.notes[turn].quotes:
            yield Step("its card holds words of this message", cards.notes[turn].quotes)


def _packet(policy: Vak, costs: Costs, planned: Planned, packet: Note | None, packed: int, turns: _Turns) -> Iterator[Step]:
    rest = np.flatnonzero(planned.fidelity == PACKET).tolist()
    if not rest:
        return
    covers = tuple(index for turn in rest for index in turns.messages(turn))
    room = costs.budget - planned.spent
    if len(rest) == 1:
        which = f"turn {rest[0]}"
    elif len(rest) == rest[-1] - rest[0] + 1:
        which = f"turns {rest[0]} to {rest[-1]}"
    else:
        which = f"{len(rest):,} of the turns {rest[0]} to {rest[-1]}"
    if packet is None:
        yield Step(f"{which}: no packet, whose bound is {policy.packet_max_chars:,} characters and {room:,} tokens: dropped", covers)
        return
    text = packet.message.text
    yield Step(
        f"{which}, {len(covers):,} messages: one packet ({policy.note}) of at most {policy.packet_max_chars:,} characters and {room:,} tokens; "
        f"it has {len(text):,} and {packed:,}. No model is asked for a summary",
        covers,
    )
    if packet.quotes:
        yield Step(f"the packet holds words of {len(packet.quotes):,} of them, this one among them", packet.quotes)
    quoted = set(packet.quotes)
    beyond = tuple(index for index in covers if index not in quoted)
    if beyond:
        yield Step(f"the packet holds no words of {len(beyond):,} of them, this one among them", beyond)
