"""All rules in one table: what each says, whom it concerns, and where that is documented.

A rule is a function of the columns of a list and of what is known about the request. It yields the messages and the text
of each finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .columns import ASSISTANT, SYSTEM, TOOL, USER, Columns, Ints, Mark, fits_anthropic
from .finding import Level, Provider

Found = Iterator[tuple[tuple[int, ...], str]]
LONGEST_CALL_ID = 64  # OpenAI Responses

_VERSION = re.compile(r"claude\D*?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


@dataclass(frozen=True, slots=True)
class About:
    """What is known about a request beside its messages.

    Parameters
    ----------
    model : str or None
        The model that will answer.
    own : str or None
        The provider that made the responses in the list: its reasoning goes back to it, and to no other.
    open_end : bool
        More will be added at the end, so the last message is not judged as such.
    """

    model: str | None = None
    own: Provider | None = None
    open_end: bool = False

    @property
    def claude(self) -> tuple[int, int]:
        """Version of the Claude model; (0, 0) if it is not known."""
        found = _VERSION.search((self.model or "").lower())
        return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def orphan_result(list_: Columns, about: About) -> Found:
    """A result without a call before it."""
    partner, earlier = list_.matched
    for event in np.flatnonzero(list_.is_result & (partner < 0) & (earlier < 0)).tolist():
        row = list_.event_row[event]
        yield list_.messages(row), f"result {list_.name(row)} has no call"


def unanswered_call(list_: Columns, about: About) -> Found:
    """A call without a result after it."""
    for event in np.flatnonzero(~list_.is_result & (list_.matched[0] < 0)).tolist():
        row = list_.event_row[event]
        yield list_.messages(row), f"call {list_.call_id(event)} in {list_.name(row)} has no result"


def duplicate_result(list_: Columns, about: About) -> Found:
    """A second result of a call."""
    for event in np.flatnonzero(list_.matched[1] >= 0).tolist():
        row = list_.event_row[event]
        yield list_.messages(row), f"result {list_.name(row)} answers {list_.call_id(event)} a second time"


def result_apart_chat(list_: Columns, about: About) -> Found:
    """Something stands between a call's message and its results."""
    return _apart(list_, np.arange(len(list_.role)))


def result_apart_anthropic(list_: Columns, about: About) -> Found:
    """The same, where assistant messages in a row are one."""
    sent = np.flatnonzero(list_.role <= TOOL)
    follows = np.zeros(len(sent), bool)
    follows[1:] = (list_.role[sent][1:] == ASSISTANT) & (list_.role[sent][:-1] == ASSISTANT)
    turn = np.arange(len(list_.role))
    turn[sent] = sent[np.maximum.accumulate(np.where(follows, 0, np.arange(len(sent))))]
    return _apart(list_, turn)


def _apart(list_: Columns, turn: Ints) -> Found:
    """Pairs whose result is not in the run of results directly after the call's turn."""
    rows = np.arange(len(list_.role))
    before = np.maximum.accumulate(np.where(list_.role < TOOL, rows, -1))  # the newest row that is no result
    results = np.flatnonzero(list_.is_result & ~list_.server_side & (list_.matched[0] >= 0))
    calls = list_.matched[0][results]
    call, result = list_.event_row[calls], list_.event_row[results]
    wrong = ~list_.server_side[calls] & (turn[before[result]] != turn[call]) & (call != result)
    for at in np.flatnonzero(wrong).tolist():
        yield list_.messages(call[at], result[at]), f"result {list_.name(result[at])} does not come directly after its call in {list_.name(call[at])}"


def system_inside(list_: Columns, about: About) -> Found:
    """A system message after the conversation began."""
    role = list_.role[list_.talk]
    inside = role == SYSTEM
    if about.claude >= (5, 0) or (about.claude >= (4, 8) and "opus" in (about.model or "").lower()):
        before = np.concatenate(([ASSISTANT], role[:-1]))[: len(role)]
        after = np.concatenate((role[1:], [ASSISTANT]))[-len(role) :] if len(role) else role
        inside &= ~(((before == USER) | (before == TOOL)) & (after == ASSISTANT))
    for row in list_.talk[inside].tolist():
        yield list_.messages(row), f"{list_.name(row)} is a system message inside the conversation"


def no_message(list_: Columns, about: About) -> Found:
    """Nothing but system text."""
    if len(list_.role) and not len(list_.talk):
        yield (), "there is system text only, and no message to answer"


def first_message(list_: Columns, about: About) -> Found:
    """The assistant speaks first."""
    if len(list_.talk) and list_.role[list_.talk[0]] == ASSISTANT:
        row = list_.talk[0]
        yield list_.messages(row), f"the conversation begins with {list_.name(row)}, an assistant's message"


