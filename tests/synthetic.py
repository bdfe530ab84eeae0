"""Sessions made up for tests: believable mixed messages, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from workbench.model import (
    Call,
    Compaction,
    Diagnostic,
    Message,
    Part,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Transcript,
    Usage,
    compact_json,
)

_ASKS = (
    "The nightly export drops rows when a customer has two currencies. Find out why and fix it.",
    "Do not change the file format, finance parses it by column.",
    "Also add a test for it.",
    "What does the retry loop do when the queue is empty?",
    "Bitte die Meldung auch auf Deutsch: „Währung fehlt“ 🙂",
)
_THOUGHTS = ("The loop filters on self.currency, which is set once, from the first order.", "I should look at the caller before I change this.")
_TOOLS = (
    ("read_file", {"path": "export/job.py"}),
    ("grep", {"pattern": "currency", "path": "export"}),
    ("run", {"command": "pytest -q tests/export"}),
)
_OUTPUTS = (
    "88: exporter.currency = orders[0].currency\n91: for row in exporter.rows():\n",
    "12 passed, 1 failed: test_two_currencies KeyError: 'EUR'\n",
    "no matches\n",
)
_ANSWERS = ("Rows in a second currency are skipped here; let me see who sets it.", "The fix groups by currency before writing; tests pass.")


def session(n_messages: int, seed: int = 1, *, extra: Sequence[Message] = (), compacted: bool = False) -> Transcript:
    """A coding session of `n_messages` messages: a system message, then turns of questions, tool work and answers.

    Parameters
    ----------
    extra : sequence of Message
        Put in after the system message; their index is set here.
    compacted : bool
        With a real compaction halfway: one of the messages is its summary.
    """
    rng = random.Random(seed)
    rows: list[tuple[str, tuple[Part, ...], frozenset[str]]] = [("system", (Text("You are a careful engineer. " * 40),), frozenset())]
    rows += [(message.role, message.parts, message.flags) for message in extra]
    cut = n_messages // 2 if compacted else -1
    while len(rows) < n_messages:
        rows.append(("user", (Text(rng.choice(_ASKS)),), frozenset()))
        for _ in range(rng.randint(1, 4)):
            name, arguments = rng.choice(_TOOLS)
            call = ToolCall(f"call_{len(rows)}", name, arguments, compact_json(arguments))
            thought = (Reasoning(rng.choice(_THOUGHTS) * rng.randint(1, 3)),) if rng.random() < 0.4 else ()
            rows.append(("assistant", (*thought, call), frozenset()))
            output = rng.choice(_OUTPUTS) * rng.randint(1, 40)
            rows.append(("tool", (ToolResult(call.id, name, (Text(output),), rng.random() < 0.05),), frozenset()))
        rows.append(("assistant", (Text(rng.choice(_ANSWERS) * rng.randint(1, 4)),), frozenset()))
        if 0 <= cut <= len(rows):
            cut, summary_at = -1, len(rows)
            rows.append(("user", (Text("Summary of the work so far: the export loses rows of a second currency."),), frozenset({"compact_summary"})))
    rows = rows[:n_messages]
    messages = tuple(Message(at, f"m{at}", role, parts, flags=flags, raw=(at + 1,)) for at, (role, parts, flags) in enumerate(rows))  # type: ignore[arg-type]
    calls = (Call(0, "c0", "claude-sonnet-4-5", Usage(input_uncached=900, output=40), produced=(2,)),)
    compactions = (Compaction(summary_at - 1, "summary", "auto", 90_000, 4_000, summary=summary_at),) if compacted else ()
    return Transcript(
        id=f"synthetic-{n_messages}-{seed}",
        source=Source("synthetic", "runs/synthetic session.jsonl"),
        messages=messages,
        calls=calls,
        compactions=compactions,
        tools=(ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),),
        diagnostics=(Diagnostic(41, "bad_json", "unfinished line"),),
    )
