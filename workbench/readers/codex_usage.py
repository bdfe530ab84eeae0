"""Which usage records of a Codex rollout report a new request, and what that request cost.

Codex writes its numbers again without a new request (when rate limits change), and writes the same request in up to
two ways (``token_usage_record`` and ``token_count``). Running totals are never added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .fields import mapping, string
from .usage import tokens

_NAMES = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")
_Numbers = tuple[int, ...]


def _numbers(raw: Any) -> _Numbers | None:
    """The numbers of a usage object, a missing one as 0; None if there is no number in it."""
    held = [tokens(mapping(raw).get(name)) for name in _NAMES]
    return None if all(number is None for number in held) else tuple(number or 0 for number in held)


def _since(before: _Numbers | None, now: _Numbers) -> _Numbers:
    """What a running total grew by. A total that fell began anew."""
    if before is None or any(new < old for new, old in zip(now[:5], before[:5], strict=True)):
        return now
    return tuple(new - old for new, old in zip(now, before, strict=True))


def _object(numbers: _Numbers) -> dict[str, int]:
    return dict(zip(_NAMES, numbers, strict=True))


@dataclass(slots=True)
class UsageLog:
    """Remembers what was reported so far.

    Every method returns the usage object of a new request, or None if the record reports none.
    """

    total: _Numbers | None = None
    last: _Numbers | None = None
    turns: _Numbers | None = None
    ids: set[str] = field(default_factory=set)
    #: Reported by a ``token_usage_record``; the ``token_count`` of the same request is still to come.
    awaited: list[_Numbers] = field(default_factory=list)

    def record(self, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """A ``token_usage_record``: one response, named by its id."""
        id = string(payload.get("response_id"))
        if id and id in self.ids:
            return None
        self.ids.add(id)
        raw = payload.get("usage") if "usage" in payload else payload
        numbers = _numbers(raw)
        self.total = _numbers(payload.get("thread_token_usage")) or self.total
        if numbers is None or not any(numbers):
            return None
        self.awaited.append(numbers)
        return mapping(raw)

    def count(self, payload: Mapping[str, Any], *, fresh: bool) -> Mapping[str, Any] | None:
        """A ``token_count``: the newest request's usage beside a running total.

        Parameters
        ----------
        fresh : bool
            True if the model has said something since the last usage record.
        """
        info = mapping(payload.get("info"))
        short = next((held for held in (info, payload) if "prompt" in held or "completion" in held), None)
        raw = mapping({"input_tokens": short.get("prompt"), "output_tokens": short.get("completion")} if short else info.get("last_token_usage"))
        last, total = _numbers(raw), _numbers(info.get("total_token_usage"))
        before, self.total = self.total, total or self.total
        known, self.last = self.last, last
        if last is not None and last in self.awaited:
            self.awaited.remove(last)
            return None
        if total is not None:
            if total == before:
                return None
            if last is None:
                since = _since(before, total)
                return _object(since) if any(since) else None
        elif last == known and not fresh:
            return None
        if last is None:
            return raw or None  # numbers that are none: worth a diagnostic
        return raw if any(last) else None

    def turn(self, raw: Any) -> Mapping[str, Any] | None:
        """A ``turn.completed``: a running total in some builds, the turn's own usage in others."""
        now = _numbers(raw)
        if now is None:
            return mapping(raw) or None
        now = (*now[:5], 0)  # the sum is not always there
        before, self.turns = self.turns, now
        if now == before or not any(now):
            return None
        return _object(_since(before, now))
