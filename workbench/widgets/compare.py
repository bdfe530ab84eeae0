"""The Compare tab: the session's policy and up to three others, at one budget, on one token scale, and where they part.

The browser gets bounded strips (see ``runs``) and numbers; what lies under the pointer it asks for. It follows the session when
a drag has come to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import anywidget
import numpy as np
import traitlets

from ..errors import WorkbenchError
from ..ledger import View
from ..model import KINDS
from ..policies import registry
from ..policies.base import FATES, Edited, Fate, Kept, Note, Policy, Selection, limit_of
from ..policies.compare import WAYS, Comparison, answer, comparison, item_kinds, outside_kinds
from ..tokens.base import Ints
from .assets import css, esm
from .runs import history_segments, history_styles, pack_runs, sent_segments
from .session import Session
from .texts import clean, one_line, preview
from .words import problem_text

OTHERS = 3  # policies beside the session's
NOTES = 1_200  # characters of notes that are shown per policy
_SAID = 600  # characters of an explanation
_WHYS = 6  # explanations of one message by one policy


class Compare(anywidget.AnyWidget):
    """Two to four policies side by side. The first is the session's, with its parameters.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none. Both ways.
    status : str
        On how many messages they part.
    """

    unit = "difference"  # what `step` steps by

    _esm = traitlets.Unicode(esm("compare")).tag(sync=True)
    _css = traitlets.Unicode(css("compare")).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    content = traitlets.Dict().tag(sync=True)
    about = traitlets.Dict().tag(sync=True)
    status = traitlets.Unicode("")

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self._others: tuple[Policy, ...] | None = None
        self._made: Comparison | None = None
        self._ends: list[Ints] = []  # of each policy's items, in tokens from the left
        self._said = ""
        self._version = 0
        super().__init__()
        self.observe(self._pointed, "selected")
        self.on_msg(self._told)

    @property
    def others(self) -> tuple[Policy, ...]:
        """What the session's policy is compared with. Settable, also to names; None stands for the rest of the four systems."""
        if self._others is not None or self._session is None:
            return self._others or ()
        return tuple(registry.get(name) for name in registry.SYSTEMS if name != self._session.policy.info.name)[:OTHERS]

    @others.setter
    def others(self, policies: Iterable[str | Policy] | None) -> None:
        chosen = None if policies is None else tuple(map(registry.as_policy, [policies] if isinstance(policies, str) else policies))
        if chosen is not None and len(chosen) > OTHERS:
            raise WorkbenchError(f"{len(chosen)} policies beside the session's; at most {OTHERS} can be shown")
        self._others = chosen
        self.refresh()

    @property
    def comparison(self) -> Comparison | None:
        """What is shown; None before the first `refresh`."""
        return self._made

    def refresh(self) -> None:
        """Ask all of them for what the session asks now, and show it."""
        session = self._session
        if session is None:
            return
        request, mine = session.request, session.selection or session.problem
        assert mine is not None
        others = [policy for policy in self.others if policy != session.policy]  # the same twice says nothing
        made = self._made = comparison(request, [session.policy, *others], [mine, *(answer(policy, request) for policy in others)])
        left = int(outside_kinds(made.view).sum())
        self._ends = [left + np.cumsum(outcome.item_tokens) if isinstance(outcome, Selection) else np.zeros(0, np.int64) for outcome in made.outcomes]
        self._version += 1
        with self.hold_sync():
            self.content = {"version": self._version, "error": self._said, **content(made, session.smallest_known), "choices": _choices(session)}
            self.about = about(made, self.selected)
        self.status = summary(made)
        self._said = ""

    def step(self, by: int) -> None:
        """Select the first message of the stretch before (-1) or after (1) the selected message on which they part."""
        made = self._made
        if made is None or not made.stretches:
            return
        row = made.view.row_of.get(self.selected, -1 if by > 0 else len(made.view.indices))
        starts = [start for start, _ in made.stretches]
        found = [start for start in starts if (start > row if by > 0 else start < row)]
        self.selected = int(made.view.indices[(found or starts)[0 if (by > 0) == bool(found) else -1]])

    def close(self) -> None:
        """Free everything: no reference to the session stays."""
        self._session = self._made = self._others = None
        self._ends = []
        self.content = self.about = {}
        self.on_msg(self._told, remove=True)
        self.unobserve_all()
        super().close()

    def __repr__(self) -> str:
        return "<Compare: closed>" if self._session is None else f"<Compare: {', '.join(self._made.labels) if self._made else 'not shown yet'}>"

    def _pointed(self, _: object) -> None:
        if self._made is not None and self.layout.display != "none":
            self.about = about(self._made, self.selected)

    # What the page asks and tells.

    def _told(self, _: object, told: Any, __: object) -> None:
        acts: dict[str, Callable[[Comparison, dict[str, Any]], None]] = {
            "name": self._name,
            "pick": self._pick,
            "move": self._move,
            "step": lambda _, told: self.step(1 if told["by"] > 0 else -1),
            "end": self._end,
            "add": self._add,
            "remove": self._remove,
        }
        if self._made is None or not isinstance(told, dict) or (act := acts.get(str(told.get("ask")))) is None:
            return
        try:
            act(self._made, told)
        except WorkbenchError as error:
            self._said = str(error)
            self.refresh()
        except (KeyError, TypeError, ValueError, IndexError):  # what no page of ours sends, or what is of a comparison that is gone
            self.send({"id": told.get("id"), "ok": False, "error": "the comparison could not answer"})

    def _name(self, made: Comparison, told: dict[str, Any]) -> None:
        row, place = self._under(made, told)
        text = ""
        if row is not None:
            text = describe(made, row)
        elif place is not None:
            selection = made[made.labels[int(told["strip"])]]
            text = describe_insert(selection.items[place], int(selection.item_tokens[place]))
        elif 0 <= told["at"] < int(outside_kinds(made.view).sum()):
            text = "fixed part: what stands outside the messages"
        self.send({"id": told.get("id"), "ok": True, "text": text})

    def _pick(self, made: Comparison, told: dict[str, Any]) -> None:
        row, _ = self._under(made, told)
        if row is not None:
            self.selected = int(made.view.indices[row])

    def _under(self, made: Comparison, told: dict[str, Any]) -> tuple[int | None, int | None]:
        """The row, or else the place of an item that is no message, at a place of a strip in tokens. `strip` -1 is the history."""
        strip, at = int(told["strip"]), float(told["at"])
        if told.get("sent"):
            selection = made.outcomes[strip]
            place = int(np.searchsorted(self._ends[strip], at, "right"))
            if not isinstance(selection, Selection) or place >= len(selection.items) or at < int(outside_kinds(made.view).sum()):
                return None, None
            item = selection.items[place]
            return (made.view.row_of[item.index], None) if isinstance(item, Kept | Edited) else (None, place)
        row = int(np.searchsorted(history_ends(made.view), at, "right")) - 1
        return (row, None) if 0 <= row < len(made.view.indices) else (None, None)

    def _move(self, made: Comparison, told: dict[str, Any]) -> None:
        if len(made.view.indices):
            by = 1 if told["by"] > 0 else -1
            row = made.view.row_of.get(self.selected, -1 if by > 0 else len(made.view.indices))
            self.selected = int(made.view.indices[min(len(made.view.indices) - 1, max(0, row + by))])

    def _end(self, made: Comparison, told: dict[str, Any]) -> None:
        if made.stretches:
            self.selected = int(made.view.indices[made.stretches[0 if told["by"] < 0 else -1][0]])

    def _add(self, made: Comparison, told: dict[str, Any]) -> None:
        policy = made.policies[0] if not told["name"] else registry.get(str(told["name"]))  # without a name: the session's as it is now
        shown = made.policies[1:]
        if policy in shown or (told["name"] and policy == made.policies[0]):
            raise WorkbenchError(f"{policy.info.name} with these parameters is here already; change the session's policy to see another")
        self.others = (*(policy for policy in self.others if policy in shown), policy)

    def _remove(self, made: Comparison, told: dict[str, Any]) -> None:
        gone = made.policies[int(told["strip"])] if int(told["strip"]) > 0 else None
        self.others = tuple(policy for policy in self.others if policy != gone)


