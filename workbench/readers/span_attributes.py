"""What the attributes of a span say about a request: OpenTelemetry's names, old and new, OpenInference's, Vercel's.

Attributes are flat (``llm.input_messages.0.message.role``), nested, or JSON text in a value; here they are one tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..model import Text, ToolResult
from .fields import json_text, listing, mapping, shallow, string, tool_specs
from .span_items import Found, Memory
from .span_messages import decoded, id_of, read_input, read_output, results_of
from .span_usage import counted
from .spans import Ask, Kind

_MOST_KEYS = 12  # dots in a name beyond these are part of it
_ASKING = frozenset(
    {"chat", "text_completion", "generate_content", "completion", "completions", "inference", "responses", "messages", "invoke_model", "converse"}
)
_AGENTS = frozenset({"invoke_agent", "create_agent", "invoke_workflow", "agent"})
#: Token counts: where the conventions keep them.
_USAGE = {
    "input": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.promptTokens",
        "ai.usage.inputTokens",
    ),
    "output": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.completionTokens",
        "ai.usage.outputTokens",
    ),
    "read": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.input_tokens.cached",
        "gen_ai.usage.details.cache_read_tokens",
        "gen_ai.usage.details.cache_read_input_tokens",
        "gen_ai.usage.details.cached_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
    ),
    "write": (
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "gen_ai.usage.details.cache_creation_input_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    "write_1h": ("gen_ai.usage.details.cache_write_1h_tokens",),
    "reasoning": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "gen_ai.usage.output_tokens.reasoning",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
    ),
    "total": ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens"),
}


class Attributes:
    """The attributes of one span (and of its events, by name) as a tree that is asked by dotted names.

    Examples
    --------
    >>> held = Attributes({"llm.input_messages.1.message.role": "user", "llm.model_name": "m", "llm": {"provider": "p"}})
    >>> held.get("llm.model_name"), held.get("llm.provider"), held.get("llm.input_messages")
    ('m', 'p', [{'message': {'role': 'user'}}])
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._tree: dict[str, Any] = {}
        for name, value in values.items():
            _put(self._tree, str(name).split(".", _MOST_KEYS), value)

    def get(self, *names: str) -> Any:
        """The first of the attributes that is there: a value, or a list or object if the name begins several."""
        for name in names:
            at: Any = self._tree
            for key in name.split("."):
                at = at.get(key) if isinstance(at, _Node | dict) else None
                if at is None:
                    break
            at = at.get("", None if len(at) == 0 else _plain(at)) if isinstance(at, _Node) else at
            if at is not None:
                return at
        return None

    def text(self, *names: str) -> str:
        """The first of them that is text with something in it."""
        return next((value for name in names if isinstance(value := self.get(name), str) and value), "")

    def tree(self, name: str) -> Any:
        """All that begins with a name, whatever the name itself holds."""
        at: Any = self._tree
        for key in name.split("."):
            at = at.get(key) if isinstance(at, _Node | dict) else None
        return _plain(at) if isinstance(at, _Node) else at


class _Node(dict[str, Any]):
    """An inner node of the tree; the value of its own name stands under ``""``."""


