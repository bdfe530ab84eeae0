"""What the commands print: one JSON document, or text and tables in which nothing from a file is markup."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_json(document: Any) -> None:
    """Print one JSON document. Non-ASCII is escaped, so that a lone surrogate or a terminal's code page spoils nothing."""
    sys.stdout.write(json.dumps(document, ensure_ascii=True, allow_nan=False, indent=2) + "\n")


def plain(text: object, limit: int | None = None) -> str:
    r"""Text of unknown origin, safe for a terminal: what does not print is shown by its escape, line feeds stay.

    Examples
    --------
    >>> print(plain("\x1b[31mred\x07 \u202eabc"))
    \x1b[31mred\x07 \u202eabc
    """
    words = str(text)
    if limit is not None and len(words) > limit:
        words = words[: limit - 1] + "…"
    return "".join(letter if letter == "\n" or letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in words)


def one_line(text: object, limit: int | None = None) -> str:
    r"""The same on one line: line feeds are escaped too.

    Examples
    --------
    >>> one_line("a\nb")
    'a\\nb'
    """
    return plain(text, limit).replace("\n", "\\n")


def complain(error: object) -> None:
    """Print one line about an error to standard error."""
    print(f"workbench: {one_line(error)}", file=sys.stderr)


def console() -> Console:
    """A console for readable output; it reads no markup and marks nothing on its own."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=False)


def number(value: int | None) -> str:
    """A whole number for people; a dash for one that is not known.

    Examples
    --------
    >>> number(1234567), number(None)
    ('1,234,567', '–')
    """
    return "–" if value is None else f"{value:,}"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> Table:
    """A table. A column whose name ends in ``>`` holds numbers and stands right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=None if title is None else Text(title, style="bold"), title_justify="left")
    for name in columns:
        made.add_column(Text(name.rstrip(">")), justify="right" if name.endswith(">") else "left", no_wrap=name.endswith(">"), overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row))
    return made
