"""What every message of a session names, calls and orders: looked up once, for all measures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..ledger import Ledger
from ..model import Message, Text, ToolCall, ToolResult, Transcript, compact_json
from ..tokens.base import Bools, Ints
from ..turns import starts_turn, tool_pairs
from .calls import Done, look, strings
from .words import IDENTIFIERS, Found, Reader, instructions


@dataclass(frozen=True, eq=False)
class Index:
    """The identifiers of all messages as columns, and their calls.

    Parameters
    ----------
    names : tuple of str
        The identifiers, by code.
    kinds : int array, shape (v,)
        Place of each one's kind in ``IDENTIFIERS``.
    start : int array, shape (n + 1,)
        The occurrences of message ``i`` are ``start[i] : start[i + 1]``.
    code : int array, shape (o,)
        The identifier of each occurrence; in a message each stands once.
    used : bool array, shape (o,)
        True where the model itself wrote it: in its text or in a call's arguments.
    fixed : int array
        Identifiers of system text and tools that stand outside the messages: they are in every request.
    calls : mapping
        ``Message.index`` → its calls.
    orders : mapping
        ``Message.index`` of a person's message → its sentences that order or forbid something.
    """

    transcript: Transcript
    reader: Reader
    codes: dict[Found, int]
    names: tuple[str, ...]
    kinds: Ints
    start: Ints
    code: Ints
    used: Bools
    fixed: Ints
    calls: dict[int, tuple[Done, ...]]
    orders: dict[int, tuple[str, ...]]

    def of(self, row: int) -> Ints:
        """The identifiers of a message."""
        return self.code[self.start[row] : self.start[row + 1]]

    def codes_in(self, text: str) -> Ints:
        """The identifiers of a text that the session knows."""
        known = (self.codes.get(found) for found in self.reader.find(text))
        return np.array(sorted(code for code in known if code is not None), np.int64)

    @cached_property
    def files(self) -> dict[str, tuple[Done, ...]]:
        """The calls that read or write each file, in order."""
        found: dict[str, list[Done]] = {}
        for row in sorted(self.calls):
            for done in self.calls[row]:
                if done.reads or done.writes:
                    for path in done.paths:
                        found.setdefault(path, []).append(done)
        return {path: tuple(touched) for path, touched in found.items()}

    @cached_property
    def file_codes(self) -> Ints:
        """The identifier of each of the files."""
        return np.array([self.codes["path", path] for path in self.files], np.int64)

    @cached_property
    def by_code(self) -> tuple[Ints, Ints]:
        """The occurrences by identifier: of identifier ``c`` the messages ``rows[start[c] : start[c + 1]]``, ascending."""
        order = np.argsort(self.code, kind="stable")
        message = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        return np.searchsorted(self.code[order], np.arange(len(self.names) + 1)), message[order]


def index_of(ledger: Ledger) -> Index:
    """The index of a ledger's transcript. Made once."""
    return ledger.memo.get("losses index", lambda: _build(ledger.transcript))


def _build(transcript: Transcript) -> Index:
    cwd = transcript.meta.get("cwd")
    home = cwd if isinstance(cwd, str) else ""
    calls = _calls(transcript, Reader(home))
    reader = Reader(home, {path for done in calls.values() for item in done for path in item.paths})
    codes: dict[Found, int] = {}
    starts, found, used = [0], [], []
    for message in transcript.messages:
        told, said = _texts(message)
        own = {codes.setdefault(item, len(codes)) for text in said for item in reader.find(text)}
        own |= {codes.setdefault(("path", path), len(codes)) for done in calls.get(message.index, ()) for path in done.paths}
        heard = {codes.setdefault(item, len(codes)) for text in told for item in reader.find(text)} - own
        found += [*sorted(own), *sorted(heard)]
        used += [True] * len(own) + [False] * len(heard)
        starts.append(len(found))
    outside = [*transcript.system, *(compact_json([tool.name, tool.description, tool.parameters]) for tool in transcript.tools)]
    fixed = {codes.setdefault(item, len(codes)) for text in outside for item in reader.find(text)}
    reader.forget()
    return Index(
        transcript=transcript,
        reader=reader,
        codes=codes,
        names=tuple(name for _, name in codes),
        kinds=np.array([IDENTIFIERS.index(kind) for kind, _ in codes], np.int64),
        start=np.array(starts, np.int64),
        code=np.array(found, np.int64),
        used=np.array(used, bool),
        fixed=np.array(sorted(fixed), np.int64),
        calls=calls,
        orders={message.index: instructions(message.text) for message in transcript.messages if starts_turn(message)},
    )


def _calls(transcript: Transcript, reader: Reader) -> dict[int, tuple[Done, ...]]:
    results: dict[tuple[int, str], list[int]] = {}
    for pair in reversed(tool_pairs(transcript.messages)):
        if pair.call is not None:
            results.setdefault((pair.call, pair.id), []).append(-1 if pair.result is None else pair.result)
    calls = {}
    for message in transcript.messages:
        made = message.calls
        if made:
            calls[message.index] = tuple(look(call, message.index, results[message.index, call.id].pop(), reader) for call in made)
    return calls


def _texts(message: Message) -> tuple[list[str], list[str]]:
    """What a message was told, and what the model said in it. Reasoning is neither: it is not always sent again."""
    told: list[str] = []
    said: list[str] = []
    for part in message.parts:
        if type(part) is Text:
            (said if message.role == "assistant" else told).append(part.text)
        elif type(part) is ToolResult:
            told += [piece.text for piece in part.parts if type(piece) is Text]
        elif type(part) is ToolCall:
            said += [part.arguments_raw] if part.arguments is None else strings(part.arguments)
    return told, said
