"""Transcripts and a policy for tests of the views: every kind, every fate, hostile texts."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar

from workbench.ledger import Ledger, View, count
from workbench.model import Compaction, Media, Message, Part, Reasoning, Source, Text, ToolCall, ToolResult, ToolSpec, Transcript, compact_json
from workbench.policies.base import Added, Edited, Item, Kept, Note, PolicyInfo, Request, Selection, make_selection

MARKUP = "<img src=x onerror=alert(1)><script>window.broken=1</script>"
_ASKED = (
    "The nightly export drops rows when a customer has two currencies. Find out why and fix it.",
    "Do not change the file format.",
    "Also add a test for it.",
)
_SAID = ("Rows in a second currency are skipped here; let me see who sets it.", "The fix groups by currency before writing; all tests pass now.")
_THOUGHT = "The loop filters on self.currency, which is set once from the first order. "
_TOOLS = {"read_file": {"path": "export/job.py"}, "grep": {"pattern": "currency", "path": "export"}, "run": {"command": "pytest -q tests/export"}}
_GIVEN = (
    "88: exporter.currency = orders[0].currency\n91: for row in exporter.rows():\n",
    "\x1b[31m1 failed\x1b[0m, 12 passed: test_two_currencies KeyError: 'EUR'\n",
)


def session(messages: int = 200, seed: int = 7, *, compacted: bool = True) -> Transcript:
    """A believable session of a coding agent with so many messages: every kind, ids, an image, a real compaction."""
    pick = random.Random(seed)
    rows: list[Message] = []

    def add(role: str, *parts: Part, flags: frozenset[str] = frozenset()) -> None:
        rows.append(Message(len(rows), "", role, parts, flags=flags))  # type: ignore[arg-type]

    add("system", Text("You are a careful engineer. " * 60))
    while len(rows) < messages:
        add("user", Text(pick.choice(_ASKED) * pick.randint(1, 4)), *([Media("image", "image/png", 640, 480, 9_000)] if pick.random() < 0.05 else []))
        for _ in range(pick.randint(1, 3)):
            name = pick.choice(list(_TOOLS))
            call = ToolCall(f"call_{len(rows)}", name, _TOOLS[name], compact_json(_TOOLS[name]))
            thought = [Reasoning(_THOUGHT * pick.randint(1, 12))] if pick.random() < 0.4 else []
            add("assistant", *thought, call)
            text = pick.choice(_GIVEN) * int(2 + pick.random() ** 2 * 120)
            add("tool", ToolResult(call.id, name, (Text(text),), is_error=pick.random() < 0.1))
        add("assistant", Text(pick.choice(_SAID) * pick.randint(1, 8)))
    rows = rows[:messages]
    cut = Compaction(after=messages * 2 // 5, kind="summary", trigger="auto", tokens_before=90_000, tokens_after=9_000)
    tools = tuple(ToolSpec(name, "Does it. " * 20, {"type": "object"}) for name in _TOOLS)
    return Transcript("made", Source("made", "coding_agent.jsonl"), tuple(rows), compactions=(cut,) if compacted and messages > 4 else (), tools=tools)


def hostile() -> Transcript:
    """Markup in every text field that a view shows, terminal escapes, half a surrogate pair, a text of 2 MB."""
    parts: list[tuple[str, tuple[Part, ...]]] = [
        ("user", (Text(MARKUP),)),
        ("assistant", (Reasoning(MARKUP), ToolCall("a", MARKUP, {}, MARKUP))),
        ("tool", (ToolResult("a", MARKUP, (Text(MARKUP + "\x1b[31mred\x1b[0m \r 50% \ud99c end"),)),)),
        ("assistant", (Text("ordinary words"),)),
        ("user", (Text("x" * 2_000_000 + " needle"),)),
    ]
    rows = tuple(Message(at, "", role, content) for at, (role, content) in enumerate(parts))  # type: ignore[arg-type]
    return Transcript("hostile", Source("made", MARKUP), rows)


def ledger(transcript: Transcript) -> Ledger:
    """Counted by bytes: immediate."""
    return count(transcript)


@dataclass(frozen=True)
class Mixed:
    """Every fate and every item: drops, summarizes in two notes, edits results, adds a text, and can change the order."""

    keep: float = 0.3
    shuffled: bool = False

    info: ClassVar[PolicyInfo] = PolicyInfo("test.mixed", "mixed", "Every fate and every item.")
    promises: ClassVar[frozenset[str]] = frozenset()

    def select(self, request: Request, previous: Selection | None = None) -> Selection:
        view = request.view
        body = view.indices[view.lead :].tolist()
        cut = int(len(body) * (1 - self.keep))
        dropped, first, second, rest = body[: cut // 3], body[cut // 3 : cut * 2 // 3], body[cut * 2 // 3 : cut], body[cut:]
        items: list[Item] = [Kept(index) for index in view.indices[: view.lead].tolist()]
        for gone, quotes in ((first, first[:2]), (second, [])):
            if gone:
                items.append(Note(Message(-1, "", "note", (Text(f"[{len(gone)} messages] {MARKUP} " + "words " * 200),)), gone, quotes, "user"))
        items.append(Added(Message(-1, "", "user", (Text("Go on."),)), "asks to go on"))
        every = view.ledger.transcript.messages
        tail = [self._sent(every[index]) for index in rest]
        items += reversed(tail) if self.shuffled else tail
        assert len(dropped) + len(first) + len(second) + len(rest) == len(body)
        return make_selection(self, request, items, own=(view.total, view.total))

    @staticmethod
    def _sent(message: Message) -> Item:
        result = message.result
        if result is None:
            return Kept(message.index)
        return Edited(message.index, replace(message, parts=(replace(result, parts=(Text("[cleared]"),)),)))


def view(transcript: Transcript) -> View:
    """The main thread's full history, counted."""
    return ledger(transcript).view()
