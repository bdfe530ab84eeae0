"""vak's digests: what a tool result shows of itself in a transcript, and the transcript. Rules: four_systems.md §5.

A digest follows the shape of a result (command output, JSON, text) and never cuts it at a number of characters. The
digest is a replaceable function; the one here is the version that ends in the evidence id which `recall` reopens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .rustjson import dumps, loads, utf8_len
from .rusttext import has_white_space, lines, trim, trim_start, words
from .vak_model import Message, ToolResult, ToolUse

#: Name of the tool that was called and the result's content → the body of its digest.
Digest = Callable[[str, str], str]

SHELL = "bash"
SHOWN_LINES = 10  # of command output, at each end
SENTENCE_WORDS = 60
JSON_DEPTH = 127  # a parser of the original gives up beyond


def result_digest(tool: str, content: str) -> str:
    """The body of a result's digest: by its tool if that is the shell, else by what its content is.

    Examples
    --------
    >>> print(result_digest("search", '[{"title": "A", "url": "a.example"}]'))
    1 results:
    - A (a.example)
    >>> print(result_digest("read", "# Notes\\n\\nIt works. Mostly."))
    headings: # Notes
    It works.
    (3 lines, 26 bytes)
    """
    if tool == SHELL:
        return shell_digest(content)
    try:
        value = _parse(content)
    except ValueError:
        return text_digest(content)
    return json_digest(value)


def shell_digest(content: str) -> str:
    """Command output: the first line about the exit code, then the lines, the middle ones left out if there are many."""
    rows = lines(content)
    about_exit = next((row + "\n" for row in rows if _EXIT_CODE.search(row)), "")
    omitted = len(rows) - 2 * SHOWN_LINES
    if omitted > 0:
        rows = [*rows[:SHOWN_LINES], f"[{omitted} lines omitted]", *rows[-SHOWN_LINES:]]
    return about_exit + "\n".join(rows)


def json_digest(value: Any) -> str:
    """A JSON value: links as a list, other arrays by length and first item, objects by keys and arrays, the rest as it is."""
    if isinstance(value, list):
        if _are_links(value):
            return _link_list(value)
        return f"array, {len(value)} items" + (f"; first: {dumps(value[0])}" if value else "")
    if isinstance(value, dict):
        keys = sorted(value)
        arrays = ((key, value[key]) for key in keys if isinstance(value[key], list))
        shown = (f"{key}: " + (_link_list(items) if _are_links(items) else f"array[{len(items)}]") for key, items in arrays)
        return "\n".join((f"object, keys: {', '.join(keys)}", *shown))
    return dumps(value)


def text_digest(content: str) -> str:
    """A text: its headings, the first sentence of its first paragraph that is no heading, and its size.

    A paragraph without white space is no prose (a token, base64): it is only counted, and no later one is tried.
    """
    rows = lines(content)
    headings = [row for row in map(trim_start, rows) if row.startswith("#")]
    paragraphs = map(trim, content.split("\n\n"))
    opening = next((text for text in paragraphs if text and not text.startswith("#")), "")
    said = cut_words(first_sentence(opening), SENTENCE_WORDS) if has_white_space(opening) else ""
    parts = ["headings: " + " | ".join(headings)] if headings else []
    return "\n".join((*parts, *((said,) if said else ()), f"({len(rows)} lines, {utf8_len(content)} bytes)"))


def first_sentence(text: str) -> str:
    """A text up to its first ``.``, ``!`` or ``?`` before a space, a line feed or the end; all of it without one."""
    found = _SENTENCE_END.search(text)
    return text[: found.end()] if found else text


def cut_words(text: str, most: int) -> str:
    """At most so many words; only a text that is cut has its white space made single spaces, and an ellipsis."""
    parts = words(text)
    return trim(text) if len(parts) <= most else " ".join(parts[:most]) + "…"


def transcript_result(messages: Sequence[Message], tool_use_id: str, content: str, is_error: bool = False, digest: Digest = result_digest) -> str:
    """A result as a transcript shows it: its digest and its evidence id, if the call stands in the messages, before or after it.

    Without its call, and with no id to reopen it by, it is shown whole.
    """
    return shown_result(called_tools(messages), ToolResult(tool_use_id, content, is_error), digest)


def called_tools(messages: Iterable[Message]) -> dict[str, str]:
    """Name of the tool that the first call of each id names."""
    names: dict[str, str] = {}
    for message in messages:
        for block in message.content:
            if type(block) is ToolUse:
                names.setdefault(block.id, block.name)
    return names


def shown_result(names: Mapping[str, str], result: ToolResult, digest: Digest = result_digest) -> str:
    """The same where the calls are known. An error is shown whole, with its id."""
    content = result.content
    name = names.get(result.tool_use_id)
    if name is None:
        return content
    body = content if result.is_error else digest(name, content)
    return f"{body}\n[evidence:{result.tool_use_id} — {len(content)} chars; call recall to expand]"


def render_transcript(messages: Sequence[Message], digest: Digest = result_digest) -> str:
    """A conversation as text, for a summariser. Reasoning, images and provider blocks do not show."""
    names = called_tools(messages)
    return "".join(render_message(message, names, digest) for message in messages)


def render_message(message: Message, names: Mapping[str, str], digest: Digest = result_digest) -> str:
    """One message: its calls and results in order, then its text with a header of its own, then a blank line."""
    header = f"[{message.role}]\n"
    parts = []
    for block in message.content:
        if type(block) is ToolUse:
            parts.append(f"[tool-call] {block.name} {dumps(block.input)}\n")
        elif type(block) is ToolResult:
            parts.append(f"[tool-result]\n{shown_result(names, block, digest)}\n")
    if parts:
        parts.insert(0, header)
    text = message.text
    if text or not parts:
        parts += (header, text, "\n")
    return "".join(parts) + "\n"


def _parse(content: str) -> Any:
    """Read JSON as the original's parser does.

    Raises
    ------
    ValueError
        It is none; or it is nested too deeply, or escapes a lone surrogate.
    """
    try:
        value = loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if content.count("[") + content.count("{") > JSON_DEPTH and _deeper(value, JSON_DEPTH):
        raise ValueError("nested too deeply")
    if _SURROGATE_ESCAPE.search(content) and _lone(dumps(value)) and not _lone(content):
        raise ValueError("lone surrogate")
    return value


def _deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [child for item in level if isinstance(item, (list, dict)) for child in (item.values() if isinstance(item, dict) else item)]
    return any(isinstance(item, (list, dict)) for item in level)


def _lone(text: str) -> bool:
    return _SURROGATE.search(text) is not None


def _are_links(items: Sequence[Any]) -> bool:
    return bool(items) and all(isinstance(item, dict) and ("url" in item or "title" in item) for item in items)


def _link_list(items: Sequence[Any]) -> str:
    fields = (tuple(value if isinstance(value := item.get(key), str) else "" for key in ("title", "url")) for item in items)
    return "\n".join((f"{len(items)} results:", *(f"- {title} ({url})" for title, url in fields)))


_SENTENCE_END = re.compile(r"[.!?](?=[ \n]|\Z)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_EXIT_CODE = re.compile("(?ai)exit code")
