"""What a policy is asked, what it answers, and the one place where an answer is made and checked."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, overload

import numpy as np
import numpy.typing as npt

from ..errors import PolicyError
from ..ledger import Ledger, View
from ..model import Budget, Call, Message
from ..tokens.base import Counter, Ints
from ..validity import Finding, check_pairs

if TYPE_CHECKING:
    import pandas as pd

Phase = Literal["before_user", "after_tool"]
Cause = Literal["routine", "overflow", "manual", "idle", "model_change"]
#: What a policy may promise; tests hold it to each.
PROMISES = frozenset({"budget", "pairs", "last_user", "idempotent", "monotone"})


class Fate(enum.IntEnum):
    """What became of a message. The values are the bytes that cross to the browser."""

    KEPT = 0
    EDITED = 1
    SUMMARIZED = 2
    DROPPED = 3


FATES = tuple(fate.name.lower() for fate in Fate)


@dataclass(frozen=True, slots=True)
class Kept:
    """A message that is sent as it is."""

    index: int


@dataclass(frozen=True, slots=True)
class Edited:
    """A message that is sent changed."""

    index: int
    message: Message


@dataclass(frozen=True, slots=True)
class Note:
    """A text that stands for removed history.

    Parameters
    ----------
    covers : sequence of int
        Messages that it stands for.
    quotes : sequence of int
        Messages whose words it holds.
    role : str
        The origin's own word for its role.
    """

    message: Message
    covers: Sequence[int]
    quotes: Sequence[int]
    role: str


@dataclass(frozen=True, slots=True)
class Added:
    """A text that is neither history nor a note: an acknowledgement, "continue", a file read again."""

    message: Message
    reason: str


Item = Kept | Edited | Note | Added


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the decision log, and the messages that it decided about."""

    text: str
    messages: Sequence[int] = ()


class Steps(Sequence[Step]):
    """A decision log that is written when somebody reads it: a drag needs the choice, not the prose."""

    def __init__(self, write: Callable[[], Iterable[Step]]) -> None:
        self._write = write

    @cached_property
    def _steps(self) -> tuple[Step, ...]:
        return tuple(self._write())

    @overload
    def __getitem__(self, at: int) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Step]: ...
    def __getitem__(self, at: int | slice) -> Step | Sequence[Step]:
        return self._steps[at]

    def __len__(self) -> int:
        return len(self._steps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._steps == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._steps)


@dataclass(frozen=True, slots=True)
class Event:
    """A compaction that the policy made for this request. Tokens are in the policy's own estimate."""

    kind: str
    trigger: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class SideCall:
    """A request that the policy itself makes, for example to a summariser."""

    purpose: str
    prompt_tokens: int
    output_tokens: int
    warm: bool = False


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
    budget: Budget = Budget()
    calls: tuple[Call, ...] = ()
    now: int | None = None
    model: str | None = None
    phase: Phase = "before_user"
    cause: Cause = "routine"
    pins: frozenset[int] = frozenset()

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
        What bounds it: ``budget``, or its own words ("nothing is ever removed").
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


def param(
    default: Any,
    *,
    label: str,
    help: str,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
    follows: Literal["window", "available"] | None = None,
    choices: Sequence[Any] = (),
    ours: bool = False,
) -> Any:
    """A policy's parameter, with all that a control or ``--set`` needs to know.

    Parameters
    ----------
    low, high : float, optional
        Allowed range, both ends included. The range of a slider is this one.
    follows : {"window", "available"}, optional
        The budget's number that the field takes while it is None.
    ours : bool
        True if the default is a workbench default and not the origin's.
    """
    meta = {"label": label, "help": help, "unit": unit, "low": low, "high": high, "step": step, "follows": follows, "choices": tuple(choices), "ours": ours}
    return field(default=default, metadata=meta)


def params_of(policy: Policy) -> dict[str, Any]:
    """The parameters of a policy by name, JSON-serialisable."""
    return {item.name: getattr(policy, item.name) for item in dataclasses.fields(policy)}  # type: ignore[arg-type]


