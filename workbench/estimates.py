"""How far off each estimate of a prompt was, by what the provider reported for the requests of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .calibration import Requests, calibrate, ewma, relative, requests
from .errors import CounterError
from .ledger import Ledger, View, count
from .model import KINDS, MAIN
from .policies import registry
from .policies.base import Policy
from .policies.own import own_costs
from .tokens import choose
from .tokens.base import Counter, Ints, RatioCounter
from .tokens.calibrated import CalibratedCounter
from .tokens.fitting import Floats
from .tokens.reported import prompts

Source = Literal["counter", "calibrated", "policy", "ratio"]
#: Shares of the requests in which a margin would have held.
SHARES = (0.5, 0.9, 0.99, 1.0)
#: What the estimate by vak's measured ratio is called: each request by those before it.
AVERAGE = "bytes × moving average"
#: Counters beside the ledger's own.
COUNTERS = ("o200k_base", "bytes/4", "chars/4")


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """What one estimate said of each request.

    Parameters
    ----------
    tokens : float array, shape (n,)
        Of the prompt, as far as the file holds it; a calibrated counter's with what it does not hold.
    whole : bool
        True if the estimate reckons with what the file does not hold.
    """

    name: str
    source: Source
    tokens: Floats
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How one estimate did.

    Parameters
    ----------
    bias : float
        Median of (estimate − reported) / reported: below 0 it counts too little.
    median, most : float
        Median and largest size of the relative error.
    within : float
        Relative error that 90 % of the requests did not pass.
    margins : tuple of int
        For each of `SHARES` the safety margin, in tokens, that would have held in so many of the requests; 0 if it needs none.
    """

    name: str
    source: Source
    bias: float
    median: float
    within: float
    most: float
    margins: tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Estimates:
    """All estimates of the reported requests of a session, in the order of the calls. Made by `of`.

    Parameters
    ----------
    sizes : int array, shape (n,)
        Bytes of text in each prompt, as far as the file holds it.
    hidden : float array, shape (n,)
        Tokens of each prompt that the file does not hold, by the calibration; 0 without one.
    calibrated : CalibratedCounter or None
        None where there is too little usage; `problem` then says so.
    """

    ledger: Ledger
    requests: Requests
    estimates: tuple[Estimate, ...]
    sizes: Ints
    hidden: Floats
    calibrated: CalibratedCounter | None
    problem: str

    def __getitem__(self, name: str) -> Estimate:
        return next(item for item in self.estimates if item.name == name)

    @property
    def reported(self) -> Ints:
        """Prompt tokens as reported, shape (n,)."""
        return self.requests.reported

    def number(self, call: int) -> int:
        """The number of a call among the reported requests, from 1: as figures and lists name it."""
        return int(np.searchsorted(self.requests.calls, call)) + 1

    def accuracy(self, *, hidden: bool = False) -> tuple[Accuracy, ...]:
        """How each estimate did.

        Parameters
        ----------
        hidden : bool
            Give every estimate the tokens that the file does not hold, as if the agent that counts knew its own prompt and
            tools. Without it a margin must make up for them too.
        """
        return tuple(_accuracy(item, item.tokens + (0 if item.whole or not hidden else self.hidden), self.reported) for item in self.estimates)

    def bytes_per_token(self, *, hidden: bool = False) -> tuple[float, ...]:
        """For each of `SHARES` the bytes of text that could be taken for a token without counting too little in so many requests."""
        tokens = self.reported - (self.hidden if hidden else 0)
        ratios = self.sizes[tokens > 0] / tokens[tokens > 0]
        return tuple(float(np.quantile(ratios, 1 - share, method="lower")) for share in SHARES) if len(ratios) else ()


