"""``workbench inspect``: what a file holds, what it cost, and what in it was not as it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from .. import readers
from ..ledger import Ledger, count
from ..model import KINDS, MAIN, Usage
from .options import History, check_thread, counter_document
from .output import number, one_line, plain, table

_SHOWN = 12  # diagnostics and threads that a person sees; --json has all


def ledgers(path: Path, format: str | None, run: str | None, counter: str | None) -> list[Ledger]:
    """Read and count the runs of a file: all of them, or the one that is named."""
    transcripts = readers.read_all(path, format=format) if run is None else [readers.read(path, format=format, run=run)]
    return [count(item, counter) for item in transcripts]


def document(ledger: Ledger, thread: str = MAIN, history: History = History.full) -> dict[str, Any]:
    """One entry of ``transcripts``.

    `messages`, `turn_groups` and `tokens` are those of one history of the thread, the rows that ``select`` acts on: so
    its counts sum to them. `calls` and `usage` are over all threads.
    """
    transcript = ledger.transcript
    check_thread(transcript, thread)
    view = ledger.view(thread, history.value)
    usage = Usage.sum([call.usage for call in transcript.calls])
    records = transcript.records
    return {
        "id": transcript.id,
        "title": transcript.title,
        "path": transcript.source.path,
        "format": transcript.source.format,
        "confidence": transcript.source.confidence,
        "reasons": list(transcript.source.reasons),
        "model": transcript.model,
        "messages": len(view.messages),
        "turn_groups": len(view.turns),
        "threads": [
            {"id": item.id, "kind": item.kind, "messages": len(each.messages), "tokens": each.total}
            for item in transcript.threads
            for each in (ledger.view(item.id, history.value),)
        ],
        "calls": len(transcript.calls),
        "tokens": {"total": view.total, "fixed": view.fixed, "by_kind": view.by_kind},
        "counter": counter_document(ledger, thread, history),
        "usage": {name: getattr(usage, name) for name in Usage.BUCKETS},
        "compactions": [
            {
                "after": item.after,
                "kind": item.kind,
                "trigger": item.trigger,
                "tokens_before": item.tokens_before,
                "tokens_after": item.tokens_after,
                "thread": item.thread,
            }
            for item in transcript.compactions
        ],
        "records": {
            "messages": records.messages,
            "calls": records.calls,
            "compactions": records.compactions,
            "metadata": records.metadata,
            "skipped": records.skipped,
            "total": records.total,
        },
        "diagnostics": [{"line": item.line, "code": item.code, "text": item.text} for item in transcript.diagnostics],
    }


def picture(ledger: Ledger, entry: dict[str, Any]) -> RenderableType:
    """The same for a person: a head, tokens by kind, usage, and what is worth knowing."""
    transcript = ledger.transcript
    tokens, counter = entry["tokens"], entry["counter"]
    total = number(tokens["total"]) if counter["exact"] else f"≈ {number(tokens['total'])} ({number(counter['low'])} to {number(counter['high'])})"
    parts: list[RenderableType] = [
        Text(one_line(entry["title"], 120), style="bold"),
        Text(
            f"{plain(entry['format'])} ({entry['confidence']:.0%} sure) · {one_line(entry['model'] or 'model not recorded', 60)} · "
            f"{number(entry['messages'])} messages · {number(entry['turn_groups'])} turn groups · {total} tokens by {plain(counter['label'])}"
        ),
        table(
            ["tokens by kind", "tokens>", "share>"],
            [(kind, number(tokens["by_kind"][kind]), f"{tokens['by_kind'][kind] / max(tokens['total'], 1):.1%}") for kind in KINDS if tokens["by_kind"][kind]],
        ),
        Text(_usage(entry)),
        Text(_records(entry["records"])),
    ]
    rows: list[tuple[str, ...]]
    if len(transcript.threads) > 1:
        rows = [(item["id"], item["kind"], number(item["messages"]), number(item["tokens"])) for item in entry["threads"][:_SHOWN]]
        parts.append(table(["thread", "kind", "messages>", "tokens>"], rows))
        parts += _more(len(transcript.threads), "threads")
    if entry["compactions"]:
        rows = [(f"#{item['after']}", item["kind"], item["trigger"] or "–", number(item["tokens_before"])) for item in entry["compactions"][:_SHOWN]]
        parts.append(table(["compacted after", "kind", "trigger", "tokens before>"], rows))
        parts += _more(len(entry["compactions"]), "compactions")
    if entry["diagnostics"]:
        rows = [(number(item["line"]), item["code"], one_line(item["text"], 160)) for item in entry["diagnostics"][:_SHOWN]]
        parts.append(table(["line>", "what", "was not as it should be"], rows))
        parts += _more(len(entry["diagnostics"]), "diagnostics")
    return Group(*parts)


def _usage(entry: dict[str, Any]) -> str:
    usage = entry["usage"]
    if all(value is None for value in usage.values()):
        return f"{number(entry['calls'])} provider calls; no usage is recorded"
    names = {"input_uncached": "uncached", "cache_read": "cache read", "cache_write_5m": "written 5 m", "cache_write_1h": "written 1 h", "output": "output"}
    known = ", ".join(f"{number(usage[key])} {name}" for key, name in names.items() if usage[key] is not None)
    return f"{number(entry['calls'])} provider calls reported {known} tokens"


def _records(records: dict[str, int]) -> str:
    parts = ", ".join(f"{name} {number(value)}" for name, value in records.items() if name != "total" and value)
    return f"{number(records['total'])} records{': ' if parts else ''}{parts}"


def _more(count: int, what: str) -> list[Text]:
    return [Text(f"… and {count - _SHOWN:,} more {what}; --json has all")] if count > _SHOWN else []
