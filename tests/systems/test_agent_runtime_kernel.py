"""agent_runtime_kernel beyond its vectors: properties of every assembly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.systems.agent_runtime_kernel import ContextItem, ContextManager, KernelError, Message, checkpoint, render_system
from workbench.systems.rusttext import WHITE_SPACE, trim, truncate

MESSAGES = st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant", "tool"]), st.text(max_size=8)), max_size=12)


@given(st.integers(2, 9), MESSAGES, MESSAGES)
def test_an_assembly_fits_and_ends_with_the_newest(most: int, history: list[Message], request: list[Message]) -> None:
    manager = ContextManager(most)
    if not request or len(request) >= most:
        with pytest.raises(KernelError) as raised:
            manager.assemble("p", [], history, request)
        assert raised.value.code == "REQUEST_TRANSCRIPT_INVALID"
        return
    sent = manager.assemble("p", [], history, request)
    slots = most - 1 - len(request)
    assert len(sent) == 1 + min(slots, len(history)) + len(request) <= most
    assert sent[0] == Message("system", "p")
    assert sent[len(sent) - len(request) :] == request
    middle = sent[1 : len(sent) - len(request)]
    if len(history) <= slots:
        assert middle == history
    elif slots:
        assert middle[0] == Message("system", checkpoint(history, len(history) - slots))
        assert middle[1:] == history[len(history) - slots + 1 :]


@given(st.text(max_size=40), st.integers(0, 60))
def test_a_cut_text_is_a_beginning_of_whole_characters(text: str, most: int) -> None:
    cut = truncate(text, most)
    if len(text.encode()) <= most:
        assert cut == text
        return
    head = cut.removesuffix("…")
    assert cut.endswith("…")
    assert text.startswith(head)
    assert len(head.encode()) <= most < len(text[: len(head) + 1].encode())


def test_white_space_is_unicode_s_and_not_python_s() -> None:
    assert len(WHITE_SPACE) == len(set(WHITE_SPACE)) == 25
    for char in "\x1c\x1d\x1e\x1f\u200b\ufeff":
        assert trim(f" {char} ") == char


def test_blank_items_are_left_out_and_an_empty_prompt_leaves_its_blank_line() -> None:
    assert render_system(" ", [ContextItem("a", " \u3000"), ContextItem("b", " x ")]) == '\n\n<context source="b">\nx\n</context>'


def test_an_empty_goal_is_not_unknown() -> None:
    assert "\ngoal: \n" in checkpoint([Message("user", "")], 1)
    assert "\ngoal: unknown\n" in checkpoint([Message("assistant", "x")], 1)
