"""Sessions of the OpenAI Agents SDK in SQLite: a run for each session; each row of messages is an item of the Responses API.

``AdvancedSQLiteSession`` adds branches, which share rows with what they sprang from, and usage by turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ReadError
from ..model import MAIN, Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .database import Database, database, tables
from .fields import epoch_ms, string
from .jsontext import NotJson, parse
from .responses_items import Items
from .source import Document
from .usage import inclusive, tokens

#: Rows without an id of their own are numbered from here.
_PLACES = 1 << 40
_MESSAGE = frozenset({"session_id", "message_data"})
_USAGE = ("session_id", "branch_id", "user_turn_number", "requests", "input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details")
_STRUCTURE = ("session_id", "message_id", "branch_id", "sequence_number", "user_turn_number")


class OpenAiAgentsReader:
    """Reads sessions of the OpenAI Agents SDK."""

    info = ReaderInfo("openai-agents", "OpenAI Agents SDK sessions in SQLite: a run for each session")
    kinds = frozenset({"sqlite"})

    def detect(self, document: Document) -> Match | None:
        """Looks for a table of messages by session."""
        found = tables(document)
        if found is None:
            return Match(0.1, ("an SQLite database that cannot be read",))  # reading says why
        named = next((name for name, columns in found.items() if {*columns} >= _MESSAGE), "")
        if not named:
            return None
        return Match(0.97 if named == "agent_messages" else 0.85, (f"a table {named[:40]} with session_id and message_data",))

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per session. Its records are its rows: of the session, its messages, and its usage by turn."""
        held = _Held(database(document))
        held.read(document)
        names = sorted(held.sessions, key=lambda name: not held.sessions[name].messages)  # those in which nothing was said come last
        found = [_Session(Builder(self.info.name, document), name, held.sessions[name]) for name in names]
        for session in found:
            session.read()
        return [session.builder.build(shared=at > 0) for at, session in enumerate(found)] or [Builder(self.info.name, document, total=0).build()]


