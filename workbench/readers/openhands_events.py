"""Events of OpenHands: actions and observations (until version 0), and the events of its SDK (version 1).

Several actions can come of one response: they name the same response and are one message. What an observation's cause or call id names is its call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, ERROR, MAIN, META, Compaction, Part, Reasoning, Text, ToolCall, ToolResult, Usage
from .build import Builder, DraftMessage
from .chat_messages import parts_of
from .fields import epoch_ms, json_text, listing, mapping, string, tool_call, tool_specs
from .media import from_url
from .responses_items import output_parts
from .usage import inclusive, tokens

#: Of the agent's own working, nothing that a model is sent.
_SILENT_ACTIONS = frozenset({"change_agent_state", "recall", "null", "pause", "resume", "condensation_request", "add_task", "modify_task"})
_SILENT_KINDS = frozenset(
    {"ConversationStateUpdateEvent", "PauseEvent", "CondensationRequest", "TokenEvent", "LLMCompletionLogEvent", "ConversationErrorEvent", "HookExecutionEvent"}
)


#: Kept messages of all condensations together; beyond it they are unknown, for a small file can ask for very many.
_MOST_WORK = 5_000_000


def usage_of(raw: Any) -> tuple[Usage | None, str | None]:
    """Usage as OpenHands keeps it of each response: the prompt counts in what the cache held."""
    held = mapping(raw)
    names = {"prompt_tokens": "prompt_tokens", "completion_tokens": "completion_tokens", "cache_read_tokens": "cached_input_tokens"}
    names |= {"cache_write_tokens": "cache_write_input_tokens", "reasoning_tokens": "reasoning_output_tokens"}
    return inclusive({name: held.get(key) for key, name in names.items()}) if held else (None, None)


@dataclass(slots=True)
class Usages:
    """What each response used, where it is listed beside the events: by the response's id, or in order."""

    known: dict[str, Any] = field(default_factory=dict)
    _claimed: set[str] = field(default_factory=set)
    _order: list[str] = field(default_factory=list)
    _at: int = 0

    def add(self, listed: Iterable[Any]) -> None:
        for item in listed:
            id_ = string(mapping(item).get("response_id"))
            if id_ and id_ not in self.known:
                self.known[id_] = item
                self._order.append(id_)

    def claim(self, id: str) -> Any:
        """The entry of a response."""
        self._claimed.add(id)
        return self.known.get(id)

    def reserve(self, ids: Iterable[str]) -> None:
        """Say which responses events name; the others are those of events that name none."""
        self._claimed.update(ids)

    def next(self) -> tuple[str, Any]:
        """The next response that no event names."""
        while self._at < len(self._order):
            id_ = self._order[self._at]
            self._at += 1
            if id_ not in self._claimed:
                return id_, self.claim(id_)
        return "", None

    def rest(self) -> list[tuple[str, Any]]:
        """Responses of which nothing else is known."""
        return [(id_, self.known[id_]) for id_ in self._order if id_ not in self._claimed]


