"""A policy's parameters: what a control or ``--set`` needs to know of each, and the checks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import PolicyError

if TYPE_CHECKING:
    from .base import Policy


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
    kind = type(policy)
    if kind.__module__.startswith(__package__ + "."):
        return f"wb.policies.{kind.__name__}({', '.join(given)})"
    return f"wb.policies.make({', '.join([repr(policy.info.name), *given])})"  # a plug-in's class has no name there


def check_params(policy: Policy) -> None:
    """Check each parameter against its own metadata. Called from ``__post_init__``.

    Raises
    ------
    PolicyError
        A value is of another type or outside its range.
    """
    for item in dataclasses.fields(policy):  # type: ignore[arg-type]
        _check(f"{policy.info.name}.{item.name}", item, getattr(policy, item.name))


def _check(where: str, item: dataclasses.Field[Any], value: Any) -> None:
    choices = item.metadata.get("choices", ())
    if choices:
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise PolicyError(f"{where} = {_shown(value)}: choose one of {', '.join(map(str, choices))}")
        return
    if value is None and item.default is None:
        return
    kind = _kind(item)
    right = isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
    if not right or (isinstance(value, bool) and kind is not bool):
        raise PolicyError(f"{where} = {_shown(value)}: give {_WORD.get(kind, kind.__name__)}")
    if kind is float and not math.isfinite(value):
        raise PolicyError(f"{where} = {value}: give a finite number")
    low, high = item.metadata.get("low"), item.metadata.get("high")
    if (low is not None and value < low) or (high is not None and value > high):
        raise PolicyError(f"{where} = {_shown(value)}: allowed are {_bound(low)} to {_bound(high)}")


def parse_param(policy: Policy, name: str, text: str) -> Any:
    """Read a parameter's value from the text that a person typed, by the parameter's type.

    ``none`` stands for "not set" where the default is not set; for a yes or no: true, yes, on, 1 and their opposites.

    Raises
    ------
    PolicyError
        The policy has no such parameter, or the text is no value of its type. The range is checked when a policy
        is made with the value.
    """
    item = field_of(policy, name)
    text = text.strip()
    where = f"{policy.info.name}.{name}"
    for choice in item.metadata.get("choices", ()):
        if str(choice) == text:
            return choice
    if item.metadata.get("choices"):
        raise PolicyError(f"{where} = {_shown(text)}: choose one of {', '.join(map(str, item.metadata['choices']))}")
    if item.default is None and text.lower() in ("none", "null", ""):
        return None
    kind = _kind(item)
    if kind is str:
        return text
    try:
        return _YES_NO[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise PolicyError(f"{where} = {_shown(text)}: give {_WORD.get(kind, kind.__name__)}") from None


def field_of(policy: Policy, name: str) -> dataclasses.Field[Any]:
    """The field of a parameter.

    Raises
    ------
    PolicyError
        There is none of that name; the message names those that there are.
    """
    fields = {item.name: item for item in dataclasses.fields(policy)}  # type: ignore[arg-type]
    if name not in fields:
        known = f"it has {', '.join(fields)}" if fields else "it has none"
        raise PolicyError(f"policy {policy.info.name} has no parameter {_shown(name)}; {known}")
    return fields[name]


def _kind(item: dataclasses.Field[Any]) -> type:
    return int if item.default is None else type(item.default)


def _bound(value: float | None) -> str:
    return "…" if value is None else f"{value:,}"


def _shown(value: Any) -> str:
    """A value that may be huge or of any type, for an error message."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a huge number"
    return text if len(text) <= 60 else text[:57] + "…"


_WORD: dict[type, str] = {int: "a whole number", bool: "true or false", float: "a number", str: "a text"}
_YES_NO = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
