"""agentd: durable contexts whose oldest messages are folded into a structured summary.

A faithful port of the original program, written to be read; each idea has its file beside this one. Rules: four_systems.md §4.

Examples
--------
>>> Summary(goals=("ship",)).absorb(Summary(facts=("x = 1",), covers_messages=4), now=0).render().splitlines()
['Summary of earlier conversation:', 'Goals:', '- ship', 'Facts:', '- x = 1']
"""

from __future__ import annotations

from .agentd_fold import fold_count
from .agentd_json import AgentdError, InvalidRecord
from .agentd_message import (
    Assistant,
    Msg,
    Note,
    System,
    Tool,
    ToolCall,
    User,
    est_tokens,
    estimate,
    estimate_value,
    message_from_json,
    message_json,
    to_wire,
)
from .agentd_summary import Summary, summary_from_json, summary_json

__all__ = [
    "AgentdError",
    "Assistant",
    "InvalidRecord",
    "Msg",
    "Note",
    "Summary",
    "System",
    "Tool",
    "ToolCall",
    "User",
    "est_tokens",
    "estimate",
    "estimate_value",
    "fold_count",
    "message_from_json",
    "message_json",
    "summary_from_json",
    "summary_json",
    "to_wire",
]
