"""Plotly figures of selections. No widgets, no state; plotly is imported when the first figure is made.

A figure has at most about `MARKS` marks: what is finer is grouped, with exact sums.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .frames import preview
from .model import KINDS
from .policies.base import Fate, Selection
from .tokens.base import Ints

if TYPE_CHECKING:
    import plotly.graph_objects as go

MARKS = 300
_LABEL = 60  # characters of a person's words in a hover text
#: Okabe-Ito, as in the strip.
COLOURS = {
    "system": "#8a8f98",
    "tools": "#b9bdc5",
    "user": "#0072b2",
    "assistant": "#009e73",
    "reasoning": "#56b4e9",
    "tool_call": "#e69f00",
    "tool_result": "#d55e00",
    "media": "#c7b800",
    "note": "#cc79a7",
    "framing": "#d3d6da",
}
#: Where the dark theme needs another tone: the same as in ``theme.css``.
DARK = {**COLOURS, "user": "#4aa3df", "assistant": "#2bc79a", "reasoning": "#8fd0f5", "tool_result": "#ee7733", "media": "#f0e442", "framing": "#4b4f56"}
_REMOVED = (Fate.SUMMARIZED, Fate.DROPPED)
SIDES = ("kept", "removed")


def label(text: str) -> str:
    """A text for a plotly label or hover: tags, entities and formulas in it are shown as they are written.

    Examples
    --------
    >>> label("<b>x</b> & $y$")
    '&lt;b&gt;x&lt;/b&gt; &amp; &#36;y&#36;'
    """
    return html.escape(text, quote=False).replace("$", "&#36;")


@dataclass(frozen=True)
class TurnBars:
    """Tokens of each turn group by kind, what survives and what is removed apart.

    Parameters
    ----------
    first, last : tuple of int
        Turn groups in each bar, from 0: more than one where there are too many for one bar each.
    start : tuple of int
        The message that each bar begins with.
    words : tuple of str
        What the person said there, cut.
    tokens : int array, shape (bars, 2, len(KINDS))
        Tokens of the source's messages: kept or edited, then summarized or dropped. With the leading system messages
        they sum to the selection's ``fate_tokens``.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    start: tuple[int, ...]
    words: tuple[str, ...]
    tokens: Ints

    @property
    def marks(self) -> int:
        """Bars that are drawn."""
        return int((self.tokens > 0).sum())

    def bar_of(self, turn: int) -> int:
        """The bar that holds a turn group."""
        return int(np.searchsorted(np.array(self.first), turn, "right")) - 1


def turn_bars(selection: Selection, marks: int = MARKS) -> TurnBars:
    """Sum a selection by turn group; neighbours are joined until no more than `marks` marks are left."""
    view = selection.request.view
    groups = view.turns
    table = np.zeros((len(groups), 2, len(KINDS)), np.int64)
    removed = np.isin(selection.fate_codes, _REMOVED).astype(np.int64)
    group = np.repeat(np.arange(len(groups)), [len(item.messages) for item in groups])
    rows = np.fromiter((view.row_of[index] for item in groups for index in item.messages), np.int64)
    np.add.at(table, (group, removed[rows]), view.kinds[rows])
    size = 1
    while size < len(groups) and int((_join(table, size) > 0).sum()) > marks:
        size += 1
    firsts = range(0, len(groups), size)
    return TurnBars(
        first=tuple(firsts),
        last=tuple(min(at + size, len(groups)) - 1 for at in firsts),
        start=tuple(groups[at].messages[0] for at in firsts),
        words=tuple(preview(view.messages[view.row_of[groups[at].messages[0]]])[:_LABEL] for at in firsts),
        tokens=_join(table, size),
    )


def _join(table: Ints, size: int) -> Ints:
    return np.add.reduceat(table, np.arange(0, len(table), size), axis=0) if len(table) else table


def turn_traces(bars: TurnBars) -> list[dict[str, Any]]:
    """Data of the bars, one entry for each kind and side: what changes from selection to selection."""
    traces = []
    for code, kind in enumerate(KINDS):
        for side, name in enumerate(SIDES):
            column = bars.tokens[:, side, code]
            at = np.flatnonzero(column).tolist()
            what = kind.replace("_", " ")
            hover = [f"{_turns(bars, bar)}<br>{what}, {name}: {int(column[bar]):,} tokens<br>{label(bars.words[bar])}" for bar in at]
            legend = bool(at) and (side == 0 or not bars.tokens[:, 0, code].any())  # one entry for each kind
            x = [_x(bars, bar) for bar in at]
            traces.append({"x": x, "y": column[at].tolist(), "hovertext": hover, "visible": bool(at), "showlegend": legend, "width": _width(bars)})
    return traces


def _x(bars: TurnBars, bar: int) -> float:
    return (bars.first[bar] + bars.last[bar]) / 2


def _width(bars: TurnBars) -> float:
    return 0.82 * (bars.last[0] - bars.first[0] + 1) if bars.first else 1


def _turns(bars: TurnBars, bar: int) -> str:
    first, last = bars.first[bar], bars.last[bar]
    return f"turn {first:,}" if first == last else f"turns {first:,} to {last:,}"


def turns(selection: Selection, *, dark: bool = False) -> go.Figure:
    """Stacked tokens per turn group by kind: survivors solid, removed hatched. Turn groups count from 0, as everywhere.

    Examples
    --------
    >>> from workbench.ledger import count
    >>> from workbench.model import Message, Source, Text, Transcript
    >>> import workbench as wb
    >>> t = Transcript("t", Source("made"), (Message(0, "", "user", (Text("hello"),)),))
    >>> [trace.name for trace in turns(wb.select(count(t), "none")).data if trace.visible]
    ['user', 'framing']
    """
    import plotly.graph_objects as go

    data = turn_traces(turn_bars(selection))
    names = [kind for kind in KINDS for _ in SIDES]
    traces = [
        go.Bar(name=kind.replace("_", " "), legendgroup=kind, marker=marker, hovertemplate="%{hovertext}<extra></extra>", **values)
        for kind, marker, values in zip(names, turn_markers(dark), data, strict=True)
    ]
    return go.Figure(traces, go.Layout(**LAYOUT))


def turn_markers(dark: bool = False) -> list[dict[str, Any]]:
    """Look of the bars, one entry for each kind and side, in the order of `turn_traces`."""
    markers = []
    for kind in KINDS:
        colour = (DARK if dark else COLOURS)[kind]
        hatch = {"shape": "/", "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)", "size": 5, "solidity": 0.35}
        markers += [{"color": colour, "line": {"width": 0}, "pattern": pattern} for pattern in ({}, hatch)]
    return markers


LAYOUT: dict[str, Any] = {
    "barmode": "stack",
    "height": 280,
    "autosize": True,
    "margin": {"l": 64, "r": 16, "t": 36, "b": 44},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"size": 12},
    "legend": {
        "orientation": "h",
        "y": 1.02,
        "yanchor": "bottom",
        "x": 0,
        "font": {"size": 12},
        "tracegroupgap": 0,
        "itemclick": False,
        "itemdoubleclick": False,
    },
    "xaxis": {"title": {"text": "turn group"}, "showgrid": False, "zeroline": False, "tickformat": ",d"},
    "yaxis": {"title": {"text": "tokens (hatched: removed)"}, "gridcolor": "rgba(128,128,128,.22)", "zeroline": False, "tickformat": ",d"},
    "hoverlabel": {"align": "left"},
    "dragmode": False,
}
