"""vak's whole request, assembled step by step from a profile and turns: the readable twin of the policy. AN APPROXIMATION.

Everything is measured, written and rendered anew in every call, as one would write it down first. The fast form is
`workbench.policies.vak`; tests tie the two. How the packet is cut without a model, and that a message is estimated for
itself, are the workbench's. Rules: four_systems.md §5.

Examples
--------
>>> ask, answer = Message("user", (Text("Count to ten thousand. " * 9),)), Message("assistant", (Text("1 2 3 4 5 6 7 8 9. " * 9),))
>>> sent = assemble(Capacity.from_metadata(90, 0), "", [], [[ask, answer], [Message("user", (Text("And now?"),))]])
>>> sent.plan.fidelity, [message.text for message in sent.messages]
(('card',), ['asked: Count to ten thousand.\\nanswered: 1 2 3 4 5 6 7 8 9.', 'And now?'])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import PolicyError
from .rustjson import utf8_len
from .vak import attach_tail, message_chars, prefix_chars
from .vak_capacity import Capacity
from .vak_digest import render_transcript
from .vak_model import Message, Text, Tool
from .vak_workset import LEAST_PACKET_BYTES, Plan, Turn, card, plan, recency, score

#: What the original's summary may hold at the ratio of a model that was never measured. Workbench default.
PACKET_CHARS = 4_096


class TooLarge(PolicyError):
    """What is always sent is larger than a prompt may be."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A request without its prefix.

    Parameters
    ----------
    plan : Plan
        What became of each closed turn.
    packet : str
        The text that stands for the turns without a card; empty if there is none.
    before, after : int
        Estimated tokens of everything, and of what is sent, the prefix included.
    """

    messages: tuple[Message, ...]
    plan: Plan
    packet: str
    before: int
    after: int


def assemble(
    profile: Capacity,
    prompt: str,
    tools: Sequence[Tool],
    turns: Sequence[Sequence[Message]],
    *,
    opening: bool = False,
    tail: str = "",
    ranking: Literal["recency", "relevance"] = "recency",
    packet_chars: int = PACKET_CHARS,
) -> Assembled:
    """Assemble the request of the last turn.

    Parameters
    ----------
    turns : sequence of sequences of Message
        Oldest first; the last is the current one.
    opening : bool
        Whether the first turn stands before any request.
    packet_chars : int
        Most characters of the packet, which is a transcript that is cut.

    Raises
    ------
    TooLarge
        Prefix, tail and current turn are above the prompt ceiling.
    """
    if not turns:
        turns, opening = [[]], True
    *closed, current = turns
    if opening and not closed:
        tail = ""  # there is no directive
    prefix = profile.estimate_tokens(prefix_chars(prompt, tools))
    tail_tokens = profile.estimate_tokens(utf8_len(tail))
    sizes = [sum(profile.estimate_tokens(message_chars(message)) for message in turn) for turn in turns]
    least = prefix + tail_tokens + sizes[-1]
    if least > profile.prompt_ceiling:
        raise TooLarge(f"{least} > {profile.prompt_ceiling}")

    cards = [card(turn, request=not (opening and at == 0)) for at, turn in enumerate(closed)]
    costs = [Turn(size, profile.estimate_tokens(utf8_len(text))) for size, text in zip(sizes, cards, strict=False)]
    scores = score(cards, current[0].text if current and not (opening and not closed) else "") if ranking == "relevance" else recency(len(closed))
    budget = profile.budget(prefix, tail_tokens, profile.turn_reserve(sizes[-1]))
    planned = plan(costs, scores, budget, packet=profile.estimate_tokens(packet_chars), skip=ranking == "relevance")

    packed = [message for turn, fidelity in zip(closed, planned.fidelity, strict=True) if fidelity == "packet" for message in turn]
    packet = cut_packet(profile, render_transcript(packed), packet_chars, budget - planned.spent)
    sent = [Message("user", (Text(packet),))] if packet else []
    for turn, text, fidelity in zip(closed, cards, planned.fidelity, strict=True):
        if fidelity != "packet":
            sent += turn if fidelity == "full" else [Message("user", (Text(text),))]
    messages = attach_tail([*sent, *current], tail, len(sent))
    after = least + planned.spent + profile.estimate_tokens(utf8_len(packet))
    return Assembled(tuple(messages), planned, packet, prefix + sum(sizes), after)


def cut_packet(profile: Capacity, transcript: str, most_chars: int, room: int) -> str:
    """The longest beginning of a transcript that a packet may hold; nothing if there is no room to say anything."""
    text = transcript[:most_chars]
    least = min(LEAST_PACKET_BYTES, most_chars)
    if profile.estimate_tokens(least) > room:
        return ""
    while profile.estimate_tokens(utf8_len(text)) > room:
        text = text[:-1]
    return text