@dataclass(slots=True)
class Events:
    """Reads event by event into a `Builder`."""

    builder: Builder
    usages: Usages = field(default_factory=Usages)
    #: Message of each event, by the event's id; of each response, by the response's id; name of each call, by its id.
    places: dict[str, int] = field(default_factory=dict)
    answers: dict[str, DraftMessage] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    #: Messages of each thread; those that a condensation took away.
    own: dict[str, list[int]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    work: int = 0
    threads: list[str] = field(default_factory=lambda: [MAIN])
    #: Sums so far, and what was added since the last response, by the purpose of the requests.
    sums: dict[str, dict[str, int]] = field(default_factory=dict)
    pending: list[tuple[str, Usage]] = field(default_factory=list)

    @property
    def thread(self) -> str:
        return self.threads[-1]

    def event(self, value: Any, record: int) -> None:
        """Read one event."""
        if not isinstance(value, dict):
            self.builder.skip(record, "event", f"record {record}: not an event ({type(value).__name__})")
        elif isinstance(value.get("kind"), str):
            self._sdk(value, record)
        elif value.get("action") is not None:
            self._action(value, record)
        elif value.get("observation") is not None:
            self._observation(value, record)
        else:
            self.builder.unknown(record, string(value.get("kind")) or "without action and observation", self.thread)

    def finish(self) -> None:
        """Requests of which nothing but their usage is known."""
        for id_, item in self.usages.rest():
            usage, _ = usage_of(item)
            self.builder.call(id_, model=string(mapping(item).get("model")) or None, usage=usage)
        for purpose, usage in self.pending:
            self.builder.call(usage=usage, kind="compaction" if "condenser" in purpose else "response")
        self.pending = []

    # -- actions and observations

    def _action(self, value: dict[str, Any], record: int) -> None:
        action, source, args = string(value.get("action")), value.get("source"), mapping(value.get("args"))
        builder, ts = self.builder, epoch_ms(value.get("timestamp"))
        if action == "condensation":
            self._condensation(args, record, ts)
        elif action == "system":
            builder.tools += tool_specs(args.get("tools"))
            self._say("system", _text(args.get("content")), value, record)
        elif action == "message" and source == "user":
            self._say("user", _text(args.get("content"), args.get("image_urls") or args.get("images_urls")), value, record)
        elif action in _SILENT_ACTIONS:
            builder.account(record, "metadata", self.thread)
        elif source in ("user", "environment") and action != "message":
            self._say("user", _text(string(args.get("command"), value.get("message"))), value, record, [META])
        else:
            self._answer(action, args, value, record)

    def _say(self, role: Any, parts: list[Part], value: dict[str, Any], record: int, flags: Iterable[str] = ()) -> None:
        draft = self.builder.message(role, parts, record, thread=self.thread, ts=epoch_ms(value.get("timestamp")), flags=flags)
        self._place(draft, value)

    def _place(self, draft: DraftMessage, value: dict[str, Any]) -> None:
        self.places[_id(value)] = draft.index
        own = self.own.setdefault(draft.thread, [])
        if not own or own[-1] != draft.index:
            own.append(draft.index)

    def _answer(self, action: str, args: Any, value: dict[str, Any], record: int) -> None:
        """An action of the agent: a part of a response, or one of its own."""
        about, builder, ts = mapping(value.get("tool_call_metadata")), self.builder, epoch_ms(value.get("timestamp"))
        response = mapping(about.get("model_response"))
        id_, call_id = string(response.get("id")), string(about.get("tool_call_id"))
        name = string(about.get("function_name")) or action
        draft = self.answers.get(id_) if id_ else None
        if draft is None:
            message = mapping(mapping(next(iter(listing(response.get("choices"))), None)).get("message"))
            said = [part for part in parts_of(dict(message), "assistant") if not (type(part) is ToolCall and not part.name)]
            if not said and action != "message":
                said = _text(args.get("thought"))
            if action == "message" and not said:
                said = _text(args.get("content"), args.get("image_urls"))
            call = self._call(id_, response, ts)
            draft = builder.message("assistant", said, record, thread=self.thread, ts=ts, call=call)
            if id_:
                self.answers[id_] = draft
        else:
            builder.extend(draft, [], record)
        self._place(draft, value)
        if action == "message":
            return
        call_id = call_id or f"event-{_id(value)}"
        if not any(type(part) is ToolCall and part.id == call_id for part in draft.parts):
            draft.parts.append(tool_call(call_id, name, {key: held for key, held in args.items() if key != "thought"}))
        self.calls[_id(value)] = call_id
        self.names[call_id] = next(part.name for part in draft.parts if type(part) is ToolCall and part.id == call_id)
        if action == "delegate":
            self.threads.append(builder.new_thread(string(args.get("agent")) or "delegate", "subagent", parent=self.thread, spawned_by=call_id))

    def _call(self, id_: str, response: Any, ts: int | None) -> int:
        usage, why = inclusive(response.get("usage"))
        listed = self.usages.claim(id_) if id_ else None
        if not id_ and self.usages.known:
            id_, listed = self.usages.next()
        if usage is None and listed is not None:
            usage, why = usage_of(listed)
        if usage is None and self.pending:
            *others, (_, usage) = self.pending
            self.pending = []
            for purpose, other in others:
                self.builder.call(usage=other, thread=self.thread, kind="compaction" if "condenser" in purpose else "response")
        if why:
            self.builder.report(None, "usage", f"response {id_[:40]!r}: {why}")
        choice = mapping(next(iter(listing(response.get("choices"))), None))
        model = string(response.get("model"), mapping(listed).get("model"), self.builder.meta.get("model"))
        return self.builder.call(
            id_, thread=self.thread, model=model or None, usage=usage, stop_reason=string(choice.get("finish_reason")) or None, ts=ts
        ).index

    def _observation(self, value: dict[str, Any], record: int) -> None:
        kind, extras = string(value.get("observation")), mapping(value.get("extras"))
        builder, cause = self.builder, str(value.get("cause"))
        call_id = string(mapping(value.get("tool_call_metadata")).get("tool_call_id")) or self.calls.get(cause, "")
        if kind == "delegate" and len(self.threads) > 1:
            self.threads.pop()
        if kind in ("null", "agent_state_changed"):
            builder.account(record, "metadata", self.thread)
        elif kind == "recall":
            texts = [string(extras.get(name)) for name in ("repo_instructions", "additional_agent_instructions", "conversation_instructions")]
            texts += [string(mapping(item).get("content")) for item in listing(extras.get("microagent_knowledge"))]
            parts: list[Part] = [Text(text) for text in texts if text]
            if parts:
                self._say("user", parts, value, record, [META])
            else:
                builder.account(record, "metadata", self.thread)
        elif call_id:
            parts = _text(value.get("content"), extras.get("image_urls"))
            self._result(call_id, parts, kind == "error" or value.get("success") is False, value, record)
        elif parts := _text(value.get("content")):
            self._say("user", parts, value, record, [META, ERROR] if kind == "error" else [META])
        else:
            builder.account(record, "metadata", self.thread)

    def _result(self, call_id: str, parts: Iterable[Part], error: bool, value: dict[str, Any], record: int) -> None:
        held = tuple(part for part in parts if not isinstance(part, Reasoning | ToolCall | ToolResult))
        result = ToolResult(call_id, self.names.get(call_id) or string(value.get("tool_name")) or None, held, error)
        self._say("tool", [result], value, record)

    # -- events of the SDK

    def _sdk(self, value: dict[str, Any], record: int) -> None:
        kind, builder = string(value.get("kind")), self.builder
        if kind == "SystemPromptEvent":
            tools = [tool for tool in listing(value.get("tools")) if isinstance(tool, dict)]
            builder.tools += tool_specs([{**tool, "name": string(tool.get("name"), tool.get("title"))} if "function" not in tool else tool for tool in tools])
            parts = [*output_parts([value.get("system_prompt")]), *output_parts([value.get("dynamic_context")] if value.get("dynamic_context") else [])]
            self._say("system", [*parts], value, record)
        elif kind == "MessageEvent":
            self._message(value, record)
        elif kind == "ActionEvent":
            self._sdk_action(value, record)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            held = mapping(value.get("observation"))
            error = string(value.get("error"), value.get("rejection_reason"))
            parts = [Text(error)] if error else [*output_parts(held.get("content"))]
            if not held.get("content") and not error and held:
                parts = [Text(json_text({key: item for key, item in held.items() if key != "kind"}))]
            self._result(string(value.get("tool_call_id")), parts, bool(error) or held.get("is_error") is True, value, record)
        elif kind == "Condensation":
            self._condensation(value, record, epoch_ms(value.get("timestamp")))
        elif kind in _SILENT_KINDS or kind.endswith("Event"):
            if kind not in _SILENT_KINDS:
                builder.unknown(record, kind, self.thread)
            builder.account(record, "metadata", self.thread)
            self._stats(value)
        else:
            builder.unknown(record, kind, self.thread)

    def _message(self, value: dict[str, Any], record: int) -> None:
        message = dict(mapping(value.get("llm_message")))
        role = string(message.get("role"))
        if role == "assistant" or (not role and value.get("source") == "agent"):
            id_ = string(value.get("llm_response_id"))
            ts = epoch_ms(value.get("timestamp"))
            draft = self.builder.message("assistant", _spoken(message), record, thread=self.thread, ts=ts, call=self._call(id_, {}, ts))
            self._place(draft, value)
            return
        added = [part for item in listing(value.get("extended_content")) for part in output_parts([item])]
        flags = [] if value.get("source") == "user" else [META]
        self._say("system" if role == "system" else "user", [*_media(message.get("content")), *added], value, record, flags)

    def _sdk_action(self, value: dict[str, Any], record: int) -> None:
        id_, ts = string(value.get("llm_response_id")), epoch_ms(value.get("timestamp"))
        call = mapping(value.get("tool_call"))
        call_id = string(value.get("tool_call_id"), call.get("id"))
        given = (call.get("arguments"), mapping(call.get("function")).get("arguments"), value.get("action"))
        arguments = next((held for held in given if held is not None), None)
        part = tool_call(call_id, string(value.get("tool_name"), call.get("name")), arguments)
        self.names[call_id] = part.name
        said = _spoken({**value, "content": value.get("thought"), "tool_calls": None})
        draft = self.answers.get(id_) if id_ else None
        if draft is None:
            draft = self.builder.message("assistant", [*said, part], record, thread=self.thread, ts=ts, call=self._call(id_, {}, ts))
            self.answers[id_] = draft
        else:
            self.builder.extend(draft, [*(held for held in said if held not in draft.parts), part], record)
        self._place(draft, value)

    def _stats(self, value: dict[str, Any]) -> None:
        """Running sums of the conversation; what was added since the last ones is the usage of the next response."""
        held = mapping(value.get("value"))
        by_purpose = mapping(held.get("usage_to_metrics")) or mapping(mapping(held.get("stats")).get("usage_to_metrics"))
        for purpose, metrics in by_purpose.items():
            self.usages.add(listing(mapping(metrics).get("token_usages")))
            now = {name: count for name, item in mapping(mapping(metrics).get("accumulated_token_usage")).items() if (count := tokens(item)) is not None}
            if not self.builder.meta.get("model") and purpose in ("default", "agent"):
                self.builder.meta["model"] = string(mapping(metrics).get("model_name"))
            before = self.sums.get(purpose)
            self.sums[purpose] = now
            if before is None and (self.builder.calls or len(self.builder.messages) > 20):
                continue  # the file does not begin where the sums do
            names = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
            added = {name: now.get(name, 0) - (before or {}).get(name, 0) for name in names if name in now}
            if added.get("prompt_tokens", 0) > 0 and min(added.values()) >= 0 and not self.usages.known:
                usage, _ = usage_of(added)
                if usage is not None:
                    self.pending.append((purpose, usage))

    # -- compaction

    def _condensation(self, args: Any, record: int, ts: int | None) -> None:
        """Some events are forgotten, and a summary may stand in their place."""
        builder, thread, here = self.builder, self.thread, self.own.setdefault(self.thread, [])
        ids = [str(id_) for id_ in listing(args.get("forgotten_event_ids"))]
        first, last = tokens(args.get("forgotten_events_start_id")), tokens(args.get("forgotten_events_end_id"))
        self.work += len(here)
        if first is not None and last is not None and self.work < _MOST_WORK:
            ids += [id_ for id_ in self.places if id_.isdecimal() and len(id_) < 18 and first <= int(id_) <= last]
        self.gone.update(self.places[id_] for id_ in ids if id_ in self.places)
        kept = tuple(index for index in here if index not in self.gone) if self.work < _MOST_WORK else ()
        before = here[-1] if here else -1
        summary, text = None, string(args.get("summary"))
        call = None
        at = next((at for at, (purpose, _) in enumerate(self.pending) if "condenser" in purpose), None)
        if at is not None:
            call = builder.call(string(args.get("llm_response_id")), thread=thread, usage=self.pending.pop(at)[1], ts=ts, kind="compaction").index
        if text:
            summary = builder.message("user", [Text(text)], record, thread=thread, ts=ts, flags=[COMPACT_SUMMARY]).index
        builder.account(record, "compactions", thread)
        kind = "summary" if text else "trim"
        builder.compactions.append(Compaction(before, kind, summary=summary, kept=kept, thread=thread, call=call, raw=(record,)))


def _id(value: dict[str, Any]) -> str:
    return str(value.get("id"))[:100]


def _text(content: Any, images: Any = None) -> list[Part]:
    text = content if isinstance(content, str) else "" if content is None else json_text(content)
    parts: list[Part] = [Text(text)] if text else []
    return parts + [from_url("image", url) for url in listing(images)]


def _media(content: Any) -> list[Part]:
    """Content of an SDK message: texts, and pictures by their addresses."""
    parts: list[Part] = []
    for item in content if isinstance(content, list) else [content]:
        urls = listing(mapping(item).get("image_urls"))
        parts += [from_url("image", url) for url in urls] if urls else [*output_parts([item] if isinstance(item, dict) else item)]
    return [part for part in parts if part != Text("")]


def _spoken(message: dict[str, Any]) -> list[Part]:
    """The parts of a response without its calls: reasoning, then text. A model that writes its reasoning into the text has it there only."""
    blocks = message.get("thinking_blocks")
    content = [part for part in _media(message.get("content")) if isinstance(part, Text)]
    plain = string(message.get("reasoning_content"))
    if plain and any(plain.strip() in part.text for part in content):
        message = {**message, "reasoning_content": None}
    held = {"reasoning_content": message.get("reasoning_content"), "thinking_blocks": blocks}
    return [*parts_of(held, "assistant"), *_media(message.get("content")), *parts_of({"tool_calls": message.get("tool_calls")}, "assistant")]
