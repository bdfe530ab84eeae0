"""Puts the chunks of a LangChain stream together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .fields import listing, mapping, string
from .usage import tokens


def joined(chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One message out of the chunks of its stream.

    Examples
    --------
    >>> joined([{"type": "ai", "content": "He"}, {"type": "ai", "content": "y"}])["content"]
    'Hey'
    """
    out: dict[str, Any] = {"type": "ai"}
    texts: list[str] = []
    blocks: list[Any] = []
    more: dict[str, Any] = {}
    about: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    calls: dict[Any, dict[str, Any]] = {}
    whole: list[Any] = []
    for chunk in chunks:
        out["id"] = out.get("id") or chunk.get("id")
        content = chunk.get("content")
        if isinstance(content, str):
            texts.append(content)
        for block in listing(content):
            _grow(blocks, block)
        for key, value in mapping(chunk.get("additional_kwargs")).items():
            more[key] = more[key] + value if isinstance(value, str) and isinstance(more.get(key), str) else value
        about.update({key: value for key, value in mapping(chunk.get("response_metadata")).items() if value is not None})
        usage = _added(usage, mapping(chunk.get("usage_metadata")))
        pieces = listing(chunk.get("tool_call_chunks"))
        for piece in map(mapping, pieces):
            at = piece.get("index")
            held = calls.setdefault(at if isinstance(at, int | str) else len(calls), {"name": "", "args": "", "id": ""})
            for key in held:
                held[key] = held[key] + string(piece.get(key)) if key == "args" else held[key] or string(piece.get(key))
        whole += listing(chunk.get("tool_calls")) if not pieces else []
    out["content"] = [*({"type": "text", "text": text} for text in ["".join(texts)] if text), *blocks] if blocks else "".join(texts)
    return {**out, "additional_kwargs": more, "response_metadata": about, "usage_metadata": usage or None, "tool_calls": [*calls.values()] or whole}


def _grow(blocks: list[Any], block: Any) -> None:
    """Add a block of a chunk: it goes on with the one before it if both are of one kind and at one place."""
    held = blocks[-1] if blocks else None
    if isinstance(block, dict) and isinstance(held, dict) and (held.get("type"), held.get("index")) == (block.get("type"), block.get("index")):
        for key, value in block.items():
            if key in ("text", "thinking", "reasoning", "signature") and isinstance(value, str):
                held[key] = string(held.get(key)) + value
            elif held.get(key) is None:
                held[key] = value
    else:
        blocks.append({**block} if isinstance(block, dict) else block)


def _added(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Usage of two chunks together."""
    out = {**one}
    for key, value in other.items():
        held = out.get(key)
        if isinstance(value, dict):
            out[key] = _added(held if isinstance(held, dict) else {}, {name: number for name, number in value.items() if not isinstance(number, dict)})
        elif (count := tokens(value)) is not None and (before := tokens(held)) is not None:
            out[key] = before + count
        elif value is not None:
            out[key] = value
    return out
