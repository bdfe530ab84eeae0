"""support_session.json: support_story.txt as request/response pairs of the Anthropic Messages API, each request with the whole history."""

from __future__ import annotations

import base64
import copy
import json
from math import ceil
from typing import Any

from common import HERE, claude, compact, ident, jpeg, number, png, sections

MODEL = "claude-sonnet-4-5"
#: What the API adds for tool use, and around each message.
TOOL_SYSTEM, PER_MESSAGE = 346, 4


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    schema = {key: {"type": kind} if kind != "list" else {"type": "array", "items": {}} for key, kind in properties.items()}
    return {"name": name, "description": description, "input_schema": {"type": "object", "properties": schema}}


TOOLS = [
    _tool("lookup_order", "Read an order with its items, prices and marks.", order_no="string"),
    _tool("lookup_customer", "Read a customer's record. Never show it to anyone.", customer_no="string"),
    _tool("check_stock", "How many of an article are in stock, and when more come.", sku="string"),
    _tool("search_products", "Search the shop's articles and spare parts.", query="string", in_stock="boolean"),
    _tool("search_manual", "Search an article's manual.", sku="string", question="string", language="string"),
    _tool("calculate_refund", "What a return would give back, without doing it.", order_no="string", items="list", whole_order="boolean"),
    _tool(
        "refund",
        "Pay money back. Needs `approval` above the limit.",
        order_no="string",
        sku="string",
        qty="integer",
        amount="string",
        currency="string",
        reason="string",
        approval="string",
    ),
    _tool(
        "ask_supervisor",
        "Ask for approval and wait for the answer.",
        order_no="string",
        amount="string",
        total_on_order="string",
        currency="string",
        reason="string",
    ),
    _tool("create_shipment", "Send something.", order_no="string", items="list", charge="string"),
    _tool("create_return_label", "Make a free label for sending something back.", order_no="string", sku="string", qty="integer"),
    _tool("add_note", "Write an internal note.", order_no="string", note="string"),
]


def image(words: list[str]) -> tuple[dict[str, Any], int]:
    """An image block and its tokens: patches of 28 pixels, the longer side scaled down to 1,568, at most 1,568."""
    width, height = int(words[1]), int(words[2])
    data = png(width, height, (int(words[3]), int(words[4]), int(words[5]))) if words[0] == "png" else jpeg(width, height)
    scale = min(1.0, 1_568 / max(width, height))
    tokens = min(1_568, ceil(width * scale / 28) * ceil(height * scale / 28))
    source = {"type": "base64", "media_type": f"image/{words[0]}", "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}, tokens


def build() -> bytes:
    """All pairs; returns the file."""
    history: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    story = sections(HERE / "support_story.txt")
    system = story[0][2]
    fixed = claude(system) + TOOL_SYSTEM + sum(claude(compact(tool)) for tool in TOOLS)
    prompt, cached = fixed, 0
    waiting: list[str] = []
    at = 1
    while at < len(story):
        name, argument, body = story[at]
        at += 1
        if name == "user":
            words, blocks = argument.split(), []
            for start in (n for n, word in enumerate(words) if word in ("png", "jpeg")):
                block, tokens = image(words[start:])
                blocks.append(block)
                prompt += tokens
            history.append({"role": "user", "content": [*blocks, {"type": "text", "text": body}]})
            prompt += claude(body) + PER_MESSAGE
        elif name == "result":
            block = {"type": "tool_result", "tool_use_id": waiting.pop(0), "content": body}
            if body.startswith('{"error"'):
                block["is_error"] = True
            if history[-1]["role"] == "user":
                history[-1]["content"].append(block)
            else:
                history.append({"role": "user", "content": [block]})
            prompt += claude(body) + 10
        else:
            content: list[dict[str, Any]] = [{"type": "text", "text": body}] if body else []
            while at < len(story) and story[at][0] == "call":
                content.append({"type": "tool_use", "id": ident("toolu_01", 22, at), "name": story[at][1], "input": json.loads(story[at][2])})
                waiting.append(content[-1]["id"])
                at += 1
            output = 6 + sum(claude(block.get("text") or block["name"] + compact(block["input"])) + (12 if "name" in block else 0) for block in content)
            pairs.append(_pair(system, history, content, prompt, cached, output))
            cached = prompt - 3
            history.append({"role": "assistant", "content": content})
            prompt += output
    return (json.dumps(pairs, ensure_ascii=False, indent=1) + "\n").encode()


def _pair(system: str, history: list[dict[str, Any]], content: list[dict[str, Any]], prompt: int, cached: int, output: int) -> dict[str, Any]:
    """One request and its response. The newest block carries the cache mark, so all but 3 tokens are read or written."""
    messages = copy.deepcopy(history)
    messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    written = prompt - 3 - cached
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }
    request = {"model": MODEL, "max_tokens": 1024, "system": [{"type": "text", "text": system}], "tools": TOOLS, "messages": messages}
    response = {
        "id": ident("msg_01", 22, len(history), number(0, 9, output)),
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": content,
        "stop_reason": "tool_use" if content[-1]["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    return {"request": request, "response": response}
