"""agentd: durable contexts whose oldest messages are folded into a structured summary.

A faithful port of the original program, written to be read; each idea has its file beside this one. Rules: four_systems.md §4.

Examples
--------
>>> Summary(goals=("ship",)).absorb(Summary(facts=("x = 1",), covers_messages=4), now=0).render().splitlines()
['Summary of earlier conversation:', 'Goals:', '- ship', 'Facts:', '- x = 1']
"""

from __future__ import annotations

from .agentd_compact import (
    OUTPUT_SCHEMA,
    SYSTEM_PROMPT,
    Compaction,
    Outcome,
    apply_compaction,
    apply_fallback,
    compaction_input,
    fallback_narrative,
    plan_compaction,
    render_line,
    window_for_model,
)
from .agentd_context import ContextState, Skill, context_from_json, context_json
from .agentd_fold import fold_count
from .agentd_json import AgentdError, InvalidRecord
from .agentd_message import Assistant, Msg, Note, System, Tool, ToolCall, User, est_tokens, estimate, estimate_value, message_from_json, message_json, to_wire
from .agentd_plan import Bound, Plan, PlanItem, create_plan, plan_from_json, plan_json
from .agentd_registry import Registry, Status
from .agentd_sqlite import SqliteStore
from .agentd_store import MemoryStore, Record, Store, StoreError
from .agentd_summary import Summary, summary_from_json, summary_json

__all__ = [
    "OUTPUT_SCHEMA",
    "SYSTEM_PROMPT",
    "AgentdError",
    "Assistant",
    "Bound",
    "Compaction",
    "ContextState",
    "InvalidRecord",
    "MemoryStore",
    "Msg",
    "Note",
    "Outcome",
    "Plan",
    "PlanItem",
    "Record",
    "Registry",
    "Skill",
    "SqliteStore",
    "Status",
    "Store",
    "StoreError",
    "Summary",
    "System",
    "Tool",
    "ToolCall",
    "User",
    "apply_compaction",
    "apply_fallback",
    "compaction_input",
    "context_from_json",
    "context_json",
    "create_plan",
    "est_tokens",
    "estimate",
    "estimate_value",
    "fallback_narrative",
    "fold_count",
    "message_from_json",
    "message_json",
    "plan_compaction",
    "plan_from_json",
    "plan_json",
    "render_line",
    "summary_from_json",
    "summary_json",
    "to_wire",
    "window_for_model",
]