def last_message(list_: Columns, about: About) -> Found:
    """The assistant speaks last, where the model does not go on from there."""
    known = about.claude > (0, 0)
    row = _last_of_assistant(list_, about)
    if row is not None and (about.claude >= (4, 6) or not known):
        yield list_.messages(row), f"the list ends with {list_.name(row)}, an assistant's message"


def trailing_space(list_: Columns, about: About) -> Found:
    """The assistant speaks last and its text ends in white space, where the model would go on from there."""
    row = _last_of_assistant(list_, about)
    if row is not None and (0, 0) < about.claude < (4, 6) and list_.marks[row] & Mark.ENDS_IN_SPACE:
        yield list_.messages(row), f"the last message, {list_.name(row)} of the assistant, ends in white space"


def empty_text(list_: Columns, about: About) -> Found:
    """A text without a character, or no text but white space."""
    wrong = list_.talk[(list_.marks[list_.talk] & (Mark.EMPTY_TEXT | Mark.BLANK)) != 0]
    for row in wrong.tolist():
        yield list_.messages(row), f"{list_.name(row)} holds {'an empty text' if list_.marks[row] & Mark.EMPTY_TEXT else 'only white space'}"


def empty_message(list_: Columns, about: About) -> Found:
    """A message with no content at all."""
    last = _last_of_assistant(list_, about)
    for row in list_.talk[(list_.marks[list_.talk] & Mark.NOTHING) != 0].tolist():
        if row != last:
            yield list_.messages(row), f"{list_.name(row)} has no content"


def call_id_form(list_: Columns, about: About) -> Found:
    """A call's id has other characters than letters, digits, _ and -."""
    bad = np.array([bool(text) and not fits_anthropic(text) for text in list_.id_texts])
    yield from _calls(list_, bad, "has characters that are not allowed")


def call_id_long(list_: Columns, about: About) -> Found:
    """A call's id is too long."""
    bad = np.array([len(text) > LONGEST_CALL_ID for text in list_.id_texts])
    yield from _calls(list_, bad, f"is longer than {LONGEST_CALL_ID} characters")


def _calls(list_: Columns, bad: np.ndarray[tuple[int], np.dtype[np.bool_]], what: str) -> Found:
    for event in np.flatnonzero(~list_.is_result & bad[list_.event_id]).tolist():
        row = list_.event_row[event]
        yield list_.messages(row), f"the id {list_.call_id(event)} in {list_.name(row)} {what}"


def call_id_twice(list_: Columns, about: About) -> Found:
    """Two calls with one id."""
    calls = np.flatnonzero(~list_.is_result & (list_.event_id > 0))
    _, first, which = np.unique(list_.event_id[calls], return_index=True, return_inverse=True)
    for at in np.flatnonzero(first[which] != np.arange(len(calls))).tolist():
        row, earlier = list_.event_row[calls[at]], list_.event_row[calls[first[which[at]]]]
        yield list_.messages(earlier, row), f"call {list_.call_id(calls[at])} in {list_.name(row)} has the id of a call in {list_.name(earlier)}"


def reasoning_alone(list_: Columns, about: About) -> Found:
    """Reasoning without the item that it led to."""
    if about.own != "openai-responses":
        return
    role = list_.role[list_.talk]
    goes_on = np.concatenate((role[1:] == ASSISTANT, [about.open_end]))[: len(role)]
    for row in list_.talk[list_.has(Mark.ENDS_IN_REASONING)[list_.talk] & ~goes_on].tolist():
        yield list_.messages(row), f"{list_.name(row)} ends with reasoning, and nothing that it led to follows"


def unsigned_thinking(list_: Columns, about: About) -> Found:
    """Thinking that cannot be sent back."""
    if about.own == "anthropic":
        for row in list_.talk[list_.has(Mark.UNSIGNED)[list_.talk]].tolist():
            yield list_.messages(row), f"the thinking in {list_.name(row)} has no signature: it can only be left out"


def same_role(list_: Columns, about: About) -> Found:
    """Messages of one role in a row."""
    talk = list_.talk
    role = list_.role[talk]
    for at in np.flatnonzero((role[1:] == role[:-1]) & ((role[1:] == USER) | (role[1:] == ASSISTANT))).tolist():
        first, second = talk[at], talk[at + 1]
        who = "user" if role[at] == USER else "assistant"
        yield list_.messages(first, second), f"{list_.name(first)} and {list_.name(second)} are two {who} messages in a row"


