"""What one message gives to a structured summary: its goal, decisions, questions, to-do items and facts.

Plain rules and word lists, no model: a summary that is the same for the same messages. Every item is verbatim: a piece of one
line of the message's text, of a tool's result or of a call's arguments. All patterns are linear in the text, and of a text
longer than twice `LOOK` only both ends are read: what a long output says of itself stands there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..model import COMPACT_SUMMARY, HIDDEN, META, SYNTHETIC, Message, ToolCall, ToolResult
from ..turns import starts_turn
from .structured_facts import paths_of, telling_lines
from .structured_text import ITEM_CHARS, LOOK, clip, ends, joined, prose, said_in, sentences, substance

_DECISIONS, _PATHS, _FACTS, _TODOS = 4, 4, 3, 32  # most of one message; a summary that stands for many may give more
_SUMMARY_DECISIONS, _SUMMARY_FACTS = 12, 8


class Items:
    """The items of one message, in the order in which they stand in it; each kind is looked for when it is asked for.

    Rows that the harness put in, and system text, have none. A note and the summary of a real compaction speak for many
    messages, so they may give more than a message does.

    Examples
    --------
    >>> from workbench.model import Text
    >>> Items(Message(0, "", "user", (Text("Hi! Please fix the export. It drops rows."),))).goal
    'Hi! Please fix the export.'
    >>> Items(Message(1, "", "assistant", (Text("It drops them late. I'll group by currency instead."),))).decisions
    ("I'll group by currency instead.",)
    """

    def __init__(self, message: Message) -> None:
        self._person = starts_turn(message)
        self._summary = message.role == "note" or COMPACT_SUMMARY in message.flags
        self._model = message.role in ("assistant", "tool") and not message.flags & {META, HIDDEN, SYNTHETIC} and not self._summary
        self._message = message

    @cached_property
    def goal(self) -> str | None:
        """What a person wants: the first sentence."""
        return _goal(self._message.text) if self._person else None

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """Questions of a person or of the assistant."""
        return _questions(self._message.text) if self._person or self._model else ()

    @cached_property
    def decisions(self) -> tuple[str, ...]:
        """What the assistant chose or changed."""
        if self._model:
            return _decisions(self._message.text, _DECISIONS)
        return _decisions(self._message.text, _SUMMARY_DECISIONS) if self._summary else ()

    @cached_property
    def todo_list(self) -> tuple[tuple[str, bool], ...] | None:
        """The whole list that a to-do tool was given, each item and whether it is done; None if none was."""
        lists = [listed for call in self._message.calls if (listed := _todo_list(call)) is not None and listed.whole] if self._model else []
        return lists[-1].items if lists else None

    @cached_property
    def todos(self) -> tuple[tuple[str, bool], ...]:
        """To-do items beside a whole list, each with whether it is done: checkboxes, and what was added to a list."""
        if not (self._person or self._summary or self._model):
            return ()
        added = [item for call in self._message.calls if (listed := _todo_list(call)) is not None and not listed.whole for item in listed.items]
        return (*_checkboxes(self._message.text), *added)

    @cached_property
    def facts(self) -> tuple[str, ...]:
        """The paths of its calls, and the telling lines of its results."""
        if self._summary:
            return telling_lines(self._message.text, False, _SUMMARY_FACTS)
        if not self._model:
            return ()
        paths = dict.fromkeys(path for call in self._message.calls if _todo_list(call) is None for path in paths_of(call))
        results = (part for part in self._message.parts if type(part) is ToolResult)
        return (*tuple(paths)[:_PATHS], *(line for result in results for line in telling_lines(result.text, result.is_error, _FACTS)))


def call_item(call: ToolCall) -> str:
    """What names a call: its most telling argument, else its arguments as written, else the tool's name."""
    arguments = call.arguments
    if isinstance(arguments, Mapping):
        for key in _TELLING:
            said = clip(joined(arguments.get(key)))
            if said:
                return said
    said = clip(call.arguments_raw)
    return said if len(said) > 2 else clip(call.name)


_TELLING = ("command", "cmd", "description", "title", "question", "query", "file_path", "path", "prompt", "url", "pattern", "name")


# Goals, questions ---------------------------------------------------------------------------------------------------

