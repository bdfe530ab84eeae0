"""vak's working set: which closed turns a request carries whole, which as a card, which in one packet. AN APPROXIMATION.

Several different versions of the original's planner exist and no vectors of it. This is the core that they share, with
the scores as an input; the scorer, the form of a card and the share of the packet are the workbench's. A turn is never
split. Rules: four_systems.md §5.

Examples
--------
>>> plan([Turn(50, 5), Turn(30, 5), Turn(40, 5), Turn(30, 5)], [1 / 4, 1 / 3, 1 / 2, 1], budget=75).fidelity
('packet', 'card', 'full', 'full')
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .rusttext import trim
from .vak_digest import SENTENCE_WORDS, cut_words, first_sentence
from .vak_model import Message, ToolUse

APPROXIMATION = "approximation: the original's planner exists in several versions and was not pinned"

Fidelity = Literal["full", "card", "packet"]

#: Most of the budget that is set aside for a packet: one part of so many. Workbench default.
PACKET_SHARE = 4
#: With less room than this a packet could not say anything. Workbench default.
LEAST_PACKET_BYTES = 64
#: Most characters of a sentence on a card: code and pasted text have no sentence ends. Workbench default.
CARD_CHARS = 240
#: Words by which a directive speaks of what was just said.
BACK_REFERENCES = frozenset(("it", "its", "that", "this", "those", "these", "them", "again", "same", "previous", "above"))
_BM25_K1, _BM25_B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Turn:
    """What a closed turn costs in tokens: whole, and as a card."""

    full: int
    card: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of each closed turn, oldest first.

    Parameters
    ----------
    spent : int
        Tokens of the turns in full and of the cards.
    aside : int
        Tokens that were set aside for a packet; 0 if no turn went into one at the first try.
    """

    fidelity: tuple[Fidelity, ...]
    spent: int
    aside: int = 0


def plan(turns: Sequence[Turn], scores: Sequence[float], budget: int, *, packet: int = 0, skip: bool = True) -> Plan:
    """Plan the closed turns, oldest first: in full by falling score, then cards from the newest on, then one packet.

    Parameters
    ----------
    scores : sequence of float
        One per turn; of equal ones the newer turn comes first.
    packet : int
        Tokens that a packet would take. If there must be one, turns and cards get by without these tokens, but not
        without more than `PACKET_SHARE` allows.
    skip : bool
        Whether a turn that does not fit in full is passed over; else it ends the walk.
    """
    first = _fill(turns, scores, budget, skip)
    if "packet" not in first.fidelity:
        return first
    aside = min(packet, budget // PACKET_SHARE)
    second = _fill(turns, scores, budget - aside, skip)
    return Plan(second.fidelity, second.spent, aside)


def _fill(turns: Sequence[Turn], scores: Sequence[float], budget: int, skip: bool) -> Plan:
    fidelity: list[Fidelity] = ["packet"] * len(turns)
    spent = 0
    for at in sorted(range(len(turns)), key=lambda at: (-scores[at], -at)):
        if spent + turns[at].full <= budget:
            spent += turns[at].full
            fidelity[at] = "full"
        elif not skip:
            break
    for at in range(len(turns) - 1, -1, -1):
        if fidelity[at] == "full":
            continue
        if spent + turns[at].card > budget:
            break  # this one and all older ones that are not in full make the packet
        spent += turns[at].card
        fidelity[at] = "card"
    return Plan(tuple(fidelity), spent)


def recency(count: int) -> list[float]:
    """1 for the newest of so many turns, then 1/2, 1/3, … back to the oldest, which stands first."""
    return [1 / (1 + age) for age in range(count - 1, -1, -1)]


def score(cards: Sequence[str], directive: str) -> list[float]:
    """The default scores: the larger of recency and relevance; 1 for the last turn if the directive speaks of it.

    Parameters
    ----------
    cards : sequence of str
        One per closed turn, oldest first.

    Examples
    --------
    >>> score(["asked: Rename the parser.", "asked: Add a test."], "Is the parser fast?")
    [1.0, 1.0]
    """
    relevant = bm25(cards, directive)
    best = max(relevant, default=0.0)
    scores = [max(recent, value / best if best else 0.0) for recent, value in zip(recency(len(cards)), relevant, strict=True)]
    if scores and refers_back(directive):
        scores[-1] = 1.0
    return scores


def bm25(documents: Sequence[str], query: str) -> list[float]:
    """BM25 of each document for the distinct words of a query."""
    places: dict[str, list[tuple[int, int]]] = {}  # word → documents that hold it, and how often
    lengths = []
    for at, document in enumerate(documents):
        terms = _terms(document)
        lengths.append(len(terms))
        for term, often in Counter(terms).items():
            places.setdefault(term, []).append((at, often))
    mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
    scores = [0.0] * len(documents)
    for term in dict.fromkeys(_terms(query)):
        holding = places.get(term, ())
        rarity = math.log(1 + (len(documents) - len(holding) + 0.5) / (len(holding) + 0.5))
        for at, often in holding:
            scores[at] += rarity * often * (_BM25_K1 + 1) / (often + _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths[at] / mean))
    return scores


def refers_back(directive: str) -> bool:
    """Say whether a directive speaks of what was just said ("do that again")."""
    return not BACK_REFERENCES.isdisjoint(_terms(directive))


def card(messages: Sequence[Message], request: bool = True) -> str:
    r"""A turn on a card: the first sentence of its request, the tools it used, the last sentence of its answer.

    What a turn does not have is left out. `card_sources` says where the sentences stand.

    Parameters
    ----------
    request : bool
        Whether the turn begins with a person's words.

    Examples
    --------
    >>> from workbench.systems.vak_model import Text
    >>> print(card([Message("user", (Text("Fix it. Now."),)), Message("assistant", (Text("I looked. It works."),))]))
    asked: Fix it.
    answered: It works.
    """
    asked, answered = card_sources(messages, request)
    rows = [] if asked is None else ["asked: " + _bounded(first_sentence(trim(messages[asked].text)))]
    tools = Counter(block.name for message in messages for block in message.content if type(block) is ToolUse)
    if tools:
        rows.append("did: " + ", ".join(name[:CARD_CHARS] + (f" ×{count}" if count > 1 else "") for name, count in tools.items()))
    if answered is not None:
        rows.append("answered: " + _bounded(last_sentence(messages[answered].text)))
    return "\n".join(rows) or "nothing was said"


def card_sources(messages: Sequence[Message], request: bool = True) -> tuple[int | None, int | None]:
    """Which messages of a turn its card quotes: its request and its answer, where there are any words."""
    asked = 0 if request and messages and trim(messages[0].text) else None
    answers = (at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "assistant" and trim(messages[at].text))
    return asked, next(answers, None)


def last_sentence(text: str) -> str:
    """What follows the last end of a sentence but the final one.

    Examples
    --------
    >>> last_sentence("All 3.5 pass. Done! ")
    'Done!'
    """
    text = trim(text)
    start = 0
    for found in _INNER_END.finditer(text):
        start = found.end()
    return trim(text[start:])


def _bounded(sentence: str) -> str:
    sentence = cut_words(sentence, SENTENCE_WORDS)
    return sentence if len(sentence) <= CARD_CHARS else sentence[:CARD_CHARS] + "…"


def _terms(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


_INNER_END = re.compile(r"[.!?](?=[ \n])")
