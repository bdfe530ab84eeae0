"""Several policies at one budget: what each answers, and the messages on which they part."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from ..errors import PolicyError, WorkbenchError
from ..ledger import KIND, Ledger, View, count
from ..model import KINDS, MAIN, Budget, History, Transcript
from ..tokens.base import Ints
from .base import DEFAULT_BUDGET, Edited, Fate, Note, Policy, Request, Selection
from .registry import SYSTEMS, as_policy, make_request

if TYPE_CHECKING:
    import pandas as pd

_LABEL = 80  # characters; a parameter may be a long text

Way = Literal["sent", "text", "trace"]
#: How policies part on a message. ``sent``: some send it, others do not. ``text``: all send it, but not with the same
#: words. ``trace``: none sends it, but for some a note stands for it, and others drop it without a trace.
WAYS: tuple[Way, ...] = ("sent", "text", "trace")


@dataclass(frozen=True, slots=True)
class Difference:
    """A message on which policies part.

    Parameters
    ----------
    fates : mapping
        Its fate by the label of each policy that has an answer.
    """

    index: int
    way: Way
    fates: Mapping[str, str]


@dataclass(frozen=True)
class Comparison:
    """What several policies answer to one request. Made by `compare`.

    Parameters
    ----------
    labels : tuple of str
        One per policy: its name; with its parameters where the same policy stands here twice.
    outcomes : tuple of Selection or WorkbenchError
        One per policy: its answer, or why it has none (a `BudgetError`: the budget cannot hold).

    Examples
    --------
    >>> from workbench.model import Message, Source, Text, Transcript
    >>> texts = ("a question " * 90, "an answer " * 90, "and now?", "so it is")
    >>> roles = ("user", "assistant") * 2
    >>> messages = tuple(Message(i, "", role, (Text(text),)) for i, (role, text) in enumerate(zip(roles, texts)))
    >>> both = compare(Transcript("t", Source("made"), messages), ["none", "scv"], Budget(300, 0, 0))
    >>> both["scv"].counts["summarized"], both["none"].counts["summarized"]
    (2, 0)
    >>> both.differ[0]
    Difference(index=0, way='sent', fates={'none': 'kept', 'scv': 'summarized'})
    >>> both.messages[["none", "scv", "way"]].to_dict("list")
    {'none': ['kept', 'kept'], 'scv': ['summarized', 'summarized'], 'way': ['sent', 'sent']}
    """

    request: Request
    labels: tuple[str, ...]
    policies: tuple[Policy, ...]
    outcomes: tuple[Selection | WorkbenchError, ...]

    def __repr__(self) -> str:
        said = ", ".join(f"{label} {outcome.after_tokens:,}" if isinstance(outcome, Selection) else f"{label} –" for label, outcome in self)
        parted = f"; they part on {len(self.differ_rows):,} of {len(self.view.indices):,} messages" if len(self.selections) > 1 else ""
        return f"<Comparison of {self.view.total:,} tokens: {said}{parted}>"

    def __iter__(self) -> Iterator[tuple[str, Selection | WorkbenchError]]:
        """Each label with its policy's outcome."""
        return zip(self.labels, self.outcomes, strict=True)

    def __getitem__(self, label: str) -> Selection:
        """The selection of a policy, by its label.

        Raises
        ------
        WorkbenchError
            Why it has none.
        PolicyError
            No policy has this label here.
        """
        if label not in self.labels:
            raise PolicyError(f"no policy is called {str(label)[:80]!r} in this comparison; it has {', '.join(self.labels)}")
        outcome = self.outcomes[self.labels.index(label)]
        if isinstance(outcome, WorkbenchError):
            raise outcome
        return outcome

    @property
    def view(self) -> View:
        """The rows that all of them were asked about."""
        return self.request.view

    @property
    def budget(self) -> Budget:
        """The budget that all of them were given."""
        return self.request.budget

    @cached_property
    def selections(self) -> dict[str, Selection]:
        """The answers by label; a policy without one is left out."""
        return {label: outcome for label, outcome in self if isinstance(outcome, Selection)}

    @cached_property
    def way_codes(self) -> npt.NDArray[np.uint8]:
        """How the policies part on each row, shape (n,): 0 if they do not, else the place in `WAYS` plus 1."""
        answers = list(self.selections.values())
        codes = np.zeros(len(self.view.indices), np.uint8)
        if len(answers) < 2:
            return codes
        fates = np.stack([answer.fate_codes for answer in answers])
        sent = fates <= Fate.EDITED
        some, every = sent.any(axis=0), sent.all(axis=0)
        differ = (fates != fates[0]).any(axis=0)
        codes[differ] = 1 + WAYS.index("sent")
        codes[differ & every] = 1 + WAYS.index("text")
        codes[differ & ~some] = 1 + WAYS.index("trace")
        same = np.flatnonzero((fates == Fate.EDITED).all(axis=0))
        if len(same):
            texts = [{item.index: item.message.parts for item in answer.items if type(item) is Edited} for answer in answers]
            for row, index in zip(same.tolist(), self.view.indices[same].tolist(), strict=True):
                if any(words.get(index) != texts[0].get(index) for words in texts[1:]):
                    codes[row] = 1 + WAYS.index("text")
        return codes

    @cached_property
    def differ_rows(self) -> Ints:
        """Rows of the view on which the policies part, in order."""
        return np.flatnonzero(self.way_codes)

    @cached_property
    def stretches(self) -> tuple[tuple[int, int], ...]:
        """Rows on which they part, as runs of neighbours with the same fates: the first row, and the one after the last."""
        rows = self.differ_rows
        if not len(rows):
            return ()
        pattern = np.stack([*(answer.fate_codes for answer in self.selections.values()), self.way_codes])
        new = (np.diff(rows) != 1) | (pattern[:, rows[1:]] != pattern[:, rows[:-1]]).any(axis=0)
        first, last = rows[np.concatenate([[True], new])], rows[np.concatenate([new, [True]])]
        return tuple(zip(first.tolist(), (last + 1).tolist(), strict=True))

    @cached_property
    def differ(self) -> tuple[Difference, ...]:
        """The messages on which the policies that have an answer part, in order, and in what way."""
        view, ways = self.view, self.way_codes.tolist()
        return tuple(
            Difference(int(view.indices[row]), WAYS[ways[row] - 1], {label: answer.fates[row] for label, answer in self.selections.items()})
            for row in self.differ_rows.tolist()
        )

    @property
    def frame(self) -> pd.DataFrame:
        """One row per policy. See `frames.comparison`."""
        from .. import frames

        return frames.comparison(self)

    @property
    def messages(self) -> pd.DataFrame:
        """The messages on which they part, one row each, with one column of fates per policy. See `frames.differences`."""
        from .. import frames

        return frames.differences(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self)}


