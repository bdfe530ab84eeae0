"""What a policy itself says that messages cost, before it takes any away."""

from __future__ import annotations

from ..ledger import View
from ..tokens.base import Ints
from .base import Policy


def own_costs(policy: Policy, view: View) -> tuple[int, Ints] | None:
    """A policy's own estimate of everything in a view, row by row.

    A policy that estimates message by message may say so: it then has a method ``own_costs(view)``.

    Returns
    -------
    (int, int array of shape (n,)) or None
        Tokens of the fixed part and of each row beside it (0 for rows that the fixed part holds); their sum is what its
        selections call ``own_before``. None if the policy does not say, or takes the counter's word.

    Examples
    --------
    >>> from workbench.ledger import count
    >>> from workbench.model import Message, Source, Text, Transcript
    >>> from workbench.policies import Agentd, Kernel
    >>> t = Transcript("t", Source("made"), (Message(0, "", "user", (Text("12345678"),)),))
    >>> own_costs(Agentd(), count(t).view()), own_costs(Kernel(), count(t).view())
    ((0, array([6])), None)
    """
    say = getattr(policy, "own_costs", None)
    return None if say is None else say(view)
