"""The chats of a Gemini CLI session's subagents, which stand in a folder beside it that is named as its id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import ReadError
from .source import TEXT_KINDS, Document, open_document

_NAME = re.compile(r"([A-Za-z0-9_-]{1,200})\.jsonl?")
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
MAX_FILES = 2_000


@dataclass(frozen=True, slots=True)
class SideFile:
    """A subagent's chat. `agent` is its name without the ending."""

    agent: str
    document: Document


def side_files(session: Path, id: str) -> tuple[list[SideFile], list[str]]:
    """Open the subagents' chats of a session, and those of their own subagents.

    An id is compared with the names in the session's folder and never made into a path; what leads out of that folder
    by a link is left alone.

    Returns
    -------
    files : list of SideFile
    faults : list of str
        Why a file was left out, in plain words.
    """
    found: list[SideFile] = []
    faults: list[str] = []
    waiting, seen = [id], {id}
    try:
        home = session.parent.resolve()
        folders = {path.name: path for path in session.parent.iterdir() if _ID.fullmatch(path.name) and path.is_dir()}
    except OSError:
        return [], []
    while waiting and len(found) <= MAX_FILES:
        folder = folders.get(waiting.pop(0))
        if folder is None:
            continue
        try:
            entries = sorted(folder.iterdir()) if folder.resolve().is_relative_to(home) else []
            entries = [path for path in entries if _NAME.fullmatch(path.name) and path.is_file()]
        except OSError as error:
            faults.append(f"{folder.name} cannot be listed ({error.strerror})")
            continue
        for path in entries:
            agent = path.name.rsplit(".", 1)[0]
            if agent in seen:
                continue  # a chat that was carried over from the old form stands there in both
            if len(found) >= MAX_FILES:
                return found, [*faults, f"more than {MAX_FILES:,} subagent files; the rest is left out"]
            try:
                if not path.resolve().is_relative_to(home):
                    faults.append(f"{path.name} leads out of the folder: not followed")
                    continue
                document = open_document(path)
            except (ReadError, OSError) as error:
                faults.append(f"subagent file left out: {error}")
                continue
            if document.kind not in TEXT_KINDS:
                continue
            seen.add(agent)
            waiting.append(agent)
            found.append(SideFile(agent, document))
    return found, faults
