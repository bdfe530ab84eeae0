"""Facts of a structured summary: the paths of a call, and the lines of a tool's result that say something."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..model import ToolCall
from .structured_text import ITEM_CHARS, LINE, LOOK, WORD, clip, ends, joined, substance

_PATH_KEYS = ("file_path", "filepath", "path", "notebook_path", "filename", "file_name", "file", "target_file", "absolute_path", "relative_path")
_COMMANDS = ("command", "cmd", "script", "code")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete|Move to)(?: File)?: ([^\n\r]{1,200})", re.MULTILINE)
_BREAKS = re.compile(r"[\s\"'`;|&<>()=,{}\[\]]+")
_COMMAND = 600  # what stands later in a command is a script's own text


def paths_of(call: ToolCall) -> list[str]:
    """Paths that a call reads or writes: from its arguments by name, from a patch, from a command's words."""
    arguments = call.arguments
    if not isinstance(arguments, Mapping):
        return _words_like_paths(call.arguments_raw)
    found = []
    for key, value in arguments.items():
        if not isinstance(key, str):
            continue
        if key.lower() in _PATH_KEYS or key in ("AbsolutePath", "TargetFile"):
            said = joined(value)
            if WORD.search(said[:ITEM_CHARS]) and len(said) <= ITEM_CHARS and said == clip(said):
                found.append(said)
        elif key == "paths" and isinstance(value, list):
            found += [said for said in value if isinstance(said, str) and WORD.search(said[:ITEM_CHARS]) and said == clip(said)]
        else:
            text = joined(value)
            patched = [part.strip() for part in _PATCHED.findall(text[: 2 * LOOK])] if "*** " in text[: 2 * LOOK] else []
            found += patched or (_words_like_paths(text) if key in _COMMANDS else [])
    return found


def _words_like_paths(text: str) -> list[str]:
    return [word for word in _BREAKS.split(text[:_COMMAND]) if _like_path(word)]


def _like_path(word: str) -> bool:
    """``src/load.py``, ``/etc/hosts.allow``: a folder and an extension; no address, no pattern, no option."""
    name = word.rpartition("/")[2]
    return (
        "/" in word
        and 4 <= len(word) <= ITEM_CHARS
        and "://" not in word
        and word[0] not in "-$@"
        and _EXTENSION.search(name) is not None
        and not _NO_PATH.search(word)
    )


_EXTENSION = re.compile(r"\w\.[A-Za-z]\w{0,7}$")
_NO_PATH = re.compile(r"[*?$\\^:!%#]")

