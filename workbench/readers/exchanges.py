"""Request/response pairs: what a proxy or a test recorder saves of a provider's HTTP traffic.

Each request of a conversation repeats the history, so a file of pairs is quadratic. Here the pairs are told apart into
runs, and each request is told apart into what it repeats and what is new: the readers then build every message once
and know the exact context of every call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .base import Match
from .jsontext import NotJson, parse
from .source import Document

_MOST_EVENTS = 1_000_000
_LOOK = 50  # pairs that detection looks at


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what came back.

    Parameters
    ----------
    number : int
        The record's number, 1-based.
    request : dict
        The body. Headers are dropped: they may hold secrets.
    response : dict or None
        The body; None if there is none or it is a stream.
    events : tuple of dict
        The data of each event of a streamed body, in order.
    """

    number: int
    request: dict[str, Any]
    response: dict[str, Any] | None = None
    events: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A pair's place in a run.

    Parameters
    ----------
    repeats : int
        So many leading items of the request are the history of the run, or system text that stands in its place.
    context : tuple of int
        Which items of the run these are: places in the list of all items of the run so far, counted over the new
        items of each request and the items of each answer, in order. With a named previous response, all so far.
    """

    exchange: Exchange
    repeats: int
    context: tuple[int, ...]


def pairs(document: Document, most: int | None = None) -> list[Exchange]:
    """The pairs of a document: one object, an array or lines of ``{"request": …, "response": …}``.

    Parameters
    ----------
    most : int, optional
        So many are enough.

    Returns
    -------
    list of Exchange
        Empty if the document is not of pairs.
    """
    if isinstance(document.value, dict):
        return [exchange] if (exchange := _exchange(1, document.value)) is not None else []
    head = document.head(20)
    if not head or sum("request" in value for value in head) * 2 < len(head):
        return []
    found = (exchange for number, value in document.objects() if (exchange := _exchange(number, value)) is not None)
    return list(islice(found, most))


def match_pairs(document: Document, is_own: Callable[[Exchange], bool], api: str) -> tuple[bool, Match | None]:
    """Say whether a document is of pairs, and if so whether the first of them are mostly those of one API."""
    first = pairs(document, _LOOK)
    own = sum(map(is_own, first)) * 2 >= len(first) > 0
    return bool(first), Match(0.95, (f"request/response pairs of {api}",)) if own else None


def _exchange(number: int, value: dict[str, Any]) -> Exchange | None:
    request = _body(value.get("request"))
    if request is None:
        return None
    answer = value.get("response")
    response = _body(answer)
    if response is not None:
        return Exchange(number, request, response)
    if isinstance(answer, dict):
        answer = answer.get("body")
    if isinstance(answer, list):
        return Exchange(number, request, None, tuple(item for item in answer if isinstance(item, dict)))
    return Exchange(number, request, None, events(answer) if isinstance(answer, str) else ())


def _body(value: Any) -> dict[str, Any] | None:
    """The JSON body of a request or response, which may be wrapped as ``{"headers", "body"}`` or written as text."""
    if isinstance(value, dict) and "body" in value and not ({"messages", "input", "content", "output", "choices"} & value.keys()):
        value = value["body"]
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = parse(value.encode("utf-8", "surrogatepass")).value
        except NotJson:
            return None
    return value if isinstance(value, dict) else None


def events(body: str) -> tuple[dict[str, Any], ...]:
    """The data of every server-sent event in a streamed body; what is not a JSON object is left out.

    Examples
    --------
    >>> events('event: x\\ndata: {"type":"x"}\\n\\ndata: [DONE]\\n\\n')
    ({'type': 'x'},)
    """
    found: list[dict[str, Any]] = []
    data: list[str] = []
    # Lines are cut at line feeds only: U+2028 is content.
    for line in [*body.replace("\r\n", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            text, data = "\n".join(data), []
            if text[:1] == "{" and len(found) < _MOST_EVENTS:
                try:
                    value = parse(text.encode("utf-8", "surrogatepass")).value
                except NotJson:
                    continue
                if isinstance(value, dict):
                    found.append(value)
    return tuple(found)


@dataclass(slots=True)
class _Run:
    steps: list[Step] = field(default_factory=list)
    keys: list[Hashable] = field(default_factory=list)
    response: Hashable = None


def runs(
    exchanges: Sequence[Exchange],
    *,
    sent: Callable[[Exchange], Sequence[Hashable]],
    got: Callable[[Exchange], Sequence[Hashable]],
    id_of: Callable[[Exchange], Hashable] = lambda _: None,
    previous_of: Callable[[Exchange], Hashable] = lambda _: None,
    lead_of: Callable[[Exchange], int] = lambda _: 0,
) -> list[list[Step]]:
    """Tell pairs apart into conversations.

    A pair goes on with a run if it names the run's newest response, or if its request holds that response's items and
    all that stands before them there is history of the run in the same order: the whole of it, or what a client left
    of it. Leading system text need not be the run's: a prompt with the time of day in it is another one in every request,
    and yet it is one conversation. Any other pair starts a new run.

    Parameters
    ----------
    sent, got : callable
        A key for each item of a request's history and of an answer. Items with equal keys are the same item, so a key
        must leave out what a client may drop when it sends an answer back (ids, citations, reasoning).
    id_of, previous_of : callable
        Id of a pair's response, and of the response that its request builds on; None if there is none.
    lead_of : callable
        How many of the first items of a request are system text.
    """
    found: list[_Run] = []
    ends: dict[Hashable, list[_Run]] = {}  # runs by the key of their newest item
    responses: dict[Hashable, _Run] = {}
    for exchange in exchanges:
        keys, previous = list(sent(exchange)), previous_of(exchange)
        if previous is None:
            run, step = _find(exchange, keys, ends, lead_of(exchange))
        else:
            run = responses.get(previous)
            step = None if run is None or run.response != previous else Step(exchange, 0, tuple(range(len(run.keys))))
        if run is None or step is None:
            run, step = _Run(), Step(exchange, 0, ())
            found.append(run)
        run.steps.append(step)
        run.keys += keys[step.repeats :]
        run.keys += got(exchange)
        if run.keys:
            ends.setdefault(run.keys[-1], []).append(run)
        run.response = id_of(exchange)
        if run.response is not None:
            responses[run.response] = run
    return [run.steps for run in found]


def _find(exchange: Exchange, keys: list[Hashable], ends: dict[Hashable, list[_Run]], lead: int) -> tuple[_Run | None, Step | None]:
    """The run that the request goes on with: the latest of its items that ends a run decides, the newest run first."""
    for strict in (True, False) if lead else (True,):
        for end in range(len(keys) - 1, -1 if strict else lead - 1, -1):
            for run in reversed(ends.get(keys[end], ())):
                if run.keys[-1] == keys[end] and (step := _continues(run.keys, exchange, keys[: end + 1], 0 if strict else lead)) is not None:
                    return run, step
    return None, None


def _continues(history: list[Hashable], exchange: Exchange, repeated: list[Hashable], lead: int) -> Step | None:
    """Match the head of a request against the end of a run, backwards. Of its first `lead` items each may be missing there."""
    if repeated == history:  # by far the most common: everything is sent again
        return Step(exchange, len(repeated), tuple(range(len(history))))
    places: list[int] = []
    end = len(history)
    for place in range(len(repeated) - 1, -1, -1):
        at = end - 1
        while at >= 0 and history[at] != repeated[place]:
            at -= 1
        if at >= 0:
            places.append(at)
            end = at
        elif place >= lead:
            return None
    return Step(exchange, len(repeated), tuple(reversed(places)))


def leading(items: Sequence[Any], role_of: Callable[[dict[str, Any]], str]) -> int:
    """How many items at the head of a request's history are system or developer text.

    Examples
    --------
    >>> leading([{"role": "developer"}, {"role": "system"}, {"role": "user"}], lambda item: item["role"])
    2
    """
    return next((at for at, item in enumerate(items) if not isinstance(item, dict) or role_of(item) not in ("system", "developer")), len(items))


def digest(value: Any) -> str:
    """A key for any JSON value: equal for equal values, whatever the order of the keys."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    except RecursionError:
        return "(nested too deeply)"
