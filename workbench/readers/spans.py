"""Spans of traces: who asked whom. Every request repeats the history, so a trace is quadratic, as a file of pairs is.

The requests of all spans are told apart into conversations; the conversations of one trace are one transcript: its main
thread is the one with the most requests that no tool started, all others are subagents' threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..model import ToolResult, ToolSpec, Usage
from .exchanges import Exchange, Step, runs
from .span_items import Item

Kind = Literal["llm", "agent", "tool", ""]
_MOST_LEVELS = 500
_MOST_LENGTHS = 100


@dataclass(slots=True)
class Ask:
    """One request to a model, as its span tells it.

    Parameters
    ----------
    sent, got : list of Item
        The messages that went in and that came out.
    tools : list of ToolSpec
        What was offered; `system` is text that stands outside the messages.
    fault : str or None
        What was wrong with its token counts.
    """

    sent: list[Item] = field(default_factory=list)
    got: list[Item] = field(default_factory=list)
    system: list[str] = field(default_factory=list)
    tools: list[ToolSpec] = field(default_factory=list)
    model: str = ""
    usage: Usage | None = None
    fault: str | None = None
    id: str = ""
    stop: str = ""


@dataclass(slots=True)
class Span:
    """One span. `number` is its record's.

    Parameters
    ----------
    result : ToolResult or None
        What a tool's span says that the tool gave back.
    start, end : int or None
        UTC epoch milliseconds.
    agent : str
        Name of the agent, where the span says it.
    """

    number: int
    id: str = ""
    parent: str = ""
    trace: str = ""
    name: str = ""
    kind: Kind = ""
    start: int | None = None
    end: int | None = None
    agent: str = ""
    session: str = ""
    ask: Ask | None = None
    result: ToolResult | None = None
    failed: bool = False


@dataclass(slots=True)
class Forest:
    """All spans of a document, by id."""

    spans: Sequence[Span]
    by_id: dict[tuple[str, str], Span] = field(init=False)

    def __post_init__(self) -> None:
        self.by_id = {(span.trace, span.id): span for span in self.spans if span.id}

    def above(self, span: Span) -> list[Span]:
        """The spans that a span stands in, the nearest first."""
        found: list[Span] = []
        seen = {span.id}
        at = self.by_id.get((span.trace, span.parent))
        while at is not None and at.id not in seen and len(found) < _MOST_LEVELS:
            found.append(at)
            seen.add(at.id)
            at = self.by_id.get((at.trace, at.parent))
        return [] if at is not None and at.id in seen else found  # spans in a ring stand in nothing


@dataclass(slots=True)
class Turn:
    """A request's place in a conversation. `step` counts the items of its own run."""

    span: Span
    ask: Ask
    step: Step
    run: int


@dataclass(slots=True)
class Talk:
    """One conversation: runs of requests of which each repeats the one before, and what goes on with them otherwise."""

    turns: list[Turn] = field(default_factory=list)
    above: list[Span] = field(default_factory=list)

    @property
    def tool(self) -> Span | None:
        """The tool that started it."""
        return next((span for span in self.above if span.kind == "tool"), None)

    @property
    def agent(self) -> str:
        """The name of the agent that held it; ``""`` if no span says one."""
        spans = (self.turns[0].span, *self.above)
        return next((span.agent for span in spans if span.agent), "") or next((span.name for span in self.above if span.kind == "agent"), "")

    @property
    def name(self) -> str:
        """What to call its thread."""
        return self.agent[:60] or "subagent"


def _asks(forest: Forest) -> list[Span]:
    """The spans that are requests: of nested ones the innermost, whose messages the outer one may know better.

    Agents' spans count in traces in which there are no requests.
    """
    inside: dict[int, list[Span]] = {}
    asking: set[str] = set()
    for span in forest.spans:
        if span.kind == "llm" and span.ask is not None:
            asking.add(span.trace)
            outer = next((outer for outer in forest.above(span) if outer.kind == "llm" and outer.ask is not None), None)
            if outer is not None:
                inside.setdefault(id(outer), []).append(span)
    dropped: set[int] = set()
    for outer in reversed(forest.spans):  # wrappers: of one request, which they may say better, or of several, whose sum they are
        held = [(span, span.ask) for span in inside.get(id(outer), []) if span.ask is not None]
        if not held or outer.ask is None:
            continue
        if len(held) > 1 and not any(ask.sent or ask.got for _, ask in held):  # only the wrapper says what was said
            outer.ask.usage = Usage.sum([ask.usage for _, ask in held]) if any(ask.usage for _, ask in held) else outer.ask.usage
            dropped.update(id(span) for span, _ in held)
            continue
        dropped.add(id(outer))
        if len(held) == 1:
            _merge(held[0][1], outer.ask)
    found = []
    for span in forest.spans:
        if span.ask is None or id(span) in dropped:
            continue
        if span.kind == "llm" or (span.trace not in asking and bool(span.ask.sent or span.ask.got)):
            found.append(span)
    return sorted(found, key=_order)


def _order(span: Span) -> tuple[int, int]:
    return (span.start if span.start is not None else 0, span.number)


def _merge(inner: Ask, outer: Ask) -> None:
    """Let a request have what its wrapper knows better. The tokens are the request's own."""
    if len(outer.sent) > len(inner.sent):
        inner.sent = outer.sent
    if sum(len(item.parts) for item in outer.got) >= sum(len(item.parts) for item in inner.got) and outer.got:
        inner.got = outer.got
    inner.system, inner.tools = inner.system or outer.system, inner.tools or outer.tools
    inner.usage = inner.usage if inner.usage is not None else outer.usage
    inner.model, inner.id, inner.stop = inner.model or outer.model, inner.id or outer.id, inner.stop or outer.stop


