"""What one request holds, in order: sums, order, breakpoints, digest; what of it stood before; prefixes that changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import conversation, counted, transcripts
from tests.synthetic import session
from workbench import layout, policies
from workbench.errors import WorkbenchError
from workbench.ledger import count
from workbench.model import COMPACT_SUMMARY, META, Budget, Call, Compaction, Message, Prefix, Source, Text, ToolSpec, Transcript
from workbench.policies.base import Added, Edited, Item, Kept, Note, PolicyInfo, Request, Selection, make_selection
from workbench.systems import vak
from workbench.systems.mapping.vak import as_messages, as_tools
from workbench.tokens import RatioCounter

PERSON = ("system", "S."), ("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2"), ("user", "three")


@dataclass(frozen=True)
class Given:
    """Sends the items that it was given."""

    info: ClassVar[PolicyInfo] = PolicyInfo("test.given", "given", "Sends what it was given.")
    promises: ClassVar[frozenset[str]] = frozenset()
    items: tuple[Item, ...] = ()

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        return make_selection(self, request, self.items, own=(0, 0))


def sent(transcript: Transcript, *items: Item | int) -> Selection:
    """A selection of items; a number is a kept message."""
    view = count(transcript, RatioCounter()).view()
    return Given(tuple(Kept(item) if isinstance(item, int) else item for item in items)).select(Request.on(view))


def note(text: str, *covers: int) -> Note:
    return Note(Message(-1, "", "note", (Text(text),)), covers, (), "user")


def added(text: str, role: Any = "user") -> Added:
    return Added(Message(-1, "", role, (Text(text),)), "a reason")


def kinds(laid: layout.Layout) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(block.zone, block.kind, block.messages) for block in laid.blocks]


def cuts(laid: layout.Layout) -> list[tuple[int, str]]:
    return [(cut.at, cut.label) for cut in laid.breakpoints]


def bytes_of(selection: Selection) -> int:
    """vak's account of the whole request, message by message."""
    view = selection.request.view
    lead = 0
    while lead < len(selection.items) and type(selection.items[lead]) is Kept and selection.items[lead].index in view.indices[: view.lead].tolist():
        lead += 1
    prompt = "\n".join([*view.ledger.transcript.system, *(message.text for message in selection.messages[:lead])])
    return vak.chat_request_chars(prompt, as_tools(view), as_messages(selection.messages[lead:]))


@given(transcripts(), st.sampled_from(("none", "scv", "kernel", "agentd")), st.integers(200, 4_000), st.sampled_from(("full", "live")))
def test_blocks_hold_everything_once_and_in_order(transcript: Transcript, name: str, window: int, history: Any) -> None:
    view = counted(transcript).view(history=history)
    try:
        selection = policies.make(name).select(Request.on(view, Budget(window, 50, 10)))
    except WorkbenchError:
        return
    laid = layout.of(selection)
    assert laid.tokens == selection.after_tokens == sum(block.tokens for block in laid.blocks)
    assert laid.size == bytes_of(selection) == sum(block.size for block in laid.blocks)
    assert tuple(index for block in laid.blocks for index in block.messages) == selection.indices
    assert [cut.label for cut in laid.breakpoints][:1] == ["after the prefix"]
    assert [cut.tokens for cut in laid.breakpoints] == [sum(block.tokens for block in laid.blocks[: cut.at]) for cut in laid.breakpoints]
    few = layout.merged(laid, 3)
    assert (few.tokens, few.size) == (sum(block.tokens for block in few.blocks), sum(block.size for block in few.blocks)) == (laid.tokens, laid.size)
    assert [cut.tokens for cut in few.breakpoints] == [sum(block.tokens for block in few.blocks[: cut.at]) for cut in few.breakpoints]
    assert [index for block in few.blocks for index in block.messages] == [index for block in laid.blocks for index in block.messages]
    assert str(laid).count("\n") == len(laid.blocks) + len(laid.breakpoints)


