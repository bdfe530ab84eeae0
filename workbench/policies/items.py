"""What an answer is made of: the items that are sent, the fates of the messages, the decision log."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from ..model import Message


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
