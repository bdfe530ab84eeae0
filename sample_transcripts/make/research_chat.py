"""research_chat.json: research_story.txt as an OpenAI chat request body. The character counts in it are really counted."""

from __future__ import annotations

import json
from typing import Any

from common import HERE, compact, ident, sections


def _tool(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    _tool(
        "search_catalogue",
        "収蔵品目録を検索する。Search the museum's catalogue; matches Japanese, Chinese, Latin and Arabic script.",
        {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 10}},
        ["query"],
    ),
    _tool(
        "search_literature",
        "Search abstracts of books and papers.",
        {"query": {"type": "string"}, "languages": {"type": "array", "items": {"type": "string", "enum": ["ja", "zh", "en", "ar"]}}},
        ["query"],
    ),
    _tool("get_record", "The whole record of one object, by catalogue number.", {"no": {"type": "string", "pattern": "^MPP-[0-9]{4}$"}}, ["no"]),
    _tool("measure_object", "Newest measurement of an object in centimetres.", {"no": {"type": "string"}}, ["no"]),
    _tool(
        "count_characters",
        "字数を数える。Counts Unicode code points and says whether the text fits.",
        {"text": {"type": "string"}, "limit": {"type": "integer"}},
        ["text", "limit"],
    ),
]


def build() -> bytes:
    """The chat; returns the file."""
    messages: list[dict[str, Any]] = []
    waiting: list[tuple[str, dict[str, Any]]] = []
    for name, argument, body in sections(HERE / "research_story.txt"):
        if name in ("system", "user"):
            messages.append({"role": name, "content": body})
        elif name == "asst":
            messages.append({"role": "assistant", "content": body or None})
        elif name == "call":
            if messages[-1]["role"] == "tool":
                messages.append({"role": "assistant", "content": None})
            call_id = ident("call_", 24, len(messages), len(waiting), body)
            waiting.append((call_id, json.loads(body)))
            call = {"id": call_id, "type": "function", "function": {"name": argument, "arguments": compact(json.loads(body))}}
            messages[-1].setdefault("tool_calls", []).append(call)
        else:
            call_id, arguments = waiting.pop(0)
            if name == "count":
                count = len(arguments["text"])
                body = compact({"code_points": count, "limit": arguments["limit"], "fits": count <= arguments["limit"]})
            messages.append({"role": "tool", "tool_call_id": call_id, "content": body})
    document = {"model": "gpt-5-mini", "tools": TOOLS, "messages": messages}
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()
