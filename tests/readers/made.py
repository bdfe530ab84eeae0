"""Files for the tests of readers, and a reading that needs no other reader to be installed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.model import Transcript
from workbench.readers import Match, Reader
from workbench.readers.source import open_document


def jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Write rows as lines; a string is written as it is."""
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows) + "\n", "utf-8", newline="\n")
    return path


def as_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), "utf-8")
    return path


def read_with(reader: Reader, path: Path) -> list[Transcript]:
    return reader.read(open_document(path))


def detect_with(reader: Reader, path: Path) -> Match | None:
    return reader.detect(open_document(path))


def shape(transcript: Transcript) -> list[tuple[str, str, tuple[str, ...]]]:
    """Role, text and ids of calls and results of every message: what a person would compare."""
    rows = []
    for message in transcript.messages:
        result = message.result
        text = message.text if result is None else result.text
        rows.append((message.role, text, tuple(call.id for call in message.calls) or ((result.call_id,) if result else ())))
    return rows


def check(transcript: Transcript) -> None:
    """What holds for every transcript, whatever the source."""
    records, n, calls = transcript.records, len(transcript.messages), len(transcript.calls)
    assert records.total == records.messages + records.calls + records.compactions + records.metadata + records.skipped
    assert min(records.messages, records.calls, records.compactions, records.metadata, records.skipped) >= 0
    threads = {thread.id for thread in transcript.threads}
    assert sum(thread.records for thread in transcript.threads) <= records.total
    for index, message in enumerate(transcript.messages):
        assert message.index == index
        assert message.thread in threads
        assert message.call is None or 0 <= message.call < calls
        assert message.parent is None or 0 <= message.parent < n
        assert message.raw
        assert message.role in ("system", "user", "assistant", "tool")
        assert (message.role != "tool") or message.result is not None
    for index, call in enumerate(transcript.calls):
        assert call.index == index
        assert call.thread in threads
        assert all(transcript.messages[at].call == index for at in call.produced)
        assert call.context is None or all(0 <= at < n for at in call.context)
        if call.usage is not None:
            for name in call.usage.BUCKETS:
                value = getattr(call.usage, name)
                assert value is None or (type(value) is int and 0 <= value < 2**53)
    for compaction in transcript.compactions:
        assert compaction.thread in threads
        assert -1 <= compaction.after < n
        assert compaction.summary is None or 0 <= compaction.summary < n
        assert compaction.call is None or 0 <= compaction.call < calls
        assert all(0 <= at < n for at in compaction.kept)
    for thread in threads:
        for which in ("full", "live"):
            history = transcript.history(thread, which)
            assert len(set(history)) == len(history)
    assert all(diagnostic.text and "\n" not in diagnostic.text for diagnostic in transcript.diagnostics)
