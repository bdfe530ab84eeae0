"""Sentences that more than one view says."""

from __future__ import annotations

from ..errors import BudgetError, WorkbenchError
from ..policies.base import as_python as policy_as_python
from .session import Session


def problem_text(problem: WorkbenchError, smallest: int | None = None) -> str:
    """Why there is no selection, with the numbers, and the smallest window that works.

    Examples
    --------
    >>> error = BudgetError(12_000, 11_700, "fixed system and tools exceed context budget", detail="fixed part 12,000 > 11,700")
    >>> problem_text(error, 22_240)
    'fixed part 12,000 > 11,700 · smallest window that works: 22,240'
    """
    if not isinstance(problem, BudgetError):
        return str(problem)
    text = problem.detail or f"{problem.culprit}: {problem.needed:,} > {problem.available:,}"
    return text if smallest is None else f"{text} · smallest window that works: {smallest:,}"


def as_python(session: Session) -> str:
    """Python that gives exactly this selection. Names from the transcript stand in it as data (`repr`)."""
    transcript, budget = session.ledger.transcript, session.budget
    counter = session.ledger.counter.id
    path = transcript.source.path
    read = f"wb.read({path!r})" if path is not None else "t"
    given = [
        f"max_tokens={budget.max_tokens:_}",
        f"reserve_output_tokens={budget.reserve_output_tokens:_}",
        f"safety_margin_tokens={budget.safety_margin_tokens:_}",
    ]
    words = ["led", policy_as_python(session.policy), f"wb.Budget({', '.join(given)})", f"history={session.history!r}"]
    if session.thread != "main":
        words.append(f"thread={session.thread!r}")
    if session.pins:
        words.append(f"pins={sorted(session.pins)!r}")
    return f"import workbench as wb\n\nled = wb.count({read}, {counter!r})\nsel = wb.select({', '.join(words)})"
