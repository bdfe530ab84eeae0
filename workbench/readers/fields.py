"""Takes single fields out of records whose every value may be of any type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..model import ToolCall, ToolSpec, compact_json
from .jsontext import NotJson, parse

_encode = msgspec.json.Encoder().encode
#: What the encoder raises for lone surrogates, long integers and deep nesting.
_NOT_PLAIN = (UnicodeEncodeError, OverflowError, ValueError, TypeError, RecursionError, msgspec.MsgspecError)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = 253_402_300_800  # the year 10000, in seconds: what is larger is in milliseconds
_MOST_LEVELS = 200
_DEEP = "(nested too deeply)"


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def string(*values: Any) -> str:
    """The first of the values that is a string with something in it, else ``""``."""
    for value in values:
        if type(value) is str and value:
            return value
    return ""


def epoch_ms(value: Any) -> int | None:
    """A time as UTC epoch milliseconds: from ISO 8601 (without a zone it is UTC), or from seconds or milliseconds.

    Examples
    --------
    >>> epoch_ms("1970-01-01T00:00:01.5Z"), epoch_ms(1_700_000_000), epoch_ms(1_700_000_000_123), epoch_ms("soon")
    (1500, 1700000000000, 1700000000123, None)
    """
    if type(value) is str and 8 <= len(value) <= 40:
        try:
            moment = datetime.fromisoformat(value)
            since = moment - _EPOCH if moment.tzinfo is not None else moment.replace(tzinfo=UTC) - _EPOCH
        except (ValueError, OverflowError):
            return None
        return since.days * 86_400_000 + since.seconds * 1000 + (since.microseconds + 500) // 1000
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 < value < _LATEST * 1000:
        return round(value if value >= _LATEST / 10 else value * 1000)
    return None


def shallow(value: Any) -> bool:
    """Say whether a value is nested no deeper than code that recurses through it can bear, wherever it is called from.

    Examples
    --------
    >>> shallow({"a": [1, 2]})
    True
    """
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [child for held in level if isinstance(held, dict | list) for child in (held.values() if isinstance(held, dict) else held)]
        if not level:
            return True
    return False


def json_text(value: Any) -> str:
    """Any JSON value as compact text; never raises."""
    try:
        return _encode(value).decode()
    except _NOT_PLAIN:
        pass
    try:
        return compact_json(value)
    except (RecursionError, ValueError):
        return _DEEP


def size_of(value: Any) -> int:
    """Bytes of a value as text."""
    return len((value if isinstance(value, str) else json_text(value)).encode("utf-8", "surrogatepass"))


def arguments(value: Any) -> tuple[Any, str]:
    """A call's arguments, parsed and as text, whether the source holds JSON text or the object itself.

    What is nested too deeply stays text.

    Examples
    --------
    >>> arguments('{"a": 1}'), arguments({"a": 1}), arguments("ls -l"), arguments(None)
    (({'a': 1}, '{"a": 1}'), ({'a': 1}, '{"a":1}'), (None, 'ls -l'), (None, ''))
    """
    if value is None:
        return None, ""
    if not isinstance(value, str):
        return value if shallow(value) else None, json_text(value)
    try:
        parsed = parse(value.encode("utf-8", "surrogatepass")).value
    except NotJson:
        return None, value
    return parsed if shallow(parsed) else None, value


def tool_call(id: Any, name: Any, args: Any, *, server_side: bool = False) -> ToolCall:
    """A call out of whatever stands in its fields."""
    parsed, raw = arguments(args)
    return ToolCall(string(id), string(name), parsed, raw, server_side)


def tool_specs(tools: Any) -> list[ToolSpec]:
    """Tool definitions of OpenAI's requests: nested (Chat), flat (Responses), legacy ``functions``, groups of tools.

    A tool that the provider runs itself, such as ``{"type": "web_search"}``, is named by its type.
    """
    found: list[ToolSpec] = []
    for value in listing(tools):
        tool = mapping(value)
        inner = mapping(tool.get("function")) or mapping(tool.get("custom")) or tool
        members = tool.get("tools")
        if isinstance(members, list) and all(isinstance(item, dict) and "tools" not in item for item in members):
            found += tool_specs(members)
        elif name := string(inner.get("name"), tool.get("server_label"), tool.get("type")):
            schema = next((inner[key] for key in ("parameters", "inputSchema", "input_schema", "format") if inner.get(key) is not None), None)
            if inner is tool and schema is None and "name" not in tool:
                schema = {key: item for key, item in tool.items() if key not in ("type", "headers", "authorization")} or None
            found.append(ToolSpec(name, string(inner.get("description"), inner.get("server_description")), schema if shallow(schema) else None))
    return found