@given(transcripts())
def test_breakpoints_and_digest_are_vaks(transcript: Transcript) -> None:
    view = counted(transcript).view()
    laid = layout.of(policies.NoPolicy().select(Request.on(view)))
    messages = view.messages[view.lead :]
    prompt = "\n".join([*transcript.system, *(message.text for message in view.messages[: view.lead])])
    assert laid.digest == vak.prefix_digest(prompt, as_tools(view))
    after = [None if at is None else view.lead + at for at in vak.cache_breakpoints(as_messages(messages))]
    prefix = sum(block.zone == "prefix" for block in laid.blocks)
    places = []
    for cut in laid.breakpoints:
        before = [index for block in laid.blocks[: cut.at] for index in block.messages]
        places.append(None if cut.at == prefix else view.row_of[before[-1]])
    assert places == after


def test_from_stable_to_volatile() -> None:
    laid = layout.of(sent(conversation(*PERSON), 0, note("gone", 1, 2), 3, 4, 5))
    assert kinds(laid) == [
        ("prefix", "system", (0,)),
        ("note", "note", ()),
        ("history", "messages", (3, 4)),
        ("turn", "person", (5,)),
        ("frame", "framing", ()),
    ]
    assert cuts(laid) == [(1, "after the prefix"), (3, "before the current turn"), (4, "after the last message")]
    assert [block.title for block in laid.blocks[1:4]] == ["note for 2 messages", "turn 1 · 2 messages", "the person's message #5"]


def test_system_text_and_tools_outside_the_list() -> None:
    tools = (ToolSpec("ls", "Lists.", {"type": "object"}), ToolSpec("rm"))
    transcript = replace(conversation(*PERSON), system=("First.", "Second."), tools=tools)
    selection = sent(transcript, 0, 5)
    laid, ledger = layout.of(selection), selection.request.ledger
    assert [(block.kind, block.title, block.tokens) for block in laid.blocks[:3]] == [
        ("system", "system text", ledger.system_tokens),
        ("system", "system text #0", int(ledger.message_tokens[0])),
        ("tools", f"2 tools, {ledger.tools_framing} of it framing", ledger.tools_tokens + ledger.tools_framing),
    ]
    assert sum(block.size for block in laid.blocks[:3]) == vak.prefix_chars("First.\nSecond.\nS.", as_tools(selection.request.view))
    assert cuts(laid)[0] == (3, "after the prefix")


def test_context_items_are_in_the_prefix() -> None:
    text = '[{"source": "a.md", "content": "alpha"}]'
    selection = policies.make("kernel", context_items=text).select(Request.on(count(conversation(*PERSON), RatioCounter()).view()))
    laid = layout.of(selection)
    assert [(block.zone, block.kind) for block in laid.blocks[:3]] == [("prefix", "system"), ("prefix", "context"), ("history", "messages")]
    assert laid.blocks[1].tokens == int(selection.item_tokens[1])
    plain = layout.of(policies.make("kernel").select(selection.request))
    assert laid.digest != plain.digest


def test_text_that_is_added_stands_where_it_is_sent() -> None:
    laid = layout.of(sent(conversation(*PERSON), 0, 1, added("ok", "assistant"), 3, 5, added("go on", "assistant")))
    assert [(block.zone, block.kind) for block in laid.blocks] == [
        ("prefix", "system"),
        ("history", "messages"),
        ("history", "added"),
        ("history", "messages"),
        ("turn", "person"),
        ("tail", "added"),
        ("frame", "framing"),
    ]
    assert laid.blocks[2].title == "added: a reason"


def test_what_is_attached_to_the_newest_message_is_the_tail() -> None:
    transcript = conversation(*PERSON)
    attached = replace(transcript.messages[5], parts=(Text("<turn_context>now</turn_context>"), *transcript.messages[5].parts))
    selection = sent(transcript, 0, 1, Edited(5, attached))
    laid = layout.of(selection)
    assert [(block.zone, block.kind, block.title) for block in laid.blocks[2:4]] == [
        ("tail", "tail", "attached to #5"),
        ("turn", "person", "the person's message #5"),
    ]
    assert laid.blocks[3].tokens == int(selection.request.view.tokens[5])
    assert (laid.tokens, laid.size) == (selection.after_tokens, bytes_of(selection))
    assert cuts(laid)[1] == (2, "before the current turn")
    changed = layout.of(sent(transcript, 0, 1, Edited(5, replace(attached, parts=(Text("cut"), Text("more"))))))
    assert changed.blocks[2].title == "the person's message #5, edited"


