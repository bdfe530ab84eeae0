"""scv: keep the newest whole turns that fit a token budget, and put one bounded note in place of the rest.

A faithful port of the original program, written to be read: every cost is worked out anew in every call, as the
original does. The fast form is `workbench.policies.scv`; tests tie the two. Rules: four_systems.md §3.

Examples
--------
>>> history = [Message("user", "a long question " * 40), Message("assistant", "an answer"), Message("user", "and now?")]
>>> chosen = select(Config(max_tokens=200, reserve_output_tokens=10, safety_margin_tokens=10), "", [], history)
>>> [message.role for message in chosen.messages], chosen.removed_messages
(['history_note', 'user'], 2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..errors import PolicyError
from .rustjson import PIECE, add, dumps, string, utf8_len

Role = Literal["user", "assistant", "tool", "history_note"]

TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1600
EXTRACT_CHARS = 240

BYTES_PER_TOKEN = "context.bytes_per_token must be positive"
RESERVE = "context reserve and safety margin consume the model window"
STATIC = "system prompt and tool schemas exceed context budget"
NEWEST = "newest turn exceeds context budget"
NOTE = "compaction note cannot fit context budget"


class ScvError(PolicyError):
    """The original's error; its text is the original's."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image, by path and media type."""

    path: str
    mime: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call; `arguments` is any JSON."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool's specification; `parameters` is any JSON."""

    name: str
    description: str
    parameters: Any


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Only a user has images, only an assistant calls, only a tool a call id, a name and an error mark."""

    role: Role
    content: str
    images: tuple[Image, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Config:
    """The original's settings with its defaults. `check` is its constructor's test.

    Parameters
    ----------
    bytes_per_token : int
        JSON bytes that count as one token.
    summary_max_chars : int
        Longest note, in characters; 0 is allowed.
    """

    max_tokens: int = 128_000
    reserve_output_tokens: int = 8_192
    safety_margin_tokens: int = 2_048
    bytes_per_token: int = 3
    summary_max_chars: int = 6_000

    def check(self) -> None:
        """Raise `ScvError` if the settings cannot work."""
        if self.bytes_per_token == 0:
            raise ScvError(BYTES_PER_TOKEN)
        if add(self.reserve_output_tokens, self.safety_margin_tokens) >= self.max_tokens:
            raise ScvError(RESERVE)


@dataclass(frozen=True, slots=True)
class Selected:
    """What a request carries. Both totals include the static part, reserve and margin.

    Parameters
    ----------
    removed_messages : int
        History messages that were left out; the note is none of them.
    """

    messages: tuple[Message, ...] = ()
    before_tokens: int = 0
    after_tokens: int = 0
    removed_messages: int = 0


def message_json(message: Message) -> str:
    """The message as compact JSON, its fields in the original's order, empty lists left out."""
    fields = [f'"role":"{message.role}"']
    if message.role == "tool":
        fields += [f'"call_id":{string(message.call_id)}', f'"name":{string(message.name)}']
    fields.append(f'"content":{string(message.content)}')
    if message.images and message.role == "user":
        images = ",".join(f'{{"path":{string(image.path)},"mime":{string(image.mime)}}}' for image in message.images)
        fields.append(f'"images":[{images}]')
    if message.tool_calls and message.role == "assistant":
        calls = ",".join(f'{{"id":{string(call.id)},"name":{string(call.name)},"arguments":{dumps(call.arguments)}}}' for call in message.tool_calls)
        fields.append(f'"tool_calls":[{calls}]')
    if message.role == "tool":
        fields.append(f'"is_error":{"true" if message.is_error else "false"}')
    return "{" + ",".join(fields) + "}"


def message_bytes(message: Message) -> int:
    """UTF-8 bytes of `message_json`. A very long content is measured piece by piece: its JSON is never whole in memory."""
    content = message.content
    if len(content) <= PIECE:
        return utf8_len(message_json(message))
    pieces = (content[at : at + PIECE] for at in range(0, len(content), PIECE))
    return utf8_len(message_json(replace(message, content=""))) + sum(utf8_len(string(piece)) - 2 for piece in pieces)


def tools_json(tools: Sequence[Tool]) -> str:
    """The tools as one compact JSON array."""
    specs = (f'{{"name":{string(tool.name)},"description":{string(tool.description)},"parameters":{dumps(tool.parameters)}}}' for tool in tools)
    return "[" + ",".join(specs) + "]"


def estimated_tokens(message: Message, bytes_per_token: int) -> int:
    """Cost of a message: its JSON's bytes in tokens, rounded up, and constants for itself and each image."""
    images = len(message.images) if message.role == "user" else 0
    return add(tokens_of(message_bytes(message), bytes_per_token), TOKENS_PER_MESSAGE, TOKENS_PER_IMAGE * images)


