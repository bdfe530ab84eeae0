"""Runs of tau-bench and tau2: many conversations between an agent and a simulated user in one file, each a run.

The records of a JSON file are the messages of its runs; of lines they are the lines. In tau2 the simulated user has tools too: its calls and their results,
which the agent never sees, are a thread of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..model import Part, Role, Text, ToolCall, ToolResult, Transcript
from .base import Match, ReaderInfo
from .build import Builder
from .chat_messages import Messages, role_of
from .fields import listing, mapping, string, tool_call
from .source import Document
from .usage import inclusive

_SPEAKER = re.compile(r"^(user|assistant|tool|system): ", re.MULTILINE)
_USER = "user's tools"


class TauBenchReader:
    """Reads runs of tau-bench and tau2."""

    info = ReaderInfo("tau-bench", "tau-bench and tau2 results: a run for each task and trial")

    def detect(self, document: Document) -> Match | None:
        """Looks for runs: a task, and its messages under the names that the benchmark gives them."""
        value = document.value
        if isinstance(value, dict) and isinstance(value.get("simulations"), list):
            first = mapping(next(iter(value["simulations"]), None))
            return Match(0.95, ("simulations with task_id and messages",)) if "task_id" in first else None
        head = [value] if isinstance(value, dict) else document.head(50)
        kinds = [kind for item in head if (kind := _kind(item))]
        return Match(0.95, (f"runs of tau-bench ({kinds[0]})",)) if kinds and len(kinds) * 2 > len(head) else None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript for each run."""
        value = document.value
        if isinstance(value, dict) and isinstance(value.get("simulations"), list):
            rows = [(number, run) for number, run in enumerate(value["simulations"], 1) if run is not None]
            about, lost = mapping(value.get("info")), 0
        else:
            rows, about = [(record.number, record.value) for record in document.rows()], {}
            lost = len(document.skipped)
        good = [(number, run) for number, run in rows if isinstance(run, dict) and (_kind(run) or isinstance(run.get("messages"), list))]
        known = {number for number, _ in good}
        odd = [number for number, _ in rows if number not in known]
        lines = document.kind == "jsonl"
        transcripts = []
        for at, (number, run) in enumerate(good or [(0, {})]):
            builder = Builder(self.info.name, document, total=0)
            _read(builder, run, number if lines else None, at, about)
            if at == 0:
                builder.total = (builder.total or 0) + lost
                for bad in odd:
                    builder.total += 1
                    builder.account(bad if lines else -bad, "skipped")  # the records of one JSON value are messages, which have these numbers
                    builder.report(bad, "run", f"record {bad}: no run in it")
            transcripts.append(builder.build(shared=at > 0))
        return transcripts


READER = TauBenchReader()


def _kind(value: dict[str, Any]) -> str:
    if isinstance(value.get("traj"), list) and {"task_id", "reward", "trial"} & value.keys():
        return "traj"
    if isinstance(value.get("messages_display"), str):
        return "messages_display"
    if isinstance(value.get("messages"), list) and string(value.get("benchmark_name")).replace("-", "").startswith("tau"):
        return "benchmark_name"
    if isinstance(value.get("messages"), list) and "termination_reason" in value and "reward_info" in value:
        return "termination_reason"
    return ""


def _read(builder: Builder, run: dict[str, Any], line: int | None, at: int, about: Any) -> None:
    meta = mapping(run.get("meta"))
    task = next((str(found) for found in (run.get("task_id"), meta.get("task_id"), meta.get("id")) if isinstance(found, str | int)), "")
    trial = run.get("trial") if isinstance(run.get("trial"), int) else None
    domain = string(run.get("task_name"), mapping(about.get("environment_info")).get("domain_name"))
    reward = next((held["reward"] for held in (run, mapping(run.get("reward_info"))) if "reward" in held), mapping(run.get("eval_result")).get("score"))
    label = f"{domain} task {task[:80]}".strip() if task else f"run {at}"
    builder.id = string(run.get("id")) or f"{task[:80] or builder.document.path.stem}-{at}"
    builder.meta |= {
        "title": label if trial is None else f"{label}, trial {trial}",
        "model": string(run.get("model_path"), mapping(mapping(about).get("agent_info")).get("llm")),
        "user_model": string(run.get("user_model_path"), mapping(mapping(about).get("user_info")).get("llm")),
        "reward": reward if isinstance(reward, int | float) else None,
        "ended": string(run.get("termination_reason"), meta.get("finish_reason")),
    }
    reader = _Conversation(builder)
    if isinstance(run.get("messages_display"), str):
        messages: list[Any] = [*_displayed(run["messages_display"])]
    else:
        messages = listing(run.get("traj")) or listing(run.get("messages")) or [*_spoken(listing(run.get("ticks")))]
    builder.total = len(messages) if line is None else 1
    if line is not None:
        builder.account(line, "metadata")
    for number, message in enumerate(messages, 1):
        reader.add(message, number if line is None else line, number)