def _put(tree: dict[str, Any], keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        held = tree.get(key)
        if not isinstance(held, _Node):
            node = _Node() if held is None else _Node({**held, "": held} if isinstance(held, dict) else {"": held})
            tree[key] = held = node
        tree = held
    held = tree.get(keys[-1])
    if isinstance(held, _Node):
        held.setdefault("", value)
        if isinstance(value, dict):
            for name, inner in value.items():
                held.setdefault(name, inner)
    else:
        tree.setdefault(keys[-1], value)


def _plain(node: Any) -> Any:
    """A node as lists and objects: what has numbers for names is a list."""
    if not isinstance(node, _Node):
        return node
    held = {key: _plain(value) for key, value in node.items() if key}
    if not held:
        return node.get("")
    if all(key.isascii() and key.isdigit() and len(key) < 10 for key in held):
        return [held[key] for key in sorted(held, key=int)]
    return held


def kind_of(held: Attributes, name: str = "") -> Kind:
    """What a span is, by the conventions that it may follow."""
    operation = held.text("gen_ai.operation.name", "traceloop.span.kind", "langfuse.observation.type", "llm.request.type").lower()
    shown = held.text("openinference.span.kind").upper()
    vercel = held.text("ai.operationId")
    if operation in _ASKING or operation == "generation" or shown == "LLM" or vercel.endswith((".doGenerate", ".doStream")):
        return "llm"
    if operation in ("execute_tool", "tool") or shown in ("TOOL", "RETRIEVER") or vercel == "ai.toolCall" or held.text("gen_ai.tool.call.id"):
        return "tool"
    if operation in _AGENTS or shown == "AGENT" or (not operation and held.text("gen_ai.agent.name", "agent_name") and held.get("pydantic_ai.all_messages")):
        return "agent"
    if operation or shown or vercel:
        return ""
    return "llm" if held.text("gen_ai.request.model", "llm.model_name") and (usage_of(held)[0] is not None or _said(held)) else ""


def _said(held: Attributes) -> bool:
    names = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt", "gen_ai.completion", "llm.input_messages", "llm.output_messages")
    return held.get(*names) is not None


def usage_of(held: Attributes) -> Any:
    """The token counts of a span, and what was wrong with them."""
    return counted({name: _number(value) for name, names in _USAGE.items() if (value := held.get(*names)) is not None})


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16 else value


def ask_of(held: Attributes, events: Iterable[Mapping[str, Any]] = (), memory: Memory | None = None) -> Ask:
    """The request that a span tells of.

    Parameters
    ----------
    events : iterable of mapping
        The span's events: older instruments keep the messages there. ``event.name`` is the name.
    memory : Memory, optional
        Of the requests that were read before.
    """
    told = [dict(event) for event in events]
    sent, got = _conversation(held, told, memory)
    system = [part.text for item in read_input(held.get("gen_ai.system_instructions")).items for part in item.parts if type(part) is Text]
    usage, fault = usage_of(held)
    reasons = decoded(held.get("gen_ai.response.finish_reasons", "llm.response.finish_reason", "ai.response.finishReason"))
    return Ask(
        sent.items,
        got.items,
        [text for text in system or sent.system if text],
        [*_tools(held)] or sent.tools,
        model_name(held.text("gen_ai.response.model", "ai.response.model", "llm.model_name", "gen_ai.request.model", "ai.model.id", "model_name")),
        usage,
        fault,
        held.text("gen_ai.response.id", "ai.response.id", "llm.response.id"),
        string(*listing(reasons)) if isinstance(reasons, list) else string(reasons),
    )


def model_name(name: str) -> str:
    """A model's name without the path of the project that it stands in.

    Examples
    --------
    >>> model_name("projects/p/locations/l/publishers/google/models/gemini-2.5-flash")
    'gemini-2.5-flash'
    """
    return name.rpartition("/models/")[2] or name


def _conversation(held: Attributes, events: list[dict[str, Any]], memory: Memory | None) -> tuple[Found, Found]:
    """What went in and what came out, by the first convention that says it."""
    details = [event for event in events if string(event.get("event.name")) == "gen_ai.client.inference.operation.details"]
    for source in (held, *(Attributes(event) for event in details)):
        sent, got = source.get("gen_ai.input.messages"), source.get("gen_ai.output.messages")
        if sent is not None or got is not None:
            return read_input(sent, memory), read_output(got)
    sent, got = held.get("llm.input_messages"), held.get("llm.output_messages")
    if sent is not None or got is not None:
        return read_input(_nested(decoded(sent)), memory), read_output(_nested(decoded(got)))
    sent, got = held.get("ai.prompt.messages", "ai.prompt"), held.get("ai.response.text", "ai.response.object")
    calls = [{**mapping(call), "type": "tool-call"} for call in listing(decoded(held.get("ai.response.toolCalls")))]
    if sent is not None or calls:
        return read_input(sent), read_output(
            [{"role": "assistant", "content": [*([{"type": "text", "text": got}] if isinstance(got, str) and got else []), *calls]}]
        )
    sent, got = held.get("gen_ai.prompt", "llm.prompts"), held.get("gen_ai.completion", "llm.completions")
    if sent is not None or got is not None:
        return read_input(_json_contents(sent), memory), read_output(_json_contents(got))
    listed = decoded(held.get("events", "all_messages_events"))
    named = (
        [dict(mapping(event)) for event in listed]
        if isinstance(listed, list)
        else [event for event in events if string(event.get("event.name")).startswith("gen_ai.")]
    )
    if named:
        return _of_events(named)
    if held.get("pydantic_ai.all_messages") is not None:
        return _apart(read_input(held.get("pydantic_ai.all_messages")))
    names = (
        ("input.value", "langfuse.observation.input", "traceloop.entity.input"),
        ("output.value", "langfuse.observation.output", "traceloop.entity.output"),
    )
    return read_input(held.get(*names[0])), read_output(held.get(*names[1]))


def _apart(whole: Found) -> tuple[Found, Found]:
    """Take the first user's messages off a whole conversation: what follows is what came of it."""
    at = next((at for at, item in enumerate(whole.items) if item.role == "assistant"), len(whole.items))
    return Found(whole.items[:at]), Found(whole.items[at:])


def _nested(value: Any) -> Any:
    """Messages in which dotted names are still flat: ``[{"message.role": "user"}]``."""
    if not isinstance(value, list) or not any("message.role" in mapping(item) or "message.content" in mapping(item) for item in value):
        return value
    return [_plain(_tree(item)) if isinstance(item, dict) else item for item in value]


def _tree(value: Mapping[str, Any]) -> _Node:
    node = _Node()
    for name, inner in value.items():
        if isinstance(inner, list) and shallow(inner):
            inner = [_plain(_tree(item)) if isinstance(item, dict) and any("." in str(key) for key in item) else item for item in inner]
        _put(node, str(name).split(".", _MOST_KEYS), inner)
    return node


def _json_contents(value: Any) -> Any:
    """Messages whose content may be JSON text of a list of parts."""
    value = decoded(value)
    if not isinstance(value, list):
        return value
    found = []
    for item in value:
        content = decoded(item.get("content")) if isinstance(item, dict) else None
        keep = isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content)
        found.append({**item, "content": content} if keep else item)
    return found


