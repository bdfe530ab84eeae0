"""The state of one agentd context. Rules: four_systems.md §4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .agentd_json import AgentdError, anything, fields, items, one_of, optional, text, unsigned
from .agentd_message import Msg, System, est_tokens, estimate, message_from_json, message_json, to_wire
from .agentd_plan import Plan, plan_from_json, plan_json
from .agentd_summary import Summary, summary_from_json, summary_json
from .rustjson import add

KINDS = ("root", "conversation")


@dataclass(frozen=True, slots=True)
class Skill:
    """A loaded skill and the hash of its text."""

    name: str
    hash: str


@dataclass(slots=True)
class ContextState:
    """What one context holds. Unlike most of the workbench it changes in place, as the original does.

    Each change takes the moment, `now`, in ms. `dirty` says that it changed since it was last stored, and is never stored.

    Parameters
    ----------
    version : int
        Counts compactions, so that a summary made of an older state is refused.
    preflight : any JSON
        Kept as it is.
    est_tokens : int
        Kept up to date by `append`. It lacks the heading of an empty summary, which `recount` counts.
    """

    kind: str = "root"
    version: int = 0
    summary: Summary = field(default_factory=Summary)
    messages: list[Msg] = field(default_factory=list)
    skills: list[Skill] = field(default_factory=list)
    plan: Plan | None = None
    preflight: Any = None
    est_tokens: int = 0
    model_window: int = 0
    principal: str | None = None
    task: str | None = None
    turns: int = 0
    created: int = 0
    updated: int = 0
    dirty: bool = False

    @classmethod
    def new(cls, kind: str, model_window: int, now: int) -> ContextState:
        """A fresh context; its estimate is 0, not that of its empty summary."""
        return cls(kind=kind, version=1, model_window=model_window, created=now, updated=now, dirty=True)

    def touch(self, now: int) -> None:
        """Note a change."""
        self.updated = now
        self.dirty = True

    def append(self, message: Msg, now: int) -> None:
        """Add a message and its estimate."""
        self.est_tokens = add(self.est_tokens, est_tokens(message))
        self.messages.append(message)
        self.touch(now)

    def recount(self) -> None:
        """Estimate anew: messages, the rendered summary (an empty one is 9) and the plan."""
        plan = estimate(self.plan.render()) if self.plan else 0
        self.est_tokens = add(*map(est_tokens, self.messages), estimate(self.summary.render()), plan)

    def needs_compaction(self, compact_at: float) -> bool:
        """Whether the estimate is above this share of a known window, both as doubles.

        Examples
        --------
        >>> ContextState(est_tokens=57, model_window=100).needs_compaction(0.57)  # 0.57 * 100 is a little below 57
        True
        """
        return self.model_window > 0 and float(self.est_tokens) > compact_at * float(self.model_window)

    def slice(self, now: int) -> list[Msg]:
        """What a request carries: the summary if it says something, the plan if there is one, all messages."""
        return [*self._heads(now), *self.messages]

    def to_wire(self) -> list[dict[str, Any]]:
        """The same for the provider's adapter."""
        return [to_wire(message) for message in self.slice(now=0)]

    def _heads(self, now: int) -> Iterator[Msg]:
        if not self.summary.is_empty():
            yield System(self.summary.render(), now)
        if self.plan is not None:
            yield System(self.plan.render(), now)

    def load_skill(self, name: str, content_hash: str, max_loaded: int, now: int) -> None:
        """Load a skill, or give a loaded one its new hash, which no cap forbids.

        Raises
        ------
        AgentdError
            So many are loaded already; nothing changed.
        """
        at = next((at for at, skill in enumerate(self.skills) if skill.name == name), None)
        if at is not None:
            self.skills[at] = Skill(name, content_hash)
        elif len(self.skills) >= max_loaded:
            raise AgentdError(f"skills.max_loaded ({max_loaded}) reached; unload one first")
        else:
            self.skills.append(Skill(name, content_hash))
        self.touch(now)

    def unload_skill(self, name: str, now: int) -> bool:
        """Unload every skill of the name; whether there was one."""
        rest = [skill for skill in self.skills if skill.name != name]
        found = len(rest) < len(self.skills)
        if found:
            self.skills = rest
            self.touch(now)
        return found

    def skill_names(self) -> list[str]:
        """The names, each once, in order."""
        return sorted({skill.name for skill in self.skills})


def context_json(context: ContextState) -> dict[str, Any]:
    """The context's record; what is empty or none is left out, but for summary and messages."""
    record: dict[str, Any] = {
        "kind": context.kind,
        "version": context.version,
        "summary": summary_json(context.summary),
        "messages": [message_json(message) for message in context.messages],
    }
    if context.skills:
        record["skills"] = [{"name": skill.name, "hash": skill.hash} for skill in context.skills]
    if context.plan is not None:
        record["plan"] = plan_json(context.plan)
    if context.preflight is not None:
        record["preflight"] = context.preflight
    record |= {"est_tokens": context.est_tokens, "model_window": context.model_window}
    if context.principal is not None:
        record["principal"] = context.principal
    if context.task is not None:
        record["task"] = context.task
    return record | {"turns": context.turns, "created": context.created, "updated": context.updated}


def context_from_json(value: Any) -> ContextState:
    """A context of its record, in which nothing is required; it is not dirty.

    Raises
    ------
    InvalidRecord
        No object, or something in it that is not what it should be.
    """
    read = fields(value, "struct ContextState", _FIELDS)
    lists: dict[str, Any] = {key: list(read[key]) for key in ("messages", "skills") if key in read}
    return ContextState(**{**read, **lists})


def _skill(value: Any) -> Skill:
    return Skill(**fields(value, "struct Skill", {"name": text, "hash": text}, ("name", "hash")))


_FIELDS = {
    "kind": one_of(*KINDS),
    "version": unsigned,
    "summary": summary_from_json,
    "messages": items(message_from_json),
    "skills": items(_skill),
    "plan": optional(plan_from_json),
    "preflight": anything,
    "est_tokens": unsigned,
    "model_window": unsigned,
    "principal": optional(text),
    "task": optional(text),
    "turns": unsigned,
    "created": unsigned,
    "updated": unsigned,
}
