"""Puts the entries of a pi session in their threads, and its compactions in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..model import COMPACT_SUMMARY, MAIN, Compaction
from .build import Builder, DraftMessage
from .fields import string
from .usage import tokens

#: Steps that all compactions together may take to find what they kept: a hostile file could make each go through all.
_MOST_STEPS = 2_000_000


@dataclass(slots=True)
class Entry:
    """A node of the tree.

    Parameters
    ----------
    parent : int
        The entry that it goes on from, which stands before it; -1 for none.
    message : DraftMessage or None
        The message that it is; of a compaction the summary.
    compaction : dict or None
        The record of a compaction.
    agents : tuple of str
        Threads of the subagents whose words it holds.
    """

    number: int
    parent: int
    message: DraftMessage | None = None
    compaction: dict[str, Any] | None = None
    thread: str = MAIN
    agents: tuple[str, ...] = ()


def settle(builder: Builder, entries: Sequence[Entry], index: Mapping[str, int], numbers: Sequence[int]) -> None:
    """Move branches that were left into threads of their own, name every message's parent, and add the compactions.

    Parameters
    ----------
    index : mapping
        Place of an entry by its id.
    numbers : sequence of int
        The numbers of all records, damaged ones too: the first version counts entries in it.
    """
    _branch(builder, entries)
    moved = {entry.number: entry.thread for entry in entries if entry.thread != MAIN}
    for entry in entries:
        if entry.message is not None and entry.thread != MAIN:
            builder.move(entry.message, entry.thread)
            for agent in entry.agents:
                builder.threads[agent] = replace(builder.threads[agent], parent=entry.thread)
    builder.move_records(moved)
    if index:
        spoken: list[int | None] = []
        for entry in entries:
            above = spoken[entry.parent] if entry.parent >= 0 else None
            if entry.message is not None:
                entry.message.parent = above
            spoken.append(above if entry.message is None else entry.message.index)
    _compactions(builder, entries, index, numbers)


def _branch(builder: Builder, entries: Sequence[Entry]) -> None:
    """Give every entry its thread: of the children of an entry the one that leads to the newest goes on with it."""
    newest = [*range(len(entries))]
    speaks = [entry.message is not None for entry in entries]
    live: dict[int, int] = {}
    for at in range(len(entries) - 1, -1, -1):  # a parent stands before its children
        up = entries[at].parent
        if up not in live or newest[at] > newest[live[up]]:
            live[up] = at
        if up >= 0:
            newest[up] = max(newest[up], newest[at])
            speaks[up] = speaks[up] or speaks[at]
    count = 0
    for at, entry in enumerate(entries):
        entry.thread = above = entries[entry.parent].thread if entry.parent >= 0 else MAIN
        if live[entry.parent] != at and speaks[at]:
            count += 1
            entry.thread = builder.thread(f"branch-{count}", "branch", parent=above)


def _compactions(builder: Builder, entries: Sequence[Entry], index: Mapping[str, int], numbers: Sequence[int]) -> None:
    place = {entry.number: at for at, entry in enumerate(entries)}
    steps = _MOST_STEPS
    for entry in entries:
        row = entry.compaction
        if row is None:
            continue
        first = index.get(string(row.get("firstKeptEntryId")), -1)
        count = row.get("firstKeptEntryIndex")
        if first < 0 and type(count) is int and 0 <= count < len(numbers):
            first = place.get(numbers[count], -1)
        kept: list[int] = []
        after, up = -1, entry.parent
        while up >= 0 and steps > 0 and (after < 0 or up >= first >= 0):
            steps -= 1
            message = entries[up].message
            if message is not None and entries[up].thread == entry.thread:
                after = max(after, message.index)
                if up >= first >= 0 and COMPACT_SUMMARY not in message.flags:
                    kept.append(message.index)
            if up == first:
                break
            up = entries[up].parent
        if up != first or first < 0:
            kept = []  # as pi itself does with an entry that is not on the path
            builder.report(entry.number, "compaction", f"record {entry.number}: the first entry that the compaction kept is not among those before it")
        summary = None if entry.message is None else entry.message.index
        builder.compactions.append(
            Compaction(after, "summary", None, tokens(row.get("tokensBefore")), None, summary, tuple(reversed(kept)), entry.thread, None, (entry.number,))
        )
