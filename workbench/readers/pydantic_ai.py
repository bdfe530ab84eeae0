"""Message histories of pydantic-ai: requests and responses of parts, as its type adapter and ``all_messages_json`` write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, META, Compaction, Media, Opaque, Part, Reasoning, Text, ToolResult, Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .exchanges import digest
from .fields import epoch_ms, json_text, listing, mapping, size_of, string, tool_call
from .media import from_base64, from_url
from .source import Document
from .usage import pydantic_ai as usage_of
from .usage import tokens

_LISTS = ("messages", "message_history", "all_messages", "new_messages", "history", "_state", "state", "result")
_SERVER_CALLS = frozenset({"builtin-tool-call", "native-tool-call", "server-tool-call"})
_SERVER_RESULTS = frozenset({"builtin-tool-return", "native-tool-return", "server-tool-return"})


class PydanticAiReader:
    """Reads pydantic-ai."""

    info = ReaderInfo("pydantic-ai", "pydantic-ai message histories, as JSON or JSONL")

    def detect(self, document: Document) -> Match | None:
        """Looks for requests and responses whose parts say their kind."""
        head = [document.value] if isinstance(document.value, dict) else [record.value for record in document.records[:100]]
        values = [message for value in head for message in (_messages_of(value) or [value])[:50]]
        own = sum(map(_is_message, values))
        return Match(0.97, ("requests and responses of parts with a part_kind",)) if own * 2 > len(values) else None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per conversation. Of one list the records are its messages; of lines with a list each, the lines."""
        value = document.value
        held = _messages_of(value) if isinstance(value, dict) else None
        if held is not None:
            builder = Builder(self.info.name, document, total=len(held))
            history = _History(builder)
            for number, message in enumerate(held, 1):
                if message is not None or number not in document.skipped:
                    history.add(message, number)
            return [builder.build()]
        rows = document.rows()
        head = rows[:200]
        if sum(_messages_of(record.value) is not None for record in head) * 2 <= len(head):
            builder = Builder(self.info.name, document)
            history = _History(builder)
            for record in rows:
                history.add(record.value, record.number)
            return [builder.build()]
        return _read_lists(document)


READER = PydanticAiReader()


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("kind") not in ("request", "response") or not isinstance(value.get("parts"), list):
        return False
    return not value["parts"] or any("part_kind" in part for part in value["parts"] if isinstance(part, dict))


def _messages_of(value: Any, level: int = 0) -> list[Any] | None:
    """The list of messages that a record is or holds."""
    if isinstance(value, list):
        return value if any(map(_is_message, value[:20])) else None
    if not isinstance(value, dict) or level > 2 or _is_message(value):
        return None
    return next((found for key in _LISTS if (found := _messages_of(value.get(key), level + 1)) is not None), None)


def _read_lists(document: Document) -> list[Transcript]:
    """Lines with a list each: what was said in one run, or in all so far."""
    runs: list[_History] = []
    lines: list[int] = []
    others: list[int] = []
    places: dict[str, int] = {}  # run by the name of its conversation, or by its first message
    for record in document.records:
        messages = _messages_of(record.value)
        if messages is None:
            others.append(record.number)
            continue
        first = mapping(next((message for message in messages if isinstance(message, dict)), None))
        named, key = string(first.get("conversation_id")), digest(messages[0])
        at = places.get(named or key)
        if at is None and not named and runs and not any(mapping(part).get("part_kind") == "system-prompt" for part in listing(first.get("parts"))):
            at = len(runs) - 1  # no beginning of its own
        if at is None:
            at = len(runs)
            runs.append(_History(Builder(READER.info.name, document)))
            lines.append(0)
        places.setdefault(named or key, at)
        lines[at] += 1
        runs[at].take(messages, record.number)
    for at, run in enumerate(runs):
        run.builder.total = lines[at] if at else document.total - sum(lines[1:])
        if len(runs) > 1 and not run.builder.id:
            run.builder.id = f"{document.path.stem}-{at}"
    for number in others:
        runs[0].builder.skip(number, "messages", f"record {number}: no messages in it")
    return [run.builder.build(shared=at > 0) for at, run in enumerate(runs)]


