"""Plotly figures of selections. No widgets, no state; plotly is imported when the first figure is made.

A figure has at most about `MARKS` marks: what is finer is grouped, with exact sums.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .estimates import Estimates, KindError
from .model import KINDS, MAIN
from .policies.base import Fate, Selection
from .preview import preview
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


#: Requests that are drawn: points of the figure's only trace of marks.
POINTS = 150
#: Lines that have a place in the figure, drawn or not.
LINES = 6
#: Lines of the estimates: colour, colour in the dark, dash. A policy or counter that is not here takes the last.
_LINES: dict[str, tuple[str, str, str]] = {
    "counter": ("#0072b2", "#4aa3df", "dash"),
    "calibrated": ("#009e73", "#2bc79a", "solid"),
    "scv": ("#d55e00", "#ee7733", "dot"),
    "agentd": ("#b55f8f", "#d98bb7", "dashdot"),
    "vak": ("#a87400", "#e69f00", "longdash"),
    "": ("#7a7f88", "#a3a9b2", "longdashdot"),
}


@dataclass(frozen=True, eq=False)
class EstimateLines:
    """What the figure of estimates draws.

    Parameters
    ----------
    at : int array, shape (points,)
        Requests that are drawn, by their place among the reported ones.
    lines : tuple of (str, str, array of shape (points,))
        Name, place in the table of looks, tokens.
    band : float
        Relative half-width of the calibrated line's range; 0 without one.
    hover : tuple of str
        About each point.
    """

    at: Ints
    reported: Ints
    lines: tuple[tuple[str, str, Any], ...]
    band: float
    hover: tuple[str, ...]
    kinds: tuple[KindError, ...]


def estimate_lines(found: Estimates, *, hidden: bool = False, kinds: tuple[KindError, ...] = (), points: int = POINTS) -> EstimateLines:
    """What to draw of estimates: all requests, or `points` of them, evenly, the first and the last among them.

    Parameters
    ----------
    hidden : bool
        Give every estimate what the file does not hold. See `Estimates.accuracy`.
    """
    count = len(found.reported)
    at = np.unique(np.linspace(0, count - 1, min(count, points)).round().astype(np.int64)) if count else np.zeros(0, np.int64)
    lines = []
    for place, item in enumerate(found.estimates):
        if item.source in ("calibrated", "policy") or place == 0:
            tokens = item.tokens + (found.hidden if hidden and not item.whole else 0)
            own = "counter" if place == 0 and item.source == "counter" else "calibrated" if item.source == "calibrated" else item.name
            lines.append((item.name, own if own in _LINES else "", tokens[at]))
    calls = [found.ledger.transcript.calls[call] for call in found.requests.calls[at].tolist()]
    hover = tuple(
        f"request {place + 1:,}{'' if call.thread == MAIN else ' · ' + label(call.thread[:_LABEL])}<br>reported: {tokens:,} tokens"
        for place, call, tokens in zip(at.tolist(), calls, found.reported[at].tolist(), strict=True)
    )
    calibrated = found.calibrated is not None and any(source == "calibrated" for _, source, _ in lines)
    return EstimateLines(at, found.reported[at], tuple(lines[:LINES]), found.calibrated.error if calibrated and found.calibrated else 0.0, hover, kinds)


def estimate_traces(drawn: EstimateLines, dark: bool = False) -> list[dict[str, Any]]:
    """The traces: the range, the estimates, what was reported, and the error by kind. Always in these places: what there is not is not visible."""
    x = (drawn.at + 1).tolist()
    best = next((values for _, look, values in drawn.lines if look == "calibrated"), None)
    traces = [_range(x, best, drawn.band, dark)]
    for name, look, values in drawn.lines:
        colour, dim, dash = _LINES[look]
        hover = [f"request {at:,}<br>{label(name[:_LABEL])}: {round(value):,} tokens" for at, value in zip(x, values.tolist(), strict=True)]
        line = {"color": dim if dark else colour, "width": 2 if look == "calibrated" else 1.5, "dash": dash}
        short = "calibrated" if look == "calibrated" else label(name[:_LABEL])
        traces.append({"name": short, "x": x, "y": values.round().tolist(), "mode": "lines", "line": line, "hovertext": hover, "visible": True})
    traces += [{"x": [], "y": [], "mode": "lines", "visible": False}] * (LINES - len(drawn.lines))
    marker = {"color": "#e6e6e6" if dark else "#1f2328", "size": 4, "symbol": "circle-open"}
    traces.append({"name": "reported", "x": x, "y": drawn.reported.tolist(), "mode": "markers", "marker": marker, "hovertext": list(drawn.hover)})
    return [*traces, _kinds(drawn.kinds, dark)]


def _range(x: list[int], best: Any, band: float, dark: bool) -> dict[str, Any]:
    green = _LINES["calibrated"][int(dark)]
    fill = {"fill": "toself", "fillcolor": f"rgba({int(green[1:3], 16)},{int(green[3:5], 16)},{int(green[5:], 16)},.18)", "line": {"width": 0}}
    y = [] if best is None else [*(best * (1 + band)).round().tolist(), *(best * (1 - band)).round().tolist()[::-1]]
    return {
        "name": "its range",
        "x": [*x, *x[::-1]] if y else [],
        "y": y,
        "mode": "lines",
        "hoverinfo": "skip",
        "showlegend": False,
        "visible": bool(y),
        **fill,
    }


def _kinds(kinds: tuple[KindError, ...], dark: bool) -> dict[str, Any]:
    known = [(item.kind.replace("_", " "), item.tokens, item.factor, item.error or 0.0, item.kind) for item in kinds if item.factor]
    return {
        "name": "error by kind",
        "x": [round(100 * (1 / factor - 1), 1) for _, _, factor, _, _ in known],
        "y": [name for name, *_ in known],
        "error_x": {"type": "data", "array": [round(200 * error / factor**2, 1) for _, _, factor, error, _ in known], "color": "#8a8f98"},
        "mode": "markers",
        "marker": {"color": [(DARK if dark else COLOURS)[kind] for *_, kind in known], "size": 10},
        "hovertext": [f"{name}: {tokens:,} tokens counted<br>{factor:.2f} reported for one counted" for name, tokens, factor, _, _ in known],
        "showlegend": False,
        "visible": bool(known),
        "xaxis": "x2",
        "yaxis": "y2",
    }


def estimates(found: Estimates, *, hidden: bool = False, kinds: tuple[KindError, ...] = (), dark: bool = False) -> go.Figure:
    """Estimates against what was reported, request by request; beside it the error of the ledger's counter by kind of message.

    Parameters
    ----------
    hidden : bool
        Give every estimate what the file does not hold.
    kinds : tuple of KindError
        As ``estimates.by_kind`` makes them.
    """
    import plotly.graph_objects as go

    traces = [
        go.Scatter(hovertemplate="%{hovertext}<extra></extra>" if "hovertext" in values else None, **values)
        for values in estimate_traces(estimate_lines(found, hidden=hidden, kinds=kinds), dark)
    ]
    return go.Figure(traces, go.Layout(**ESTIMATE_LAYOUT))


_AXIS: dict[str, Any] = {"gridcolor": "rgba(128,128,128,.22)", "zeroline": False}
ESTIMATE_LAYOUT: dict[str, Any] = {
    **{name: LAYOUT[name] for name in ("height", "autosize", "margin", "paper_bgcolor", "plot_bgcolor", "font", "legend", "hoverlabel", "dragmode")},
    "hovermode": "closest",
    "xaxis": {**_AXIS, "showgrid": False, "title": {"text": "reported requests, in order"}, "tickformat": ",d", "domain": [0, 0.68]},
    "yaxis": {**_AXIS, "title": {"text": "prompt tokens"}, "tickformat": ",d", "rangemode": "tozero"},
    "xaxis2": {
        **_AXIS,
        "title": {"text": "counter's error by kind (± 2 s.e.)"},
        "ticksuffix": " %",
        "domain": [0.8, 1],
        "anchor": "y2",
        "zeroline": True,
        "zerolinecolor": "rgba(128,128,128,.8)",
    },
    "yaxis2": {**_AXIS, "showgrid": False, "anchor": "x2", "automargin": False, "autorange": "reversed"},
}
