"""Context Workbench: what would the model still see, and at what price, under this policy and this budget?

Public names are loaded when they are first used (PEP 562): importing the package is instant and needs no dependency.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: Public name -> module that holds it. A module's own name stands for the module.
_WHERE = {
    "Budget": "model",
    "Transcript": "model",
    "Message": "model",
    "WorkbenchError": "errors",
    "read": "readers",
    "read_all": "readers",
    "count": "ledger",
    "Ledger": "ledger",
    "select": "policies",
    "Selection": "policies",
    "Workbench": "widgets",
    "readers": "readers",
    "policies": "policies",
    "tokens": "tokens",
    "errors": "errors",
    "model": "model",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605

if TYPE_CHECKING:
    from . import errors, model, policies, readers, tokens
    from .errors import WorkbenchError
    from .ledger import Ledger, count
    from .model import Budget, Message, Transcript
    from .policies import Selection, select
    from .readers import read, read_all
    from .widgets import Workbench


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    module = import_module(f".{where}", __name__)
    value = module if name == where else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
