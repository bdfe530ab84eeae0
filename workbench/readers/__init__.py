"""Readers: one file per format, chosen by what a file holds."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module

from ..errors import PluginError, ReadError, UnknownFormat
from ..model import Transcript
from . import plugins
from .base import Match, Reader, ReaderInfo
from .source import TEXT_KINDS, Document, Record, open_document
from .unknown import inside, nearest, seen

__all__ = ["SYNONYMS", "Document", "Match", "Reader", "ReaderInfo", "Record", "detect", "get", "list", "read", "read_all"]

#: Built-in readers, most specific first: of two that are equally sure the earlier one wins.
_BUILT_IN = (
    "otel",
    "langfuse",
    "langsmith",
    "http_capture",
    "claude_code",
    "claude_code_stream",
    "codex",
    "codex_exec",
    "pi",
    "atif",
    "inspect_log",
    "swe_agent",
    "mini_swe_agent",
    "tau_bench",
    "openhands",
    "gemini_cli",
    "adk",
    "google_genai",
    "openai_responses",
    "openai_agents",
    "sharegpt",
    "anthropic",
    "langchain",
    "pydantic_ai",
    "openai_chat",
)
#: So many lines are parsed to find the format of a file.
_HEAD = 400
#: What formats are called elsewhere.
SYNONYMS = {
    "anthropic-messages": "anthropic",
    "codex-rollout": "codex",
    "claude-code-lines": "claude-code",
    "claude-code-web": "claude-code",
    "pi-session": "pi",
    "openclaw": "pi",
    "har": "http-capture",
    "inspect-ai": "inspect",
    "inspect-events": "inspect",
    "openhands-events": "openhands",
    "openhands-sdk": "openhands",
    "openhands-eval-output": "openhands",
}


@cache
def _installed() -> tuple[dict[str, Reader], dict[str, str]]:
    """All readers by name, and what is wrong with plug-ins that are none."""
    built_in: tuple[Reader, ...] = tuple(import_module(f".{name}", __name__).READER for name in _BUILT_IN)
    found = {reader.info.name: reader for reader in built_in}
    others, faults = plugins.load({*found, *SYNONYMS})
    return {**found, **others}, faults


def _readers() -> dict[str, Reader]:
    return _installed()[0]


def list() -> tuple[ReaderInfo, ...]:
    """All readers that are installed, in the order in which they are asked."""
    return tuple(reader.info for reader in _readers().values())


def get(name: str) -> Reader:
    """The reader of a format.

    Raises
    ------
    UnknownFormat
        There is none of that name; the message lists those there are.
    PluginError
        There is one, but it cannot be loaded.
    """
    try:
        return _readers()[SYNONYMS.get(name, name)]
    except KeyError:
        if fault := _installed()[1].get(name):
            raise PluginError(fault) from None
        raise UnknownFormat(f"no reader is called {name!r}; known: {', '.join(_readers())}") from None


def detect(document: Document) -> tuple[tuple[str, Match], ...]:
    """What each reader thinks of a document, the surest first. Readers that do not know it are left out."""
    matches = [(name, match) for name, reader in _readers().items() if _opens(reader, document) and (match := reader.detect(document)) is not None]
    return tuple(sorted(matches, key=lambda item: -item[1].confidence))


def _opens(reader: Reader, document: Document) -> bool:
    return document.kind in getattr(reader, "kinds", TEXT_KINDS)


def read_all(path: str | os.PathLike[str], *, format: str | None = None) -> Sequence[Transcript]:
    """Read every run that a file holds.

    Parameters
    ----------
    path : path
        The file, or the folder if the format is kept in one. It is read and never written.
    format : str, optional
        Name of the reader; by default it is chosen by what the file holds.

    Raises
    ------
    ReadError
        The file cannot be read, no reader knows it (`UnknownFormat`), or it holds nothing of the given format.
    """
    # A document is a tree of many small objects and no cycles: the collector would go through it again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _read_all(path, format)
    finally:
        if collecting:
            gc.enable()


def _read_all(path: str | os.PathLike[str], format: str | None) -> Sequence[Transcript]:
    document = open_document(path, head=_HEAD)
    if format is not None:
        reader = get(format)
        if not _opens(reader, document):
            raise ReadError(f"{document.name} is {document.what or 'text'}: the reader {reader.info.name} does not open that; leave out format=…")
        name, match = reader.info.name, Match(1.0, (f"format={format} was given",))
    else:
        ranked = detect(document)
        if not ranked:
            raise UnknownFormat(_unknown(document))
        name, match = ranked[0]
        reader = get(name)
    if not getattr(reader, "streams", False):
        document.complete()
    transcripts = reader.read(document)
    if not any(map(_holds_something, transcripts)):
        why = f"; {document.diagnostics[0].text}" if document.diagnostics else ""
        raise ReadError(f"{document.name} holds no message that the reader {name} knows ({seen(document)}){why}; try another format=…")
    return [replace(item, source=replace(item.source, confidence=match.confidence, reasons=match.reasons)) for item in transcripts]


def read(path: str | os.PathLike[str], *, format: str | None = None, run: int | str | None = None) -> Transcript:
    """Read one run of a file: the first, or the one that is named.

    Parameters
    ----------
    run : int or str, optional
        Place of the run, from 0, or its id.

    Raises
    ------
    ReadError
        As for `read_all`, or there is no such run.
    """
    transcripts = read_all(path, format=format)
    if run is None:
        return transcripts[0]
    for number, item in enumerate(transcripts):
        if run in (number, str(number), item.id):
            return item
    raise ReadError(f"{transcripts[0].name} has no run {run!r}; it holds {len(transcripts):,}: 0 to {len(transcripts) - 1}, or by id {transcripts[0].id!r} …")


def _holds_something(item: Transcript) -> bool:
    """Say whether a reader made sense of a source; one of nothing but metadata is a session in which nothing was said."""
    known = item.records.total == item.records.metadata and not any(found.code == "unknown_record" for found in item.diagnostics)
    return bool(item.messages or item.calls or known)


def _unknown(document: Document) -> str:
    """What was seen in a document that no reader knows, what comes nearest, and which plug-ins cannot say whether they do."""
    if document.kind == "folder":
        near = inside(document.path, detect) or "none of its first files is of a known format"
    else:
        near = nearest(document, _readers(), _opens) or "no reader comes near"
    known, faults = ", ".join(_readers()), "".join(f"; {fault}" for fault in _installed()[1].values())
    return f"no reader knows {document.name} ({seen(document)}); {near}; known: {known}; pass format=…{faults}"