READER = OpenAiAgentsReader()


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of messages. `id` is its id where that is a number, else its place."""

    id: int
    data: Any
    ts: int | None


@dataclass(slots=True)
class _Rows:
    """All rows of a session."""

    about: int = 0
    created: Any = None
    messages: list[_Row] = field(default_factory=list)
    structure: list[tuple[Any, ...]] = field(default_factory=list)
    usage: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Held:
    """The sessions of a database, by id, in the order in which they were made."""

    database: Database
    sessions: dict[str, _Rows] = field(default_factory=dict)

    def read(self, document: Document) -> None:
        """Read the tables; what is damaged is reported, and what stands before it is kept."""
        there = self.database.tables
        for name, columns in there.items():
            if {"session_id", "updated_at"} <= {*columns} and not {*columns} & {"message_data", "message_id", "branch_id"}:
                for id_, created in self._rows(document, name, ("session_id", "created_at"), ("created_at",)):
                    rows = self._of(id_)
                    rows.about += 1
                    rows.created = rows.created or created
        seen: set[int] = set()
        for name in [name for name, columns in there.items() if {*columns} >= _MESSAGE]:
            for id_, number, data, created in self._rows(document, name, ("session_id", "id", "message_data", "created_at"), ("id", "created_at")):
                key = number if type(number) is int and 0 < number < _PLACES and number not in seen else _PLACES + len(seen)
                seen.add(key)
                self._of(id_).messages.append(_Row(key, data, epoch_ms(created)))
        if {*there.get("message_structure", ())} >= {*_STRUCTURE}:
            for row in self._rows(document, "message_structure", _STRUCTURE, ("sequence_number",)):
                self._of(row[0]).structure.append(row[1:])
        if {*there.get("turn_usage", ())} >= {"session_id", "input_tokens", "output_tokens"}:
            for row in self._rows(document, "turn_usage", _USAGE, ("user_turn_number",)):
                self._of(row[0]).usage.append(dict(zip(_USAGE, row, strict=True)))

    def _of(self, id_: Any) -> _Rows:
        return self.sessions.setdefault(id_ if isinstance(id_, str) else "" if id_ is None else repr(id_)[:100], _Rows())

    def _rows(self, document: Document, table: str, columns: Sequence[str], order: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self.database.rows(table, columns, order=order)
        except ReadError as error:
            document.report(None, "table", str(error))


@dataclass(slots=True)
class _Session:
    """One session."""

    builder: Builder
    name: str
    rows: _Rows
    encrypted: int = 0
    #: The thread of each row that was read, and its items' reader.
    placed: dict[int, str] = field(default_factory=dict)

    def read(self) -> None:
        """Read everything into the builder."""
        builder, rows = self.builder, self.rows
        builder.id = self.name
        for number in range(rows.about):
            builder.account(-number, "metadata")
        builder.total = rows.about + len(rows.messages) + len(rows.usage)
        by_id = {row.id: row for row in rows.messages}
        branches: dict[str, list[int]] = {}
        for message, branch, *_ in rows.structure:
            if message in by_id:
                branches.setdefault(string(branch) or MAIN, []).append(message)
        shared = {message for ids in branches.values() for message in ids}
        # A row that no branch names was written without the structure: it belongs to the main one.
        main = branches.pop(MAIN, [])
        if len(main) < len(rows.messages):
            known = {*main}
            main = [row.id for row in rows.messages if row.id in known or row.id not in shared] if main or not branches else main
        first = Items(builder, trigger=None)
        self._thread(first, main, by_id)
        for branch, ids in branches.items():
            self._branch(branch, ids, by_id, first.names)
        for row in rows.messages:  # named by nothing that was read
            if row.id not in self.placed:
                builder.account(row.id, "metadata")
        self._usage(by_id)
        if self.encrypted:
            builder.report(None, "encrypted", f"{self.encrypted:,} rows of session {self.name[:40]!r} are encrypted; they cannot be read without their key")

    def _branch(self, branch: str, ids: list[int], by_id: Mapping[int, _Row], names: dict[str, str]) -> None:
        """A branch shares its first rows with what it sprang from."""
        own = [message for message in ids if message not in self.placed]
        if not own:
            return
        last = next((message for message in reversed(ids[: ids.index(own[0])])), None)
        thread = self.builder.new_thread(branch[:60], "branch", parent=MAIN if last is None else self.placed[last])
        before = len(self.builder.messages)
        self._thread(Items(self.builder, thread, trigger=None, names={**names}), own, by_id)
        if last is not None and len(self.builder.messages) > before:
            parents = [message.index for message in self.builder.messages[:before] if last in message.raw]
            self.builder.messages[before].parent = parents[-1] if parents else None

    def _thread(self, items: Items, ids: Sequence[int], by_id: Mapping[int, _Row]) -> None:
        for id_ in ids:
            if id_ in self.placed:
                continue
            row = by_id[id_]
            self.placed[id_] = items.thread
            value = self._value(row)
            if value is not None:
                items.add(value, id_, ts=row.ts)

    def _value(self, row: _Row) -> Any:
        data = row.data
        try:
            parsed = parse(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data if isinstance(data, bytes) else b"")
        except NotJson as why:
            self.builder.skip(row.id, "json", f"row {row.id}: not JSON ({why})")
            return None
        for fault in parsed.faults:
            self.builder.report(row.id, "json", f"row {row.id}: {fault}")
        if isinstance(parsed.value, dict) and "__enc__" in parsed.value:
            self.encrypted += 1
            self.builder.account(row.id, "skipped")
            return None
        if not isinstance(parsed.value, dict):
            self.builder.skip(row.id, "item", f"row {row.id}: not an item ({type(parsed.value).__name__})")
            return None
        return parsed.value

    def _usage(self, by_id: Mapping[int, _Row]) -> None:
        """Usage is known by turn. It is a call's own where the turn was one request."""
        builder = self.builder
        turns: dict[tuple[str, Any], set[int]] = {}
        for message, branch, _, turn in self.rows.structure:
            turns.setdefault((string(branch) or MAIN, turn), set()).add(message)
        calls: dict[int, set[int]] = {}
        for item in builder.messages:
            if item.call is not None:
                for number in item.raw:
                    calls.setdefault(number, set()).add(item.call)
        shared: list[tuple[str, Any, int | None, int | None, int | None]] = []
        for at, held in enumerate(self.rows.usage):
            builder.account(-self.rows.about - at - 1, "metadata")
            raw = {**held, **{name: _json(held[name]) for name in ("input_tokens_details", "output_tokens_details")}}
            usage, why = inclusive(raw)
            turn = held["user_turn_number"]
            if why:
                builder.report(None, "usage", f"turn {turn!r}: {why}")
            made = sorted({call for message in turns.get((string(held["branch_id"]) or MAIN, turn), ()) for call in calls.get(message, ())})
            if usage is None:
                continue
            if len(made) == 1 and (tokens(held["requests"]) or 1) == 1 and builder.calls[made[0]].usage is None:
                builder.calls[made[0]].usage = usage
            else:
                shared.append((string(held["branch_id"]) or MAIN, turn, tokens(held["requests"]), usage.prompt, usage.output))
        if shared:
            builder.meta["turn_usage"] = tuple(shared)
            sent, got = sum(row[3] or 0 for row in shared), sum(row[4] or 0 for row in shared)
            text = f"usage of {len(shared):,} turns is known for the turn only, not for each of its requests: {sent:,} tokens in, {got:,} out"
            builder.report(None, "turn_usage", text)


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse(value.encode("utf-8", "surrogatepass")).value
    except NotJson:
        return None