def test_a_long_turn_is_the_message_and_what_followed() -> None:
    laid = layout.of(sent(conversation(("user", "do it"), *[("assistant", "step")] * 5), *range(6)))
    assert kinds(laid)[:2] == [("turn", "person", (0,)), ("turn", "messages", (1, 2, 3, 4, 5))]
    assert cuts(laid) == [(0, "after the prefix"), (2, "after the last message")]


def test_nobody_has_spoken() -> None:
    laid = layout.of(sent(conversation(("assistant", "hello"), ("assistant", "anyone?")), 0, 1))
    assert kinds(laid)[0] == ("history", "messages", (0, 1))
    assert cuts(laid) == [(0, "after the prefix"), (1, "after the last message")]


def test_nothing_is_sent() -> None:
    laid = layout.of(sent(Transcript("t", Source("openai-chat"))))
    assert (laid.blocks, laid.tokens, laid.reusable, cuts(laid)) == ((), 0, None, [(0, "after the prefix")])


def test_a_row_of_the_harness_can_begin_vaks_turn() -> None:
    transcript = conversation(*PERSON[:3])
    harness = Message(3, "", "user", (Text("<reminder>"),), flags=frozenset({META}))
    laid = layout.of(sent(replace(transcript, messages=(*transcript.messages, harness)), 0, 1, 2, 3))
    assert laid.blocks[2].title == "the harness's message #3"


def test_the_summary_of_a_real_compaction_is_a_note() -> None:
    rows = list(conversation(*PERSON).messages)
    rows[3] = replace(rows[3], flags=frozenset({COMPACT_SUMMARY}))
    transcript = replace(conversation(*PERSON), messages=tuple(rows), compactions=(Compaction(2, "summary", summary=3),))
    view = count(transcript, RatioCounter()).view(history="live")
    laid = layout.of(policies.NoPolicy().select(Request.on(view)))
    assert kinds(laid)[1] == ("note", "summary", (3,))


# What stood before.


def same(selection: Selection) -> layout.Reusable:
    found = layout.of(selection).reusable
    assert found is not None
    return found


def test_the_request_before_is_the_head_of_an_unmodified_one() -> None:
    selection = sent(conversation(*PERSON), *range(6))
    found, view = same(selection), selection.request.view
    assert (found.messages, found.of, found.ends) == (4, 4, "")
    assert found.tokens == int(view.tokens[:4].sum())
    assert found.size == vak.chat_request_chars("S.", (), as_messages(view.messages[1:4]))


@pytest.mark.parametrize(
    ("items", "messages", "ends"),
    [
        ((0, note("gone", 1, 2), 3, 4, 5), 1, "a note stands where #1 stood"),
        ((0, 1, added("ok"), 3), 2, "a reason stands where #2 stood"),
        ((0, 1, Edited(2, Message(2, "", "assistant", (Text("x"),))), 3, 4, 5), 2, "#2 is changed"),
        ((0, 3, 4, 5), 1, "#3 stands where #1 stood"),
        ((0, 1), 2, "nothing is sent where #2 stood"),
        ((1,), 0, "#1 stands where #0 stood"),
    ],
)
def test_where_the_head_ends(items: tuple[Any, ...], messages: int, ends: str) -> None:
    found = same(sent(conversation(*PERSON), *items))
    assert (found.messages, found.ends) == (messages, ends)


def test_before_the_first_answer_there_was_no_request() -> None:
    assert layout.of(sent(conversation(("user", "one"), ("user", "two")), 0, 1)).reusable is None


# Bounds.


def test_a_long_history_is_joined() -> None:
    laid = layout.of(policies.NoPolicy().select(Request.on(count(session(4_000), RatioCounter()).view())))
    few = layout.merged(laid, 100)
    assert len(laid.blocks) > 500
    assert len(few.blocks) <= 110
    assert cuts(few)[0] == (few.blocks.index(laid.blocks[laid.breakpoints[0].at - 1]) + 1, "after the prefix")
    joined = next(block for block in few.blocks if block.kind == "messages")
    assert joined.title == f"turns {joined.turns[0]}–{joined.turns[1]} · {len(joined.messages)} messages"
    assert layout.merged(laid, 10_000) is laid


# Prefixes that were really sent.

