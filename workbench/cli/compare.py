"""``workbench compare``: several policies at one budget, side by side, and where they part."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..errors import WorkbenchError
from ..model import KINDS
from ..policies import Comparison, Selection
from ..policies.base import FATES
from ..policies.compare import WAYS, sent_kinds
from . import select
from .output import number, one_line, table

_SHOWN = 12  # stretches of messages that a person sees; --json has every message
_WAY = {"sent": "sent by some only", "text": "sent with other words", "trace": "noted or dropped"}


def document(made: Comparison) -> dict[str, Any]:
    """The JSON of a comparison: each policy's selection without items and steps, and the messages on which they part."""
    return {
        "policies": [
            {"label": label, **select.document(policy, made.budget, outcome, whole=False)}
            for label, policy, outcome in zip(made.labels, made.policies, made.outcomes, strict=True)
        ],
        "differ": [{"message": item.index, "way": item.way, "fates": dict(item.fates)} for item in made.differ],
    }


def picture(title: str, made: Comparison, width: int) -> RenderableType:
    """The same for a person: a strip per policy, a table of numbers, tokens by kind, and where they part."""
    budget, answers = made.budget, made.selections
    parts: list[RenderableType] = [
        Text(one_line(title, 120), style="bold"),
        Text(f"{number(made.view.total)} tokens, {number(len(made.view.indices))} messages · window {number(budget.max_tokens)}").append(
            f" − reserve {number(budget.reserve_output_tokens)} − margin {number(budget.safety_margin_tokens)} = {number(budget.available)} for the prompt"
        ),
    ]
    names = [one_line(label, 40) for label in made.labels]
    wide = max(map(len, names)) + 2
    for name, (_, outcome) in zip(names, made, strict=True):
        if isinstance(outcome, Selection):
            parts.append(Text(name.ljust(wide)).append_text(select.fates_line(outcome, made.view, max(20, width - wide))))
    parts.append(table(["", *(f"{name}>" for name in names)], _rows(made)))
    parts += [
        Text(f"{name}: {one_line(outcome)}", style="bold red") for name, (_, outcome) in zip(names, made, strict=True) if isinstance(outcome, WorkbenchError)
    ]
    if len(answers) > 1:
        parts += _parting(made)
    return Group(*parts)


def _rows(made: Comparison) -> list[list[str]]:
    answers = [outcome if isinstance(outcome, Selection) else None for outcome in made.outcomes]
    before = made.view.total

    def row(name: str, of: Any) -> list[str]:
        return [name, *("–" if answer is None else of(answer) for answer in answers)]

    kinds = [None if answer is None else sent_kinds(answer) for answer in answers]
    found = [
        row("tokens sent", lambda answer: number(answer.after_tokens)),
        row("of all", lambda answer: f"{answer.after_tokens / max(before, 1):.1%}"),
        row("its own estimate", lambda answer: number(answer.own_after)),
        *(row(fate, lambda answer, fate=fate: number(answer.counts[fate])) for fate in FATES),
        row("notes", lambda answer: number(len(answer.notes))),
        row("tokens of notes", lambda answer: number(sum(answer.note_tokens))),
        row("findings", lambda answer: number(len(answer.alarms))),
    ]
    for kind in KINDS:
        if any(tokens is not None and tokens[kind] for tokens in kinds):
            found.append([f"  {kind.replace('_', ' ')}", *("–" if tokens is None else number(tokens[kind]) for tokens in kinds)])
    return found


def _parting(made: Comparison) -> list[RenderableType]:
    rows = made.differ_rows
    if not len(rows):
        return [Text("They do not part: each message has the same fate everywhere.")]
    runs = made.stretches
    several = f", in {number(len(runs))} stretches" if len(runs) > 1 else ""
    lines: list[RenderableType] = [Text(f"They part on {number(len(rows))} of {number(len(made.view.indices))} messages{several}:", style="bold")]
    shown = []
    for start, stop in runs[:_SHOWN]:
        first, last = int(made.view.indices[start]), int(made.view.indices[stop - 1])
        fates = [answer.fates[start] for answer in made.selections.values()]
        shown.append([f"#{first}" if stop - start == 1 else f"#{first} – #{last}", *fates, _WAY[WAYS[made.way_codes[start] - 1]]])
    lines.append(table(["messages", *(one_line(label, 40) for label in made.selections), ""], shown))
    if len(runs) > _SHOWN:
        lines.append(Text(f"and {number(len(runs) - _SHOWN)} more; --json has every message"))
    return lines
