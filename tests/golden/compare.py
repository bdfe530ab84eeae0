"""Where two JSON values differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def differences(expected: Any, actual: Any, path: str = "output") -> Iterator[str]:
    """Say each place in which two parsed JSON values differ. The order of keys means nothing, that of lists does."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            if key not in actual:
                yield f"{path}.{key}: missing, expected {_short(expected[key])}"
            elif key not in expected:
                yield f"{path}.{key}: {_short(actual[key])} was not expected"
            else:
                yield from differences(expected[key], actual[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path}: {len(actual)} items, expected {len(expected)}"
        for at, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(left, right, f"{path}[{at}]")
    elif _kind(expected) != _kind(actual) or expected != actual:
        yield f"{path}: {_short(actual)}, expected {_short(expected)}"


def _kind(value: Any) -> type:
    """JSON has one type of number; true is none."""
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]} … {text[-30:]}"
