"""What vak's parts of a request cost in its own estimate, and which closed turns fit: the fast form of its planner.

Each message is measured once for a view, each closed turn written on a card once. A plan then is a few sums: by recency
the turns in full are the newest whose sums fit, and the cards the newest of the rest. `workbench.systems.vak_assemble`
is the readable twin; tests tie the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..ledger import View
from ..model import Budget, Message, Text
from ..systems import vak, vak_workset
from ..systems.mapping.common import prompt_text, request_row
from ..systems.mapping.vak import as_messages, as_tools
from ..systems.rustjson import utf8_len
from ..tokens.base import Ints
from ..turns import starts_turn
from .items import Note
from .selection import row_indices

if TYPE_CHECKING:
    from .vak import Vak

FULL, CARD, PACKET = range(3)


@dataclass(frozen=True)
class Facts:
    """What no parameter changes, for the messages after the leading system text.

    Parameters
    ----------
    sizes : int array, shape (n,)
        Bytes of each message as vak counts them.
    starts : int array, shape (turns,)
        First message of each turn.
    """

    sizes: Ints
    starts: Ints
    prompt_bytes: int
    tools_bytes: int
    digest: str


@dataclass(frozen=True)
class Cards:
    """The closed turns on cards, oldest first."""

    notes: tuple[Note, ...]
    sizes: Ints  # bytes
    tokens: Ints  # counted


def facts_of(view: View) -> Facts:
    """The facts of a view, worked out once."""
    return view.memo.get("vak facts", lambda: _facts(view))


def _facts(view: View) -> Facts:
    prompt, tools, history = prompt_text(view), as_tools(view), view.messages[view.lead :]
    begins = np.array([starts_turn(message) for message in history], bool)
    begins[:1] = True  # what stands before the first person's message is a turn of its own
    prompt_bytes = vak.prefix_chars(prompt, [])
    return Facts(
        sizes=np.array([vak.message_chars(message) for message in as_messages(history)], np.int64),
        starts=np.flatnonzero(begins),
        prompt_bytes=prompt_bytes,
        tools_bytes=vak.prefix_chars(prompt, tools) - prompt_bytes,
        digest=vak.prefix_digest(prompt, tools),
    )


def cards_of(view: View) -> Cards:
    """The cards of a view's closed turns, written and counted once."""
    return view.memo.get("vak cards", lambda: _cards(view))


def _cards(view: View) -> Cards:
    bounds = (facts_of(view).starts + view.lead).tolist()
    notes = tuple(_card(view, start, end) for start, end in pairwise(bounds))
    sizes = [utf8_len(note.message.text) for note in notes]
    return Cards(notes, np.array(sizes, np.int64), view.ledger.count_messages([note.message for note in notes]))


def _card(view: View, start: int, end: int) -> Note:
    rows, indices = view.messages[start:end], row_indices(view)[start:end]
    turn, request = as_messages(rows), starts_turn(rows[0])
    sources = sorted(at for at in vak_workset.card_sources(turn, request) if at is not None)
    message = Message(-1, "", "note", (Text(vak_workset.card(turn, request)),), thread=view.thread)
    return Note(message, indices, tuple(indices[at] for at in sources), "card")


def scores_of(view: View) -> list[float]:
    """The planner's score of each closed turn for the newest person's message, oldest first; worked out once."""
    return view.memo.get("vak scores", lambda: _scores(view))


def _scores(view: View) -> list[float]:
    row = request_row(view)
    return vak_workset.score([note.message.text for note in cards_of(view).notes], "" if row is None else view.messages[row].text)


def relevance_order(view: View) -> list[int]:
    """The closed turns by falling score, newer first on ties; worked out once."""
    return view.memo.get("vak order", lambda: _relevance_order(scores_of(view)))


