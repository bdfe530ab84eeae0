"""Would a provider accept this list of messages? Each finding names the messages that it is about.

`check` asks; `RULES` is the list of all rules with what each of them says and where that is documented. A provider's
list is made from ours as `columns` says ("How a list is packed").
"""

from .check import check, check_columns, check_pairs, provider_of
from .columns import Columns, sent_as
from .finding import PROVIDERS, Finding, Level, Provider
from .rules import LEVELS, RULES, About, Rule

__all__ = [
    "LEVELS",
    "PROVIDERS",
    "RULES",
    "About",
    "Columns",
    "Finding",
    "Level",
    "Provider",
    "Rule",
    "check",
    "check_columns",
    "check_pairs",
    "provider_of",
    "sent_as",
]
