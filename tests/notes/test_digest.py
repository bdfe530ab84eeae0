"""The digest note is vak's own transcript of the rows that it replaces, cut to its bound."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import conversation, counted, transcripts
from workbench import notes
from workbench.model import Message, Source, Text, ToolCall, ToolResult, Transcript
from workbench.systems import vak
from workbench.systems.mapping.vak import as_messages

DIGEST = notes.get("digest")


@given(transcripts(), st.integers(0, 3_000), st.data())
@settings(max_examples=150, deadline=None)
def test_it_is_the_originals_transcript_of_any_rows(transcript, most, data):
    view = counted(transcript).view("main", data.draw(st.sampled_from(("full", "live"))))
    rows = data.draw(st.lists(st.integers(view.lead, len(view.messages) - 1), unique=True).map(sorted)) if len(view.messages) > view.lead else []
    whole = vak.render_transcript(as_messages([view.messages[row] for row in rows]))
    draft = DIGEST.write(view, rows, most)
    assert draft.text == whole[:most]
    if rows == list(range(rows[0], rows[-1] + 1) if rows else ()):
        assert DIGEST.write(view, range(rows[0], rows[-1] + 1) if rows else range(0), most) == draft


@given(transcripts(max_messages=8), st.integers(0, 500))
@settings(max_examples=100, deadline=None)
def test_a_message_is_quoted_where_the_text_begins_to_hold_it(transcript, most):
    view = counted(transcript).view()
    rows = range(view.lead, len(view.messages))
    draft = DIGEST.write(view, rows, most)
    starts, length = {}, 0
    names = vak.called_tools(as_messages(view.messages[view.lead :]))
    for row in rows:
        starts[int(view.indices[row])] = length
        length += len(vak.render_message(as_messages([view.messages[row]])[0], names))
    for index in draft.quotes:
        assert starts[index] + len("[user]\n") < len(draft.text)
        assert transcript.messages[index].parts


def messages(*parts):
    return tuple(Message(at, "", role, tuple(said)) for at, (role, *said) in enumerate(parts))


def write(rows, most=10_000):
    view = counted(Transcript("t", Source("t"), rows)).view()
    return DIGEST.write(view, range(len(rows)), most)


def test_what_only_counts_or_is_only_a_header_quotes_nothing():
    call = ToolCall("a", "read", {"p": 1}, '{"p":1}')
    draft = write(
        messages(
            ("user", Text("")),
            ("assistant", call),
            ("tool", ToolResult("a", "read", (Text("A" * 50),))),
            ("tool", ToolResult("a", "read", (Text("two words"),))),
            ("tool", ToolResult("a", "read", (Text("[]"),))),
            ("tool", ToolResult("a", "read", (Text("(1 lines, 2 bytes)"),), True)),
            ("tool", ToolResult("none", None, ())),
            ("assistant",),
        )
    )
    assert draft.quotes == (1, 3, 5)
    assert "(1 lines, 50 bytes)\n[evidence:a — 50 chars; call recall to expand]" in draft.text


def test_the_bound_decides_which_words_are_in():
    rows = messages(("user", Text("hello")), ("assistant", Text("hi")))
    first = len("[user]\nhello\n\n")
    assert write(rows, len("[user]\n")).quotes == ()
    assert write(rows, len("[user]\nh")).quotes == (0,)
    assert write(rows, first + len("[assistant]\n")).quotes == (0,)
    assert write(rows, first + len("[assistant]\nh")).quotes == (0, 1)
    assert write(rows, 0).text == ""


def test_a_call_outside_of_the_rows_makes_no_digest():
    view = counted(conversation(("user", "go"), ("assistant", "", "a"), ("tool", "a", "some words"))).view()
    assert "[evidence:a" in DIGEST.write(view, range(3), 999).text
    assert DIGEST.write(view, [0, 2], 999).text == "[user]\ngo\n\n[user]\n[tool-result]\nsome words\n\n"


def test_one_id_for_thousands_of_calls_stays_fast():
    calls = messages(*(("assistant", ToolCall("same", "read", {}, "{}")) for _ in range(4_000)))
    results = tuple(Message(4_000 + at, "", "tool", (ToolResult("same", None, (Text("x y"),)),)) for at in range(4_000))
    view = counted(Transcript("t", Source("t"), calls + results)).view()
    start = time.process_time()
    DIGEST.write(view, list(range(4_000, 8_000)), 200_000)
    assert time.process_time() - start < 2
