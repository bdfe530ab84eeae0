"""A counter that was fitted to what a provider reported for one session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model import KINDS, MAIN
from .base import Ints
from .parts import KIND
from .scaled import ScaledCounter


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the requests of a thread hold that the file does not, from one call on.

    Parameters
    ----------
    call : int
        Index in ``Transcript.calls`` of the first request that it is true of.
    tokens : int
        System text and tools that are not recorded, less what the counted framing is too much. May be negative.
    requests : int
        Requests that it is the median of.
    """

    thread: str
    call: int
    tokens: int
    requests: int


@dataclass(frozen=True, slots=True)
class CalibratedCounter(ScaledCounter):
    """Counts with `base`, multiplies, and adds what every request held beside its recorded text. Made by ``wb.calibrate``.

    The factor belongs to texts, the overhead to requests: a ledger puts it into the fixed part.

    Parameters
    ----------
    error : float
        Relative half-width of the range that held for 95 % of the requests that the fit had not seen.
    median : float
        Median error of the same requests.
    overheads : tuple of Overhead
        By thread, in the order of their calls.
    elsewhere : int
        Overhead of threads of which no request was reported.
    requests : int
        Requests that it was fitted to.
    method : str
        ``line`` or ``ewma``.
    """

    median: float = 0.0
    overheads: tuple[Overhead, ...] = ()
    elsewhere: int = 0
    requests: int = 0
    method: str = "line"

    @property
    def label(self) -> str:
        """For people: "o200k × 1.231 + 15,157, fitted to 170 requests, ± 8.9 %"."""
        factor = "" if self.factor == 1 else f" × {self.factor:.4g}"
        fixed = self.overhead(MAIN)
        plus = f" {'+' if fixed > 0 else '−'} {abs(fixed):,}" if fixed else ""
        return f"{self.base.label.removesuffix('_base')}{factor}{plus}, fitted to {self.requests:,} requests, ± {round(100 * self.error, 1):g} %"

    def overhead(self, thread: str, call: int | None = None) -> int:
        """Tokens of a thread's requests that the file does not hold.

        Parameters
        ----------
        call : int, optional
            Index of the request; by default the newest.
        """
        mine = [item for item in self.overheads if item.thread == thread]
        if not mine:
            return self.elsewhere
        before = [item for item in mine if call is None or item.call <= call]
        return (before or mine[:1])[-1].tokens

    def fixed(self, kinds: Ints, thread: str) -> Ints:
        """Add a thread's overhead to the tokens by kind of what its requests hold outside their messages, shape (len(KINDS),).

        It stands under framing. What a negative one takes away beyond that comes from the tools and the system text, as far
        as there are any: no part of a request is less than nothing.
        """
        left = self.overhead(thread)
        out = kinds.copy()
        for kind in ("framing", "tools", "system"):
            at = KIND[kind]
            changed = max(0, int(out[at]) + left)
            left -= changed - int(out[at])
            out[at] = changed
        return out


#: Kinds whose tokens no counter of texts makes: a factor leaves them as they are.
ASIDE = tuple(KIND[kind] for kind in ("framing", "media"))


def split(sums: Ints) -> tuple[Ints, Ints]:
    """Tokens by kind as tokens of texts, and of what stands aside of texts: two arrays of shape (c,)."""
    aside: Ints = sums[:, ASIDE].sum(axis=1)
    texts: Ints = np.delete(sums, ASIDE, axis=1).sum(axis=1)
    assert sums.shape[1] == len(KINDS)
    return texts, aside
