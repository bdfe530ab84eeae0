"""The browser code of the views, as text: no build step, no file server, no request.

A view's module is ``common.js`` followed by its own files; its style is ``theme.css`` followed by its own.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

#: Views whose module is made of more files than their own, in this order.
_FILES = {"strip": ("strip_layout", "strip_row", "strip_paint", "strip"), "compare": ("strip_layout", "strip_row", "compare"), "side": ("lost", "side")}


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text("utf-8")


def esm(view: str) -> str:
    """The ECMAScript module of a view: its default export is ``{ render }``."""
    return "\n".join(_read(f"{name}.js") for name in ("common", *_FILES.get(view, (view,))))


def css(*views: str) -> str:
    """The colour variables, and the style of each named view."""
    return "\n".join([_read("theme.css"), *(_read(f"{view}.css") for view in views)])
