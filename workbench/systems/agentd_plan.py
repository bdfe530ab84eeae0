"""The plan that an agentd context carries. Rules: four_systems.md §4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .agentd_json import AgentdError, InvalidRecord, fields, items, one_of, optional, text, unsigned
from .rusttext import trim

MOST_ITEMS = 32
MARKS = {"pending": "[ ]", "in_progress": "[~]", "done": "[x]", "blocked": "[!]", "skipped": "[-]"}
TERMINAL = frozenset({"done", "blocked", "skipped"})

#: What an item can be bound to, and the field that holds its id.
BINDINGS = {"run": "id", "subagent": "handle", "task": "id"}


@dataclass(frozen=True, slots=True)
class Bound:
    """What works on an item: its kind (run, subagent or task) and its id or handle."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class PlanItem:
    """A step of a plan."""

    id: int
    title: str
    detail: str | None = None
    status: str = "pending"
    note: str | None = None
    bound: Bound | None = None
    updated: int = 0

    def render(self) -> str:
        """One line, without its end."""
        detail = "" if self.detail is None else f" — {self.detail}"
        note = "" if self.note is None else f" ({self.note})"
        bound = "" if self.bound is None else f" [{self.bound.kind} {self.bound.id}]"
        return f"{MARKS[self.status]} {self.id}. {self.title}{detail}{note}{bound}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A goal and the steps to it."""

    goal: str
    items: tuple[PlanItem, ...] = ()
    next_id: int = 0
    created: int = 0
    updated: int = 0

    def progress(self) -> str:
        """How many are done; skipped ones are not."""
        return f"{sum(item.status == 'done' for item in self.items)}/{len(self.items)} done"

    def is_complete(self) -> bool:
        """Whether there are items and nothing is left to do with any."""
        return bool(self.items) and all(item.status in TERMINAL for item in self.items)

    def render(self) -> str:
        r"""The plan as the model reads it.

        Examples
        --------
        >>> Plan("ship", (PlanItem(1, "test", status="done"), PlanItem(2, "tag", note="at noon"))).render()
        'Plan (1/2 done): ship\n[x] 1. test\n[ ] 2. tag (at noon)\n'
        """
        return "\n".join([f"Plan ({self.progress()}): {self.goal}", *(item.render() for item in self.items), ""])


def create_plan(goal: str, entries: Sequence[str | dict[str, Any]], now: int, max_items: int = MOST_ITEMS) -> Plan:
    """A new plan of a goal and its steps: titles, or objects with a title and perhaps a detail.

    Raises
    ------
    AgentdError
        No goal; too many steps; a step without a title.
    """
    if not trim(goal):
        raise AgentdError("plan.create: goal must be non-empty")
    if len(entries) > max_items:
        raise AgentdError(f"plan.create: {len(entries)} items exceed context.plan.max_items ({max_items})")
    made = tuple(_item(number, entry, now) for number, entry in enumerate(entries, 1))
    return Plan(trim(goal), made, next_id=len(made) + 1, created=now, updated=now)


def _item(number: int, entry: str | dict[str, Any], now: int) -> PlanItem:
    given = entry if isinstance(entry, dict) else {"title": entry}
    title, detail = given.get("title"), given.get("detail")
    if not isinstance(title, str) or not trim(title):
        raise AgentdError("plan item needs a non-empty title")
    return PlanItem(number, trim(title), detail=detail if isinstance(detail, str) and detail else None, updated=now)


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan's record."""
    return {
        "goal": plan.goal,
        "items": [_item_json(item) for item in plan.items],
        "next_id": plan.next_id,
        "created": plan.created,
        "updated": plan.updated,
    }


def plan_from_json(value: Any) -> Plan:
    """A plan of its record; a goal, and each item's id and title, are required.

    Raises
    ------
    InvalidRecord
        Something required is missing or of a wrong type, or a status or a binding is unknown.
    """
    readers = {"goal": text, "items": items(_item_from_json), "next_id": unsigned, "created": unsigned, "updated": unsigned}
    return Plan(**fields(value, "struct Plan", readers, ("goal",)))


def _item_json(item: PlanItem) -> dict[str, Any]:
    record: dict[str, Any] = {"id": item.id, "title": item.title}
    if item.detail is not None:
        record["detail"] = item.detail
    record["status"] = item.status
    if item.note is not None:
        record["note"] = item.note
    if item.bound is not None:
        record["bound"] = {item.bound.kind: {BINDINGS[item.bound.kind]: item.bound.id}}
    return record | {"updated": item.updated}


def _item_from_json(value: Any) -> PlanItem:
    readers = {
        "id": unsigned,
        "title": text,
        "detail": optional(text),
        "status": one_of(*MARKS),
        "note": optional(text),
        "bound": optional(_bound),
        "updated": unsigned,
    }
    return PlanItem(**fields(value, "struct PlanItem", readers, ("id", "title")))


def _bound(value: Any) -> Bound:
    if not isinstance(value, dict) or len(value) != 1:
        raise InvalidRecord("a binding is an object of one key")
    ((kind, bound),) = value.items()
    key = BINDINGS[one_of(*BINDINGS)(kind)]
    return Bound(kind, fields(bound, f"what a {kind} is", {key: text}, (key,))[key])