_ENOUGH_TO_SAY, _ENOUGH, _ENOUGH_FOR_A_GOAL = 6, 12, 20


def _goal(text: str) -> str | None:
    """The first sentence of a person's message; a mere greeting is joined by what follows it, or passed over.

    "ok" and "wow" say nothing that a summary wants.
    """
    short = None
    for line in prose(text):
        end = 0
        for _, end in sentences(line):
            if substance(line[:end]) >= _ENOUGH_FOR_A_GOAL:
                return line[: min(end, ITEM_CHARS)].strip()
        if short is None and substance(line) >= _ENOUGH_TO_SAY:
            short = line[:ITEM_CHARS].strip()
    return short


def _questions(text: str) -> tuple[str, ...]:
    asked = [said[:ITEM_CHARS] for said in said_in(text) if _ASKS.search(said[-4:]) and substance(said) >= _ENOUGH_TO_SAY]
    return tuple(dict.fromkeys(asked))[-_DECISIONS:]


_ASKS = re.compile(r"[?？؟]")


# Decisions ------------------------------------------------------------------------------------------------------------

_TO_DO = (
    "use|keep|add|remove|delete|drop|change|replace|rename|move|switch|write|create|fix|update|set|put|split|merge|revert|migrate|refactor|rewrite|implement|"
    "introduce|extract|convert|store|limit|skip|ignore|disable|enable|install|upgrade|downgrade|bump|refund|cancel|book|order|send|return|exchange|ship|"
    "apply|choose|pick|go with|stick with|leave|defer|postpone|adopt|prefer|avoid|treat|commit|push|deploy|make|group|sort|wrap|round"
)
_DONE = (
    "used|kept|added|removed|deleted|dropped|changed|replaced|renamed|moved|switched|wrote|written|created|fixed|updated|split|merged|reverted|migrated|"
    "refactored|rewrote|rewritten|implemented|introduced|extracted|converted|stored|limited|skipped|ignored|disabled|enabled|installed|upgraded|downgraded|"
    "bumped|refunded|cancelled|canceled|booked|ordered|sent|returned|exchanged|shipped|applied|chose|chosen|picked|left|deferred|postponed|adopted|decided|"
    "agreed|committed|pushed|deployed|closed|resolved|corrected|adjusted|simplified|documented|tested|built|made"
)
_IS_DONE = "added|removed|deleted|changed|replaced|renamed|moved|created|fixed|updated|implemented|committed|deployed|closed|resolved|corrected|done|ready"
#: German, French, Spanish, Portuguese, Italian.
_ELSEWHERE = (
    "entschieden|entscheide|geändert|hinzugefügt|entfernt|ersetzt|umbenannt|gelöscht|angelegt|behoben|stattdessen|anstatt|künftig|choisi|décidé|modifié|ajouté|"
    "supprimé|corrigé|remplacé|plutôt|decidí|decidimos|cambiado|añadido|eliminado|corregido|elegido|alterado|adicionado|removido|corrigido|cambiato|aggiunto|"
    "rimosso|corretto|scelto|deciso|decidido|invece"
)
#: Russian, Chinese, Japanese, Korean: stems, for their words have no end that a pattern could ask for.
_STEMS = re.compile(
    r"решил|выбрал|измен[еи]|добавил|удалил|исправил|заменил|создал|перен[её]с|вместо"
    r"|决定|決定|改为|改成|改用|已修改|修改了|已添加|添加了|新增了|删除了|已删除|修复了|已修复|采用|替换为|选择了"
    r"|に決め|にします|にしました|変更し|追加し|修正し|削除し|置き換え|採用し|直しま|加えま|外しま|変えま|除きま|使います|載せま|進めま"
    r"|결정|변경했|추가했|수정했|삭제했|바꿨|선택했"
)
_DECIDES = re.compile(
    rf"\b(?:i|we)(?:['’](?:ll|ve|d|m|re))?\s(?:(?!not\b|can\b)[\w']{{1,12}}\s){{0,3}}?(?:{_TO_DO}|{_DONE})\b"
    rf"|\blet(?:['’]s| us)\s(?:\w{{1,12}}\s)?(?:{_TO_DO})\b"
    rf"|^\W{{0,4}}(?:done\W{{1,3}})?(?:{_DONE})\b"
    rf"|\b(?:was|were|has been|have been|is now|are now)\s(?:(?!not\b)\w{{1,12}}\s)?(?:{_DONE})\b"
    rf"|\b(?:is|are)\s(?:{_IS_DONE})\b"
    r"|\b(?:decision|decided|instead|rather than|no longer|from now on|now uses?|now (?:is|are|has|have)|(?:is|are|has|have) now)\b"
    rf"|\b(?:{_ELSEWHERE})\b"
)
#: Words without which no sentence of these languages decides: most sentences have none, and need no pattern.
_TRIGGERS = frozenset(f"{_TO_DO}|{_DONE}|{_IS_DONE}|{_ELSEWHERE}|go|stick|decision|instead|rather|longer|now".split("|"))
_LETTERS = re.compile(r"[^\W\d_]+")
_NO_STATEMENT = re.compile(r"[?？؟]|[:：]\W*$")
_SENTENCE = 400  # of a longer one only the beginning is looked at


