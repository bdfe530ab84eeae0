"""From what a provider reported to a counter with a range: a factor for texts, and what each request holds beside them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .errors import CounterError
from .ledger import Ledger, count
from .model import MAIN, Call
from .systems.vak_capacity import UNCALIBRATED_TOKENS_PER_CHAR, Ewma
from .tokens.base import Bools, Counter, Ints, RatioCounter
from .tokens.calibrated import CalibratedCounter, Overhead, split
from .tokens.choose import bare_name
from .tokens.fitting import Floats, Line, fit, levels, predict
from .tokens.reported import prompt_of
from .tokens.scaled import ScaledCounter

Method = Literal["line", "ewma"]
#: So many requests must report their prompts, and the counted text in those of one thread differ by so much.
FEWEST, SPREAD = 10, 500
#: The session is cut into so many parts; each is predicted from the others, and from those before it.
PARTS = 5
#: The stated range held for this share of the requests that the fit had not seen.
HELD = 0.95


@dataclass(frozen=True, eq=False, slots=True)
class Requests:
    """The requests of a transcript whose prompts are both reported and counted.

    Parameters
    ----------
    calls : int array, shape (n,)
        Indices in ``Transcript.calls``, in order.
    threads, kinds : int array, shape (n,)
        Thread of each, by its place in ``Transcript.threads``; and 0 for the main thread, 1 for any other.
    reported : int array, shape (n,)
        Prompt tokens of the first thing that was sent: of what a server made of one call, its first request.
    texts, aside : int array, shape (n,)
        Tokens counted in texts; framing and media.
    """

    calls: Ints
    threads: Ints
    kinds: Ints
    reported: Ints
    texts: Ints
    aside: Ints

    @property
    def counted(self) -> Ints:
        """Tokens counted."""
        return self.texts + self.aside


def requests(ledger: Ledger, model: str | None = None) -> Requests:
    """The requests of a transcript whose prompts are both reported and counted.

    Left out are requests without usage (aborted ones), with a prompt of 0, and those that only made a summary: their
    instructions are not recorded.

    Parameters
    ----------
    model : str, optional
        Only those of this model.
    """
    transcript, prompts = ledger.transcript, ledger.prompts
    names = {thread.id: at for at, thread in enumerate(transcript.threads)}
    found = [
        (call.index, names[call.thread], int(call.thread != MAIN), sent)
        for call, known in zip(transcript.calls, prompts.known.tolist(), strict=True)
        if known and call.kind == "response" and (sent := _sent(call)) and (model is None or bare_name(call.model) == bare_name(model))
    ]
    table = np.array(found, np.int64).reshape(-1, 4)
    texts, aside = split(prompts.sums[table[:, 0]])
    return Requests(table[:, 0], table[:, 1], table[:, 2], table[:, 3], texts, aside)


def _sent(call: Call) -> int | None:
    """A server that makes several requests of one call reports their sum; what was sent to it is the first one's prompt."""
    if call.usage is not None and call.usage.iterations:
        return call.usage.iterations[0].prompt
    return prompt_of(call)


def calibrate(ledger: Ledger, *, model: str | None = None, method: Method = "line") -> CalibratedCounter:
    """Fit the ledger's counter to what the provider reported in the same session.

    Parameters
    ----------
    model : str, optional
        Whose requests count; by default those of the transcript's model. Tokenizers differ between models.
    method : {"line", "ewma"}
        ``line``: a factor and a fixed overhead for each thread, both medians, so that outliers, resumed sessions and
        compactions do not bend them. ``ewma``: vak's moving average of tokens per byte of text, without an overhead.

    Returns
    -------
    CalibratedCounter
        For ``wb.count(transcript, counter=…)``. Its range is that of requests which the fit had not seen: each fifth of the
        session predicted from the other four, and from those before it; the wider of both, and no narrower than for those seen. It
        speaks of this session so far: one that then changes (a compaction, an answer that is not sent again) may leave it.

    Raises
    ------
    CounterError
        Too few requests of this model report their prompts, or these hardly differ.

    Examples
    --------
    >>> from workbench.ledger import count
    >>> from workbench.model import Message, Source, Text, Transcript, Usage
    >>> messages = tuple(Message(at, "", ("user", "assistant")[at % 2], (Text("word " * 50 * at),)) for at in range(24))
    >>> calls = [Call(at, "", "gpt-4o", produced=(2 * at + 1,)) for at in range(12)]
    >>> t = Transcript("t", Source("made"), messages, tuple(calls))
    >>> told = [row.estimated + 4_000 for row in count(t).reported]  # a provider that counts alike, and a hidden prompt
    >>> t = replace(t, calls=tuple(replace(call, usage=Usage(tokens)) for call, tokens in zip(calls, told)))
    >>> calibrate(count(t)).label
    'o200k + 4,000, fitted to 12 requests, ± 0 %'
    """
    model = model or ledger.transcript.model
    if method == "ewma":
        return _ewma(ledger, model)
    rows = requests(ledger, model)
    line = _line(rows, model)
    base, factor = _scaled(ledger.counter, line.factor)
    counter = CalibratedCounter(base, factor, exact=base.exact and factor == 1, requests=len(rows.calls))
    # The overhead is fitted to what this counter counts, rounding and all, so that its sums are as true as can be.
    again = requests(count(ledger.transcript, counter, framing=ledger.frame_rule), model)
    held = held_out(rows)
    known = ~np.isnan(held)
    errors = relative(held[known], rows.reported[known])
    overheads = _overheads(ledger, again, line)
    rest = again.reported - again.counted
    seen = relative(again.counted + np.rint(levels(rest, line.runs)), again.reported)
    others = [item.tokens for item in overheads if item.thread != MAIN]
    return replace(
        counter,
        error=_up(max(_quantile(some, HELD) for some in (errors, _ahead(rows), seen))),
        median=_up(float(np.median(errors)) if len(errors) else 0.0),
        overheads=overheads,
        elsewhere=round(float(np.median(others))) if others else 0,
    )


