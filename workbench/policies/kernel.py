"""agent_runtime_kernel on a canonical transcript: message slots, and a checkpoint in one of them.

The rules are those of `workbench.systems.agent_runtime_kernel`, which is the readable twin. A request is assembled once
for a turn, when the person has spoken: system text, checkpoint, newest history, the person's message. What the turn
adds later is appended as it is, so that a long turn grows past the slots. Nothing here looks at a token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import notes
from ..errors import PolicyError
from ..model import Message, Text
from ..systems.agent_runtime_kernel import ContextItem, render_system
from ..systems.mapping.common import request_row
from .base import Added, Event, Fate, Item, Note, PolicyInfo, Request, Selection, Step, Steps, check_params, kept_items, make_selection, param, row_indices


@dataclass(frozen=True)
class Kernel:
    """Sends at most so many messages when a turn begins; one slot of them says what is gone.

    The checkpoint takes the slot of the oldest message that would still fit: that message is dropped, and the
    checkpoint does not count it. With no slot for the history there is no checkpoint either. The parts of the system
    prompt are sent as they stand; the original wraps each part after the first in a context tag. It has no estimate of
    its own: its numbers are the counter's.
    """

    max_messages: int = param(
        40, label="Messages", help="Slots of a request: the system text, the history and the person's message.", low=2, high=10_000, step=1
    )
    note: str = param("checkpoint", label="Note", help="What stands for the rest. The origin knows the checkpoint only.", choices=notes.NAMES)
    note_max_chars: int = param(
        6_000,
        label="Longest note",
        help="Another note than the checkpoint is cut to so many characters.",
        unit="chars",
        low=0,
        high=100_000,
        step=500,
        ours=True,
    )
    context_items: str = param(
        "", label="Context items", help='Texts for the system message, as JSON: [{"source": "notes.md", "content": "…", "required": true, "priority": 1}]'
    )

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="kernel",
        title="agent_runtime_kernel",
        summary="The newest messages in a fixed number of slots; a checkpoint in one of them counts the rest.",
        origin="agent_runtime_kernel",
        version="as specified",
        as_of="2026-12-01",
        evidence="golden vectors of the original program",
        mechanisms=("message slots", "note"),
        limit="{max_messages} messages",
    )
    promises: ClassVar[frozenset[str]] = frozenset({"last_user", "idempotent", "monotone"})

    def __post_init__(self) -> None:
        check_params(self)
        _items(self.context_items)

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        """Assemble the request of the newest turn, with what was added to it since. The selection before does not matter."""
        view = request.view
        at = request_row(view)
        lead, kept = view.lead, kept_items(view)
        history = 0 if at is None else at - lead
        slots = self.max_messages - 2  # the system text and the person's message have one each
        dropped = max(0, history - slots)
        note = self._note(request, dropped) if dropped and slots else None
        first = lead + dropped + (note is not None)
        extra = self._context(request) if at is not None else ()
        new: tuple[Item, ...] = (*extra, *(() if note is None else (note,)))
        fates = np.full(len(kept), Fate.KEPT, np.uint8)
        fates[lead:first] = Fate.DROPPED
        if note is not None:
            fates[lead : lead + dropped] = Fate.SUMMARIZED
        return make_selection(
            self,
            request,
            (*kept[:lead], *new, *kept[first:]),
            rows=np.concatenate([np.arange(lead), np.full(len(new), -1), np.arange(first, len(kept))]),
            fates=fates,
            steps=Steps(lambda: _log(self, request, at, dropped, note)),
            event=Event("checkpoint", "slots", history + 2, min(history, slots) + 2) if dropped else None,
        )

    def _note(self, request: Request, dropped: int) -> Note:
        view = request.view
        rows = range(view.lead, view.lead + dropped)
        most = 10**6 if self.note == "checkpoint" else self.note_max_chars  # the original's text has no bound but its goal's
        draft = notes.get(self.note).write(view, rows, most)
        return Note(Message(-1, "", "note", (Text(draft.text),), thread=view.thread), row_indices(view)[rows.start : rows.stop], draft.quotes, "system")

    def _context(self, request: Request) -> tuple[Added, ...]:
        """The system message that holds the items; none if the leading text ends with it already, as it does in what was sent."""
        view = request.view
        text = render_system("", _items(self.context_items)).removeprefix("\n\n")
        if not text or (view.lead and view.messages[view.lead - 1].text == text):
            return ()
        return (Added(Message(-1, "", "system", (Text(text),), thread=view.thread), "context items"),)


def _items(text: str) -> list[ContextItem]:
    """Read context items that a person wrote.

    Raises
    ------
    PolicyError
        It is not a JSON list of objects with a source and a content.
    """
    if not text.strip():
        return []
    try:
        given = json.loads(text)
        return [_item(**item) for item in given]
    except (ValueError, TypeError, RecursionError) as error:
        raise PolicyError(f'kernel.context_items: {str(error)[:80]}; give a JSON list such as [{{"source": "notes.md", "content": "…"}}]') from None


def _item(source: str, content: str, required: bool = False, priority: int = 0) -> ContextItem:
    values: list[tuple[Any, type]] = [(source, str), (content, str), (required, bool), (priority, int)]
    for value, kind in values:
        if type(value) is not kind:
            raise TypeError(f"{value!r} is no {kind.__name__}")
    if not -(2**31) <= priority < 2**31:
        raise ValueError(f"priority {priority} has more than 32 bits")
    return ContextItem(source, content, required, priority)


def _log(policy: Kernel, request: Request, at: int | None, dropped: int, note: Note | None) -> Iterator[Step]:
    view = request.view
    indices = row_indices(view)
    if view.lead:
        yield Step("leading system text has the first slot: it is always sent", indices[: view.lead])
    if request.pins:
        yield Step("the kernel cannot pin: a pinned message is treated like any other", tuple(index for index in sorted(request.pins) if index in view.row_of))
    if at is None:
        if len(indices) > view.lead:
            yield Step("no person has spoken, so no request is assembled: everything is sent as it is", indices[view.lead :])
        return
    history, slots = at - view.lead, policy.max_messages - 2
    yield Step(f"{policy.max_messages:,} slots − 1 for the system text − 1 for the person's message = {slots:,} for the history of {history:,}")
    yield Step(f"#{indices[at]} is the newest person's message: it is the request and is always sent", (indices[at],))
    if not dropped:
        yield Step(f"{history:,} ≤ {slots:,}: all of the history is sent", indices[view.lead : at])
    elif note is None:
        yield Step(f"no slot is left for the history: all {history:,} messages are dropped, and there is no checkpoint", indices[view.lead : at])
    else:
        first = view.lead + dropped
        name, does = ("checkpoint", "counts them") if policy.note == "checkpoint" else (f"{policy.note} note", "stands for them")
        yield Step(f"{history:,} > {slots:,}: the oldest {dropped:,} are compacted; the {name} {does}", note.covers)
        if note.quotes:
            yield Step(f"the {name} holds words of {'this message' if len(note.quotes) == 1 else 'these messages'}", note.quotes)
        taken = indices[first : first + 1]
        yield Step(f"the {name} takes the slot of the oldest message that still fitted: it is dropped, and nothing counts it", taken)
        yield Step(f"the newest {slots - 1:,} messages of the history keep their slots", indices[first + 1 : at])
    if at + 1 < len(indices):
        yield Step("added after the request was assembled: appended as it is, whatever the slots", indices[at + 1 :])
