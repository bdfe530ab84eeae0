"""What one request holds, in the order in which it is sent, where a provider's cache may cut it, and what breaks that cache.

The order is from stable to volatile: system text, context items and tools; the note; the history; the current turn. A
cache holds a request's first bytes, so whatever changes costs everything after it. Two more questions are answered
here: which requests of a recorded session changed their prefix (`prefix_changes`), and how much of a selection's request
is the same, byte for byte, as the request before it would have been without a policy (`Layout.reusable`).

Cache breakpoints, bytes and the prefix digest are vak's (four_systems.md §5); what they cost is replay's to say. This
layer stands right of policies and left of replay.
"""

from .prefixes import PrefixChange, prefix_changes, recorded
from .request import ZONES, Block, Breakpoint, Layout, Reusable, merged, of

__all__ = ["ZONES", "Block", "Breakpoint", "Layout", "PrefixChange", "Reusable", "merged", "of", "prefix_changes", "recorded"]