def _line(rows: Requests, model: str | None) -> Line:
    of = f" of {model[:60]}" if model else ""
    if len(rows.calls) < FEWEST:
        number = len(rows.calls)
        few = f"{'no request' if not number else f'only {number} request'}{'' if number < 2 else 's'}{of} report{'s' if number < 2 else ''} a prompt"
        raise CounterError(f"too little usage to calibrate with: {few}; {FEWEST} are needed")
    spread = max(int(np.ptp(rows.texts[rows.threads == thread])) for thread in np.unique(rows.threads))
    line = fit(rows.texts, rows.reported - rows.aside, rows.threads) if spread >= SPREAD else None
    if line is None:
        raise CounterError(f"too little usage to calibrate with: the prompts{of} differ by {spread:,} counted tokens; {SPREAD} are needed")
    return line


def _scaled(counter: Counter, factor: float) -> tuple[Counter, float]:
    """One factor on a counter that has none. Four decimals, so that its name stays short."""
    if isinstance(counter, ScaledCounter):
        return counter.base, counter.factor if factor == 1 else round(counter.factor * factor, 4)
    return counter, round(factor, 4)


def _overheads(ledger: Ledger, rows: Requests, line: Line) -> tuple[Overhead, ...]:
    tokens = levels(rows.reported - rows.counted, line.runs)
    names = [thread.id for thread in ledger.transcript.threads]
    found = []
    for run in np.unique(line.runs):
        at = np.flatnonzero(line.runs == run)
        found.append(Overhead(names[int(rows.threads[at[0]])], int(rows.calls[at[0]]), round(float(tokens[at[0]])), len(at)))
    return tuple(sorted(found, key=lambda item: item.call))


def held_out(rows: Requests) -> Floats:
    """Predict each fifth of the requests from the other four, shape (n,); nan where these say nothing."""
    return _predicted(rows, lambda part, parts: parts != part)


def _ahead(rows: Requests) -> Floats:
    """Relative errors of each fifth when it is predicted from those before it."""
    found = _predicted(rows, lambda part, parts: parts < part)
    known = ~np.isnan(found)
    return relative(found[known], rows.reported[known])


def _predicted(rows: Requests, knows: Callable[[int, Ints], Bools]) -> Floats:
    parts = np.arange(len(rows.calls)) * PARTS // max(1, len(rows.calls))
    out = np.full(len(rows.calls), np.nan)
    for part in range(PARTS):
        found = predict(rows.texts, rows.reported - rows.aside, rows.threads, rows.kinds, knows(part, parts))
        out[parts == part] = (found + rows.aside)[parts == part]
    return out


def relative(estimated: Floats | Ints, reported: Ints) -> Floats:
    """Size of the error as a share of what was reported, shape (n,)."""
    out: Floats = np.abs(estimated - reported) / reported
    return out


def _quantile(values: Floats, share: float) -> float:
    """The smallest value that holds for at least this share of all."""
    return float(np.quantile(values, share, method="inverted_cdf")) if len(values) else 0.0


def _up(value: float) -> float:
    """Rounded up to a thousandth: a stated range is never narrower than the measured one."""
    return math.ceil(round(value * 1000, 6)) / 1000


def _ewma(ledger: Ledger, model: str | None) -> CalibratedCounter:
    rows = requests(count(ledger.transcript, RatioCounter(1.0), framing=ledger.frame_rule), model)
    if not len(rows.calls):
        raise CounterError(f"too little usage to calibrate with: no request{f' of {model[:60]}' if model else ''} reports a prompt")
    average, estimates = ewma(rows.texts, rows.reported)
    errors = relative(estimates[1:], rows.reported[1:])
    return CalibratedCounter(
        RatioCounter(),
        round(average.value * 4, 4),
        error=_up(_quantile(errors, HELD)) if len(errors) else RatioCounter().error,
        median=_up(float(np.median(errors))) if len(errors) else RatioCounter().error,
        requests=len(rows.calls),
        method="ewma",
    )


def ewma(sizes: Ints, reported: Ints) -> tuple[Ewma, Floats]:
    """vak's average after all requests, and what it said of each before it was made, shape (n,).

    Parameters
    ----------
    sizes : int array, shape (n,)
        Bytes of text in each prompt.

    Examples
    --------
    >>> average, said = ewma(np.array([400, 800]), np.array([200, 200]))
    >>> average.value, said.tolist()
    (0.425, [100.0, 400.0])
    """
    average, said = Ewma(), np.zeros(len(sizes))
    for at, (size, tokens) in enumerate(zip(sizes.tolist(), reported.tolist(), strict=True)):
        said[at] = size * (average.value if average.samples else UNCALIBRATED_TOKENS_PER_CHAR)
        if size > 0:
            average = average.observe(tokens / size)
    return average, said
