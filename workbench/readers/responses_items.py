"""Items of OpenAI's Responses API, which Codex rollouts hold too: from a stream of items to messages.

Items of the model that follow each other are one response. A tool that the provider ran has its result in the same
message; a result that the client sends is a message of its own, joined on ``call_id``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, MAIN, META, Compaction, Media, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .build import Builder, DraftCall, DraftMessage
from .exchanges import digest
from .fields import json_text, listing, mapping, size_of, string, tool_call, tool_specs
from .media import from_base64, from_url

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text", "Text"})
#: Calls that the client answers -> the tool's name if the item has none, and the field of its arguments.
_CLIENT = {
    "function_call": ("", "arguments"),
    "custom_tool_call": ("", "input"),
    "local_shell_call": ("local_shell", "action"),
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    "computer_call": ("computer", "action"),
    "tool_search_call": ("tool_search", "arguments"),
}
#: Calls that the provider answers -> the same.
_SERVER = {
    "web_search_call": ("web_search", "action"),
    "file_search_call": ("file_search", "queries"),
    "code_interpreter_call": ("code_interpreter", "code"),
    "image_generation_call": ("image_generation", "revised_prompt"),
    "mcp_call": ("mcp", "arguments"),
}
_COMPACTIONS = frozenset({"compaction", "context_compaction", "compaction_summary"})
#: Items that hold nothing that a model reads.
_SILENT = frozenset({"item_reference", "ghost_snapshot", "compaction_trigger", "configuration_update"})
#: What tells an item of this API from a message of another.
TYPES = frozenset(
    {*_CLIENT, *_SERVER, *_COMPACTIONS, *_SILENT, "reasoning", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "agent_message"}
    | {f"{name}_output" for name in _CLIENT}
    | {"tool_search_output"}
)


def is_call(type_: str) -> bool:
    """Say whether an item of this type is the model's."""
    return type_ in _CLIENT or type_ in _SERVER or type_ in ("reasoning", "mcp_approval_request") or type_.endswith("_call")


def is_output(type_: str) -> bool:
    """Say whether an item of this type is a client's tool result."""
    return type_.endswith("_output")


def content_parts(content: Any) -> list[Part]:
    """Parts of a message's or a tool result's content: a string, a part or a list of parts."""
    found: list[Part] = []
    for value in content if isinstance(content, list) else [content]:
        if isinstance(value, str):
            found.append(Text(value))
        elif isinstance(value, dict):
            found.append(_part(value))
        elif value is not None:
            found.append(Text(json_text(value)))
    return found


def _part(value: dict[str, Any]) -> Part:
    type_ = string(value.get("type"))
    text = value.get("text")
    if type_ in _TEXTS or (not type_ and isinstance(text, str)):
        text = text if text is not None else next((value[key] for key in ("value", "content") if value.get(key) is not None), "")
        return Text(text if isinstance(text, str) else json_text(text))
    if type_ == "refusal":
        return Text(string(value.get("refusal")))
    if type_ in ("input_image", "image", "image_url", "computer_screenshot", "output_image"):
        url = value.get("image_url")
        return from_url("image", string(url, mapping(url).get("url"), value.get("url"), value.get("file_id")))
    if type_ == "video_url":
        return from_url("video", string(value.get("video_url"), mapping(value.get("video_url")).get("url")))
    if type_ in ("thinking", "reasoning") and isinstance(value.get("thinking", text), str):
        return Reasoning(value.get("thinking", text), size_of(value["signature"]) if string(value.get("signature")) else None)
    if type_ in ("input_file", "file"):
        inner = mapping(value.get("file")) or value
        data = string(inner.get("file_data"))
        if data and data[:5].lower() != "data:":
            return from_base64("document", None, data)
        return from_url("document", data or string(inner.get("file_url"), inner.get("file_id")))
    if type_ in ("input_audio", "output_audio", "audio"):
        inner = mapping(value.get("input_audio")) or value
        form = string(inner.get("format"))
        return from_base64("audio", f"audio/{form}" if form else None, inner.get("data"))
    return Opaque(type_ or "part", size_of(value.get("encrypted_content") or value))


def output_parts(output: Any) -> tuple[Text | Media | Opaque, ...]:
    """Parts of what a tool gave back. Empty text is no part: an empty result is one, however the source says it."""
    if isinstance(output, dict) and "type" not in output:
        output = output["content"] if isinstance(output.get("content"), str | list) else json_text(output)
    return tuple(part for part in content_parts(output) if isinstance(part, Text | Media | Opaque) and part != Text(""))


def key_of(item: Any) -> Hashable | None:
    """What makes an item the same one when a client sends it again; None for what a client may leave out."""
    if not isinstance(item, dict) or not item.keys() & {"type", "role", "content"}:
        return ("odd", digest(item))
    value = mapping(item)
    type_ = string(value.get("type"))
    if type_ in _COMPACTIONS:
        # Its id first: a stream encrypts the same item anew in each of its events.
        return ("compaction", string(value.get("id"), value.get("encrypted_content")) or digest(item))
    if type_ in ("", "message"):
        role = _ROLES.get(string(value.get("role")), "user")
        return (role, tuple(digest(_plain(part)) for part in content_parts(value.get("content"))))
    if type_ in _CLIENT or is_output(type_):
        return (type_, string(value.get("call_id"), value.get("id")) or digest(item))
    return None


