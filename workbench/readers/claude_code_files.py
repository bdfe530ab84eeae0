"""The files of a Claude Code session's subagents, which stand beside the session's own.

A session ``S.jsonl`` has them in ``S/subagents/`` (and folders in it), as ``agent-ID.jsonl`` with or without
``agent-ID.meta.json``; before that they stood beside it. Nothing else is opened: names are matched letter by letter,
and what leads out of the folder by a link is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ReadError
from .jsontext import NotJson, parse
from .source import Document, open_document

_AGENT = re.compile(r"agent-([A-Za-z0-9_-]{1,128})\.jsonl")
_STEM = re.compile(r"[A-Za-z0-9_-]{1,200}")
MAX_FILES = 2_000
_MAX_DEPTH = 4
_HEAD = 65_536
_MAX_META = 1_000_000


@dataclass(frozen=True, slots=True)
class SideFile:
    """A subagent's file.

    Parameters
    ----------
    about : dict
        What its ``.meta.json`` says; empty without one.
    """

    agent: str
    document: Document
    about: dict[str, Any] = field(default_factory=dict)


def side_files(session: Path, id: str, mentioned: Collection[str]) -> tuple[list[SideFile], list[str]]:
    """Open the subagents' files of a session.

    Parameters
    ----------
    id : str
        The session's id: of the files beside it, those that carry it or that the session mentions are its own.
    mentioned : collection of str
        Agent ids that stand in the session. They are compared with names and never made into one.

    Returns
    -------
    files : list of SideFile
    faults : list of str
        Why a file was left out, in plain words.
    """
    found: list[SideFile] = []
    faults: list[str] = []
    for path, agent, own in _candidates(session, faults):
        if not own and agent not in mentioned and _session_of(path) != id:
            continue
        if len(found) >= MAX_FILES:
            faults.append(f"more than {MAX_FILES:,} subagent files; the rest is left out")
            break
        try:
            found.append(SideFile(agent, open_document(path), _about(path)))
        except ReadError as error:
            faults.append(f"subagent file left out: {error}")
    return found, faults


def _candidates(session: Path, faults: list[str]) -> Iterator[tuple[Path, str, bool]]:
    """Path, agent id and whether the folder is the session's own, in the order of names."""
    home = session.parent
    if _STEM.fullmatch(session.stem):
        try:
            root = home.resolve()
        except OSError:
            return
        yield from ((path, agent, True) for path, agent in _agents(home / session.stem / "subagents", root / session.stem, _MAX_DEPTH, faults))
    if not session.stem.startswith("agent-"):
        yield from ((path, agent, False) for path, agent in _agents(home, home.resolve(), 0, faults))


def _agents(folder: Path, within: Path, depth: int, faults: list[str]) -> Iterator[tuple[Path, str]]:
    try:
        entries = sorted(folder.iterdir()) if folder.is_dir() and folder.resolve().is_relative_to(within) else []
    except OSError as error:
        faults.append(f"{folder.name} cannot be listed ({error.strerror})")
        return
    for path in entries:
        match = _AGENT.fullmatch(path.name)
        try:
            if path.is_symlink() and not path.resolve().is_relative_to(within):
                if match:
                    faults.append(f"{path.name} leads out of the folder: not followed")
            elif match and path.is_file():
                yield path, match.group(1)
            elif depth and path.is_dir() and _STEM.fullmatch(path.name):
                yield from _agents(path, within, depth - 1, faults)
        except OSError:  # removed meanwhile, or a loop of links
            continue


def _session_of(path: Path) -> str | None:
    """The session id in the first lines of a file."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    for line in head.split(b"\n")[:5]:
        try:
            value = parse(line).value
        except NotJson:
            continue
        if isinstance(value, dict) and isinstance(value.get("sessionId"), str):
            id_: str = value["sessionId"]
            return id_
    return None


def _about(path: Path) -> dict[str, Any]:
    beside = path.with_name(path.name.removesuffix(".jsonl") + ".meta.json")
    try:
        if beside.is_symlink() or not beside.is_file() or beside.stat().st_size > _MAX_META:
            return {}
        value = parse(beside.read_bytes()).value
    except (OSError, NotJson):
        return {}
    return value if isinstance(value, dict) else {}
