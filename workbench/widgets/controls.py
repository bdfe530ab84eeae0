"""The controls: policy, history, budget and the policy's fields, all made from metadata, and the result in numbers.

The browser sends what is wanted, all of it; the kernel answers with what is true. Nothing here decides anything:
values go to the `Session` and come back from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import anywidget
import traitlets

from ..errors import BudgetError, WorkbenchError
from ..model import Budget
from ..policies.base import Policy, PolicyInfo, Selection, limit_of
from ..policies.registry import as_policy
from .assets import css, esm
from .session import Session
from .words import as_python

#: The sliders of the budget. The boxes beside them take any whole number.
_RESERVE_HIGH, _MARGIN_HIGH, _WINDOW_LOW, _WINDOW_HIGH = 32_768, 16_384, 1_000, 200_000


class Controls(anywidget.AnyWidget):
    """Picks policy, history, budget and parameters, and shows what comes of it.

    Parameters
    ----------
    session : Session
        Takes what a person does here. `refresh` shows what it holds.
    policies : sequence of PolicyInfo
        What the picker offers; the session's own policy is added if it is not among them.
    """

    _esm = traitlets.Unicode(esm("controls")).tag(sync=True)
    _css = traitlets.Unicode(css("controls")).tag(sync=True)
    catalogue: Any = traitlets.List().tag(sync=True)
    bounds: Any = traitlets.List().tag(sync=True)
    histories: Any = traitlets.List(traitlets.Unicode()).tag(sync=True)
    fields: Any = traitlets.List().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    wanted = traitlets.Dict().tag(sync=True, echo_update=False)

    def __init__(self, session: Session, policies: Sequence[PolicyInfo]) -> None:
        self._session: Session | None = session
        self._infos = {info.name: info for info in policies}
        self._used: dict[str, Policy] = {}  # a policy that was left keeps its parameters
        self._error = ""
        super().__init__(bounds=_bounds(session), state=self._state(session))
        self.refresh()
        self.observe(self._want, "wanted")
        self.on_msg(self._told)

    def refresh(self) -> None:
        """Show what the session holds now."""
        session = self._session
        if session is None:
            return
        policy = session.policy
        self._used[policy.info.name] = policy
        if policy.info.name not in self._infos:
            self._infos[policy.info.name] = policy.info
        with self.hold_sync():
            self.catalogue = _catalogue(list(self._infos.values()))
            self.histories = list(session.histories)
            self.fields = fields_of(policy)
            self.state = self._state(session)

    def refresh_bounds(self) -> None:
        """Fit the sliders to another ledger."""
        if self._session is not None:
            self.bounds = _bounds(self._session)

    def close(self) -> None:
        """Free everything: no reference to the session stays."""
        self._session = None
        self._used.clear()
        self.on_msg(self._told, remove=True)
        self.unobserve_all()
        super().close()

    def __repr__(self) -> str:
        return "<Controls: closed>" if self._session is None else f"<Controls: {self._session.policy!r}, {self._session.budget!r}>"

    def _state(self, session: Session) -> dict[str, Any]:
        policy, budget = session.policy, session.budget
        follows = {field.name: _followed(session, field.metadata["follows"]) for field in dataclasses.fields(policy) if field.metadata.get("follows")}  # type: ignore[arg-type]
        return {
            "seq": int(self.wanted.get("seq", 0)),
            "policy": policy.info.name,
            "summary": policy.info.summary,
            "limit": f"The budget does not bound it; its own limit: {limit}." if (limit := limit_of(policy)) is not None else "",
            "params": {name: list(value) if isinstance(value, tuple) else value for name, value in session.params.items()},
            "follows": follows,
            "budget": [budget.max_tokens, budget.reserve_output_tokens, budget.safety_margin_tokens],
            "history": session.history,
            "hint": session.budget_hint,
            "least": session.smallest_known,
            "error": self._error,
            "result": [list(row) for row in result_rows(session)],
        }

    def _want(self, change: Any) -> None:
        session, wanted = self._session, change["new"]
        if session is None:
            return
        self._error = ""
        before = session.changes
        try:
            self._apply(session, wanted)
        except WorkbenchError as error:
            self._error = str(error)
        except (KeyError, TypeError, ValueError) as error:  # the page sent what no control can send
            self._error = f"the controls sent something unreadable ({type(error).__name__})"
        if session.changes == before or self._error:  # nothing will call refresh
            self.refresh()

    def _apply(self, session: Session, wanted: dict[str, Any]) -> None:
        name, params = str(wanted["policy"]), dict(wanted["params"])
        policy = session.policy if name == session.policy.info.name else self._used.get(name) or as_policy(name)
        known = {field.name: field for field in dataclasses.fields(policy)}  # type: ignore[arg-type]
        if params:
            policy = dataclasses.replace(policy, **{key: _typed(known[key], value) for key, value in params.items()})  # type: ignore[type-var]
        window, reserve, margin = wanted["budget"]
        session.change(policy=policy, budget=Budget(window, reserve, margin), history=wanted["history"])

    def _told(self, _: object, content: Any, __: object) -> None:
        session = self._session
        if session is None or not isinstance(content, dict):
            return
        if content.get("type") == "reset":
            self._error = ""
            self._used.clear()
            session.reset()
        elif content.get("type") == "python":
            self.send({"type": "python", "text": as_python(session)})


def _typed(field: dataclasses.Field[Any], value: Any) -> Any:
    """A value of the page as the field's own type: JSON has no tuples and one kind of number."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(field.default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _catalogue(infos: Sequence[PolicyInfo]) -> list[list[Any]]:
    """The picker's groups: policies by origin, in the order given."""
    groups: dict[str, list[dict[str, str]]] = {}
    for info in infos:
        groups.setdefault(info.origin, []).append({"name": info.name, "title": "" if info.title == info.name else info.title})
    return [[origin, items] for origin, items in groups.items()]


