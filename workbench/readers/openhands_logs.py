"""Completion logs of OpenHands: a request to LiteLLM and its response, one file for each call.

Each repeats the whole conversation. A file alone is read as one; a folder of them is the conversations that they are requests of, each message once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model import META, Transcript, join_text
from .build import Builder
from .chat_messages import Messages
from .exchanges import Exchange, digest
from .fields import epoch_ms, listing, mapping, string, tool_specs
from .source import Document
from .usage import inclusive

#: How the results of tools begin where calls are written as text.
_RESULT = "EXECUTION RESULT of ["


def is_log(value: Any) -> bool:
    """Say whether a value is a completion log."""
    return (
        isinstance(value, dict) and isinstance(value.get("messages"), list) and "response" in value and bool({"kwargs", "latency_sec", "cost"} & value.keys())
    )


def exchange_of(number: int, value: dict[str, Any]) -> Exchange:
    """A log as a request and its response."""
    return Exchange(number, {"messages": value["messages"], "tools": value.get("tools")}, dict(mapping(value.get("response"))))


def read_log(format: str, document: Document, value: dict[str, Any]) -> Transcript:
    """One log: its records are the messages of its request."""
    messages, response = value["messages"], mapping(value.get("response"))
    builder = Builder(format, document, total=len(messages))
    builder.id = string(response.get("id"))
    read_messages(builder, messages, string(response.get("model")))
    last = len(messages)
    builder.tools += tool_specs(value.get("tools") or mapping(value.get("kwargs")).get("tools"))
    builder.request_prefix([join_text(builder.messages[at].parts) for at in _leading(builder)], builder.tools, 1)
    usage, why = inclusive(response.get("usage"))
    if why:
        builder.report(None, "usage", f"the response: {why}")
    choice = mapping(next(iter(listing(response.get("choices"))), None))
    call = builder.call(
        string(response.get("id")),
        model=string(response.get("model")) or None,
        usage=usage,
        stop_reason=string(choice.get("finish_reason")) or None,
        ts=epoch_ms(response.get("created") or value.get("timestamp")),
        context=tuple(message.index for message in builder.messages),
    )
    if isinstance(choice.get("message"), dict):
        Messages(builder).add({**choice["message"], "role": "assistant"}, last + 1, call=call.index, ts=call.ts, place=", response")
    if listing(value.get("raw_messages")) and digest(value["raw_messages"]) != digest(messages):
        builder.report(None, "converted", "calls and results were sent as text (raw_messages); they are shown as calls and results")
    builder.count_to(last)
    return builder.build()


def read_messages(builder: Builder, messages: Sequence[Any], model: str = "") -> None:
    """Read a list of chat messages; what a tool printed is no person's text."""
    reader = Messages(builder, model or None)
    for number, message in enumerate(messages, 1):
        if message is None and number in builder.document.skipped:
            continue
        draft = reader.add(message, number)
        if draft is not None and draft.role == "user" and any(getattr(part, "text", "").startswith(_RESULT) for part in draft.parts[:1]):
            draft.flags |= {META}


def _leading(builder: Builder) -> list[int]:
    """Places of the system text at the head."""
    end = next((message.index for message in builder.messages if message.role != "system"), len(builder.messages))
    return [*range(end)]
