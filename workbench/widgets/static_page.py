"""The workbench without a kernel: HTML and text with the numbers of the present selection, every text escaped."""

from __future__ import annotations

import html

from .controls import result_rows
from .header import facts_of
from .session import Session
from .side import notes
from .static_form import strip_svg
from .words import problem_text

_NOTE = 4_000  # characters of a note


def static_html(session: Session) -> str:
    """What a saved notebook, nbconvert or a code host shows."""
    parts = [f"<p><b>{_safe(facts_of(session)['name'])}</b> {_safe(_about(session))}</p>"]
    if session.problem is not None:
        parts.append(f"<p><b>{_safe(problem_text(session.problem, session.smallest_known))}</b></p>")
    selection = session.selection
    if selection is not None:
        parts.append(strip_svg(selection))
    rows = "".join(
        f"<tr><th style='text-align:left'>{_safe(name)}</th><td style='text-align:right'>{_safe(value)}</td></tr>" for name, value, _ in result_rows(session)
    )
    parts.append(f"<table>{rows}</table>")
    if selection is not None:
        for note in notes(selection)["notes"]:
            parts.append(f"<details><summary>{_safe(note['head'])}</summary><pre>{_safe(note['text'][:_NOTE])}</pre></details>")
    return f"<div>{''.join(parts)}</div>"


def static_text(session: Session) -> str:
    """The same numbers in lines of text."""
    lines = [f"{facts_of(session)['name']} · {_about(session)}"]
    if session.problem is not None:
        lines.append(problem_text(session.problem, session.smallest_known))
    lines += [f"{name:<24}{value:>20}" for name, value, _ in result_rows(session)]
    return "\n".join(lines)


def _about(session: Session) -> str:
    facts, budget = facts_of(session), session.budget
    asked = f"{session.policy!r}, window {budget.max_tokens:,} − {budget.reserve_output_tokens:,} − {budget.safety_margin_tokens:,} = {budget.available:,}"
    return f"{' · '.join(facts['words'])} · {facts['tokens']} tokens ({facts['counter']}) · {asked}"


def _safe(text: str) -> str:
    return html.escape(text)
