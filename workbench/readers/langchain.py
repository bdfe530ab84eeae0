"""LangChain messages and exported states of LangGraph, in each of the ways in which they are written.

Lists (``messages_to_dict``, ``dumpd``, ``model_dump``), states that hold one, the states or updates of a run one after the other. States repeat what was
said before: they become one conversation. What left a state is a compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, Compaction, Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .exchanges import digest
from .fields import epoch_ms, listing, mapping, string, tool_specs
from .langchain_messages import Messages, plain
from .source import Document

_LEVELS = 4
_LOOK = 200  # records that say whether a file is of messages or of states
#: Keys under which a state holds its messages, or another object that does.
_LISTS = ("messages", "chat_history", "history")
_HOLDERS = ("values", "state", "data", "kwargs", "channel_values", "checkpoint", "output", "outputs", "payload")
_OWN = frozenset({"additional_kwargs", "response_metadata", "usage_metadata", "invalid_tool_calls", "tool_call_chunks"})


class LangchainReader:
    """Reads LangChain and LangGraph."""

    info = ReaderInfo("langchain", "LangChain messages and exported LangGraph states, as JSON or JSONL")

    def detect(self, document: Document) -> Match | None:
        """Looks for messages as LangChain writes them, alone or in states."""
        if isinstance(document.value, dict):
            found = _messages_of(document.value)
            return _detect(found, "a state with") if found else _detect([document.value], "")
        head = [record.value for record in document.records[:100]]
        held = [messages for value in head if (messages := _messages_of(value)) is not None]
        if held and len(held) * 2 > len(head):
            return _detect([message for messages in held[:20] for message in messages[:50]], "states with")
        return _detect(head, "")

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per conversation. Of one list or state the records are its messages, else the states."""
        value = document.value
        if isinstance(value, dict):
            messages = _messages_of(value)
            builder = Builder(self.info.name, document, total=1 if messages is None else len(messages))
            _about(builder, value)
            reader = Messages(builder)
            places = enumerate([value] if messages is None else messages, 1)
            reader.read([(number, "", held) for number, held in places if held is not None or number not in document.skipped])
            _summaries(builder)
            return [builder.build()]
        head = document.records[:_LOOK]
        if sum(_messages_of(record.value) is not None for record in head) * 2 <= len(head):
            builder = Builder(self.info.name, document)
            Messages(builder).read([(record.number, "", record.value) for record in document.records])
            _summaries(builder)
            return [builder.build()]
        held = [(record.number, record.value, _messages_of(record.value)) for record in document.records]
        states = [_State(number, state, messages) for number, state, messages in held if messages is not None]
        return _read_states(document, states)


READER = LangchainReader()


@dataclass(frozen=True, slots=True)
class _State:
    """A record that holds messages."""

    number: int
    value: Any
    messages: list[Any]


def _messages_of(value: Any, level: int = 0) -> list[Any] | None:
    """The list of messages that a state, a snapshot or an update holds; None if it holds none or is a message."""
    if isinstance(value, list) and level == 0:  # a message of a stream, and where it came from
        return [value[0]] if len(value) == 2 and plain(value[0]) is not None and isinstance(value[1], dict) and plain(value[1]) is None else None
    if not isinstance(value, dict) or level > _LEVELS or plain(value) is not None:
        return None
    for key in _LISTS:
        held = value.get(key)
        if isinstance(held, list) and any(plain(item) is not None for item in held[:20]):
            return held
        if key in value and plain(held) is not None:
            return [held]
    inner = [value[key] for key in _HOLDERS if isinstance(value.get(key), dict)]
    if not inner and len(value) == 1:  # an update: what one node added
        inner = [*value.values()]
    return next((found for held in inner if (found := _messages_of(held, level + 1)) is not None), None) or ([] if value.get("messages") == [] else None)


def _detect(values: Sequence[Any], what: str) -> Match | None:
    known = [(value, message) for value in values if (message := plain(value)) is not None]
    if not known or len(known) * 2 <= len(values):
        return None
    if any("lc" in value or (isinstance(value.get("data"), dict) and "role" not in value and value.get("type") != "chat") for value, _ in known):
        return Match(0.95, (f"{what} serialized messages of LangChain".strip(),))
    flat = [value for value, _ in known if "role" not in value]
    if len(flat) * 2 > len(known) and any("type" in value for value in flat):
        marks = sorted({key for value in flat for key in _OWN & value.keys()})
        if marks:
            return Match(0.93, (f"{what} messages with a type and {', '.join(marks[:3])}".strip(),))
        return Match(0.6, (f"{what} messages with a type in the place of a role".strip(),))
    blocks = {string(mapping(part).get("type")) for value, _ in known for part in listing(value.get("content"))[:20]}
    calls = [mapping(call) for value, _ in known for call in listing(value.get("tool_calls"))]
    if blocks & {"thinking", "redacted_thinking"} and any(isinstance(call.get("function"), dict) for call in calls):
        return Match(0.5, (f"{what} OpenAI's messages and calls with Anthropic's thinking, as LangChain converts them".strip(),))
    return None


