"""A session walked once: what left the context, when, and what was used after that.

Time is ``Message.index``: the message ``q`` was made by a request that held the messages before it, except those that
had left by then. Each occurrence of an identifier is added once and removed once, so the walk is linear in the session
and in what changes, however many requests there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..tokens.base import Bools, Ints
from .calls import Done
from .index import Index
from .measure import Held, Row
from .words import IDENTIFIERS, plain

NOTHING: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """The context changed before message `at` was made.

    Parameters
    ----------
    at : int
        ``Message.index`` of the first message that was made with the new context.
    gone, back : sequence of int
        Messages before `at` that left it or were changed in it; messages that returned to it.
    texts : tuple of str
        All texts in it that are no recorded message: notes, edited messages, added text.
    """

    at: int
    gone: Sequence[int] = ()
    back: Sequence[int] = ()
    texts: tuple[str, ...] = NOTHING


class Texts:
    """What the texts beside the recorded messages hold; looked at when it is asked for."""

    def __init__(self, index: Index, texts: tuple[str, ...]) -> None:
        self.texts = texts
        self._index = index
        self._codes: frozenset[int] | None = None
        self._plain: str | None = None

    @property
    def codes(self) -> frozenset[int]:
        """The session's identifiers in them."""
        if self._codes is None:
            self._codes = frozenset(int(code) for text in self.texts for code in self._index.codes_in(text))
        return self._codes

    def hold(self, sentence: str) -> bool:
        """Whether a sentence stands in one of them, white space and case apart."""
        if not self.texts:
            return False
        if self._plain is None:
            self._plain = "\n".join(plain(text) for text in self.texts)
        return plain(sentence) in self._plain


@dataclass(frozen=True, eq=False)
class Moment:
    """The context of one request, as far as it differs from all that was said before.

    Parameters
    ----------
    at : int
        ``Message.index`` of the message that the request made.
    gone : bool array
        By ``Message.index``: not in it as it was said.
    removed : int array
        By ``Message.index``: the change that removed it last; -1 for none.
    files : int array
        By file, in the order of ``Index.files``: how many of the messages that are sent name it.
    """

    at: int
    gone: Bools
    removed: Ints
    files: Ints
    texts: Texts


@dataclass(eq=False)
class Walked:
    """What a walk found. The rows of what was needed carry the place where that was.

    Parameters
    ----------
    used, reread, repeated, rework : list of Row
        Identifiers of removed messages that the model used again; files read again; calls made again, and those of them
        before which nothing was written that they depend on.
    calls, reads : list of int
        ``Message.index`` of each call, and of each reading of a file, after the first change that removed something.
    moments : list of Moment
        At the places that were asked for.
    """

    changes: list[int] = field(default_factory=list)
    used: list[Row] = field(default_factory=list)
    reread: list[Row] = field(default_factory=list)
    repeated: list[Row] = field(default_factory=list)
    rework: list[Row] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)


def walk(index: Index, rows: Iterable[int], changes: Sequence[Change], moments: Collection[int] = ()) -> Walked:
    """Walk a thread.

    Parameters
    ----------
    rows : iterable of int
        ``Message.index`` of the messages, ascending.
    changes : sequence of Change
        Ascending by `at`.
    moments : collection of int
        Where the context is to be remembered, as ``Message.index``; it is seen as the request sees it that makes this message.
    """
    state = _State(index)
    wanted = sorted(set(moments), reverse=True)
    later = list(reversed(changes))
    for row in rows:
        while later and later[-1].at <= row:
            change = later.pop()
            while wanted and wanted[-1] < change.at:
                state.remember(wanted.pop())
            state.apply(change)
        while wanted and wanted[-1] <= row:
            state.remember(wanted.pop())
        state.say(row)
    for change in reversed(later):
        while wanted and wanted[-1] < change.at:
            state.remember(wanted.pop())
        state.apply(change)
    while wanted:
        state.remember(wanted.pop())
    return state.found


