"""Compactions of Claude Code sessions: a boundary line, a summary, and lines that are written again because they were kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import Compaction
from .build import DraftMessage
from .fields import mapping, string
from .usage import tokens

BOUNDARIES = ("compact_boundary", "microcompact_boundary")


@dataclass(slots=True)
class Compacted:
    """A compaction whose summary and kept messages may still come.

    Parameters
    ----------
    keep, segment
        Uuids of the messages that it kept: each, or the first and the last.
    kept : set of int
        Messages whose lines were written again after it.
    repeating : bool
        True until something new is said: so long, lines that were there before are those it kept.
    """

    thread: str
    after: int
    kind: str = "summary"
    trigger: str | None = None
    before: int | None = None
    rest: int | None = None
    keep: tuple[str, ...] = ()
    segment: tuple[str, str] | None = None
    raw: tuple[int, ...] = ()
    summary: int | None = None
    call: int | None = None
    kept: set[int] = field(default_factory=set)
    repeating: bool = True


def from_boundary(row: dict[str, Any], number: int, thread: str, after: int) -> Compacted:
    """A compaction as its boundary line tells it; the spelling of the fields differs by version."""
    about = mapping(_first(row, "compactMetadata", "compact_metadata", "microcompactMetadata", "microcompact_metadata"))
    before = tokens(_first(about, "preTokens", "pre_tokens"))
    rest = tokens(_first(about, "postTokens", "post_tokens"))
    small = row.get("subtype") == "microcompact_boundary"
    if small and rest is None and before is not None:
        saved = tokens(_first(about, "tokensSaved", "tokens_saved"))
        rest = before - saved if saved is not None and saved <= before else None
    keep = mapping(about.get("preservedMessages")).get("uuids")
    segment = mapping(about.get("preservedSegment"))
    head, tail = string(segment.get("headUuid")), string(segment.get("tailUuid"))
    return Compacted(
        thread,
        after,
        "edit" if small else "summary",
        string(about.get("trigger")) or None,
        before,
        rest,
        tuple(uuid for uuid in keep if type(uuid) is str) if type(keep) is list else (),
        (head, tail) if head and tail else None,
        (number,),
    )


def frozen(compactions: Sequence[Compacted], messages: Sequence[DraftMessage], index: Mapping[str, int]) -> list[Compaction]:
    """Freeze compactions, now that all messages are known; `index` says which message a uuid stands for."""
    found: list[Compaction] = []
    live: dict[str, tuple[int, set[int]]] = {}
    for done in compactions:
        after = done.after
        while after >= 0 and messages[after].thread != done.thread:  # what was last may have turned out to be a branch
            after -= 1
        kept = {index[uuid] for uuid in done.keep if uuid in index} | done.kept
        if done.segment is not None and all(uuid in index for uuid in done.segment):
            kept.update(range(index[done.segment[0]], index[done.segment[1]] + 1))
        kept = {at for at in kept if at <= after and at != done.summary and messages[at].thread == done.thread}
        if done.kind == "edit":  # nothing left the context but what some results held
            since, base = live.get(done.thread, (-1, set()))
            kept = base | {at for at in range(since + 1, after + 1) if messages[at].thread == done.thread}
        live[done.thread] = (after, kept if done.summary is None else {*kept, done.summary})
        found.append(Compaction(after, done.kind, done.trigger, done.before, done.rest, done.summary, tuple(sorted(kept)), done.thread, done.call, done.raw))
    return found


def _first(values: Mapping[str, Any], *keys: str) -> Any:
    return next((values[key] for key in keys if values.get(key) is not None), None)
