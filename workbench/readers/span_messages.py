"""Messages as instruments record them: whatever the SDK is whose calls they watch, its messages stand in the spans.

So each message is read by its own shape: OpenAI's Chat and Responses, Anthropic's blocks, Gemini's contents, LangChain's
messages, the parts of OpenTelemetry, the flattened messages of OpenInference, and those of the Vercel AI SDK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..model import Media, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult, ToolSpec, join_text
from .anthropic_blocks import OWN_TYPES, Blocks, CompactionBlock
from .chat_messages import ROLES, parts_of
from .fields import json_text, listing, mapping, shallow, size_of, string, tool_call, tool_specs
from .gemini_parts import Parts, is_part
from .jsontext import NotJson, parse
from .media import from_base64, from_url
from .responses_items import TYPES, content_parts
from .span_items import Found, Item, Memory, paired

_decode = msgspec.json.Decoder().decode
_MOST_LAYERS = 4
_MOST_MESSAGES = 20  # an answer of more of them is a stream that was not put together
#: What LangChain calls its classes; roles that only some SDKs have.
_ROLES: dict[str, Role] = {
    **ROLES,
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
    "model": "assistant",
}
#: Where a request or a response holds its messages.
_LISTS = ("messages", "contents", "input", "choices", "candidates", "output", "generations", "prompts", "args")
_TEXTS = ("prompt", "query", "question", "content", "text", "response", "completion")
_CALLS = frozenset({"tool_call", "tool-call", "function_call", "server_tool_call"})
_RESULTS = frozenset({"tool_call_response", "tool-result", "function_call_output", "server_tool_call_response"})


def decoded(value: Any) -> Any:
    """A value that may be JSON text, or JSON text of JSON text. Plain text stays text.

    Examples
    --------
    >>> decoded('"[1]"'), decoded("[sic] it goes on"), decoded("7")
    ([1], '[sic] it goes on', '7')
    """
    for _ in range(_MOST_LAYERS):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            return value
        try:
            value = _decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            try:
                value = parse(value.encode("utf-8", "surrogatepass")).value
            except NotJson:
                return value
    return value


def read_input(value: Any, memory: Memory | None = None) -> Found:
    """Messages, tools and system text of a recorded input."""
    value = decoded(value)
    if memory is not None and isinstance(value, list) and value and isinstance(value[0], dict) and shallow(value):
        known = memory.like(value)
        found = Found()
        each = [*known]
        for item in value[len(known) :]:
            one = _read([item], "user")
            each.append(one.items)
            found.tools += one.tools
        memory.lists.append((value, each))
        found.items = [item for items in each for item in items]
    else:
        found = _read(value, "user")
    paired(found.items)
    return found


def read_output(value: Any) -> Found:
    """The messages of a recorded answer. Pieces of a stream, each written as a message, are one."""
    found = _read(decoded(value), "assistant")
    if len(found.items) > _MOST_MESSAGES and all(item.role == "assistant" and all(type(part) is Text for part in item.parts) for item in found.items):
        found.items = [Item("assistant", [Text("".join(join_text(item.parts) for item in found.items))])]
    return found


def _read(value: Any, default: Role, level: int = 0) -> Found:
    found = Found()
    if not shallow(value):
        value = json_text(value)
    if isinstance(value, str):
        found.items = [Item(default, [Text(value)])] if value.strip() and value not in ("None", "null") else []
    elif isinstance(value, list):
        _list(value, default, found, level)
    elif isinstance(value, dict):
        _object(value, default, found, level)
    return found


def _list(values: list[Any], default: Role, found: Found, level: int) -> None:
    for value in values:
        if isinstance(value, list) and level < _MOST_LAYERS:  # LangChain's batches: the first of them
            found.items += _read(value, default, level + 1).items
            return
        if isinstance(value, str) and isinstance(inner := decoded(value), dict) and _is_message(inner):
            value = inner
        if isinstance(value, dict) and (specs := _offered(value)):
            found.tools += specs
        else:
            found.items += items_of(value, default)


def _offered(value: dict[str, Any]) -> list[ToolSpec]:
    """Tools that an instrument wrote among the messages, as if a tool had said its own definition."""
    content = value.get("content")
    inner = mapping(mapping(content).get("function"))
    if value.get("role") != "tool" or "tool_call_id" in value or "name" not in inner or not {"parameters", "description"} & inner.keys():
        return []
    return tool_specs([content])


def _object(value: dict[str, Any], default: Role, found: Found, level: int) -> None:
    found.tools += tool_specs(value.get("tools"))
    found.usage = value.get("usage") or value.get("usage_metadata") or value.get("usageMetadata")
    for key in ("system", "instructions", "system_instruction", "systemInstruction"):
        told = value.get(key)
        parts = _content(mapping(told).get("parts", told)) if told is not None else []
        found.system += [part.text for part in parts if type(part) is Text and part.text]
    if _is_message(value):
        found.items = items_of(value, default)
        return
    key = next((key for key in _LISTS if value.get(key) not in (None, [], "")), "")
    held = value.get(key) if key else None
    if key in ("choices", "candidates"):
        held = [mapping(next(iter(listing(held)), None))]
    if key == "generations" and isinstance(held, list):  # one answer for each batch, in several versions
        first = next(iter(listing(next(iter(held), None))), None) if isinstance(next(iter(held), None), list) else next(iter(held), None)
        held = [mapping(first).get("message") or mapping(first).get("text") or first]
    if isinstance(held, str):
        found.items = [Item(default, [Text(held)])]
    elif isinstance(held, list) and level < _MOST_LAYERS:
        inner = _read(held, default, level + 1)
        found.items, found.tools = inner.items, [*found.tools, *inner.tools]
    elif isinstance(held, dict) and level < _MOST_LAYERS:
        inner = _read(held, default, level + 1)
        found.items, found.tools, found.system = inner.items, [*found.tools, *inner.tools], [*found.system, *inner.system]
    elif text := string(*(value.get(key) for key in _TEXTS)):
        found.items = [Item(default, [Text(text)])]
    elif not key and value and not found.tools:
        found.items = [Item(default, [Text(json_text(value))])]


def _is_message(value: dict[str, Any]) -> bool:
    if "message" in value and ("index" in value or isinstance(value["message"], dict)):
        return True
    if "lc" in value or "parts" in value or "toolCallId" in value or isinstance(value.get("toolCalls"), list) or string(value.get("type")) in (*TYPES, *_ROLES):
        return True
    return isinstance(value.get("role"), str) and not isinstance(value.get("output"), list)


def items_of(value: Any, default: Role) -> list[Item]:
    """The messages that one recorded message is: a tool's results are each a message of their own."""
    if isinstance(value, str):
        return [Item(default, [Text(value)])] if value else []
    if not isinstance(value, dict):
        return [] if value is None else [Item(default, [Text(json_text(value))])]
    value = _plain(value)
    type_ = string(value.get("type"))
    if "toolCallId" in value and "toolName" in value and "role" not in value and type_ not in (*_CALLS, *_RESULTS):  # a call as the Vercel AI SDK writes it
        gave = "result" in value or "output" in value
        return [Item("tool" if gave else "assistant", _block({**value, "type": "tool-result" if gave else "tool-call"}))]
    role = _ROLES.get(string(value.get("role"))) or _ROLES.get(type_) or _ROLES.get(_event(value)) or default
    if type_ in TYPES:
        return _item_of_responses(value, type_)
    parts = _parts(value, role)
    results = [Item("tool", [part]) for part in parts if type(part) is ToolResult and role != "assistant"]
    rest = parts if role == "assistant" else [part for part in parts if type(part) is not ToolResult]
    if role == "tool" and rest and any(type(part) is ToolCall for part in rest):  # some instruments give calls the role of their results
        return [*results, Item("assistant", rest)]
    if role == "tool" and not results:
        return [Item("tool", [_result(value, rest if isinstance(value.get("parts"), list) or "content" not in value else None)])]
    return [*results, Item(role, rest)] if rest or not results else results


