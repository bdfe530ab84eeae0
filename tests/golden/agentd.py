"""Runs the golden cases of agentd on its port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from workbench.systems import agentd

JSON = dict[str, Any]
ERRORS = agentd.AgentdError
NOW = 1_700_000_000_000
WINDOW = 1000  # of a context where a case does not say
KEEP_LAST = 8


def run(op: str, given: JSON) -> Any:
    """The value that the port gives for one case; `KeyError` for an unknown operation."""
    return OPS[op](given)


def failed(op: str, given: JSON, error: agentd.AgentdError) -> JSON:
    """What a failed case gives: the original's text. A compaction that failed shows that it left the context clean."""
    if op == "msg_roundtrip":
        return {"error": "invalid message"}
    if op in ("apply_compaction", "apply_fallback"):
        context, compaction = _compaction(given)
        try:
            _applied(context, compaction, op, given)
        except agentd.AgentdError:
            return {"error": str(error), "dirty": context.dirty}
    return {"error": str(error)}


def _now(given: JSON) -> int:
    return int(given.get("now_ms", NOW))


def _message(given: JSON) -> agentd.Msg:
    return agentd.message_from_json(given["msg"])


def _state(given: JSON) -> agentd.ContextState:
    return agentd.context_from_json(given["state"])


def _shown(context: agentd.ContextState) -> JSON:
    return agentd.context_json(context) | {"dirty": context.dirty}


def _msg_roundtrip(given: JSON) -> JSON:
    message = _message(given)
    return {"msg": agentd.message_json(message), "ts": message.ts, "is_user": isinstance(message, agentd.User)}


def _summary_render(given: JSON) -> JSON:
    summary = agentd.summary_from_json(given["summary"])
    return {"text": summary.render(), "is_empty": summary.is_empty()}


def _summary_absorb(given: JSON) -> JSON:
    base, newer = (agentd.summary_from_json(given[name]) for name in ("base", "newer"))
    return {"summary": agentd.summary_json(base.absorb(newer, _now(given)))}


def _needs_compaction(given: JSON) -> bool:
    context = agentd.ContextState(est_tokens=given["est_tokens"], model_window=given["model_window"])
    return context.needs_compaction(given["compact_at"])


def _append(given: JSON) -> JSON:
    context = agentd.ContextState.new("root", given.get("model_window", WINDOW), _now(given))
    after: list[int] = []
    for value in given["msgs"]:
        context.append(agentd.message_from_json(value), _now(given))
        after.append(context.est_tokens)
    incremental, dirty = context.est_tokens, context.dirty
    context.recount()
    return {"after_each": after, "incremental": incremental, "recounted": context.est_tokens, "dirty": dirty}


def _recount(given: JSON) -> JSON:
    context = _state(given)
    before = context.est_tokens
    context.recount()
    return {"before": before, "after": context.est_tokens}


def _skills(given: JSON) -> JSON:
    context = _state(given)
    results: list[JSON] = []
    for action in given["actions"]:
        context.dirty = False
        try:
            if "unload" in action:
                result: JSON = {"ok": context.unload_skill(action["unload"], _now(given))}
            else:
                context.load_skill(action["load"], action["hash"], action["max_loaded"], _now(given))
                result = {"ok": True}
        except agentd.AgentdError as error:
            result = {"error": str(error)}
        results.append(result | {"touched": context.dirty})
    skills = [{"name": skill.name, "hash": skill.hash} for skill in context.skills]
    return {"results": results, "skills": skills, "skill_names": context.skill_names()}


def _status(registry: agentd.Registry) -> list[JSON]:
    return [asdict(row) | {"skills": list(row.skills)} for row in registry.status()]


def _restore(given: JSON) -> JSON:
    registry = agentd.Registry(given.get("model_window", WINDOW))
    if given.get("existing_root"):
        registry.root(_now(given))
    lost = registry.restore((envelope["id"], envelope["state"]) for envelope in given["envelopes"])
    contexts = {context_id: _shown(context) for context_id in registry.ids() if (context := registry.get(context_id))}
    shown = {"contexts": contexts, "ids": registry.ids(), "len": len(registry), "lost": lost}
    return shown | {"max_est_tokens": registry.max_est_tokens(), "status": _status(registry)}


def _registry(given: JSON) -> JSON:
    registry = agentd.Registry(given.get("model_window", WINDOW))
    store = agentd.MemoryStore()
    log = [_acted(registry, store, action, _now(given)) for action in given["actions"]]
    return {"log": log, "status": _status(registry)}


