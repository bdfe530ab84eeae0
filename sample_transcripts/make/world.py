"""A small working tree for the coding story: files that change, and the tools that a coding agent has.

Reads, searches and edits are carried out here, so that every output fits the code as it is at that moment. Outputs of
shell commands were recorded once from a real run of the invented project (``build.py --record``) and are replayed.
"""

from __future__ import annotations

import difflib
import fnmatch
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The machine of the story has no sqlite3 shell.
_ABSENT = "sqlite3() { echo 'bash: line 1: sqlite3: command not found'; return 127; }"


@dataclass
class Result:
    """What a tool gives back: the text for the model, and the structured copy that the session file keeps."""

    text: str
    structured: Any
    error: bool = False
    ms: int = 40


@dataclass
class World:
    root: str
    files: dict[str, str]
    recorded: dict[str, Any]
    record: bool = False
    shell_calls: int = 0
    seen: set[str] = field(default_factory=set)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def read(self, name: str, offset: int | None, limit: int | None) -> Result:
        if name not in self.files:
            return Result(f"File does not exist: {self.path(name)}", f"Error: File does not exist: {self.path(name)}", True, 12)
        lines = self.files[name].split("\n")[:-1]
        start = offset or 1
        shown = lines[start - 1 : start - 1 + (limit or len(lines))]
        text = "\n".join(f"{at:>6}→{line}" for at, line in enumerate(shown, start))
        file = {"filePath": self.path(name), "content": "\n".join(shown), "numLines": len(shown), "startLine": start, "totalLines": len(lines)}
        return Result(text, {"type": "text", "file": file}, ms=18)

    def glob(self, pattern: str) -> Result:
        names = sorted(name for name in self.files if fnmatch.fnmatch(name, pattern.replace("**/", "*")))
        paths = [self.path(name) for name in names]
        return Result("\n".join(paths) or "No files found", {"filenames": paths, "durationMs": 23, "numFiles": len(paths), "truncated": False}, ms=31)

    def grep(self, pattern: str, glob: str | None, mode: str) -> Result:
        hits: list[str] = []
        names: list[str] = []
        for name in sorted(self.files):
            if glob and not fnmatch.fnmatch(name, glob) and not fnmatch.fnmatch(name.rsplit("/", 1)[-1], glob):
                continue
            here = [f"{name}:{at}:{line}" for at, line in enumerate(self.files[name].split("\n"), 1) if re.search(pattern, line)]
            hits += here
            names += [name] if here else []
        structured: dict[str, Any] = {"mode": mode, "numFiles": len(names), "filenames": names}
        if mode == "content":
            structured |= {"content": "\n".join(hits), "numLines": len(hits)}
            return Result("\n".join(hits) or "No matches found", structured, ms=44)
        return Result(f"{len(names)} files\n" + "\n".join(names), structured, ms=39)

    def edit(self, name: str, old: str, new: str) -> Result:
        before = self.files.get(name, "")
        if before.count(old) != 1:
            text = (
                "The text to replace was not found in the file." if old not in before else f"The text to replace stands {before.count(old)} times in the file."
            )
            return Result(f"{text}\nText: {old}", f"Error: {text}\nText: {old}", True, 15)
        after = before.replace(old, new)
        self.files[name] = after
        at = before[: before.index(old)].count("\n")
        lines = after.split("\n")
        first, last = max(at - 3, 0), min(at + new.count("\n") + 5, len(lines) - 1)
        snippet = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines[first:last], first + 1))
        structured = {
            "filePath": self.path(name),
            "oldString": old,
            "newString": new,
            "originalFile": before,
            "structuredPatch": patch(before, after),
            "userModified": False,
            "replaceAll": False,
        }
        return Result(f"{self.path(name)} was changed. The lines around the change are now:\n{snippet}", structured, ms=27)

    def write(self, name: str, content: str) -> Result:
        before = self.files.get(name)
        self.files[name] = content
        kind = "create" if before is None else "update"
        structured = {"type": kind, "filePath": self.path(name), "content": content, "structuredPatch": patch(before, content) if before else []}
        return Result(f"{self.path(name)} was {'created' if before is None else 'overwritten'} ({content.count(chr(10))} lines).", structured, ms=22)

    def shell(self, command: str) -> Result:
        self.shell_calls += 1
        key = f"{self.shell_calls:03d}"
        if self.record:
            self.recorded[key] = self._run(command)
        row = self.recorded[key]
        if row["command"] != command:
            raise SystemExit(f"shell call {key} was recorded for another command: run build.py --record")
        out, code = row["output"], row["code"]
        if code:
            text = f"Exit code {code}\n{out}".rstrip("\n")
            return Result(text, f"Error: {text}", True, row["ms"])
        structured = {"stdout": out.rstrip("\n"), "stderr": "", "interrupted": False, "isImage": False}
        return Result(out.rstrip("\n") or "(no output)", structured, ms=row["ms"])

    def flush(self) -> None:
        """Write the tree to disk (recording only)."""
        for name, text in self.files.items():
            target = Path(self.root) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_text(encoding="utf-8") != text:
                target.write_text(text, encoding="utf-8")

    def _run(self, command: str) -> dict[str, Any]:
        self.flush()
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        script = f"{_ABSENT}\n{command}"
        done = subprocess.run(["bash", "-c", script], cwd=self.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        output = done.stdout.replace(sys.prefix, f"{self.root}/.venv").replace(sys.base_prefix, "/usr")
        output = re.sub(r"pytest-of-\w+/pytest-\d+", "pytest-of-dev/pytest-4", output)
        output = re.sub(r"(?m)^20\d\d-(?!03)\d\d-\d\d \d\d:\d\d:\d\d,", "2026-03-17 09:02:41,", output)  # the day of the story
        seconds = re.findall(r" in ([0-9.]+)s", output)
        ms = int(float(seconds[-1]) * 1000) + 420 if seconds else 180 + 7 * len(command)
        return {"command": command, "output": output, "code": done.returncode, "ms": ms}


def patch(before: str, after: str) -> list[dict[str, Any]]:
    """The change as hunks with three lines of context."""
    old, new = before.split("\n"), after.split("\n")
    hunks = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [" " + line for line in old[a:b]]
            else:
                lines += ["-" + line for line in old[a:b]] + ["+" + line for line in new[c:d]]
        first, last = group[0], group[-1]
        hunks.append({"oldStart": first[1] + 1, "oldLines": last[2] - first[1], "newStart": first[3] + 1, "newLines": last[4] - first[3], "lines": lines})
    return hunks


def load_recorded(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
