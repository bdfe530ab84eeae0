"""Counts a large transcript in a thread while the views show quick numbers already."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from ..errors import WorkbenchError
from ..ledger import Ledger, count
from ..model import Transcript
from ..tokens import Cancelled, Counter

#: Quick tokens above which a transcript is counted in the background: about a third of a second of work.
LARGE = 250_000


class Counting:
    """One count in a thread of its own. The callbacks are called in the event loop's thread.

    Parameters
    ----------
    progress : callable
        Called with the part that is done, 0 to 1.
    done : callable
        Called once, with the ledger; or with why there is none: a `Cancelled` or another error.
    """

    def __init__(
        self,
        transcript: Transcript,
        counter: Counter | str | None,
        progress: Callable[[float], None],
        done: Callable[[Ledger | WorkbenchError], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._flag = threading.Event()
        self._loop, self._progress, self._done = loop, progress, done
        self._result: Ledger | WorkbenchError | None = None
        self._told = False
        self._thread = threading.Thread(target=self._run, args=(transcript, counter), name="workbench-count", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Stop soon; `done` is called with a `Cancelled`."""
        self._flag.set()

    def drop(self) -> None:
        """Stop soon, and call nothing any more."""
        self._told = True
        self._flag.set()

    def wait(self) -> None:
        """Block until it has ended, and deliver the result."""
        self._thread.join()
        self._deliver()

    def _run(self, transcript: Transcript, counter: Counter | str | None) -> None:
        try:
            self._result = count(transcript, counter, progress=self._tick, cancel=self._flag)
        except WorkbenchError as error:
            self._result = error.with_traceback(None)
        self._call(self._deliver)

    def _tick(self, done: int, total: int) -> None:
        self._call(lambda: None if self._told else self._progress(done / max(1, total)))

    def _call(self, what: Callable[[], None]) -> None:
        if not self._told and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what)

    def _deliver(self) -> None:
        if self._told or self._result is None:
            return
        self._told = True
        self._done(self._result)


def stopped(error: WorkbenchError) -> str:
    """What the header says when counting has ended without counts."""
    return "quick numbers: counting was stopped" if isinstance(error, Cancelled) else f"quick numbers: {error}"
