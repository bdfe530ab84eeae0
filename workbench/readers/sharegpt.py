"""Chat datasets, one conversation a row: ShareGPT, preference pairs, rows of Hugging Face data sets, as JSON, JSONL or Parquet.

A row's records are the turns in its list; the two answers of a preference pair stand beside it. The one that was rejected is a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..errors import ReadError
from ..model import Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .exchanges import digest
from .fields import mapping, string, tool_specs
from .parquet_rows import ParquetRows
from .sharegpt_turns import ROLES, TURN, Turns, is_turn, parsed, said, speaker, tools_of
from .source import Document

_TALKS = ("conversations", "conversation", "messages", "dialog", "dialogue", "conversation_history", "trajectory")
_MEDIA = ("images", "image", "videos", "video", "audios", "audio")
_IDS = ("conversation_id", "conversation_hash", "id", "prompt_id", "custom_id", "trajectory_id", "traj_id", "instance_id")
_ABOUT = ("system", "system_prompt", "tools", "functions", "model", "model_name", "title", *_IDS)
_PAIRS = ("prompt", "completion", "chosen", "rejected", "instruction", "input", "output", "history")
COLUMNS = (*_TALKS, *_MEDIA, *_ABOUT, *_PAIRS)


class ShareGptReader:
    """Reads chat datasets."""

    info = ReaderInfo("sharegpt", "ShareGPT and Hugging Face chat rows, as JSON, JSONL or Parquet: a run for each row")
    kinds = frozenset({"json", "jsonl", "parquet"})

    def detect(self, document: Document) -> Match | None:
        """Looks for rows with turns of ``from`` and ``value``, with typed values, media columns, or preference pairs."""
        if document.kind == "parquet":
            return _detect_parquet(document)
        rows = [row for _, row in islice(_rows(document), 100)]
        matches = [match for row in rows if (match := _detect(row)) is not None]
        if not matches and isinstance(document.value, dict) and "rows" in document.value:
            matches = [Match(0.9, ("turns, as Hugging Face's server hands them out",)) for row in rows if _talk(row) is not None]
        if not matches or len(matches) * 2 <= len(rows):
            return None
        best = max(matches, key=lambda match: match.confidence)
        return Match(best.confidence, (f"rows with {best.reasons[0]}",))

    def read(self, document: Document) -> list[Transcript]:
        """One transcript per row."""
        if document.kind == "parquet":
            return _read_parquet(document)
        own = isinstance(document.value, dict) and "rows" not in document.value
        total = len(document.skipped) if not own else 0
        return _read(document, _rows(document), total, own=own)


READER = ShareGptReader()


@dataclass(frozen=True, slots=True)
class _Talk:
    """What a row says: turns, and of a preference pair the turns that were chosen and those that were not."""

    turns: Sequence[Any]
    chosen: Sequence[Any] = ()
    rejected: Sequence[Any] = ()


def _rows(document: Document) -> Iterator[tuple[int, Any]]:
    """The rows with their numbers, also as Hugging Face's server hands them out."""
    value = document.value
    if isinstance(value, dict) and isinstance(value.get("rows"), list):
        yield from ((number, mapping(row).get("row", row)) for number, row in enumerate(value["rows"], 1))
    else:
        yield from ((record.number, record.value) for record in document.rows())


def _turns(value: Any, role: str = "") -> list[Any]:
    """Turns out of a list of them, one, or its text; empty if it is none of these.

    Examples
    --------
    >>> _turns(["hi", "hello"])
    [{'from': 'user', 'value': 'hi'}, {'from': 'assistant', 'value': 'hello'}]
    """
    value = parsed(value) if isinstance(value, str) and not role else value
    if isinstance(value, dict):
        if is_turn(value):
            return [value]
        pair = [(name, value[name]) for name in ("system", "human", "user", "assistant", "gpt") if isinstance(value.get(name), str)]
        return [{"from": name, "value": text} for name, text in pair]
    if isinstance(value, str):
        return [{"from": role, "value": value}] if value and role else []
    if not isinstance(value, list):
        return []
    if value and all(isinstance(item, str) for item in value):
        return [{"from": "assistant" if at % 2 else "user", "value": text} for at, text in enumerate(value)]
    if any(map(is_turn, value[:20])):
        return value
    return [turn for item in value if isinstance(item, dict) for turn in _turns(item)]


def _talk(row: Any) -> _Talk | None:
    """What a row says; None if there is no conversation in it."""
    if isinstance(row, list):
        return _Talk(turns) if (turns := _turns(row)) else None
    if not isinstance(row, dict):
        return None
    turns = next((turns for key in _TALKS if key in row and (turns := _turns(row[key]))), [])
    if turns and "chosen" not in row and "rejected" not in row:
        return _Talk(turns)
    chosen, rejected = (_turns(row.get(key), "" if isinstance(row.get(key), list | dict) else "assistant") for key in ("chosen", "rejected"))
    if not turns and (asked := row.get("prompt")) is not None and (chosen or rejected or row.get("completion") is not None):
        turns = _turns(asked, "" if isinstance(asked, list | dict) else "user")
        turns = [*turns, *_turns(row.get("completion"), "" if isinstance(row.get("completion"), list | dict) else "assistant")]
    if not turns and isinstance(row.get("instruction"), str) and "output" in row:
        turns = _instruction(row)
    if not turns and not chosen:
        return None
    chosen = chosen[_repeated(turns, chosen) :]
    whole = [*turns, *chosen]
    return _Talk(turns, chosen, rejected[_repeated(whole, rejected) :])


