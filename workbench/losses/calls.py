"""Tool calls as what they do to files: which they read, which they write, and which are the same call again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..model import ToolCall
from ..notes.structured_facts import paths_of
from .words import Reader, plain

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WRITES = frozenset({"write", "edit", "multiedit", "create", "replace", "insert", "patch", "delete", "remove", "move", "rename", "append", "save", "undo"})
_READS = frozenset({"read", "view", "cat", "open", "show", "get", "fetch", "grep", "glob", "ls", "list", "search", "find", "head", "tail"})
_SHELLS = frozenset({"bash", "shell", "exec", "command", "terminal", "run", "sh", "zsh", "powershell", "execute", "script"})
_COMMANDS = ("command", "cmd", "script", "code")
#: What in a command changes files. A command that does it in another way is taken for one that changes none.
_CHANGES = re.compile(
    r"(?<![0-9&])>{1,2}(?!&|\s{0,3}/dev/null)|\b(?:sed\s+-i|rm|mv|cp|mkdir|touch|tee|dd|truncate|apply_patch|patch)\b"
    r"|\bgit\s+(?:checkout|commit|stash|merge|rebase|reset|apply|pull|restore|revert|clean|switch)\b|\b(?:npm|pnpm|yarn|pip|uv|cargo|go|apt)\s+(?:i|ci|install|add|remove)\b"
)
_SHOWS = re.compile(r"\b(?:cat|sed\s+-n|head|tail|less|more|nl|bat|grep|rg|awk|wc|diff)\b")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete|Move to)(?: File)?: ([^\n\r]{1,300})", re.MULTILINE)
_GOES_TO = re.compile(r"(?:bash -lc )?\s{0,9}cd ([^\s;&|]{1,300})\s{0,9}(?:&&|;|\n)")
_DEVICE = re.compile(r"/dev/").match
_IDLE_KEYS = frozenset({"description", "explanation", "justification", "reason", "thought"})
_SAID = 200  # characters of a call that are shown
_LOOK = 2_000  # characters of a command that are looked at
_MOST = 50  # paths of one call


@dataclass(frozen=True, slots=True)
class Done:
    """A call, as the measures see it.

    Parameters
    ----------
    row : int
        ``Message.index`` of the message that made it.
    result : int
        ``Message.index`` of its first result; -1 if it has none.
    key : bytes
        Equal for calls of one tool with the same arguments, white space and idle words apart.
    paths : tuple of str
        The files that it names, as `Reader.path` knows them.
    reads, writes : bool
        What it does to these files.
    loose : bool
        It may depend on any file: a command, or a call that names none.
    said : str
        Its name and arguments, cut.
    """

    row: int
    result: int
    key: bytes
    paths: tuple[str, ...]
    reads: bool
    writes: bool
    loose: bool
    said: str


def look(call: ToolCall, row: int, result: int, reader: Reader) -> Done:
    """Look at one call."""
    words = {word.lower() for word in _WORDS.findall(call.name[:200])}
    arguments = call.arguments
    command = _command(call)
    raw = call.arguments_raw if not isinstance(arguments, Mapping) else command
    patched = _PATCHED.findall(raw) if "*** " in raw else []
    named = patched or paths_of(call)
    shell = bool(words & _SHELLS) and bool(command)
    if shell:
        named = _from_folder(command, named)
    paths = tuple(dict.fromkeys(reader.path(path.strip()) for path in named[:_MOST] if path.strip()))
    if shell:
        writes = bool(patched) or _CHANGES.search(command) is not None
        reads = not writes and _SHOWS.search(command) is not None
    else:
        verb = arguments.get("command") if isinstance(arguments, Mapping) else None  # of an editor with several
        words |= {word.lower() for word in _WORDS.findall(verb[:40])} if isinstance(verb, str) else set()
        reads = bool(words & _READS) and not (words & _WRITES and verb != "view")
        writes = bool(patched) or (bool(words & _WRITES) and bool(paths) and not reads)
    return Done(row, result, _key(call, reader), paths, reads and bool(paths), writes, shell or not paths, _said(call))


def strings(value: Any) -> Iterator[str]:
    """The texts of a call's arguments, and its numbers as text; keys are the tool's words, not the model's."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list | tuple):
            stack.extend(reversed(item))
        elif type(item) is int and 1_000 <= abs(item) < 10**40:
            yield str(item)


def _command(call: ToolCall) -> str:
    if isinstance(call.arguments, Mapping):
        value = next((call.arguments[key] for key in _COMMANDS if key in call.arguments), None)
        return " ".join(strings(value))[:_LOOK] if value is not None else ""
    return ""


def _from_folder(command: str, named: Sequence[str]) -> list[str]:
    """The paths of a command, from the folder that it goes to first; a word with ``../`` is rather a script's own text."""
    folder = _GOES_TO.match(command)
    before = folder[1].strip("\"'") + "/" if folder else ""
    return [path if path.startswith(("/", "~")) else before + path.removeprefix("./") for path in named if not path.startswith("../") and not _DEVICE(path)]


def _key(call: ToolCall, reader: Reader) -> bytes:
    arguments = call.arguments
    if isinstance(arguments, Mapping):
        given = {key: _plain(value, reader) for key, value in arguments.items() if key not in _IDLE_KEYS and value is not None}
        try:
            text = json.dumps(given, sort_keys=True, default=str)
        except (RecursionError, ValueError, TypeError):
            text = call.arguments_raw
    else:
        text = plain(call.arguments_raw)
    return hashlib.blake2b(f"{call.name}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _plain(value: Any, reader: Reader) -> Any:
    return reader.path(" ".join(value.split())) if isinstance(value, str) else value


def _said(call: ToolCall) -> str:
    given = " ".join(strings(call.arguments)) if call.arguments is not None else call.arguments_raw
    return " ".join(f"{call.name}: {given[: 4 * _SAID]}".split())[:_SAID]
