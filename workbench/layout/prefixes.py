"""The prefixes that the requests of a recorded session really had, and which of them broke the cache."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..model import MAIN, Call, Prefix, ToolSpec, Transcript
from ..systems import vak
from ..systems.rustjson import dumps

NAMED = 5  # tools named in one line of a change


@dataclass(frozen=True, slots=True)
class PrefixChange:
    """A recorded request whose prefix is not that of the request before.

    Parameters
    ----------
    call : int
        Index in ``Transcript.calls``.
    request : int
        Its number among the thread's recorded requests, from 1.
    after : int
        ``Message.index`` of the last message that it held; -1 if none is known.
    what : tuple of str
        What changed, in plain words.
    before, digest : str
        Prefix digests of the request before and of this one.
    """

    call: int
    request: int
    after: int
    what: tuple[str, ...]
    before: str
    digest: str


def recorded(transcript: Transcript, thread: str = MAIN) -> tuple[Call, ...]:
    """The calls of a thread whose request is recorded with its prefix."""
    return tuple(call for call in transcript.calls if call.thread == thread and call.prefix is not None)


def prefix_changes(transcript: Transcript, thread: str = MAIN) -> tuple[PrefixChange, ...]:
    """Each recorded request of a thread whose prefix is not that of the recorded request before.

    A provider's cache holds the first bytes of a request: after such a change nothing of the history is read from it.
    The order of keys in a schema counts, although the digest does not see it.
    """
    calls = recorded(transcript, thread)
    found = []
    for number, (before, call) in enumerate(itertools.pairwise(calls), 2):
        old, new = before.prefix, call.prefix
        if old is new or old is None or new is None:
            continue
        what = (*_system_changes(old.system, new.system), *_tool_changes(old.tools, new.tools))
        if what:
            found.append(PrefixChange(call.index, number, _last_sent(transcript, call), what, _digest_of(old), _digest_of(new)))
    return tuple(found)


def _digest_of(prefix: Prefix) -> str:
    return vak.prefix_digest("\n".join(prefix.system), [vak.Tool(tool.name, tool.description, tool.parameters) for tool in prefix.tools])


def _last_sent(transcript: Transcript, call: Call) -> int:
    if call.context is not None:
        return call.context[-1] if call.context else -1
    first = min(call.produced, default=0)
    return next((index for index in range(first - 1, -1, -1) if transcript.messages[index].thread == call.thread), -1)


def _system_changes(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[str]:
    before, after = "\n".join(old), "\n".join(new)
    if before == after:
        if old != new:
            yield "system text cut into other blocks"
    elif not before:
        yield f"system text added ({_characters(len(after))})"
    elif not after:
        yield f"system text removed ({_characters(len(before))})"
    else:
        grown = len(after) - len(before)
        size = ("+" if grown > 0 else "−") + _characters(abs(grown)) if grown else "changed at the same length"
        yield f"system text {size}, the first change at character {_common(before, after) + 1:,}"


def _characters(number: int) -> str:
    return f"{number:,} character{'' if number == 1 else 's'}"


def _common(one: str, other: str) -> int:
    """How many first characters two texts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _tool_changes(old: tuple[ToolSpec, ...], new: tuple[ToolSpec, ...]) -> Iterator[str]:
    before, after = {tool.name: tool for tool in old}, {tool.name: tool for tool in new}
    added, removed = [name for name in after if name not in before], [name for name in before if name not in after]
    both = [(before[name], after[name]) for name in before if name in after]
    described = [one.name for one, other in both if one.description != other.description]
    schemas = [(one.name, dumps(one.parameters) == dumps(other.parameters)) for one, other in both if repr(one.parameters) != repr(other.parameters)]
    found = [
        (added, f"{'tool' if len(added) == 1 else 'tools'} {{}} added"),
        (removed, f"{'tool' if len(removed) == 1 else 'tools'} {{}} removed"),
        (described, "description of {} changed"),
        ([name for name, same in schemas if not same], "schema of {} changed"),
        ([name for name, same in schemas if same], "order of keys in the schema of {} changed"),
    ]
    yield from (words.replace("{}", _names(names)) for names, words in found if names)
    if [name for name in before if name in after] != [name for name in after if name in before]:
        yield "tool order changed"
    if len(before) + len(after) < len(old) + len(new) and repr(old) != repr(new):  # a name twice hides what changed
        yield "tools that share a name changed"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(name[:80] for name in names[:NAMED])
    return shown + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")
