"""What a policy is, and what it is asked. All that a policy's file needs is here or imported here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from ..ledger import Ledger, View
from ..model import Budget, Call, Message
from ..tokens.base import Counter
from .items import FATES, Added, Edited, Event, Fate, Item, Kept, Note, SideCall, Step, Steps
from .params import as_python, check_params, field_of, param, params_of, parse_param
from .selection import Selection, derive_fates, kept_items, make_selection, row_indices

__all__ = [
    "FATES",
    "PROMISES",
    "Added",
    "Cause",
    "Edited",
    "Event",
    "Fate",
    "Item",
    "Kept",
    "Note",
    "Phase",
    "Policy",
    "PolicyInfo",
    "Request",
    "Selection",
    "SideCall",
    "Step",
    "Steps",
    "as_python",
    "check_params",
    "derive_fates",
    "field_of",
    "kept_items",
    "limit_of",
    "make_selection",
    "param",
    "params_of",
    "parse_param",
    "row_indices",
    "smallest_window",
]

Phase = Literal["before_user", "after_tool"]
Cause = Literal["routine", "overflow", "manual", "idle", "model_change"]
#: What a policy may promise; tests hold it to each.
PROMISES = frozenset({"budget", "pairs", "last_user", "idempotent", "monotone"})
DEFAULT_BUDGET = Budget()


@dataclass(frozen=True)
class Request:
    """One model request that is about to be made.

    Parameters
    ----------
    view : View
        The thread's messages so far with their counted tokens, and the fixed part.
    calls : tuple of Call
        The recorded calls so far, with usage and time stamps.
    now : int or None
        UTC epoch milliseconds.
    pins : frozenset of int
        Messages that must stay.
    """

    view: View
    budget: Budget = DEFAULT_BUDGET
    calls: tuple[Call, ...] = ()
    now: int | None = None
    model: str | None = None
    phase: Phase = "before_user"
    cause: Cause = "routine"
    pins: frozenset[int] = frozenset()

    @classmethod
    def on(cls, view: View, budget: Budget = DEFAULT_BUDGET, pins: frozenset[int] = frozenset()) -> Request:
        """The request on all messages of a view, with all that is recorded of its calls. That is looked up once for a view."""
        transcript = view.ledger.transcript
        calls = view.memo.get("calls", lambda: tuple(call for call in transcript.calls if call.thread == view.thread))
        now = view.memo.get("now", lambda: max((message.ts for message in view.messages if message.ts is not None), default=None))
        return cls(view, budget, calls, now, transcript.model, pins=pins)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The rows, leading system messages included."""
        return self.view.messages

    @property
    def ledger(self) -> Ledger:
        """The ledger that counted them."""
        return self.view.ledger

    @property
    def counter(self) -> Counter:
        """The counter that counted them."""
        return self.view.ledger.counter

    @property
    def fixed(self) -> int:
        """Tokens of the fixed part: system text, tools, leading system messages, request framing."""
        return self.view.fixed


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """Where a policy comes from.

    Parameters
    ----------
    name : str
        As typed: ``scv``, ``langchain.trim_messages``.
    origin, version, as_of : str
        What it is modelled on, which version, and the day it was checked.
    evidence : str
        How its faithfulness is known: "golden vectors of the original program".
    mechanisms : tuple of str
        For grouping: ``newest turns``, ``note``.
    persistent : bool
        True if it goes on from the state of the selection before.
    limit : str
        What bounds it: ``budget``, or its own words ("nothing is ever removed"), with the names of parameters in
        braces ("{max_messages} messages"). `limit_of` fills them in.
    """

    name: str
    title: str
    summary: str
    origin: str = "Context Workbench"
    version: str = ""
    as_of: str = ""
    evidence: str = ""
    mechanisms: tuple[str, ...] = ()
    persistent: bool = False
    limit: str = "budget"


class Policy(Protocol):
    """Chooses what one model request carries.

    A policy is a frozen dataclass of its parameters, each made with `param`. The constructor checks them and does no
    other work.
    """

    info: ClassVar[PolicyInfo]
    promises: ClassVar[frozenset[str]]

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        """Choose.

        Parameters
        ----------
        previous : Selection, optional
            The selection of the request before. A view policy ignores it; a persistent one goes on from its state.

        Raises
        ------
        BudgetError
            It promises the budget and cannot hold it.
        """
        ...


def limit_of(policy: Policy) -> str | None:
    """What bounds a policy if the budget does not; None if it does.

    Examples
    --------
    >>> from workbench.policies import Kernel
    >>> limit_of(Kernel(max_messages=1_200))
    '1,200 messages'
    """
    limit = policy.info.limit
    if limit == "budget":
        return None
    for name, value in params_of(policy).items():
        limit = limit.replace("{" + name + "}", f"{value:,}" if isinstance(value, int) else str(value))
    return limit


def smallest_window(policy: Policy, request: Request) -> int | None:
    """The smallest window at which a policy answers, the other numbers of the request's budget as they are.

    A policy that promises the budget may know it: it then has a method ``smallest_window(request) -> int | None``.

    Returns
    -------
    int or None
        None if the policy does not say.
    """
    say = getattr(policy, "smallest_window", None)
    return None if say is None else say(request)
