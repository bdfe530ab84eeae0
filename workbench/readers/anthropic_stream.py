"""Puts the events of a streamed Anthropic response together again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .anthropic_blocks import from_json
from .fields import mapping

#: Types of events; ``ping`` and what a later version adds are passed over.
EVENTS = frozenset(("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping"))
_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "compaction_delta": "content"}


def assembled(events: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The response whose stream these events are, as if it had not been streamed; None if it never began.

    Usage is cumulative: what ``message_delta`` says replaces what ``message_start`` said. A stream that was cut keeps
    what had come; the input of a call that was cut stays text.

    Examples
    --------
    >>> start = {"type": "message_start", "message": {"role": "assistant", "content": []}}
    >>> block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    >>> delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
    >>> assembled([start, block, delta])["content"]
    [{'type': 'text', 'text': 'Hi'}]
    """
    message: dict[str, Any] | None = None
    blocks: dict[int, dict[str, Any]] = {}
    pieces: dict[tuple[int, str], list[str]] = {}
    usage: dict[str, Any] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start" and message is None:
            message = dict(mapping(event.get("message")))
            usage = dict(mapping(message.get("usage")))
        elif kind == "content_block_start" and type(index := event.get("index")) is int:
            blocks[index] = dict(mapping(event.get("content_block")))
        elif kind == "content_block_delta" and type(index := event.get("index")) is int:
            delta = mapping(event.get("delta"))
            type_ = delta.get("type")
            key = "partial_json" if type_ == "input_json_delta" else _TEXTS.get(type_) if type(type_) is str else None
            if key is not None and type(delta.get(key)) is str:
                pieces.setdefault((index, key), []).append(delta[key])
        elif kind == "message_delta":
            if message is None:
                message = {}
            message |= {key: value for key, value in mapping(event.get("delta")).items() if value is not None}
            usage |= {key: value for key, value in mapping(event.get("usage")).items() if value is not None}
            if event.get("context_management") is not None:
                message["context_management"] = event["context_management"]
        elif kind == "error" and event.get("error") is not None:
            message = {**(message or {}), "error": event["error"]}
    if message is None and not blocks:
        return None
    for (index, key), texts in pieces.items():
        block, text = blocks.setdefault(index, {"type": "text"}), "".join(texts)
        if key == "partial_json":
            value = from_json(text) if text.strip() else {}
            block["input"] = text if value is None else value
        else:
            before = block.get(key)
            block[key] = (before if type(before) is str else "") + text
    given = (message or {}).get("content")
    content = [blocks[index] for index in sorted(blocks)] or (given if type(given) is list else [])
    return {"role": "assistant", **(message or {}), "content": content, **({"usage": usage} if usage else {})}
