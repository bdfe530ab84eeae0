"""Small sessions full of identifiers, for the tests of losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.strategies import counted
from workbench.ledger import Ledger
from workbench.model import MAIN, Message, Part, Source, Text, ToolCall, ToolResult, Transcript, compact_json

_ids = iter(range(10**9))


def said(role: str, text: str = "", *calls: tuple[str, dict[str, Any]]) -> tuple[str, str, tuple[tuple[str, dict[str, Any]], ...]]:
    """A row of `session`."""
    return role, text, calls


def session(*rows: tuple[str, str, tuple[tuple[str, dict[str, Any]], ...]], system: Sequence[str] = (), cwd: str = "/home/dev/app") -> Transcript:
    """A transcript from rows: each call of an assistant is answered by the next ``tool`` rows, in order."""
    messages: list[Message] = []
    waiting: list[ToolCall] = []
    for role, text, calls in rows:
        parts: tuple[Part, ...]
        if role == "tool":
            call = waiting.pop(0)
            parts = (ToolResult(call.id, call.name, (Text(text),)),)
        else:
            made = [ToolCall(f"c{next(_ids)}", name, given, compact_json(given)) for name, given in calls]
            waiting += made
            parts = (*((Text(text),) if text else ()), *made)
        messages.append(Message(len(messages), "", role, parts, thread=MAIN, ts=len(messages) * 1000))  # type: ignore[arg-type]
    return Transcript("made", Source("made"), tuple(messages), system=tuple(system), meta={"cwd": cwd})


def ledger_of(*rows: Any, **more: Any) -> Ledger:
    """Its ledger, by the counter that needs no vocabulary."""
    return counted(session(*rows, **more))


_WORDS = ("src/a.py", "src/b.py", "read_rows", "maxTokens", "4f9c2d1", "12480", "https://x.org/a", "and", "then", "Error: no such row here")
words = st.lists(st.sampled_from(_WORDS), max_size=4).map(" ".join)
_calls = st.lists(st.tuples(st.sampled_from(("Read", "Edit", "Bash")), st.sampled_from(("src/a.py", "src/b.py"))), max_size=2)


@st.composite
def sessions(draw: Any, most: int = 16) -> Transcript:
    """Sessions whose messages share a few identifiers and calls."""
    rows: list[tuple[str, str, tuple[tuple[str, dict[str, Any]], ...]]] = []
    waiting = 0
    for _ in range(draw(st.integers(0, most))):
        if waiting and draw(st.booleans()):
            rows.append(said("tool", draw(words)))
            waiting -= 1
        elif draw(st.booleans()):
            rows.append(said("user", draw(words)))
        else:
            made = [(name, {"command": f"cat {path}"} if name == "Bash" else {"file_path": path}) for name, path in draw(_calls)]
            waiting += len(made)
            rows.append(said("assistant", draw(words), *made))
    return session(*rows, system=draw(st.lists(words, max_size=1)))
