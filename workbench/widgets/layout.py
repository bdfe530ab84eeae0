"""The Layout tab: what is sent, in order, with the cache's breakpoints, and what broke the cache of the recorded session."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from .. import layout
from ..layout import Block, PrefixChange, Reusable
from ..model import Transcript
from ..policies.base import Selection
from .assets import css, esm
from .session import Session
from .texts import one_line
from .words import problem_text

BLOCKS = 200  # rows; neighbours in the history are joined until about so many are left
ROWS = 2 * BLOCKS  # rows at the very most
CHANGES = 100  # changes of the prefix
_SAID = 300  # characters of a title or a change


class Layout(anywidget.AnyWidget):
    """One request from its first byte to its last.

    Attributes
    ----------
    selected : int
        ``Message.index`` of the selected message; -1 for none. Both ways.
    status : str
        What there is to say beside the tabs.
    """

    _esm = traitlets.Unicode(esm("layout")).tag(sync=True)
    _css = traitlets.Unicode(css("layout")).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    content = traitlets.Dict().tag(sync=True)
    row = traitlets.Int(-1).tag(sync=True)  # the block that holds the selected message
    status = traitlets.Unicode("")

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self._last: Selection | None = None
        self._layout: layout.Layout | None = None
        self._few: layout.Layout | None = None
        self._changes: dict[str, Any] | None = None
        super().__init__()
        self.refresh()
        self.observe(self._point, "selected")

    @property
    def shown(self) -> layout.Layout | None:
        """What is shown, with every block; None if the policy cannot answer."""
        return self._layout

    def refresh(self) -> None:
        """Show what the session would send now."""
        session = self._session
        if session is None:
            return
        selection = session.selection
        if selection is not None and selection is self._last:
            self._point()
            return
        self._last = selection
        if self._changes is None:  # of the recorded session: no policy changes them
            self._changes = changes(session.ledger.transcript, session.thread)
        if selection is None:
            problem = session.problem
            self._layout = self._few = None
            content: dict[str, Any] = {"problem": problem_text(problem, session.smallest_known) if problem is not None else ""}
        else:
            self._layout = layout.of(selection)
            self._few = layout.merged(self._layout, BLOCKS)
            content = request(self._few)
        broken = self._changes["count"]
        with self.hold_sync():
            self.status = f"prefix changed in {broken:,} recorded requests" if broken else ""
            if selection is None:
                self.status = "no selection at this budget"
            self.content = {**content, "prefix": self._changes}
            self._point()

    def close(self) -> None:
        """Free everything: no reference to the session stays."""
        self._session = self._last = self._layout = self._few = self._changes = None
        self.content = {}
        self.unobserve_all()
        super().close()

    def __repr__(self) -> str:
        if self._session is None:
            return "<Layout: closed>"
        shown = self._layout
        return "<Layout: no request>" if shown is None else f"<Layout: {len(shown.blocks):,} blocks, {shown.tokens:,} tokens>"

    def _point(self, _: object = None) -> None:
        index = -1 if self._few is None else self.selected
        blocks = () if self._few is None or index < 0 else self._few.blocks[:ROWS]
        self.row = next((at for at, block in enumerate(blocks) if index in block.messages), -1)


def request(laid: layout.Layout) -> dict[str, Any]:
    """The blocks, the breakpoints and the digest, as text and numbers."""
    shown, rest = laid.blocks[:ROWS], laid.blocks[ROWS:]
    return {
        "head": f"{laid.tokens:,} tokens, {laid.size:,} bytes of text",
        "digest": laid.digest,
        "total": laid.tokens,
        "zones": layout.ZONES,
        "rows": [_row(block) for block in shown],
        "more": f"and {len(rest):,} more blocks, {sum(block.tokens for block in rest):,} tokens" if rest else "",
        "cuts": [[min(cut.at, len(shown)), f"cache breakpoint {number}: {cut.label}", cut.tokens] for number, cut in enumerate(laid.breakpoints, 1)],
        "reuse": _reuse(laid.reusable, laid.tokens),
    }


def _row(block: Block) -> list[Any]:
    return [block.zone, block.kind, one_line(block.title[:_SAID]), block.tokens, block.size, block.messages[0] if block.messages else -1]


def _reuse(same: Reusable | None, total: int) -> dict[str, Any]:
    if same is None:
        return {"tokens": 0, "text": "No answer was given yet, so no request was made before this one."}
    if not same.ends:
        text = f"All of the request before it ({same.tokens:,} tokens) stands unchanged at its head."
    else:
        text = f"{same.tokens:,} of {total:,} tokens stand as they were in the request before it, sent without a policy; then {same.ends}."
    return {"tokens": min(same.tokens, total), "text": one_line(text[:_SAID])}


def changes(transcript: Transcript, thread: str) -> dict[str, Any]:
    """Where the prefix of a recorded request was not that of the request before."""
    advice = ""
    known, found = len(layout.recorded(transcript, thread)), layout.prefix_changes(transcript, thread)
    if not known:
        text = "This file does not say what each request held before its conversation."
    elif known == 1:
        text = "One request is recorded: there is nothing to compare it with."
    elif not found:
        text = f"The same in all {known:,} recorded requests."
    else:
        text = f"Changed in {len(found):,} of {known:,} recorded requests. Nothing after the first changed byte can be read from a cache."
        advice = "What changes belongs behind what does not. Laid out here are the first system text and every tool that was offered."
    rows = [_change(transcript, change) for change in found[:CHANGES]]
    return {"text": text, "rows": rows, "more": f"and {len(found) - CHANGES:,} more" if len(found) > CHANGES else "", "advice": advice, "count": len(found)}


def _change(transcript: Transcript, change: PrefixChange) -> dict[str, Any]:
    usage = transcript.calls[change.call].usage
    read, prompt = (None, None) if usage is None else (usage.cache_read, usage.prompt)
    seen = "" if read is None or prompt is None else f"{read:,} of {prompt:,} prompt tokens were read from a cache"
    return {
        "title": f"request {change.request:,}" + (f", after #{change.after}" if change.after >= 0 else ""),
        "go": change.after,
        "what": [one_line(text[:_SAID]) for text in change.what],
        "seen": seen,
        "digests": f"{change.before[:12]} → {change.digest[:12]}",
    }
