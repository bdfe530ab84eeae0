"""scv beyond the golden vectors: edges of the original's arithmetic and text rules."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.systems import scv
from workbench.systems.rustjson import PIECE
from workbench.systems.scv import Config, Image, Message, ScvError, Tool, ToolCall

texts = st.text(st.characters(exclude_categories=()), max_size=60)
messages = st.builds(
    Message,
    role=st.sampled_from(("user", "assistant", "tool", "history_note")),
    content=texts | st.sampled_from(("x" * 500, "\n" * 300, "é" * 241)),
    images=st.just(()) | st.just((Image("a", "image/png"),)),
    tool_calls=st.just(()) | st.just((ToolCall("1", "read", {"path": "a"}),)),
    name=texts,
    is_error=st.booleans(),
)
U64 = 2**64 - 1


@given(texts | st.just("a\n" * 200), st.integers(0, 400), st.integers(1, 9))
def test_the_fitted_note_is_the_longest_that_fits(content, available, bytes_per_token):
    costs = [scv.estimated_tokens(Message("history_note", content[:size]), bytes_per_token) for size in range(len(content) + 1)]
    fitting = [size for size, cost in enumerate(costs) if cost <= available]
    fitted = scv.fit_history_note(content, available, bytes_per_token)
    if not fitting:
        assert fitted is None
    else:
        assert fitted == (Message("history_note", content[: fitting[-1]]), costs[fitting[-1]])


@given(st.lists(messages, max_size=30), st.integers(0, 1500))
def test_a_note_is_a_cut_of_header_and_all_lines(history, limit):
    whole = scv.header(len(history)) + "".join(scv.extract(message) for message in history)
    assert scv.summarize(history, limit) == whole[:limit]


@given(st.lists(messages, max_size=12), st.integers(1, 4), st.integers(0, 400), st.integers(150, 4000))
def test_a_selection_holds_its_own_promises(history, bytes_per_token, limit, window):
    config = Config(window, 10, 10, bytes_per_token, limit)
    try:
        chosen = scv.select(config, "prompt", [], history)
    except ScvError:
        assume(False)
    assert chosen.after_tokens <= window
    assert chosen.messages[1 if chosen.removed_messages else 0 :] == tuple(history[chosen.removed_messages :])
    users = [message for message in history if message.role == "user"]
    assert not users or users[-1] in chosen.messages
    assert scv.select(config, "prompt", [], chosen.messages).messages == chosen.messages


def test_fields_of_another_role_are_neither_written_nor_counted():
    odd = Message("history_note", "x", images=(Image("p", "m"),), tool_calls=(ToolCall("i", "n", 1),), call_id="c", name="n", is_error=True)
    assert scv.message_json(odd) == '{"role":"history_note","content":"x"}'
    assert scv.estimated_tokens(odd, 3) == 13 + 4


def test_the_tool_list_is_written_with_sorted_schemas():
    assert scv.tools_json([]) == "[]"
    assert scv.tools_json([Tool("t", "d", {"b": 1, "a": None})]) == '[{"name":"t","description":"d","parameters":{"a":null,"b":1}}]'


def test_sums_of_the_settings_saturate():
    with pytest.raises(ScvError, match=scv.RESERVE):
        Config(U64, U64, U64).check()
    with pytest.raises(ScvError, match=scv.RESERVE):
        Config(U64, U64 - 1, 1).check()
    Config(U64, U64 - 2, 1).check()
    with pytest.raises(ScvError, match=scv.STATIC):  # 1 token of tools brings the saturated sum to the window
        scv.select(Config(U64, U64 - 2, 1), "", [], [Message("user", "")])


def test_an_empty_history_comes_before_the_budget_and_after_the_settings():
    assert scv.select(Config(3, 1, 1), "a long prompt", [], []) == scv.Selected()
    with pytest.raises(ScvError, match=scv.RESERVE):
        scv.select(Config(2, 1, 1), "", [], [])
    with pytest.raises(ScvError, match="bytes_per_token"):
        scv.select(Config(2, 1, 1, bytes_per_token=0), "", [], [])


def test_equal_fits_and_one_more_does_not():
    history = [Message("user", "first"), Message("user", "second")]
    exact = scv.select(Config(10_000, 0, 0), "p", [], history).after_tokens
    assert scv.select(Config(exact, 0, 0), "p", [], history).removed_messages == 0
    with pytest.raises(ScvError, match=scv.NOTE):
        scv.select(Config(exact - 1, 0, 0), "p", [], history)


@pytest.mark.parametrize("limit", [0, 1, 30, 61, 62])
def test_a_header_is_cut_like_any_text(limit):
    assert scv.summarize([Message("user", "hello")], limit) == "[SCV compacted 1 earlier messages. Bounded extracts follow.]\nu"[:limit]


def test_white_space_of_any_kind_but_line_feed_stays():
    assert scv.extract(Message("user", "a\r\u2028\u0085\x1c\t\nb ")) == "user: a\r\u2028\u0085\x1c\t b \n"


@pytest.mark.parametrize("content", ["", 'é\n"\\\x01😀\ud835', "x" * PIECE, '"' * (PIECE + 1), "漢\n" * PIECE])
@pytest.mark.parametrize("role", ["user", "assistant", "tool", "history_note"])
def test_the_size_of_a_message_is_that_of_its_json(role, content):
    message = Message(role, content, images=(Image("a", "image/png"),), tool_calls=(ToolCall("1", "read", {"path": "a"}),), name="é")
    assert scv.message_bytes(message) == len(scv.message_json(message).encode("utf-8", "surrogatepass"))
