"""The side panel: the note, the diff, why, what is lost, and the checks of the present selection.

Only the open tab's content crosses to the browser, each bounded; `refresh` is called when a drag has come to rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anywidget
import traitlets

from ..model import Message
from ..policies.base import FATES, Fate, Note, Selection
from ..validity import LEVELS, PROVIDERS, RULES, Finding
from .assets import css, esm
from .lost import lost
from .session import Session
from .texts import PAGE, clean, one_line, page, preview
from .wire import sent
from .words import problem_text

TABS = ("note", "diff", "why", "lost", "checks")
NOTES = 20  # notes shown in full
RUNS = 200  # rows of the diff
STEPS = 100  # lines of the decision log in a page
FINDINGS = 200  # rows of the checks, and of one rule
ROWS = 50
PROVIDER_TITLES = {"openai-chat": "OpenAI Chat", "openai-responses": "OpenAI Responses", "anthropic": "Anthropic"}
_SAID = 2_000  # characters of an explanation or a step


class Side(anywidget.AnyWidget):
    """What the selection did, in words.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none. Both ways.
    tab : str
        The open tab: note, diff, why, lost or checks.
    """

    _esm = traitlets.Unicode(esm("side")).tag(sync=True)
    _css = traitlets.Unicode(css("side")).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    tab = traitlets.Enum(TABS, "note").tag(sync=True)
    content = traitlets.Dict().tag(sync=True)
    alarms = traitlets.Int(-1).tag(sync=True)  # what matters to the own provider; -1: nothing was checked
    broken = traitlets.Int(0).tag(sync=True)  # of these, what the policy brought in

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self._start = 0
        self._cut: int | None = None  # the turn group in which the Lost tab asks
        super().__init__()
        self.refresh()
        self.observe(self._turn, "tab")
        self.on_msg(self._told)

    def refresh(self) -> None:
        """Show the open tab for what the session holds now."""
        session = self._session
        if session is None:
            return
        selection = session.selection
        if selection is None:
            problem = session.problem
            content: dict[str, Any] = {"problem": problem_text(problem, session.smallest_known) if problem is not None else ""}
        elif self.tab == "why":
            content = {"why": why(session, selection), "log": log_page(selection, self._start)}
        elif self.tab == "diff":
            content = {"diff": diff(selection)}
        elif self.tab == "lost":
            content = {"lost": lost(session, selection, self._cut)}
        elif self.tab == "checks":
            content = {"checks": checks(selection)}
        else:
            content = {"note": notes(selection), "why": why(session, selection)}
        with self.hold_sync():
            alarms = selection.alarms if selection is not None else None
            self.alarms = -1 if alarms is None else len(alarms)
            self.broken = sum(not finding.in_source for finding in alarms or ())
            self.content = {"tab": self.tab, **content}

    def close(self) -> None:
        """Free everything: no reference to the session stays."""
        self._session = None
        self.content = {}
        self.on_msg(self._told, remove=True)
        self.unobserve_all()
        super().close()

    def __repr__(self) -> str:
        return "<Side: closed>" if self._session is None else f"<Side: {self.tab}>"

    def _turn(self, _: object) -> None:
        self._start = 0
        self.refresh()

    def _told(self, _: object, content: Any, __: object) -> None:
        if not isinstance(content, dict):
            return
        if content.get("type") == "page" and type(content.get("start")) is int:
            self._start = max(0, content["start"])
            self.refresh()
        elif content.get("type") == "cut" and type(content.get("turn")) is int:
            self._cut = content["turn"] if content["turn"] > 0 else None
            self.refresh()


def notes(selection: Selection) -> dict[str, Any]:
    """The notes: how many, and of each a line about it and its text."""
    view = selection.request.view
    first = list(zip(selection.notes, selection.note_tokens, strict=True))[:NOTES]
    shown = [_note(note, size, sum(int(view.tokens[view.row_of[index]]) for index in note.covers)) for note, size in first]
    if len(selection.notes) > 1:
        for number, note in enumerate(shown, 1):
            note["head"] = f"Note {number}" + note["head"].removeprefix("One note")
    return {"notes": shown, "more": max(0, len(selection.notes) - NOTES), "none": _nothing_noted(selection)}


def _note(note: Note, size: int, covered: int) -> dict[str, Any]:
    text, total = _text(note.message)
    head = f"One note, {size:,} tokens, "
    if len(note.covers):
        head += f"stands for {len(note.covers):,} message{'' if len(note.covers) == 1 else 's'} ({covered:,} tokens)"
        head += f" · {_ratio(covered, size)}\u00a0:\u00a01" if size and covered >= size else ""
    else:
        head += "stands for no message"
    flag = f"{size - covered:,} tokens larger than what it stands for" if size > covered and len(note.covers) else ""
    return {"head": head, "flag": flag, "text": text, "more": max(0, total - PAGE)}


def _text(message: Message) -> tuple[str, int]:
    shown = page(message)
    return "\n".join(piece.text for piece in shown.pieces), shown.total


def _ratio(covered: int, size: int) -> str:
    ratio = covered / size
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _nothing_noted(selection: Selection) -> str:
    if selection.notes:
        return ""
    gone = selection.counts["dropped"]
    return f"No note: {gone:,} message{' is' if gone == 1 else 's are'} dropped without one." if gone else "No note: nothing was left out."


def why(session: Session, selection: Selection) -> dict[str, Any]:
    """Why the selected message has its fate."""
    index = session.selected
    if index is None:
        return {"title": "", "lines": ["Select a message to see why it is kept or not."]}
    row = selection.request.view.row_of.get(index)
    if row is None:
        return {"title": f"#{index}", "lines": ["This message is not in the history that is shown."]}
    fate = FATES[int(selection.fate_codes[row])]
    said = [clean(step.text[:_SAID]) for step in selection.steps if index in step.messages]
    return {"title": f"Why #{index} is {fate}", "lines": said[:STEPS] or ["no rule of this policy touched it"]}


def log_page(selection: Selection, start: int) -> dict[str, Any]:
    """A page of the decision log: text, number of messages, first message."""
    total = len(selection.steps)
    start = start if start < total else 0
    rows = [[clean(step.text[:_SAID]), len(step.messages), next(iter(step.messages), -1)] for step in selection.steps[start : start + STEPS]]
    return {"rows": rows, "start": start, "total": total, "size": STEPS}


def diff(selection: Selection) -> dict[str, Any]:
    """What the request was and what it is, as runs of messages of one fate and the notes where they stand."""
    view = selection.request.view
    runs = _runs(selection)
    for insert in sent(selection).inserts:
        words = f"stands for {insert.covers:,}, quotes {insert.quotes:,}" if insert.covers else ""
        runs.append(
            {
                "at": insert.at + 0.5,
                "fate": "note" if insert.is_note else "added",
                "what": "note" if insert.is_note else "added",
                "text": words,
                "tokens": f"+{insert.tokens:,}",
                "go": -1,
            }
        )
    runs.sort(key=lambda run: run["at"])
    head = f"{len(view.indices):,} messages, {selection.before_tokens:,} tokens → {len(selection.items):,} items, {selection.after_tokens:,} tokens"
    return {"head": head, "rows": runs[:RUNS], "more": max(0, len(runs) - RUNS)}


def _runs(selection: Selection) -> list[dict[str, Any]]:
    fates, what = selection.fate_codes.tolist(), sent(selection)
    edited = iter(what.edits)
    new_sizes = {row: next(edited) for row in what.rows.tolist() if fates[row] == Fate.EDITED}
    runs: list[dict[str, Any]] = []
    start = 0
    while start < len(fates):
        stop = start + 1
        while stop < len(fates) and fates[stop] == fates[start]:
            stop += 1
        runs.append(_run(selection, start, stop, new_sizes))
        start = stop
    return runs


def _run(selection: Selection, start: int, stop: int, new_sizes: dict[int, int]) -> dict[str, Any]:
    view, fate = selection.request.view, Fate(int(selection.fate_codes[start]))
    first, last = int(view.indices[start]), int(view.indices[stop - 1])
    tokens = int(view.tokens[start:stop].sum())
    size = f"{tokens:,}"
    if fate == Fate.EDITED:
        size = f"{tokens:,} → {sum(new_sizes.get(row, 0) for row in range(start, stop)):,}"
    elif fate != Fate.KEPT:
        size = f"−{tokens:,}"
    what = f"#{first}" if stop - start == 1 else f"#{first} – #{last}"
    text = preview(view.messages[start]).text if stop - start == 1 else f"{stop - start:,} messages"
    return {"at": start, "fate": FATES[fate], "what": what, "text": text, "tokens": size, "go": first}


def checks(selection: Selection) -> dict[str, Any]:
    """What the transcript's own provider would refuse: what the policy brought in, then what the history had before.

    After that, closed, what the other providers would refuse, and what is worth knowing.

    Returns
    -------
    dict
        ``own``: the own provider's name, or "". ``providers``: [name, what it would refuse, how much of it is new] each,
        the own one first. ``groups``: title, whether it begins open, number of findings, and its rules: [name, sentence,
        number, rows, more], each row [text, message to go to].
    """
    own, found = selection.provider, selection.findings
    order = sorted(PROVIDERS, key=lambda name: name != own)
    verdicts = []
    for name in order:
        refused = [item for item in found if item.provider in ("any", name) and LEVELS[item.rule] == "refused"]
        verdicts.append([PROVIDER_TITLES[name], len(refused), sum(not item.in_source for item in refused)])
    alarms = selection.alarms
    new = [item for item in alarms if not item.in_source]
    parts = [("With this policy" if len(new) < len(alarms) else "", new, True), ("In the history already", [item for item in alarms if item.in_source], False)]
    for name in order:
        if name != own:
            parts.append((PROVIDER_TITLES[name], [item for item in found if item.provider == name and LEVELS[item.rule] == "refused"], own is None))
    quiet = [item for item in found if LEVELS[item.rule] == "notice" and not item.in_source and (own is None or item.provider == own)]
    parts.append(("Worth knowing", quiet, False))
    groups, left = [], FINDINGS
    for title, items, is_open in parts:
        if items:
            rules, left = _rules(items, left)
            groups.append({"title": title, "open": is_open, "count": len(items), "rules": rules})
    return {"own": PROVIDER_TITLES[own] if own else "", "providers": verdicts, "groups": groups}


def _rules(items: Sequence[Finding], left: int) -> tuple[list[list[Any]], int]:
    """Findings by rule, with at most `left` rows; and how many rows are left."""
    by_rule: dict[tuple[str, str], list[Finding]] = {}
    for item in items:
        by_rule.setdefault((item.rule, item.provider), []).append(item)
    shown: list[list[Any]] = []
    for (rule, provider), found in by_rule.items():
        rows = [[one_line(item.text), _place(item)] for item in found[: min(ROWS, left)]]
        left -= len(rows)
        shown.append([one_line(rule).replace("_", " "), _sentence(rule, provider), len(found), rows, len(found) - len(rows)])
    return shown, left


def _place(finding: Finding) -> int:
    """The message to go to: of a call and its result, the result."""
    return -1 if not finding.messages else finding.messages[-1 if len(finding.messages) == 2 else 0]


def _sentence(rule: str, provider: str) -> str:
    return next((item.says for item in RULES if item.name == rule and (not item.providers or provider in item.providers)), "")