def of(ledger: Ledger, policies: Iterable[str | Policy] = registry.SYSTEMS, counters: Iterable[str | Counter] = COUNTERS) -> Estimates:
    """Set the estimates of a session's prompts beside what its provider reported.

    Only requests of the transcript's model are compared, each with all that was live before it in its thread, whole: what
    a policy would have taken away was sent. Linear in messages and requests.

    Parameters
    ----------
    policies : iterable
        Names or policies; those without an estimate of their own are left out.
    counters : iterable
        Names or counters, beside the ledger's own.
    """
    chosen = tuple(map(_counter, counters))
    known = ledger.memo.get(("estimates", *(counter.id for counter in chosen)), lambda: _counted(ledger, chosen))
    own = ((policy, own_tokens(policy, ledger, known.requests)) for policy in map(registry.as_policy, policies))
    added = tuple(Estimate(policy.info.name, "policy", tokens) for policy, tokens in own if tokens is not None)
    return replace(known, estimates=(*known.estimates, *added))


def _counted(ledger: Ledger, counters: Sequence[Counter]) -> Estimates:
    """The part that no policy changes."""
    model = ledger.transcript.model
    rows = requests(ledger, model)
    calibrated, problem = _calibrated(ledger, model)
    fitted = calibrated is ledger.counter
    found = [Estimate(ledger.counter.label, "calibrated" if fitted else "counter", rows.counted.astype(np.float64), fitted)]
    hidden = np.zeros(len(rows.calls))
    if calibrated is not None:
        calls = [ledger.transcript.calls[call] for call in rows.calls.tolist()]
        hidden = np.array([calibrated.overhead(call.thread, call.index) for call in calls], np.float64)
        if not fitted:
            again = count(ledger.transcript, calibrated, framing=ledger.frame_rule)
            found.append(Estimate(calibrated.label, "calibrated", requests(again, model).counted.astype(np.float64), True))
    for counter in counters:
        if counter.id != ledger.counter.id:
            other = requests(count(ledger.transcript, counter, framing=ledger.frame_rule), model)
            found.append(Estimate(counter.label, "ratio" if isinstance(counter, RatioCounter) else "counter", other.counted.astype(np.float64)))
    sizes = requests(count(ledger.transcript, RatioCounter(1.0), framing=ledger.frame_rule), model).texts
    if len(rows.calls):
        found.append(Estimate(AVERAGE, "ratio", ewma(sizes, rows.reported)[1], True))
    return Estimates(ledger, rows, tuple(found), sizes, hidden, calibrated, problem)


def _counter(counter: str | Counter) -> Counter:
    return choose.get(counter) if isinstance(counter, str) else counter


def _calibrated(ledger: Ledger, model: str | None) -> tuple[CalibratedCounter | None, str]:
    if isinstance(ledger.counter, CalibratedCounter):
        return ledger.counter, ""
    try:
        return calibrate(ledger, model=model), ""
    except CounterError as error:
        return None, str(error)


def own_tokens(policy: Policy, ledger: Ledger, rows: Requests) -> Floats | None:
    """A policy's own estimate of each request, shape (n,); None if it has none."""
    transcript = ledger.transcript
    columns = np.zeros((len(transcript.messages), 1), np.int64)
    fixed: dict[str, Ints] = {}
    for thread in {transcript.calls[call].thread for call in rows.calls.tolist()}:
        view = everything(ledger, thread)
        costs = own_costs(policy, view)
        if costs is None:
            return None
        fixed[thread] = np.array([costs[0]])
        columns[view.indices, 0] = costs[1]
    sums = prompts(transcript, columns, lambda call: fixed.get(call.thread, np.zeros(1, np.int64))).sums
    own: Floats = sums[rows.calls, 0].astype(np.float64)
    return own


def everything(ledger: Ledger, thread: str = MAIN) -> View:
    """All messages of a thread, the summaries of real compactions among them: neither history, but what both are made of."""

    def build() -> View:
        view = ledger.view(thread)
        indices = np.array(ledger.transcript.thread(thread), np.int64)
        messages = tuple(ledger.transcript.messages[index] for index in indices.tolist())
        return View(ledger, thread, "full", indices, messages, view.lead, ledger.message_tokens[indices], ledger.kind_tokens[indices], view.fixed_kinds)

    return ledger.memo.get(("everything", thread), build)


