"""Every error that the workbench raises on purpose.

Each message is one line and says what happened, where, and what to do.
"""

from __future__ import annotations


class WorkbenchError(Exception):
    """Base of all errors that a user of the workbench is meant to see."""


class ReadError(WorkbenchError):
    """A source cannot be read as a transcript at all. A file's name is hostile text: what is not printable in it is replaced."""

    def __init__(self, message: str) -> None:
        super().__init__("".join(letter if letter.isprintable() else "\ufffd" for letter in message))


class UnknownFormat(ReadError):
    """No reader knows the source."""


class CounterError(WorkbenchError):
    """A token counter is unknown or its vocabulary cannot be used."""


class BudgetError(WorkbenchError):
    """A policy that promises the budget cannot hold it.

    Parameters
    ----------
    needed, available : int
        Tokens in the policy's own estimate.
    culprit : str
        What is too large, in the policy's own words: "newest turn exceeds context budget".
    detail : str
        The comparison that failed: "fixed part 12,000 > 11,700".
    """

    def __init__(self, needed: int, available: int, culprit: str, *, detail: str = "") -> None:
        said = f"{culprit} ({detail})" if detail else culprit
        super().__init__(f"{said}: needs {needed:,} tokens, {available:,} are available; raise the window or lower the reserve")
        self.needed = needed
        self.available = available
        self.culprit = culprit
        self.detail = detail


class PolicyError(WorkbenchError):
    """A policy is unknown, or one of its parameters is not allowed."""


class SweepError(WorkbenchError):
    """A sweep cannot go on: a problem of the run, not of one transcript."""


class PluginError(WorkbenchError):
    """An installed plug-in cannot be loaded."""