@dataclass(slots=True)
class _History:
    """One conversation, read message by message."""

    builder: Builder
    names: dict[str, str] = field(default_factory=dict)
    #: The instructions of the newest request.
    told: str = ""
    #: What makes each message so far the same one when a later line repeats it.
    said: list[str] = field(default_factory=list)

    def take(self, messages: list[Any], number: int) -> None:
        """Read what is new in a line."""
        self.builder.account(number, "metadata")
        keys = [digest(message) for message in messages]
        repeats = next((at for at, (key, said) in enumerate(zip(keys, self.said, strict=False)) if key != said), min(len(keys), len(self.said)))
        for at, message in enumerate(messages[repeats:], repeats + 1):
            self.add(message, number, place=f", message {at}")
        self.said += keys[repeats:]

    def add(self, value: Any, number: int, *, place: str = "") -> None:
        where = f"record {number}{place}"
        message = mapping(value)
        if message.get("kind") not in ("request", "response") or not isinstance(message.get("parts"), list):
            self.builder.skip(number, "message", f"{where}: neither a request nor a response with parts")
            return
        self.builder.id = self.builder.id or string(message.get("conversation_id"))
        self.builder.account(number, "metadata")
        parts = [part for part in message["parts"] if isinstance(part, dict)]
        if len(parts) < len(message["parts"]):
            self.builder.report(number, "part", f"{where}: {len(message['parts']) - len(parts):,} of its parts are no objects")
        if message["kind"] == "request":
            self._request(message, parts, number, where)
        else:
            self._response(message, parts, number, where)

    def _request(self, message: Mapping[str, Any], parts: list[dict[str, Any]], number: int, where: str) -> None:
        builder, ts = self.builder, epoch_ms(message.get("timestamp"))
        first = not builder.messages
        if len(parts) > 1:  # what a person says beside results comes after them, as a provider gets it
            parts = sorted(parts, key=lambda part: not _is_result(part))
        for part in parts:
            kind, at = string(part.get("part_kind")), epoch_ms(part.get("timestamp")) or ts
            content = part.get("content")
            if kind in ("tool-return", "retry-prompt") and _is_result(part):
                name = string(part.get("tool_name")) or self.names.get(string(part.get("tool_call_id")))
                failed = kind == "retry-prompt" or string(part.get("outcome")) in ("failed", "denied", "error")
                builder.message("tool", [ToolResult(string(part.get("tool_call_id")), name, _returned(content), failed)], number, ts=at)
            elif kind == "system-prompt":
                builder.message("system", _said(content), number, ts=at)
            else:
                if kind not in ("user-prompt", "retry-prompt"):
                    builder.report(number, "part", f"{where}: a part of unknown kind {kind[:40]!r}, taken as text that no person wrote")
                builder.message("user", _said(content), number, ts=at, flags=() if kind == "user-prompt" else (META,))
        told = string(message.get("instructions"))
        if told and not builder.system:
            builder.system.append(told)
        if first or told != self.told:
            self.told = told
            lead: list[str] = []
            for held in builder.messages:
                if held.role != "system":
                    break
                lead += [item.text for item in held.parts if type(item) is Text]
            builder.request_prefix([told, *lead] if told else lead, builder.tools, number)

    def _response(self, message: Mapping[str, Any], parts: list[dict[str, Any]], number: int, where: str) -> None:
        builder = self.builder
        usage, why = usage_of(message.get("usage"))
        if why:
            builder.report(number, "usage", f"{where}: {why}")
        elif usage is not None and (stated := tokens(mapping(message.get("usage")).get("total_tokens"))) is not None and stated != usage.total:
            builder.report(number, "usage_total", f"{where}: the stated total is {stated:,} tokens, its parts add up to {usage.total or 0:,}")
        call = builder.call(
            string(message.get("provider_response_id"), message.get("vendor_id")),
            model=string(message.get("model_name")) or None,
            usage=usage,
            stop_reason=string(message.get("finish_reason")) or None,
            ts=epoch_ms(message.get("timestamp")),
            kind="compaction" if parts and all(part.get("part_kind") == "compaction" for part in parts) else "response",
        )
        rest: list[Part] = []
        for part in parts:
            if part.get("part_kind") == "compaction":
                self._compaction(part, call.index, number)
            else:
                rest += self._answered(part, number, where)
        if rest or call.kind == "response":
            builder.message("assistant", rest, number, id=call.id, ts=call.ts, call=call.index)

    def _compaction(self, part: dict[str, Any], call: int, number: int) -> None:
        """From the next request on it stands for all that was before it; some providers hide its text."""
        builder, text = self.builder, string(part.get("content"))
        after = len(builder.messages) - 1
        hidden = mapping(part.get("provider_details")).get("encrypted_content")
        held: list[Part] = [Text(text)] if text else [Opaque("compaction", size_of(hidden if isinstance(hidden, str) else part))]
        draft = builder.message("assistant", held, number, id=string(part.get("id")), ts=builder.calls[call].ts, call=call, flags=(COMPACT_SUMMARY,))
        builder.compactions.append(Compaction(after, "summary" if text else "opaque", "server", summary=draft.index, call=call, raw=(number,)))

    def _answered(self, part: dict[str, Any], number: int, where: str) -> Iterable[Part]:
        kind, content = string(part.get("part_kind")), part.get("content")
        if kind == "text":
            return [Text(content if isinstance(content, str) else json_text(content))] if content else []
        if kind == "thinking":
            hidden = string(part.get("signature"))
            return [Reasoning(string(content) or None, size_of(hidden) if hidden else None)]
        if kind == "tool-call" or kind in _SERVER_CALLS:
            args = part.get("args")
            if isinstance(args, dict) and {*args} in ({"args_dict"}, {"args_json"}):  # as the first versions wrap it
                (args,) = args.values()
            call = tool_call(part.get("tool_call_id"), part.get("tool_name"), args, server_side=kind in _SERVER_CALLS)
            self.names[call.id] = call.name
            return [call]
        if kind in _SERVER_RESULTS:
            failed = string(part.get("outcome")) in ("failed", "denied", "error")
            return [ToolResult(string(part.get("tool_call_id")), string(part.get("tool_name")) or None, _returned(content), failed)]
        if kind == "file":
            return _said([content])
        self.builder.report(number, "part", f"{where}: a part of unknown kind {kind[:40]!r}")
        return [Opaque(kind[:60] or "part", size_of(part))]