def as_python(policy: Policy) -> str:
    """The Python that makes this policy: only what differs from the defaults is named."""
    given = [f"{item.name}={getattr(policy, item.name)!r}" for item in dataclasses.fields(policy) if getattr(policy, item.name) != item.default]  # type: ignore[arg-type]
    return f"wb.policies.{type(policy).__name__}({', '.join(given)})"


def check_params(policy: Policy) -> None:
    """Check each parameter against its own metadata. Called from ``__post_init__``.

    Raises
    ------
    PolicyError
        A value is of another type or outside its range.
    """
    for item in dataclasses.fields(policy):  # type: ignore[arg-type]
        value, meta = getattr(policy, item.name), item.metadata
        where = f"{policy.info.name}.{item.name}"
        if meta["choices"] and value not in meta["choices"]:
            raise PolicyError(f"{where} = {value!r}: choose one of {', '.join(map(str, meta['choices']))}")
        if value is None or meta["choices"]:
            continue
        want = (int, float) if isinstance(item.default, float) else type(item.default) if item.default is not None else int
        if not isinstance(value, want) or (isinstance(value, bool) and want is not bool):
            raise PolicyError(f"{where} = {value!r}: give {_TYPE_WORD.get(type(item.default), 'a whole number')}")
        low, high = meta["low"], meta["high"]
        if (low is not None and value < low) or (high is not None and value > high):
            raise PolicyError(f"{where} = {value!r}: allowed are {low if low is not None else '…'} to {high if high is not None else '…'}")


