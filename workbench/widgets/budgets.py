"""Budgets: what a person may give, the first one, and the smallest that works."""

from __future__ import annotations

import operator
from dataclasses import replace

from ..errors import BudgetError
from ..ledger import View
from ..model import Budget
from ..policies.base import Policy, Request, smallest_window
from ..policies.registry import check_budget

#: Windows are searched up to this size when a policy does not say which is the smallest that works.
LARGEST_WINDOW = 100_000_000


def as_budget(budget: Budget | int, base: Budget) -> Budget:
    """A budget; an int is the window, the rest is that of `base`.

    Raises
    ------
    PolicyError
        A number is negative, or not a whole number.

    Examples
    --------
    >>> as_budget(32_000, Budget())
    Budget(max_tokens=32000, reserve_output_tokens=8192, safety_margin_tokens=2048)
    """
    if not isinstance(budget, Budget):
        whole = hasattr(budget, "__index__") and not isinstance(budget, bool)
        budget = replace(base, max_tokens=operator.index(budget) if whole else budget)  # a frame's numbers are numpy's
    check_budget(budget)
    return budget


def default_budget(policy: Policy, view: View) -> tuple[Budget, str]:
    """The budget of the first sight, and what to say about it.

    The default window of 128,000 if the session does not fit in it. If it fits, nothing would be removed and there
    would be nothing to see: then a round window that holds about half of the session, but not less than the
    policy needs.
    """
    budget = Budget()
    if view.total > budget.available:
        return budget, ""
    spent = budget.max_tokens - budget.available
    window = _round_up(view.fixed + (view.total - view.fixed) // 2 + spent)
    smallest = find_smallest_window(policy, Request(view, budget))
    if smallest is not None and window < smallest:
        window = _round_up(smallest)
    return replace(budget, max_tokens=window), "All of it fits in 128,000; this window holds about half, so that there is something to see."


def find_smallest_window(policy: Policy, request: Request) -> int | None:
    """The smallest window at which a policy answers, other numbers of the budget as they are."""
    if "budget" not in policy.promises:
        return None
    said = smallest_window(policy, request)
    if said is not None:
        return said

    def missing(window: int) -> BudgetError | None:
        try:
            policy.select(replace(request, budget=replace(request.budget, max_tokens=window)))
        except BudgetError as error:
            return error
        return None

    low, error = 0, missing(0)
    if error is None:
        return 0
    budget = request.budget
    guess = max(1, error.needed + budget.reserve_output_tokens + budget.safety_margin_tokens)
    while missing(guess) is not None:  # what is needed may itself grow with the window
        low, guess = guess, guess * 2
        if guess > LARGEST_WINDOW:
            return None
    high = guess
    if high - low > 1 and missing(high - 1) is not None:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if missing(middle) is not None else (low, middle)
    return high


def _round_up(number: int) -> int:
    """Up to two leading digits, so that a person can remember it."""
    step: int = 10 ** max(2, len(str(number)) - 2)
    return -(-number // step) * step
