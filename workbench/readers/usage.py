"""Turns each provider's usage numbers into the disjoint buckets of `Usage`.

Sources: Anthropic counts only the uncached rest as ``input_tokens``; OpenAI and most others count the cached part in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..model import Usage

_INCONSISTENT = "inconsistent usage (a number that is no token count, or more cached than sent)"
_MOST = 2**53  # beyond it a number is no token count


def tokens(value: Any) -> int | None:
    """A token count, or None if the value is none (missing, negative, not whole, not finite, absurd).

    Examples
    --------
    >>> tokens(12), tokens(12.0), tokens(-1), tokens(float("nan")), tokens("12"), tokens(True)
    (12, 12, None, None, None, None)
    """
    if type(value) is int:
        return value if 0 <= value < _MOST else None
    if type(value) is float and math.isfinite(value) and value.is_integer():
        return tokens(int(value))
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if type(value) is dict else {}


def anthropic(raw: Any) -> tuple[Usage | None, str | None]:
    """Usage of an Anthropic response, and what was wrong with it.

    Where ``iterations`` are present they are summed: the top level leaves out the compaction that a server made.
    A prompt with an impossible number (negative, NaN) is unknown as a whole; the output is kept.
    """
    usage = raw if type(raw) is dict else {}
    if not usage:
        return None, None if raw is None or raw == {} else "usage is not an object"
    one, why = _anthropic_one(usage)
    iterations = usage.get("iterations")
    if isinstance(iterations, list) and iterations:
        parts = [_anthropic_one(_mapping(item)) for item in iterations]
        known = tuple(part for part, _ in parts if part is not None and part.total is not None)
        why = why or next((fault for _, fault in parts if fault), None)
        if known:
            return replace(Usage.sum(known), iterations=known), why
    return one, why


def _anthropic_one(usage: Mapping[str, Any]) -> tuple[Usage | None, str | None]:
    fresh, read = usage.get("input_tokens"), usage.get("cache_read_input_tokens")
    written, output = usage.get("cache_creation_input_tokens"), usage.get("output_tokens")
    details, split = usage.get("output_tokens_details"), usage.get("cache_creation")
    reasoning = None if details is None else tokens(_mapping(details).get("thinking_tokens"))
    # There is a usage in every response, and nearly all are four plain numbers.
    if type(fresh) is not int or type(read) is not int or type(written) is not int or type(output) is not int or not _plain(fresh, read, written, output):
        raw = (fresh, read, written, output)
        fresh, read, written, output = known = [tokens(number) for number in raw]
        if known.count(None) > raw.count(None):
            return Usage(output=output, reasoning=reasoning), "inconsistent usage (a number that is no token count)"
    hour = five = None
    if split is not None:
        hour, five = tokens(_mapping(split).get("ephemeral_1h_input_tokens")), tokens(_mapping(split).get("ephemeral_5m_input_tokens"))
    if five is None and hour is None:
        five = written
    elif written is not None and (hour or 0) + (five or 0) != written:
        hour, five = (hour, written - hour) if hour is not None and hour <= written else (None, written)
    if fresh is None and read is None and five is None and hour is None and output is None:
        return None, None
    return _frozen(_Draft(fresh, read, five, hour, output, reasoning)), None


def _plain(fresh: int, read: int, written: int, output: int) -> bool:
    return fresh >= 0 <= read and written >= 0 <= output and fresh + read + written + output < _MOST


@dataclass(slots=True)
class _Draft:
    """A usage that is not frozen yet. Its slots are those of `Usage`."""

    input_uncached: int | None
    cache_read: int | None
    cache_write_5m: int | None
    cache_write_1h: int | None
    output: int | None
    reasoning: int | None
    iterations: tuple[Usage, ...] = ()


def _frozen(draft: _Draft) -> Usage:
    """Turn a draft into the usage itself: a third of the time of building a frozen object, and there is one a response."""
    draft.__class__ = Usage  # type: ignore[assignment]
    return draft  # type: ignore[return-value]


def inclusive(raw: Any) -> tuple[Usage | None, str | None]:
    """Usage of an OpenAI Chat, Responses or Codex call, where the input counts the cached part in.

    Accepts both spellings: ``prompt_tokens``/``completion_tokens`` and ``input_tokens``/``output_tokens``.
    """
    usage = _mapping(raw)
    if not usage:
        return None, None if raw is None or raw == {} else "usage is not an object"
    prompt_name = "prompt_tokens" if "prompt_tokens" in usage else "input_tokens"
    output_name = "completion_tokens" if "completion_tokens" in usage else "output_tokens"
    details = {**_mapping(usage.get("prompt_tokens_details")), **_mapping(usage.get("input_tokens_details"))}
    out_details = {**_mapping(usage.get("completion_tokens_details")), **_mapping(usage.get("output_tokens_details"))}
    return _counted_in(
        usage.get(prompt_name),
        _first(details.get("cached_tokens"), usage.get("cached_input_tokens"), usage.get("cache_read_input_tokens")),
        _first(details.get("cache_write_tokens"), usage.get("cache_write_input_tokens"), usage.get("cache_creation_input_tokens")),
        None,
        usage.get(output_name),
        _first(out_details.get("reasoning_tokens"), usage.get("reasoning_output_tokens")),
    )


def _counted_in(prompt: Any, read: Any, write: Any, hour: Any, output: Any, reasoning: Any) -> tuple[Usage | None, str | None]:
    """Take apart a prompt that counts in what was read from the cache and written to it; `hour` is the part of `write` that lives so long."""
    raw = (prompt, read, write, hour, output, reasoning)
    known = [number if type(number) is int and 0 <= number < _MOST else tokens(number) for number in raw]
    if known.count(None) > raw.count(None):
        return Usage(output=known[4], reasoning=known[5]), _INCONSISTENT
    prompt, read, write, hour, output, reasoning = known
    if prompt is None and output is None and raw.count(None) == len(raw):
        return None, None
    fresh = None if prompt is None else prompt - (read or 0) - (write or 0)
    if (fresh is not None and fresh < 0) or (hour or 0) > (write or 0):
        return Usage(output=output, reasoning=reasoning), _INCONSISTENT
    return _frozen(_Draft(fresh, read, write if write is None or hour is None else write - hour, hour, output, reasoning)), None


def langchain(raw: Any) -> tuple[Usage | None, str | None]:
    """Usage of a LangChain message (``usage_metadata``): the input counts the cached part in.

    Where a provider says how long a cached part lives, LangChain writes one number for each time to live and none, or 0, for their sum.

    Examples
    --------
    >>> langchain({"input_tokens": 1200, "output_tokens": 40, "input_token_details": {"cache_read": 1000, "cache_creation": 100}})[0].input_uncached
    100
    """
    usage = _mapping(raw)
    if not usage:
        return None, None if raw is None or raw == {} else "usage is not an object"
    sent, got = _mapping(usage.get("input_token_details")), _mapping(usage.get("output_token_details"))
    write, hour, five = sent.get("cache_creation"), sent.get("ephemeral_1h_input_tokens"), sent.get("ephemeral_5m_input_tokens")
    if not write and (hour or five):
        write = (tokens(hour) or 0) + (tokens(five) or 0)
    return _counted_in(usage.get("input_tokens"), sent.get("cache_read"), write, hour, usage.get("output_tokens"), got.get("reasoning"))


def pydantic_ai(raw: Any) -> tuple[Usage | None, str | None]:
    """Usage of a pydantic-ai response, of any version: the input counts the cached part in.

    A usage of nothing but zeros is one that the provider did not report: that is its default.

    Examples
    --------
    >>> pydantic_ai({"request_tokens": 50, "response_tokens": 7, "details": {"cached_tokens": 20}})[0].input_uncached
    30
    """
    usage = _mapping(raw)
    if not usage:
        return None, None if raw is None or raw == {} else "usage is not an object"
    details = _mapping(usage.get("details"))
    named = (
        usage.get("input_tokens", usage.get("request_tokens")),
        usage.get("cache_read_tokens", details.get("cache_read_input_tokens", details.get("cached_tokens"))),
        usage.get("cache_write_tokens", details.get("cache_creation_input_tokens")),
        usage.get("cache_write_1h_tokens"),
        usage.get("output_tokens", usage.get("response_tokens")),
        usage.get("output_reasoning_tokens", details.get("reasoning_tokens", details.get("thoughts_tokens"))),
    )
    return _counted_in(*named) if named.count(0) + named.count(None) < len(named) else (None, None)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def gemini(raw: Any) -> tuple[Usage | None, str | None]:
    """Usage of a Gemini response, in the API's names, in Python's spelling of them, or as Gemini CLI shortens them.

    The prompt counts the cached part in and leaves out what server-run tools added; the answer leaves out the thoughts.

    Examples
    --------
    >>> gemini({"promptTokenCount": 17, "candidatesTokenCount": 201, "thoughtsTokenCount": 213, "toolUsePromptTokenCount": 119})[0].total
    550
    """
    usage = _mapping(raw)
    if not usage:
        return None, None if raw is None or raw == {} else "usage is not an object"
    keys = _GEMINI[0 if "promptTokenCount" in usage or "candidatesTokenCount" in usage else 2 if "input" in usage or "output" in usage else 1]
    raw_numbers = [usage.get(key) for key in keys]
    numbers = [number if type(number) is int and 0 <= number < _MOST else tokens(number) for number in raw_numbers]
    if raw_numbers.count(None) == len(raw_numbers):
        return None, None
    prompt, cached, tool, answer, thoughts, live = numbers
    answer = live if answer is None else answer
    output = None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0)
    if numbers.count(None) > raw_numbers.count(None) or (prompt is not None and prompt < (cached or 0)):
        return Usage(output=output, reasoning=thoughts), _INCONSISTENT
    fresh = None if prompt is None else prompt - (cached or 0) + (tool or 0)
    return _frozen(_Draft(fresh, cached, None, None, output, thoughts)), None


#: Prompt, cached, tools, answer, thoughts, and the answer as the live API calls it: in the API, in Python, in Gemini CLI.
_GEMINI = (
    ("promptTokenCount", "cachedContentTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "responseTokenCount"),
    (
        "prompt_token_count",
        "cached_content_token_count",
        "tool_use_prompt_token_count",
        "candidates_token_count",
        "thoughts_token_count",
        "response_token_count",
    ),
    ("input", "cached", "tool", "output", "thoughts", ""),
)
