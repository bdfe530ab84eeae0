"""The structured summary: what is found in messages, verbatim and in linear time, and the note that is written of it."""

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.bench.common import big_transcript
from tests.shared import SAMPLES
from tests.strategies import conversation, counted, transcripts
from workbench import notes
from workbench.model import Message, Text, ToolCall, ToolResult, compact_json
from workbench.notes.structured import as_summary, render, shorten
from workbench.notes.structured_fill import LISTS, MOST_ITEMS, Item, fill
from workbench.notes.structured_items import ITEM_CHARS, Items
from workbench.systems.agentd import Summary


def strings(value):
    """All strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for part in pair for text in strings(part))
    elif isinstance(value, list):
        yield from (text for part in value for text in strings(part))


def words(message):
    """Every text that a message holds."""
    yield message.text
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.name
            yield part.arguments_raw
            yield from strings(part.arguments)


def check(filled, messages):
    by_index = {message.index: message for message in messages}
    for name in LISTS:
        items = filled.of(name)
        assert len(items) <= MOST_ITEMS
        assert len({item.text for item in items}) == len(items)
        assert [item.index for item in items] == sorted(item.index for item in items)
        for item in items:
            assert 0 < len(item.text) <= ITEM_CHARS
            assert item.text == item.text.strip()
            assert "\n" not in item.text
            assert any(item.text in text for text in words(by_index[item.index]))


def person(text, index=0):
    return Message(index, "", "user", (Text(text),))


def assistant(text, index=1, *calls):
    return Message(index, "", "assistant", (Text(text), *calls))


def call(name, arguments, call_id="c"):
    return ToolCall(call_id, name, arguments, compact_json(arguments))


def result(text, index=2, call_id="c", is_error=False):
    return Message(index, "", "tool", (ToolResult(call_id, "run", (Text(text),), is_error),))


@given(transcripts())
@settings(max_examples=200, deadline=None)
def test_every_item_is_verbatim_bounded_and_once(transcript):
    messages = [message for message in transcript.messages if message.thread == "main"]
    filled = fill(messages)
    check(filled, messages)
    assert filled == fill(messages)


@pytest.mark.parametrize("name", ["coding_agent.jsonl", "research_chat.json", "support_session.json", "long_session.jsonl"])
def test_samples(name):
    transcript = wb.read(SAMPLES / name)
    messages = [transcript.messages[index] for index in transcript.history()]
    filled = fill(messages)
    check(filled, messages)
    assert len(filled.goals) >= 8
    assert len(filled.facts) >= 10
    assert filled.decisions


def test_what_a_coding_session_leaves():
    transcript = wb.read(SAMPLES / "coding_agent.jsonl")
    filled = fill([transcript.messages[index] for index in transcript.history()])
    texts = {name: [item.text for item in filled.of(name)] for name in LISTS}
    assert texts["goals"][0] == "Finance says the nightly export loses rows."
    assert "Committed on `fix/two-currencies`." in texts["decisions"]
    assert "21 passed in 0.79s" in texts["facts"]
    assert "/home/dev/tallyport/pyproject.toml" in texts["facts"]


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("Rename the report. Then send it.", "Rename the report. Then send it."),
        ("Please rename the quarterly report. Then send it.", "Please rename the quarterly report."),
        ("Hi! My order of last week arrived torn. What now?", "Hi! My order of last week arrived torn."),
        ("Hello,\n\nthe export drops rows, e.g. those in CHF. Why?", "the export drops rows, e.g. those in CHF."),
        ("<ide_opened_file>x.py</ide_opened_file>\nfix the failing tests of the parser", "fix the failing tests of the parser"),
        ("おはようございます ☕️ ラベルを作りたいです。展示は三部構成です。", "おはようございます ☕️ ラベルを作りたいです。"),
        ("```\ncode.run()\n```\nExplain what this code does. Slowly.", "Explain what this code does."),
        ("ok", None),
        ("Go on.\n\nwow", None),
        ("go on please", "go on please"),
        ("x" * 300, "x" * 200),
        ("", None),
        ("\n \t\n", None),
        ("🙂", None),
    ],
)
def test_a_goal_is_the_first_sentence_that_says_something(text, goal):
    assert Items(person(text)).goal == goal


@pytest.mark.parametrize(
    ("said", "decided"),
    [
        ("I'll group the rows by currency.", True),
        ("We have replaced the lock by a lease.", True),
        ("Done: removed the cron file.", True),
        ("The lock was not replaced.", False),
        ("Let me look at the caller first.", False),
        ("Let me fix it in the caller.", False),
        ("I have moved these files:", False),
        ("Should I use a lease instead?", False),
        ("The file has twelve columns and a header.", False),
        ("Ich habe die Spalte umbenannt.", True),
        ("J'ai ajouté un test pour ce cas.", True),
        ("Я добавил проверку в конвейер.", True),
        ("已修改配置文件,现在用新的端口。", True),
        ("設定ファイルを変更しました。", True),
    ],
)
def test_a_decision_states_a_choice_or_a_change(said, decided):
    assert Items(assistant(f"Some words before it here. {said}")).decisions == ((said,) if decided else ())


def test_a_question_is_open_until_somebody_else_speaks():
    asked = [person("Please export the report for me.", 0), assistant("In which format should I export it?", 1)]
    assert fill(asked).open == (Item("In which format should I export it?", 1),)
    assert fill([*asked, person("As CSV.", 2)]).open == ()
    assert fill([person("Which formats are there?")]).open == (Item("Which formats are there?", 0),)
    assert fill([person("Which formats are there?"), assistant("CSV and XLSX.")]).open == ()


def test_todo_items_are_open_while_the_newest_list_says_so():
    first = call("TodoWrite", {"todos": [{"content": "write tests", "status": "in_progress"}, {"content": "read code", "status": "completed"}]}, "a")
    second = call("TodoWrite", {"todos": [{"content": "write tests", "status": "completed"}, {"content": "docs", "status": "pending"}]}, "b")
    done = (result("ok", 2, "a"), result("ok", 4, "b"))
    assert fill([assistant("", 1, first), done[0]]).open == (Item("write tests", 1),)
    assert fill([assistant("", 1, first), done[0], assistant("", 3, second), done[1]]).open == (Item("docs", 3),)


@pytest.mark.parametrize(
    "arguments",
    [
        {"plan": [{"step": "paint", "status": "pending"}, {"step": "sand", "status": "completed"}], "explanation": "x"},
        {"todos": [{"title": "paint", "state": "open"}, {"title": "sand", "state": "done"}]},
        {"tasks": [{"description": "paint", "done": False}, {"description": "sand", "done": True}]},
        {"todos": "1. [pending] paint\n2. [completed] sand"},
    ],
)
def test_todo_tools_of_several_agents(arguments):
    assert [item.text for item in fill([assistant("", 1, call("plan", arguments)), result("ok")]).open] == ["paint"]


def test_checkboxes_count_by_their_newest_mark():
    rows = [assistant("Plan:\n- [ ] paint the wall\n- [ ] sand the floor", 1), assistant("- [x] paint the wall", 2)]
    assert [item.text for item in fill(rows).open] == ["sand the floor"]


def test_a_call_without_result_is_open():
    rows = [assistant("", 1, call("bash", {"command": "make all"}, "a"), call("bash", {"command": "make doc"}, "b")), result("ok", 2, "a")]
    assert [item.text for item in fill(rows).open] == ["make doc"]


def test_paths_of_calls_are_facts():
    calls = (
        call("Read", {"file_path": "/srv/app/load.py", "limit": 3}),
        call("apply_patch", {"input": "*** Begin Patch\n*** Update File: docs/a b.md\n+x"}),
        call("bash", {"command": "cat src/run.sh > out.txt && curl https://example.com/x.html"}),
        call("Glob", {"path": "."}),
    )
    assert Items(assistant("", 1, *calls)).facts == ("/srv/app/load.py", "docs/a b.md", "src/run.sh")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("collecting\n12 passed, 1 failed in 3.2s\nbye", ("12 passed, 1 failed in 3.2s",)),
        ("Exit code 1\nbash: sqlite3: command not found", ("bash: sqlite3: command not found",)),
        ('{"order": "LL-58203", "total": "79.50"}', ('{"order": "LL-58203", "total": "79.50"}',)),
        ("     1→import os\n     2→raise ValueError\n", ()),
        ("Traceback (most recent call last):\n  x\nKeyError: 'EUR'", ("KeyError: 'EUR'",)),
        ("no matches\n", ()),
        ("0 errors, all fine", ()),
        ("created ticket FIN-1182 for it", ("created ticket FIN-1182 for it",)),
        ("src/a.py:10:import os\nsrc/b.py", ("src/a.py", "src/b.py")),
    ],
)
def test_the_telling_lines_of_a_result(text, facts):
    assert Items(result(text)).facts == facts


def test_a_failed_result_gives_its_first_telling_line():
    assert Items(result("Exit code 2\nusage: tool FILE\nmore", is_error=True)).facts == ("usage: tool FILE",)


def test_what_the_harness_put_in_says_nothing_and_a_summary_speaks_for_others():
    meta = replace(person("You must always answer in French."), flags=frozenset({"meta"}))
    assert fill([meta]) == fill([])
    summary = replace(person("We moved the parser to C.\n- [ ] port the tests\n12 tests passed"), flags=frozenset({"compact_summary"}))
    filled = fill([summary])
    assert [item.text for item in (*filled.decisions, *filled.open, *filled.facts)] == ["We moved the parser to C.", "port the tests", "12 tests passed"]
    assert filled.goals == ()


def test_the_newest_stay_at_the_cap():
    rows = [person(f"Please do the task with number {at}.", at) for at in range(50)]
    assert [item.index for item in fill(rows).goals] == list(range(18, 50))


HOSTILE = (
    "a",
    "." * 3,
    ". ",
    "? ",
    "\\",
    "[ ] ",
    "- [ ] x\n",
    "é. ",
    "\n",
    " ",
    "/a",
    "a/",
    "::",
    "1: ",
    "I will ",
    "error ",
    "\x00\x1b",
    "漢",
    "```\n",
    "{[",
    "0a1b2c3",
    "<a>",
    "e.g",
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear_in_a_hostile_text(unit):
    """Twenty megabytes of anything take no longer than a moment, whoever said it."""
    text = unit * (20_000_000 // len(unit))
    rows = [person(text, 0), assistant(text, 1, ToolCall("c", "bash", None, text), call("bash", {"command": text, "todos": text}, "d")), result(text, 2)]
    start = time.process_time()
    check(fill(rows), rows)
    assert time.process_time() - start < 5


def test_ten_megabytes_of_messages_are_filled_at_a_readers_pace():
    messages = big_transcript(2_000, 2_000_000).messages
    start = time.process_time()
    fill(messages)
    assert time.process_time() - start < 5


@given(transcripts(), st.sampled_from((0, 1, 20, 33, 34, 60, 120, 400, 6_000, 100_000)), st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_the_note_keeps_its_bound_and_quotes_what_it_holds(transcript, most_chars, share):
    view = counted(transcript).view()
    rows = range(view.lead, view.lead + int(share * (len(view.messages) - view.lead)))
    draft = notes.get("structured").write(view, rows, most_chars)
    assert len(draft.text) <= most_chars
    assert Summary().render().startswith(draft.text) or draft.text.startswith(Summary().render())
    assert set(draft.quotes) <= {int(view.indices[row]) for row in rows}
    for index in draft.quotes:
        message = transcript.messages[index]
        assert any(line.removeprefix("- ") in text for line in draft.text.split("\n") if line.startswith("- ") for text in words(message))


def test_the_note_drops_the_oldest_of_the_longest_list():
    view = counted(conversation(*[("user", f"Please do the task with number {at}.") for at in range(6)], ("assistant", "I'll use the newer way."))).view()
    whole = notes.get("structured").write(view, range(7), 6_000)
    assert whole.text == render(fill(view.messages))
    assert whole.quotes == tuple(range(7))
    less = notes.get("structured").write(view, range(7), len(whole.text) - 1)
    assert less.quotes == tuple(range(1, 7))
    assert "number 0" not in less.text
    assert "newer way" in less.text
    assert notes.get("structured").write(view, range(7), 10).text == "Summary of"


def test_nothing_is_dropped_that_fits():
    filled = fill([person("Please rename the quarterly report.")])
    assert shorten(filled, 10_000) is filled
    assert as_summary(filled) == Summary(goals=("Please rename the quarterly report.",))
