"""Parts of Gemini's contents, in the API's spelling and in Python's, turned into parts of messages."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from ..model import Media, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, ToolSpec
from .exchanges import digest
from .fields import json_text, listing, mapping, shallow, size_of, string, tool_call
from .media import from_base64, from_url
from .responses_items import folded

#: What can stand in a part. A part holds one of them, and marks beside it.
_KINDS = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
    "toolCall": "tool_call",
    "toolResponse": "tool_response",
}
#: The same, by either spelling.
_BY_KEY = {key: kind for kind, snake in _KINDS.items() for key in (kind, snake)}
#: A response of one such text is that text.
_TEXTS = frozenset({"output", "result", "return_value", "content", "error"})


def get(value: Mapping[str, Any], name: str) -> Any:
    """A field by its name in the API (``functionCall``) or in Python (``function_call``)."""
    found = value.get(name)
    return found if found is not None else value.get(_snake(name))


@cache
def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def is_part(value: Any) -> bool:
    """Say whether a value is a part of a content."""
    return isinstance(value, dict) and "type" not in value and ("text" in value or any(get(value, kind) is not None for kind in _KINDS))


@dataclass(slots=True)
class Parts:
    """Turns contents into parts, one after the other.

    Parameters
    ----------
    faults : list of str
        What was not as it should be in the content read last; cleared by the caller.
    """

    faults: list[str] = field(default_factory=list)

    def of(self, content: Any) -> list[Part]:
        """Parts of a content: text, a part, or a list of them."""
        found: list[Part] = []
        for value in content if isinstance(content, list) else [content]:
            if isinstance(value, str):
                found += [Text(value)] if value else []
            elif isinstance(value, dict):
                self._add(value, found)
            elif value is not None:
                self.faults.append("a part is not an object")
                found.append(Text(json_text(value)))
        return found

    def _add(self, value: dict[str, Any], found: list[Part]) -> None:
        text = value.get("text")
        if len(value) == 1 and type(text) is str:  # by far the most common
            found += [Text(text)] if text else []
            return
        if (len(value) > 1 or _BY_KEY.keys().isdisjoint(value)) and self._thought(value, text, found):
            return
        kind = next((known for key, held in value.items() if held is not None and (known := _BY_KEY.get(key))), "")
        held = mapping(get(value, kind)) if kind else {}
        if kind == "functionCall":
            found.append(tool_call(held.get("id"), held.get("name"), _arguments(held)))
        elif kind == "functionResponse":
            found.append(result_of(held))
        elif kind in ("inlineData", "fileData"):
            found.append(_medium(held))
        elif kind == "executableCode":
            found.append(tool_call(held.get("id"), "code_execution", {"language": held.get("language"), "code": held.get("code")}, server_side=True))
        elif kind == "codeExecutionResult":
            failed = string(held.get("outcome")) not in ("", "OUTCOME_OK")
            found.append(ToolResult(string(held.get("id")), "code_execution", _texts(held.get("output")), failed))
        elif kind == "toolCall":
            found.append(tool_call(held.get("id"), string(get(held, "toolType"), held.get("name")), _arguments(held), server_side=True))
        elif kind == "toolResponse":
            name = string(get(held, "toolType"), held.get("name")) or None
            found.append(ToolResult(string(held.get("id")), name, _texts(held.get("response"))))
        elif isinstance(text, str):
            found += [Text(text)] if text else []
        elif text is not None:
            self.faults.append("the text of a part is not text")
            found.append(Text(json_text(text)))
        elif unknown := next((str(key) for key in value if key not in ("thoughtSignature", "thought_signature", "thought", "text")), ""):
            self.faults.append(f"a part of unknown type {unknown[:40]!r}")
            found.append(Opaque(unknown[:60], size_of(value)))

    def _thought(self, value: dict[str, Any], text: Any, found: list[Part]) -> bool:
        """Take the marks beside what a part holds; true if the part is a thought, and so done with."""
        signature = string(get(value, "thoughtSignature"))
        hidden = size_of(signature) if signature else None
        if value.get("thought") is True:
            found.append(Reasoning(string(text) or None, hidden))
            return True
        if hidden is not None:  # it stands on the part after the thoughts that it signs
            if found and type(before := found[-1]) is Reasoning and before.opaque_bytes is None:
                found[-1] = replace(before, opaque_bytes=hidden)
            else:
                found.append(Reasoning(None, hidden))
        return False


def _arguments(held: Mapping[str, Any]) -> Any:
    args = held.get("args") if held.get("args") is not None else held.get("arguments")
    return {} if args is None else args


def _medium(held: Mapping[str, Any]) -> Media:
    mime, address = get(held, "mimeType"), get(held, "fileUri")
    head = string(mime).split("/", 1)[0].lower()
    kind = head if head in ("image", "audio", "video") else "document"
    return from_url(kind, address, mime) if address is not None else from_base64(kind, mime, held.get("data"))


def _texts(response: Any) -> tuple[Text | Media | Opaque, ...]:
    if isinstance(response, dict) and len(response) == 1:
        key, only = next(iter(response.items()))
        if key in _TEXTS and isinstance(only, str):
            response = only
    if response is None or response == "":
        return ()
    return (Text(response if isinstance(response, str) else json_text(response)),)


def result_of(held: Mapping[str, Any]) -> ToolResult:
    """The result in a ``functionResponse``. One whose response is an error failed."""
    response = held.get("response")
    media = tuple(part for part in Parts().of(held["parts"]) if isinstance(part, Media)) if isinstance(held.get("parts"), list) else ()
    failed = isinstance(response, dict) and "error" in response and bool(response["error"]) and len(response) <= 2
    return ToolResult(string(held.get("id")), string(held.get("name")) or None, (*_texts(response), *media), failed)


def apart(parts: list[Part]) -> tuple[list[ToolResult], list[Part]]:
    """The results in a user's content, each a message of its own, and what the user says beside them."""
    results = [part for part in parts if type(part) is ToolResult]
    return results, [part for part in parts if type(part) is not ToolResult]


def key_of(role: str, parts: list[Part]) -> Hashable:
    """What makes a content the same one when a client sends it again: thoughts and signatures may be left out."""
    texts: list[str] = []
    others: list[Hashable] = []
    for part in parts:
        if type(part) is Text:
            texts.append(part.text)
        elif type(part) is ToolCall:
            others.append(("call", part.id, part.name, digest(part.arguments)))
        elif type(part) is not Reasoning:
            others.append(repr(part))
    return role, folded("".join(texts).strip()), tuple(others)


def tool_specs(tools: Any) -> list[ToolSpec]:
    """Tools of a request: declared functions, and those that the provider runs, which are named by their key."""
    found: list[ToolSpec] = []
    for tool in map(mapping, listing(tools)):
        for name, held in tool.items():
            if name not in ("functionDeclarations", "function_declarations"):
                if held is not None:
                    found.append(ToolSpec(name, "", held if held and shallow(held) else None))
                continue
            for declared in map(mapping, listing(held)):
                schema = get(declared, "parametersJsonSchema")
                schema = declared.get("parameters") if schema is None else schema
                if string(declared.get("name")):
                    found.append(ToolSpec(declared["name"], string(declared.get("description")), schema if shallow(schema) else None))
    return found
