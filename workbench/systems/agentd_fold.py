"""How many of the oldest messages a compaction of agentd folds. Rules: four_systems.md §4."""

from __future__ import annotations

from collections.abc import Sequence

FEWEST_FOLDED = 2  # fewer than so many above `keep_last` are not worth a compaction
FEWEST_KEPT = 2  # a target does not fold below


def fold_count(estimates: Sequence[int], users: Sequence[bool], keep_last: int, target: int | None = None) -> int:
    """How many messages from the oldest on are folded; 0 means no compaction.

    All but the newest `keep_last`; with a target more, until the rest fits or two are left; then fewer again, until the first
    kept one is a user's. So `keep_last` and `target` are aims: a long newest turn is kept whole, or nothing is folded.

    Parameters
    ----------
    estimates : sequence of int, shape (n,)
        Tokens of each message, as `est_tokens` gives them.
    users : sequence of bool, shape (n,)
        Which messages a user wrote.
    target : int, optional
        Tokens that the kept messages should not exceed.

    Examples
    --------
    >>> fold_count([9] * 6, [True, False, True, False, True, False], keep_last=3)
    2
    >>> fold_count([9] * 6, [True, False, True, False, True, False], keep_last=3, target=20)
    4
    """
    count = len(estimates)
    if count < keep_last + FEWEST_FOLDED:
        return 0
    fold = count - keep_last
    if target is not None:
        kept = sum(estimates[fold:])
        while kept > target and count - fold > FEWEST_KEPT:
            kept -= estimates[fold]
            fold += 1
    while 0 < fold < count and not users[fold]:
        fold -= 1
    return fold