def tokens_of(size: int, bytes_per_token: int) -> int:
    """Bytes in tokens, rounded up.

    Raises
    ------
    ScvError
        `bytes_per_token` is 0.
    """
    if bytes_per_token == 0:
        raise ScvError(BYTES_PER_TOKEN)
    return -(-size // bytes_per_token)


def groups(history: Sequence[Message]) -> list[int]:
    """Sizes of the turns. Each user message but the very first message starts one.

    Examples
    --------
    >>> groups([Message("history_note", ""), Message("user", ""), Message("assistant", ""), Message("user", "")])
    [1, 2, 1]
    """
    sizes: list[int] = []
    for at, message in enumerate(history):
        if at == 0 or message.role == "user":
            sizes.append(0)
        sizes[-1] += 1
    return sizes


def header(count: int) -> str:
    """First line of a note for so many messages."""
    return f"[SCV compacted {count} earlier messages. Bounded extracts follow.]\n"


def extract(message: Message) -> str:
    r"""A message's line in a note: a label and the end of its text, on one line.

    Examples
    --------
    >>> extract(Message("tool", "two\nlines", name="read"))
    'tool read (ok): two lines\n'
    """
    if message.role == "tool":
        label = f"tool {message.name} ({'failed' if message.is_error else 'ok'})"
    else:
        label = "earlier" if message.role == "history_note" else message.role
    return label + ": " + char_tail(message.content, EXTRACT_CHARS).replace("\n", " ") + "\n"


def summarize(messages: Sequence[Message], summary_max_chars: int) -> str:
    """The note's text for the messages that are left out, oldest first, cut to a number of characters."""
    text = header(len(messages))
    for message in messages:
        text += extract(message)
        if len(text) >= summary_max_chars:
            break
    return truncate_chars(text, summary_max_chars)


def char_tail(value: str, max_chars: int) -> str:
    """The last characters of a text."""
    return value[max(0, len(value) - max_chars) :]


def truncate_chars(value: str, max_chars: int) -> str:
    """The first characters of a text."""
    return value[:max_chars]


def fit_history_note(content: str, available_tokens: int, bytes_per_token: int) -> tuple[Message, int] | None:
    """The longest beginning of a text that fits as a note, with its cost; None if not even the empty note fits."""

    def cost(chars: int) -> int:
        return estimated_tokens(Message("history_note", content[:chars]), bytes_per_token)

    if cost(0) > available_tokens:
        return None
    fits, too_long = 0, len(content) + 1
    while too_long - fits > 1:  # the cost grows with the length
        middle = (fits + too_long) // 2
        if cost(middle) <= available_tokens:
            fits = middle
        else:
            too_long = middle
    return Message("history_note", content[:fits]), cost(fits)


def select(config: Config, system_prompt: str, tools: Sequence[Tool], history: Sequence[Message]) -> Selected:
    """Choose what the next request carries.

    Raises
    ------
    ScvError
        The settings cannot work, or the fixed part, the newest turn or the note is too large.
    """
    config.check()
    if not history:
        return Selected()
    bpt = config.bytes_per_token
    static = add(
        tokens_of(utf8_len(system_prompt), bpt),
        tokens_of(utf8_len(tools_json(tools)), bpt),
        config.reserve_output_tokens,
        config.safety_margin_tokens,
    )
    if static >= config.max_tokens:
        raise ScvError(STATIC)
    budget = config.max_tokens - static

    costs = [estimated_tokens(message, bpt) for message in history]
    before = add(static, *costs)
    turns: list[tuple[int, int]] = []  # (first message, cost)
    start = 0
    for size in groups(history):
        turns.append((start, sum(costs[start : start + size])))
        start += size

    first, kept = turns.pop()
    if kept > budget:
        raise ScvError(NEWEST)
    taken = [(first, kept)]  # newest first
    while turns and kept + turns[-1][1] <= budget:  # the first turn that does not fit ends the walk
        taken.append(turns.pop())
        kept += taken[-1][1]
    if not turns:
        return Selected(tuple(history), before, add(static, kept), 0)

    while True:
        first = taken[-1][0]
        text = summarize(history[:first], config.summary_max_chars)
        note = Message("history_note", text)
        cost = estimated_tokens(note, bpt)
        if kept + cost <= budget:
            break
        if len(taken) > 1:  # the oldest kept turn joins the note
            kept -= taken.pop()[1]
            continue
        fitted = fit_history_note(text, budget - kept, bpt)
        if fitted is None:
            raise ScvError(NOTE)
        note, cost = fitted
        break
    return Selected((note, *history[first:]), before, add(static, kept, cost), first)


def from_json(value: Mapping[str, Any]) -> Message:
    """Read a message from its JSON."""
    return Message(
        role=value["role"],
        content=value["content"],
        images=tuple(Image(image["path"], image["mime"]) for image in value.get("images") or ()),
        tool_calls=tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in value.get("tool_calls") or ()),
        call_id=value.get("call_id", ""),
        name=value.get("name", ""),
        is_error=value.get("is_error", False),
    )
