"""``workbench select``: what one policy keeps of a transcript at one budget, and why."""

from __future__ import annotations

import dataclasses
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..errors import BudgetError, WorkbenchError
from ..ledger import View
from ..model import Budget, Message
from ..policies import Added, Kept, Note, Policy, Selection, params_of
from ..policies.base import FATES, Item
from .output import number, one_line, plain, table

_STEPS = 12  # steps and findings that a person sees; --json has all
#: Fate -> the letter of the strip and its colour: never by colour alone.
_STRIP = {"kept": ("█", "green"), "edited": ("▓", "cyan"), "summarized": ("▒", "yellow"), "dropped": ("·", "red")}


def document(policy: Policy, budget: Budget, outcome: Selection | WorkbenchError, *, whole: bool = True) -> dict[str, Any]:
    """The JSON of one selection, or of a budget that cannot hold it.

    Parameters
    ----------
    whole : bool
        With ``items`` and ``steps``: what is sent in order, and why.
    """
    head: dict[str, Any] = {
        "policy": policy.info.name,
        "params": params_of(policy),
        "budget": {**dataclasses.asdict(budget), "available": budget.available},
        "feasible": not isinstance(outcome, WorkbenchError),
    }
    if isinstance(outcome, BudgetError):
        return {**head, "needed": outcome.needed, "available": outcome.available, "culprit": outcome.culprit}
    if isinstance(outcome, WorkbenchError):  # the policy failed for another reason
        return {**head, "needed": None, "available": None, "culprit": None, "problem": str(outcome)}
    every = outcome.request.view.ledger.transcript.messages
    made = {
        **head,
        "before_tokens": outcome.before_tokens,
        "after_tokens": outcome.after_tokens,
        "own_estimate": {"before": outcome.own_before, "after": outcome.own_after},
        "counts": outcome.counts,
        "fates": list(outcome.fates),
        "indices": list(outcome.indices),
        "items": [item_document(item, every) for item in outcome.items] if whole else [],
        "notes": [
            {"text": note.message.text, "tokens": tokens, "covers": list(note.covers), "quotes": list(note.quotes)}
            for note, tokens in zip(outcome.notes, outcome.note_tokens, strict=True)
        ],
        "steps": [{"text": step.text, "messages": list(step.messages)} for step in outcome.steps] if whole else [],
        "findings": [
            {"provider": finding.provider, "rule": finding.rule, "messages": list(finding.messages), "text": finding.text} for finding in outcome.findings
        ],
    }
    return made if whole else {key: value for key, value in made.items() if key not in ("items", "steps")}


def item_document(item: Item, every: tuple[Message, ...]) -> dict[str, Any]:
    """One thing that is sent. Of an edited message: its new text, whose arguments were cleared, and which calls are left."""
    if isinstance(item, Kept):
        return {"keep": item.index}
    if isinstance(item, Note):
        return {"note": item.message.text, "role": item.role, "covers": list(item.covers), "quotes": list(item.quotes)}
    if isinstance(item, Added):
        return {"added": item.message.text, "role": item.message.role, "reason": item.reason}
    before = {call.id: call.arguments_raw for call in every[item.index].calls}
    cleared = [call.id for call in item.message.calls if call.arguments_raw == "{}" != before.get(call.id, "{}")]
    result = item.message.result
    return {
        "edit": item.index,
        "content": item.message.text if result is None else result.text,
        "args_cleared": bool(cleared),
        "args_cleared_ids": cleared,
        "calls_kept": [call.id for call in item.message.calls],
    }


def picture(title: str, policy: Policy, budget: Budget, outcome: Selection | BudgetError, width: int) -> RenderableType:
    """The same for a person: the numbers, a strip of the history, the notes' beginnings, the last steps, the findings."""
    params = ", ".join(f"{name}={value}" for name, value in params_of(policy).items())
    head = [
        Text(one_line(title, 120), style="bold"),
        Text(f"{policy.info.name}({params}) · window {number(budget.max_tokens)} − reserve {number(budget.reserve_output_tokens)}").append(
            f" − margin {number(budget.safety_margin_tokens)} = {number(budget.available)} for the prompt"
        ),
    ]
    if isinstance(outcome, BudgetError):
        return Group(*head, Text(f"This budget cannot hold: {one_line(outcome)}", style="bold red"))
    view = outcome.request.view
    parts: list[RenderableType] = [
        *head,
        Text(f"{number(outcome.before_tokens)} → {number(outcome.after_tokens)} tokens").append(
            f" (the policy's own estimate: {number(outcome.own_before)} → {number(outcome.own_after)})"
        ),
        strip(outcome, view, max(20, width - 8)),
        table(
            ["", "fate", "messages>", "tokens>"],
            [(Text(*_STRIP[fate]), fate, number(outcome.counts[fate]), number(outcome.fate_tokens[fate])) for fate in FATES if outcome.counts[fate]],
        ),
    ]
    for note in outcome.notes:
        quoted = f", {number(len(note.quotes))} of them quoted" if note.quotes else ""
        parts.append(Text(f"Note for {number(len(note.covers))} messages{quoted}:", style="bold"))
        parts.append(Text(plain(note.message.text, 600)))
    steps = list(outcome.steps)
    if steps:
        parts.append(Text("\nWhy" if len(steps) <= _STEPS else f"\nWhy (the first {_STEPS} of {len(steps):,} steps; --json has all)", style="bold"))
        parts += [Text(f"  {one_line(step.text, 300)}") for step in steps[:_STEPS]]
    if outcome.alarms:
        few = len(outcome.alarms) <= _STEPS
        parts.append(Text("\nFindings" if few else f"\nFindings (the first {_STEPS} of {len(outcome.alarms):,}; --json has all)", style="bold"))
        parts += [Text(f"  {one_line(finding.text, 200)}", style="red") for finding in outcome.alarms[:_STEPS]]
    return Group(*parts)


def strip(selection: Selection, view: View, width: int) -> Text:
    """The history as a line of `width` letters, and below it what is sent, on the same scale."""
    filled = min(width, round(selection.after_tokens / max(selection.before_tokens, 1) * width))
    return Text("before  ").append_text(fates_line(selection, view, width)).append("\nafter   ").append("█" * filled, style="green")


def fates_line(selection: Selection, view: View, width: int) -> Text:
    """The history as `width` letters, as wide as its tokens; each letter is the fate that holds most of it."""
    weights = [dict.fromkeys(FATES, 0.0) for _ in range(width)]
    total = max(int(view.tokens.sum()), 1)
    at = 0
    for fate, tokens in zip(selection.fates, view.tokens.tolist(), strict=True):
        start, at = at * width / total, at + tokens
        end = at * width / total
        for cell in range(int(start), min(int(end) + 1, width)):
            weights[cell][fate] += min(end, cell + 1) - max(start, cell)
    line = Text()
    for weight in weights:
        letter, colour = _STRIP[max(weight, key=weight.__getitem__)]
        line.append(letter, style=colour)
    return line