def _plain(part: Part) -> str:
    return f"text {folded(part.text)}" if isinstance(part, Text) else repr(part)


def folded(text: str) -> str:
    """Text for comparing an answer with what a client sends back: recorders and clients fold quotes, dashes and space.

    Examples
    --------
    >>> folded("it\u2019s  here\u2014") == folded("it's here -")
    True
    """
    return _MARKS.sub("", text) or text


_MARKS = re.compile(r"\W+")


@dataclass(slots=True)
class Items:
    """Reads items one after the other into a `Builder`.

    Parameters
    ----------
    model : str or None
        Of the responses that begin from now on.
    """

    builder: Builder
    thread: str = MAIN
    model: str | None = None
    trigger: str | None = "server"
    #: The response that is open: its request, and its message so far.
    call: DraftCall | None = None
    message: DraftMessage | None = None
    #: Ids and hidden content of all items so far: marks by which one that is sent again is known.
    ids: set[str] = field(default_factory=set)
    summaries: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def begin(self, call: DraftCall) -> None:
        """Begin a response whose request is known: all items up to `close` are its own."""
        self.close()
        self.call = call

    def close(self) -> None:
        """End the response: what follows is another one."""
        self.call = self.message = None

    def add(self, item: Any, record: int, *, ts: int | None = None, place: str = "") -> DraftMessage | None:
        """Read one item.

        Parameters
        ----------
        place : str
            For diagnostics: where in the record it stands.

        Returns
        -------
        DraftMessage or None
            The message that it became or is a part of; None if it holds nothing that a model reads.
        """
        if not isinstance(item, dict):
            if isinstance(item, str) and place:
                return self.row("user", [Text(item)], record, "", ts)
            self.builder.skip(record, "item", f"record {record}{place}: not an item ({type(item).__name__})")
            return None
        type_ = string(item.get("type"))
        id = string(item.get("id"))
        self.ids.update(mark for mark in (id, string(item.get("encrypted_content"))) if mark)
        if type_ == "message" or (not type_ and ("role" in item or "content" in item)):
            return self._message(item, record, ts, place)
        if type_ in _COMPACTIONS:
            return self.builder.messages[self.compaction(item, record, ts)]
        if is_output(type_):
            return self._output(item, type_, record, ts)
        if type_ in _SILENT:
            self.builder.account(record, "metadata", self.thread)
            return None
        if type_ == "mcp_list_tools":
            known = {spec.name for spec in self.builder.tools}
            self.builder.tools += [spec for spec in tool_specs(item.get("tools")) if spec.name not in known]
            self.builder.account(record, "metadata", self.thread)
            return None
        if type_ == "mcp_approval_response":
            return self.row("user", [Opaque(type_, size_of(item))], record, id, ts, (META,))
        if type_ == "agent_message":  # another agent's words, which the harness put in
            return self.row("user", content_parts(item.get("content")), record, id, ts, (META,))
        if is_call(type_):
            return self.answer(self._call_parts(item, type_), record, id, ts)
        self.builder.unknown(record, type_ or "item without a type", self.thread)
        return None

    def _message(self, item: dict[str, Any], record: int, ts: int | None, place: str) -> DraftMessage:
        role = _ROLES.get(string(item.get("role")))
        if role is None:
            self.builder.report(record, "role", f"record {record}{place}: unknown role {string(item.get('role'))[:40]!r}, taken as user")
            role = "user"
        parts = content_parts(item.get("content"))
        if role == "assistant":
            return self.answer(parts, record, string(item.get("id")), ts)
        return self.row(role, parts, record, string(item.get("id")), ts)

    def answer(self, parts: Iterable[Part], record: int, id: str, ts: int | None) -> DraftMessage:
        """Add parts to the response that is open, or begin one."""
        parts = list(parts)
        self.names.update({part.id: part.name for part in parts if type(part) is ToolCall and part.id})
        if self.call is None:
            self.call = self.builder.call(thread=self.thread, model=self.model, ts=ts)
        if self.message is None:
            self.message = self.builder.message("assistant", parts, record, id=self.call.id or id, thread=self.thread, ts=ts, call=self.call.index)
        else:
            self.builder.extend(self.message, parts, record)
        return self.message

    def row(self, role: Role, parts: Iterable[Part], record: int, id: str, ts: int | None, flags: Iterable[str] = ()) -> DraftMessage:
        """Add a message that is not the model's: it ends the response."""
        self.close()
        return self.builder.message(role, parts, record, id=id, thread=self.thread, ts=ts, flags=flags)

    def _output(self, item: dict[str, Any], type_: str, record: int, ts: int | None) -> DraftMessage:
        call_id = string(item.get("call_id"), item.get("id"))
        output = item.get("tools") if type_ == "tool_search_output" and "output" not in item else item.get("output")
        if type_ == "tool_search_output":
            output = None if output is None else json_text(output)
        elif type_ == "shell_call_output":
            output = "\n".join(_shell(value) for value in listing(output)) if isinstance(output, list) else output
        failed = item.get("status") == "failed" or mapping(output).get("success") is False
        result = ToolResult(call_id, string(self.names.get(call_id), item.get("name")) or None, output_parts(output), failed)
        if item.get("execution") == "server":
            return self.answer([result], record, "", ts)
        return self.row("tool", [result], record, string(item.get("id")), ts)

    def _call_parts(self, item: dict[str, Any], type_: str) -> list[Part]:
        if type_ == "reasoning":
            texts = (content_parts(item.get(key)) for key in ("content", "summary"))  # a summary counts only where the reasoning itself is hidden
            text = next((text for parts in texts if (text := "\n\n".join(part.text for part in parts if isinstance(part, Text)))), None)
            hidden = item.get("encrypted_content")
            return [Reasoning(text, size_of(hidden) if isinstance(hidden, str) and hidden else None)]
        if type_ == "mcp_approval_request":
            return [Opaque(type_, size_of(item))]
        if type_ in _CLIENT:
            name, key = _CLIENT[type_]
            args = item.get(key) if item.get(key) is not None else item.get("actions")
            server = type_ == "tool_search_call" and item.get("execution") == "server"
            return [tool_call(string(item.get("call_id"), item.get("id")), string(item.get("name")) or name, args, server_side=server)]
        name, key = _SERVER.get(type_, (type_.removesuffix("_call"), "arguments"))
        id = string(item.get("id"), item.get("call_id"))
        args = item.get(key)
        if type_ == "web_search_call":
            args = {name: value for name, value in mapping(args).items() if name != "sources"} or None
        elif type_ in ("file_search_call", "code_interpreter_call", "image_generation_call") and args is not None:
            args = {"prompt" if key == "revised_prompt" else key: args}
        call = tool_call(id, string(item.get("name")) or name, args, server_side=True)
        failed = item.get("status") in ("failed", "incomplete") or bool(item.get("error"))
        return [call, ToolResult(id, call.name, self._server_result(item, type_), failed)]

    def _server_result(self, item: dict[str, Any], type_: str) -> tuple[Text | Media | Opaque, ...]:
        if type_ == "image_generation_call":
            return (from_base64("image", None, item["result"]),) if isinstance(item.get("result"), str) and item["result"] else ()
        if type_ == "web_search_call":
            found = item.get("results") or mapping(item.get("action")).get("sources")
            return (Text(json_text(found)),) if found else ()
        if type_ == "file_search_call":
            return (Text(json_text(item["results"])),) if item.get("results") else ()
        if type_ == "code_interpreter_call":
            parts: list[Text | Media | Opaque] = []
            for value in map(mapping, listing(item.get("outputs"))):
                logs = value.get("logs")
                parts.append(from_url("image", value.get("url")) if value.get("type") == "image" else Text(logs if isinstance(logs, str) else json_text(value)))
            return tuple(parts)
        output = item.get("output")
        return output_parts(output if output is not None else item.get("error"))

    def compaction(self, item: dict[str, Any], record: int, ts: int | None) -> int:
        """Read a compaction item: a message of its own. One that comes back in a later input is the same message.

        Returns
        -------
        int
            Index of the message.
        """
        hidden = item.get("encrypted_content")
        marks = [mark for mark in (string(item.get("id")), string(hidden)) if mark] or [digest(item)]
        for mark in marks:
            if mark in self.summaries:
                self.builder.account(record, "metadata", self.thread)
                return self.summaries[mark]
        before = next((message.index for message in reversed(self.builder.messages) if message.thread == self.thread), -1)
        parts = [part for part in content_parts(item.get("summary") or item.get("content")) if isinstance(part, Text)]
        call = self.call
        message = self.builder.message(
            "assistant",
            [*parts, Opaque("compaction", size_of(hidden))] if isinstance(hidden, str) else parts or [Opaque("compaction", size_of(item))],
            record,
            id=string(item.get("id")),
            thread=self.thread,
            ts=ts,
            call=None if call is None else call.index,
            flags=(COMPACT_SUMMARY,),
        )
        self.message = None
        self.summaries.update(dict.fromkeys(marks, message.index))
        self.builder.compactions.append(
            Compaction(
                after=before,
                kind="opaque" if isinstance(hidden, str) else "summary",
                trigger=self.trigger,
                summary=message.index,
                thread=self.thread,
                call=None if call is None else call.index,
                raw=(record,),
            )
        )
        return message.index


def _shell(value: Any) -> str:
    """One command's output, as text."""
    item = mapping(value)
    texts = [item[key] for key in ("stdout", "stderr") if isinstance(item.get(key), str) and item[key]]
    return "\n".join(texts) if texts else json_text(value)
