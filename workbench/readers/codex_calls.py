"""Joins the usage records of a Codex rollout with the responses that they report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model import Usage
from .build import Builder, DraftCall
from .codex_usage import UsageLog
from .fields import mapping, string
from .responses_items import Items
from .usage import inclusive, tokens


@dataclass(slots=True)
class Calls:
    """The requests of a rollout: a usage record ends the response before it."""

    builder: Builder
    items: Items
    log: UsageLog = field(default_factory=UsageLog)
    #: True if the model has said something since the last usage record.
    fresh: bool = False
    #: A reported request whose answer is not in the file: the one that made a summary, if a compaction follows.
    lone: DraftCall | None = None
    #: Place of a compaction after which the model has not said anything yet.
    waiting: int | None = None

    def said(self) -> None:
        """The model has said something."""
        self.fresh, self.lone, self.waiting = True, None, None

    def record(self, payload: Mapping[str, Any], number: int, ts: int | None) -> None:
        """Read a ``token_usage_record``."""
        self.builder.account(number, "metadata")
        self._report(self.log.record(payload), number, ts, id=string(payload.get("response_id")))

    def count(self, payload: Mapping[str, Any], number: int, ts: int | None) -> None:
        """Read a ``token_count``."""
        info = mapping(payload.get("info"))
        raw = self.log.count(payload, fresh=self.fresh)
        last = mapping(info.get("last_token_usage"))
        after = tokens(last.get("total_tokens"))
        if raw is None and self.waiting is not None and after and not tokens(last.get("input_tokens")):
            # Codex estimates the new context after a compaction and reports it as usage without input.
            at = self.waiting
            self.builder.compactions[at] = replace(self.builder.compactions[at], tokens_after=after)
        self._report(raw, number, ts, model=string(info.get("model")))

    def turn(self, payload: Mapping[str, Any], number: int, ts: int | None) -> None:
        """Read a ``turn.completed`` of a build without ``token_count``."""
        self._report(self.log.turn(payload.get("usage")), number, ts)

    def _report(self, raw: Mapping[str, Any] | None, number: int, ts: int | None, *, id: str = "", model: str = "") -> None:
        if raw is None:
            return
        usage, why = inclusive(raw)
        if why:
            self.builder.report(number, "usage", f"line {number}: {why}")
        self.builder.account(number, "calls")
        self.items.close()
        self.fresh = False
        newest = self.builder.calls[-1] if self.builder.calls else None
        if self.waiting is not None and self.builder.compactions[self.waiting].call is None:
            call = self._alone(usage, ts, id, model, compaction=True)
            self.builder.compactions[self.waiting] = replace(self.builder.compactions[self.waiting], call=call.index)
        elif newest is not None and newest.produced and newest.usage is None and newest.kind == "response":
            newest.usage, newest.id, newest.model = usage, id, newest.model or model or None
        else:
            self.lone = self._alone(usage, ts, id, model)

    def _alone(self, usage: Usage | None, ts: int | None, id: str, model: str, *, compaction: bool = False) -> DraftCall:
        return self.builder.call(id, model=model or self.items.model, usage=usage, ts=ts, kind="compaction" if compaction else "response")

    def compacted(self, payload: Mapping[str, Any], number: int, ts: int | None) -> DraftCall | None:
        """The request that made a summary, if it is reported: by id, or because nothing else came of it."""
        id = string(payload.get("compaction_response_id"))
        call = next((call for call in reversed(self.builder.calls) if id and call.id == id and not call.produced), None) or self.lone
        newest = mapping(payload.get("latest_token_usage_record"))
        if call is None and id and newest.get("response_id") == id and (raw := self.log.record(newest)) is not None:
            usage, _ = inclusive(raw)
            call = self._alone(usage, ts, id, "")
        if call is not None:
            call.kind = "compaction"
        self.lone, self.fresh = None, False
        return call

    def occupancy(self) -> int | None:
        """Tokens of the newest response's prompt and output: what the context held after it."""
        return next((call.usage.total for call in reversed(self.builder.calls) if call.kind == "response" and call.usage is not None), None)

    def check(self) -> None:
        """Report a running total that the calls do not add up to."""
        total = self.log.total
        if total is None:
            return
        wanted = total[0] + total[3]
        sums = [
            Usage.sum([call.usage for call in self.builder.calls if call.kind in kinds]).total or 0 for kinds in (("response",), ("response", "compaction"))
        ]
        if wanted not in sums:
            self.builder.report(None, "usage_total", f"the session's own total is {wanted:,} tokens, its calls add up to {sums[1]:,}")
