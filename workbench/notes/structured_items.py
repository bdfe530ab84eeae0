"""What one message gives to a structured summary: its goal, decisions, questions, to-do items and facts.

Plain rules and word lists, no model: a summary that is the same for the same messages. Every item is verbatim: a piece of one
line of the message's text, of a tool's result or of a call's arguments. All patterns are linear in the text, and of a text
longer than twice `LOOK` only both ends are read: what a long output says of itself stands there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..model import COMPACT_SUMMARY, HIDDEN, META, SYNTHETIC, Message, ToolCall, ToolResult
from ..turns import starts_turn
from .structured_facts import paths_of, telling_lines
from .structured_text import ITEM_CHARS, LOOK, clip, ends, joined, prose, said_in, sentences, substance

_DECISIONS, _PATHS, _FACTS, _TODOS = 4, 4, 3, 32  # most of one message; a summary that stands for many may give more
_SUMMARY_DECISIONS, _SUMMARY_FACTS = 12, 8


@dataclass(frozen=True, slots=True)
class Found:
    """The items of one message, in the order in which they stand in it.

    Parameters
    ----------
    todos : tuple of (str, bool)
        To-do items and whether each is done.
    new_list : bool
        True if they are a whole list that takes the place of the one before.
    """

    goal: str | None = None
    decisions: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    todos: tuple[tuple[str, bool], ...] = ()
    new_list: bool = False
    facts: tuple[str, ...] = ()


_NOTHING = Found()


def find_items(message: Message) -> Found:
    """Find the items of a message. Rows that the harness put in, and system text, give none.

    Examples
    --------
    >>> from workbench.model import Text
    >>> find_items(Message(0, "", "user", (Text("Hi! Please fix the export. It drops rows."),))).goal
    'Hi! Please fix the export.'
    >>> find_items(Message(1, "", "assistant", (Text("It drops them late. I'll group by currency instead."),))).decisions
    ("I'll group by currency instead.",)
    """
    if starts_turn(message):
        text = message.text
        return Found(goal=_goal(text), questions=_questions(text), todos=_checkboxes(text))
    if message.role == "note" or COMPACT_SUMMARY in message.flags:
        text = message.text
        return Found(decisions=_decisions(text, _SUMMARY_DECISIONS), todos=_checkboxes(text), facts=telling_lines(text, False, _SUMMARY_FACTS))
    if message.role not in ("assistant", "tool") or message.flags & {META, HIDDEN, SYNTHETIC}:
        return _NOTHING
    text = message.text
    todos, new_list = _checkboxes(text), False
    facts: list[str] = []
    paths: list[str] = []
    for part in message.parts:
        if type(part) is ToolCall:
            listed = _todo_list(part)
            if listed is None:
                paths += paths_of(part)
            else:
                todos, new_list = (listed[0], True) if listed[1] else (todos + listed[0], new_list)
        elif type(part) is ToolResult:
            facts += telling_lines(part.text, part.is_error, _FACTS)
    return Found(
        decisions=_decisions(text, _DECISIONS),
        questions=_questions(text) if message.role == "assistant" else (),
        todos=todos,
        new_list=new_list,
        facts=(*tuple(dict.fromkeys(paths))[:_PATHS], *facts),
    )


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

_ENOUGH, _ENOUGH_FOR_A_GOAL = 12, 20


def _goal(text: str) -> str | None:
    """The first sentence of a person's message; a mere greeting is joined by what follows it, or passed over."""
    short = None
    for line in prose(text):
        end = 0
        for _, end in sentences(line):
            if substance(line[:end]) >= _ENOUGH_FOR_A_GOAL:
                return line[: min(end, ITEM_CHARS)].strip()
        if short is None and substance(line):
            short = line[:ITEM_CHARS].strip()
    return short


def _questions(text: str) -> tuple[str, ...]:
    asked = [said[:ITEM_CHARS] for said in said_in(text) if _ASKS.search(said[-4:]) and substance(said) >= 6]
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
_DECIDES = re.compile(
    rf"\b(?:I|we)(?:['’](?:ll|ve|d|m|re))?\s(?:(?!not\b|can\b)[\w']{{1,12}}\s){{0,3}}?(?:{_TO_DO}|{_DONE})\b"
    rf"|\blet(?:['’]s| us| me)\s(?:\w{{1,12}}\s)?(?:{_TO_DO})\b"
    rf"|^\W{{0,4}}(?:{_DONE})\b"
    rf"|\b(?:was|were|has been|have been|is now|are now)\s(?:(?!not\b)\w{{1,12}}\s)?(?:{_DONE})\b"
    r"|\b(?:is|are)\s(?:added|removed|deleted|changed|replaced|renamed|moved|created|fixed|updated|implemented|committed|deployed|closed|resolved|corrected|done|ready)\b"
    r"|\b(?:decision|decided|instead|rather than|no longer|from now on|now uses?|now (?:is|are|has|have)|(?:is|are|has|have) now)\b"
    # German, French, Spanish, Portuguese, Italian
    r"|\b(?:entschieden|entscheide|geändert|hinzugefügt|entfernt|ersetzt|umbenannt|gelöscht|angelegt|behoben|stattdessen|anstatt|künftig|statt)\b"
    r"|\b(?:j['’]ai|nous avons)\s(?:choisi|décidé|modifié|ajouté|supprimé|corrigé|remplacé|créé|gardé)|\bplutôt que\b|\bau lieu d"
    r"|\b(?:decid[ií]|decidimos|he|hemos|foi|fiz|ho|abbiamo)\s(?:cambiado|añadido|eliminado|corregido|creado|elegido|alterado|adicionado|removido|corrigido|"
    r"criado|cambiato|aggiunto|rimosso|corretto|creato|scelto|deciso|decidido)\b|\ben lugar de\b|\bem vez de\b|\binvece di\b"
    # Russian, Chinese, Japanese, Korean
    r"|(?:решил|выбрал|измен[еи]|добавил|удалил|исправил|заменил|создал|перен[её]с|вместо)"
    r"|(?:决定|決定|改为|改成|改用|已修改|修改了|已添加|添加了|新增了|删除了|已删除|修复了|已修复|采用|替换为|选择了)"
    r"|(?:に決め|にします|にしました|変更し|追加し|修正し|削除し|置き換え|採用し|直しま|加えま|外しま|変えま|除きま|使います|載せま|進めま)"
    r"|(?:결정|변경했|추가했|수정했|삭제했|바꿨|선택했)",
    re.IGNORECASE,
)
_SENTENCE = 400  # of a longer one only the beginning is looked at


def _decisions(text: str, most: int) -> tuple[str, ...]:
    """Sentences that state a choice or a change; a question states none."""
    chosen = [
        said[:ITEM_CHARS].rstrip() for said in said_in(text) if not _ASKS.search(said[-4:]) and substance(said) >= _ENOUGH and _DECIDES.search(said[:_SENTENCE])
    ]
    return tuple(dict.fromkeys(chosen))[:most]


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


def _todo_list(call: ToolCall) -> tuple[tuple[tuple[str, bool], ...], bool] | None:
    """A list that a to-do or planning tool was given, and whether it is the whole list; None if the call is something else."""
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
            return tuple(found[-_TODOS:]), not arguments.get("merge")
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
