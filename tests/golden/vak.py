"""Golden operations of vak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from workbench.errors import PolicyError
from workbench.systems import vak

JSON = dict[str, Any]
#: Nothing of vak fails on purpose.
ERRORS = PolicyError


def run(op: str, given: JSON) -> Any:
    return OPS[op](given)


def failed(op: str, given: JSON, error: Exception) -> JSON:
    return {"error": str(error)}


def _messages(given: JSON) -> list[vak.Message]:
    return [vak.from_json(message) for message in given.get("messages", ())]


def _known(kind: type, given: JSON) -> JSON:
    """The keys that a record of the port has: the original's has more (when it was measured, what was generated)."""
    names = {field.name for field in fields(kind)}
    return {key: value for key, value in given.items() if key in names}


def _tools(given: JSON) -> list[vak.Tool]:
    return [vak.Tool(tool["name"], tool["description"], tool["input_schema"]) for tool in given.get("tools", ())]


def _ewma(given: JSON) -> vak.Ewma:
    return vak.Ewma(**_known(vak.Ewma, given))


def _profile(given: JSON) -> vak.Capacity:
    averages = {name: _ewma(given[name]) for name in ("tokens_per_char", "prefill_tps", "current_turn_reserve") if name in given}
    horizon = vak.Horizon(**_known(vak.Horizon, given["instruction_horizon"]))
    return vak.Capacity(**{**_known(vak.Capacity, given), **averages, "instruction_horizon": horizon})


def _attach_tail(given: JSON) -> JSON:
    return {"messages": [vak.to_json(message) for message in vak.attach_tail(_messages(given), given["tail"], given["directive_index"])]}


def _breakpoints(given: JSON) -> JSON:
    messages = _messages(given)
    return {"boundary": vak.current_turn_boundary(messages), "breakpoints": [{"after_message": after} for after in vak.cache_breakpoints(messages)]}


def _request_chars(given: JSON) -> JSON:
    messages, tools = _messages(given), _tools(given)
    each = [vak.message_chars(message) for message in messages]
    prefix = vak.prefix_chars(given.get("system") or "", tools)
    return {"each": each, "messages": sum(each), "prefix": prefix, "total": vak.chat_request_chars(given.get("system"), tools, messages)}


def _relative_change(given: JSON) -> JSON:
    value = vak.relative_change(given["before"], given["after"])
    return {"value": value, "display": vak.display(value), "above_threshold": value > vak.CAPACITY_FEEDBACK_CHANGE_THRESHOLD}


def _observe(given: JSON) -> JSON:
    average, values = vak.Ewma(alpha=given.get("alpha", vak.FEEDBACK_EWMA_ALPHA)), []
    for sample in given["samples"]:
        average = average.observe(sample)
        values.append(average.value)
    return {"samples": average.samples, "values": values}


def _estimate(given: JSON) -> JSON:
    profile = _profile(given["profile"])
    return {"tokens": profile.estimate_tokens(given["chars"]), "chars_for_tokens": profile.chars_for_tokens(given["chars"])}


def _budget(given: JSON) -> JSON:
    profile = _profile(given["profile"])
    reserve = profile.turn_reserve(given.get("current_turn_tokens", 0))
    return {
        "budget": profile.budget(given.get("prefix_tokens", 0), given.get("tail_tokens", 0), reserve),
        "prompt_ceiling": profile.prompt_ceiling,
        "reserve": reserve,
    }


def _feedback(given: JSON) -> JSON:
    profile, deltas = vak.Capacity.from_metadata(given["declared_window"], given["output_reserve"]), []
    for event in given.get("events", ()):
        before, profile = profile, _learn(profile, event)
        deltas.append(vak.capacity_feedback_delta(before, profile))
    return {"profile": asdict(profile), "deltas": deltas}


def _learn(profile: vak.Capacity, event: JSON) -> vak.Capacity:
    match event["do"]:
        case "usage":
            usage = vak.Usage(**_known(vak.Usage, event["usage"]))
            return profile.observe_usage(event["chars_sent"], usage, event.get("first_token_latency_ms"), event.get("cache_miss", False))
        case "over_length":
            return profile.observe_over_length(event["request_tokens"])
        case "instruction_failure":
            return profile.observe_instruction_failure(event["request_tokens"])
        case "turn" | "current_turn":
            return profile.observe_turn(event["tokens"])
    raise ValueError(f"unknown event {event['do']!r}")


OPS: dict[str, Callable[[JSON], Any]] = {
    "constants": lambda given: {
        "CAPACITY_FEEDBACK_CHANGE_THRESHOLD": vak.CAPACITY_FEEDBACK_CHANGE_THRESHOLD,
        "FEEDBACK_EWMA_ALPHA": vak.FEEDBACK_EWMA_ALPHA,
        "UNCALIBRATED_TOKENS_PER_CHAR": vak.UNCALIBRATED_TOKENS_PER_CHAR,
        "compaction_max_tokens": vak.COMPACTION_MAX_TOKENS,
    },
    "prefix_digest": lambda given: vak.prefix_digest(given.get("system_prefix", ""), _tools(given)),
    "render_transcript": lambda given: vak.render_transcript(_messages(given)),
    "transcript_result": lambda given: vak.transcript_result(_messages(given), given["tool_use_id"], given["content"], given.get("is_error", False)),
    "attach_tail": _attach_tail,
    "compose_tail": lambda given: vak.compose_tail(given.get("temporal", ""), given.get("stance", ""), given.get("sections", {})),
    "cache_breakpoints": _breakpoints,
    "chat_request_chars": _request_chars,
    "prefix_chars": lambda given: vak.prefix_chars(given.get("system") or "", _tools(given)),
    "relative_change": _relative_change,
    "capacity_feedback_delta": lambda given: vak.capacity_feedback_delta(_profile(given["before"]), _profile(given["after"])),
    "ewma": _observe,
    "estimate_tokens": _estimate,
    "budget": _budget,
    "feedback": _feedback,
}