def history_ends(view: View) -> Ints:
    """Where each row begins, and the last ends, in tokens from the left, shape (n + 1,)."""
    return view.memo.get("history ends", lambda: np.concatenate([[0], np.cumsum(view.tokens)]) + int(outside_kinds(view).sum()))


def summary(made: Comparison) -> str:
    """On how many messages they part, in a few words."""
    if len(made.selections) < 2:
        return "nothing to compare" if len(made.policies) < 2 else "fewer than two have an answer at this budget"
    number, runs = len(made.differ_rows), len(made.stretches)
    if not number:
        return "they do not part on any message"
    return f"they part on {number:,} of {len(made.view.indices):,} message{'' if number == 1 else 's'}" + (f", in {runs:,} stretches" if runs > 1 else "")


def content(made: Comparison, smallest: int | None = None) -> dict[str, Any]:
    """The strips and the numbers. `smallest` is the smallest window of the first policy, if it is known."""
    view = made.view
    segments = history_segments(view)
    marks = made.way_codes.astype(np.int64)
    outside = int(outside_kinds(view).sum())
    tables = [item_kinds(outcome).sum(axis=0) + outside_kinds(view) if isinstance(outcome, Selection) else None for outcome in made.outcomes]
    rows = [_row(made, at, smallest if at == 0 else None) for at in range(len(made.policies))]
    return {
        "tokens": view.total,
        "messages": len(view.indices),
        "available": made.budget.available,
        "domain": max(1, view.total, *(row["after"] or row.get("needed") or 0 for row in rows)),
        "before": pack_runs(segments.kind, segments.size, segments.owner),
        "marks": pack_runs(np.append(0, marks), np.append(outside, view.tokens), np.arange(len(marks) + 1)),
        "ways": [int((marks == code).sum()) for code in range(1, len(WAYS) + 1)],
        "rows": rows,
        "kinds": [
            [kind, int(all_tokens), [None if table is None else int(table[code]) for table in tables]]
            for code, (kind, all_tokens) in enumerate(view.by_kind.items())
            if all_tokens or any(table is not None and table[code] for table in tables)
        ],
        "full": len(made.policies) > OTHERS,
    }


