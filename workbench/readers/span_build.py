"""Builds transcripts out of the conversations of traces."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..model import MAIN, Compaction, Prefix, ToolCall, Transcript, join_text
from .build import Builder, DraftMessage
from .source import Document
from .span_items import Item, paired
from .spans import Forest, Span, Talk, Turn, groups_of, main_of, talks_of


def read_spans(document: Document, format: str, spans: Sequence[Span], *, total: int, titles: Mapping[str, str] | None = None) -> list[Transcript]:
    """One transcript per trace, or per group of traces that go on with each other.

    Parameters
    ----------
    total : int
        Records of the document.
    titles : mapping, optional
        Title by trace.
    """
    forest = Forest(spans)
    groups = groups_of(talks_of(forest))
    group_of = {id(turn.span): at for at, group in enumerate(groups) for talk in group for turn in talk.turns}
    of_trace = {turn.span.trace: at for at, group in enumerate(groups) for talk in group for turn in talk.turns}
    # A line may hold spans of several traces: the first of them counts it.
    owners: dict[int, int] = {}
    held: list[list[Span]] = [[] for _ in range(max(1, len(groups)))]
    for span in spans:
        at = group_of.get(id(span), of_trace.get(span.trace, 0))
        held[at].append(span)
        owners.setdefault(span.number, at)
    others = sum(at > 0 for at in owners.values())
    transcripts = []
    for at, group in enumerate(groups or [[]]):
        own = sum(owner == at for owner in owners.values()) if at else total - others
        builder = Builder(format, document, total=own)
        first = group[0].turns[0].span if group else None
        builder.id = name_of(first) if len(groups) > 1 and first is not None else ""
        builder.meta["title"] = next((title for span in held[at] if (title := (titles or {}).get(span.trace))), "")
        _Group(builder, forest, held[at]).read(group)
        builder.forget({number for number, owner in owners.items() if owner != at})
        transcripts.append(builder.build(shared=at > 0))
    return transcripts


def name_of(span: Span) -> str:
    """What to call the transcript that begins with a span."""
    return span.session or span.trace or span.id


@dataclass(slots=True)
class _Thread:
    """One conversation, being read."""

    id: str
    #: Messages of each item of each run, in the order of `runs`.
    places: dict[int, list[int | None]] = field(default_factory=dict)
    known: dict[Hashable, list[int]] = field(default_factory=dict)
    by_call: dict[str, int] = field(default_factory=dict)
    calls: dict[str, ToolCall] = field(default_factory=dict)  # those without a result
    prefix: Prefix | None = None
    messages: list[int] = field(default_factory=list)
    #: The assistant's message that the next of its items belongs to, and the request whose answer is not known yet.
    open: int | None = None
    waiting: int | None = None


@dataclass(slots=True)
class _Group:
    builder: Builder
    forest: Forest
    spans: Sequence[Span]

    def read(self, group: Sequence[Talk]) -> None:
        builder = self.builder
        for span in self.spans:
            builder.account(span.number, "metadata")
        if not group:
            return
        threads = self._threads(group)
        turns = [(turn, threads[id(talk)]) for talk in group for turn in talk.turns]
        for turn, thread in sorted(turns, key=lambda item: (item[0].span.start or 0, item[0].span.number)):
            builder.prefix = thread.prefix
            self._turn(turn, thread)
            thread.prefix = builder.prefix
        main = main_of(group).turns
        builder.meta["session"] = next((turn.span.session for turn in main if turn.span.session), "")
        builder.meta["agent"] = main_of(group).agent
        for span in self.spans:
            self._result(span, threads.values())

    def _threads(self, group: Sequence[Talk]) -> dict[int, _Thread]:
        """A thread for each conversation. What a tool started belongs to the conversation that called the tool."""
        main = main_of(group)
        threads = {id(main): _Thread(MAIN)}
        owner = {call_id: talk for talk in reversed(group) for turn in talk.turns for item in (*turn.ask.got, *turn.ask.sent) for call_id in item.call_ids}
        for talk in group:
            if talk is main:
                continue
            call_id = self._spawned_by(talk, group)
            parent = owner.get(call_id)
            above = threads[id(parent)].id if parent is not None and id(parent) in threads else MAIN
            threads[id(talk)] = _Thread(self.builder.new_thread(talk.name, "subagent", parent=above, spawned_by=call_id or None))
        return threads

    def _spawned_by(self, talk: Talk, group: Sequence[Talk]) -> str:
        tool, start = talk.tool, talk.turns[0].span.start or 0
        if tool is None:
            return ""
        if tool.result is not None and tool.result.call_id:
            return tool.result.call_id
        name = (tool.result.name if tool.result is not None else None) or tool.name
        before = [turn for other in group if other is not talk for turn in other.turns if (turn.span.start or 0) <= start]
        calls = [part for turn in before for item in turn.ask.got for part in item.parts if type(part) is ToolCall and part.name == name]
        return calls[-1].id if calls else ""

    def _turn(self, turn: Turn, thread: _Thread) -> None:
        builder, ask, span, number = self.builder, turn.ask, turn.span, turn.span.number
        lead = next((at for at, item in enumerate(ask.sent) if item.role != "system"), len(ask.sent))
        told = [*ask.system, *(text for item in ask.sent[:lead] if (text := join_text(item.parts)))]
        if ask.sent:
            builder.request_prefix(told, ask.tools, number)
        if thread.id == MAIN:
            builder.system += [] if builder.system else ask.system
            offered = {spec.name for spec in builder.tools}
            builder.tools += [spec for spec in ask.tools if spec.name not in offered]
        context = self._sent(turn, thread)
        moment = span.end if span.end is not None else span.start
        if ask.fault is not None:
            builder.report(number, "usage", f"record {number}: {ask.fault}")
        if span.failed:
            builder.report(number, "error", f"record {number}: the request ended with an error")
        call = builder.call(
            ask.id,
            thread=thread.id,
            model=ask.model or None,
            usage=ask.usage,
            stop_reason=ask.stop or None,
            ts=moment,
            context=context,
        )
        builder.account(number, "calls", thread.id)
        thread.waiting = call.index
        places = thread.places.setdefault(turn.run, [])
        thread.open = None
        last = max((at for at, item in enumerate(ask.got) if item.role != "assistant"), default=-1)
        for at, item in enumerate(ask.got):
            made = call.index
            if item.role == "assistant" and at < last and thread.open is None:  # an agent's span holds several answers, and the tokens of all
                made = builder.call(thread=thread.id, model=ask.model or None, ts=moment).index
            draft = self._add(item, thread, number, moment, made if item.role == "assistant" else None, id=ask.id if at > last else "")
            places.append(draft.index)
        if any(item.role == "assistant" for item in ask.got):
            thread.waiting = None

    def _sent(self, turn: Turn, thread: _Thread) -> tuple[int, ...] | None:
        """Add what is new in a request, and say which messages it sent; None if the instrument left some of them out."""
        ask, number = turn.ask, turn.span.number
        again = turn.run in thread.places
        places = thread.places.setdefault(turn.run, [])
        if again or not thread.messages:
            thread.open = None
            seen = [places[at] for at in turn.step.context if at < len(places)]
            added: list[int | None] = [self._add(item, thread, number, turn.span.start).index for item in ask.sent[turn.step.repeats :]]
        else:
            paired(ask.sent, thread.calls.values())
            taken: dict[Hashable, int] = {}
            seen, added = [], []
            before, thread.open = len(self.builder.messages) - 1, None
            for item in ask.sent:
                known = self._known(item, thread, taken)
                if known is not None:
                    thread.open = None
                added.append(self._add(item, thread, number, turn.span.start).index if known is None else known)
            self._compacted(turn, thread, added, before)
        places += added
        context = tuple(dict.fromkeys(at for at in (*seen, *added) if at is not None))
        return context if _whole(ask.sent) else None

    def _known(self, item: Item, thread: _Thread, taken: dict[Hashable, int]) -> int | None:
        """The message of the thread that a sent one repeats. An instrument may send the calls of one answer apart."""
        for id in item.call_ids:
            if id in thread.by_call:
                return thread.by_call[id]
        held, at = thread.known.get(item.key(), ()), taken.get(item.key(), 0)
        taken[item.key()] = at + 1
        return held[at] if at < len(held) else None

    def _compacted(self, turn: Turn, thread: _Thread, sent: Sequence[int | None], before: int) -> None:
        """See whether a request stands on less than was said before it, with new words in its place."""
        if not _whole(turn.ask.sent):
            return
        messages = self.builder.messages
        spoken = [at for at in thread.messages if at <= before]
        new = [at for at in sent if at is not None and at > before and messages[at].role != "system"]
        kept = [at for at in sent if at is not None and at <= before and messages[at].role != "system"]
        again = set(kept)
        dropped = [at for at in spoken if at not in again and messages[at].role != "system"]
        place = {at: place for place, at in enumerate(sent)}
        if not dropped or not new or not kept or place[new[0]] > place[kept[-1]] or min(dropped) > max(kept):
            return
        usage = next((call.usage for call in reversed(self.builder.calls) if call.thread == thread.id and call.usage is not None), None)
        total = None if usage is None else usage.total
        self.builder.compactions.append(Compaction(spoken[-1], "replace", None, total, None, new[0], tuple(kept), thread=thread.id, raw=(turn.span.number,)))

    def _add(self, item: Item, thread: _Thread, number: int, ts: int | None, call: int | None = None, *, id: str = "") -> DraftMessage:
        builder = self.builder
        key = item.key()
        paired([item], thread.calls.values())
        if item.role == "assistant" and thread.open is not None:  # what follows of the same response
            draft = builder.messages[thread.open]
            builder.extend(draft, item.parts, number)
        else:
            if item.role == "assistant" and call is None:
                call, thread.waiting = thread.waiting if thread.waiting is not None else builder.call(thread=thread.id).index, None
            draft = builder.message(item.role, [*item.parts], number, id=id, thread=thread.id, ts=ts, call=call)
            thread.messages.append(draft.index)
        thread.open = draft.index if item.role == "assistant" else None
        thread.known.setdefault(key, []).append(draft.index)
        thread.by_call.update(dict.fromkeys(item.call_ids, draft.index))
        if item.role == "assistant":
            thread.calls.update({part.id: part for part in item.parts if type(part) is ToolCall and part.id and not part.server_side})
        elif (result := item.result) is not None:
            thread.calls.pop(result.call_id, None)
        return draft

    def _result(self, span: Span, threads: Iterable[_Thread]) -> None:
        """Add what a tool gave back if no later request says it."""
        result = span.result
        if span.kind != "tool" or result is None:
            return
        for thread in threads:
            if result.call_id:
                call = thread.calls.get(result.call_id)
            else:  # without an id, the only open call of its name
                named_so = [held for held in thread.calls.values() if held.name == (result.name or span.name)]
                call = named_so[0] if len(named_so) == 1 else None
            if call is not None:
                named = replace(result, call_id=call.id, name=call.name)
                self._add(Item("tool", [named]), thread, span.number, span.end)
                return


def _whole(sent: Sequence[Item]) -> bool:
    """Say whether a request shows all that the model saw: some instruments, and servers that keep the history, leave things out."""
    calls = {id for item in sent for id in item.call_ids}
    return any(item.role == "user" for item in sent) and all(result.call_id in calls for item in sent if (result := item.result) is not None)
