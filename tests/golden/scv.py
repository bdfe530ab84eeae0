"""Runs the golden cases of scv on its port."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.systems import rustjson, scv

JSON = dict[str, Any]


def run(op: str, given: JSON) -> Any:
    """The value that the port gives for one case; `KeyError` for an unknown operation."""
    return OPS[op](given)


#: What the port raises on purpose, and how the vectors write it.
ERRORS = scv.ScvError


def failed(op: str, given: JSON, error: Exception) -> JSON:
    """What a failed case gives: the original's text."""
    return {"error": str(error)}


def _config(given: JSON) -> scv.Config:
    return scv.Config(**given.get("config", {}))


def _bytes_per_token(given: JSON) -> int:
    return int(given.get("bytes_per_token", scv.Config().bytes_per_token))


def _messages(values: list[JSON]) -> list[scv.Message]:
    return [scv.from_json(value) for value in values]


def _tools(given: JSON) -> list[scv.Tool]:
    return [scv.Tool(tool["name"], tool["description"], tool["parameters"]) for tool in given.get("tools", ())]


def _json(message: scv.Message) -> Any:
    return rustjson.loads(scv.message_json(message))


def _default_config(given: JSON) -> Any:
    config = scv.Config()
    return {name: getattr(config, name) for name in scv.Config.__slots__}


def _new(given: JSON) -> Any:
    _config(given).check()
    return True


def _estimated_tokens(given: JSON) -> Any:
    message = scv.from_json(given["message"])
    text = scv.message_json(message)
    return {"json": text, "bytes": rustjson.utf8_len(text), "tokens": scv.estimated_tokens(message, _bytes_per_token(given))}


def _groups(given: JSON) -> Any:
    return scv.groups(_messages(given["history"]))


def _summarize(given: JSON) -> Any:
    text = scv.summarize(_messages(given["messages"]), _config(given).summary_max_chars)
    return {"text": text, "chars": len(text)}


def _fit_history_note(given: JSON) -> Any:
    fitted = scv.fit_history_note(given["content"], given["available_tokens"], _bytes_per_token(given))
    return None if fitted is None else {"message": _json(fitted[0]), "tokens": fitted[1]}


def _static_tokens(given: JSON) -> Any:
    bytes_per_token = _config(given).bytes_per_token
    size = rustjson.utf8_len(scv.tools_json(_tools(given)))
    return {
        "system_tokens": scv.tokens_of(rustjson.utf8_len(given.get("system_prompt", "")), bytes_per_token),
        "tools_bytes": size,
        "tools_tokens": scv.tokens_of(size, bytes_per_token),
    }


def _select(given: JSON) -> Any:
    chosen = scv.select(_config(given), given.get("system_prompt", ""), _tools(given), _messages(given.get("history", [])))
    return {
        "messages": [_json(message) for message in chosen.messages],
        "before_tokens": chosen.before_tokens,
        "after_tokens": chosen.after_tokens,
        "removed_messages": chosen.removed_messages,
    }


OPS: dict[str, Callable[[JSON], Any]] = {
    "default_config": _default_config,
    "new": _new,
    "estimated_tokens": _estimated_tokens,
    "groups": _groups,
    "summarize": _summarize,
    "fit_history_note": _fit_history_note,
    "char_tail": lambda given: scv.char_tail(given["value"], given["max_chars"]),
    "truncate_chars": lambda given: scv.truncate_chars(given["value"], given["max_chars"]),
    "static_tokens": _static_tokens,
    "select": _select,
}
