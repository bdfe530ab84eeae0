"""The blocks of one request, in the order sent, and where its cache breakpoints stand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..ledger import KIND, View
from ..model import COMPACT_SUMMARY, MAIN, Message
from ..policies.base import Added, Edited, Item, Kept, Note, Selection
from ..systems import vak
from ..systems.mapping.common import tool_specs
from ..systems.mapping.vak import as_message, as_messages, as_tools
from ..systems.rustjson import utf8_len
from ..turns import starts_turn

Zone = Literal["prefix", "note", "history", "turn", "tail", "frame"]
#: What a zone is called, from stable to volatile.
ZONES: dict[Zone, str] = {"prefix": "Stable prefix", "note": "Note", "history": "History", "turn": "Current turn", "tail": "Tail", "frame": "Framing"}


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbours in a request that belong together.

    Parameters
    ----------
    kind : str
        ``system``, ``context``, ``tools``, ``note``, ``summary`` (of a real compaction), ``messages``, ``person``, ``tail``,
        ``added`` or ``framing``.
    tokens : int
        In the ledger's counter, the messages' framing included.
    size : int
        Bytes of text, by vak's account: reasoning, media, names and ids of calls are not in it.
    messages : tuple of int
        ``Message.index`` of what is sent in it, kept or edited; empty for what stands outside the history.
    turns : tuple of int
        First and last turn group that it holds messages of; empty if none.
    """

    zone: Zone
    kind: str
    title: str
    tokens: int
    size: int
    messages: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A place up to which a provider is asked to keep the request in its cache.

    Parameters
    ----------
    at : int
        It stands before ``blocks[at]``.
    label : str
        ``after the prefix``, ``before the current turn`` or ``after the last message``.
    tokens : int
        All that stands before it.
    """

    at: int
    label: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Reusable:
    """How much of the request stands, byte for byte, at the head of the request that the unmodified session sent before.

    Parameters
    ----------
    tokens, size : int
        Of the same head: prefix and messages, without what is framed around the whole request.
    messages : int
        Messages in it.
    of : int
        Messages of the request before, the leading system messages included.
    ends : str
        Why it ends there; empty if all of that request is in it.
    """

    tokens: int
    size: int
    messages: int
    of: int
    ends: str


@dataclass(frozen=True, slots=True)
class Layout:
    """One request, in the order sent. Made by `of`.

    Parameters
    ----------
    tokens, size : int
        Sums of the blocks; `tokens` is the selection's ``after_tokens``.
    digest : str
        SHA-256 over system text and tools, lower hex.
    reusable : Reusable or None
        None if no request was made before this one.
    """

    blocks: tuple[Block, ...]
    breakpoints: tuple[Breakpoint, ...]
    tokens: int
    size: int
    digest: str
    reusable: Reusable | None

    def __str__(self) -> str:
        """The blocks as lines of text, with the breakpoints between them."""
        cuts = {cut.at: f"--- cache breakpoint {number}: {cut.label}" for number, cut in enumerate(self.breakpoints, 1)}
        lines = []
        for at, block in enumerate(self.blocks):
            lines += [cuts[at]] if at in cuts else []
            lines.append(f"{ZONES[block.zone]:<14}{block.tokens:>9,}  {block.title}")
        lines += [cuts[len(self.blocks)]] if len(self.blocks) in cuts else []
        return "\n".join([*lines, f"{'':<14}{self.tokens:>9,}  tokens; prefix digest {self.digest[:12]}"])


def of(selection: Selection) -> Layout:
    """Lay out what a selection sends.

    Leading system messages, and system text that a policy puts right after them, are the prefix. A note stands where it
    is sent. The current turn begins where vak's does: with the newest message of a user (to vak notes and later system text are that
    too) that holds words and no tool result. What a policy attached to that message is the tail, as is any text that it
    adds at the very end. The history is one block for each run of
    messages of one turn group.

    Examples
    --------
    >>> from workbench.ledger import count
    >>> from workbench.model import Message, Source, Text, Transcript
    >>> from workbench.policies.base import Request
    >>> from workbench.policies.none import NoPolicy
    >>> said = [("system", "Be short."), ("user", "hello"), ("assistant", "hi"), ("user", "bye")]
    >>> messages = tuple(Message(at, "", role, (Text(text),)) for at, (role, text) in enumerate(said))
    >>> ledger = count(Transcript("t", Source("openai-chat"), messages), "o200k_base")
    >>> print(of(NoPolicy().select(Request.on(ledger.view()))))
    Stable prefix         7  system text #0
    --- cache breakpoint 1: after the prefix
    History              10  turn 0 · 2 messages
    --- cache breakpoint 2: before the current turn
    Current turn          5  the person's message #3
    --- cache breakpoint 3: after the last message
    Framing               3  framing of the request
                         25  tokens; prefix digest 815fa947e715
    """
    view = selection.request.view
    tokens, sizes = selection.item_tokens.tolist(), _item_sizes(selection)
    lead = _lead(selection)
    start, places = _cuts(selection, lead)
    blocks = [*_prefix(selection, lead)]
    cuts = [(len(blocks), places.pop(lead))]
    for group in _groups(selection, lead, start):
        if group.first in places:
            cuts.append((len(blocks), places[group.first]))
        blocks += _body(selection, group, sum(tokens[group.first : group.stop]), sum(sizes[group.first : group.stop]))
    if len(selection.items) in places:
        cuts.append((len(blocks), places[len(selection.items)]))
    _, framing = _outside(view)
    if framing:
        blocks.append(Block("frame", "framing", "framing of the request", framing, 0))
    before = [0, *itertools.accumulate(block.tokens for block in blocks)]
    return Layout(
        tuple(blocks),
        tuple(Breakpoint(at, label, before[at]) for at, label in cuts),
        before[-1],
        sum(block.size for block in blocks),
        vak.prefix_digest("\n".join(_prompt(selection, lead)), as_tools(view)),
        _reusable(selection),
    )


def merged(layout: Layout, most: int) -> Layout:
    """Join neighbours of the history until about `most` blocks are left: as many to each as it takes.

    Sums, order and breakpoints stay; what is no run of messages is never joined with anything.
    """
    by = -(-len(layout.blocks) // max(1, most))
    if by == 1:
        return layout
    blocks: list[Block] = []
    places = [0] * (len(layout.blocks) + 1)  # of each block in the new list
    at = 0
    for (_, kind), run in itertools.groupby(layout.blocks, key=lambda block: (block.zone, block.kind)):
        held = list(run)
        step = by if kind == "messages" else 1
        for start in range(0, len(held), step):
            some = held[start : start + step]
            places[at : at + len(some)] = [len(blocks)] * len(some)
            blocks.append(_joined(some) if len(some) > 1 else some[0])
            at += len(some)
    places[-1] = len(blocks)
    return replace(layout, blocks=tuple(blocks), breakpoints=tuple(replace(cut, at=places[cut.at]) for cut in layout.breakpoints))


def _joined(blocks: Sequence[Block]) -> Block:
    messages = tuple(itertools.chain.from_iterable(block.messages for block in blocks))
    turns = [turn for block in blocks for turn in block.turns]
    span = (min(turns), max(turns)) if turns else ()
    tokens, size = sum(block.tokens for block in blocks), sum(block.size for block in blocks)
    return Block(blocks[0].zone, blocks[0].kind, _run_title(span, len(messages)), tokens, size, messages, span)


def _run_title(turns: Sequence[int], messages: int) -> str:
    names = "" if not turns else f"turn {turns[0]} · " if turns[0] == turns[-1] else f"turns {turns[0]:,}–{turns[-1]:,} · "
    return f"{names}{_several(messages, 'message')}"


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# What stands where.


def _lead(selection: Selection) -> int:
    """How many of the first items are the prefix: leading system messages and system text that the policy put after them."""
    view, items = selection.request.view, selection.items
    return next((at for at, item in enumerate(items) if not _is_lead(item, view)), len(items))


def _is_lead(item: Item, view: View) -> bool:
    if isinstance(item, Added):
        return item.message.role == "system"
    return not isinstance(item, Note) and view.row_of[item.index] < view.lead


def _cuts(selection: Selection, lead: int) -> tuple[int, dict[int, str]]:
    """Item with which the current turn begins (the end if none does), and the breakpoints by the item before which each stands."""
    end = len(selection.items)
    sent = _sent(selection)[lead:]
    boundary = vak.current_turn_boundary(sent)
    places = {lead if at is None else lead + at + 1: "before the current turn" for at in vak.cache_breakpoints(sent)}
    places |= {end: "after the last message", lead: "after the prefix"}
    begins = boundary > 0 or (bool(sent) and sent[0].role == "user" and _has(sent[0], vak.Text) and not _has(sent[0], vak.ToolResult))
    return lead + boundary if begins else end, places


def _has(message: vak.Message, kind: type) -> bool:
    return any(type(block) is kind for block in message.content)


def _sent(selection: Selection) -> list[vak.Message]:
    """The items as vak's messages, one each."""
    rows = _rows(selection.request.view)
    places = zip(selection.items, selection.item_rows.tolist(), strict=True)
    return [rows[row] if isinstance(item, Kept) else as_message(item.message) for item, row in places]