class _State:
    def __init__(self, index: Index) -> None:
        messages, names = len(index.transcript.messages), len(index.names)
        self.index = index
        self.found = Walked()
        self.number = -1  # of changes
        self.cut = False  # something was removed
        self.texts = Texts(index, NOTHING)
        self.here = np.zeros(messages + 1, bool)  # said, and in the context
        self.gone = np.zeros(messages + 1, bool)
        self.removed = np.full(messages + 1, -1, np.int64)  # the change that removed it last
        self.count = np.zeros(names, np.int64)  # messages in the context that hold it
        self.count[index.fixed] = 1
        self.first = np.full(names, -1, np.int64)  # the message that held it first
        self.newest = np.full(names, -1, np.int64)  # the number of changes when it was said last
        self.taken = np.full(names, -1, np.int64)  # the change that removed a message with it last
        self.fixed = np.zeros(names, bool)
        self.fixed[index.fixed] = True
        self.last: dict[bytes, Done] = {}
        self.read: dict[str, Done] = {}
        self.written: dict[str, int] = {}
        self.any_written = -1

    def apply(self, change: Change) -> None:
        index, removed = self.index, False
        self.number += 1
        for row in change.gone:
            if not self.gone[row]:
                self.gone[row] = removed = True
                self.removed[row] = self.number
                if self.here[row]:
                    codes = index.of(row)
                    self.count[codes] -= 1
                    self.taken[codes] = self.number
                    self.here[row] = False
        for row in change.back:
            if self.gone[row]:
                self.gone[row] = False
                self.here[row] = True
                self.count[index.of(row)] += 1
        self.found.changes.append(change.at)
        self.cut |= removed
        if change.texts != self.texts.texts:
            self.texts = Texts(index, change.texts)

    def say(self, row: int) -> None:
        index = self.index
        codes = index.of(row)
        if self.cut and index.transcript.messages[row].role == "assistant":
            self._use(row, codes[index.used[index.start[row] : index.start[row + 1]]])
        for done in index.calls.get(row, ()):
            self._call(done)
        new = codes[self.first[codes] < 0]
        self.first[new] = row
        self.newest[codes] = self.number
        self.count[codes] += 1
        self.here[row] = True

    def _use(self, row: int, codes: Ints) -> None:
        """What the model uses of what was removed since it was said last, if it was first said in what is gone."""
        stake = codes[(self.taken[codes] > self.newest[codes]) & ~self.fixed[codes]]
        for code in stake[self.gone[self.first[stake]]].tolist():
            held: Held = "kept" if self.count[code] > 0 else "note" if code in self.texts.codes else ""
            source, change = int(self.first[code]), int(self.taken[code])
            kind = IDENTIFIERS[int(self.index.kinds[code])]
            self.found.used.append(Row(kind, self.index.names[code], source, self.found.changes[change], row, held, change))

    def _call(self, done: Done) -> None:
        before = self.last.get(done.key)
        if self.cut:
            self.found.calls.append(done.row)
            if before is not None and self._is_gone(before):
                again = self._again("call", done.said, before, done)
                self.found.repeated.append(again)
                if self._written(done) <= before.row:
                    self.found.rework.append(again)
            if done.reads:
                self.found.reads.append(done.row)
                for path in done.paths:
                    seen = self.read.get(path)
                    if seen is not None and self._is_gone(seen):
                        self.found.reread.append(self._again("file", path, seen, done))
                        break
        self.last[done.key] = done
        if done.reads:
            self.read.update(dict.fromkeys(done.paths, done))
        if done.writes:
            self.any_written = done.row
            self.written.update(dict.fromkeys(done.paths, done.row))

    def _is_gone(self, done: Done) -> bool:
        return bool(self.gone[done.result if done.result >= 0 else done.row])

    def _written(self, done: Done) -> int:
        """When something was last written that this call may depend on."""
        return self.any_written if done.loose else max((self.written.get(path, -1) for path in done.paths), default=-1)

    def _again(self, kind: str, text: str, before: Done, done: Done) -> Row:
        row = before.result if before.result >= 0 else before.row
        change = int(self.removed[row])
        return Row(kind, text, row, self.found.changes[change], done.row, "", change)

    def remember(self, at: int) -> None:
        self.found.moments.append(Moment(at, self.gone.copy(), self.removed.copy(), self.count[self.index.file_codes], self.texts))