def _accuracy(item: Estimate, tokens: Floats, reported: Ints) -> Accuracy:
    if not len(reported):
        return Accuracy(item.name, item.source, 0.0, 0.0, 0.0, 0.0, (0,) * len(SHARES))
    errors, missing = relative(tokens, reported), np.maximum(reported - tokens, 0)
    return Accuracy(
        item.name,
        item.source,
        bias=float(np.median((tokens - reported) / reported)),
        median=float(np.median(errors)),
        within=float(np.quantile(errors, 0.9, method="inverted_cdf")),
        most=float(errors.max()),
        margins=tuple(int(np.ceil(np.quantile(missing, share, method="inverted_cdf"))) for share in SHARES),
    )


@dataclass(frozen=True, slots=True)
class Miss:
    """A request for which the calibrated counter's range did not hold.

    Parameters
    ----------
    call : int
        Index in ``Transcript.calls``.
    why : str
        What is known of the reason, in plain words.
    """

    call: int
    reported: int
    estimated: int
    why: str


def misses(found: Estimates) -> tuple[Miss, ...]:
    """The requests for which the calibrated counter's range did not hold, each with what can be said of the reason."""
    counter = found.calibrated
    if counter is None:
        return ()
    tokens = found[counter.label].tokens
    wrong = np.flatnonzero(relative(tokens, found.reported) > counter.error)
    return tuple(Miss(int(found.requests.calls[at]), int(found.reported[at]), round(float(tokens[at])), _why(found, counter, int(at))) for at in wrong)


def _why(found: Estimates, counter: CalibratedCounter, at: int) -> str:
    call = found.ledger.transcript.calls[int(found.requests.calls[at])]
    runs = [item for item in counter.overheads if item.thread == call.thread]
    run = max((place for place, item in enumerate(runs) if item.call <= call.index), default=0)
    off = found[counter.label].tokens - found.reported
    until = runs[run + 1].call if run + 1 < len(runs) else len(found.ledger.transcript.calls)
    like = (found.requests.threads == found.requests.threads[at]) & (found.requests.calls >= runs[run].call) & (found.requests.calls < until)
    usual = float(np.quantile(np.abs(off[like]), 0.95, method="inverted_cdf"))
    words = f"{abs(off[at]):,.0f} tokens too {'many' if off[at] > 0 else 'few'}"
    if abs(off[at]) <= usual:
        words += f", no more than others of its thread (19 of 20 within {usual:,.0f}), but its prompt is small"
    else:
        words += f", where 19 of 20 requests of its thread are within {usual:,.0f}: it stands out"
    return f"{words}; {jump(found, call.thread, run)}" if run else words


def jump(found: Estimates, thread: str, run: int) -> str:
    """What is known of the place where what the file does not hold changed for good: the start of a thread's run, from 1."""
    ledger, counter = found.ledger, found.calibrated
    assert counter is not None
    before, after = [item for item in counter.overheads if item.thread == thread][run - 1 : run + 1]
    change = after.tokens - before.tokens
    number = found.number(after.call)
    words = f"from request {number:,} on {abs(change):,} tokens {'more' if change > 0 else 'fewer'} were reported than the file's text explains"
    between = _between(ledger, thread, after.call)
    cut_off = {index for call in ledger.transcript.calls if call.stop_reason in CUT_OFF for index in call.produced}
    for message in cut_off.intersection(between) if change < 0 else ():
        tokens = int(ledger.message_tokens[message])
        if tokens > -change / 2:
            return f"{words}: #{message}, an answer that was cut off ({tokens:,} tokens), seems not to have been sent again"
    if between and any(between[0] <= item.after <= between[-1] for item in ledger.transcript.compacted(thread)):
        return f"{words}: a compaction stands there"
    return words


#: Stop reasons of answers that came to no end.
CUT_OFF = frozenset({"aborted", "error", "cancelled", "interrupted"})


def _first(ledger: Ledger, call: int) -> int:
    return min(ledger.transcript.calls[call].produced, default=-1)