def _last_of_assistant(list_: Columns, about: About) -> int | None:
    if about.open_end or not len(list_.talk):
        return None
    row = int(list_.talk[-1])
    return row if list_.role[row] == ASSISTANT else None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Parameters
    ----------
    name : str
        Short name, as in `Finding.rule`.
    providers : tuple of str
        Whom it concerns; empty for all of them.
    says : str
        The rule in one sentence.
    source : str
        Where it is documented, in words.
    find : callable or None
        Finds its breaches; None where a list alone does not show them (`Selection.findings` does).
    """

    name: str
    providers: tuple[Provider, ...]
    level: Level
    says: str
    source: str
    find: Callable[[Columns, About], Found] | None = None


_MESSAGES_API = "Anthropic Messages API reference"
_ERRORS = "the API's own error message"
_PAIRS = "OpenAI function calling guide; Anthropic tool use guide; the error messages of all three APIs"

RULES: tuple[Rule, ...] = (
    Rule("over_window", (), "refused", "A request and its answer fit into the window.", "context windows of all providers"),
    Rule("grew", (), "warning", "What a policy sends is not larger than what it was given.", "this workbench"),
    Rule("pin_removed", (), "warning", "A pinned message stays.", "this workbench"),
    Rule("last_user_removed", (), "warning", "The newest message that a person wrote stays.", "this workbench"),
    Rule("orphan_result", (), "refused", "A result stands after its call.", _PAIRS, orphan_result),
    Rule("unanswered_call", (), "refused", "Every call has a result.", _PAIRS, unanswered_call),
    Rule("duplicate_result", (), "refused", "A call has one result.", _PAIRS, duplicate_result),
    Rule(
        "result_apart",
        ("openai-chat",),
        "refused",
        "The results of a message's calls come directly after it, and nothing between.",
        f"OpenAI Chat, {_ERRORS}: tool messages must follow the message with the calls and answer each id",
        result_apart_chat,
    ),
    Rule(
        "result_apart",
        ("anthropic",),
        "refused",
        "All results of a turn's calls stand at the beginning of the next user message.",
        f"Anthropic tool use guide (handle tool calls); {_ERRORS}: each result needs its call in the previous message",
        result_apart_anthropic,
    ),
    Rule(
        "system_inside",
        ("anthropic",),
        "refused",
        "System text stands before the conversation; only models from Opus 4.8 on take it later, between a user's and an assistant's message.",
        f"{_MESSAGES_API}, parameter system; Anthropic guide to mid-conversation system messages",
        system_inside,
    ),
    Rule("no_message", ("anthropic",), "refused", "There is a message to answer.", f"{_MESSAGES_API}, parameter messages", no_message),
    Rule(
        "last_message",
        ("anthropic",),
        "refused",
        "From Claude 4.6 on a list does not end with the assistant: prefill is refused.",
        "Anthropic, what is new in Claude 4.6 (breaking changes)",
        last_message,
    ),
    Rule("trailing_space", ("anthropic",), "refused", "A text that the model goes on from does not end in white space.", _ERRORS, trailing_space),
    Rule("empty_text", ("anthropic",), "refused", "No text is empty, and a message's text is more than white space.", _ERRORS, empty_text),
    Rule("empty_message", ("anthropic",), "refused", "Every message but a last one of the assistant has content.", _ERRORS, empty_message),
    Rule("call_id_form", ("anthropic",), "refused", "A call's id has letters, digits, _ and - only.", _ERRORS, call_id_form),
    Rule("call_id_twice", ("anthropic",), "refused", "No two calls have the same id.", _ERRORS, call_id_twice),
    Rule("call_id_long", ("openai-responses",), "refused", f"A call's id has at most {LONGEST_CALL_ID} characters.", _ERRORS, call_id_long),
    Rule(
        "reasoning_alone",
        ("openai-responses",),
        "refused",
        "Reasoning is followed by the item that it led to.",
        f"OpenAI guide to reasoning models; {_ERRORS}",
        reasoning_alone,
    ),
    Rule(
        "first_message",
        ("anthropic",),
        "notice",
        "A user speaks first: Bedrock demands it, Anthropic's own API did until the end of 2024.",
        f"{_MESSAGES_API} of 2024; Amazon Bedrock's error message; issues of Anthropic's SDK",
        first_message,
    ),
    Rule(
        "same_role",
        ("openai-chat", "anthropic"),
        "notice",
        "OpenAI takes messages of one role in a row, Anthropic's own API merges them; Bedrock and many chat templates refuse them.",
        f"{_MESSAGES_API}, parameter messages; issues of Anthropic's SDK; chat templates of open models",
        same_role,
    ),
    Rule(
        "unsigned_thinking",
        ("anthropic",),
        "notice",
        "Thinking is sent back with its signature, or left out.",
        f"Anthropic extended thinking guide; {_ERRORS}",
        unsigned_thinking,
    ),
)

#: How grave a finding of each rule is.
LEVELS: dict[str, Level] = {rule.name: rule.level for rule in RULES}