def _rows(view: View) -> list[vak.Message]:
    return view.memo.get("layout messages", lambda: as_messages(view.messages))


def _outside(view: View) -> tuple[tuple[int, int], int]:
    """Tokens of what stands outside the messages: (system text, tools with what is framed around them); the request's framing."""
    outside = view.fixed_kinds - view.kinds[: view.lead].sum(axis=0)
    offered = view.ledger.tools_framing if view.thread == MAIN and outside.any() else 0
    return (int(outside[KIND["system"]]), int(outside[KIND["tools"]]) + offered), int(outside[KIND["framing"]]) - offered


def _prompt(selection: Selection, lead: int) -> list[str]:
    """The system prompt as it is sent, by part: outside the messages, then each item of the prefix."""
    view = selection.request.view
    outside = view.ledger.transcript.system if view.thread == MAIN else ()
    return [*outside, *(message.text for message in selection.messages[:lead])]


def _prefix(selection: Selection, lead: int) -> Iterator[Block]:
    view, tools = selection.request.view, tool_specs(selection.request.view)
    (system_tokens, tools_tokens), _ = _outside(view)
    sizes = [utf8_len(text) + (at > 0) for at, text in enumerate(_prompt(selection, lead))]  # a line feed joins the parts
    outside = len(sizes) - lead
    if outside:
        yield Block("prefix", "system", "system text", system_tokens, sum(sizes[:outside]))
    for item, tokens, size in zip(selection.items[:lead], selection.item_tokens.tolist(), sizes[outside:], strict=False):
        if isinstance(item, Added):
            yield Block("prefix", "context", item.reason, tokens, size)
        elif not isinstance(item, Note):
            yield Block("prefix", "system", f"system text #{item.index}" + (", edited" if isinstance(item, Edited) else ""), tokens, size, (item.index,))
    if tools:
        framing = view.ledger.tools_framing
        title = _several(len(tools), "tool") + (f", {framing:,} of it framing" if framing else "")
        yield Block("prefix", "tools", title, tools_tokens, vak.prefix_chars("", as_tools(view)))