def _between(ledger: Ledger, thread: str, call: int) -> list[int]:
    """Messages of a thread between the answer to the reported request before a call, and that call's answer."""
    calls = ledger.transcript.calls
    earlier = (other for other in range(call - 1, -1, -1) if calls[other].thread == thread and calls[other].usage is not None and calls[other].produced)
    start, end = _first(ledger, next(earlier, call)), _first(ledger, call)
    return [index for index in ledger.transcript.thread(thread) if start <= index < end]


@dataclass(frozen=True, slots=True)
class KindError:
    """How a kind of message was counted, by what the prompts grew when messages of it were added.

    Parameters
    ----------
    tokens : int
        Counted tokens that were added.
    steps : int
        Pairs of requests between which some were.
    factor : float or None
        Tokens reported for one counted; None where it cannot be told.
    error : float or None
        Its standard error.
    """

    kind: str
    tokens: int
    steps: int
    factor: float | None
    error: float | None


#: A kind with fewer steps or fewer tokens is not judged.
FEWEST_STEPS, FEWEST_TOKENS = 8, 400
_ROUNDS = 12  # of reweighting


def by_kind(ledger: Ledger) -> tuple[KindError, ...]:
    """Error of the ledger's counter by kind of message.

    From one request of a thread to the next the prompt grows by the messages between them. A robust fit (Huber weights, held
    near the common factor where a kind says little) shares out what was reported, less the framing as it is counted: what
    that is wrong by falls on kinds of short messages. Pairs with a compaction between them are left out.
    """
    rows = requests(ledger, ledger.transcript.model)
    grown, more = _steps(ledger.prompts.sums[rows.calls], rows)
    framing = KINDS.index("framing")
    plain, told = np.delete(grown, framing, axis=1), more - grown[:, framing]
    names = [kind for kind in KINDS if kind != "framing"]
    used = [at for at in range(len(names)) if (plain[:, at] > 0).sum() >= FEWEST_STEPS and plain[:, at].sum() >= FEWEST_TOKENS]
    factors, errors = _shared(plain, told, used)
    out = []
    for at, name in enumerate(names):
        steps, tokens = int((plain[:, at] > 0).sum()), int(plain[:, at].sum())
        if tokens:
            known = at in factors
            out.append(KindError(name, tokens, steps, factors[at] if known else None, errors[at] if known else None))
    return tuple(out)


def _steps(sums: Ints, rows: Requests) -> tuple[Ints, Ints]:
    """What each request holds beyond the one before it in its thread: by kind as counted, and as reported."""
    order = np.argsort(rows.threads, kind="stable")
    grown, more = np.diff(sums[order], axis=0), np.diff(rows.reported[order])
    fine = (np.diff(rows.threads[order]) == 0) & (grown >= 0).all(axis=1) & (grown.sum(axis=1) > 0) & (more > 0)
    return grown[fine], more[fine]


def _shared(grown: Ints, more: Ints, used: Sequence[int]) -> tuple[dict[int, float], dict[int, float]]:
    if not used:
        return {}, {}
    others = [at for at in range(grown.shape[1]) if at not in used]
    x = np.column_stack([grown[:, used], grown[:, others].sum(axis=1)]).astype(np.float64)
    y = more.astype(np.float64)
    scale = 1 / np.sqrt(np.maximum(y, 50))  # a longer step may be off by more
    common = float(np.median(y[x.sum(axis=1) > 0] / x.sum(axis=1)[x.sum(axis=1) > 0]))
    weight = np.ones(len(y))
    prior = np.full(x.shape[1], 1.0)
    factors = np.full(x.shape[1], common)
    for _ in range(_ROUNDS):
        a, b = x * (scale * weight**0.5)[:, None], y * scale * weight**0.5
        normal = a.T @ a + np.diag(prior)
        factors = np.linalg.solve(normal, a.T @ b + prior * common)
        rest = (y - x @ factors) * scale
        width = 1.4826 * float(np.median(np.abs(rest))) + 1e-9
        weight = np.minimum(1.0, 1.345 * width / np.maximum(np.abs(rest), 1e-12))
    error = np.sqrt(np.diag(np.linalg.inv(normal))) * width
    found = dict(zip(used, factors.tolist(), strict=False))
    return found, dict(zip(used, error.tolist(), strict=False))
