"""Golden operations of agent_runtime_kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.systems import agent_runtime_kernel as kernel
from workbench.systems.rustjson import utf8_len
from workbench.systems.rusttext import truncate

JSON = dict[str, Any]
ERRORS = kernel.KernelError


def run(op: str, given: JSON) -> Any:
    return OPS[op](given)


def failed(op: str, given: JSON, error: kernel.KernelError) -> JSON:
    """What a failed case gives. A refresh that failed shows that it left the messages as they were."""
    output: JSON = {"error": {"code": error.code, "message": error.message}}
    return {**output, "messages_after": given.get("messages", [])} if op == "refresh_system" else output


def _messages(given: list[JSON]) -> list[kernel.Message]:
    return [kernel.Message(message["role"], message["text"]) for message in given]


def _items(given: JSON) -> list[kernel.ContextItem]:
    """The items; required and priority have defaults."""
    return [
        kernel.ContextItem(item["source"], item["content"], item.get("required", False), item.get("priority", 0)) for item in given.get("context_items", ())
    ]


def _shown(messages: list[kernel.Message]) -> JSON:
    return {"messages": [{"role": message.role, "text": message.text} for message in messages]}


def _assemble(given: JSON) -> JSON:
    manager = kernel.ContextManager(given["max_messages"])
    return _shown(
        manager.assemble(given.get("system_prompt", ""), _items(given), _messages(given.get("history", [])), _messages(given.get("request_messages", [])))
    )


def _refresh_system(given: JSON) -> JSON:
    manager = kernel.ContextManager(given["max_messages"])
    return _shown(manager.refresh_system(_messages(given.get("messages", [])), given.get("system_prompt", ""), _items(given)))


def _render_system(given: JSON) -> JSON:
    items = _items(given)
    return {"system": kernel.render_system(given.get("system_prompt", ""), items), "order": [item.source for item in kernel.sorted_items(items)]}


def _truncate(given: JSON) -> JSON:
    value = truncate(given["value"], given["max"])
    return {"value": value, "bytes": utf8_len(value), "chars": len(value)}


OPS: dict[str, Callable[[JSON], Any]] = {
    "new": lambda given: bool(kernel.ContextManager(given["max_messages"])),
    "assemble": _assemble,
    "refresh_system": _refresh_system,
    "render_system": _render_system,
    "truncate": _truncate,
    "checkpoint": lambda given: {"text": kernel.checkpoint(_messages(given.get("history", [])), given["dropped"])},
}
