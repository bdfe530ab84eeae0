"""OpenHands: lists and folders of events (version 0 and the SDK of version 1), results of evaluations, completion logs.

The records of a list or folder are its events, of a result its history, of a completion log the messages of its request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..model import Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .exchanges import Exchange
from .fields import listing, mapping, string
from .jsontext import NotJson, parse
from .openai_chat import read_exchanges
from .openhands_events import Events, Usages
from .openhands_logs import exchange_of, is_log, read_log, read_messages
from .source import Document

_KINDS = frozenset({"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "Condensation", "ConversationStateUpdateEvent"})
_PROMPT = "You are OpenHands agent"
_EVENT = re.compile(r"(?:event-)?(\d{1,9})(?:-[A-Za-z0-9-]{1,80})?\.json")
_LOG = re.compile(r"[A-Za-z0-9_.-]{1,200}\.json")
_MOST_FILES = 100_000
_MOST_BYTES = 1 << 29


class OpenHandsReader:
    """Reads what OpenHands keeps of its conversations."""

    info = ReaderInfo("openhands", "OpenHands: events (file or folder), evaluation results, completion logs (file or folder)")
    kinds = frozenset({"json", "jsonl", "folder"})

    def detect(self, document: Document) -> Match | None:
        """Looks for events, histories of events, completion logs, or a chat with OpenHands' own prompt."""
        if document.kind == "folder":
            return _detect_folder(document)
        value = document.value
        if isinstance(value, dict):
            if is_log(value):
                return Match(0.93, ("a request to LiteLLM with its response and cost",))
            rows = listing(value.get("history")) or listing(value.get("events"))
            return _detect_events([_flat(row) for row in rows[:50]]) if rows else _detect_events([value])
        head = document.head(50)
        results = [row for row in head if isinstance(row.get("history"), list) and {"instance_id", "metrics", "test_result"} & row.keys()]
        if results and len(results) * 2 > len(head):
            inner = _detect_events([_flat(row) for row in results[0]["history"][:50]])
            return Match(0.95, ("results of an evaluation with a history",)) if inner or not results[0]["history"] else None
        pairs = [_flat(record.value) for record in document.records[:50] if isinstance(record.value, list)]
        if pairs and not head:
            return _detect_events(pairs)
        if head and all("role" in row for row in head) and any(_PROMPT in _said(row) for row in head[:2]):
            return Match(0.9, (f"a chat that begins with {_PROMPT!r}",))
        return _detect_events(head)

    def read(self, document: Document) -> list[Transcript]:
        """One transcript for each conversation."""
        if document.kind == "folder":
            return _read_folder(document)
        value = document.value
        if is_log(value):
            return [read_log(self.info.name, document, value)]
        rows = document.rows()
        results = [(row.number, row.value) for row in rows if isinstance(row.value, dict) and isinstance(row.value.get("history"), list)]
        if results:
            return _read_results(document, results)
        if isinstance(value, dict) and isinstance(value.get("events"), list):
            return [_read_events(document, value["events"], {})]
        builder = Builder(self.info.name, document)
        if rows and any("role" in mapping(row.value) for row in rows[:2]):
            builder.total = document.total
            read_messages(builder, [row.value for row in rows])
            return [builder.build()]
        events = Events(builder)
        _reserve(events, [row.value for row in rows])
        for row in rows:
            for event in _pair(row.value):
                events.event(event, row.number)
        events.finish()
        return [builder.build()]


READER = OpenHandsReader()


def _detect_events(rows: list[Any]) -> Match | None:
    rows = [row for row in rows if isinstance(row, dict)]
    plain = [row for row in rows if not isinstance(row.get("kind"), str) and "timestamp" in row and "source" in row]
    old = sum("action" in row or "observation" in row for row in plain)
    new = sum(row.get("kind") in _KINDS and "id" in row for row in rows if isinstance(row.get("kind"), str))
    if new * 2 > len(rows) > 0:
        return Match(0.95, ("events of OpenHands' SDK",))
    if old * 2 > len(rows) > 0:
        return Match(0.93, ("actions and observations with id, source and timestamp",))
    acts = sum(isinstance(row.get("action"), str) and isinstance(row.get("args"), dict) for row in rows)
    saw = sum(isinstance(row.get("observation"), str) and isinstance(row.get("extras"), dict) for row in rows)
    return Match(0.85, ("actions with args, observations with extras",)) if saw and (acts + saw) * 2 > len(rows) else None


def _said(row: dict[str, Any]) -> str:
    content = row.get("content")
    return content if isinstance(content, str) else " ".join(string(mapping(part).get("text"))[:200] for part in listing(content)[:2])


def _flat(row: Any) -> Any:
    """The first event of a pair of action and observation, as old histories have them."""
    return next(iter(row), None) if isinstance(row, list) else row


def _pair(row: Any) -> list[Any]:
    return row if isinstance(row, list) and row else [row]


def _reserve(events: Events, rows: list[Any]) -> None:
    """Note which responses are named, so that a listed usage goes to no other event."""
    named = set()
    for row in rows:
        for event in _pair(row):
            held = mapping(event)
            named.add(string(mapping(mapping(held.get("tool_call_metadata")).get("model_response")).get("id"), held.get("llm_response_id")))
    events.usages.reserve(named - {""})