def _of_events(events: list[dict[str, Any]]) -> tuple[Found, Found]:
    """Messages out of events named by their role; a choice is the answer."""
    sent: list[Any] = []
    got: list[Any] = []
    for event in events:
        name = string(event.get("event.name"))
        if name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
            value = decoded(event.get(name.replace("content.", "")))
            (sent if name.endswith("prompt") else got).extend(value if isinstance(value, list) else [value])
            continue
        body = decoded(event.get("gen_ai.event.content", event.get("event_body", event.get("body"))))
        message = {"event.name": name, **event, **(body if isinstance(body, dict) else {})}
        message = {key: decoded(value) if key in ("message", "tool_calls") else value for key, value in message.items()}
        if name == "gen_ai.tool.message":
            message.setdefault("tool_call_id", message.get("id"))
        if not {"content", "message", "tool_calls", "parts"} & message.keys():
            continue
        (got if name == "gen_ai.choice" else sent).append(message)
    return read_input(sent), read_output(got)


def _tools(held: Attributes) -> list[Any]:
    offered = decoded(held.get("gen_ai.tool.definitions", "llm.request.functions"))
    if offered is None:
        offered = mapping(decoded(held.get("model_request_parameters"))).get("function_tools")
    if offered is None and (tools := decoded(held.get("llm.tools"))) is not None:
        offered = [decoded(mapping(mapping(item).get("tool")).get("json_schema", mapping(item).get("tool.json_schema"))) or item for item in listing(tools)]
    if offered is None:
        offered = [decoded(tool) for tool in listing(decoded(held.get("ai.prompt.tools")))]
    renamed = [{**tool, "parameters": tool["parameters_json_schema"]} if "parameters_json_schema" in mapping(tool) else tool for tool in listing(offered)]
    return tool_specs(renamed)


def result_of(held: Attributes, *, name: str = "", failed: bool = False) -> ToolResult:
    """What a tool's span says that the tool gave back."""
    given = held.get("gen_ai.tool.call.result", "tool_response", "output.value", "ai.toolCall.result", "traceloop.entity.output", "gen_ai.tool.message")
    id = id_of(held.get("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id"))
    named = held.text("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name") or name
    return ToolResult(id, named or None, results_of(given if isinstance(given, str | list | None) else json_text(given)), failed)
