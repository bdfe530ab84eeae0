"""What stands in the context of one request of what matters whoever needs it: files, orders, open work, and the note itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..model import Message, ToolCall
from ..turns import starts_turn
from .index import Index
from .measure import Held, Measure, Row, held_measure
from .walk import Moment
from .words import Found

_SAID = 300  # characters of a text that is shown
_LOOKED_UP = 100  # identifiers of a note that are looked for as a part of a longer word


def artifact_trail(index: Index, rows: Collection[int], moment: Moment, changes: Sequence[int]) -> Measure:
    """The files that were read or written: does a message that is sent, or a note, still name them?"""
    inside, found = frozenset(rows), []
    for at, (path, touched) in enumerate(index.files.items()):
        before = [done for done in touched if done.row < moment.at and done.row in inside]
        if not before:
            continue
        code = int(index.file_codes[at])
        held: Held = "kept" if moment.files[at] > 0 else "note" if code in moment.texts.codes else ""
        needed = next((done.row for done in touched if done.row >= moment.at and done.row in inside), -1)
        found.append(_row("file", path, before[-1].row, moment, changes, held, needed))
    return held_measure(
        "artifact_trail", "Files still named", "Files that were read or written before the cut, and are named in what is sent.", sorted(found, key=_by_need)
    )


def instruction_survival(index: Index, rows: Sequence[int], moment: Moment, changes: Sequence[int]) -> Measure:
    """The sentences of persons that order or forbid something."""
    found = []
    for row in rows:
        if row < moment.at:
            found += [_row("sentence", text, row, moment, changes, _held(moment, row, text)) for text in index.orders.get(row, ())]
    says = "Sentences of persons with must, never, always, only or don't that are still sent, word for word."
    return held_measure("instruction_survival", "Instructions still there", says, found)


def user_messages(index: Index, rows: Sequence[int], moment: Moment, changes: Sequence[int]) -> Measure:
    """The whole messages of persons."""
    messages = index.transcript.messages
    spoken = [messages[row] for row in rows if row < moment.at and starts_turn(messages[row]) and messages[row].text.strip()]
    found = [_row("message", message.text, message.index, moment, changes, _held(moment, message.index, message.text)) for message in spoken]
    return held_measure("user_messages", "User messages still there", "Messages of persons that are still sent as they were said, or whole in a note.", found)


def pending_work(index: Index, rows: Sequence[int], moment: Moment, changes: Sequence[int]) -> Measure:
    """The last request of a person, what is still to be done by the newest list, and calls that wait for their result."""
    messages = index.transcript.messages
    before = [row for row in rows if row < moment.at]
    found = []
    last = next((row for row in reversed(before) if starts_turn(messages[row]) and messages[row].text.strip()), None)
    if last is not None:
        found.append(_row("request", messages[last].text, last, moment, changes, _held(moment, last, messages[last].text)))
    for row in reversed(before):
        listed = [todo for call in messages[row].calls if (todo := _todos(call)) is not None]
        if listed:
            found += [_row("to-do", text, row, moment, changes, _held(moment, row, text)) for text in listed[-1]]
            break
    for row in before:
        for done in index.calls.get(row, ()) if last is None or row > last else ():
            if not 0 <= done.result < moment.at:
                found.append(_row("unanswered", done.said, row, moment, changes, _held(moment, row, done.said)))
    says = "The person's last request, open points of the newest to-do list, and calls without a result yet, that are still sent."
    return held_measure("pending_work", "Open work still there", says, found)


_LISTS = ("todos", "plan", "items", "tasks", "todo_list")
_TEXTS = ("content", "step", "text", "title", "description", "task")
_DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "closed", "skipped"})


def _todos(call: ToolCall) -> list[str] | None:
    """The open points of a to-do list that a call writes; None if it writes none."""
    if not isinstance(call.arguments, Mapping):
        return None
    name = call.name.lower()
    if "todo" not in name and "plan" not in name and "task" not in name:
        return None
    items: Any = next((call.arguments[key] for key in _LISTS if isinstance(call.arguments.get(key), list)), None)
    if items is None:
        return None
    found = []
    for item in items:
        if isinstance(item, Mapping) and str(item.get("status", "")).lower() not in _DONE:
            text = next((item[key] for key in _TEXTS if isinstance(item.get(key), str) and item[key].strip()), None)
            found += [text] if text else []
    return found


def note_precision(index: Index, rows: Sequence[int], notes: Sequence[tuple[str, Sequence[int]]]) -> Measure:
    """Identifiers in notes that stand nowhere in what the notes replaced.

    Parameters
    ----------
    notes : sequence of (text, covers)
        Each note and the messages that it stands for.
    """
    found: list[Row] = []
    total = 0
    holders = _Holders(index)
    for text, covers in notes:
        named = sorted(index.reader.find(text))
        total += len(named)
        inside = frozenset(covers)
        strange = [item for item in named if not holders.any_in(item, inside)]
        found += [Row(kind, name, holders.first(kind, name)) for kind, name in holders.not_cut(strange, covers)]
    index.reader.forget()
    says = "Identifiers in a note that stand nowhere in the messages that it stands for."
    return Measure("note_precision", "Only in the note", says, len(found), total, tuple(found), more_is_worse=True)


class _Holders:
    """In which messages an identifier stands."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._start, self._rows = index.by_code

    def any_in(self, item: Found, inside: frozenset[int]) -> bool:
        code = self._index.codes.get(item)
        return code is not None and any(row in inside for row in self._rows[self._start[code] : self._start[code + 1]].tolist())

    def first(self, kind: str, name: str) -> int:
        code = self._index.codes.get((kind, name))
        if code is None or self._start[code] == self._start[code + 1]:
            return -1
        return int(self._rows[self._start[code]])

    def not_cut(self, strange: Sequence[Found], covers: Sequence[int]) -> Iterator[Found]:
        """Those that are no piece of a longer word: a note that was cut holds halves of words."""
        left: dict[Found, None] = dict.fromkeys(strange[:_LOOKED_UP])
        for row in covers:
            if not left:
                break
            text = _all_text(self._index.transcript.messages[row])
            for item in [item for item in left if item[1] in text]:
                del left[item]
        return iter([*left, *strange[_LOOKED_UP:]])


def _all_text(message: Message) -> str:
    return "\n".join([*_texts_of(message)])


def _texts_of(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield part.name
            yield part.arguments_raw
        else:
            text = getattr(part, "text", None)
            if isinstance(text, str):
                yield text


def _held(moment: Moment, row: int, text: str) -> Held:
    return "kept" if not moment.gone[row] else "note" if moment.texts.hold(text) else ""


def _row(kind: str, text: str, source: int, moment: Moment, changes: Sequence[int], held: Held, needed: int = -1) -> Row:
    change = int(moment.removed[source]) if moment.gone[source] else -1
    return Row(kind, text[:_SAID], source, changes[change] if change >= 0 else -1, needed, held, change)


def _by_need(row: Row) -> tuple[bool, int]:
    return row.needed < 0, row.needed
