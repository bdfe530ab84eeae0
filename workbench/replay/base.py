"""What a replay is: one row per request, what it would have cost, and the totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import BudgetError
from ..ledger import Ledger
from ..model import Budget, History
from ..policies.base import Policy, Request, Selection
from ..pricing import Cost, ModelFacts
from ..tokens.base import Ints

if TYPE_CHECKING:
    import pandas as pd

    from .fold import Plan


@dataclass(frozen=True, slots=True)
class Sent:
    """One request of a replayed session.

    A prompt has ``after_tokens``; they are ``cache_read + cache_write_5m + cache_write_1h + uncached``, exactly. What the
    server asked for again within the request stands in `iterations`, and is in `cost`.

    Parameters
    ----------
    index : int
        Its number in the replay, from 0.
    message : int
        ``Message.index`` of the first message that the recorded answer consists of: the prompt ends before it.
    call : int or None
        Index in ``Transcript.calls``; None for an answer without a recorded call.
    kind : str
        ``response``; ``compaction`` for a recorded request that only made a summary (in the live history).
    rows : int
        Messages of the history that it had to choose from.
    before_tokens, after_tokens : int
        The whole prompt before and after the policy. Where the policy failed, both are what the history has.
    fixed_tokens : int
        System text, tools, leading system messages, framing of the request.
    note_tokens : int
        Of the notes in it.
    output : int
        As recorded; counted from the answer where no usage is.
    recorded_input : int or None
        The prompt as the provider reported it, server iterations summed.
    event : str or None
        The kind of compaction that the policy made for this request.
    kept : int
        Tokens at the head of the prompt that equal the head of the prompt before.
    side_tokens, side_output : int
        Prompt and output of the requests that the policy itself made.
    cost : Cost or None
        In dollars; None if the model has no price.
    failed : BudgetError or None
        The policy could not hold the budget: nothing was changed.
    """

    index: int
    message: int
    call: int | None
    kind: str
    model: str | None
    ts: int | None
    rows: int
    before_tokens: int
    after_tokens: int
    fixed_tokens: int
    note_tokens: int
    own_before: int
    own_after: int
    over_window: int
    event: str | None
    kept: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    uncached: int
    output: int
    output_recorded: bool
    iterations: int
    side_tokens: int
    side_output: int
    recorded_input: int | None
    cost: Cost | None
    failed: BudgetError | None = None

    @property
    def cache_write(self) -> int:
        """Tokens written to the cache, for however long."""
        return self.cache_write_5m + self.cache_write_1h


@dataclass(frozen=True, slots=True)
class Edit:
    """A place where the head of the prompt changed, so that the cache behind it was lost: what it cost and what it brings.

    Parameters
    ----------
    request : int
        Number of the request.
    kind : str
        The policy's event, else ``changed``.
    at : int
        Tokens of the prompt before the first change.
    rewritten : int
        Tokens that stand behind it in the new prompt, and stood in the cache before: they are written again.
    removed : int
        Tokens by which the prompt is shorter than it would have been.
    extra, saved : float or None
        Dollars: what writing again costs more than reading; what each later request saves. None without a price.
    break_even : float or None
        Requests until the saving has paid for it; 0 if the cache had expired anyway. None if it never does.
    lasted : int
        Requests that followed before the next edit, this one included.
    """

    request: int
    kind: str
    at: int
    rewritten: int
    removed: int
    extra: float | None
    saved: float | None
    break_even: float | None
    lasted: int

    @property
    def paid(self) -> bool | None:
        """Whether the session got so far; None if it cannot be said."""
        if self.extra is None:
            return None
        return self.break_even is not None and self.lasted > self.break_even


@dataclass(frozen=True, eq=False)
class Replay:
    """A session's requests under a policy. Made by `replay`.

    Outputs stay as recorded: what the model would have done instead, nobody knows.

    Parameters
    ----------
    requests : tuple of Sent
        In order.
    before_kinds, after_kinds : int array, shape (len(requests), len(KINDS))
        The prompts by kind, before and after the policy.
    edits : tuple of Edit
        Where the head of the prompt changed.
    price : ModelFacts or None
        What all requests were priced as, if one model was named.
    models : mapping of str to ModelFacts
        For each model name in the session that is known, its facts.
    """

    ledger: Ledger
    policy: Policy
    budget: Budget
    thread: str
    history: History
    requests: tuple[Sent, ...]
    before_kinds: Ints
    after_kinds: Ints
    edits: tuple[Edit, ...]
    price: ModelFacts | None
    models: Mapping[str, ModelFacts]
    plan: Plan = field(repr=False)

    def __len__(self) -> int:
        return len(self.requests)

    def request(self, number: int) -> Request:
        """What the policy was asked for request `number`."""
        return self.plan.request(number)

    def selection(self, number: int) -> Selection | BudgetError:
        """What the policy answered; made again. A persistent policy is asked again from the last request that was remembered."""
        return self.plan.selection(number)

    def selections(self) -> Iterator[tuple[Sent, Selection | BudgetError]]:
        """All answers in order, made again one after the other: none of them is kept here."""
        return zip(self.requests, self.plan.answers(), strict=True)

    @cached_property
    def totals(self) -> dict[str, Any]:
        """Sums over all requests. See `totals.totals`."""
        from .totals import totals

        return totals(self)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per request. See `frames.replay`."""
        from .. import frames  # the one import to the right: a frame is only a view of this

        return frames.replay(self)
