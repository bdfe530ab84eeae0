"""The strip without a kernel: an inline SVG of a bounded number of marks, and the counts in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..figures import COLOURS
from ..ledger import KIND
from ..model import KINDS
from ..policies.base import FATES, Fate, Selection
from .wire import Sent, sent

COLUMNS = 480  # at most so many marks in a row
_WIDTH, _LEFT, _HEIGHT, _ROW = 960, 70, 196, 40
_TOP = {"before": 20, "after": 102}
_NOTE = 4  # a style beside the four fates: a block that is no message of the history
Segments = tuple[list[int], list[int]]  # tokens, style: fate × 16 + kind


def strip_svg(selection: Selection) -> str:
    """Draw a selection as an inline SVG with its counts. It holds no text of the transcript.

    Returns
    -------
    str
        HTML: a figure. At most 2 × `COLUMNS` marks, however long the history.
    """
    before, after = _segments(selection)
    scale = max(selection.before_tokens, selection.after_tokens, 1)
    marks = [*_marks(before, scale, _TOP["before"]), *_marks(after, scale, _TOP["after"])]
    counts = ", ".join(f"{number:,} {name}" for name, number in selection.counts.items())
    words = f"before {selection.before_tokens:,} tokens, after {selection.after_tokens:,}; {counts}"
    available = selection.request.budget.available
    line = ""
    if 0 <= available <= scale:
        x = _x(available, scale)
        line = f'<path d="M{x:.1f} 94V150" stroke="#c62828" stroke-width="1.5"/>' + _label(x + 4, 162, f"budget {available:,}", "#c62828")
    numbers = {"before": selection.before_tokens, "after": selection.after_tokens}
    labels = "".join(_label(0, top + 18, name) + _label(0, top + 33, f"{numbers[name]:,}") for name, top in _TOP.items())
    labels += _legend(before, after)
    return (
        f'<figure style="margin:0"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" aria-label="{words}" '
        f'style="max-width:100%;height:auto;background:#fff">{"".join(marks)}{line}{labels}</svg><figcaption>{words}</figcaption></figure>'
    )


def _x(tokens: float, scale: int) -> float:
    return _LEFT + tokens / scale * (_WIDTH - _LEFT - 4)


def _label(x: float, y: float, text: str, colour: str = "#57606a") -> str:
    return f'<text x="{x:.1f}" y="{y}" font-family="sans-serif" font-size="12" fill="{colour}">{text}</text>'


def _legend(before: Segments, after: Segments) -> str:
    present = {style % 16 for style in before[1] + after[1]}
    drawn, x = [], 6.0
    for code, name in enumerate(KINDS):
        if code in present:
            word = name.replace("_", " ")
            drawn.append(f'<circle cx="{x:.0f}" cy="184" r="5" fill="{COLOURS[name]}"/>' + _label(x + 9, 188, word))
            x += 28 + 6.6 * len(word)
    return "".join(drawn) + _label(x, 188, "full kept · lighter summarized · outline dropped")


def _segments(selection: Selection) -> tuple[Segments, Segments]:
    """What stands in both rows, in order."""
    view = selection.request.view
    kind = view.kinds.argmax(axis=1).tolist() if len(view.indices) else []
    tokens, fates = view.tokens.tolist(), selection.fate_codes.tolist()
    outside = view.fixed_kinds - view.kinds[: view.lead].sum(axis=0)
    fixed: Segments = ([int(n) for n in outside if n], [code for code, n in enumerate(outside) if n])
    before = (fixed[0] + tokens, fixed[1] + [fate * 16 + code for fate, code in zip(fates, kind, strict=True)])
    what = sent(selection)
    return before, _after(what, fixed, tokens, fates, kind)


def _after(what: Sent, fixed: Segments, tokens: Sequence[int], fates: Sequence[int], kind: Sequence[int]) -> Segments:
    sizes, styles = list(fixed[0]), list(fixed[1])
    edits, inserts = iter(what.edits), list(reversed(what.inserts))
    for place, row in enumerate([*what.rows.tolist(), -1]):
        while inserts and inserts[-1].place == place:
            sizes.append(inserts.pop().tokens)
            styles.append(_NOTE * 16 + KIND["note"])
        if row >= 0:
            sizes.append(next(edits) if fates[row] == Fate.EDITED else tokens[row])
            styles.append(fates[row] * 16 + kind[row])
    return sizes, styles


def _marks(segments: Segments, scale: int, top: int) -> list[str]:
    """One rectangle per run of columns of one style: the style that stands in the middle of each column."""
    sizes, styles = segments
    ends = np.cumsum(sizes)
    if not len(ends) or ends[-1] <= 0:
        return []
    middles = (np.arange(COLUMNS) + 0.5) * scale / COLUMNS
    middles = middles[middles < ends[-1]]
    column = np.array(styles)[np.searchsorted(ends, middles, side="right")]
    if not len(column):  # all of it is narrower than half a column
        return []
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    stops = [*starts[1:].tolist(), len(column)]
    return [_mark(int(column[a]), _x(a * scale / COLUMNS, scale), _x(b * scale / COLUMNS, scale), top) for a, b in zip(starts.tolist(), stops, strict=True)]


def _mark(style: int, left: float, right: float, top: int) -> str:
    fate, colour = style // 16, COLOURS[KINDS[style % 16]]
    height = {Fate.SUMMARIZED: 0.6, Fate.DROPPED: 0.35}.get(Fate(fate), 1) * _ROW if fate < len(FATES) else _ROW
    paint = f'fill="{colour}"'
    if fate == Fate.SUMMARIZED:
        paint += ' fill-opacity=".4"'
    elif fate == Fate.DROPPED:
        paint = f'fill="none" stroke="{colour}" stroke-width=".8"'
    return f'<rect x="{left:.1f}" y="{top + _ROW - height:g}" width="{right - left:.1f}" height="{height:g}" {paint}/>'