def _read_events(document: Document, history: list[Any], about: dict[str, Any], *, first: bool = True, lost: int = 0) -> Transcript:
    builder = Builder(READER.info.name, document, total=len(history) + lost)
    metrics, config = mapping(about.get("metrics")), mapping(mapping(about.get("metadata")).get("llm_config"))
    builder.id = str(about["instance_id"])[:200] if isinstance(about.get("instance_id"), str | int) else ""
    builder.meta |= {
        "title": builder.id,
        "model": string(config.get("model")),
        "agent": string(mapping(about.get("metadata")).get("agent_class")),
        "error": string(about.get("error"))[:500],
    }
    events = Events(builder, Usages())
    events.usages.add(listing(metrics.get("token_usages")))
    _reserve(events, history)
    for number, row in enumerate(history, 1):
        for event in _pair(row):
            events.event(event, number)
    events.finish()
    _totals(builder, mapping(metrics.get("accumulated_token_usage")))
    return builder.build(shared=not first)


def _totals(builder: Builder, stated: Any) -> None:
    known = [call.usage for call in builder.calls if call.usage is not None]
    found = (sum(usage.prompt or 0 for usage in known), sum(usage.output or 0 for usage in known))
    said = (stated.get("prompt_tokens"), stated.get("completion_tokens"))
    if isinstance(said[0], int) and isinstance(said[1], int) and said != (0, 0) and said != found:
        builder.report(None, "totals", f"metrics say {said[0]:,} tokens in and {said[1]:,} out; the responses at hand sum to {found[0]:,} and {found[1]:,}")


def _read_results(document: Document, results: list[tuple[int, dict[str, Any]]]) -> list[Transcript]:
    lost = document.total - len(results) if document.kind == "jsonl" or isinstance(document.value, list) else 0
    return [_read_events(document, row["history"], row, first=at == 0, lost=lost if at == 0 else 0) for at, (_, row) in enumerate(results)]


# -- folders


def _files(folder: Path, name: re.Pattern[str]) -> Iterator[tuple[Path, re.Match[str]]]:
    """Files of a folder whose name fits, that no link leads out of."""
    try:
        home = folder.resolve()
        for path in sorted(folder.iterdir()):
            match = name.fullmatch(path.name)
            if match and path.is_file() and path.resolve().is_relative_to(home):
                yield path, match
    except OSError:
        return


def _events_folder(document: Document) -> Path | None:
    inner = document.path / "events"
    inside = inner.is_dir() and inner.resolve().is_relative_to(document.path.resolve())
    return next((folder for folder in ([inner] if inside else []) + [document.path] if next(_files(folder, _EVENT), None)), None)


def _value(document: Document, path: Path) -> Any:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise NotJson("larger than any event")
        return parse(path.read_bytes()).value
    except (OSError, NotJson) as error:
        document.report(None, "file", f"{path.name[:80]!r} is left out: {getattr(error, 'strerror', None) or error}")
        return None


def _detect_folder(document: Document) -> Match | None:
    try:
        folder = _events_folder(document)
    except OSError:
        return None
    probe = Document(document.path, "folder", 0)
    if folder is not None:
        found = [_value(probe, path) for (path, _), _ in zip(_files(folder, _EVENT), range(5), strict=False)]
        match = _detect_events(found)
        return None if match is None else Match(match.confidence, (f"a folder of {match.reasons[0]}",))
    logs = [is_log(_value(probe, path)) for (path, _), _ in zip(_files(document.path, _LOG), range(3), strict=False)]
    return Match(0.9, ("a folder of requests to LiteLLM with their responses",)) if logs and all(logs) else None


def _read_folder(document: Document) -> list[Transcript]:
    folder = _events_folder(document)
    if folder is None:
        return _read_logs(document)
    files = sorted(((int(match.group(1)), path) for path, match in _files(folder, _EVENT)), key=lambda item: (item[0], item[1].name))[:_MOST_FILES]
    builder = Builder(READER.info.name, document, total=len(files))
    events = Events(builder, Usages())
    state = document.path / "base_state.json"
    if any(path == state for path, _ in _files(document.path, re.compile("base_state[.]json"))):
        about = mapping(_value(document, state))
        for metrics in mapping(mapping(about.get("stats")).get("usage_to_metrics")).values():
            events.usages.add(listing(mapping(metrics).get("token_usages")))
        builder.id = string(about.get("id"))
        builder.meta["model"] = string(mapping(mapping(about.get("agent")).get("llm")).get("model"))
    values = [_value(document, path) for _, path in files]
    _reserve(events, values)
    for number, value in enumerate(values, 1):
        events.event(value, number)
    events.finish()
    return [builder.build()]


def _read_logs(document: Document) -> list[Transcript]:
    found: list[tuple[float, Exchange]] = []
    for number, (path, _) in enumerate(_files(document.path, _LOG), 1):
        value = _value(document, path)
        document.total = number
        if is_log(value):
            when = value.get("timestamp")
            found.append((when if isinstance(when, int | float) else 0.0, exchange_of(number, value)))
    return read_exchanges(document, [exchange for _, exchange in sorted(found, key=lambda item: (item[0], item[1].number))], READER.info.name)
