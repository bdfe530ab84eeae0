"""Opens a file that stands beside another one and that the other one names.

A name in a source is text: it is compared letter by letter with the names that are there, and never made into a path.
What leads out of the folder by a link is left alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import ReadError
from .source import Document, open_document

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,200}")


def open_beside(file: Path, name: Any) -> Document | None:
    """The document of that name in the folder of `file`; None if there is none, or none that can be read.

    Examples
    --------
    >>> open_beside(Path("run.json"), "../../etc/passwd") is None
    True
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == file.name:
        return None
    try:
        home = file.parent.resolve()
        found = next((path for path in file.parent.iterdir() if path.name == name and path.is_file()), None)
        if found is None or not found.resolve().is_relative_to(home):
            return None
        return open_document(found)
    except (OSError, ReadError):
        return None
