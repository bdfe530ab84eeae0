"""What was removed and needed later. No model is asked: every number is counted in the recording, and is a proxy."""

from .cut import of, text_of
from .index import Index, index_of
from .measure import PROXIES, Losses, Measure, Row
from .passes import Pass, Stability, chain, stability
from .recorded import THRASH, Recorded, of_recorded
from .session import Follower, Round, SessionLosses
from .walk import Change, walk
from .words import IDENTIFIERS

__all__ = [
    "IDENTIFIERS",
    "PROXIES",
    "THRASH",
    "Change",
    "Follower",
    "Index",
    "Losses",
    "Measure",
    "Pass",
    "Recorded",
    "Round",
    "Row",
    "SessionLosses",
    "Stability",
    "chain",
    "index_of",
    "of",
    "of_recorded",
    "stability",
    "text_of",
    "walk",
]
