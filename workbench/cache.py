"""What of a prompt a provider's cache still holds, and what is written into it.

A prompt is a few runs of items, not a list of them, and what the cache holds is a tree of such runs: a session that only grows
is one branch of it. So a request costs what changed, whatever the length of the history.

A prompt is the same up to an item or it is not: an item that changed is not read in part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["breakpoints", "automatic", "none"]


@dataclass(frozen=True, slots=True)
class CacheRules:
    """How a provider caches prompts.

    Parameters
    ----------
    kind : {"breakpoints", "automatic", "none"}
        ``breakpoints``: an entry ends where the client asks for it, and is found again from a breakpoint at most `lookback` blocks
        behind it. ``automatic``: any beginning that was sent is an entry.
    minimum : int
        Tokens. A shorter beginning is silently not kept.
    step : int
        What is read is a whole multiple of so many tokens.
    lookback : int
        Content blocks.
    breakpoints : int
        The most that a request may have.
    ttl, ttl_long : int
        Seconds since the start of the last request that used an entry.
    writes : bool
        Whether what is written is billed apart from what is not cached.
    """

    kind: Kind = "none"
    minimum: int = 0
    step: int = 1
    lookback: int = 20
    breakpoints: int = 4
    ttl: int = 300
    ttl_long: int = 3600
    writes: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Items in their order, of which any stretch can be sent. Two tracks have no item in common.

    Parameters
    ----------
    tokens, blocks : sequence of int, shape (n + 1,)
        Tokens and content blocks before each item.
    """

    tokens: Sequence[int]
    blocks: Sequence[int]

    @classmethod
    def of(cls, tokens: int, blocks: int = 1) -> Track:
        """A track of one item."""
        return cls((0, tokens), (0, blocks))


