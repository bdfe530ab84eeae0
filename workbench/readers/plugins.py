"""Readers of third parties: entry points in the group ``workbench.readers``.

A plug-in is a reader (see `Reader`) or its class. One that cannot be loaded is told where it matters, and stops no other.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from ..errors import PluginError, ReadError
from ..model import Transcript
from .base import Match, Reader, ReaderInfo
from .source import TEXT_KINDS, Document

GROUP = "workbench.readers"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A third party's reader: what it raises, other than `ReadError`, is a `PluginError` that names it."""

    reader: Reader
    where: str

    @property
    def info(self) -> ReaderInfo:
        """See `Reader`."""
        return self.reader.info

    @property
    def streams(self) -> bool:
        """See `Reader`."""
        return bool(getattr(self.reader, "streams", False))

    @property
    def kinds(self) -> Container[str]:
        """See `Reader`."""
        kinds: Container[str] = getattr(self.reader, "kinds", TEXT_KINDS)
        return kinds

    def detect(self, document: Document) -> Match | None:
        """See `Reader.detect`."""
        try:
            match = self.reader.detect(document)
        except Exception as error:
            raise self._failed(document, error) from error
        if match is not None and not isinstance(match, Match):
            raise self._failed(document, TypeError(f"detect gave {type(match).__name__}, not Match or None"))
        return match

    def read(self, document: Document) -> list[Transcript]:
        """See `Reader.read`."""
        try:
            found = [*self.reader.read(document)]
        except ReadError:
            raise
        except Exception as error:
            raise self._failed(document, error) from error
        if not all(isinstance(item, Transcript) for item in found):
            raise self._failed(document, TypeError("read gave something that is no Transcript"))
        return found

    def _failed(self, document: Document, error: Exception) -> PluginError:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return PluginError(
            f"reader {self.info.name!r} of {self.where} failed on {document.name} ({said}); pass another format=…, or update or uninstall that package"
        )


def load(taken: Container[str]) -> tuple[dict[str, Reader], dict[str, str]]:
    """The readers that are installed beside the built-in ones, in the order of their names.

    Parameters
    ----------
    taken : container of str
        Names that no plug-in may have.

    Returns
    -------
    readers : dict of str to Reader
        By the name of the format.
    faults : dict of str to str
        By the name of the entry point: why it cannot be used, and what to do.
    """
    readers: dict[str, Reader] = {}
    faults: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        where = point.dist.name if point.dist else point.value
        try:
            reader = _made(point)
        except Exception as error:  # whatever a plug-in does is told, and stops nothing else
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            faults[point.name] = f"reader {point.name!r} of {where} cannot be loaded ({said}); update or uninstall that package"
            continue
        name = reader.info.name
        if name in taken or name in readers:
            faults[point.name] = f"reader {point.name!r} of {where} is called {name!r}, and so is another one; uninstall one of them"
        else:
            readers[name] = Plugin(reader, where)
    return readers, faults


def _made(point: EntryPoint) -> Reader:
    made = point.load()
    reader: Reader = made() if isinstance(made, type) else made
    if not isinstance(getattr(reader, "info", None), ReaderInfo) or not all(callable(getattr(reader, name, None)) for name in ("detect", "read")):
        raise TypeError("it is no reader: info, detect and read are needed")
    return reader
