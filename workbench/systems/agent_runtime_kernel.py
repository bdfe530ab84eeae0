"""agent_runtime_kernel: a fixed number of message slots, and a checkpoint in the slot of what was left out.

A faithful port of the original program, written to be read. It knows nothing of tokens. Rules: four_systems.md §2.

Examples
--------
>>> history = [Message("user", "first"), Message("assistant", "done"), Message("user", "second")]
>>> for message in ContextManager(4).assemble("be brief", [], history, [Message("user", "third")]):
...     print(message.role, message.text.splitlines()[0])
system be brief
system <checkpoint>
user second
user third
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import PolicyError
from .rusttext import trim, truncate

GOAL_BYTES = 512

LIMIT = "CONTEXT_LIMIT_INVALID"
REQUEST = "REQUEST_TRANSCRIPT_INVALID"
TRANSCRIPT = "CONTEXT_TRANSCRIPT_INVALID"


class KernelError(PolicyError):
    """The original's error: its code and its message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its role is system, user, assistant or tool, and nothing checks it."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ContextItem:
    """A text for the system message. `required` and `priority` only sort: nothing is ever left out.

    Parameters
    ----------
    priority : int
        A signed 32-bit number; the largest comes first.
    """

    source: str
    content: str
    required: bool = False
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ContextManager:
    """Assembles requests of at most `max_messages` messages.

    Raises
    ------
    KernelError
        ``CONTEXT_LIMIT_INVALID``: fewer than 2.
    """

    max_messages: int

    def __post_init__(self) -> None:
        if self.max_messages < 2:
            raise KernelError(LIMIT, "context requires at least 2 messages")

    def assemble(self, system_prompt: str, items: Sequence[ContextItem], history: Sequence[Message], request: Sequence[Message]) -> list[Message]:
        """The messages of a request: system text, checkpoint, newest history, request.

        A checkpoint takes the slot of the oldest message that would still fit, so one message more is gone than it
        says; with no slot for it there is no history and no checkpoint.

        Raises
        ------
        KernelError
            ``REQUEST_TRANSCRIPT_INVALID``: the request is empty or fills all slots.
        """
        system = Message("system", render_system(system_prompt, items))
        if not request or len(request) >= self.max_messages:
            raise KernelError(REQUEST, "request messages must fit within the configured context message limit")
        slots = self.max_messages - 1 - len(request)
        kept = list(history[len(history) - min(slots, len(history)) :])
        dropped = len(history) - len(kept)
        if dropped and slots:
            kept[0] = Message("system", checkpoint(history, dropped))
        return [system, *kept, *request]

    def refresh_system(self, messages: Sequence[Message], system_prompt: str, items: Sequence[ContextItem]) -> list[Message]:
        """The same messages with a new system text in front. Their number is not checked.

        Raises
        ------
        KernelError
            ``CONTEXT_TRANSCRIPT_INVALID``: there is no message, or the first is not the system's.
        """
        system = Message("system", render_system(system_prompt, items))
        if not messages:
            raise KernelError(TRANSCRIPT, "model transcript is empty")
        if messages[0].role != "system":
            raise KernelError(TRANSCRIPT, "model transcript must begin with system context")
        return [system, *messages[1:]]


def sorted_items(items: Sequence[ContextItem]) -> list[ContextItem]:
    """Required ones first, then by falling priority, then by source; ties keep their order."""
    return sorted(items, key=lambda item: (not item.required, -item.priority, item.source.encode("utf-8", "surrogatepass")))


def render_system(system_prompt: str, items: Sequence[ContextItem]) -> str:
    """The system text: the prompt, then every item that is not blank. Nothing is escaped."""
    blocks = (f'\n\n<context source="{item.source}">\n{content}\n</context>' for item in sorted_items(items) if (content := trim(item.content)))
    return trim(system_prompt) + "".join(blocks)


def checkpoint(history: Sequence[Message], dropped: int) -> str:
    """The text that stands for `dropped` messages. Its goal is the first user message of the whole history, even a kept one."""
    goal = next((truncate(message.text, GOAL_BYTES) for message in history if message.role == "user"), "unknown")
    return "\n".join(
        (
            "<checkpoint>",
            f"goal: {goal}",
            f"done: {dropped} earlier conversation messages compacted",
            "state: later messages remain authoritative",
            "watch: verify assumptions before destructive actions",
            "next: continue from the most recent user request",
            "</checkpoint>",
        )
    )