def _instruction(row: Mapping[str, Any]) -> list[Any]:
    """The turns of a row with instruction, input and output, and of its history of pairs."""
    history = row.get("history")
    earlier = [text for pair in (history if isinstance(history, list) else ()) if isinstance(pair, list) for text in pair[:2]]
    asked = "\n".join(text for text in (row["instruction"], row.get("input")) if isinstance(text, str) and text)
    return [*_turns(earlier), {"from": "user", "value": asked}, *_turns(row.get("output"), "assistant")]


def _repeated(turns: Sequence[Any], answer: Sequence[Any]) -> int:
    """How many of the first turns of an answer repeat the conversation: some data sets write the whole of it twice."""
    at = 0
    while at < min(len(turns), len(answer)) and _same(answer[at]) == _same(turns[at]):
        at += 1
    return at


def _same(turn: Any) -> str:
    """What makes a turn the same one, however its speaker is called."""
    held = mapping(turn)
    return digest([ROLES.get(speaker(turn)), said(held), held.get("tool_calls")])


def _detect(row: Any) -> Match | None:
    talk = _talk(row)
    if talk is None:
        return None
    turns = [turn for turn in (*talk.turns, *talk.chosen)[:50] if isinstance(turn, dict)]
    known = [turn for turn in turns if speaker(turn) in ROLES]
    if not known or len(known) * 2 <= len(turns):
        return None
    held = mapping(row)
    if talk.rejected:
        return Match(0.92, ("an answer that was chosen and one that was not",))
    if any("from" in turn and "value" in turn for turn in turns) and not any(held.get(key) for key in ("instruction", "prompt")):
        return Match(0.95, ("turns of from and value",))
    typed = [part for turn in turns if isinstance(said(turn), list) for part in said(turn) if isinstance(part, dict)]
    if any("value" in part and "type" in part and "text" not in part for part in typed):
        return Match(0.93, ("content of types and values",))
    if any(held.get(key) for key in _MEDIA):
        return Match(0.9, ("turns, and the media that they name beside them",))
    if "instruction" in held or "prompt" in held:
        return None if "messages" in held else Match(0.7, ("what was asked and answered",))
    if "messages" not in held and not isinstance(row, list) and "role" not in held and "from" not in held:
        return Match(0.9, (f"a conversation under {next(key for key in _TALKS if held.get(key))}",))
    return None


def _detect_parquet(document: Document) -> Match | None:
    try:
        with ParquetRows(document.path) as file:
            columns = set(file.columns)
    except ReadError:
        return Match(0.2, ("a Parquet file",))  # reading says what is wrong with it
    talks = [name for name in (*_TALKS, "chosen", "instruction") if name in columns] or (["prompt"] if {"prompt", "completion"} <= columns else [])
    return Match(0.9, (f"a Parquet file with a column {talks[0]}",)) if talks else None


def _read_parquet(document: Document) -> list[Transcript]:
    with ParquetRows(document.path) as file:
        columns = [name for name in COLUMNS if name in file.columns]
        return _read(document, _until_damaged(document, file, columns), 0)


def _until_damaged(document: Document, file: ParquetRows, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
    number = 0
    try:
        for number, row in enumerate(file.read(columns), 1):
            yield number, row
    except ReadError as error:
        if not number:
            raise
        document.report(number + 1, "parquet", f"{error}; {file.rows - number:,} rows were not read")


def _read(document: Document, rows: Iterable[tuple[int, Any]], damaged: int, *, own: bool = False) -> list[Transcript]:
    made: list[tuple[Builder, int]] = []
    lost: list[int] = []
    for number, row in rows:
        talk = _talk(row)
        if talk is None:
            lost.append(number)
            continue
        builder = Builder(READER.info.name, document)
        made.append((builder, number))
        _row(builder, talk, mapping(row), number, own)
    if not made:
        made.append((Builder(READER.info.name, document), 0))
    first = made[0][0]
    for number in lost:
        first.account(number, "skipped")
        first.report(number, "row", f"record {number}: no conversation in it")
    transcripts = []
    for at, (builder, _) in enumerate(made):
        if len(made) > 1:
            builder.id = builder.id or f"{document.path.stem}-{at}"
        builder.total = None if builder.total is None else builder.total + (0 if at else len(lost) + damaged)
        transcripts.append(builder.build(shared=at > 0))
    return transcripts


def _row(builder: Builder, talk: _Talk, row: Mapping[str, Any], number: int, own: bool) -> None:
    builder.id = string(*map(row.get, _IDS))
    model = string(row.get("model"), row.get("model_name"))
    builder.meta |= {"model": model, "title": string(row.get("title"))}
    told = string(row.get("system"), row.get("system_prompt"))
    builder.system += [told] if told else []
    builder.tools += tool_specs(tools_of(row))
    turns = Turns(builder, number, own, model or None)
    turns.hold(row)
    for turn in talk.turns or talk.chosen:
        turns.add(turn)
    builder.total = turns.count
    asked = len(builder.messages) if talk.turns else max(0, len(builder.messages) - 1)  # else the whole of both was written, which part at the end
    for turn in talk.chosen if talk.turns else ():
        turns.add(turn)
    if talk.rejected:
        thread = builder.thread("rejected", "branch")
        for turn in talk.rejected:
            turns.add(turn, thread=thread, parent=asked - 1 if asked else None)
    if turns.count > builder.total:
        builder.count_to(TURN + builder.total)
