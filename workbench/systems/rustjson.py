"""JSON as the original programs (Rust, serde_json) read, write and measure it.

Compact; non-ASCII as it is; only ``"``, ``\\`` and characters below U+0020 are escaped. Lengths are UTF-8 bytes. A lone
surrogate, which Rust cannot hold, is carried through and counts three bytes. Rules: four_systems.md §1.
"""

from __future__ import annotations

import json
import math
from json.encoder import encode_basestring
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

U64_MAX = 2**64 - 1
_I64_MIN = -(2**63)
#: Characters of a long text that are worked on at once.
PIECE = 1 << 18


def add(*numbers: int) -> int:
    """Add unsigned 64-bit numbers; the sum saturates."""
    return min(sum(numbers), U64_MAX)


def string(text: str) -> str:
    r"""A JSON string.

    Examples
    --------
    >>> print(string('é "\n\x01'))
    "é \"\n\u0001"
    """
    return encode_basestring(text)


def number(value: int | float) -> str:
    """A JSON number: shortest digits, ``.0`` on whole floats, an exponent outside 1e-5 … 1e16.

    An integer beyond 64 bits is a float. What is not finite is ``null``. The exponent form is that of serde_json up
    to 1.0.14x; newer versions print some floats otherwise.

    Examples
    --------
    >>> [number(value) for value in (3, 3.0, 1e16, 1.5e-7, 0.00001, 2**64, float("nan"))]
    ['3', '3.0', '1e16', '1.5e-7', '0.00001', '1.8446744073709552e19', 'null']
    """
    if isinstance(value, int):
        if _I64_MIN <= value <= U64_MAX:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            return "null"
    if not math.isfinite(value):
        return "null"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, rest = mantissa.partition(".")
    digits = (whole + rest).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + rest) - len(digits))  # the point stands after so many digits
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0.0"
    if len(digits) <= point <= 16:
        return sign + digits + "0" * (point - len(digits)) + ".0"
    if 0 < point <= 16:
        return sign + digits[:point] + "." + digits[point:]
    if -5 < point <= 0:
        return sign + "0." + "0" * -point + digits
    return sign + digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{point - 1}"


def dumps(value: Any) -> str:
    r"""Compact JSON of a free-form value, its keys sorted by code point. Nesting of any depth is written.

    Examples
    --------
    >>> print(dumps({"b": [1.0, None], "a": "é\n"}))
    {"a":"é\n","b":[1.0,null]}
    """
    out: list[str] = []
    todo: list[tuple[bool, Any]] = [(False, value)]  # (is finished text, text or value)
    while todo:
        finished, item = todo.pop()
        if finished:
            out.append(item)
        elif item is None:
            out.append("null")
        elif isinstance(item, bool):
            out.append("true" if item else "false")
        elif isinstance(item, str):
            out.append(string(item))
        elif isinstance(item, (int, float)):
            out.append(number(item))
        elif isinstance(item, dict):
            todo.append((True, "}"))
            for at, key in enumerate(sorted(item, reverse=True)):
                todo += [(False, item[key]), (True, string(key) + ":"), *([(True, ",")] if at + 1 < len(item) else [])]
            out.append("{")
        elif isinstance(item, (list, tuple)):
            todo.append((True, "]"))
            for at, child in enumerate(reversed(item)):
                todo += [(False, child), *([(True, ",")] if at + 1 < len(item) else [])]
            out.append("[")
        else:
            raise TypeError(f"not a JSON value: {type(item).__name__}")
    return "".join(out)


def loads(text: str | bytes) -> Any:
    """Read JSON: ``-0`` is a float, as is an integer beyond 64 bits.

    Raises
    ------
    ValueError
        Not JSON; or ``NaN``, ``Infinity`` or a number too large for a double, which Python would accept.

    Examples
    --------
    >>> loads("[-0, 18446744073709551616, 7]")
    [-0.0, 1.8446744073709552e+19, 7]
    """
    return json.loads(text, parse_int=_int, parse_float=_float, parse_constant=_refuse)


def _int(text: str) -> int | float:
    if text == "-0":
        return -0.0
    if len(text) > 20:  # longer than any 64-bit number; int() refuses thousands of digits
        return _float(text)
    value = int(text)
    return value if _I64_MIN <= value <= U64_MAX else float(value)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"number out of range: {text[:40]}")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def utf8_len(text: str) -> int:
    """Bytes of a text."""
    if text.isascii():
        return len(text)
    # A very long text is not copied as a whole.
    return sum(len(text[at : at + PIECE].encode("utf-8", "surrogatepass")) for at in range(0, len(text), PIECE))


def char_bytes(text: str) -> npt.NDArray[np.int64]:
    r"""Bytes that each character takes inside a JSON string, shape ``(len(text),)``.

    Examples
    --------
    >>> char_bytes('a"\n\x01é漢😀').tolist()
    [1, 2, 2, 6, 2, 3, 4]
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    small = codes < 0x80
    sizes[small] = _ASCII_BYTES[codes[small]]
    return sizes


_ASCII_BYTES = np.array([len(string(chr(code))) - 2 for code in range(0x80)], np.int64)
