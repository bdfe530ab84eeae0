"""Turns of chat datasets: ShareGPT's ``from`` and ``value``, OpenAI's ``role`` and ``content``, and what lies between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model import MAIN, META, Media, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .build import Builder, DraftMessage
from .chat_messages import parts_of
from .fields import epoch_ms, json_text, listing, mapping, string, tool_call, tool_specs
from .jsontext import NotJson, parse
from .media import from_bytes, from_url
from .responses_items import content_parts

#: What the speakers are called.
ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bard": "assistant",
    "bing": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "function_call": "assistant",
    "tool_call": "assistant",
    "tool_calls": "assistant",
    "observation": "tool",
    "function_response": "tool",
    "tool_response": "tool",
    "tool_result": "tool",
    "ipython": "tool",
    "tool": "tool",
    "function": "tool",
}
_SAYS = frozenset({"value", "content", "text", "system_prompt", "tool_calls", "function_call"})
_CALLS = frozenset({"function_call", "tool_call", "tool_calls"})
#: Who says what, and nothing beside it that a model reads.
_PLAIN = frozenset({"from", "role", "speaker", "value", "content", "text", "loss_weight", "weight", "id", "timestamp"})
#: A turn is accounted for under its place beyond this number: smaller ones are the numbers of rows.
TURN = 1 << 40
#: A mark in the text that stands for the next of a row's media, and the columns that hold them.
_MARKS = {"<image>": ("image", ("images", "image")), "<video>": ("video", ("videos", "video")), "<audio>": ("audio", ("audios", "audio"))}


def speaker(turn: Any) -> str:
    """Who speaks, as the source has it; ``""`` if it does not say."""
    if type(turn) is not dict:
        return ""
    name = turn.get("from") or turn.get("role") or turn.get("speaker")
    return name if type(name) is str and name in ROLES else string(turn.get("from"), turn.get("role"), turn.get("speaker")).strip().lower()


def said(turn: Mapping[str, Any]) -> Any:
    """What is said. Some data sets give the system's words a key of their own."""
    for key in ("value", "content", "text", "system_prompt"):
        if (value := turn.get(key)) is not None:
            return value
    return None


def is_turn(value: Any) -> bool:
    """Say whether a value is a turn: it names a speaker that is known and says something, or calls."""
    return speaker(value) in ROLES and not value.keys().isdisjoint(_SAYS)


