"""Token counters: exact ones with vocabularies from this package, ratios, and scaled ones with a range."""

from .base import Counter, RatioCounter
from .bpe import TiktokenCounter
from .calibrated import CalibratedCounter, Overhead
from .choose import NAMES, counter_for, get
from .measure import Cancelled, Measured, measure
from .scaled import ScaledCounter
from .store import use_file
from .vocabulary import preload

__all__ = [
    "NAMES",
    "CalibratedCounter",
    "Cancelled",
    "Counter",
    "Measured",
    "Overhead",
    "RatioCounter",
    "ScaledCounter",
    "TiktokenCounter",
    "counter_for",
    "get",
    "measure",
    "preload",
    "use_file",
]
