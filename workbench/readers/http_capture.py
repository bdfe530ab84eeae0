"""HTTP captures of model calls: HAR archives, recorders' cassettes as JSON, proxies' lists of requests and responses.

A capture is turned into pairs of bodies, which the readers of the providers' pairs read. Only bodies are looked at:
headers, cookies and queries of addresses, which hold keys, are dropped here and never kept.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import ReadError
from ..model import Call, Message, Transcript
from . import anthropic, google_genai, openai_chat, openai_responses
from .base import Match, Reader, ReaderInfo
from .build import Builder
from .fields import epoch_ms, mapping, string
from .jsontext import NotJson, parse
from .packed import unpacked
from .source import Document, Record

_READERS: dict[str, Reader] = {reader.info.name: reader for reader in (anthropic.READER, openai_responses.READER, google_genai.READER, openai_chat.READER)}
#: The provider's API by the end of an address's path; None: not a call of a model that talks.
_PATHS: tuple[tuple[re.Pattern[str], str | None], ...] = (
    (re.compile(r"(count_tokens|embeddings|moderations|/models|/files|/batches|/images/\w+|/audio/\w+|input_tokens)/?$"), None),
    (re.compile(r"/messages/?$|/invoke(-with-response-stream)?$|:(stream)?[rR]awPredict$"), "anthropic"),
    (re.compile(r"/chat/completions/?$"), "openai-chat"),
    (re.compile(r"/responses(/compact)?/?$"), "openai-responses"),
    (re.compile(r":(stream)?[gG]enerateContent$"), "google-genai"),
)
#: Bytes, unpacked, of one body, and of all bodies of a capture.
MAX_BODY, MAX_BODIES = 1 << 26, 1 << 29
_LOOK = 50
_SURE = 0.9


@dataclass(slots=True)
class Entry:
    """One request with its response, as the capture holds them. `path` is that of the address, without host and query."""

    number: int
    path: str
    sent: Any
    got: Any
    start: int | None = None
    end: int | None = None


@dataclass(slots=True)
class Bodies:
    """Turns bodies into values; what is packed is unpacked within a bound.

    Parameters
    ----------
    left : int
        Bytes that may still be unpacked.
    fault : str
        What was wrong with the body read last; ``""`` if nothing.
    """

    left: int = MAX_BODIES
    fault: str = field(default="", init=False)

    def of(self, body: Any) -> Any:
        """The value of a body: an object or a list; text that is no JSON (a stream of events) stays text; None if there is none."""
        self.fault = ""
        held = mapping(body)
        text = body
        packed = string(held.get("base64_string"), held.get("base64"))
        if "string" in held or "text" in held or packed:
            text = packed or held.get("string", held.get("text"))
            if packed or held.get("encoding") == "base64":
                return self._packed(text)
        if not isinstance(text, str):
            return text if text not in ({}, []) else None
        return _value(text.encode("utf-8", "surrogatepass"))

    def _packed(self, text: Any) -> Any:
        try:
            data = base64.b64decode(text, validate=False) if isinstance(text, str) else b""
            data = unpacked(data, "a body", most=max(0, min(MAX_BODY, self.left)))
        except (binascii.Error, ValueError):
            self.fault = "a body that is not the base64 it says"
            return None
        except ReadError as error:
            self.fault = str(error)
            return None
        self.left -= len(data)
        return _value(data)


def _value(data: bytes) -> Any:
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return parse(data).value
        except NotJson:
            pass
    text = data.decode("utf-8", "replace")
    return text if text.strip() else None


class HttpCaptureReader:
    """Reader of captured HTTP traffic with model providers."""

    info = ReaderInfo("http-capture", "HTTP captures of model calls: HAR, cassettes as JSON, requests and responses with addresses")

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        what, first = _kind(document), []
        for entry in _entries(document, Bodies(), most=_LOOK):
            if api := _api(entry):
                first.append(api)
        if not what or not first:
            return None
        return Match(0.97, (f"{what} with calls of {', '.join(dict.fromkeys(first))}",))

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`. Each conversation is a run; traffic of other kinds is metadata."""
        own = document.value if isinstance(document.value, dict) else None
        total = max(1, len(_listed(own) or ())) if own is not None else document.total
        first = Builder(self.info.name, document, total=0)
        groups: dict[str, list[Entry]] = {}
        what, other = _kind(document), 0
        for entry in _entries(document, bodies := Bodies()):
            if bodies.fault:
                first.report(entry.number, "body", f"record {entry.number}: {bodies.fault}"[:300])
            if api := _api(entry):
                groups.setdefault(api, []).append(entry)
            elif what:
                other += 1
        transcripts: list[Transcript] = []
        for api, entries in groups.items():
            rows = [Record(entry.number, {"request": entry.sent, "response": entry.got}) for entry in entries]
            part = Document(document.path, "json", document.size, [row.value for row in rows], rows, len(rows))
            times = {entry.number: (entry.start, entry.end) for entry in entries}
            for item in _READERS[api].read(part):
                shown = {**item.meta, "api": api}
                id = item.id if len(groups) == 1 or item.id != document.path.stem else f"{item.id}-{api}"
                source = replace(item.source, format=self.info.name)
                transcripts.append(_timed(replace(item, id=id, source=source, meta=shown), times))
        if not transcripts:
            transcripts = [first.build(shared=True)]
        head = transcripts[0]
        skipped = max(0, total - other - sum(item.records.total for item in transcripts))
        records = replace(head.records, metadata=head.records.metadata + other, skipped=head.records.skipped + skipped)
        found = (*document.diagnostics, *(() if not groups else first.diagnostics), *head.diagnostics)
        transcripts[0] = replace(head, records=records, diagnostics=found)
        return transcripts


