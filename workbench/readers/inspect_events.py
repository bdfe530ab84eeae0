"""Events of an Inspect sample: which requests there were, what each was sent, and what compactions did.

A sample lists the messages at its end. Its events hold every request with its whole input (repeated in each, or as places in a pool), in spans that say
which agent or scorer made it. Here the requests are sorted into lanes, one for each agent, branch or scorer, and every message is built once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from ..model import COMPACT_SUMMARY, MAIN, Compaction, Prefix
from .build import Builder
from .fields import epoch_ms, listing, mapping, string, tool_specs
from .inspect_messages import Chat, usage_of
from .usage import tokens

_MOST_LEVELS = 20
#: Messages in all recorded contexts together; beyond it contexts are unknown, for a small file can name a large pool endlessly.
_MOST_CONTEXT = 3_000_000
#: Of an answer so much is looked for in the request after it.
_MOST_LINE = 200


@dataclass(slots=True)
class Lane:
    """The requests of one agent, branch or scorer: what will be one thread."""

    name: str
    kind: Literal["main", "subagent", "branch"] = "subagent"
    parent: Lane | None = None
    spawned_by: str = ""
    scorer: bool = False
    #: Its messages stand in the sample's list, so it is a part of the main thread.
    main: bool = False
    thread: str = ""
    #: It has requests of its own; a lane without any is no thread.
    used: bool = False
    known: dict[Hashable, int] = field(default_factory=dict)
    last: int = -1
    prefix: Prefix | None = None
    #: The place of a compaction whose outcome no request has shown yet, and the request that made its summary.
    open: int | None = None
    made: int | None = None
    side: Lane | None = None

    def within(self, other: Lane) -> bool:
        """Say whether it is another lane, or has it above it."""
        lane: Lane | None = self
        while lane is not None and lane is not other:
            lane = lane.parent
        return lane is not None

    def find(self, key: Hashable) -> int | None:
        """Index of a message; a branch goes on from those of its parent."""
        lane: Lane | None = self
        while lane is not None:
            if key in lane.known:
                return lane.known[key]
            lane = lane.parent if lane.kind == "branch" else None
        return None


@dataclass(slots=True)
class _Item:
    """A request or a compaction, in order."""

    number: int
    event: dict[str, Any]
    lane: Lane
    input: list[Any] = field(default_factory=list)
    keys: list[Hashable] = field(default_factory=list)
    output: dict[str, Any] | None = None
    key: Hashable = None
    following: _Item | None = None
    compacts: bool = False


@dataclass(slots=True)
class Events:
    """Reads the events of a sample, and the messages that it lists, into a `Builder`.

    Parameters
    ----------
    final : list
        The messages that the sample lists: its records. Empty for events alone, whose records are the events.
    pool : list
        Messages that inputs name by their place.
    """

    builder: Builder
    chat: Chat
    final: list[Any]
    pool: list[Any]
    model: str = ""
    main: Lane = field(default_factory=lambda: Lane("", "main", main=True, thread=MAIN))
    lanes: dict[Hashable, Lane] = field(default_factory=dict)
    _items: list[_Item] = field(default_factory=list)
    _spans: dict[str, dict[str, Any]] = field(default_factory=dict)
    _steps: list[str] = field(default_factory=list)
    _keys: list[Hashable] = field(default_factory=list)
    _places: dict[Hashable, int] = field(default_factory=dict)
    _outputs: set[Hashable] = field(default_factory=set)
    _at: int = 0
    _context: int = 0

    def read(self, events: list[Any]) -> None:
        self._keys = self.chat.keys(self.final)
        self._places = {key: place for place, key in enumerate(self._keys)}
        self._walk(events, None, 0, 0)
        self._choose()
        for item in self._items:
            if item.event.get("event") == "compaction":
                self._compaction(item)
            else:
                self._request(item)
        self._flush(len(self.final))

    # -- sorting requests into lanes

    def _walk(self, events: list[Any], within: Lane | None, number: int, level: int) -> None:
        for place, event in enumerate(events, 1):
            record = number or place
            if not isinstance(event, dict):
                if not self.final:
                    self.builder.skip(record, "event", f"event {place}: not an object")
                continue
            kind, id_ = string(event.get("event")), string(event.get("id"))
            if not self.final:
                self.builder.account(record, "metadata")
                if not kind:
                    self.builder.unknown(record, "without event")
            if kind == "span_begin":
                self._spans[id_] = event
            elif kind == "step":
                if event.get("action") == "begin":
                    self._steps.append(string(event.get("type")))
                elif self._steps:
                    self._steps.pop()
            elif kind == "tool":
                span, nested = string(event.get("agent_span_id")), listing(event.get("events"))
                if span and span not in self.lanes:
                    self.lanes[span] = Lane(string(event.get("agent"), event.get("function")) or span, spawned_by=id_)
                if any(mapping(inner).get("event") in ("model", "tool", "compaction") for inner in nested):
                    if level >= _MOST_LEVELS:
                        self.builder.report(None, "nesting", f"agents nested deeper than {_MOST_LEVELS}; the rest is left out")
                        continue
                    self._walk(nested, self._nested(event, within), record, level + 1)
            elif kind in ("model", "compaction"):
                self._items.append(self._item(record, event, within or self._lane(string(event.get("span_id")))))

    def _nested(self, event: dict[str, Any], within: Lane | None) -> Lane:
        """The lane of the events inside a tool call: old logs hold an agent that runs as a tool so."""
        name = string(event.get("agent"), event.get("function")) or "agent"
        made = Lane(name, parent=within or self._lane(string(event.get("span_id"))), spawned_by=string(event.get("id")))
        self.lanes[len(self.lanes), name] = made
        return made

    def _lane(self, span: str, level: int = 0) -> Lane:
        """The lane of an event: that of the innermost span about it that is an agent, a branch or a scorer."""
        seen: set[str] = set()
        while span in self._spans and span not in seen and level <= _MOST_LEVELS:
            seen.add(span)
            about = self._spans[span]
            kind = string(about.get("type"))
            if kind in ("agent", "branch", "scorer", "scorers"):
                return self._known_lane(span, about, kind, level)
            span = string(about.get("parent_id"))
        if "scorer" in self._steps:
            return self.lanes.setdefault("scorer", Lane("scorer", scorer=True, parent=self.main))
        return self.lanes.setdefault("", Lane(""))

    def _known_lane(self, span: str, about: dict[str, Any], kind: str, level: int) -> Lane:
        lane = self.lanes.get(span)
        if lane is None:
            lane = self.lanes[span] = Lane(string(about.get("name")) or span)
        if lane.parent is None:
            lane.kind, lane.scorer = "branch" if kind == "branch" else "subagent", kind.startswith("scorer")
            lane.parent = self.main  # for spans that name each other as parents
            outer = self._lane(string(about.get("parent_id")), level + 1)
            lane.scorer = lane.scorer or outer.scorer
            if not outer.within(lane):
                lane.parent = outer
        return lane

    def _item(self, number: int, event: dict[str, Any], lane: Lane) -> _Item:
        item = _Item(number, event, lane)
        if event.get("event") == "compaction":
            return item
        item.input = [*self._input(event)]
        item.keys = self.chat.keys(item.input)
        message = mapping(next(iter(listing(mapping(event.get("output")).get("choices"))), None)).get("message")
        if isinstance(message, dict):
            item.output = message
            base = self.chat.base(message)
            item.key = (base, sum(key[0] == base for key in item.keys if isinstance(key, tuple)))
        return item

    def _input(self, event: dict[str, Any]) -> Iterator[Any]:
        """The messages of a request: as they stand there, and those of the pool that it names by ranges."""
        yield from listing(event.get("input"))
        for span in listing(event.get("input_refs")):
            first, end = (tokens(span[0]), tokens(span[1])) if isinstance(span, list) and len(span) == 2 else (None, None)
            if first is None or end is None or self._context > _MOST_CONTEXT:
                continue
            self._context += max(min(end, len(self.pool)) - first, 0)
            yield from islice(self.pool, first, end)

    def _choose(self) -> None:
        """Say which lanes are the main thread, and link each request to the next of its lane."""
        models = [item for item in self._items if item.event.get("event") == "model"]
        for item in models:
            if item.key in self._places and not item.lane.scorer:
                item.lane.main = True
        if not self.final and models:
            next((item.lane for item in models if not item.lane.scorer), models[0].lane).main = True
        for lane in self.lanes.values():
            if lane.parent is not None and lane.parent.main:
                lane.parent = self.main
        latest: dict[int, _Item] = {}
        for item in self._items:
            if item.lane.main:
                item.lane = self.main
            item.lane.used = True
            if item.event.get("event") == "compaction":
                if id(item.lane) in latest:
                    latest[id(item.lane)].compacts = True
                continue
            if id(item.lane) in latest:
                latest[id(item.lane)].following = item
            latest[id(item.lane)] = item
            if item.lane is self.main:
                self._outputs.add(item.key)

    def _goes_on(self, item: _Item) -> bool:
        """Say whether a request's answer became a part of its lane's conversation."""
        if item.output is None or item.key in self._places:
            return True
        if item.following is not None:
            return item.key in item.following.keys or not self.final
        return not item.lane.known or any(item.lane.find(key) is not None for key in item.keys)

    def _summarises(self, item: _Item) -> bool:
        """Say whether the last request before a compaction asked for its summary: what it answered stands in the next request."""
        if item.following is None or item.output is None:
            return True
        if item.output.get("tool_calls"):
            return False
        said = max((line.strip() for line in self._words(item.output).splitlines()), key=len, default="")[:_MOST_LINE]
        users = (message for message in item.following.input if isinstance(message, dict) and message.get("role") == "user")
        whole = re.compile(rf"(?<!\w){re.escape(said)}(?!\w)" if len(said) < _MOST_LINE else re.escape(said))
        return not said or any(whole.search(self._words(message)) for message in users)

    def _words(self, message: dict[str, Any]) -> str:
        """The text of a message, without its reasoning."""
        content = message.get("content")
        if not isinstance(content, list):
            return self.chat.text(content)
        return "\n".join(self.chat.text(part.get("text")) for part in content if isinstance(part, dict))

    # -- building

    def _thread(self, lane: Lane) -> str:
        if not lane.thread:
            kind: Literal["subagent", "branch"] = "branch" if lane.kind == "branch" else "subagent"
            parent = lane.parent or self.main
            while parent.parent is not None and not parent.used:
                parent = parent.parent
            above = MAIN if parent.main or not parent.used else self._thread(parent)
            lane.thread = self.builder.new_thread(lane.name or "other", kind, parent=above, spawned_by=lane.spawned_by or None)
        return lane.thread

    def _raw(self, number: int) -> int:
        """An event's number: beside the messages that are records, those of events go on where the list ends."""
        return len(self.final) + number

    def _request(self, item: _Item) -> None:
        builder, event, lane = self.builder, item.event, item.lane
        goes_on = self._goes_on(item)
        summarises = not goes_on and item.compacts and self._summarises(item)
        replaced = item.compacts and any(lane.find(key) is not None for key in item.keys)  # the compaction left nothing of its answer
        if not goes_on and not summarises and not replaced:
            if lane.side is None:
                lane.side = Lane(f"{lane.name or 'main'} aside", parent=lane)
            lane = lane.side
        thread = self._thread(lane)
        sent = [*zip(item.keys, item.input, strict=True)]
        if summarises:
            sent = sent[:-1]  # the last message is the request for a summary
        context = [index for key, message in sent if (index := self._place(lane, key, message, item.number)) is not None]
        if not summarises:
            self._close(lane, context, sent)
        output = mapping(event.get("output"))
        usage, why = usage_of(output.get("usage"))
        if event.get("cache") == "read":
            usage = None  # Inspect had the answer itself and sent nothing
        if why:
            builder.report(self._raw(item.number), "usage", f"event {item.number}: {why}")
        if event.get("error"):
            builder.report(self._raw(item.number), "error", f"event {item.number}: the request failed")
        builder.prefix = lane.prefix
        if not summarises and item.input:
            told = [self.chat.text(message.get("content")) for message in self._leading(item.input)]
            self._prefix(lane, told, tool_specs(event.get("tools")), item.number)
        call = builder.call(
            string(mapping(mapping(event.get("call")).get("response")).get("id")),
            thread=thread,
            model=string(output.get("model"), event.get("model"), self.model) or None,
            usage=usage,
            stop_reason=string(mapping(next(iter(listing(output.get("choices"))), None)).get("stop_reason")) or None,
            ts=epoch_ms(event.get("timestamp")),
            context=tuple(context) if item.input and self._context <= _MOST_CONTEXT else None,
            kind="compaction" if summarises else "response",
        )
        self._context += len(context)
        if not self.final:
            builder.account(item.number, "calls")
        if summarises:
            lane.made = call.index
            return
        if item.output is not None:
            self._answer(lane, item, call.index, call.ts)

    def _leading(self, messages: list[Any]) -> Iterator[dict[str, Any]]:
        for message in messages:
            if not isinstance(message, dict) or message.get("role") != "system":
                return
            yield message

    def _prefix(self, lane: Lane, told: list[str], tools: list[Any], number: int) -> None:
        builder = self.builder
        if lane is self.main:
            names = {spec.name for spec in builder.tools}
            builder.tools += [spec for spec in tools if spec.name not in names]
        builder.request_prefix(told, tools, self._raw(number))
        lane.prefix = builder.prefix

    def _answer(self, lane: Lane, item: _Item, call: int, ts: int | None) -> None:
        """Put the answer into the thread, or the call on the message if the sample's list had it already."""
        assert item.output is not None
        index = lane.find(item.key)
        if index is None:
            index = self._place(lane, item.key, {**item.output, "role": "assistant"}, item.number, call)
        if index is None:
            return
        message = self.builder.messages[index]
        if message.call is None:
            message.call = call
            self.builder.calls[call].produced += (index,)
        if message.ts is None:
            message.ts = ts

    def _place(self, lane: Lane, key: Hashable, message: Any, number: int, call: int | None = None) -> int | None:
        """Index of a message in its lane; it is built if it is not there yet."""
        index = lane.find(key)
        if index is not None:
            return index
        if lane is self.main and key in self._places:
            self._flush(self._places[key] + 1, key)
            return lane.find(key)
        return self._add(lane, key, message, self._raw(number), call)

    def _add(self, lane: Lane, key: Hashable, message: Any, raw: int, call: int | None = None) -> int | None:
        role = self.chat.role(message) if isinstance(message, dict) else None
        if role is None:
            self.builder.skip(raw, "message", f"record {raw}: not a message with a role that is known")
            return None
        draft = self.builder.message(
            role,
            self.chat.parts(message, role),
            raw,
            id=string(message.get("id")),
            thread=self._thread(lane),
            call=call,
            flags=self.chat.flags(message),
        )
        lane.known[key] = lane.last = draft.index
        return draft.index

    def _flush(self, end: int, own: Hashable = None) -> None:
        """Build the messages that the sample lists up to a place. A response that no event tells of has a call of which nothing is known."""
        while self._at < end:
            message, key, record = self.final[self._at], self._keys[self._at], self._at + 1
            self._at += 1
            if message is None and record in self.builder.document.skipped:
                continue
            call = None
            if isinstance(message, dict) and message.get("role") == "assistant" and message.get("source") != "input" and key not in self._outputs:
                call = self.builder.call(thread=MAIN, model=string(message.get("model"), self.model) or None).index
            self._add(self.main, key, message, record, call)

    # -- compaction

    def _compaction(self, item: _Item) -> None:
        event, lane, builder = item.event, item.lane, self.builder
        kind = string(event.get("type"))
        found = Compaction(
            lane.last,
            kind if kind in ("summary", "edit", "trim") else "summary",
            None,
            tokens(event.get("tokens_before")),
            tokens(event.get("tokens_after")),
            thread=self._thread(lane),
            call=lane.made,
            raw=(self._raw(item.number),),
        )
        builder.compactions.append(found)
        lane.open, lane.made = len(builder.compactions) - 1, None
        if not self.final:
            builder.account(item.number, "compactions", self._thread(lane))

    def _close(self, lane: Lane, context: list[int], sent: list[tuple[Hashable, Any]]) -> None:
        """The first request after a compaction shows what it left: a new message of a user is the summary, the rest was kept."""
        if lane.open is None:
            return
        at, lane.open = lane.open, None
        held = self.builder.compactions[at]
        summary = None
        if held.kind == "summary":
            marked = {lane.find(key) for key, message in sent if mapping(mapping(message).get("metadata")).get("summary") is True}
            fresh = [index for index in context if index > held.after and self.builder.messages[index].role != "system"]
            summary = next((index for index in fresh if index in marked), next((index for index in fresh if self.builder.messages[index].role == "user"), None))
            if summary is not None:
                self.builder.messages[summary].flags |= {COMPACT_SUMMARY}
        self.builder.compactions[at] = replace(held, summary=summary, kept=tuple(index for index in context if index <= held.after))