@dataclass(frozen=True, slots=True)
class Run:
    """The items `start` to before `stop` of a track."""

    track: Track
    start: int
    stop: int

    @property
    def tokens(self) -> int:
        """Tokens of its items."""
        return int(self.track.tokens[self.stop] - self.track.tokens[self.start])

    @property
    def blocks(self) -> int:
        """Content blocks of its items."""
        return int(self.track.blocks[self.stop] - self.track.blocks[self.start])


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request as a cache sees it.

    Parameters
    ----------
    outside : int
        Tokens that stand before the first item: tools, system text. They belong to the scope.
    breakpoints : tuple of int
        Items before each breakpoint, ascending. Only what asks for them needs them.
    """

    outside: int
    runs: tuple[Run, ...]
    breakpoints: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """All of it."""
        return max(0, self.outside + sum(run.tokens for run in self.runs))


@dataclass(frozen=True, slots=True)
class Buckets:
    """A prompt by what becomes of it: they sum to its tokens."""

    read: int = 0
    write: int = 0
    uncached: int = 0


@dataclass(slots=True)
class Mark:
    """An entry that ends at a breakpoint.

    Parameters
    ----------
    items, tokens, blocks : int
        Of the items before it.
    used : float
        Seconds; when it was used last.
    ttl : float
        Seconds.
    """

    items: int
    tokens: int
    blocks: int
    used: float
    ttl: float


@dataclass(slots=True, eq=False)
class _Node:
    """A stretch of prompts that had the same beginning: its own runs follow those of the nodes above it."""

    runs: list[Run] = field(default_factory=list)
    used: float = 0.0  # when all of it was sent last
    ttl: float = 0.0
    marks: list[Mark] = field(default_factory=list)  # ascending
    children: dict[tuple[Track, int], _Node] = field(default_factory=dict)


def common(one: Sequence[Run], other: Sequence[Run]) -> tuple[int, int]:
    """How many first items two lists of runs share, and their tokens."""
    items = tokens = 0
    left, right = list(reversed(one)), list(reversed(other))
    while left and right:
        first, second = left.pop(), right.pop()
        if first.track is not second.track or first.start != second.start:
            break
        stop = min(first.stop, second.stop)
        same = Run(first.track, first.start, stop)
        items += stop - first.start
        tokens += same.tokens
        if first.stop > stop:
            left.append(Run(first.track, stop, first.stop))
        if second.stop > stop:
            right.append(Run(second.track, stop, second.stop))
    return items, tokens


class Cache:
    """The entries of one account, as requests come and time passes."""

    def __init__(self) -> None:
        self._scopes: dict[Hashable, _Node] = {}

    def send(self, scope: Hashable, prompt: Prompt, rules: CacheRules, now: float, ttl: float | None = None) -> Buckets:
        """Send a prompt: what is read, what is written; then the cache holds it.

        Parameters
        ----------
        scope : hashable
            Model, and whatever stands before the items: nothing is read from another scope.
        now : float
            Seconds, never less than at the request before: when the request starts.
        ttl : float, optional
            Seconds that a new entry lives. Default: the shorter time of the rules.
        """
        total = prompt.tokens
        if rules.kind == "none":
            return Buckets(uncached=total)
        life = rules.ttl if ttl is None else ttl
        root = self._scopes.setdefault(scope, _Node())
        path, items = self._walk(root, prompt, now)
        if rules.kind == "automatic":
            read = self._longest(path, prompt, rules, now)
            self._keep(path, prompt, items, now, life)
            written = total - total % rules.step - read if rules.writes and total >= rules.minimum else 0
            return Buckets(read, written, total - read - written)
        places = [_place(prompt, at) for at in prompt.breakpoints[-rules.breakpoints :]]
        hit = self._entry(path, items, places, rules, now)
        end = self._keep(path, prompt, items, now, life)
        read = max(0, prompt.outside + hit.tokens) if hit is not None else 0
        last = 0
        for place in places:
            at = max(0, prompt.outside + place.tokens)
            if at >= rules.minimum:
                last = max(last, at)
                _mark(end, place, now, life, renew=hit is not None and place.items <= hit.items)
        if hit is not None:
            hit.used = now
        written = max(0, last - read)
        if not rules.writes:
            return Buckets(read, 0, total - read)
        return Buckets(read, written, total - read - written)

    def warm(self, scope: Hashable, prompt: Prompt, rules: CacheRules, now: float) -> int:
        """Tokens of a prompt that would be read at this moment; nothing is changed."""
        root = self._scopes.get(scope)
        if root is None or rules.kind == "none":
            return 0
        path, items = self._walk(root, prompt, now, split=False)
        if rules.kind == "automatic":
            return self._longest(path, prompt, rules, now)
        hit = self._entry(path, items, [_place(prompt, at) for at in prompt.breakpoints[-rules.breakpoints :]], rules, now)
        return 0 if hit is None else max(0, prompt.outside + hit.tokens)

    def _walk(self, root: _Node, prompt: Prompt, now: float, *, split: bool = True) -> tuple[list[_Node], int]:
        """The nodes that a prompt goes through, and how many of its items stand in them. A node that it leaves halfway is split there."""
        path, node, items = [root], root, 0
        rest = list(reversed(prompt.runs))
        while rest:
            child = node.children.get((rest[-1].track, rest[-1].start))
            if child is None:
                break
            same, _ = common(child.runs, tuple(reversed(rest)))
            if same < sum(run.stop - run.start for run in child.runs):
                if not split:
                    child = _Node(_first(child.runs, same), child.used, child.ttl, [mark for mark in child.marks if mark.items <= items + same])
                    return [*path, child], items + same
                _split(child, same, items)
            items += same
            path.append(child)
            _drop(rest, same)
            node = child
        return path, items

    def _longest(self, path: Sequence[_Node], prompt: Prompt, rules: CacheRules, now: float) -> int:
        tokens = 0
        for node in path[1:]:
            if now - node.used > node.ttl:
                break
            tokens += sum(run.tokens for run in node.runs)
        # What stands outside the items alone is an entry too, once anything was sent in this scope.
        alive = path[0].ttl > 0 and now - path[0].used <= path[0].ttl
        found = max(0, prompt.outside + tokens) if alive else 0
        found -= found % rules.step
        return found if found >= rules.minimum else 0

    def _entry(self, path: Sequence[_Node], items: int, places: Sequence[Mark], rules: CacheRules, now: float) -> Mark | None:
        """The longest live entry within reach of a breakpoint."""
        for place in reversed(places):
            for node in reversed(path):
                at = bisect_right(node.marks, min(place.items, items), key=lambda mark: mark.items)
                for mark in reversed(node.marks[:at][-rules.lookback - 1 :]):
                    if place.blocks - mark.blocks > rules.lookback:
                        break
                    if now - mark.used <= mark.ttl:
                        return mark
                if node.marks[:at] and place.blocks - node.marks[0].blocks > rules.lookback:
                    break
        return None

    def _keep(self, path: list[_Node], prompt: Prompt, items: int, now: float, ttl: float) -> list[_Node]:
        """Note that all of a prompt was sent now. Returns the nodes that hold it."""
        for node in path:
            node.used, node.ttl = now, max(ttl, node.ttl if now - node.used <= node.ttl else 0)
        rest = list(reversed(prompt.runs))
        _drop(rest, items)
        if not rest:
            return path
        new = list(reversed(rest))
        end = path[-1]
        if len(path) > 1 and not end.children:  # nothing else went on from here: the branch grows
            for run in new:
                _append(end.runs, run)
            return path
        child = _Node([], now, ttl)
        for run in new:
            _append(child.runs, run)
        end.children[new[0].track, new[0].start] = child
        return [*path, child]


def _place(prompt: Prompt, items: int) -> Mark:
    tokens = blocks = left = 0
    left = items
    for run in prompt.runs:
        part = Run(run.track, run.start, min(run.stop, run.start + left))
        tokens += part.tokens
        blocks += part.blocks
        left -= part.stop - part.start
        if not left:
            break
    return Mark(items, tokens, blocks, 0.0, 0.0)


def _mark(path: Sequence[_Node], place: Mark, now: float, ttl: float, *, renew: bool) -> None:
    """Set an entry at a place, or use the one that is there."""
    items = 0
    for node in path:
        items += sum(run.stop - run.start for run in node.runs)
        if place.items <= items:
            at = bisect_right(node.marks, place.items, key=lambda mark: mark.items)
            if at and node.marks[at - 1].items == place.items:
                there = node.marks[at - 1]
                alive = now - there.used <= there.ttl
                there.used, there.ttl = now, there.ttl if renew and alive else ttl
            else:
                node.marks.insert(at, Mark(place.items, place.tokens, place.blocks, now, ttl))
            return


def _split(node: _Node, same: int, before: int) -> None:
    """Cut a node after its first `same` items; what follows becomes its only child."""
    head = _first(node.runs, same)
    rest = list(reversed(node.runs))
    _drop(rest, same)
    tail = list(reversed(rest))
    at = bisect_right(node.marks, before + same, key=lambda mark: mark.items)
    child = _Node(tail, node.used, node.ttl, node.marks[at:], node.children)
    node.runs, node.marks, node.children = head, node.marks[:at], {(tail[0].track, tail[0].start): child}


def _first(runs: Sequence[Run], items: int) -> list[Run]:
    found = []
    for run in runs:
        if items <= 0:
            break
        found.append(Run(run.track, run.start, min(run.stop, run.start + items)))
        items -= run.stop - run.start
    return found


def _drop(rest: list[Run], items: int) -> None:
    """Take the first items away from runs that stand in reverse."""
    while items:
        run = rest.pop()
        size = run.stop - run.start
        if size > items:
            rest.append(Run(run.track, run.start + items, run.stop))
            return
        items -= size


def _append(runs: list[Run], run: Run) -> None:
    if runs and runs[-1].track is run.track and runs[-1].stop == run.start:
        runs[-1] = Run(run.track, runs[-1].start, run.stop)
    else:
        runs.append(run)