def compare(
    source: Ledger | Transcript,
    policies: Sequence[str | Policy] | None = None,
    budget: Budget | None = None,
    *,
    history: History = "full",
    thread: str = MAIN,
    pins: Iterable[int] = (),
) -> Comparison:
    """Ask several policies what one request on all messages of a thread would carry.

    Parameters
    ----------
    source : Ledger or Transcript
        A transcript is counted with the counter of its model.
    policies : sequence of str or Policy, optional
        Names, or policies with their parameters. Default: the four systems.
    budget : Budget, optional
        Default: a window of 128,000.
    history, thread, pins
        As for `select`.

    Returns
    -------
    Comparison
        A policy that cannot hold the budget is a row in it, and raises nothing.

    Raises
    ------
    PolicyError
        A policy, the thread or the history is unknown, a pin is no index, or the budget is no budget.

    Examples
    --------
    >>> from workbench.model import Message, Source, Text, Transcript
    >>> t = Transcript("t", Source("made"), (Message(0, "", "user", (Text("hello"),)),))
    >>> compare(t, ["none", "scv"], Budget(10, 0, 0))
    <Comparison of 8 tokens: none 8, scv –>
    """
    if isinstance(policies, str) or hasattr(policies, "select"):
        policies = [policies]  # type: ignore[list-item]
    chosen = [as_policy(policy) for policy in (SYSTEMS if policies is None else policies)]
    if not chosen:
        raise PolicyError("there is no policy to compare; give two names or more, for example ['none', 'scv']")
    if not isinstance(source, Ledger | Transcript):
        raise PolicyError(f"compare needs a ledger or a transcript, not {type(source).__name__}; try compare(wb.count(wb.read(path)), …)")
    ledger = count(source) if isinstance(source, Transcript) else source
    request = make_request(ledger, DEFAULT_BUDGET if budget is None else budget, history=history, thread=thread, pins=pins)
    return comparison(request, chosen, [answer(policy, request) for policy in chosen])


