"""A policy asked again: about its own answer, about the same thing, and with more room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import WorkbenchError
from ..ledger import View, count
from ..model import MAIN, Source, Thread, Transcript
from ..policies.base import Policy, Request, Selection
from .cut import text_of
from .index import index_of
from .measure import Row

_SHOWN = 20  # messages that a larger window keeps less of, by name


@dataclass(frozen=True, slots=True)
class Pass:
    """What a policy's own output still holds after so many passes of it.

    Parameters
    ----------
    number : int
        Passes so far; 0 is the history itself.
    tokens, messages : int
        Of what is sent.
    identifiers, instructions : int
        Of those of the history, how many are still in it.
    """

    number: int
    tokens: int
    messages: int
    identifiers: int
    instructions: int


def chain(policy: Policy, request: Request, passes: int = 3) -> tuple[Pass, ...]:
    """Apply a policy to its own output, and see what survives each pass.

    The output of one pass is the whole history of the next, a note being a message like any other. Passes end early
    where the policy has no answer.
    """
    view = request.view
    index = index_of(view.ledger)
    codes = frozenset(int(code) for row in view.indices.tolist() for code in index.of(row))
    orders = tuple(dict.fromkeys(text for row in view.indices.tolist() for text in index.orders.get(row, ())))
    found = [Pass(0, view.total, len(view.indices), len(codes), len(orders))]
    for number in range(1, passes + 1):
        try:
            selection = policy.select(request)
        except WorkbenchError:
            break
        texts = [text_of(message) for message in selection.messages]
        still = codes & {int(code) for text in texts for code in index.codes_in(text)}
        said = "\n".join(" ".join(text.casefold().split()) for text in texts)
        kept = sum(" ".join(order.casefold().split()) in said for order in orders)
        found.append(Pass(number, selection.after_tokens, len(selection.items), len(still), kept))
        request = replace(request, view=_view_of(selection), calls=(), pins=frozenset())
    index.reader.forget()
    return tuple(found)


def _view_of(selection: Selection) -> View:
    """A selection as a history of its own."""
    old = selection.request.view.ledger
    messages = tuple(replace(message, index=at, thread=MAIN, parent=None, call=None) for at, message in enumerate(selection.messages))
    inside = old.transcript
    own = selection.request.view.thread == MAIN
    transcript = Transcript(
        id=inside.id,
        source=Source(inside.source.format),
        messages=messages,
        tools=inside.tools if own else (),
        system=inside.system if own else (),
        threads=(Thread(MAIN),),
        meta=inside.meta,
    )
    return count(transcript, old.counter, framing=old.frame_rule).view()


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether a policy's answer depends on nothing but the question.

    Parameters
    ----------
    same : bool
        The same question twice has the same answer.
    settled : bool or None
        A second pass over its own output changes nothing; None if there was no answer.
    breaks : tuple of Row
        Messages that a smaller window sends and a larger one does not; `source` is the message, `text` names the windows.
    windows : tuple of int
        The windows that were tried, in tokens, ascending.
    """

    same: bool
    settled: bool | None
    breaks: tuple[Row, ...]
    windows: tuple[int, ...]

    @property
    def monotone(self) -> bool:
        """In none of the windows tried a larger one kept less."""
        return not self.breaks


def stability(policy: Policy, request: Request, windows: Sequence[int] | None = None) -> Stability:
    """Ask the same twice, ask about the answer, and ask with more and more room.

    Parameters
    ----------
    windows : sequence of int, optional
        Default: nine windows from half of the request's to twice of it.
    """
    window = request.budget.max_tokens
    tried = tuple(
        sorted({int(size) for size in windows} if windows is not None else {max(1, window * eighths // 8) for eighths in (4, 5, 6, 7, 8, 10, 12, 14, 16)})
    )
    first, second = _answer(policy, request), _answer(policy, request)
    if first is None or second is None:
        same, settled = first is second, None
    else:
        same = first.items == second.items and bool(np.array_equal(first.fate_codes, second.fate_codes))
        again = _answer(policy, replace(request, view=_view_of(first), calls=(), pins=frozenset()))
        settled = again is not None and again.counts["kept"] == len(again.fate_codes) == len(again.items)
    breaks: list[Row] = []
    smaller: tuple[int, frozenset[int]] | None = None
    for size in tried:
        answer = _answer(policy, replace(request, budget=replace(request.budget, max_tokens=size)))
        if answer is None:
            continue
        kept = frozenset(answer.indices)
        if smaller is not None and not smaller[1] <= kept:
            missing = sorted(smaller[1] - kept)[:_SHOWN]
            breaks += [Row("message", f"sent at {smaller[0]:,} tokens, not at {size:,}", index) for index in missing]
        smaller = size, kept
    return Stability(same, settled, tuple(breaks), tried)


def _answer(policy: Policy, request: Request) -> Selection | None:
    try:
        return policy.select(request)
    except WorkbenchError:
        return None
