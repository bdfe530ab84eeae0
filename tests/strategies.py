"""Transcripts that hypothesis makes up: all that real ones were seen to hold, in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from workbench.ledger import Ledger, count
from workbench.model import (
    COMPACT_SUMMARY,
    HIDDEN,
    MAIN,
    META,
    SYNTHETIC,
    Compaction,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Source,
    Text,
    Thread,
    ToolCall,
    ToolResult,
    ToolSpec,
    Transcript,
    compact_json,
)
from workbench.systems.rustjson import dumps
from workbench.tokens.base import RatioCounter

#: Any text, with what has broken programs before: lone surrogates, controls, line ends of all kinds, marks, long ones.
texts = st.one_of(
    st.just(""),
    st.text(st.characters(exclude_categories=()), max_size=40),
    st.sampled_from(
        (
            "now fix X",
            " \n\t ",
            "a\r\nb\u2028c\u0085d\x1ce",
            '"quoted" \\ and \x00 \x1b[31m',
            "漢字かな交じり文 한국어 עברית",
            "👩‍👩‍👧‍👦 e\u0301\u0301 é",
            "\ud83d lone \udc00",
            "<img src=x onerror=alert(1)> $math$",
            "word " * 120,
            "é" * 300,
            "\n" * 250,
            "x" * 3000,
        )
    ),
)
names = st.sampled_from(("read_file", "bash", "", "<b>tool</b>", "поиск"))
arguments = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
media = st.builds(
    Media,
    kind=st.sampled_from(("image", "image", "document")),
    mime=st.none() | st.just("image/png"),
    width=st.none() | st.integers(1, 4000),
    height=st.none() | st.integers(1, 4000),
    size=st.none() | st.integers(0, 10**7),
    sha256=st.none() | st.just("ab" * 32),
)
tools = st.builds(ToolSpec, name=names, description=texts, parameters=arguments)
flags = st.sampled_from((frozenset(), frozenset(), frozenset(), frozenset({META}), frozenset({HIDDEN}), frozenset({SYNTHETIC}), frozenset({COMPACT_SUMMARY})))


@dataclass
class _Made:
    draw: Callable[[Any], Any]
    messages: list[Message] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    pending: list[tuple[str, str]] = field(default_factory=list)  # calls without a result: (id, name)
    calls: int = 0

    def add(self, role: str, *parts: Part, flags: frozenset[str] = frozenset(), thread: str = MAIN) -> None:
        self.messages.append(Message(len(self.messages), "", role, parts, thread=thread, flags=flags, ts=len(self.messages) * 1000))  # type: ignore[arg-type]

    def user(self) -> None:
        parts = [Text(text) for text in self.draw(st.lists(texts, max_size=2))]
        self.add("user", *parts, *self.draw(st.lists(media, max_size=1)), flags=self.draw(flags))

    def assistant(self) -> None:
        parts: list[Part] = []
        if self.draw(st.booleans()):
            parts.append(Reasoning(self.draw(st.none() | texts), self.draw(st.none() | st.integers(0, 20_000))))
        parts += [Text(text) for text in self.draw(st.lists(texts, max_size=2))]
        for _ in range(self.draw(st.integers(0, 3))):  # parallel calls
            self.calls += 1
            call_id = self.draw(st.sampled_from((f"c{self.calls}", f"c{self.calls}", f"c{self.calls}", "c1", "")))
            name = self.draw(names)
            value = self.draw(arguments)
            parts.append(ToolCall(call_id, name, value, dumps(value)) if self.draw(st.booleans()) else ToolCall(call_id, name, None, "{not json"))
            self.pending.append((call_id, name))
        self.add("assistant", *parts)

    def result(self) -> None:
        if self.pending and self.draw(st.integers(0, 5)):
            at = self.draw(st.integers(0, len(self.pending) - 1))  # in any order, perhaps turns later
            call_id, name = self.pending[at] if self.draw(st.integers(0, 5)) == 0 else self.pending.pop(at)  # kept: answered twice
        else:
            call_id, name = "orphan", "bash"
        content: list[Text | Media | Opaque] = [Text(text) for text in self.draw(st.lists(texts, max_size=2))]
        content += self.draw(st.lists(media | st.just(Opaque("audio", 10)), max_size=1))
        self.add("tool", ToolResult(call_id, self.draw(st.sampled_from((name, None))), tuple(content), self.draw(st.booleans())))

    def system(self) -> None:
        self.add("system", Text(self.draw(texts)))

    def note(self) -> None:
        self.add("note", Text(self.draw(texts)))

    def subagent(self) -> None:
        self.add(self.draw(st.sampled_from(("user", "assistant"))), Text(self.draw(texts)), thread="sub")

    def compaction(self) -> None:
        before = [message.index for message in self.messages if message.thread == MAIN]
        kept = tuple(self.draw(st.lists(st.sampled_from(before), unique=True, max_size=2).map(sorted))) if before else ()
        summary = None
        if self.draw(st.booleans()):
            summary = len(self.messages)
            self.add("user", Text(self.draw(texts)), flags=frozenset({COMPACT_SUMMARY}))
        leading = {index for index in before if all(self.messages[at].role == "system" for at in before if at <= index)}
        self.compactions.append(Compaction(before[-1] if before else -1, "summary", summary=summary, kept=tuple(k for k in kept if k not in leading)))


@st.composite
def transcripts(draw: Callable[[Any], Any], max_messages: int = 24) -> Transcript:
    """Any transcript: also empty, only a system message, no user, orphans, results in any order and much later."""
    made = _Made(draw)
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        made.system()
    moves = draw(
        st.lists(st.sampled_from(("user",) * 4 + ("assistant",) * 4 + ("result",) * 4 + ("system", "note", "subagent", "compaction")), max_size=max_messages)
    )
    for move in moves:
        getattr(made, move)()
    threads = (Thread(MAIN), Thread("sub", "subagent", MAIN)) if any(message.thread == "sub" for message in made.messages) else (Thread(MAIN),)
    return Transcript(
        id="made-up",
        source=Source("made-up"),
        messages=tuple(made.messages),
        compactions=tuple(made.compactions),
        tools=tuple(draw(st.lists(tools, max_size=2))),
        system=tuple(draw(st.lists(texts, max_size=1))),
        threads=threads,
    )


def counted(transcript: Transcript) -> Ledger:
    """Its ledger by the counter that needs no vocabulary."""
    return count(transcript, RatioCounter(4))


def conversation(*rows: tuple[str, Any]) -> Transcript:
    """A transcript from short rows, for cases written by hand.

    ``("user", "text")``, ``("assistant", "text", "call id", …)``, ``("tool", "call id", "text")``, ``("system", "text")``.
    """
    messages: list[Message] = []
    for role, text, *ids in rows:
        if role == "tool":
            parts: tuple[Part, ...] = (ToolResult(text, "run", (Text(ids[0]),)),)
        else:
            parts = ((Text(text),) if text else ()) + tuple(ToolCall(call_id, "run", {"n": 1}, compact_json({"n": 1})) for call_id in ids)
        messages.append(Message(len(messages), "", role, parts))  # type: ignore[arg-type]
    return Transcript("by-hand", Source("by-hand"), tuple(messages))