def _row(made: Comparison, at: int, smallest: int | None) -> dict[str, Any]:
    policy, outcome = made.policies[at], made.outcomes[at]
    head = {"label": one_line(made.labels[at]), "title": one_line(policy.info.title), "limit": one_line(limit_of(policy) or "")[:_SAID]}
    if not isinstance(outcome, Selection):
        return {**head, "after": None, "problem": one_line(problem_text(outcome, smallest))[:_SAID], "needed": getattr(outcome, "needed", None)}
    segments = history_segments(made.view)
    sent, styles = sent_segments(outcome)
    notes = [clean(note.message.text[: NOTES + 1]) for note in outcome.notes[:3]]
    text = "\n\n".join(notes)
    return {
        **head,
        "after": outcome.after_tokens,
        "own": outcome.own_after,
        "counts": list(outcome.counts.values()),
        "quoted": outcome.quoted,
        "notes": len(outcome.notes),
        "note_tokens": sum(outcome.note_tokens),
        "text": text if len(text) <= NOTES else text[:NOTES] + "…",
        "findings": len(outcome.alarms),
        "finding": one_line(outcome.alarms[0].text)[:_SAID] if outcome.alarms else "",
        "fates": pack_runs(history_styles(segments, outcome.fate_codes), segments.size, segments.owner),
        "sent": pack_runs(styles, sent.size, sent.owner),
    }


def about(made: Comparison, index: int) -> dict[str, Any]:
    """The selected message: what it is, and its fate and why by each policy."""
    row = made.view.row_of.get(index)
    if row is None:
        return {"text": "", "rows": []} if index < 0 else {"text": f"#{index} is not in the history that is shown.", "rows": []}
    ends = history_ends(made.view)
    stretch = next((number for number, (start, stop) in enumerate(made.stretches, 1) if start <= row < stop), 0)
    return {
        "text": describe(made, row),
        "preview": preview(made.view.messages[row]).text,
        "at": [int(ends[row]), int(ends[row + 1])],
        "stretch": [stretch, len(made.stretches)],
        "rows": [_fate(made, at, index, row) for at in range(len(made.policies))],
    }


def _fate(made: Comparison, at: int, index: int, row: int) -> dict[str, Any]:
    outcome = made.outcomes[at]
    head: dict[str, Any] = {"label": one_line(made.labels[at]), "fate": "", "sent": None, "tokens": None, "why": []}
    if not isinstance(outcome, Selection):
        return head
    fate = int(outcome.fate_codes[row])
    said = [clean(step.text[:_SAID]) for step in outcome.steps if index in step.messages]
    head |= {"fate": FATES[fate], "why": said[:_WHYS] or ["no rule of this policy touched it"]}
    if fate <= Fate.EDITED:
        place = _place(outcome, index, row)
        ends = int(outside_kinds(made.view).sum()) + np.cumsum(outcome.item_tokens)
        size = int(outcome.item_tokens[place])
        head |= {"tokens": size, "sent": [int(ends[place]) - size, int(ends[place])]}
    elif fate == Fate.SUMMARIZED and any(index in note.quotes for note in outcome.notes):
        head["fate"] = "summarized, quoted"
    return head


def _place(selection: Selection, index: int, row: int) -> int:
    """Where a kept or edited message stands in the items, the first time."""
    kept = np.flatnonzero(selection.item_rows == row)
    if len(kept):
        return int(kept[0])
    return next(at for at, item in enumerate(selection.items) if type(item) is Edited and item.index == index)


def describe(made: Comparison, row: int) -> str:
    """One line about a message."""
    view = made.view
    message = view.messages[row]
    kinds = [kind for kind, tokens in zip(KINDS, view.kinds[row].tolist(), strict=True) if tokens and kind not in ("framing", message.role)]
    result = message.result
    names = dict.fromkeys(call.name for call in message.calls)
    called = ", ".join(names) if names else (result.name or "") if result is not None else ""
    words = " + ".join(kinds).replace("_", " ") + (f" {one_line(called)[:80]}" if called else "")
    return " · ".join(filter(None, (f"#{message.index} {message.role}", words.strip(), f"{int(view.tokens[row]):,} tokens")))


def describe_insert(item: Any, tokens: int) -> str:
    """One line about a note or an added text."""
    if not isinstance(item, Note):
        return f"added text · {tokens:,} tokens · {one_line(item.reason)[:_SAID]}"
    quotes = f", quotes {len(item.quotes):,}" if len(item.quotes) else ""
    return f"note · {tokens:,} tokens · stands for {len(item.covers):,} message{'' if len(item.covers) == 1 else 's'}{quotes}"


def _choices(session: Session) -> list[list[str]]:
    """What can be added: each name with what to call it. An empty name stands for the session's policy as it is now."""
    return [["", f"{session.policy.info.name}, as it is set now"], *([name, name] for name in registry.names())]
