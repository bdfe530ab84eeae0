"""A policy asked in the middle of a session, so that the rest of it is the future."""

from __future__ import annotations

from dataclasses import replace

from ..ledger import Memo, View
from ..policies.base import Policy, Request, Selection


def first_rows(view: View, rows: int) -> View:
    """The first rows of a view as a view of its own: what the thread was then."""
    return replace(
        view,
        indices=view.indices[:rows],
        messages=view.messages[:rows],
        lead=min(view.lead, rows),
        tokens=view.tokens[:rows],
        kinds=view.kinds[:rows],
        memo=Memo(),
    )


def select_then(policy: Policy, request: Request, rows: int) -> Selection:
    """What a policy answers to a request when the thread had only its first rows; with the calls and the clock of then.

    Raises
    ------
    WorkbenchError
        As the policy's `select`.
    """
    view = first_rows(request.view, rows)
    known = view.row_of
    calls = tuple(call for call in request.calls if call.produced and call.produced[0] in known)
    now = max((message.ts for message in view.messages if message.ts is not None), default=None)
    return policy.select(replace(request, view=view, calls=calls, now=now, pins=request.pins & known.keys()))
