"""Context Workbench: what would the model still see, and at what price, under this policy and this budget?

Public names are loaded when they are first used (PEP 562): importing the package is instant and needs no dependency.
An old Python must be able to import this file, so that `__main__` can say which one is needed: no newer syntax here.
"""

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
    "calibrate": "calibration",
    "Ledger": "ledger",
    "select": "policies",
    "compare": "frames",
    "Selection": "policies",
    "Workbench": "widgets",
    "readers": "readers",
    "policies": "policies",
    "losses": "losses",
    "tokens": "tokens",
    "errors": "errors",
    "estimates": "estimates",
    "model": "model",
}
__all__ = sorted(_WHERE)

if TYPE_CHECKING:
    from . import errors as errors
    from . import estimates as estimates
    from . import losses as losses
    from . import model as model
    from . import policies as policies
    from . import readers as readers
    from . import tokens as tokens
    from .calibration import calibrate as calibrate
    from .errors import WorkbenchError as WorkbenchError
    from .frames import compare as compare
    from .ledger import Ledger as Ledger
    from .ledger import count as count
    from .model import Budget as Budget
    from .model import Message as Message
    from .model import Transcript as Transcript
    from .policies import Selection as Selection
    from .policies import select as select
    from .readers import read as read
    from .readers import read_all as read_all
    from .widgets import Workbench as Workbench


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    module = import_module(f".{where}", __name__)
    value = module if name == where else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