def _event(value: dict[str, Any]) -> str:
    """The role in the name of an older event: ``gen_ai.user.message``."""
    name = string(value.get("event.name"), value.get("event_name")).split(".")
    return "assistant" if name[-1:] == ["choice"] else name[1] if len(name) == 3 else ""


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Take a message out of its wrappers: a choice, LangChain's constructor or ``data``, OpenInference's nesting."""
    if isinstance(value.get("message"), dict) and "role" not in value:
        value = {**{key: held for key, held in value.items() if key.startswith("event")}, **value["message"]}
    elif "message" in value and "role" not in value and isinstance(value["message"], str):
        value = {**value, "content": value["message"]}
    if isinstance(value.get("kwargs"), dict) and isinstance(value.get("id"), list):
        kind = string(*reversed(value["id"]))
        value = {**value["kwargs"], "type": kind if kind in _ROLES else string(value["kwargs"].get("type"))}
    elif isinstance(value.get("data"), dict) and string(value.get("type")) in _ROLES:
        value = {**value["data"], "type": value["type"]}
    if isinstance(value.get("contents"), list):
        nested = [mapping(item).get("message_content", item) for item in value["contents"]]
        value = {**value, "content": nested if nested else value.get("content")}
    if isinstance(value.get("toolCalls"), list) and "tool_calls" not in value:
        beside = [
            {"id": call.get("toolCallId"), "name": call.get("toolName"), "args": call.get("input", call.get("args"))} for call in _flat(value["toolCalls"])
        ]
        value = {**value, "role": value.get("role", "assistant"), "tool_calls": beside}
    calls = value.get("tool_calls")
    if isinstance(calls, list) and any("tool_call" in mapping(call) for call in calls):
        value = {**value, "tool_calls": [mapping(call).get("tool_call", call) for call in calls]}
    if isinstance(value.get("content"), dict) and isinstance(value["content"].get("parts"), list):  # a candidate of Gemini's
        value = {**value, "parts": value["content"]["parts"], "role": value["content"].get("role", "model")}
    return value


def _item_of_responses(value: dict[str, Any], type_: str) -> list[Item]:
    call_id = id_of(value.get("call_id")) or id_of(value.get("id"))
    if type_.endswith("_output"):
        return [Item("tool", [ToolResult(call_id, None, results_of(value.get("output")), value.get("status") == "failed")])]
    if type_ == "reasoning":
        texts = [part.text for key in ("content", "summary") for part in content_parts(value.get(key)) if type(part) is Text]
        hidden = string(value.get("encrypted_content"))
        return [Item("assistant", [Reasoning(texts[0] if texts else None, size_of(hidden) if hidden else None)])]
    args = next((value[key] for key in ("arguments", "input", "action") if value.get(key) is not None), None)
    if type_ in ("function_call", "custom_tool_call"):
        return [Item("assistant", [tool_call(call_id, value.get("name"), args)])]
    if type_.endswith("_call"):
        name = string(value.get("name")) or type_.removesuffix("_call")
        return [Item("assistant", [tool_call(call_id, name, args, server_side=type_ not in ("local_shell_call", "shell_call", "computer_call"))])]
    return [Item("assistant", [Opaque(type_, size_of(value))])]


def _parts(value: dict[str, Any], role: Role) -> list[Part]:
    if isinstance(value.get("parts"), list):
        parts = _content(value["parts"])
    elif role == "tool" and "tool_call_id" in value:  # whatever its content is, it is the result
        return [_result(value, None)]
    elif isinstance(value.get("content"), list | dict):
        parts = _content(value["content"])
    elif not isinstance(value.get("content"), str) and isinstance(value.get("text"), str):
        parts = [Text(value["text"])]
    else:
        parts = [Text(value["content"])] if string(value.get("content")) else []
    if role == "assistant":
        calls = value.get("tool_calls")
        flat = [{**call, "function": {"name": call.get("name"), "arguments": call.get("args", call.get("arguments"))}} for call in _flat(calls)]
        more = parts_of({**value, "content": None, **({"tool_calls": flat} if flat else {})}, "assistant")
        if not any(type(part) is Reasoning for part in parts):
            parts = [*(part for part in more if type(part) is Reasoning), *parts]
        seen = {part.id for part in parts if type(part) is ToolCall}
        parts += [part for part in more if type(part) is not Reasoning and not (type(part) is ToolCall and (part.id in seen if part.id else bool(seen)))]
    return [part for part in parts if part != Text("")]


def _flat(calls: Any) -> list[dict[str, Any]]:
    """Calls without a nested function, if all are."""
    held = [call for call in listing(calls) if isinstance(call, dict)]
    return held if held and not any(isinstance(call.get("function"), dict) or isinstance(call.get("custom"), dict) for call in held) else []


def _content(content: Any) -> list[Part]:
    found: list[Part] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict):
            found += _block(block)
        elif isinstance(block, str):
            found += [Text(block)] if block else []
        elif block is not None:
            found.append(Text(json_text(block)))
    return found


def _block(block: dict[str, Any]) -> list[Part]:
    type_ = string(block.get("type"))
    inner = mapping(block.get("function"))
    if type_ in _CALLS or (type_ in ("function", "") and "name" in inner and "arguments" in inner):
        held = {**block, **inner}
        args = next((held[key] for key in ("arguments", "args", "input", "server_tool_call") if held.get(key) is not None), None)
        id = id_of(held.get("id")) or id_of(held.get("toolCallId")) or id_of(held.get("call_id"))
        return [tool_call(id, string(held.get("name"), held.get("toolName")), args, server_side=type_ == "server_tool_call")]
    if type_ in _RESULTS:
        given = next((block[key] for key in ("response", "result", "output", "content") if block.get(key) is not None), None)
        id = id_of(block.get("id")) or id_of(block.get("toolCallId")) or id_of(block.get("call_id"))
        output = given.get("value") if isinstance(given, dict) and given.keys() == {"type", "value"} else given
        failed = block.get("isError") is True or (isinstance(given, dict) and string(given.get("type")).startswith("error"))
        return [ToolResult(id, string(block.get("name"), block.get("toolName")) or None, results_of(output), failed)]
    if type_ in ("text", "output_text", "input_text") and isinstance(block.get("content"), str) and "text" not in block:
        return [Text(block["content"])] if block["content"] else []
    if type_ in ("reasoning", "thinking") and isinstance(text := block.get("content", block.get("text")), str):
        return [Reasoning(text)]
    if type_ in ("blob", "uri", "file") and "modality" in block:
        kind = string(block["modality"]) if block["modality"] in ("image", "audio", "video") else "document"
        mime = block.get("mime_type")
        return [from_base64(kind, mime, block.get("content")) if type_ == "blob" else from_url(kind, string(block.get("uri"), block.get("file_id")), mime)]
    if type_ == "image" and isinstance(mapping(block.get("image")).get("image"), dict):
        return [from_url("image", mapping(block["image"]["image"]).get("url"))]
    if type_ == "image" and isinstance(mapping(block.get("image")).get("url"), str):
        return [from_url("image", block["image"]["url"])]
    if type_ in OWN_TYPES or "source" in block or type_ in ("document", "search_result") or type_.endswith("_tool_result"):
        read = Blocks({}, []).parts([block])
        return [part for item in read for part in (item.parts if type(item) is CompactionBlock else (item,))]  # type: ignore[misc]
    if is_part(block):
        return Parts().of([block])
    if type_ or "text" in block:
        return content_parts([block])
    return [Text(json_text(block))]


def id_of(value: Any) -> str:
    """An id as text. Some SDKs write a list of the run's and the call's: the last one is the call's."""
    if isinstance(value, list):
        value = value[-1] if value else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:40]
    return string(value)


def results_of(value: Any) -> tuple[Text | Media | Opaque, ...]:
    """Parts of a tool's output: what is no content stays the JSON that it is."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, list) and value and all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in value):
        kept = tuple(part for part in _content(value) if isinstance(part, Text | Media | Opaque) and part != Text(""))
        if kept and not any(type(part) is Opaque for part in kept):
            return kept
    return (Text(json_text(value)),)


def _result(value: dict[str, Any], parts: Sequence[Part] | None) -> ToolResult:
    given = results_of(value.get("content")) if parts is None else tuple(part for part in parts if isinstance(part, Text | Media | Opaque))
    failed = value.get("status") == "error" or value.get("is_error") is True
    return ToolResult(id_of(value.get("tool_call_id")) or id_of(value.get("id")), string(value.get("name")) or None, given, failed)
