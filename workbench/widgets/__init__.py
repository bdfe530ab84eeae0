"""The views: `Workbench`, and the small ones that it is made of, which also work alone."""

from .compare import Compare
from .reader import Reader
from .session import Session
from .strip import Strip
from .workbench import Workbench

__all__ = ["Compare", "Reader", "Session", "Strip", "Workbench"]