def comparison(request: Request, policies: Sequence[Policy], outcomes: Sequence[Selection | WorkbenchError]) -> Comparison:
    """A comparison of answers that are there already."""
    return Comparison(request, labels(policies), tuple(policies), tuple(outcomes))


def answer(policy: Policy, request: Request) -> Selection | WorkbenchError:
    """What a policy answers, or why it cannot."""
    try:
        return policy.select(request)
    except WorkbenchError as error:
        return error.with_traceback(None)  # its frames would keep the transcript alive


def labels(policies: Sequence[Policy]) -> tuple[str, ...]:
    """What to call each policy: its name; where that is another's too, with the parameters that are not its defaults.

    Examples
    --------
    >>> from workbench.policies import Scv, NoPolicy
    >>> labels([Scv(), NoPolicy(), Scv(summary_max_chars=4_000), Scv()])
    ('scv', 'none', 'scv summary_max_chars=4000', 'scv (2)')
    """
    names = [policy.info.name for policy in policies]
    found: list[str] = []
    for policy, name in zip(policies, names, strict=True):
        label = name
        if names.count(name) > 1:
            given = [f"{item.name}={value}" for item in dataclasses.fields(policy) if (value := getattr(policy, item.name)) != item.default]  # type: ignore[arg-type]
            label = " ".join([name, *given])
            label = label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"
        number, first = 1, label
        while label in found:
            number += 1
            label = f"{first} ({number})"
        found.append(label)
    return tuple(found)


def item_kinds(selection: Selection) -> Ints:
    """Tokens of each item by kind, shape (len(items), len(KINDS)); the sum of a row is its `item_tokens`.

    All of a note is of kind note, but for its framing.
    """
    view = selection.request.view
    table = np.zeros((len(selection.items), len(KINDS)), np.int64)
    kept = selection.item_rows >= 0
    table[kept] = view.kinds[selection.item_rows[kept]]
    new = np.flatnonzero(~kept)
    items = [selection.items[at] for at in new.tolist()]
    table[new] = view.ledger.count_kinds([item.message for item in items])  # type: ignore[union-attr]
    for at, item in zip(new.tolist(), items, strict=True):
        if type(item) is Note:
            framing = int(table[at, KIND["framing"]])
            table[at] = 0
            table[at, KIND["framing"]] = framing
            table[at, KIND["note"]] = int(selection.item_tokens[at]) - framing
    return table


def sent_kinds(selection: Selection) -> dict[str, int]:
    """Tokens of the whole request by kind; they sum to `after_tokens`."""
    sums = outside_kinds(selection.request.view) + item_kinds(selection).sum(axis=0)
    return dict(zip(KINDS, sums.tolist(), strict=True))


def outside_kinds(view: View) -> Ints:
    """Tokens by kind of what a request holds outside its messages, shape (len(KINDS),)."""
    outside: Ints = view.fixed_kinds - view.kinds[: view.lead].sum(axis=0)
    return outside
