"""SWE-agent trajectories (``.traj``): the history of a run, and what each of its steps was sent.

The history holds every message once and is what is read; its rows are the records. Newer versions also keep in each step the whole request (``query``, or
``messages``, which by the time it is written has the step's own answer in it): from that the context of each call is known. Without a history the steps are
read. Usage is stated for the whole run only (``meta["tokens_sent"]``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..model import MAIN, META, Text, ToolResult, Transcript
from .base import Match, ReaderInfo
from .build import Builder, DraftMessage
from .chat_messages import ROLES, Messages, role_of
from .fields import listing, mapping, string
from .jsontext import NotJson, parse
from .source import Document
from .usage import tokens

_STEP = frozenset({"action", "observation", "response", "thought", "state", "query"})
_ROW = frozenset({"agent", "message_type", "thought", "action", "is_demo"})


class SweAgentReader:
    """Reads SWE-agent's trajectories."""

    info = ReaderInfo("swe-agent", "SWE-agent trajectories (.traj)")

    def detect(self, document: Document) -> Match | None:
        """Looks for a history with SWE-agent's fields, or for its steps."""
        value = document.value
        if not isinstance(value, dict):
            return None
        for held in (value, *filter(_is_run, listing(value.get("attempts"))[:1])):
            steps = [step for step in listing(held.get("trajectory"))[:20] if isinstance(step, dict)]
            if sum(len(_STEP & step.keys()) >= 4 for step in steps) * 2 > len(steps):
                return Match(0.97, ("a trajectory of steps with action, observation and thought",))
            rows = [row for row in listing(held.get("history"))[:20] if isinstance(row, dict)]
            if sum("role" in row for row in rows) * 2 > len(rows) and any(_ROW & row.keys() for row in rows):
                return Match(0.95, ("a history of messages with agent and message_type",))
        return None

    def read(self, document: Document) -> list[Transcript]:
        """One transcript; of a run with several attempts one for each."""
        value = mapping(document.value)
        if not _is_run(document.value) and not isinstance(value.get("attempts"), list):
            builder = Builder(self.info.name, document)
            builder.report(None, "history", "no history and no trajectory in it")
            for row in document.rows():
                builder.account(row.number, "skipped")
            return [builder.build()]
        attempts = [attempt for attempt in listing(value.get("attempts")) if _is_run(attempt)]
        return [_read(document, {**value, **attempt}, at) for at, attempt in enumerate(attempts)] or [_read(document, {**value}, None)]


READER = SweAgentReader()


def _is_run(value: Any) -> bool:
    return isinstance(value, dict) and (isinstance(value.get("history"), list) or isinstance(value.get("trajectory"), list))


def _read(document: Document, value: dict[str, Any], attempt: int | None) -> Transcript:
    history, steps = listing(value.get("history")), listing(value.get("trajectory"))
    builder = Builder(READER.info.name, document, total=len(history or steps))
    if attempt is not None:
        builder.id = f"{document.path.stem}-{attempt}"
        builder.meta["title"] = f"{document.name}, attempt {attempt + 1}"
    about, stats = mapping(value.get("info")), mapping(mapping(value.get("info")).get("model_stats"))
    builder.meta |= {
        "environment": string(value.get("environment")),
        "model": _model(value.get("replay_config")),
        "exit_status": string(about.get("exit_status")),
        **{name: tokens(stats.get(name)) for name in ("tokens_sent", "tokens_received", "api_calls")},
    }
    run = _Run(builder)
    for number, row in enumerate(history, 1):
        if row is not None or number not in document.skipped:
            run.row(row, number)
    if history:
        run.contexts(steps)
    else:
        run.steps(steps)
    return builder.build(shared=bool(attempt))


def _model(config: Any) -> str:
    """The model's name out of the run's configuration, which stands in it as JSON text or as an object."""
    if isinstance(config, str):
        try:
            config = parse(config.encode("utf-8", "surrogatepass")).value
        except NotJson:
            return ""
    model = mapping(mapping(mapping(config).get("agent")).get("model"))
    return string(model.get("name"), model.get("model_name"))


