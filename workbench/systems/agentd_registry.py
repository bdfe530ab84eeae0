"""All contexts of an agentd, by id, and their way to a store and back. Rules: four_systems.md §4.

Workbench decisions, where the original is silent: a context that was removed leaves the store at the next checkpoint; a principal
that is set later makes its context dirty, so that it is stored.

Examples
--------
>>> from .agentd_message import User
>>> from .agentd_store import MemoryStore
>>> store, registry = MemoryStore(), Registry(model_window=128_000)
>>> registry.conversation("c1", "user:a", now=1).append(User("hello"), now=2)
>>> registry.checkpoint(store), registry.checkpoint(store)
(['c1'], [])
>>> again = Registry(model_window=128_000)
>>> again.load(store), again.get("c1").messages
([], [User(text='hello', principal=None, ts=0)])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .agentd_context import ContextState, context_from_json, context_json
from .agentd_json import InvalidRecord
from .agentd_store import Store
from .rustjson import dumps, loads

ROOT = "root"


@dataclass(frozen=True, slots=True)
class Status:
    """One context in a list: `messages` is their number, `skills` their names, `plan` its progress."""

    id: str
    kind: str
    version: int
    messages: int
    est_tokens: int
    turns: int
    principal: str | None
    skills: tuple[str, ...]
    plan: str | None
    updated: int


class Registry:
    """Contexts by id; each new one gets `model_window` tokens. Use one store with one registry."""

    def __init__(self, model_window: int) -> None:
        self.model_window = model_window
        self._contexts: dict[str, ContextState] = {}
        self._removed: set[str] = set()

    def __len__(self) -> int:
        return len(self._contexts)

    def get(self, context_id: str) -> ContextState | None:
        """The context, if there is one."""
        return self._contexts.get(context_id)

    def root(self, now: int) -> ContextState:
        """The context of id ``root``, made if there is none."""
        return self._get_or_create(ROOT, "root", now)

    def conversation(self, context_id: str, principal: str | None, now: int) -> ContextState:
        """A conversation, made if there is no context of the id. Its principal is set once and never replaced."""
        context = self._get_or_create(context_id, "conversation", now)
        if context.principal is None and principal is not None:
            context.principal = principal
            context.dirty = True
        return context

    def _get_or_create(self, context_id: str, kind: str, now: int) -> ContextState:
        context = self._contexts.get(context_id)
        if context is None:
            context = self._contexts[context_id] = ContextState.new(kind, self.model_window, now)
        return context

    def remove(self, context_id: str) -> ContextState | None:
        """Take a context out; the next checkpoint takes it out of the store."""
        context = self._contexts.pop(context_id, None)
        if context is not None:
            self._removed.add(context_id)
        return context

    def ids(self) -> list[str]:
        """All ids, in the order of their bytes."""
        return sorted(self._contexts)

    def max_est_tokens(self) -> int:
        """The largest estimate of any context, 0 without one."""
        return max((context.est_tokens for context in self._contexts.values()), default=0)

    def status(self) -> list[Status]:
        """A row for each context, in the order of ids."""
        return [_status(context_id, self._contexts[context_id]) for context_id in self.ids()]

    def checkpoint(self, store: Store) -> list[str]:
        """Store what changed since the last checkpoint, all or nothing, and say what was written, in the order of ids.

        Raises
        ------
        StoreError
            The store did not take it. It holds what it held, and all that was to be written is still to be written.
        """
        dirty = [context_id for context_id in self.ids() if self._contexts[context_id].dirty]
        removed = self._removed - self._contexts.keys()  # an id that came back, made anew or restored, stays
        if dirty or removed:
            store.save({context_id: _record(self._contexts[context_id]) for context_id in dirty}, removed)
        for context_id in dirty:
            self._contexts[context_id].dirty = False
        self._removed.clear()
        return dirty

    def restore(self, envelopes: Iterable[tuple[str, Any]]) -> list[str]:
        """Take in records, (id, JSON value) each; a later one of an id wins, and all replace what the registry holds.

        Returns
        -------
        list of str
            Ids of the records that are none. The context of such an id stays as it was.
        """
        lost: list[str] = []
        for context_id, state in envelopes:
            try:
                context = context_from_json(state)
            except InvalidRecord:
                lost.append(context_id)
                continue
            context.model_window = context.model_window or self.model_window
            context.recount()
            self._contexts[context_id] = context
        return lost

    def load(self, store: Store) -> list[str]:
        """Restore everything that a store holds.

        A record that cannot be read stays in the store until a context of its id is stored.

        Returns
        -------
        list of str
            Ids of the records that cannot be read.

        Raises
        ------
        StoreError
            The store itself cannot be read.
        """
        return self.restore((record.id, _value(record.data)) for record in store.load())


def _record(context: ContextState) -> bytes:
    return dumps(context_json(context)).encode("utf-8", "surrogatepass")


def _value(data: bytes | None) -> Any:
    """What a record holds; None, which is no context, if it is not JSON. A record nested too deep for the parser is lost too."""
    try:
        return None if data is None else loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def _status(context_id: str, context: ContextState) -> Status:
    return Status(
        id=context_id,
        kind=context.kind,
        version=context.version,
        messages=len(context.messages),
        est_tokens=context.est_tokens,
        turns=context.turns,
        principal=context.principal,
        skills=tuple(context.skill_names()),
        plan=None if context.plan is None else context.plan.progress(),
        updated=context.updated,
    )