@dataclass(slots=True)
class Turns:
    """Reads the turns of one row into a `Builder`.

    Parameters
    ----------
    row : int
        The row's number, for references and diagnostics.
    own : bool
        True if the document is this one conversation: references then name the turn.
    """

    builder: Builder
    row: int
    own: bool = False
    model: str | None = None
    media: dict[str, list[Any]] = field(default_factory=dict)
    count: int = 0
    #: The response that is open, and the thread that it stands in.
    open: DraftMessage | None = None
    #: Names of calls without an id that have no result yet, in order, and names of those with one.
    pending: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def hold(self, row: Mapping[str, Any]) -> None:
        """Take the row's pictures, sounds and videos, which marks in the text stand for."""
        for kind, columns in _MARKS.values():
            held = next((row[column] for column in columns if row.get(column)), None)
            if held is not None:
                self.media[kind] = [*held] if isinstance(held, list) else [held]

    def add(self, turn: Any, *, thread: str = MAIN, parent: int | None = None) -> DraftMessage | None:
        """Read one turn; None, with a diagnostic, if it is none."""
        self.count += 1
        key, where = TURN + self.count, f"record {self.row}, turn {self.count}"
        name = speaker(turn)
        if turn is None and self.own and self.count in self.builder.document.skipped:
            return None
        if not name:
            self.builder.account(key, "skipped")
            self._report("turn", f"{where}: not a turn that says who speaks")
            return None
        role = ROLES.get(name)
        flags: Iterable[str] = ()
        if role is None:
            self._report("role", f"{where}: unknown speaker {name[:40]!r}, taken as text that no person wrote")
            role, flags = "user", (META,)
        if role == "assistant":
            return self._answer(turn, name, key, where, thread, parent)
        self.open = None
        parts = self._parts(said(turn), where)
        if role == "tool":
            call_id = string(turn.get("tool_call_id"), *listing(turn.get("tool_call_ids"))[:1])
            named = string(turn.get("name"), self.names.get(call_id))
            if not call_id and self.pending:
                named = string(named, self.pending.pop(0))
            shown = tuple(part for part in parts if isinstance(part, Text | Media | Opaque))
            parts = [ToolResult(call_id, named or None, shown)]
        return self._message(role, parts, key, turn, thread, parent, None, flags)

    def _answer(self, turn: dict[str, Any], name: str, key: int, where: str, thread: str, parent: int | None) -> DraftMessage:
        value = said(turn)
        parts: list[Part]
        if name in _CALLS:
            calls = calls_of(value)
            if not calls:
                self._report("call", f"{where}: a call that cannot be read, kept as text")
            parts = [*calls] or self._parts(value, where)
        else:
            parts = self._parts(value, where)
            if not turn.keys() <= _PLAIN:
                beside = parts_of({**turn, "content": None}, "assistant")
                parts[:0] = [part for part in beside if type(part) is Reasoning]
                parts += [part for part in beside if type(part) is not Reasoning]
        for part in parts:
            if type(part) is ToolCall:
                if part.id:
                    self.names[part.id] = part.name
                else:
                    self.pending.append(part.name)
        # Turns of the model that follow each other are one response.
        if self.open is not None and self.open.thread == thread:
            self.open.parts.extend(parts)
            self.builder.account(key, "messages", thread)
            self._refer(self.open)
            return self.open
        ts = epoch_ms(turn.get("timestamp"))
        call = self.builder.call(thread=thread, model=string(turn.get("model")) or self.model, ts=ts)
        self.open = self._message("assistant", parts, key, turn, thread, parent, call.index)
        return self.open

    def _message(
        self, role: Role, parts: list[Part], key: int, turn: Mapping[str, Any], thread: str, parent: int | None, call: int | None, flags: Iterable[str] = ()
    ) -> DraftMessage:
        ts = epoch_ms(turn.get("timestamp"))
        draft = self.builder.message(role, parts, key, id=string(turn.get("id")), thread=thread, parent=parent, ts=ts, call=call, flags=flags)
        draft.raw = ()
        self._refer(draft)
        return draft

    def _refer(self, draft: DraftMessage) -> None:
        number = self.count if self.own else self.row
        if number not in draft.raw:
            draft.raw += (number,)

    def _report(self, code: str, text: str) -> None:
        self.builder.report(self.count if self.own else self.row, code, text)

    def _parts(self, value: Any, where: str) -> list[Part]:
        """Parts of what is said: text with marks in it, or a list of parts whose content stands under ``value`` or where OpenAI has it."""
        found: list[Part] = []
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                found += self._text(item, where)
            elif isinstance(item, dict) and "value" in item and isinstance(item.get("type"), str):
                found += self._typed(item["type"], item["value"], where)
            elif isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str):
                found += self._text(item["text"], where)
            elif isinstance(item, dict) and item.get("type") in ("image", "video", "audio") and len([key for key in item if item[key] is not None]) == 1:
                found += self._next(item["type"], f"<{item['type']}>", where)
            elif item is not None:
                found += content_parts(item)
        return [part for part in found if part != Text("")]

    def _text(self, text: str, where: str) -> list[Part]:
        found: list[Part] = []
        for mark, (kind, _) in _MARKS.items():
            if mark in text and kind in self.media:
                head, *rest = text.split(mark)
                found += self._text(head, where) if head else []
                for piece in rest:
                    found += self._next(kind, mark, where)
                    found += self._text(piece, where) if piece else []
                return found
        return [Text(text)]

    def _next(self, kind: str, mark: str, where: str) -> list[Part]:
        held = self.media.get(kind)
        if not held:
            self._report("media", f"{where}: {mark} stands for a medium that the row does not hold")
            return [Text(mark)]
        return [medium(kind, held.pop(0))]

    def _typed(self, type_: str, value: Any, where: str) -> list[Part]:
        if type_ == "text" and isinstance(value, str):
            return [Text(value)]
        if type_ in ("reasoning", "thinking"):
            return [Reasoning(value if isinstance(value, str) else json_text(value))]
        if type_ in _CALLS:
            return [*calls_of(value)] or [Text(value if isinstance(value, str) else json_text(value))]
        if type_ == "tools":
            self.builder.tools += tool_specs(parsed(value))
            return []
        kind = type_.removesuffix("_url")
        if kind in ("image", "video", "audio"):
            return [medium(kind, value)]
        return content_parts({"type": type_, "text": value}) if type_ == "text" else [Text(value if isinstance(value, str) else json_text(value))]


def medium(kind: str, value: Any) -> Media:
    """A picture, sound or video: its path or address, or its bytes as datasets hold them."""
    held = mapping(value)
    data = held.get("bytes")
    if isinstance(data, bytes):
        return from_bytes(kind, None, data)
    return from_url(kind, string(value, held.get("url"), held.get("path"), mapping(held.get("image_url")).get("url")))


def parsed(value: Any) -> Any:
    """A value, or what the JSON text in its place says; the text itself if it is no JSON."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return parse(value.encode("utf-8", "surrogatepass")).value
    except NotJson:
        return value


def calls_of(value: Any) -> list[ToolCall]:
    """Calls as datasets write them: ``{"name", "arguments"}``, or a list of them, as JSON or as JSON text.

    Examples
    --------
    >>> [call.name for call in calls_of('[{"name": "a", "arguments": {}}, {"name": "b", "parameters": {}}]')]
    ['a', 'b']
    """
    held = parsed(value)
    found = []
    for item in held if isinstance(held, list) else [held]:
        call = mapping(parsed(item))
        inner = mapping(call.get("function")) or call
        if not string(inner.get("name")):
            return []
        args = next((inner[key] for key in ("arguments", "parameters", "args") if inner.get(key) is not None), None)
        found.append(tool_call(call.get("id"), inner.get("name"), args))
    return found


def tools_of(row: Mapping[str, Any]) -> list[Any]:
    """The tools of a row, as they stand there."""
    return [parsed(tool) for key in ("tools", "functions") for tool in listing(parsed(row.get(key)))]