def _is_result(part: dict[str, Any]) -> bool:
    """Say whether a part answers a call: a retry that names no tool is what the library tells the model."""
    return part.get("part_kind") == "tool-return" or (part.get("part_kind") == "retry-prompt" and bool(string(part.get("tool_name"))))


def _said(content: Any) -> list[Text | Media | Opaque]:
    """Parts of a prompt: text, or a list of text and media."""
    found: list[Text | Media | Opaque] = []
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            found += [Text(item)] if item else []
        elif isinstance(item, dict) and (part := _medium(item)) is not None:
            found += [] if part == Text("") else [part]
        elif item is not None:
            found.append(Text(json_text(item)))
    return found


def _medium(item: dict[str, Any]) -> Text | Media | Opaque | None:
    """A part of a list that says its kind; None if it does not."""
    kind, mime = string(item.get("kind")), item.get("media_type")
    if kind == "binary":
        head = string(mime).split("/", 1)[0].lower()
        return from_base64(head if head in ("image", "audio", "video") else "document", mime, item.get("data"))
    if kind.endswith("-url") and "url" in item:
        head = kind.removesuffix("-url")
        return from_url(head if head in ("image", "audio", "video") else "document", item["url"], mime)
    if kind == "uploaded-file":
        return from_url("document", item.get("file_id"), mime)
    if kind in ("text", "text-content"):
        return Text(string(item.get("content"), item.get("text")))
    return Text("") if kind == "cache-point" else None


def _returned(content: Any) -> tuple[Text | Media | Opaque, ...]:
    """What a tool returned: text, media in a list, and any other value as JSON, as the model gets it."""
    if isinstance(content, list) and any(isinstance(item, dict) and _medium(item) is not None for item in content):
        return tuple(_said(content))
    if isinstance(content, dict) and (part := _medium(content)) is not None:
        return (part,)
    return () if content is None or content == "" else (Text(content if isinstance(content, str) else json_text(content)),)
