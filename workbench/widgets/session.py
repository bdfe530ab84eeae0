"""The state behind every view: what is asked, and the one answer that all of them show.

Pure Python: the widgets read it and are told when it changes, and nothing here knows a widget.
"""

from __future__ import annotations

import asyncio
import math
import operator
import time
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import WorkbenchError
from ..ledger import Ledger, View
from ..model import MAIN, Budget, History
from ..policies.base import Policy, Request, Selection, params_of
from ..policies.registry import as_pins, as_policy
from .budgets import as_budget, default_budget, find_smallest_window

#: A selection that takes longer than this (seconds) is not made again for every value of a drag.
QUICK = 0.02
#: Note, diff, why and charts follow the last step after this long (seconds); the rule allows 0.15.
SETTLE = 0.1


class Session:
    """One transcript under one policy and one budget, with whatever they give: a selection, or the reason why none.

    Every setter may be called at any time; the last value always wins. A cheap policy answers at once. An expensive
    one answers at most half of the time while an event loop runs, so that a burst of values does not pile up; reading
    `selection` always gives the answer for the present values.

    Parameters
    ----------
    policy : str or Policy
        A name or a policy with its parameters.
    budget : Budget, int or None
        An int is the window. None picks one at which there is something to see (`default_budget`).
    """

    def __init__(
        self,
        ledger: Ledger,
        policy: str | Policy = "scv",
        budget: Budget | int | None = None,
        *,
        history: History = "full",
        thread: str = MAIN,
        pins: Iterable[int] = (),
    ) -> None:
        if all(item.id != thread for item in ledger.transcript.threads):
            known = ", ".join(item.id for item in ledger.transcript.threads[:10])
            raise WorkbenchError(f"no thread {str(thread)[:80]!r}; this transcript has {known}")
        self._ledger = ledger
        self._thread = thread
        self._policy = as_policy(policy)
        self._history = history
        self._pins: frozenset[int] = frozenset()
        self._selected: int | None = None
        self._on_step: list[Callable[[], None]] = []
        self._on_settle: list[Callable[[], None]] = []
        self._compute_timer: asyncio.TimerHandle | None = None
        self._settle_timer: asyncio.TimerHandle | None = None
        self._stale = True
        self._outcome: Selection | WorkbenchError | None = None
        self._cost = 0.0
        self._finished = -math.inf
        self._smallest: tuple[object, int | None] = (None, None)
        self.recomputed = 0
        self.changes = 0
        self._check_history(history)
        self.budget_hint = ""
        self._budget_given = budget is not None
        self._budget = as_budget(budget, Budget()) if budget is not None else self._first_budget()
        self._pins = self._check_pins(pins)
        self._picks_budget = not self._budget_given
        self._first = (self._policy, self._budget, self._history, self.budget_hint)

    # What is asked.

    @property
    def ledger(self) -> Ledger:
        """The counted transcript. Set to another ledger of the same transcript when better counts are there."""
        return self._ledger

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        if not isinstance(ledger, Ledger) or ledger.transcript is not self._ledger.transcript:
            raise WorkbenchError("the ledger counts another transcript; make a new Workbench for it")
        self._ledger = ledger
        if not self._budget_given:
            self._budget = self._first_budget()
            self._first = (self._first[0], self._budget, self._first[2], self.budget_hint)
        self._changed()

    @property
    def thread(self) -> str:
        """Id of the thread that is shown."""
        return self._thread

    @property
    def histories(self) -> tuple[History, ...]:
        """``("full", "live")`` where a real compaction exists, else ``("full",)``."""
        return ("full", "live") if self._ledger.transcript.compacted(self._thread) else ("full",)

    @property
    def history(self) -> History:
        """Which history is the input."""
        return self._history

    @history.setter
    def history(self, history: History) -> None:
        self.change(history=history)

    @property
    def policy(self) -> Policy:
        """The policy with its parameters."""
        return self._policy

    @policy.setter
    def policy(self, policy: str | Policy) -> None:
        self.change(policy=policy)

    @property
    def budget(self) -> Budget:
        """What a request may hold."""
        return self._budget

    @budget.setter
    def budget(self, budget: Budget | int) -> None:
        self.change(budget=budget)

    @property
    def pins(self) -> frozenset[int]:
        """Messages that must stay."""
        return self._pins

    @pins.setter
    def pins(self, pins: Iterable[int]) -> None:
        checked = self._check_pins(pins)
        if checked != self._pins:
            self._pins = checked
            self._changed()

    @property
    def selected(self) -> int | None:
        """The message that all views point at, or None."""
        return self._selected

    @selected.setter
    def selected(self, index: int | None) -> None:
        if index is not None:
            try:
                index = operator.index(index)  # a frame's index is numpy's
            except TypeError:
                raise WorkbenchError(f"selected = {index!r}: give a message's index, or None") from None
            index = None if index < 0 else index
        if index is not None and index >= len(self._ledger.transcript.messages):
            raise WorkbenchError(f"there is no message {index}; choose 0 to {len(self._ledger.transcript.messages) - 1}")
        if index != self._selected:
            self._selected = index
            self._settle_soon()

    def change(self, *, policy: str | Policy | None = None, budget: Budget | int | None = None, history: History | None = None) -> None:
        """Set several at once: they are checked first, then answered together.

        Raises
        ------
        WorkbenchError
            One of them is not allowed; nothing is changed.
        """
        new_policy = self._policy if policy is None else as_policy(policy)
        new_budget = self._budget if budget is None else as_budget(budget, self._budget)
        new_history = history or self._history
        self._check_history(new_history)
        if new_budget != self._budget:
            self._budget_given, self.budget_hint = True, ""
        if (new_policy, new_budget, new_history) != (self._policy, self._budget, self._history):
            if new_history != self._history:
                self._pins &= frozenset(self._ledger.view(self._thread, new_history).row_of)
            self._policy, self._budget, self._history = new_policy, new_budget, new_history
            self._changed()

    def reset(self) -> None:
        """Go back to the policy, budget and history of the start; pins and the selected message stay."""
        policy, budget, history, hint = self._first
        self.change(policy=policy, budget=budget, history=history)
        self._budget_given, self.budget_hint = not self._picks_budget, hint

    # What comes of it.

    @property
    def view(self) -> View:
        """The rows that the policy acts on."""
        return self._ledger.view(self._thread, self._history)

    @property
    def request(self) -> Request:
        """What the policy is asked."""
        return Request.on(self.view, self._budget, self._pins)

    @property
    def selection(self) -> Selection | None:
        """The answer for the present values; None if the policy cannot give one (see `problem`)."""
        self.flush()
        return self._outcome if isinstance(self._outcome, Selection) else None

    @property
    def problem(self) -> WorkbenchError | None:
        """Why there is no selection: a `BudgetError` with its numbers, or another error of the policy."""
        self.flush()
        return self._outcome if isinstance(self._outcome, WorkbenchError) else None

    @property
    def smallest_window(self) -> int | None:
        """The smallest window at which the policy can answer; None if it does not promise the budget, or none works.

        The policy's own ``smallest_window(request)`` where it has one; else found by bisection.
        """
        if self._smallest[0] != self._smallest_key():
            self._smallest = (self._smallest_key(), self._find_smallest())
        return self._smallest[1]

    @property
    def smallest_known(self) -> int | None:
        """`smallest_window` as far as known without work: None while it belongs to other values. It is found at the next settling."""
        return self._smallest[1] if self._smallest[0] == self._smallest_key() else None

    def _smallest_key(self) -> object:
        budget = self._budget
        return (id(self._ledger), self._policy, budget.reserve_output_tokens, budget.safety_margin_tokens, self._pins, self._history)

    def _find_smallest(self) -> int | None:
        try:
            return find_smallest_window(self._policy, self.request)
        except WorkbenchError:  # the policy cannot answer at any window; `problem` says why
            return None

    @property
    def params(self) -> dict[str, Any]:
        """The policy's parameters by name."""
        return params_of(self._policy)

    # Telling the views.

    def on_step(self, call: Callable[[], None]) -> None:
        """Call after every new answer."""
        self._on_step.append(call)

    def on_settle(self, call: Callable[[], None]) -> None:
        """Call when no new answer has come for a moment, and when another message is selected."""
        self._on_settle.append(call)

    def flush(self, *, settle: bool = False) -> None:
        """Make the answer for the present values now, if that is still to be done."""
        if self._stale:
            self._compute()
        if settle and self._settle_timer is not None:
            self._settle_now()

    def close(self) -> None:
        """Forget every listener and whatever was still to be done."""
        for timer in (self._compute_timer, self._settle_timer):
            if timer is not None:
                timer.cancel()
        self._compute_timer = self._settle_timer = None
        self._on_step.clear()
        self._on_settle.clear()

    def _changed(self) -> None:
        self._stale = True
        self.changes += 1
        loop = running_loop()
        if loop is None or self._cost < QUICK:
            self._compute()
        elif self._compute_timer is None:
            rest = self._cost - (time.perf_counter() - self._finished)
            self._compute_timer = loop.call_later(max(0.0, rest), self._compute)

    def _compute(self) -> None:
        if self._compute_timer is not None:
            self._compute_timer.cancel()
            self._compute_timer = None
        if not self._stale:
            return
        self._stale = False
        start = time.perf_counter()
        try:
            self._outcome = self._policy.select(self.request)
        except WorkbenchError as error:
            self._outcome = error.with_traceback(None)  # its frames would keep the transcript alive
        self._finished = time.perf_counter()
        self._cost = self._finished - start
        self.recomputed += 1
        for call in tuple(self._on_step):
            call()
        self._settle_soon()

    def _settle_soon(self) -> None:
        if self._settle_timer is not None:
            self._settle_timer.cancel()
            self._settle_timer = None
        loop = running_loop()
        if loop is None:
            self._settle_now()
        else:
            self._settle_timer = loop.call_later(SETTLE, self._settle_now)

    def _settle_now(self) -> None:
        if self._settle_timer is not None:
            self._settle_timer.cancel()
            self._settle_timer = None
        self.flush()
        if self._cost < QUICK or isinstance(self._outcome, WorkbenchError):  # a search asks the policy about 25 times
            _ = self.smallest_window
        for call in tuple(self._on_settle):
            call()

    # Checks.

    def _first_budget(self) -> Budget:
        budget, self.budget_hint = default_budget(self._policy, self.view)
        return budget

    def _check_history(self, history: History) -> None:
        if history not in self.histories:
            raise WorkbenchError(f"history {history!r}: this thread has {' and '.join(map(repr, self.histories))}")

    def _check_pins(self, pins: Iterable[int]) -> frozenset[int]:
        wanted = as_pins(pins)
        unknown = sorted(wanted - self.view.row_of.keys())
        if unknown:
            raise WorkbenchError(f"pin {unknown[0]}: there is no such message in this history")
        return wanted


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs this code (a kernel's), or None in plain Python."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
