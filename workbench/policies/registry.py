"""Which policies there are, by name: those of this package, and those of installed plug-ins."""

from __future__ import annotations

import dataclasses
import difflib
import operator
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..errors import PluginError, PolicyError
from ..ledger import Ledger
from ..model import MAIN, Budget, History
from .agentd import Agentd
from .base import DEFAULT_BUDGET, PROMISES, Policy, PolicyInfo, Request, Selection, field_of, parse_param
from .kernel import Kernel
from .none import NoPolicy
from .scv import Scv
from .vak import Vak

GROUP = "workbench.policies"
#: The four systems that the workbench is about: what is compared unless something else is asked for.
SYSTEMS = ("kernel", "agentd", "scv", "vak")
_BUILT_IN: dict[str, type[Any]] = {kind.info.name: kind for kind in (NoPolicy, Kernel, Agentd, Scv, Vak)}


def names() -> tuple[str, ...]:
    """The names of all policies: those of this package first, then those of plug-ins by name. Loads no plug-in."""
    return (*_BUILT_IN, *sorted(_plugins()))


def get(name: str) -> Policy:
    """The policy of a name, with its default parameters.

    Raises
    ------
    PolicyError
        No policy has this name.
    PluginError
        It is a plug-in's and cannot be loaded.

    Examples
    --------
    >>> get("scv")
    Scv(bytes_per_token=3, summary_max_chars=6000, note='extracts')
    """
    kind = _BUILT_IN.get(name)
    if kind is not None:
        policy: Policy = kind()
        return policy
    found = _plugins().get(name)
    if found is None:
        close = difflib.get_close_matches(str(name), names(), 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise PolicyError(f"no policy is called {str(name)[:80]!r}.{hint} Known: {', '.join(names())}")
    return _load(name, found)


def as_policy(policy: str | Policy) -> Policy:
    """A policy by name, or the policy itself.

    Raises
    ------
    PolicyError
        It is neither: a class, a number.
    """
    if isinstance(policy, str):
        return get(policy)
    if isinstance(policy, type) or not callable(getattr(policy, "select", None)):
        raise PolicyError(f"policy = {repr(policy)[:80]}: give a name ({', '.join(names())}) or a policy, for example policies.Scv()")
    return policy


def check_budget(budget: Budget) -> None:
    """Check the numbers of a budget.

    Raises
    ------
    PolicyError
        One is negative, or not a whole number.
    """
    for item in dataclasses.fields(budget):
        value = getattr(budget, item.name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise PolicyError(f"budget: {item.name} = {value!r}; give a whole number of tokens, 0 or more")


def as_pins(pins: Iterable[int]) -> frozenset[int]:
    """Indices of messages; numpy's integers too, as they stand in a frame.

    Raises
    ------
    PolicyError
        One of them is no whole number.
    """
    try:
        return frozenset(map(operator.index, pins))
    except TypeError:
        raise PolicyError(f"pins = {repr(pins)[:80]}: give the indices of messages, for example [0, 7]") from None


def make(policy: str | Policy, /, **params: Any) -> Policy:
    """A policy with some of its parameters set.

    Raises
    ------
    PolicyError
        It has no such parameter, or the value is not allowed.

    Examples
    --------
    >>> make("scv", summary_max_chars=4_000)
    Scv(bytes_per_token=3, summary_max_chars=4000, note='extracts')
    """
    base = as_policy(policy)
    for name in params:
        field_of(base, name)
    made: Policy = dataclasses.replace(base, **params)  # type: ignore[type-var]
    return made


def make_from_text(policy: str | Policy, params: Mapping[str, str]) -> Policy:
    """A policy with parameters as a person typed them, each read by its type.

    Raises
    ------
    PolicyError
        It has no such parameter, or the text is no allowed value.

    Examples
    --------
    >>> make_from_text("scv", {"bytes_per_token": "4"})
    Scv(bytes_per_token=4, summary_max_chars=6000, note='extracts')
    """
    base = as_policy(policy)
    return make(base, **{name: parse_param(base, name, text) for name, text in params.items()})


def select(
    ledger: Ledger,
    policy: str | Policy,
    budget: Budget = DEFAULT_BUDGET,
    *,
    history: History = "full",
    thread: str = MAIN,
    pins: Iterable[int] = (),
) -> Selection:
    """Choose what one request on all messages of a thread would carry.

    Parameters
    ----------
    policy : str or Policy
        A name, or a policy with its parameters.
    history : {"full", "live"}
        All that was ever said, or what the model had after the last real compaction.
    pins : iterable of int
        Messages that must stay, where the policy can pin.

    Raises
    ------
    BudgetError
        The policy promises the budget and cannot hold it.
    PolicyError
        The policy, the thread or the history is unknown, a pin is no index, or the budget is no budget.
    """
    return as_policy(policy).select(make_request(ledger, budget, history=history, thread=thread, pins=pins))


def make_request(ledger: Ledger, budget: Budget = DEFAULT_BUDGET, *, history: History = "full", thread: str = MAIN, pins: Iterable[int] = ()) -> Request:
    """The request on all messages of a thread, its values checked. Parameters and errors as for `select`."""
    if not isinstance(budget, Budget):
        raise PolicyError(f"budget = {repr(budget)[:80]}; give a Budget, for example Budget(max_tokens=32_000)")
    transcript = ledger.transcript
    if history not in ("full", "live"):
        raise PolicyError(f"history = {history!r}: choose full or live")
    if all(item.id != thread for item in transcript.threads):
        known = ", ".join(item.id for item in transcript.threads[:10])
        raise PolicyError(f"no thread {str(thread)[:80]!r}; this transcript has {known}")
    check_budget(budget)
    return Request.on(ledger.view(thread, history), budget, as_pins(pins))


def _plugins() -> dict[str, tuple[EntryPoint, ...]]:
    """Entry points by name. A plug-in cannot take the name of a policy of this package."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        if point.name not in _BUILT_IN:
            found[point.name] = (*found.get(point.name, ()), point)
    return found


def _load(name: str, points: tuple[EntryPoint, ...]) -> Policy:
    where = " and ".join(point.dist.name if point.dist else point.value for point in points)
    if len(points) > 1:
        raise PluginError(f"policy {name!r} is given by {where}; uninstall all but one")
    try:
        policy: Policy = points[0].load()()
        fault = _fault(name, policy)
    except Exception as error:  # whatever a plug-in does is told, and stops nothing else
        raise PluginError(f"policy {name!r} of {where} cannot be loaded: {type(error).__name__}: {error}; update or uninstall that package") from error
    if fault:
        raise PluginError(f"policy {name!r} of {where} {fault}; update or uninstall that package")
    return policy


def _fault(name: str, policy: Policy) -> str | None:
    if not dataclasses.is_dataclass(policy) or not callable(getattr(policy, "select", None)):
        return "is no dataclass with a method select"
    if not isinstance(getattr(policy, "info", None), PolicyInfo) or policy.info.name != name:
        return f"has no info of that name (want PolicyInfo(name={name!r}, …))"
    unknown = sorted(set(policy.promises) - PROMISES)
    return f"promises {unknown[0]!r}, which is no promise" if unknown else None
