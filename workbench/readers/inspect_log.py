"""Logs of Inspect (inspect_ai): ``.json``, ``.eval`` archives of one member per sample, and lists of events.

Each sample is a run; its records are the messages that it lists. Of an archive the samples are read one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ReadError
from ..model import Transcript, Usage
from .base import Match, ReaderInfo
from .build import Builder
from .fields import listing, mapping, string
from .inspect_events import Events
from .inspect_messages import Chat, usage_of
from .jsontext import NotJson, parse
from .packed import Archive
from .source import Document

_EVENTS = frozenset({"sample_init", "model", "tool", "state", "step", "span_begin", "span_end", "score", "compaction", "store", "subtask", "sandbox", "info"})


class InspectReader:
    """Reads Inspect's logs."""

    info = ReaderInfo("inspect", "Inspect logs (.eval and .json): a run for each sample")
    kinds = frozenset({"json", "jsonl", "zip"})

    def detect(self, document: Document) -> Match | None:
        """Looks for the log's header and samples, or for its events."""
        if document.kind == "zip":
            return _detect_archive(document)
        value = document.value
        if isinstance(value, dict):
            if isinstance(value.get("eval"), dict) and {"samples", "plan", "stats", "results"} & value.keys():
                return Match(0.97, ("an evaluation log with its header",))
            if _is_sample(value):
                return Match(0.95, ("a sample of an evaluation log",))
        events = _events_of(document)[:50]
        kinds = {string(event.get("event")) for event in events if isinstance(event, dict) and "timestamp" in event}
        known = sum(isinstance(event, dict) and "timestamp" in event and string(event.get("event")) != "" for event in events)
        return Match(0.9, ("events of an evaluation log",)) if known * 2 > len(events) and kinds & _EVENTS else None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per sample, by epoch and id."""
        if document.kind == "zip":
            return _read_archive(document)
        value = document.value
        if isinstance(value, dict) and not _is_sample(value) and (isinstance(value.get("eval"), dict) or isinstance(value.get("samples"), list)):
            samples = [sample for sample in listing(value.get("samples")) if sample is not None]
            return _Log(document, value).read(samples, 0)
        if isinstance(value, dict) and _is_sample(value):
            return _Log(document, {}).read([value], 0)
        return [_read_events(document)]


READER = InspectReader()


def _is_sample(value: dict[str, Any]) -> bool:
    return "epoch" in value and isinstance(value.get("messages"), list) and bool({"target", "scores", "events", "output"} & value.keys())


def _events_of(document: Document) -> list[Any]:
    if isinstance(document.value, dict):
        return listing(document.value.get("events"))
    return [record.value for record in document.records]


def _detect_archive(document: Document) -> Match | None:
    try:
        with Archive(document.path) as archive:
            names = archive.names
    except ReadError:
        return None
    if any(_is_sample_name(name) for name in names) or "header.json" in names or "_journal/start.json" in names:
        return Match(0.95, ("an archive with the samples of an evaluation log",))
    return None


def _is_sample_name(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def _read_archive(document: Document) -> list[Transcript]:
    with Archive(document.path) as archive:
        head = next((name for name in ("header.json", "_journal/start.json") if name in archive.names), "")
        header = _member(document, archive, head) if head else None
        if header is None:
            document.report(None, "header", f"{document.name} has no header that can be read")
        if archive.cut:
            document.report(None, "archive", f"{document.name} is damaged or not finished: samples after the damage are lost")
        log = _Log(document, mapping(header))
        samples, damaged = [], 0
        for name in filter(_is_sample_name, archive.names):
            sample = _member(document, archive, name)
            if isinstance(sample, dict):
                samples.append(log.sample(sample))
            else:
                damaged += 1
    return log.finish(samples, damaged)


def _member(document: Document, archive: Archive, name: str) -> Any:
    """A member, parsed; None, with a diagnostic, if it cannot be."""
    try:
        parsed = parse(archive.read(name))
    except (ReadError, NotJson) as error:
        document.report(None, "member", f"{name[:80]!r} is left out: {error}"[:300].replace("\n", " "))
        return None
    for fault in parsed.faults:
        document.report(None, "json", f"{name[:80]!r}: {fault}")
    return parsed.value


def _read_events(document: Document) -> Transcript:
    events = _events_of(document)
    builder = Builder(READER.info.name, document, total=len(events) if isinstance(document.value, dict) else None)
    Events(builder, Chat({}), [], []).read(events)
    if isinstance(document.value, dict) and not events:
        builder.total = 1
        builder.skip(1, "log", "no samples and no events in it")
    return builder.build()


@dataclass(slots=True)
class _Log:
    """Reads the samples of one log."""

    document: Document
    header: dict[str, Any] | Any

    def read(self, samples: list[Any], damaged: int) -> list[Transcript]:
        good = [sample for sample in samples if isinstance(sample, dict)]
        return self.finish([self.sample(sample) for sample in good], damaged + len(samples) - len(good))

    def finish(self, builders: list[tuple[Any, Builder]], damaged: int) -> list[Transcript]:
        """Order the runs and say what was wrong with the log as a whole."""
        builders.sort(key=lambda item: item[0])
        if not builders:
            builder = Builder(READER.info.name, self.document, total=0)
            self._about(builder, {})
            builders = [((), builder)]
        first = builders[0][1]
        for number in range(damaged):
            first.total = (first.total or 0) + 1
            first.skip(first.total, "sample", f"sample {number + 1} of {damaged:,} that cannot be read")
        self._totals(first, [builder for _, builder in builders])
        return [builder.build(shared=at > 0) for at, (_, builder) in enumerate(builders)]

    def sample(self, sample: dict[str, Any]) -> tuple[Any, Builder]:
        """Read one sample; with it what it is ordered by."""
        messages = listing(sample.get("messages"))
        builder = Builder(READER.info.name, self.document, total=len(messages))
        epoch, id_ = sample.get("epoch"), sample.get("id")
        epoch = epoch if isinstance(epoch, int) else 0
        builder.id = f"{id_}_epoch_{epoch}"[:200] if isinstance(id_, str | int) else ""
        self._about(builder, sample)
        data = mapping(sample.get("events_data"))
        pool = listing(sample.get("message_pool")) or listing(data.get("messages")) or listing(data.get("message_pool"))
        old = mapping(sample.get("transcript"))  # in logs before 2024-11
        events = listing(sample.get("events")) or listing(old.get("events"))
        reader = Events(builder, Chat({**mapping(old.get("content")), **mapping(sample.get("attachments"))}), messages, pool, string(builder.meta.get("model")))
        reader.read(events)
        builder.count_to(len(messages))
        self._last_usage(builder, sample)
        stated = _sum(sample.get("model_usage"))
        found = Usage.sum([call.usage for call in builder.calls])
        if stated.total is not None and (stated.prompt, stated.output) != (found.prompt, found.output):
            sums = f"its requests sum to {found.prompt or 0:,} and {found.output or 0:,}"
            text = f"the sample says {stated.prompt or 0:,} tokens in and {stated.output or 0:,} out; {sums}"
            builder.report(None, "totals", text)
        return (epoch, isinstance(id_, str), id_ if isinstance(id_, str | int) else 0), builder

    def _last_usage(self, builder: Builder, sample: dict[str, Any]) -> None:
        """Logs without events know the usage of the last response."""
        if len(builder.calls) and all(call.usage is None for call in builder.calls):
            builder.calls[-1].usage, _ = usage_of(mapping(sample.get("output")).get("usage"))

    def _about(self, builder: Builder, sample: dict[str, Any]) -> None:
        about = mapping(self.header.get("eval")) if isinstance(self.header, dict) else {}
        task, id_ = string(about.get("task")), sample.get("id")
        if isinstance(id_, str | int):
            epoch = sample.get("epoch")
            builder.meta["title"] = f"{task or 'sample'} {id_}"[:120] + (f" (epoch {epoch})" if isinstance(epoch, int) and epoch > 1 else "")
            builder.meta["sample"] = id_
        builder.meta |= {
            "task": task,
            "model": string(about.get("model")),
            "status": string(mapping(self.header).get("status")),
            "error": string(mapping(sample.get("error")).get("message"))[:500],
            "limit": string(mapping(sample.get("limit")).get("type")),
        }

    def _totals(self, first: Builder, builders: list[Builder]) -> None:
        """Compare with what the log states for all its samples; a log of which samples were left out states more."""
        stated = _sum(mapping(mapping(self.header).get("stats")).get("model_usage"))
        found = Usage.sum([call.usage for builder in builders for call in builder.calls])
        if stated.total is not None and (stated.prompt, stated.output) != (found.prompt, found.output):
            sums = f"its samples sum to {found.prompt or 0:,} and {found.output or 0:,}"
            text = f"the log says {stated.prompt or 0:,} tokens in and {stated.output or 0:,} out; {sums}"
            first.report(None, "totals", text)


def _sum(by_model: Any) -> Usage:
    return Usage.sum([usage_of(usage)[0] for usage in mapping(by_model).values()])
