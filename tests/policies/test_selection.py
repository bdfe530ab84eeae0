"""How an answer is put together, whatever policy made it."""

import numpy as np
import pytest

from tests.policies.test_registry import Odd
from tests.strategies import conversation, counted
from workbench.errors import PolicyError
from workbench.model import Message, Text
from workbench.policies.base import Added, Edited, Kept, Note, Request, Step, Steps, derive_fates, kept_items, make_selection

LEDGER = counted(conversation(("system", "s" * 40), ("user", "u" * 40), ("assistant", "a" * 80), ("user", "v" * 40), ("assistant", "b" * 40), ("user", "w")))
REQUEST = Request(LEDGER.view())


def text(words, role="user", index=-1):
    return Message(index, "", role, (Text(words),))


def note(covers, words="n" * 20):
    return Note(text(words, "note"), covers, (), "system")


MIXED = (Kept(0), note((1, 2, 3)), Edited(4, text("cut", "assistant", 4)), Kept(3), Added(text("continue"), "the origin's habit"), Kept(3))


def test_fates_follow_from_the_items():
    chosen = make_selection(Odd(), REQUEST, MIXED, own=(9, 5))
    assert chosen.fates == ("kept", "summarized", "summarized", "kept", "edited", "dropped")
    assert chosen.counts == {"kept": 2, "edited": 1, "summarized": 2, "dropped": 1}
    assert sum(chosen.fate_tokens.values()) == int(REQUEST.view.tokens.sum())
    assert chosen.indices == (0, 4, 3, 3)
    assert [message.text for message in chosen.messages] == ["s" * 40, "n" * 20, "cut", "v" * 40, "continue", "v" * 40]
    assert chosen.notes == (MIXED[1],)
    assert (chosen.own_before, chosen.own_after) == (9, 5)


def test_what_is_sent_is_counted_item_by_item():
    chosen = make_selection(Odd(), REQUEST, MIXED, own=(0, 0))
    assert chosen.item_tokens.tolist() == LEDGER.count_messages(chosen.messages).tolist()
    outside = REQUEST.view.fixed - int(REQUEST.view.tokens[0])
    assert chosen.after_tokens == outside + int(chosen.item_tokens.sum())
    assert chosen.before_tokens == REQUEST.view.total


def test_given_rows_and_fates_make_the_same_selection():
    derived = make_selection(Odd(), REQUEST, MIXED, own=(0, 0))
    given = make_selection(Odd(), REQUEST, MIXED, own=(0, 0), rows=np.array([0, -1, -1, 3, -1, 3]), fates=derive_fates(REQUEST.view, MIXED))
    assert given.item_tokens.tolist() == derived.item_tokens.tolist()
    assert given.fates == derived.fates
    assert given.after_tokens == derived.after_tokens


@pytest.mark.parametrize("items", [(Kept(6),), (note((1, 99)),), (Edited(-2, text("x")),)])
def test_an_item_of_another_history_is_an_error(items):
    with pytest.raises(PolicyError, match="is not in thread 'main', history 'full'"):
        make_selection(Odd(), REQUEST, items, own=(0, 0))


def test_explain_collects_the_steps_of_a_message():
    steps = (Step("turn 0: out", (1, 2)), Step("turn 1: in", (3,)), Step("a note is made", (1, 2)))
    chosen = make_selection(Odd(), REQUEST, MIXED, own=(0, 0), steps=steps)
    assert chosen.explain(1) == "#1 is summarized: turn 0: out; a note is made"
    assert chosen.explain(5) == "#5 is dropped: no rule of this policy touched it."


def test_a_log_is_written_when_it_is_read_and_once():
    written = []

    def write():
        written.append(1)
        yield Step("one")
        yield Step("two")

    steps = Steps(write)
    assert written == []
    assert [step.text for step in steps] == ["one", "two"]
    assert (len(steps), steps[-1].text, steps == (Step("one"), Step("two"))) == (2, "two", True)
    assert written == [1]


def test_items_of_a_view_are_made_once():
    assert kept_items(REQUEST.view) is kept_items(REQUEST.view)
    assert [item.index for item in kept_items(REQUEST.view)] == REQUEST.view.indices.tolist()


def test_tokens_that_are_known_are_not_counted_again(monkeypatch):
    derived = make_selection(Odd(), REQUEST, MIXED, own=(0, 0))
    known = derived.item_tokens.copy()
    known[2] = -1  # the edited message is to be counted
    asked = []
    count_messages = type(LEDGER).count_messages
    monkeypatch.setattr(type(LEDGER), "count_messages", lambda ledger, messages: asked.extend(messages) or count_messages(ledger, messages))
    given = make_selection(Odd(), REQUEST, MIXED, own=(0, 0), tokens=known)
    assert given.item_tokens.tolist() == derived.item_tokens.tolist()
    assert [message.text for message in asked] == ["cut"]
    assert given.after_tokens == derived.after_tokens