@dataclass(slots=True)
class _Run:
    builder: Builder
    reader: Messages = field(init=False)
    main: str = ""
    threads: dict[str, str] = field(default_factory=dict)
    #: The message of each row of the history.
    places: list[int | None] = field(default_factory=list)
    answered: bool = False

    def __post_init__(self) -> None:
        self.reader = Messages(self.builder, string(self.builder.meta.get("model")) or None)

    def row(self, value: Any, number: int) -> None:
        """Read a row of the history."""
        role = role_of(value) if isinstance(value, dict) else ""
        if isinstance(value, dict) and role == "tool":
            value = {**value, "tool_call_id": string(value.get("tool_call_id"), next(iter(listing(value.get("tool_call_ids"))), ""))}
        made = len(self.builder.calls)
        draft = self.reader.add(value, number)
        self.places.append(None if draft is None else draft.index)
        if draft is None:
            return
        demo = value.get("is_demo") is True or value.get("message_type") == "demonstration"
        if demo or (draft.role == "user" and self.answered):
            draft.flags |= {META}  # an example, or what the environment shows
        if demo and draft.call is not None:  # it was made in another run
            draft.call = None
            del self.builder.calls[made:]
        self.answered = self.answered or (draft.role == "assistant" and not demo)
        self._agent(draft, string(value.get("agent")))

    def _agent(self, draft: DraftMessage, agent: str) -> None:
        """The rows of an agent other than the first one are a subagent's."""
        self.main = self.main or agent
        if agent and agent != self.main:
            if agent not in self.threads:
                self.threads[agent] = self.builder.new_thread(agent, "subagent")
            self.builder.move(draft, self.threads[agent])

    def contexts(self, steps: list[Any]) -> None:
        """Say what each call was sent, where the steps have kept it: the history up to its answer, of which some messages may have been shortened."""
        builder, edited, first = self.builder, 0, 0
        rows = [builder.messages[at] for at in self.places if at is not None and builder.messages[at].thread == MAIN]
        for number, step in enumerate(steps, 1):
            value = mapping(step)
            request = listing(value.get("query")) or listing(value.get("messages"))
            own = _own(request, string(value.get("response"), value.get("thought")))
            if not 0 < own < len(rows) or rows[own].call is None or any(_role(sent) != row.role for sent, row in zip(request[:own], rows, strict=False)):
                continue
            said = [mapping(sent).get("content") for sent in request[:own]]
            changed = sum(isinstance(text, str) and text != _said(row) for text, row in zip(said, rows, strict=False))
            builder.calls[rows[own].call or 0].context = tuple(row.index for row in rows[:own])
            edited, first = edited + changed, first or (number if changed else 0)
        if edited:
            text = f"{edited:,} messages of requests were shorter there than in the history (first: step {first}); contexts name the whole ones"
            builder.report(None, "edited", text)

    def steps(self, steps: list[Any]) -> None:
        """Read a trajectory that has no history: what the first step was sent, then answer and observation of each."""
        for number, value in enumerate(steps, 1):
            if not isinstance(value, dict):
                self.builder.skip(number, "step", f"step {number}: not an object")
                continue
            if number == 1:
                for message in listing(value.get("query")) or listing(value.get("messages")):
                    if self.reader.add(message, number, place=", query") is None:
                        break
                    if string(mapping(message).get("role")) == "assistant" or len(self.builder.messages) > 50:
                        break
            answer = string(value.get("response"), value.get("thought"))
            calls = listing(value.get("tool_calls"))
            self.reader.add({"role": "assistant", "content": answer, "tool_calls": calls}, number)
            if text := string(value.get("observation")):
                self.builder.message("user", [Text(text)], number, flags=[META])


def _own(request: list[Any], answer: str) -> int:
    """The place of the step's own answer: after the request, or in it, as the list may have grown before it was written."""
    for place in range(len(request) - 1, max(len(request) - 4, -1), -1):
        if _role(request[place]) == "assistant" and answer and mapping(request[place]).get("content") == answer:
            return place
    return len(request)


def _role(sent: Any) -> str:
    return ROLES.get(role_of(sent), "") if isinstance(sent, dict) else ""


def _said(row: DraftMessage) -> str:
    return "\n".join(part.text for part in row.parts if isinstance(part, Text | ToolResult))