def _bounds(session: Session) -> list[dict[str, Any]]:
    high = max(_WINDOW_HIGH, 2 * session.view.total, session.budget.max_tokens)
    whole = {"whole": True, "unit": "tokens", "follows": None}
    return [
        {"name": "max_tokens", "label": "Window", "help": "The model's context window.", "low": _WINDOW_LOW, "high": high, "step": None, **whole},
        {
            "name": "reserve_output_tokens",
            "label": "Reserve for output",
            "help": "Kept free for the answer.",
            "low": 0,
            "high": _RESERVE_HIGH,
            "step": 256,
            **whole,
        },
        {
            "name": "safety_margin_tokens",
            "label": "Safety margin",
            "help": "Kept free for the error of the estimate.",
            "low": 0,
            "high": _MARGIN_HIGH,
            "step": 128,
            **whole,
        },
    ]


def fields_of(policy: Policy) -> list[dict[str, Any]]:
    """What the page must know to make a control for each parameter of a policy."""
    return [_field(field) for field in dataclasses.fields(policy)]  # type: ignore[arg-type]


def _field(field: dataclasses.Field[Any]) -> dict[str, Any]:
    meta, default = field.metadata, field.default
    label = meta["label"] + (f" ({meta['unit']})" if meta["unit"] else "")
    about = {"name": field.name, "label": label, "help": meta["help"], "unit": meta["unit"], "follows": meta["follows"]}
    if meta["choices"]:
        return about | {"type": "choice", "choices": list(meta["choices"])}
    if isinstance(default, bool):
        return about | {"type": "flag"}
    if isinstance(default, str):
        return about | {"type": "text"}
    if isinstance(default, tuple):
        return about | {"type": "list"}
    return about | {"type": "number", "whole": not isinstance(default, float), "low": meta["low"], "high": meta["high"], "step": meta["step"]}


def _followed(session: Session, which: str) -> int | None:
    """The number that a field takes while it is not set."""
    if which == "window":
        return session.budget.max_tokens
    view = session.view
    return session.budget.available - (view.fixed - int(view.tokens[: view.lead].sum()))


def result_rows(session: Session) -> list[tuple[str, str, bool]]:
    """The result in numbers: label, value, and whether it is bad news."""
    selection = session.selection
    if selection is None:
        problem = session.problem
        rows = [("before", f"{session.view.total:,}", False), ("after", "–", True)]
        if isinstance(problem, BudgetError):
            rows += [("needed", f"{problem.needed:,}", True), ("available", f"{problem.available:,}", False)]
        return rows
    return [("before", f"{selection.before_tokens:,}", False), *_after_rows(selection), *_fate_rows(selection)]


def _after_rows(selection: Selection) -> list[tuple[str, str, bool]]:
    grew = selection.after_tokens > selection.before_tokens
    rows = [("after", f"{selection.after_tokens:,}", grew), ("policy's own estimate", f"{selection.own_after:,}", False)]
    return [*rows, ("window", f"{selection.over_window:,} over", True)] if selection.over_window else rows


def _fate_rows(selection: Selection) -> list[tuple[str, str, bool]]:
    counts = selection.counts
    rows = [("kept", f"{counts['kept']:,}", False)]
    if counts["edited"]:
        rows.append(("edited", f"{counts['edited']:,}", False))
    return [
        *rows,
        ("summarized", f"{counts['summarized']:,}" + (f" ({selection.quoted:,} quoted)" if counts["summarized"] else ""), False),
        ("dropped", f"{counts['dropped']:,}", False),
    ]