def _about(builder: Builder, state: Any) -> None:
    """What a state says beside its messages."""
    held = mapping(state)
    config = mapping(mapping(held.get("config")).get("configurable"))
    about = mapping(held.get("metadata"))
    builder.id = builder.id or string(held.get("thread_id"), config.get("thread_id"), about.get("thread_id"))
    builder.meta.setdefault("title", string(held.get("title"), about.get("title")))
    known = {spec.name for spec in builder.tools}
    builder.tools += [spec for spec in tool_specs(held.get("tools")) if spec.name not in known]


def _summaries(builder: Builder) -> None:
    """A summary in a list that does not hold what it stands for is a compaction too."""
    known = {item.summary for item in builder.compactions}
    for message in builder.messages:
        if COMPACT_SUMMARY in message.flags and message.index not in known:
            builder.compactions.append(Compaction(message.index - 1, "summary", summary=message.index, raw=message.raw))


def _read_states(document: Document, states: list[_State]) -> list[Transcript]:
    """States one after the other, or what was added to one."""
    if sum(_is_update(state.value) for state in states) * 2 > len(states):
        builder = Builder(READER.info.name, document)
        Messages(builder).read([(state.number, _place(at), message) for state in states for at, message in enumerate(state.messages, 1)])
        runs = [_Run(builder)]
    else:
        runs = _snapshots(document, states)
        for at, run in enumerate(runs):
            run.builder.total = run.states if at else document.total - sum(other.states for other in runs[1:])
            if len(runs) > 1 and not run.builder.id:
                run.builder.id = f"{document.path.stem}-{at}"
    known = {state.number for state in states if state.messages}
    for record in document.records:
        if record.number in known:
            continue
        if isinstance(record.value, dict) and plain(record.value) is None:
            runs[0].builder.account(record.number, "metadata")  # a state in which nothing was said yet, or an update that says nothing
        else:
            runs[0].builder.skip(record.number, "state", f"record {record.number}: not a state")
    for run in runs:
        _summaries(run.builder)
    return [run.builder.build(shared=at > 0) for at, run in enumerate(runs)]


def _snapshots(document: Document, states: list[_State]) -> list[_Run]:
    runs: list[_Run] = []
    owner: dict[tuple[str, int], _Run] = {}  # run by the ids of its messages
    times = [_time(state) for state in states]
    if None not in times:  # LangGraph lists the newest first
        states = [state for _, state in sorted(zip(times, states, strict=True), key=lambda item: item[0] or 0)]
    for state in states:
        keys = _keys(state.messages)
        if not keys and runs:
            continue
        run = next((owner[key] for key in keys if key in owner), None)
        if run is None and runs and runs[-1].keys and [*runs[-1].keys] == keys[: len(runs[-1].keys)]:
            run = runs[-1]
        if run is None:
            run = _Run(Builder(READER.info.name, document))
            runs.append(run)
        run.add(state, keys)
        owner.update({key: run for key, message in zip(keys, state.messages, strict=True) if string((plain(message) or {}).get("id"))})
    return runs


@dataclass(slots=True)
class _Run:
    """One conversation, seen state by state."""

    builder: Builder
    reader: Messages = field(init=False)
    states: int = 0
    #: Message of each key that the newest state holds, and of each that any held.
    keys: dict[tuple[str, int], int | None] = field(default_factory=dict)
    ever: dict[tuple[str, int], int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = Messages(self.builder)

    def add(self, state: _State, keys: list[tuple[str, int]]) -> None:
        self.states += 1
        self.builder.account(state.number, "metadata")
        _about(self.builder, state.value)
        if not self.keys.keys() <= {*keys}:
            self.reader.removing = None
            self.reader.alive = {str(key): index for key in keys if (index := self.ever.get(key)) is not None}
            self.reader.gone(state.number)
        for at, (key, message) in enumerate(zip(keys, state.messages, strict=True), 1):
            if key not in self.ever:
                before = len(self.builder.messages)
                self.reader.read([(state.number, _place(at), message)])
                self.ever[key] = len(self.builder.messages) - 1 if len(self.builder.messages) > before else None
        self.keys = {key: self.ever[key] for key in keys}


def _place(at: int) -> str:
    return f", message {at}"


def _is_update(value: Any) -> bool:
    """Say whether a record is what one step added, and not all that was said so far."""
    return isinstance(value, list) or (isinstance(value, dict) and len(value) == 1 and not value.keys() & {*_LISTS, *_HOLDERS})


def _time(state: _State) -> int | None:
    held = mapping(state.value)
    at = epoch_ms(held.get("created_at") or mapping(held.get("checkpoint")).get("ts"))
    step = mapping(held.get("metadata")).get("step")
    return at if at is not None else step if type(step) is int else None


def _keys(messages: list[Any]) -> list[tuple[str, int]]:
    """What makes each message the same one in the next state: its id, else what it says and how often that was said before."""
    seen: dict[str, int] = {}
    found = []
    for message in messages:
        held = plain(message) or {}
        key = string(held.get("id")) or digest([held.get("type"), held.get("content"), held.get("tool_call_id"), held.get("tool_calls")])
        seen[key] = seen.get(key, 0) + 1
        found.append((key, seen[key]))
    return found