def _acted(registry: agentd.Registry, store: agentd.Store, action: JSON, now: int) -> Any:
    match action["do"]:
        case "is_empty":
            return len(registry) == 0
        case "len":
            return len(registry)
        case "ids":
            return registry.ids()
        case "max":
            return registry.max_est_tokens()
        case "root":
            registry.root(now)
            return None
        case "conversation":
            context = registry.conversation(action["id"], action.get("principal"), now)
            return {"kind": context.kind, "principal": context.principal}
        case "append":
            held = registry.get(action["id"])
            if held is None:
                return None
            held.append(_message(action), now)
            return {"est_tokens": held.est_tokens, "dirty": held.dirty}
        case "get":
            return registry.get(action["id"]) is not None
        case "remove":
            return registry.remove(action["id"]) is not None
        case "checkpoint":
            return registry.checkpoint(store)
    raise ValueError(f"unknown action {action['do']!r}")


def _plan_shown(plan: agentd.Plan) -> JSON:
    return {"progress": plan.progress(), "is_complete": plan.is_complete(), "render": plan.render()}


def _plan_render(given: JSON) -> JSON:
    plan = agentd.plan_from_json(given["plan"])
    return _plan_shown(plan) | {"est_tokens": agentd.estimate(plan.render())}


def _plan_create(given: JSON) -> JSON:
    bound = {"max_items": given["max_items"]} if given.get("max_items") is not None else {}
    plan = agentd.create_plan(given["goal"], given.get("items", []), _now(given), **bound)
    return _plan_shown(plan) | {"plan": agentd.plan_json(plan)}


def _plan_compaction(given: JSON) -> JSON | None:
    compaction = agentd.plan_compaction(_state(given), given.get("keep_last", KEEP_LAST), given.get("target_tokens"))
    if compaction is None:
        return None
    return {"fold": compaction.fold, "version": compaction.version, "input": compaction.input, "output_schema": compaction.output_schema}


def _compaction(given: JSON) -> tuple[agentd.ContextState, agentd.Compaction]:
    """A context that was restored, so recounted, and its compaction, perhaps with a number that no longer fits."""
    context = _state(given)
    context.recount()
    compaction = agentd.plan_compaction(context, given.get("keep_last", KEEP_LAST), given.get("target_tokens"))
    if compaction is None:
        raise ValueError("nothing to compact")
    forced = {"fold": given.get("force_fold", compaction.fold), "version": given.get("force_version", compaction.version)}
    return context, replace(compaction, **forced)


def _applied(context: agentd.ContextState, compaction: agentd.Compaction, op: str, given: JSON) -> agentd.Outcome:
    if op == "apply_fallback":
        return agentd.apply_fallback(context, compaction, _now(given))
    return agentd.apply_compaction(context, compaction, given["verdict"], _now(given))


def _apply(op: str) -> Callable[[JSON], JSON]:
    def apply(given: JSON) -> JSON:
        context, compaction = _compaction(given)
        outcome = _applied(context, compaction, op, given)
        return {"fold": compaction.fold, "outcome": asdict(outcome), "state": _shown(context)}

    return apply


OPS: dict[str, Callable[[JSON], Any]] = {
    "estimate": lambda given: agentd.estimate(given["text"]),
    "estimate_value": lambda given: agentd.estimate_value(given["value"]),
    "est_tokens": lambda given: agentd.est_tokens(_message(given)),
    "to_wire": lambda given: agentd.to_wire(_message(given)),
    "msg_roundtrip": _msg_roundtrip,
    "summary_render": _summary_render,
    "summary_absorb": _summary_absorb,
    "needs_compaction": _needs_compaction,
    "new": lambda given: _shown(agentd.ContextState.new(given["kind"], given.get("model_window", WINDOW), _now(given))),
    "append": _append,
    "recount": _recount,
    "slice": lambda given: {"slice": [agentd.message_json(message) for message in _state(given).slice(_now(given))]},
    "context_to_wire": lambda given: {"wire": _state(given).to_wire()},
    "skills": _skills,
    "restore": _restore,
    "registry": _registry,
    "plan_render": _plan_render,
    "plan_create": _plan_create,
    "plan_compaction": _plan_compaction,
    "apply_compaction": _apply("apply_compaction"),
    "apply_fallback": _apply("apply_fallback"),
    "window_for_model": lambda given: agentd.window_for_model(given["model"]),
}