def _halves(asks: Sequence[Span]) -> list[Span]:
    """Instruments that write a span for each event of a request: join the answer to the request that waits for one."""
    found: list[Span] = []
    newest: dict[str, Ask] = {}  # by trace
    for span in asks:
        ask, before = span.ask, newest.get(span.trace)
        if ask is not None and not ask.sent and before is not None and before.sent:
            if ask.got and not before.got:
                before.got, before.stop = ask.got, before.stop or ask.stop
                before.usage = before.usage if before.usage is not None else ask.usage
                continue
            if not ask.got and ask.usage is None:
                continue
        found.append(span)
        if ask is not None and span.trace:
            newest[span.trace] = ask
    return found


def talks_of(forest: Forest) -> list[Talk]:
    """The conversations of all spans, by their beginnings."""
    spans = _halves(_asks(forest))
    asks = [span.ask for span in spans if span.ask is not None]
    for ask in asks:
        ask.got = [item for item in ask.got if item.parts] or ask.got[:1]
    keys = [([item.key() for item in ask.sent], [item.key() for item in ask.got]) for ask in asks]
    silent = {at for at, (sent, got) in enumerate(keys) if not sent and not got}
    exchanges = [Exchange(at, {}) for at in range(len(asks)) if at not in silent]
    found = runs(
        exchanges,
        sent=lambda exchange: keys[exchange.number][0],
        got=lambda exchange: keys[exchange.number][1],
        lead_of=lambda exchange: _lead(asks[exchange.number]),
    )
    talks: list[Talk] = []
    known = _Known()
    for number, steps in enumerate(found):
        first = steps[0].exchange.number
        talk = known.goes_on(spans[first].trace, asks[first], keys[first][0])
        if talk is None:
            talk = Talk(above=forest.above(spans[first]))
            talks.append(talk)
        for step in steps:
            span, ask = spans[step.exchange.number], asks[step.exchange.number]
            talk.turns.append(Turn(span, ask, step, number))
            known.add(talk, span.trace, ask, keys[first][0])
    quiet: dict[str, Talk] = {talk.turns[0].span.trace: talk for talk in reversed(talks)}
    for at in sorted(silent):  # nothing is known but that it was made, and perhaps what it cost
        if spans[at].trace not in quiet:
            talks.append(Talk(above=forest.above(spans[at])))
            quiet[spans[at].trace] = talks[-1]
        quiet[spans[at].trace].turns.append(Turn(spans[at], asks[at], Step(Exchange(at, {}), 0, ()), -1 - at))
    for talk in talks:
        talk.turns.sort(key=lambda turn: _order(turn.span))
    return sorted(talks, key=lambda talk: _order(talk.turns[0].span))


def _lead(ask: Ask) -> int:
    return next((at for at, item in enumerate(ask.sent) if item.role != "system"), len(ask.sent))


@dataclass(slots=True)
class _Known:
    """Marks by which a request is known to go on with a conversation of its trace although it does not repeat its newest answer.

    It sends the result of a call made there, or all of its first request and more: the instrument, or the server that
    keeps the history, left the rest out.
    """

    calls: dict[tuple[str, str], Talk] = field(default_factory=dict)
    firsts: dict[tuple[str, tuple[Hashable, ...]], Talk] = field(default_factory=dict)
    lengths: dict[str, set[int]] = field(default_factory=dict)

    def add(self, talk: Talk, trace: str, ask: Ask, first: Sequence[Hashable]) -> None:
        if not trace:
            return
        self.calls.update({(trace, id): talk for item in (*ask.sent, *ask.got) for id in item.call_ids})
        if len(self.lengths.setdefault(trace, set())) < _MOST_LENGTHS and any(item.role == "user" for item in ask.sent):
            self.firsts[trace, tuple(first)] = talk
            self.lengths[trace].add(len(first))

    def goes_on(self, trace: str, ask: Ask, keys: Sequence[Hashable]) -> Talk | None:
        for item in reversed(ask.sent):
            if (result := item.result) is not None and (talk := self.calls.get((trace, result.call_id))) is not None:
                return talk
        lengths = sorted((length for length in self.lengths.get(trace, ()) if 0 < length < len(keys)), reverse=True)
        return next((talk for length in lengths if (talk := self.firsts.get((trace, tuple(keys[:length])))) is not None), None)


def groups_of(talks: Sequence[Talk]) -> list[list[Talk]]:
    """Conversations by trace; a conversation that goes through several traces joins them."""
    group_of: dict[str, list[Talk]] = {}
    groups: list[list[Talk]] = []
    for talk in talks:
        traces = dict.fromkeys(turn.span.trace for turn in talk.turns if turn.span.trace)
        known = [*{id(group_of[trace]): group_of[trace] for trace in traces if trace in group_of}.values()]
        group = known[0] if known else []
        if not known:
            groups.append(group)
        for other in known[1:]:
            group += other
            other_traces = {turn.span.trace for talk_ in other for turn in talk_.turns if turn.span.trace}
            group_of.update(dict.fromkeys(other_traces, group))
            groups = [held for held in groups if held is not other]
        group.append(talk)
        group_of.update(dict.fromkeys(traces, group))
    return groups


def main_of(group: Sequence[Talk]) -> Talk:
    """The conversation that the others serve: the one with the most requests that no tool started, the earliest of them."""
    own = [talk for talk in group if talk.tool is None] or group
    return max(own, key=lambda talk: len(talk.turns))
