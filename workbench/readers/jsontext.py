"""Reads JSON as people's tools write it: fast where it is sound, lenient and noisy where it is not.

`msgspec` reads the sound case: measured beside orjson it is as fast within a tenth, and it keeps integers of any
length where orjson turns them into floats. What it refuses goes through the standard library with hooks, so that one
bad number or a lone surrogate does not cost a record; every repair is reported.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode
#: A role that stands twice in one object changes what the record says, so it is worth a second look at every line.
#: One word only, with its colon: searching every line is a tenth of reading it, and ``"type":"message"`` is everywhere.
_WATCHED = b'"role":'
MAX_DIGITS = 400


@dataclass(frozen=True, slots=True)
class Parsed:
    """A JSON value and what had to be mended to get it.

    Parameters
    ----------
    faults : tuple of str
        In plain words: ``the key "role" stands twice``. Empty if nothing was wrong.
    """

    value: Any
    faults: tuple[str, ...] = ()


class NotJson(ValueError):
    """A text is not JSON. The message says why in a few words."""


def parse(data: bytes) -> Parsed:
    """Parse one JSON value.

    NaN, infinities, numbers out of range and integers of more than 400 digits become None. Of a key that stands twice
    the last one counts, as everywhere; both are reported. Bytes that are not UTF-8 become U+FFFD.

    Raises
    ------
    NotJson
        It is no JSON, or nested too deeply.

    Examples
    --------
    >>> parse(b'{"n": NaN, "role": "user", "role": "tool"}')
    Parsed(value={'n': None, 'role': 'tool'}, faults=('NaN is not a number', 'the key "role" stands twice'))
    """
    try:
        value = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _slow(data)
    return Parsed(value, _slow(data).faults) if data.count(_WATCHED) > 1 else Parsed(value)


def sound(data: bytes) -> Any:
    """Parse a JSON value in which nothing needs mending: what `parse` does, faster.

    Raises
    ------
    NotJson
        It does need mending, or may: ask `parse`.
    """
    try:
        value = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise NotJson from None
    if data.count(_WATCHED) > 1:
        raise NotJson
    return value


def _slow(data: bytes) -> Parsed:
    faults: list[str] = []

    def fault(text: str) -> None:
        if text not in faults:
            faults.append(text)

    def constant(name: str) -> None:
        fault(f"{name} is not a number")

    def real(text: str) -> float | None:
        number = float(text)
        if math.isfinite(number):
            return number
        fault(f"{text[:20]} is out of range")
        return None

    def whole(text: str) -> int | None:
        if len(text) <= MAX_DIGITS:
            return int(text)
        fault(f"an integer of {len(text):,} digits is out of range")
        return None

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) != len(items):
            keys = [key for key, _ in items]
            for key in out:
                if keys.count(key) > 1:
                    fault(f"the key {json.dumps(key[:40])} stands twice")
        return out

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        fault("bytes that are not UTF-8")
    try:
        value = json.loads(text, parse_constant=constant, parse_float=real, parse_int=whole, object_pairs_hook=pairs, strict=False)
    except json.JSONDecodeError as error:
        unfinished = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        raise NotJson("unfinished" if unfinished else f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}") from None
    except RecursionError:
        raise NotJson("nested too deeply") from None
    return Parsed(value, tuple(faults))


def split(data: bytes) -> tuple[list[bytes], bool]:
    """Cut a damaged JSON array or object at the commas of its first level, without recursion.

    So one bad element does not cost the others.

    Returns
    -------
    pieces : list of bytes
        The elements of an array, or the ``"key": value`` members of an object; the last one possibly unfinished.
    finished : bool
        True if the end was found.

    Examples
    --------
    >>> split(b'[{"a": "]"}, [1, 2], {"b": ')
    ([b'{"a": "]"}', b'[1, 2]', b'{"b":'], False)
    """
    pieces: list[bytes] = []
    start, depth = 1, 0

    def add(end: int) -> None:
        piece = data[start:end].strip()
        if piece:
            pieces.append(piece)

    for found in _MARKS.finditer(data, 1):
        mark = found.group()
        if mark in b"[{":
            depth += 1
        elif mark in b"]}":
            if depth == 0:
                add(found.start())
                return pieces, True
            depth -= 1
        elif mark == b"," and depth == 0:
            add(found.start())
            start = found.end()
    add(len(data))
    return pieces, False


#: A whole string (or an unfinished one), or one mark of structure.
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def member(piece: bytes) -> tuple[str, bytes] | None:
    """Part a ``"key": value`` piece of an object; None if it is not one.

    Examples
    --------
    >>> member(b'"a" : [1')
    ('a', b'[1')
    """
    found = re.match(rb'("(?:[^"\\]|\\.)*+")\s*:\s*', piece, re.DOTALL)
    if found is None:
        return None
    try:
        key = parse(found.group(1)).value
    except NotJson:
        return None
    return key, piece[found.end() :]