class _Conversation:
    """Reads the messages of one run."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.reader = Messages(builder, string(builder.meta.get("model")) or None)

    def add(self, value: Any, record: int, place: int) -> None:
        builder = self.builder
        if isinstance(value, dict) and (value.get("requestor") == "user" or (role_of(value) == "user" and (value.get("tool_calls") or value.get("usage")))):
            self._users(value, record)
        elif isinstance(value, dict) and role_of(value) == "tool" and isinstance(value.get("tool_messages"), list):
            for inner in value["tool_messages"]:  # tau2 wraps the results of parallel calls
                self.add(inner, record, place)
        elif isinstance(value, dict) and role_of(value) == "tool":
            id_ = string(value.get("tool_call_id"), value.get("id"))
            error = value.get("error") is True
            self.reader.add({**value, "tool_call_id": id_, "is_error": error}, record, place=f", message {place}")
        elif isinstance(value, dict) and isinstance(value.get("hidden_call"), bool):
            call = builder.call(model=self.reader.model)
            builder.message("assistant", [ToolCall("", "", None, "")], record, call=call.index)
        else:
            self.reader.add(value, record, place=f", message {place}")

    def _users(self, value: dict[str, Any], record: int) -> None:
        """What the simulated user said stands in the conversation, its calls and their results in a thread of its own."""
        builder, role = self.builder, role_of(value)
        thread = builder.thread(_USER, "subagent")
        if role == "tool":
            id_ = string(value.get("id"), value.get("tool_call_id"))
            result = ToolResult(id_, self.reader.names.get(id_), (Text(string(value.get("content"))),), value.get("error") is True)
            builder.message("tool", [result], record, thread=thread)
            return
        usage, why = inclusive(value.get("usage"))
        if why:
            builder.report(record, "usage", f"record {record}: {why}")
        call = builder.call(thread=thread, model=string(builder.meta.get("user_model")) or None, usage=usage)
        items = [item for item in listing(value.get("tool_calls")) if isinstance(item, dict)]
        asked: list[Part] = [tool_call(item.get("id"), item.get("name"), item.get("arguments")) for item in items]
        if asked:
            builder.message("assistant", asked, record, thread=thread, call=call.index)
        if string(value.get("content")) or not asked:
            self.reader.add({**value, "tool_calls": None, "usage": None}, record)


def _displayed(text: str) -> Iterator[dict[str, Any]]:
    """The messages of a conversation that is written as one text. A call is not shown in it, only that there was one."""
    found = [*_SPEAKER.finditer(text)]
    for at, mark in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(text)
        role, said = mark.group(1), text[mark.end() : end].removesuffix("\n")
        yield {"role": role, "content": said} if (role, said) != ("assistant", "None") else {"role": role, "hidden_call": True}


def _spoken(ticks: list[Any]) -> Iterator[dict[str, Any]]:
    """The messages of a spoken conversation, which is recorded in short pieces of both sides: pieces of one side that follow each other are one message."""
    role: Role | None = None
    said: list[str] = []
    for tick in map(mapping, ticks):
        for key, who in (("user_chunk", "user"), ("agent_chunk", "assistant")):
            text = string(mapping(tick.get(key)).get("content"))
            if not text:
                continue
            if role != who and said:
                yield {"role": role, "content": "".join(said)}
                said = []
            role = "user" if who == "user" else "assistant"
            said.append(text)
    if said:
        yield {"role": role, "content": "".join(said)}
