"""Closing a widget for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets


def close_whole(widget: Any, close: Callable[[], None] | None = None) -> None:
    """Close a widget, and the layout and style widgets that ipywidgets made for it and leaves open.

    Parameters
    ----------
    close : callable, optional
        Default: ``widget.close``.
    """
    for name in ("layout", "style"):
        part = widget._trait_values.get(name)
        if isinstance(part, ipywidgets.Widget):
            part.close()
    (close or widget.close)()
