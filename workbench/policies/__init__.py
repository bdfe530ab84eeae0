"""What a model would still see: policies, what they are asked, and what they answer."""

from .agentd import Agentd
from .base import Added, Edited, Fate, Kept, Note, Policy, PolicyInfo, Request, Selection, Step, as_python, limit_of, params_of, smallest_window
from .compare import Comparison, Difference, compare
from .kernel import Kernel
from .none import NoPolicy
from .registry import get, make, make_from_text, select
from .registry import names as list
from .scv import Scv
from .vak import Vak

__all__ = [
    "Added",
    "Agentd",
    "Comparison",
    "Difference",
    "Edited",
    "Fate",
    "Kept",
    "Kernel",
    "NoPolicy",
    "Note",
    "Policy",
    "PolicyInfo",
    "Request",
    "Scv",
    "Selection",
    "Step",
    "Vak",
    "as_python",
    "compare",
    "get",
    "limit_of",
    "list",
    "make",
    "make_from_text",
    "params_of",
    "select",
    "smallest_window",
]