def _decisions(text: str, most: int) -> tuple[str, ...]:
    """Sentences that state a choice or a change; a question states none, nor does what only announces something."""
    chosen = (said[:ITEM_CHARS].rstrip() for said in said_in(text) if _decides(said))
    return tuple(dict.fromkeys(chosen))[:most]


def _decides(said: str) -> bool:
    low = said[:_SENTENCE].lower()
    stated = not _TRIGGERS.isdisjoint(_LETTERS.findall(low)) and _DECIDES.search(low)
    return bool(stated or (not low.isascii() and _STEMS.search(low))) and not _NO_STATEMENT.search(said[-4:]) and substance(said) >= _ENOUGH


# To-do items ----------------------------------------------------------------------------------------------------------

_BOX = re.compile(r"^[ \t]*+(?:[-*+]|\d{1,3}[.)])[ \t]++\[([ xX~/-])\][ \t]++([^\n\r]++)", re.MULTILINE)
_STATUS_LINE = re.compile(r"^[ \t]*+(?:\d{1,3}[.)]|[-*+])?[ \t]*+\[(\w{4,12})\][ \t]++([^\n\r]++)", re.MULTILINE)
_LISTS = ("todos", "todo_list", "todo", "plan", "tasks", "task_list", "items")
_TITLES = ("content", "step", "title", "subject", "task", "description", "text", "name")
_OVER = frozenset({"completed", "complete", "done", "finished", "cancelled", "canceled", "skipped", "deleted", "closed", "resolved", "true"})


def _checkboxes(text: str) -> tuple[tuple[str, bool], ...]:
    """Markdown checkboxes: ``- [ ] open``, ``- [x] done``."""
    if "[" not in text:
        return ()
    found = [(said, mark in "xX-") for part in ends(text) for mark, rest in _BOX.findall(part) if (said := clip(rest))]
    return tuple(found[-_TODOS:])


@dataclass(frozen=True, slots=True)
class _Listed:
    """To-do items that a tool was given. `whole`: they take the place of those before."""

    items: tuple[tuple[str, bool], ...]
    whole: bool


def _todo_list(call: ToolCall) -> _Listed | None:
    """What a to-do or planning tool was given; None if the call is something else."""
    arguments = call.arguments
    if not isinstance(arguments, Mapping):
        return None
    for key in _LISTS:
        value = arguments.get(key)
        found: list[tuple[str, bool]] = []
        if isinstance(value, list):
            for item in value:
                status = _status(item)
                title = next((said for name in _TITLES if (said := _text_of(item, name))), "") if status is not None else ""
                if title and status is not None:
                    found.append((title, status in _OVER))
        elif isinstance(value, str):
            found += [(said, status.lower() in _OVER) for status, rest in _STATUS_LINE.findall(value[:LOOK]) if (said := clip(rest))]
        if found:
            return _Listed(tuple(found[-_TODOS:]), not arguments.get("merge"))
    return None


def _status(item: Any) -> str | None:
    if isinstance(item, Mapping):
        for key in ("status", "state", "done", "completed"):
            if isinstance(item.get(key), (str, bool)):
                return str(item[key]).lower()
    return None


def _text_of(item: Mapping[str, Any], key: str) -> str:
    value = item.get(key)
    return clip(value) if isinstance(value, str) else ""