_TYPE_WORD = {bool: "true or false", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Selection:
    """What one request carries, and why. Made by `make_selection`.

    Parameters
    ----------
    items : tuple of Kept, Edited, Note or Added
        In the order sent.
    fate_codes : uint8 array, shape (n,)
        One `Fate` per row of the request's view.
    before_tokens, after_tokens : int
        Fixed part and rows, in the ledger's counter; reserve and margin are not in them.
    own_before, own_after : int
        The same in the policy's own estimate.
    state : mapping
        What a persistent policy remembers: frozen, JSON-serialisable. Empty for a view policy.
    """

    policy: Policy
    request: Request
    items: tuple[Item, ...]
    fate_codes: npt.NDArray[np.uint8]
    before_tokens: int
    after_tokens: int
    own_before: int
    own_after: int
    item_tokens: Ints
    steps: Sequence[Step] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    event: Event | None = None
    side_calls: tuple[SideCall, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(f"{number:,} {name}" for name, number in self.counts.items() if number)
        return f"<Selection {self.policy!r}: {self.before_tokens:,} → {self.after_tokens:,} tokens; {counts or 'no messages'}>"

    @cached_property
    def fates(self) -> tuple[str, ...]:
        """Kept, edited, summarized or dropped: one word per row, in order."""
        return tuple(FATES[code] for code in self.fate_codes.tolist())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Messages by fate; they sum to all rows."""
        return dict(zip(FATES, np.bincount(self.fate_codes, minlength=len(FATES)).tolist(), strict=True))

    @cached_property
    def fate_tokens(self) -> dict[str, int]:
        """Tokens of the source's rows by fate; they sum to all rows' tokens."""
        sums = np.bincount(self.fate_codes, weights=self.request.view.tokens, minlength=len(FATES))
        return dict(zip(FATES, sums.astype(np.int64).tolist(), strict=True))

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """The notes, in the order sent."""
        return tuple(item for item in self.items if type(item) is Note)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """What is sent, in order."""
        every = self.request.view.ledger.transcript.messages
        return tuple(every[item.index] if type(item) is Kept else item.message for item in self.items)

    @cached_property
    def indices(self) -> tuple[int, ...]:
        """Indices of the kept and edited messages, in the order sent."""
        return tuple(item.index for item in self.items if type(item) is Kept or type(item) is Edited)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the list that is sent, and whether it is over the window.

        The window is over when the counted tokens and the reserve are more than it holds: the safety margin is
        there for the error of the estimate, so using it is no breach.
        """
        budget = self.request.budget
        over = self.after_tokens + budget.reserve_output_tokens - budget.max_tokens
        window = (Finding("any", "over_window", (), f"over window by {over:,} tokens"),) if over > 0 else ()
        return window + check_pairs(self.messages)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per message of the history. See `frames.selection`."""
        from .. import frames

        return frames.selection(self)

    def explain(self, index: int) -> str:
        """Say why message `index` has its fate.

        Raises
        ------
        PolicyError
            The message is not in the chosen thread and history.
        """
        row = self.request.view.row_of.get(index)
        if row is None:
            raise PolicyError(f"message {index} is not in thread {self.request.view.thread!r}, history {self.request.view.history!r}; choose one of its rows")
        said = [step.text for step in self.steps if index in step.messages]
        return f"#{index} is {self.fates[row]}: " + (" ".join(said) if said else "no rule of this policy touched it.")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self)}


def kept_items(view: View) -> tuple[Kept, ...]:
    """One `Kept` per row of a view; made once, so that a selection only slices it."""
    return view.memo.get("kept_items", lambda: tuple(Kept(index) for index in view.indices.tolist()))


def derive_fates(view: View, items: Iterable[Item]) -> npt.NDArray[np.uint8]:
    """The fates that a list of items gives to the rows of a view, shape (n,).

    Kept or edited if it is in the items; else summarized if a note covers it; else dropped.
    """
    fates = np.full(len(view.indices), Fate.DROPPED, np.uint8)
    rows = view.row_of
    sent: dict[int, Fate] = {}
    for item in items:
        if type(item) is Note:
            for index in item.covers:
                fates[rows[index]] = Fate.SUMMARIZED
        elif type(item) is Kept:
            sent.setdefault(item.index, Fate.KEPT)
        elif type(item) is Edited:
            sent[item.index] = Fate.EDITED
    for index, fate in sent.items():
        fates[rows[index]] = fate
    return fates


def make_selection(
    policy: Policy,
    request: Request,
    items: Sequence[Item],
    *,
    own: tuple[int, int],
    fates: npt.NDArray[np.uint8] | None = None,
    steps: Sequence[Step] = (),
    state: Mapping[str, Any] | None = None,
    event: Event | None = None,
    side_calls: tuple[SideCall, ...] = (),
) -> Selection:
    """Make a `Selection`: derive its fates and count its new texts.

    Parameters
    ----------
    own : tuple of int
        Tokens before and after in the policy's own estimate, without reserve and margin.
    fates : uint8 array, optional
        Shape (n,). Given by a policy that knows them already; must equal `derive_fates`.
    """
    view = request.view
    items = tuple(items)
    tokens = np.empty(len(items), np.int64)
    every = view.ledger.message_tokens
    new = [at for at, item in enumerate(items) if type(item) is not Kept]
    if len(new) == len(items):
        kept_at: Any = []
    else:
        kept_at = np.setdiff1d(np.arange(len(items)), new, assume_unique=True) if new else slice(None)
        source = items if not new else [item for item in items if type(item) is Kept]
        tokens[kept_at] = every[np.fromiter((item.index for item in source), np.int64, len(source))]  # type: ignore[union-attr]
    if new:
        tokens[new] = view.ledger.count_messages([items[at].message for at in new])  # type: ignore[union-attr]
    fates = derive_fates(view, items) if fates is None else fates
    outside = view.fixed - int(view.tokens[: view.lead].sum())  # leading system rows stand in the items
    return Selection(
        policy=policy,
        request=request,
        items=items,
        fate_codes=fates,
        before_tokens=view.total,
        after_tokens=outside + int(tokens.sum()),
        own_before=own[0],
        own_after=own[1],
        item_tokens=tokens,
        steps=steps,
        state=dict(state or {}),
        event=event,
        side_calls=side_calls,
    )