#: Lines that show a file or a listing rather than say something about it: numbered lines, a diff.
_SHOWS = re.compile(r"\s*+(?:\d++(?:→|\t|: |\|)|[dl-][rwxsSt-]{9}|diff --git|@@ |\+\+\+ |--- a/)")
_CODE = re.compile(
    r"[;{}(\[,\\]$|^(?:[-+@#/*<$>]|(?:import|from|def|class|return|raise|except|throw|catch|const|let|var|function|if|for|while|export|async)\b)"
    r"|\)\s?:$|^[\w.]{1,60}\(.*\)$"
)
#: Words of an error in a result that is marked as one, and words that are enough without the mark.
_ERROR = re.compile(
    r"\b[A-Za-z]\w*(?:Error|Exception|Failure)\b|\b(?:error|fatal|panic|failed|failure|failing|denied|not found|no such|"
    r"cannot|can['’]t|unable|refused|timed out|timeout|invalid|abort(?:ed)?|undefined|unexpected|rejected|fehler|fehlgeschlagen|erreur|échec|errore|fallo)\b"
    r"|错误|失败|失敗|エラー|ошибк|오류|실패",
    re.IGNORECASE,
)
_SURE_ERROR = re.compile(
    r"\b[A-Za-z]\w*(?:Error|Exception)(?=:|$| \()|\b(?:error|fatal|panic|failure|fehler|erreur)\b[\]\w]{0,12}:|^\W{0,4}(?:error|fatal|fail(?:ed|ure)?|panic)\b"
    r"|\b(?:no such file|not found|permission denied|access denied|failed|timed out|unable to|cannot|refused|fehlgeschlagen)\b"
    r"|错误|失败|失敗|エラー|ошибк|오류|실패",
    re.IGNORECASE,
)
_ERRORS = "error|exception|fatal|panic|fail|fehl|erreur|no such file|not found|denied|timed out|unable|cannot|refused|错误|失败|失敗|エラー|ошибк|오류|실패"
_ERROR_STEMS = tuple(_ERRORS.split("|"))
_NO_ERROR = re.compile(r"\b(?:0|no|without) (?:errors?|failed|failures?|fehler)\b", re.IGNORECASE)
_RESULTS = (
    "passed|ok|total|found|match|matches|changed|insertion|insertions|deletion|deletions|row|rows|file|files|line|lines|warning|warnings|second|seconds|bytes|"
    "status|version|created|updated|written|deleted|merged|coverage|count|result|score|max|min|mean|average|sum|price|balance|amount|exit|succeeded|"
    "successfully|installed|built|left|remaining"
)
_OUTCOMES = frozenset(_RESULTS.split("|"))
_LETTERS = re.compile(r"[a-z]+")
_PERCENT = re.compile(r"\d\s?%")
_VALUE = re.compile(r"^[\"\w][^:={}()]{1,40}[:=]\s{0,4}[\"'+€$£-]{0,3}\d")
_IDENTIFIER = re.compile(r"\b(?:[A-Z]{1,6}-\d{2,}|[0-9a-f]{8}-[0-9a-f]{4}-|(?=\w{0,40}\d)[0-9a-f]{7,40}\b)|https?://|(?<!\w)#\d{1,9}\b|\bv\d{1,4}\.\d")
#: What every run prints and nobody asks for.
_IDLE = re.compile(
    r"(?:process )?(?:exited with code|exit code|exit status)?:? ?\d{0,3}$|(?:wall|total output|chunk|original token|duration)\b[^:]{0,20}:|"
    r"output:$|\(?no output\)?|shell cwd|total \d++$|"
    r"\[?\d++ more lines?\b|\[?the command completed with exit code 0|\[?\d++/\d++\]|\S{1,150}::\S{1,150} passed\b|(?:\S{1,150} )?[.sFEx]{1,150}\s++\[",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")


def telling_lines(text: str, is_error: bool, most: int) -> tuple[str, ...]:
    """The lines of a result that say something: errors first, then outcomes with numbers, identifiers, paths found."""
    lower = text.lower()
    errors = is_error or any(stem in lower for stem in _ERROR_STEMS)  # most texts have none, and need no search by line
    best: list[tuple[int, int, str]] = []  # (rank, place, line)
    place = shown = 0
    for part in ends(text):
        for found in LINE.finditer(part):
            line = found.group()
            place += 1
            if _SHOWS.match(line):
                shown += 1
                continue
            rank = _rank(line.strip(), is_error, errors)
            if rank:
                best.append((-rank, place, line))
        if 2 * shown > place:  # a file's text: its path is in the call
            return ()
    if is_error and not any(rank == -4 for rank, _, _ in best):
        lines = (clip(found.group()) for found in LINE.finditer(text[:LOOK]))
        first = next((line for line in lines if line and not _IDLE.match(line)), clip(text))
        return (first,) if first else ()
    best.sort(key=lambda row: row[:2])
    chosen = sorted(best[:most], key=lambda row: row[1])
    return tuple(dict.fromkeys(_piece(line, -rank) for rank, _, line in chosen))


def _rank(line: str, is_error: bool, errors: bool) -> int:
    """4 an error, 3 an outcome, 2 an identifier or value, 1 a path; 0 says nothing."""
    head = line[: 2 * ITEM_CHARS]
    if len(head) < 6 or _IDLE.match(head):
        return 0
    if head[0] in "{[" and len(head) > 8:  # JSON on a line: a record
        return 4 if is_error else 2 if _DIGIT.search(head) else 0
    code = _CODE.search(head) is not None
    if is_error and _ERROR.search(head):
        return 4
    if errors and not code and len(line) <= ITEM_CHARS and _SURE_ERROR.search(head) and not _NO_ERROR.search(head):
        return 4
    path = _like_path(_PLACE.split(head, maxsplit=1)[0])
    if not code and not path and _DIGIT.search(head):
        if (not _OUTCOMES.isdisjoint(_LETTERS.findall(head.lower())) and substance(head) >= 6) or _PERCENT.search(head):
            return 3
        if _IDENTIFIER.search(head) or _VALUE.match(head):
            return 2
    return 1 if path else 0


_PLACE = re.compile(r":|\s")


def _piece(line: str, rank: int) -> str:
    """What of a line is kept: of a path's line the path; of a long line with an error the part about it."""
    line = line.strip()
    if rank == 1:
        return _PLACE.split(line[: 2 * ITEM_CHARS], maxsplit=1)[0]
    if len(line) > ITEM_CHARS and rank == 4:
        found = _ERROR.search(line[: 2 * ITEM_CHARS])
        start = max(0, found.start() - 40) if found else 0
        return line[start : start + ITEM_CHARS].strip()
    return line[:ITEM_CHARS].rstrip()
