"""Compactions of a Codex rollout: what the model had afterwards, and which rows of it were there before."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model import COMPACT_SUMMARY, HIDDEN, MAIN, META, Compaction, Text, join_text
from .build import Builder, DraftMessage
from .codex_calls import Calls
from .fields import mapping, size_of, string
from .responses_items import Items, content_parts, key_of

#: How a summary begins that Codex hands to the model.
_PREFIX = "Another language model started to solve this problem"
_KEPT_TOKENS = 20_000  # of the users' messages, newest first, at four bytes a token (codex-rs/core/src/compact.rs)
_ENDS = 200  # characters at each end that tell a shortened copy
#: How texts begin that the harness writes in the user's name.
_INJECTED = re.compile(
    r"\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|INSTRUCTIONS|turn_aborted|user_shell_command|skill|skills_instructions|"
    r"subagent_notification|permissions instructions|collaboration_mode|(?:apps|plugins)_instructions|model_switch|hook_context|personality_spec)[\s>])"
)


@dataclass(slots=True)
class Compactor:
    """Reads ``compacted`` records."""

    builder: Builder
    items: Items
    calls: Calls
    keys: dict[Hashable, list[int]] = field(default_factory=dict)
    #: So many of the compactions are read from records of their own, or stand before one that is.
    own: int = 0

    def note(self, item: Mapping[str, Any], message: DraftMessage) -> None:
        """Remember an item, so that a copy of it is known."""
        key = key_of(item)
        if key is not None:
            self.keys.setdefault(key, []).append(message.index)

    def only_event(self, number: int) -> None:
        """A compaction of which the file says only that it happened."""
        self._add(number, self._last(), None, None, (), "summary")

    def compacted(self, payload: Mapping[str, Any], number: int, ts: int | None) -> None:
        """Read a record: rows that it repeats are kept, the summary is a message of its own."""
        builder = self.builder
        builder.account(number, "compactions", MAIN)
        self.items.close()
        call = self.calls.compacted(payload, number, ts)
        after, told, found = self._last(), string(payload.get("message")), len(builder.compactions)
        history = payload.get("replacement_history")
        if isinstance(history, list):
            summary, kept = self._replaced(history, told, number, ts)
            del builder.compactions[found:]
        else:
            kept = self._newest_of_user() if told else ()
            summary = None
        if summary is None and told and not isinstance(history, list):
            summary = builder.message("user", [Text(told)], number, ts=ts, flags=(COMPACT_SUMMARY,)).index
        # The item may stand in the stream too, just before this record.
        if summary is not None and found > self.own and builder.compactions[-1].summary == summary:
            after = builder.compactions.pop().after
        opaque = summary is not None and builder.messages[summary].role == "assistant"
        self._add(number, after, summary, None if call is None else call.index, kept, "opaque" if opaque else "replace" if summary is None else "summary")

    def _add(self, number: int, after: int, summary: int | None, call: int | None, kept: tuple[int, ...], kind: str) -> None:
        builder = self.builder
        builder.account(number, "compactions", MAIN)
        builder.compactions.append(Compaction(after, kind, None, self.calls.occupancy(), None, summary, kept, MAIN, call, (number,)))
        self.own = len(builder.compactions)
        self.calls.waiting = self.own - 1

    def _last(self) -> int:
        return next((message.index for message in reversed(self.builder.messages) if message.thread == MAIN), -1)

    def _replaced(self, history: list[Any], told: str, number: int, ts: int | None) -> tuple[int | None, tuple[int, ...]]:
        """Summary and kept rows of a history that replaced the old one. What was nowhere before becomes a message."""
        builder, summary = self.builder, None
        at = self._summary_at(history, told)
        copies = self._copies(history, at)
        kept: list[int] = []
        for place, item in enumerate(history):
            if place in copies:
                kept.append(copies[place])
                continue
            message = self.items.add(item, number, ts=ts, place=f", history {place + 1}")
            if message is None:
                continue
            if place == at or COMPACT_SUMMARY in message.flags:
                message.flags |= {COMPACT_SUMMARY}
                summary = message.index
            else:
                if message.role == "user":
                    mark(message)
                self.note(mapping(item), message)
                kept.append(message.index)
        self.items.close()
        if summary is None and told and at is None:
            summary = builder.message("user", [Text(told)], number, ts=ts, flags=(COMPACT_SUMMARY,)).index
        return summary, tuple(dict.fromkeys(index for index in kept if index != summary))

    def _summary_at(self, history: list[Any], told: str) -> int | None:
        for place in range(len(history) - 1, -1, -1):
            item = mapping(history[place])
            if string(item.get("type")).endswith("compaction"):
                return place
            text = join_text(content_parts(item.get("content"))) if item.get("role") == "user" else ""
            if text and ((told and text.endswith(told)) or text.startswith(_PREFIX)):
                return place
        return None

    def _copies(self, history: list[Any], summary: int | None) -> dict[int, int]:
        """Place in the new history -> message that it repeats; the newest first, as Codex keeps them."""
        held = {key: [index for index in indices if self.builder.messages[index].thread == MAIN] for key, indices in self.keys.items()}
        found: dict[int, int] = {}
        for place in range(len(history) - 1, -1, -1):
            if place == summary:
                continue
            key = key_of(history[place])
            if key is not None and held.get(key):
                found[place] = held[key].pop()
            elif mapping(history[place]).get("role") == "user":
                index = self._shortened(join_text(content_parts(history[place].get("content"))))
                if index is not None:
                    found[place] = index
        return found

    def _shortened(self, text: str) -> int | None:
        """The message that a text is a copy of with its middle cut out: Codex does so to one that crosses its limit."""
        if "truncated" not in text or len(text) < 2 * _ENDS:
            return None
        for message in reversed(self.builder.messages):
            if message.role == "user" and message.thread == MAIN:
                whole = join_text(message.parts)
                if len(whole) > len(text) and whole.startswith(text[:_ENDS]) and whole.endswith(text[-_ENDS:]):
                    return message.index
        return None

    def _newest_of_user(self) -> tuple[int, ...]:
        """What Codex keeps where a record holds no history: what the user typed, newest first, up to its limit."""
        left, kept = _KEPT_TOKENS, []
        for message in reversed(self.builder.messages):
            if message.thread != MAIN or message.role != "user" or message.flags & {META, HIDDEN, COMPACT_SUMMARY}:
                continue
            kept.append(message.index)
            left -= -(-size_of(join_text(message.parts)) // 4)
            if left <= 0:
                break
        return tuple(reversed(kept))


def mark(message: DraftMessage) -> None:
    """Flag a user's row that no person wrote, or that holds nothing."""
    texts = [part.text for part in message.parts if type(part) is Text]
    if not any(texts) and len(texts) == len(message.parts):
        message.flags |= {HIDDEN}
    elif texts and all(_INJECTED.match(text) for text in texts if text.strip()):
        message.flags |= {META}