def _relevance_order(scores: list[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda at: (-scores[at], -at))


class Costs:
    """What each part costs under a policy's parameters and a budget, in the policy's own estimate."""

    def __init__(self, policy: Vak, view: View, budget: Budget) -> None:
        facts = facts_of(view)
        self.starts = facts.starts
        spent = budget.reserve_output_tokens + budget.safety_margin_tokens
        profile = replace(vak.Capacity.from_metadata(budget.max_tokens, spent), tokens_per_char=vak.Ewma(policy.tokens_per_char, samples=1))
        if policy.horizon is not None:
            profile = replace(profile, instruction_horizon=vak.Horizon(policy.horizon, vak.METADATA_CONFIDENCE))
        self.ratio = policy.tokens_per_char
        self.prompt = profile.estimate_tokens(facts.prompt_bytes)
        self.prefix = profile.estimate_tokens(facts.prompt_bytes + facts.tools_bytes)
        self.attached = _is_attached(view, policy.tail)
        self.tail_text = "" if request_row(view) is None or self.attached else policy.tail
        self.tail = profile.estimate_tokens(utf8_len(self.tail_text))
        self.rows = self.tokens(facts.sizes)
        self.turns = np.add.reduceat(self.rows, facts.starts) if len(facts.starts) else self.rows
        self.open = int(self.turns[-1]) if len(self.turns) else 0
        self.least = self.prefix + self.tail + self.open
        if policy.learn_turns:
            for size in self.turns[:-1].tolist():
                profile = profile.observe_turn(size)
        self.ceiling = min(profile.prompt_ceiling, budget.available)  # negative if reserve and margin are larger than the window
        self.reserve = profile.turn_reserve(self.open)
        self.budget = profile.budget(self.prefix, self.tail, self.reserve)

    def tokens(self, sizes: Ints) -> Ints:
        """`Capacity.estimate_tokens` of many sizes."""
        exact = sizes * self.ratio
        whole = np.floor(exact)
        result: Ints = (whole + (exact - whole >= 0.5)).astype(np.int64)
        return result

    def bytes_for(self, room: int) -> int:
        """The most bytes whose estimate is not above so many tokens."""
        size = int((room + 0.5) / self.ratio) + 1
        while size > 0 and vak.round_half_away(size * self.ratio) > room:
            size -= 1
        return size


def _is_attached(view: View, tail: str) -> bool:
    """Whether the newest person's message carries the tail already, as it does in what this policy sent."""
    row = request_row(view)
    first = None if row is None else next((part for part in view.messages[row].parts if type(part) is Text), None)
    return bool(tail) and first is not None and first.text == tail


@dataclass(frozen=True)
class Planned:
    """A plan of the closed turns.

    Parameters
    ----------
    fidelity : uint8 array, shape (closed turns,)
        `FULL`, `CARD` or `PACKET` of each, oldest first.
    full, cards : int
        Tokens of the turns in full, and of the cards.
    aside : int
        Tokens set aside for the packet.
    """

    fidelity: npt.NDArray[np.uint8]
    full: int
    cards: int
    aside: int

    @property
    def spent(self) -> int:
        """Tokens of both."""
        return self.full + self.cards


def plan(policy: Vak, view: View, costs: Costs) -> Planned:
    """What `vak_workset.plan` says, without a walk where the order is that of recency."""
    closed = costs.turns[:-1]
    if int(closed.sum()) <= costs.budget:
        return Planned(np.full(len(closed), FULL, np.uint8), int(closed.sum()), 0, 0)
    order = relevance_order(view) if policy.ranking == "relevance" else None
    cards = costs.tokens(cards_of(view).sizes)
    first = _fill(closed, cards, costs.budget, order)
    if not (first.fidelity == PACKET).any():
        return first
    packet = vak.round_half_away(policy.packet_max_chars * costs.ratio)
    aside = min(packet, costs.budget // vak_workset.PACKET_SHARE)
    return replace(_fill(closed, cards, costs.budget - aside, order), aside=aside)


def _fill(closed: Ints, cards: Ints, budget: int, order: list[int] | None) -> Planned:
    fidelity = np.full(len(closed), PACKET, np.uint8)
    if order is None:
        sums = np.cumsum(closed[::-1])
        count = int(np.searchsorted(sums, budget, "right"))
        fidelity[len(closed) - count :] = FULL
        full = int(sums[count - 1]) if count else 0
    else:
        full, sizes = 0, closed.tolist()
        taken = []
        for at in order:
            if full + sizes[at] <= budget:
                full += sizes[at]
                taken.append(at)
        fidelity[taken] = FULL
    rest = np.flatnonzero(fidelity != FULL)[::-1]
    sums = np.cumsum(cards[rest])
    count = int(np.searchsorted(sums, budget - full, "right"))
    fidelity[rest[:count]] = CARD
    return Planned(fidelity, full, int(sums[count - 1]) if count else 0, 0)