@dataclass(frozen=True, slots=True)
class _Group:
    """Items from `first` to before `stop`."""

    zone: Zone
    kind: str
    turn: int | None
    first: int
    stop: int


def _groups(selection: Selection, lead: int, start: int) -> Iterator[_Group]:
    """Cut what follows the prefix into neighbours of one zone, kind and turn group."""
    view, items = selection.request.view, selection.items
    turn_of = view.memo.get("layout turns", lambda: {index: turn.index for turn in view.turns for index in turn.messages})
    last = next((at for at in range(len(items) - 1, lead - 1, -1) if isinstance(items[at], Kept | Edited)), -1)

    def key(at: int) -> tuple[Zone, str, int | None]:
        item = items[at]
        zone: Zone = "history" if at < start else "turn"
        if isinstance(item, Note):
            return "note", f"note {at}", None
        if isinstance(item, Added):
            return "tail" if at > last else zone, f"added {at}", None
        index = item.index
        if COMPACT_SUMMARY in view.ledger.transcript.messages[index].flags:
            return "note", f"summary {at}", None
        return zone, "person" if at == start else "messages", turn_of.get(index)

    for (zone, kind, turn), run in itertools.groupby(range(lead, len(items)), key=key):
        places = list(run)
        yield _Group(zone, kind.split()[0], turn, places[0], places[-1] + 1)


