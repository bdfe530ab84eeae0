"""Records of agentd, read as strictly as the original reads them.

Unknown fields are ignored, a missing one takes its default or is an error, ``true`` is no number, ``1.0`` no integer, and
numbers are unsigned 64-bit ones. An array in place of an object, which the original takes field by field, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, TypeVar

from ..errors import PolicyError
from .rustjson import U64_MAX, number, string

T = TypeVar("T")
Reader = Callable[[Any], Any]

_SHOWN = 60


class AgentdError(PolicyError):
    """The original's error; its text is the original's."""


class InvalidRecord(AgentdError):
    """A JSON value is not the record that it should be."""


def refuse(value: Any, expected: str) -> NoReturn:
    """Raise `InvalidRecord`: what was found, and what was expected."""
    if isinstance(value, str):
        found = "string " + string(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")
    elif isinstance(value, bool):
        found = f"boolean `{str(value).lower()}`"
    elif isinstance(value, (int, float)):
        found = f"{'integer' if isinstance(value, int) else 'floating point'} `{number(value)}`"
    else:
        found = "null" if value is None else "map" if isinstance(value, dict) else "sequence"
    raise InvalidRecord(f"invalid type: {found}, expected {expected}")


def fields(value: Any, name: str, readers: Mapping[str, Reader], required: Collection[str] = ()) -> dict[str, Any]:
    """The known fields that an object has, each through its reader.

    Parameters
    ----------
    name : str
        What the object is, for the error.
    required : collection of str
        Fields without a default.

    Raises
    ------
    InvalidRecord
        No object; a field without a default is missing; a reader refuses.

    Examples
    --------
    >>> fields({"text": "hi", "colour": "red"}, "a note", {"text": text, "ts": unsigned}, ("text",))
    {'text': 'hi'}
    """
    if not isinstance(value, dict):
        refuse(value, name)
    read = {key: reader(value[key]) for key, reader in readers.items() if key in value}
    for key in required:
        if key not in read:
            raise InvalidRecord(f"missing field `{key}`")
    return read


def text(value: Any) -> str:
    """A string."""
    return value if isinstance(value, str) else refuse(value, "a string")


def flag(value: Any) -> bool:
    """True or false."""
    return value if isinstance(value, bool) else refuse(value, "a boolean")


def unsigned(value: Any) -> int:
    """An integer from 0 to 2^64 − 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= U64_MAX:
        refuse(value, "u64")
    return value


def anything(value: Any) -> Any:
    """Any JSON, null too."""
    return value


def optional(reader: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """A reader that takes null for nothing."""
    return lambda value: None if value is None else reader(value)


def items(reader: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """A reader of a list, each item through `reader`."""
    return lambda value: tuple(reader(item) for item in value) if isinstance(value, list) else refuse(value, "a sequence")


def one_of(*names: str) -> Callable[[Any], str]:
    """A reader of one of these names."""

    def read(value: Any) -> str:
        if text(value) not in names:
            raise InvalidRecord(f"unknown variant {string(value[:_SHOWN])}, expected one of {', '.join(names)}")
        return str(value)

    return read
