"""Lines of Claude Code sessions for tests: each names the line before it unless told otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.readers.made import check, jsonl
from workbench import readers
from workbench.model import Transcript


def line(type: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": "/srv/project",
        "sessionId": "5e55",
        "version": "2.1.0",
        "gitBranch": "main",
        "type": type,
        "uuid": uuid,
        "timestamp": "2026-11-01T10:00:00.000Z",
        **more,
    }


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **more)


def assistant(
    uuid: str, parent: str | None, *blocks: Any, id: str | None = None, usage: Any = None, model: str = "claude-sonnet-4-5", **more: Any
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "model": model, "content": [text(block) if isinstance(block, str) else block for block in blocks]}
    if id is not None:
        message |= {"id": id, "type": "message"}
        more.setdefault("requestId", f"req_{id}")
    if usage is not None:
        message["usage"] = usage
    return line("assistant", uuid, parent, message=message, **more)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def boundary(uuid: str, logical: str | None, **about: Any) -> dict[str, Any]:
    about = {"trigger": "auto", "preTokens": 155_000, **about}
    return line("system", uuid, None, subtype="compact_boundary", logicalParentUuid=logical, content="Conversation compacted", compactMetadata=about)


def summary(uuid: str, parent: str | None, content: str = "This session is being continued from …") -> dict[str, Any]:
    return user(uuid, parent, content, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def read(path: Path, *rows: Any) -> Transcript:
    """Write rows, read them back, and check what holds for every transcript."""
    transcript = readers.read(jsonl(path, rows), format="claude-code")
    check(transcript)
    return transcript
