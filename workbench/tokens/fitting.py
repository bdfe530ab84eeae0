"""A line through reported prompts that outliers do not bend: reported = factor × counted + what the file does not hold.

The factor is a weighted median of what pairs of requests say, as Theil and Sen do it; the rest is a median for each run of
requests of one thread. A run ends where the rest jumps and stays: a session that was resumed with other tools.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Bools, Ints

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

#: A jump of the rest is one that is larger than this share of the prompt, and than so many tokens.
JUMP_SHARE, JUMP_TOKENS = 0.05, 1_000
#: So many requests on either side of a jump must agree that it stays; fewer are outliers.
STAYS = 3
#: Strides of the pairs of the first pass: a jump is in few of them.
_NEAR = (1, 2, 4)


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """A fit.

    Parameters
    ----------
    factor : float
        Tokens reported for one counted.
    levels : float array, shape (n,)
        What each request holds beyond that: the median of its run.
    runs : int array, shape (n,)
        Run of each request, from 0.
    """

    factor: float
    levels: Floats
    runs: Ints


def fit(counted: Ints, reported: Ints, threads: Ints) -> Line | None:
    """Fit a line through requests, in the order in which they were made.

    Parameters
    ----------
    counted, reported : int array, shape (n,)
    threads : int array, shape (n,)
        Which thread each request is of: threads differ in what the file does not hold.

    Returns
    -------
    Line or None
        None if no two requests of a thread differ in what is counted.

    Examples
    --------
    >>> counted = np.array([100, 300, 350, 900, 1_000, 1_400])
    >>> reported = 2 * counted + 50
    >>> reported[2] = 7  # an outlier
    >>> line = fit(counted, reported, np.zeros(6, int))
    >>> line.factor, line.levels.tolist()[0]
    (2.0, 50.0)
    """
    runs = np.unique(threads, return_inverse=True)[1].astype(np.int64)
    factor = _factor(counted, reported, runs, _NEAR)
    if factor is None:
        return None
    runs = _runs(reported - factor * counted, reported, runs)
    strides = tuple(1 << power for power in range(max(1, len(runs)).bit_length()))
    factor = _factor(counted, reported, runs, strides) or factor
    return Line(factor, levels(reported - factor * counted, runs), runs)


def levels(rest: Floats | Ints, runs: Ints) -> Floats:
    """Median of each request's run, shape (n,)."""
    out = np.zeros(len(rest))
    for run in np.unique(runs):
        at = runs == run
        out[at] = np.median(rest[at])
    return out


def predict(counted: Ints, reported: Ints, threads: Ints, kinds: Ints, known: Bools) -> Floats:
    """Predict every request from a fit to the known ones alone, shape (n,); nan where nothing can be said.

    A request takes the level of the known request before it in its thread, else of the one after it; in a thread of which
    none is known, the median of the threads of its kind.
    """
    out = np.full(len(counted), np.nan)
    at = np.flatnonzero(known)
    line = fit(counted[at], reported[at], threads[at]) if len(at) else None
    if line is None:
        return out
    level = np.full(len(counted), np.nan)
    for thread in np.unique(threads):
        mine, have = np.flatnonzero(threads == thread), np.flatnonzero(threads[at] == thread)
        if len(have):
            place = np.searchsorted(at[have], mine, "right") - 1
            level[mine] = line.levels[have[np.maximum(place, 0)]]
        else:
            alike = kinds[at] == kinds[mine[0]]
            if alike.any():
                level[mine] = np.median(line.levels[alike])
    found: Floats = line.factor * counted + level
    return found


def weighted_median(values: Floats, weights: Floats) -> float:
    """The smallest value at which half of the weight is reached.

    Examples
    --------
    >>> weighted_median(np.array([1.0, 5.0, 9.0]), np.array([1.0, 1.0, 10.0]))
    9.0
    """
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2)])


def _factor(counted: Ints, reported: Ints, runs: Ints, strides: tuple[int, ...]) -> float | None:
    """Weighted by the difference of what is counted: between near requests a ratio is mostly framing."""
    order = np.argsort(runs, kind="stable")
    x, y, run = counted[order], reported[order], runs[order]
    ratios, weights = [], []
    for stride in strides:
        more, rise = x[stride:] - x[:-stride], y[stride:] - y[:-stride]
        fine = (run[stride:] == run[:-stride]) & (more != 0)
        ratios.append(rise[fine] / more[fine])
        weights.append(np.abs(more[fine]).astype(np.float64))
    ratio, weight = np.concatenate(ratios), np.concatenate(weights)
    found = weighted_median(ratio, weight) if len(ratio) else 0.0
    return found if found > 0 else None


def _runs(rest: Floats, reported: Ints, runs: Ints) -> Ints:
    """Cut runs where the rest jumps and stays."""
    out = np.zeros(len(runs), np.int64)
    new = 0
    for run in np.unique(runs):
        mine = np.flatnonzero(runs == run)
        values, prompts = rest[mine], reported[mine]
        start = 0
        cut = np.zeros(len(mine), np.int64)
        for at in range(STAYS, len(mine) - STAYS + 1):
            if at - start < STAYS:
                continue
            most = max(JUMP_TOKENS, JUMP_SHARE * float(prompts[at]))
            before, after = values[at - STAYS : at], values[at : at + STAYS]
            if abs(values[at] - values[at - 1]) > most and (after.min() - before.max() > most or before.min() - after.max() > most):
                cut[at] = 1
                start = at
        out[mine] = new + np.cumsum(cut)
        new += int(cut.sum()) + 1
    return out
