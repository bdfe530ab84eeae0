"""What the mappings share: the system prompt, the tools, the arguments of a call, the name of a result's tool."""

from __future__ import annotations

from ...ledger import View
from ...model import COMPACT_SUMMARY, MAIN, META, Message, ToolCall, ToolSpec
from ...turns import called_names, starts_turn


def prompt_parts(view: View) -> tuple[str, ...]:
    """The system prompt by part: what the format keeps outside the list, then each leading system message."""
    outside = view.ledger.transcript.system if view.thread == MAIN else ()  # what a subagent was given is not recorded
    return (*outside, *(message.text for message in view.messages[: view.lead]))


def prompt_text(view: View) -> str:
    """The parts of the system prompt, joined by a line feed."""
    return "\n".join(prompt_parts(view))


def tool_specs(view: View) -> tuple[ToolSpec, ...]:
    """The tools that the model was offered, where that is recorded of this thread."""
    return view.ledger.transcript.tools if view.thread == MAIN else ()


def arguments(call: ToolCall) -> object:
    """The arguments as a JSON value; what is no JSON is a string."""
    return call.arguments_raw if call.arguments is None and call.arguments_raw.strip() != "null" else call.arguments


def is_aside(message: Message) -> bool:
    """Say whether a message is nobody's turn of speech: a row of the harness, or the summary of a real compaction, whatever its role.

    Examples
    --------
    >>> is_aside(Message(0, "", "assistant", (), flags=frozenset({"compact_summary"})))
    True
    """
    return bool(message.flags & _ASIDE) and message.result is None and not message.calls


_ASIDE = frozenset({META, COMPACT_SUMMARY})


def result_names(view: View) -> dict[int, str]:
    """For each result's message the name of the tool that its call names; looked up once for a view."""
    return view.memo.get("result names", lambda: called_names(view.messages))


def request_row(view: View) -> int | None:
    """Row of the newest person's message, or None; looked up once for a view."""
    return view.memo.get("request row", lambda: _request_row(view))


def _request_row(view: View) -> int | None:
    backwards = range(len(view.messages) - 1, view.lead - 1, -1)
    return next((row for row in backwards if starts_turn(view.messages[row])), None)