def _body(selection: Selection, group: _Group, tokens: int, size: int) -> Iterator[Block]:
    item = selection.items[group.first]
    if isinstance(item, Note):
        title = f"note for {_several(len(item.covers), 'message')}" if len(item.covers) else "note"
        yield Block(group.zone, "note", title, tokens, size)
    elif isinstance(item, Added):
        yield Block(group.zone, "added", f"added: {item.reason}", tokens, size)
    elif group.kind == "summary":
        yield Block(group.zone, "summary", f"summary of the recorded compaction #{item.index}", tokens, size, (item.index,))
    elif group.kind == "person":
        whose = selection.request.view.ledger.transcript.messages[item.index]
        title = f"{'the person' if starts_turn(whose) else 'the harness'}'s message #{item.index}"
        tail = _attached(selection, item)
        if tail is not None:
            tail_tokens = tokens - int(selection.request.view.tokens[selection.request.view.row_of[item.index]])
            yield Block("tail", "tail", f"attached to #{item.index}", tail_tokens, tail)
            tokens, size = tokens - tail_tokens, size - tail
        elif isinstance(item, Edited):
            title += ", edited"
        yield Block(group.zone, "person", title, tokens, size, (item.index,), _span(group))
    else:
        held = selection.items[group.first : group.stop]
        edited = sum(isinstance(one, Edited) for one in held)
        title = _run_title(_span(group), len(held)) + (f", {edited:,} edited" if edited else "")
        yield Block(group.zone, "messages", title, tokens, size, tuple(one.index for one in held if isinstance(one, Kept | Edited)), _span(group))


def _span(group: _Group) -> tuple[int, ...]:
    return () if group.turn is None else (group.turn, group.turn)


def _attached(selection: Selection, item: Item) -> int | None:
    """Bytes that a policy only added to a message; None if it added nothing, or changed what stood there."""
    if not isinstance(item, Edited):
        return None
    old, new = selection.request.view.ledger.transcript.messages[item.index], item.message
    rest = iter(new.parts)
    if len(new.parts) <= len(old.parts) or not all(any(part == other for other in rest) for part in old.parts):
        return None
    return _size(new) - _size(old)


def _item_sizes(selection: Selection) -> list[int]:
    rows = _row_sizes(selection.request.view)
    places = zip(selection.items, selection.item_rows.tolist(), strict=True)
    return [_size(item.message) if not isinstance(item, Kept) else rows[row] for item, row in places]


def _row_sizes(view: View) -> list[int]:
    return view.memo.get("layout sizes", lambda: list(map(vak.message_chars, _rows(view))))


def _size(message: Message) -> int:
    return vak.message_chars(as_message(message))


# What a cache would still hold.


def _reusable(selection: Selection) -> Reusable | None:
    """Match the items against the rows that stood before the newest answer: the request that it answered."""
    view = selection.request.view
    newest = next((row for row in range(len(view.messages) - 1, view.lead - 1, -1) if view.messages[row].role == "assistant"), None)
    if newest is None:
        return None
    rows = selection.item_rows[:newest]
    same = int(np.argmin(np.append(rows == np.arange(len(rows)), False)))
    outside, _ = _outside(view)
    tokens = sum(outside) + int(view.tokens[:same].sum())
    system = view.ledger.transcript.system if view.thread == MAIN else ()
    prompt = "\n".join([*system, *(message.text for message in view.messages[: min(same, view.lead)])])
    size = vak.prefix_chars(prompt, as_tools(view)) + sum(_row_sizes(view)[view.lead : same])
    return Reusable(tokens, size, same, newest, "" if same == newest else _why(selection, same))


def _why(selection: Selection, at: int) -> str:
    here = f"#{int(selection.request.view.indices[at])}"
    if at >= len(selection.items):
        return f"nothing is sent where {here} stood"
    item = selection.items[at]
    if isinstance(item, Note):
        return f"a note stands where {here} stood"
    if isinstance(item, Added):
        return f"{item.reason} stands where {here} stood"
    if isinstance(item, Edited):
        return f"#{item.index} is changed"
    return f"#{item.index} stands where {here} stood"