LS, RM, CP = ToolSpec("ls", "Lists.", {"a": 1, "b": 2}), ToolSpec("rm", "Removes."), ToolSpec("cp", "Copies.")
SHARED = Prefix(("Be short.",), (LS, RM))


def recorded(*prefixes: Prefix | None, thread: str = "main") -> Transcript:
    rows, calls = [], []
    for number, prefix in enumerate(prefixes):
        rows += [Message(2 * number, "", "user", (Text("q"),)), Message(2 * number + 1, "", "assistant", (Text("a"),), call=number)]
        calls.append(Call(number, f"r{number}", produced=(2 * number + 1,), context=tuple(range(2 * number + 1)), prefix=prefix, thread=thread))
    return Transcript("t", Source("anthropic"), tuple(rows), tuple(calls))


@pytest.mark.parametrize(
    ("new", "what"),
    [
        (Prefix(("Be very short.",), (LS, RM)), ["system text +5 characters, the first change at character 4"]),
        (Prefix(("Be sh",), (LS, RM)), ["system text −4 characters, the first change at character 6"]),
        (Prefix(("Be shOrt.",), (LS, RM)), ["system text changed at the same length, the first change at character 6"]),
        (Prefix((), (LS, RM)), ["system text removed (9 characters)"]),
        (Prefix(("Be short.",), (LS, RM, CP)), ["tool cp added"]),
        (Prefix(("Be short.",), ()), ["tools ls, rm removed"]),
        (Prefix(("Be short.",), (RM, LS)), ["tool order changed"]),
        (Prefix(("Be short.",), (RM, replace(LS, description="L"))), ["description of ls changed", "tool order changed"]),
        (Prefix(("Be short.",), (replace(LS, parameters={"a": 2}), RM)), ["schema of ls changed"]),
        (Prefix(("Be short.",), (replace(LS, parameters={"b": 2, "a": 1}), RM)), ["order of keys in the schema of ls changed"]),
        (Prefix(("Be short.",), (LS, RM, RM)), ["tools that share a name changed"]),
        (Prefix(("Be", "short."), (LS, RM)), ["system text changed at the same length, the first change at character 3"]),
        (Prefix(("Be more", "brief.",), (CP,)), ["system text +5 characters, the first change at character 4", "tool cp added", "tools ls, rm removed"]),
    ],
)  # fmt: skip
def test_what_changed_in_words(new: Prefix, what: list[str]) -> None:
    transcript = recorded(SHARED, SHARED, new, new)
    [change] = layout.prefix_changes(transcript)
    assert (change.call, change.request, change.after, list(change.what)) == (2, 3, 4, what)
    assert change.before == vak.prefix_digest("Be short.", [vak.Tool(tool.name, tool.description, tool.parameters) for tool in SHARED.tools])


def test_blocks_that_are_cut_otherwise_are_a_change() -> None:
    [change] = layout.prefix_changes(recorded(Prefix(("a\nb",)), Prefix(("a", "b"))))
    assert change.what == ("system text cut into other blocks",)


def test_many_tools_are_counted() -> None:
    tools = tuple(ToolSpec(f"t{number}") for number in range(9))
    [change] = layout.prefix_changes(recorded(Prefix(), Prefix(("S",), tools)))
    assert change.what == ("system text added (1 character)", "tools t0, t1, t2, t3, t4 and 4 more added")


def test_nothing_changed_or_nothing_is_known() -> None:
    assert layout.prefix_changes(recorded(SHARED, replace(SHARED), SHARED)) == ()
    assert layout.prefix_changes(recorded(None, SHARED, None)) == ()
    assert layout.prefix_changes(recorded(SHARED, Prefix(), thread="other")) == ()
    assert layout.recorded(recorded(None, SHARED)) == (recorded(None, SHARED).calls[1],)


def test_a_request_that_is_not_recorded_is_passed_over() -> None:
    [change] = layout.prefix_changes(recorded(SHARED, None, Prefix()))
    assert (change.call, change.request) == (2, 2)


def test_after_which_message_without_a_context() -> None:
    transcript = recorded(SHARED, Prefix())
    calls = tuple(replace(call, context=None) for call in transcript.calls)
    assert [change.after for change in layout.prefix_changes(replace(transcript, calls=calls))] == [2]