READER = HttpCaptureReader()


def _listed(value: Any) -> list[Any] | None:
    """The entries of a HAR archive or of a cassette; None if the value is neither."""
    entries = mapping(mapping(value).get("log")).get("entries")
    if isinstance(entries, list):
        return entries
    for name in ("interactions", "http_interactions"):
        if isinstance(mapping(value).get(name), list):
            return [*mapping(value)[name]]
    return None


def _kind(document: Document) -> str:
    if isinstance(document.value, dict):
        if _listed(document.value) is not None:
            return "a HAR archive" if "log" in document.value else "a cassette"
        return "a request with its address" if _addressed(document.value) else ""
    head = document.head(_LOOK)
    return "requests with their addresses" if head and sum(map(_addressed, head)) * 2 > len(head) else ""


def _addressed(value: Any) -> bool:
    request = mapping(mapping(value).get("request"))
    return bool({"url", "uri", "path"} & request.keys()) and bool({"method", "headers"} & request.keys())


def _entries(document: Document, bodies: Bodies, most: int | None = None) -> Iterator[Entry]:
    """The entries of a capture in order. `bodies` tells what was wrong with the one that was given last."""
    listed = _listed(document.value)
    if listed is not None:
        rows = [(number, value) for number, value in enumerate(listed, 1) if isinstance(value, dict)]
    else:
        rows = [(record.number, record.value) for record in document.rows() if isinstance(record.value, dict)]
    for number, value in rows[:most]:
        request, response = mapping(value.get("request")), mapping(value.get("response"))
        sent = bodies.of(_body(request, "postData", "body", "parsed_body", "content"))
        fault = bodies.fault
        got = bodies.of(_body(response, "content", "body", "body_raw", "parsed_body", "text"))
        bodies.fault = fault or bodies.fault
        start = epoch_ms(value.get("startedDateTime") or value.get("recorded_at") or request.get("timestamp") or value.get("timestamp"))
        lasted = value.get("time")
        end = epoch_ms(response.get("timestamp"))
        if end is None and start is not None and isinstance(lasted, int | float) and 0 <= lasted < 86_400_000:
            end = start + round(lasted)
        yield Entry(number, _path(string(request.get("url"), request.get("uri"), request.get("path"))), sent, got, start, end if end is not None else start)


def _body(held: Any, *names: str) -> Any:
    return next((held[name] for name in names if held.get(name) not in (None, "", {}, [])), None)


def _path(url: str) -> str:
    try:
        return urlsplit(url[:4_000]).path
    except ValueError:
        return ""


def _api(entry: Entry) -> str:
    """Which provider's API an entry is a call of, by its path, else by its bodies; ``""`` if of none."""
    if not isinstance(entry.sent, dict):
        return ""
    for pattern, api in _PATHS:
        if pattern.search(entry.path):
            known = entry.sent.keys() & {"messages", "input", "contents", "previous_response_id", "prompt", "conversation"}
            return api if api is not None and known else ""
    if not isinstance(entry.got, dict | list | str) or "data" in mapping(entry.got):
        return ""
    row = {"request": entry.sent, "response": entry.got}
    part = Document(Path("entry"), "json", 0, [row], [Record(entry.number, row)], 1)
    matches = [(match.confidence, name) for name, reader in _READERS.items() if (match := reader.detect(part)) is not None]
    best = max(matches, key=lambda item: item[0], default=(0.0, ""))
    return best[1] if best[0] >= _SURE else ""


def _timed(item: Transcript, times: dict[int, tuple[int | None, int | None]]) -> Transcript:
    """Give what has no time of its own the time of its request, and answers that of their response."""

    def message(held: Message) -> Message:
        start, end = times.get(held.raw[0], (None, None)) if held.raw else (None, None)
        moment = end if held.call is not None and item.calls[held.call].usage is not None else start
        return held if held.ts is not None or moment is None else replace(held, ts=moment)

    messages = tuple(map(message, item.messages))

    def call(held: Call) -> Call:
        made = next((messages[at].ts for at in held.produced), None)
        return held if held.ts is not None or made is None else replace(held, ts=made)

    return replace(item, messages=messages, calls=tuple(map(call, item.calls)))
