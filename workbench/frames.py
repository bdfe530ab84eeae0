"""Pandas views of ledgers and selections. The only core file that imports pandas; nothing is computed here that is not there.

Unknown is `NA`, never 0: whole numbers that may be unknown are nullable ``Int64``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .errors import BudgetError
from .estimates import SHARES, Estimates, by_kind
from .ledger import KIND, Ledger, View
from .losses import Losses
from .model import KINDS, MAIN, Budget, History, Message, ToolCall, ToolResult, Transcript, Usage
from .policies.base import FATES, Edited, Kept, Policy, Selection, params_of
from .policies.compare import WAYS, Comparison, sent_kinds
from .policies.compare import compare as compare_policies
from .preview import one_line, preview, words_of
from .tokens.base import Ints, repaired

_ROLE_KIND = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool_result", "note": "note"}


def messages(ledger: Ledger, thread: str | None = None) -> pd.DataFrame:
    """One row per message of a transcript.

    Parameters
    ----------
    thread : str, optional
        Only this thread. Default: all of them; a policy acts on one.

    Returns
    -------
    DataFrame
        Indexed by ``Message.index``: thread, role, kind (what most of its tokens are), turn (`NA` for the fixed part and for
        summaries of real compactions), tokens, estimated, opaque_bytes, tokens by kind (they sum to tokens), time,
        call, tool, flags, preview.

    Examples
    --------
    >>> from workbench.ledger import count
    >>> from workbench.model import Source, Text, Transcript
    >>> ledger = count(Transcript("t", Source("openai-chat"), (Message(0, "", "user", (Text("hello world"),)),)), "o200k_base")
    >>> messages(ledger)[["role", "kind", "tokens", "framing", "preview"]].to_dict("records")
    [{'role': 'user', 'kind': 'user', 'tokens': 6, 'framing': 4, 'preview': 'hello world'}]
    """
    chosen = [item for item in ledger.transcript.messages if thread is None or item.thread == thread]
    at = np.array([item.index for item in chosen], np.int64)
    turns = _turns_of(ledger)
    kinds = ledger.kind_tokens[at]
    return pd.DataFrame(
        {
            "thread": _texts(item.thread for item in chosen),
            "role": _texts(item.role for item in chosen),
            "kind": _texts(_main_kinds(chosen, kinds)),
            "turn": _whole([turns.get(item.index) for item in chosen]),
            "tokens": ledger.message_tokens[at],
            "estimated": ledger.message_estimated[at],
            "opaque_bytes": ledger.message_opaque[at],
            **{kind: kinds[:, code] for kind, code in KIND.items()},
            "time": _times([item.ts for item in chosen]),
            "call": _whole([item.call for item in chosen]),
            "tool": _texts(_tools(item) for item in chosen),
            "flags": _texts(" ".join(sorted(item.flags)) for item in chosen),
            "preview": _texts(preview(item) for item in chosen),
        },
        index=pd.Index(at, name="index"),
    )


def turns(ledger: Ledger, thread: str = MAIN, history: History = "full") -> pd.DataFrame:
    """One row per turn group of a thread.

    Returns
    -------
    DataFrame
        Indexed by turn: start (the person's message that started it), first, last, messages, tokens, tokens by kind, time,
        preview. The fixed part is in none of them: their tokens and ``view.fixed`` make ``view.total``.
    """
    view = ledger.view(thread, history)
    groups = view.turns
    every = ledger.transcript.messages
    rows = view.row_of
    kinds = np.array([view.kinds[[rows[index] for index in group.messages]].sum(axis=0) for group in groups], np.int64).reshape(-1, len(KINDS))
    heads = [every[group.messages[0] if group.user is None else group.user] for group in groups]
    return pd.DataFrame(
        {
            "start": _whole([group.user for group in groups]),
            "first": np.array([group.messages[0] for group in groups], np.int64),
            "last": np.array([group.messages[-1] for group in groups], np.int64),
            "messages": np.array([len(group.messages) for group in groups], np.int64),
            "tokens": kinds.sum(axis=1),
            **{kind: kinds[:, code] for kind, code in KIND.items()},
            "time": _times([head.ts for head in heads]),
            "preview": _texts(preview(head) for head in heads),
        },
        index=pd.RangeIndex(len(groups), name="turn"),
    )


def kinds(ledger: Ledger, thread: str = MAIN, history: History = "full") -> pd.DataFrame:
    """One row per kind of a thread, the fixed part included.

    Returns
    -------
    DataFrame
        Indexed by kind, in the order of ``KINDS``: tokens, share (0 to 1), fixed (the part of them that belongs to the fixed
        part), messages (how many hold some).
    """
    view = ledger.view(thread, history)
    tokens = np.array(list(view.by_kind.values()), np.int64)
    return pd.DataFrame(
        {
            "tokens": tokens,
            "share": tokens / max(view.total, 1),
            "fixed": view.fixed_kinds,
            "messages": (view.kinds > 0).sum(axis=0),
        },
        index=pd.Index(KINDS, name="kind"),
    )


def parts(ledger: Ledger) -> pd.DataFrame:
    """One row per part of every message; what a tool result holds has a row each.

    Returns
    -------
    DataFrame
        message, part (its place there), kind, tokens, estimated, opaque_bytes (`NA` where the size is not recorded, 0 where
        nothing is opaque), tool, preview. With each message's framing the tokens make the message.
    """
    every = ledger.transcript.messages
    at = list(zip(ledger.part_message.tolist(), ledger.part_number.tolist(), strict=True))
    chosen = [every[message].parts[number] for message, number in at]
    return pd.DataFrame(
        {
            "message": ledger.part_message,
            "part": ledger.part_number,
            "kind": _texts(KINDS[code] for code in ledger.part_kind.tolist()),
            "tokens": ledger.part_tokens,
            "estimated": ledger.part_estimated,
            "opaque_bytes": _whole([None if size < 0 else size for size in ledger.part_opaque.tolist()]),
            "tool": _texts(part.name or "" if isinstance(part, ToolCall | ToolResult) else "" for part in chosen),
            "preview": _texts(one_line(words_of(part)) for part in chosen),
        }
    )


def calls(ledger: Ledger) -> pd.DataFrame:
    """One row per provider request of every thread.

    Returns
    -------
    DataFrame
        Indexed by call: id, thread, kind, model, time, stop_reason, produced (messages), the disjoint buckets of its usage,
        prompt and total as reported, estimated_prompt (counted here), unattributed (reported beyond the estimate).
        What was not recorded is `NA`.
    """
    every = ledger.transcript.calls
    usages = [call.usage or Usage() for call in every]
    return pd.DataFrame(
        {
            "id": _texts(call.id for call in every),
            "thread": _texts(call.thread for call in every),
            "kind": _texts(call.kind for call in every),
            "model": _texts(call.model or "" for call in every),
            "time": _times([call.ts for call in every]),
            "stop_reason": _texts(call.stop_reason or "" for call in every),
            "produced": np.array([len(call.produced) for call in every], np.int64),
            **{name: _whole([getattr(usage, name) for usage in usages]) for name in Usage.BUCKETS},
            "prompt": _whole([usage.prompt for usage in usages]),
            "total": _whole([usage.total for usage in usages]),
            "estimated_prompt": _whole([row.estimated for row in ledger.reported]),
            "unattributed": _whole([row.unattributed for row in ledger.reported]),
        },
        index=pd.RangeIndex(len(every), name="call"),
    )


def selection(chosen: Selection) -> pd.DataFrame:
    """One row per message of the history that a selection was made from.

    Returns
    -------
    DataFrame
        Indexed by ``Message.index``: role, kind, turn, fate, quoted (its words stand in a note), tokens, sent_tokens (as kept or
        edited; 0 if it is not sent), preview. Notes and added texts are not rows: see ``Selection.items``.
    """
    view = chosen.request.view
    sent = np.zeros(len(view.indices), np.int64)
    rows = view.row_of
    for item, tokens in zip(chosen.items, chosen.item_tokens.tolist(), strict=True):
        if isinstance(item, Kept | Edited):
            sent[rows[item.index]] += tokens
    quoted = {index for note in chosen.notes for index in note.quotes}
    turn = _turns_in(view)
    return pd.DataFrame(
        {
            "role": _texts(message.role for message in view.messages),
            "kind": _texts(_main_kinds(view.messages, view.kinds)),
            "turn": _whole([turn.get(message.index) for message in view.messages]),
            "fate": _texts(chosen.fates),
            "quoted": np.array([message.index in quoted for message in view.messages], bool),
            "tokens": view.tokens,
            "sent_tokens": sent,
            "preview": _texts(preview(message) for message in view.messages),
        },
        index=pd.Index(view.indices, name="index"),
    )


def compare(
    source: Ledger | Transcript,
    policies: Sequence[str | Policy] | None = None,
    budget: Budget | None = None,
    *,
    history: History = "full",
    thread: str = MAIN,
    pins: Iterable[int] = (),
) -> pd.DataFrame:
    """Compare several policies at one budget: one row each.

    The messages on which they part, and the selections themselves, are in what ``policies.compare`` returns for the same
    arguments: its ``frame`` is this one, its ``messages`` has a row per message and a column of fates per policy.

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
    DataFrame
        See `comparison`.

    Raises
    ------
    PolicyError
        A policy, the thread or the history is unknown, a pin is no index, or the budget is no budget. A budget that cannot
        hold is a row, and raises nothing.

    Examples
    --------
    >>> from workbench.model import Source, Text
    >>> t = Transcript("t", Source("made"), (Message(0, "", "user", (Text("hello"),)),))
    >>> compare(t, ["none", "scv"], Budget(10, 0, 0))[["feasible", "after_tokens", "needed"]].to_dict("index")
    {'none': {'feasible': True, 'after_tokens': 8, 'needed': None}, 'scv': {'feasible': False, 'after_tokens': None, 'needed': 16}}
    """
    return comparison(compare_policies(source, policies, budget, history=history, thread=thread, pins=pins))


def comparison(made: Comparison) -> pd.DataFrame:
    """One row per policy of a comparison.

    Returns
    -------
    DataFrame
        Indexed by the policy's label: feasible; before_tokens, after_tokens; own_before, own_after (in its own estimate); kept,
        edited, summarized, dropped (messages; they sum to all); quoted; notes, note_tokens; findings (what the session's provider
        would mind); tokens of what is sent by kind (they sum to after_tokens); needed, available, culprit (where the budget
        cannot hold), problem (why there is no answer, in one line). What a policy without an answer lacks is `NA`.
    """
    answers = [outcome if isinstance(outcome, Selection) else None for outcome in made.outcomes]
    tight = [outcome if isinstance(outcome, BudgetError) else None for outcome in made.outcomes]
    sent = [None if answer is None else sent_kinds(answer) for answer in answers]

    def column(number: Callable[[Selection], int]) -> pd.api.extensions.ExtensionArray:
        return _whole([None if answer is None else number(answer) for answer in answers])

    return pd.DataFrame(
        {
            "feasible": np.array([answer is not None for answer in answers], bool),
            "before_tokens": np.full(len(answers), made.view.total, np.int64),
            "after_tokens": column(lambda answer: answer.after_tokens),
            "own_before": column(lambda answer: answer.own_before),
            "own_after": column(lambda answer: answer.own_after),
            **{fate: column(lambda answer, fate=fate: answer.counts[fate]) for fate in FATES},  # type: ignore[misc]
            "quoted": column(lambda answer: answer.quoted),
            "notes": column(lambda answer: len(answer.notes)),
            "note_tokens": column(lambda answer: sum(answer.note_tokens)),
            "findings": column(lambda answer: len(answer.alarms)),
            **{kind: _whole([None if tokens is None else tokens[kind] for tokens in sent]) for kind in KINDS},
            "needed": _whole([None if error is None else error.needed for error in tight]),
            "available": _whole([None if error is None else error.available for error in tight]),
            "culprit": _texts("" if error is None else error.culprit for error in tight),
            "problem": _texts("" if isinstance(outcome, Selection) else str(outcome) for outcome in made.outcomes),
        },
        index=pd.Index(_texts(made.labels), name="policy"),
    )


def differences(made: Comparison) -> pd.DataFrame:
    """One row per message on which the policies of a comparison part.

    Returns
    -------
    DataFrame
        Indexed by ``Message.index``: role, tokens, way (how they part: see ``policies.compare.WAYS``), the fate by each policy that has
        an answer (a column by its label), preview.
    """
    view, rows = made.view, made.differ_rows
    messages = [view.messages[row] for row in rows.tolist()]
    return pd.DataFrame(
        {
            "role": _texts(message.role for message in messages),
            "tokens": view.tokens[rows],
            "way": _texts(WAYS[code - 1] for code in made.way_codes[rows].tolist()),
            **{repaired(label): _texts(FATES[code] for code in answer.fate_codes[rows].tolist()) for label, answer in made.selections.items()},
            "preview": _texts(preview(message) for message in messages),
        },
        index=pd.Index(view.indices[rows], name="index"),
    )


def estimates(found: Estimates, *, hidden: bool = False) -> pd.DataFrame:
    """One row per estimate of a session's prompts, against what the provider reported.

    Parameters
    ----------
    hidden : bool
        Give every estimate the tokens that the file does not hold. See `Estimates.accuracy`.

    Returns
    -------
    DataFrame
        Indexed by the estimate's name: source; bias, median, within_90, worst (relative errors); margin_50, margin_90, margin_99,
        margin_100 (tokens of safety margin that would have held in so many percent of the requests).
    """
    rows = found.accuracy(hidden=hidden)
    return pd.DataFrame(
        {
            "source": _texts(row.source for row in rows),
            "bias": np.array([row.bias for row in rows], np.float64),
            "median": np.array([row.median for row in rows], np.float64),
            "within_90": np.array([row.within for row in rows], np.float64),
            "worst": np.array([row.most for row in rows], np.float64),
            **{f"margin_{share:.0%}".rstrip("%"): np.array([row.margins[at] for row in rows], np.int64) for at, share in enumerate(SHARES)},
        },
        index=pd.Index(_texts(row.name for row in rows), name="estimate"),
    )


def estimated_requests(found: Estimates) -> pd.DataFrame:
    """One row per request with a reported prompt.

    Returns
    -------
    DataFrame
        Indexed by call: thread; reported; hidden (tokens that the file does not hold, by the calibration), bytes (of recorded text); then a
        column for each estimate, by its name.
    """
    calls = found.requests.calls.tolist()
    columns: dict[str, Any] = {
        "thread": _texts(found.ledger.transcript.calls[call].thread for call in calls),
        "reported": found.reported,
        "hidden": found.hidden,
        "bytes": found.sizes,
    }
    return pd.DataFrame({**columns, **{item.name: item.tokens for item in found.estimates}}, index=pd.Index(calls, name="call", dtype=np.int64))


def kind_errors(ledger: Ledger) -> pd.DataFrame:
    """One row per kind of message: tokens and steps that it was judged by, tokens reported for one counted, standard error (NaN: cannot be told)."""
    rows = by_kind(ledger)
    return pd.DataFrame(
        {
            "tokens": np.array([row.tokens for row in rows], np.int64),
            "steps": np.array([row.steps for row in rows], np.int64),
            "factor": np.array([np.nan if row.factor is None else row.factor for row in rows], np.float64),
            "error": np.array([np.nan if row.error is None else row.error for row in rows], np.float64),
        },
        index=pd.Index(_texts(row.kind for row in rows), name="kind"),
    )


def losses(found: Losses) -> pd.DataFrame:
    """One row per measure of what was lost.

    Returns
    -------
    DataFrame
        Indexed by the measure's name: title, count, of, share (`NA` if there was nothing to count), more_is_worse.
    """
    measures = tuple(found)
    return pd.DataFrame(
        {
            "title": _texts(item.title for item in measures),
            "count": [item.count for item in measures],
            "of": [item.of for item in measures],
            "share": pd.array([item.share for item in measures], dtype="Float64"),
            "more_is_worse": [item.more_is_worse for item in measures],
        },
        index=pd.Index([item.name for item in measures], name="measure"),
    )


def lost_rows(found: Losses) -> pd.DataFrame:
    """One row per thing that was removed and that a measure counts, what is lost first in each measure.

    Returns
    -------
    DataFrame
        measure, kind, text, source, removed, needed (messages; `NA` for none), held (``kept``, ``note`` or ``""``).
    """
    rows = [(measure.name, row) for measure in found for row in measure.rows]
    return pd.DataFrame(
        {
            "measure": _texts(name for name, _ in rows),
            "kind": _texts(row.kind for _, row in rows),
            "text": _texts(row.text for _, row in rows),
            **{place: _whole([None if getattr(row, place) < 0 else getattr(row, place) for _, row in rows]) for place in ("source", "removed", "needed")},
            "held": _texts(row.held for _, row in rows),
        }
    )


def policies(chosen: Iterable[Policy]) -> pd.DataFrame:
    """One row per policy.

    Returns
    -------
    DataFrame
        Indexed by name: title, summary, origin, version, as_of, evidence, mechanisms, promises, persistent, limit, params.

    Examples
    --------
    >>> from workbench.policies import get, list as names
    >>> policies(map(get, names())).loc["scv", "limit"]
    'budget'
    """
    every = list(chosen)
    infos = [policy.info for policy in every]
    words = {name: _texts(getattr(info, name) for info in infos) for name in ("title", "summary", "origin", "version", "as_of", "evidence")}
    return pd.DataFrame(
        {
            **words,
            "mechanisms": _texts(", ".join(info.mechanisms) for info in infos),
            "promises": _texts(", ".join(sorted(policy.promises)) for policy in every),
            "persistent": np.array([info.persistent for info in infos], bool),
            "limit": _texts(info.limit for info in infos),
            "params": _texts(", ".join(f"{name}={value!r}" for name, value in params_of(policy).items()) for policy in every),
        },
        index=pd.Index([info.name for info in infos], dtype="str", name="name"),
    )


def _tools(message: Message) -> str:
    names = [part.name for part in message.parts if isinstance(part, ToolCall | ToolResult) and part.name]
    return ", ".join(dict.fromkeys(names))


def _main_kinds(chosen: Sequence[Message], table: Ints) -> list[str]:
    """Of each message the kind that most of its tokens are, framing apart; by its role if it has none."""
    texts = table[:, : KIND["framing"]]
    largest = texts.max(axis=1, initial=0)
    best = np.where(largest > 0, texts.argmax(axis=1), -1) if len(chosen) else largest
    return [KINDS[code] if code >= 0 else _ROLE_KIND[message.role] for message, code in zip(chosen, best.tolist(), strict=True)]


def _turns_in(view: View) -> dict[int, int]:
    return {index: group.index for group in view.turns for index in group.messages}


def _turns_of(ledger: Ledger) -> dict[int, int]:
    """Turn group of each message, in its own thread."""
    found: dict[int, int] = {}
    for thread in ledger.transcript.threads:
        found |= _turns_in(ledger.view(thread.id))
    return found


def _texts(values: Iterable[str]) -> pd.api.extensions.ExtensionArray:
    # A column of texts is Arrow's, and that holds no lone surrogates.
    return pd.array([repaired(value) for value in values], dtype="str")


def _whole(values: Sequence[int | None]) -> pd.api.extensions.ExtensionArray:
    return pd.array([_int64(value) for value in values], dtype="Int64")


def _int64(value: int | None) -> int | None:
    # A damaged source may hold any number; one that no column can hold is not known.
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _times(values: Sequence[int | None]) -> pd.DatetimeIndex:
    limit = 253_402_300_800_000  # the year 10000
    nothing = np.iinfo(np.int64).min  # NumPy's "not a time"
    ms = np.array([value if value is not None and abs(value) < limit else nothing for value in values], np.int64)
    return pd.DatetimeIndex(ms.view("datetime64[ms]")).tz_localize("UTC")
