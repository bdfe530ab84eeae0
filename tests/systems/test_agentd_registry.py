"""agentd's registry, and its way to a store and back."""

import tempfile
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import texts
from tests.systems.agentd_strategies import contexts
from workbench.systems import agentd
from workbench.systems.agentd import ContextState, MemoryStore, Registry, SqliteStore, StoreError, User


def states(registry):
    return {context_id: agentd.context_json(registry.get(context_id)) for context_id in registry.ids()}


def reopened(store):
    registry = Registry(1000)
    assert registry.load(store) == []
    return registry


class RefusingStore(MemoryStore):
    def save(self, changed, removed):
        raise StoreError("no")


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryStore()
    else:
        with SqliteStore(tmp_path / "contexts.db") as opened:
            yield opened


@settings(max_examples=60)
@given(st.dictionaries(texts, contexts, max_size=4), st.booleans())
def test_what_is_stored_comes_back(held, sqlite):
    """Any ids and texts, with the window and the estimate that a restore sets."""
    registry = Registry(1000)
    assert registry.restore((context_id, agentd.context_json(context)) for context_id, context in held.items()) == []
    for context_id in registry.ids():
        registry.get(context_id).touch(now=3)
    with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder) / "contexts.db") as file:
        store = file if sqlite else MemoryStore()
        assert registry.checkpoint(store) == sorted(held, key=lambda name: name.encode("utf-8", "surrogatepass"))
        again = reopened(store)
        assert states(again) == states(registry)
        assert not any(again.get(context_id).dirty for context_id in again.ids())
        assert again.checkpoint(store) == []


def test_only_what_changed_is_written_and_once(store):
    registry = Registry(1000)
    registry.conversation("b", None, now=1)
    registry.conversation("a", None, now=1)
    assert registry.checkpoint(store) == ["a", "b"]
    assert registry.checkpoint(store) == []
    registry.get("b").append(User("hi"), now=2)
    assert registry.checkpoint(store) == ["b"]
    assert states(reopened(store)) != {}
    assert reopened(store).get("b").messages == [User("hi")]


def test_a_refused_checkpoint_leaves_all_to_be_written(store):
    registry = Registry(1000)
    registry.conversation("gone", None, now=1)
    registry.checkpoint(store)
    registry.remove("gone")
    registry.root(now=1)
    for _ in range(2):
        with pytest.raises(StoreError):
            registry.checkpoint(RefusingStore())
        assert registry.get("root").dirty
    assert registry.checkpoint(store) == ["root"]
    assert reopened(store).ids() == ["root"]


def test_a_removed_context_leaves_the_store_at_the_next_checkpoint(store):
    registry = Registry(1000)
    registry.conversation("a", "p", now=1)
    registry.conversation("b", "p", now=1)
    registry.checkpoint(store)
    removed = registry.remove("a")
    assert removed.principal == "p"
    assert registry.remove("a") is None
    assert reopened(store).ids() == ["a", "b"]
    assert registry.checkpoint(store) == []
    assert reopened(store).ids() == ["b"]


def test_a_removal_reaches_the_store_once():
    class Watched(MemoryStore):
        saves: ClassVar = []

        def save(self, changed, removed):
            self.saves.append((sorted(changed), sorted(removed)))

    registry, store = Registry(1000), Watched()
    registry.conversation("a", None, now=1)
    registry.checkpoint(store)
    registry.remove("a")
    for _ in range(3):
        registry.checkpoint(store)
    assert store.saves == [(["a"], []), ([], ["a"])]


def test_a_context_that_is_made_anew_after_its_removal_is_stored(store):
    registry = Registry(1000)
    registry.conversation("a", "old", now=1)
    registry.checkpoint(store)
    registry.remove("a")
    registry.conversation("a", "new", now=2)
    assert registry.checkpoint(store) == ["a"]
    assert reopened(store).get("a").principal == "new"


def test_a_context_that_is_restored_after_its_removal_stays(store):
    registry = Registry(1000)
    registry.conversation("a", None, now=1)
    registry.checkpoint(store)
    registry.remove("a")
    assert registry.load(store) == []
    assert registry.checkpoint(store) == []
    assert reopened(store).ids() == ["a"]


def test_a_principal_is_set_once_and_stored(store):
    registry = Registry(1000)
    assert registry.conversation("a", None, now=1).principal is None
    registry.checkpoint(store)
    assert registry.conversation("a", "first", now=5).principal == "first"
    assert registry.get("a").updated == 1
    assert registry.checkpoint(store) == ["a"]
    assert registry.conversation("a", "second", now=6).principal == "first"
    assert registry.checkpoint(store) == []
    assert reopened(store).get("a").principal == "first"


def test_ids_stand_in_the_order_of_their_bytes(store):
    names = ["b", "B", "é", "\U0001f600", "\uffff", "", "a\x00", "a", "\ud83d"]
    registry = Registry(1000)
    for name in names:
        registry.conversation(name, None, now=1)
    ordered = sorted(names, key=lambda name: name.encode("utf-8", "surrogatepass"))
    assert registry.ids() == registry.checkpoint(store) == ordered
    assert [record.id for record in store.load()] == ordered
    assert [row.id for row in registry.status()] == ordered


def test_a_damaged_record_is_lost_alone(store):
    deep = b'{"preflight":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    damaged = {
        "not-json": b'{"kind":"root"',
        "not-utf8": b'{"task":"\xff\xfe"}',
        "no-object": b"[1]",
        "null": b"null",
        "empty": b"",
        "wrong-type": b'{"turns":"1"}',
        "wrong-message": b'{"messages":[{"role":"alien"}]}',
        "nan": b'{"preflight":NaN}',
        "deep": deep,
        "two": b"{}{}",
    }
    good = {"a": b"{}", "zz": b'{"turns":3,"colour":"red"}'}
    store.save(damaged | good, ())
    registry = Registry(1000)
    assert registry.load(store) == sorted(damaged)
    assert registry.ids() == ["a", "zz"]
    assert registry.get("zz").turns == 3
    assert registry.get("a").model_window == 1000
    # It stays in the store as it is, until a context of its id is stored.
    registry.checkpoint(store)
    assert {record.id: record.data for record in store.load()} == damaged | good
    registry.conversation("null", None, now=1)
    registry.checkpoint(store)
    assert Registry(1000).load(store) == sorted(set(damaged) - {"null"})


def test_what_json_cannot_hold_stops_the_checkpoint_before_it_writes(store):
    registry = Registry(1000)
    registry.root(now=1)
    registry.conversation("z", None, now=1).preflight = object()
    with pytest.raises(TypeError):
        registry.checkpoint(store)
    assert store.load() == []
    assert registry.get("root").dirty


def test_restoring_recounts_and_a_window_of_its_own_stays():
    registry = Registry(7)
    own = ContextState(model_window=5, est_tokens=99, messages=[User("hi")])
    assert registry.restore([("a", agentd.context_json(own)), ("b", {}), ("a", {"kind": "alien"})]) == ["a"]
    assert (registry.get("a").model_window, registry.get("b").model_window) == (5, 7)
    assert registry.max_est_tokens() == registry.get("a").est_tokens == 5 + 9
    assert Registry(7).max_est_tokens() == 0
