"""The canonical transcript: what was said, what it cost, and what a real compaction did to it.

Everything is frozen. Integers inside; ``None`` means *not recorded* and is never 0.
Every index anywhere in the workbench is ``Message.index``: the place in ``Transcript.messages``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool", "note"]
History = Literal["full", "live"]

#: What tokens can be spent on. The order is the order in every table, legend and stack.
KINDS = ("system", "tools", "user", "assistant", "reasoning", "tool_call", "tool_result", "media", "note", "framing")

#: Message flags.
META = "meta"  # put in by the agent's harness, not typed by a person
SYNTHETIC = "synthetic"  # an assistant message that no provider made
COMPACT_SUMMARY = "compact_summary"  # the summary that a real compaction left
HIDDEN = "hidden"  # an empty or display-only row
ERROR = "error"  # reports a failure

MAIN = "main"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's reasoning: readable text, or an opaque blob of which only the size is known.

    Parameters
    ----------
    text : str or None
        The readable text; None where the provider hides it.
    opaque_bytes : int or None
        Size of a signature or of encrypted content. It is never counted as text.
    """

    text: str | None = None
    opaque_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool.

    Parameters
    ----------
    id : str
        The id that the result names; ``""`` where the source has none.
    arguments : object
        The parsed arguments; None if ``arguments_raw`` is not JSON.
    arguments_raw : str
        The arguments' text as the source holds it (an object is written as compact JSON).
    server_side : bool
        True if the provider ran the tool, so that its result stands in the same response.
    """

    id: str
    name: str
    arguments: Any
    arguments_raw: str
    server_side: bool = False


@dataclass(frozen=True, slots=True)
class Media:
    """An image, sound, video or document. Its bytes are not kept.

    Parameters
    ----------
    kind : str
        ``image``, ``audio``, ``video`` or ``document``.
    width, height : int or None
        Pixels, where the header could be read.
    size : int or None
        Bytes of the decoded content.
    sha256 : str or None
        Of the decoded content, or of the address if only that is known.
    """

    kind: str
    mime: str | None = None
    width: int | None = None
    height: int | None = None
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """Content of a type that is not readable here. ``size`` is in bytes."""

    type: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back."""

    call_id: str
    name: str | None
    parts: tuple[Text | Media | Opaque, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text parts, joined by a line feed."""
        return join_text(self.parts)


Part = Text | Reasoning | ToolCall | ToolResult | Media | Opaque


def compact_json(value: Any) -> str:
    """JSON without spaces, keys in their order, non-ASCII as it is: how a provider would see a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def join_text(parts: Sequence[Part]) -> str:
    """Join the texts of the `Text` parts by a line feed; all other parts are left out."""
    return "\n".join(part.text for part in parts if type(part) is Text)


@dataclass(frozen=True, slots=True)
class Message:
    """One person's or system's text, one whole provider response, or one tool result.

    Parameters
    ----------
    index : int
        Place in ``Transcript.messages``.
    id : str
        The source's id, or ``""``.
    thread : str
        Id of the `Thread` it stands in.
    parent : int or None
        Index of the message it answers, where the source is a tree.
    ts : int or None
        UTC epoch milliseconds.
    call : int or None
        Index in ``Transcript.calls`` of the request that produced it.
    flags : frozenset of str
        Any of meta, synthetic, compact_summary, hidden, error.
    raw : tuple of int
        The source records (1-based) that it was made from: a reference, not a copy.
    """

    index: int
    id: str
    role: Role
    parts: tuple[Part, ...]
    thread: str = MAIN
    parent: int | None = None
    ts: int | None = None
    call: int | None = None
    flags: frozenset[str] = frozenset()
    raw: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined by a line feed. Reasoning, calls and results are left out."""
        return join_text(self.parts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls, in order."""
        return tuple(part for part in self.parts if type(part) is ToolCall)

    @property
    def result(self) -> ToolResult | None:
        """Its tool result, if its role is tool."""
        if self.role != "tool":
            return None
        return next((part for part in self.parts if type(part) is ToolResult), None)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one provider request, in disjoint buckets.

    The prompt is ``input_uncached + cache_read + cache_write_5m + cache_write_1h``; `reasoning` is part of `output`.
    A write whose time to live is not recorded counts as five minutes, the provider's default.

    Parameters
    ----------
    iterations : tuple of Usage
        The requests that a server made inside this one. The buckets already hold their sum.
    """

    input_uncached: int | None = None
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    iterations: tuple[Usage, ...] = ()

    BUCKETS = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")

    @property
    def prompt(self) -> int | None:
        """Tokens of the whole prompt, or None if no bucket of it is known."""
        return _total((self.input_uncached, self.cache_read, self.cache_write_5m, self.cache_write_1h))

    @property
    def total(self) -> int | None:
        """Prompt and output, or None if nothing is known."""
        return _total((self.prompt, self.output))

    @staticmethod
    def sum(usages: Sequence[Usage | None]) -> Usage:
        """Add bucket by bucket; a bucket that no usage knows stays None."""
        known = [usage for usage in usages if usage is not None]
        uncached, read, write_5m, write_1h, output, reasoning = (_total([getattr(usage, name) for usage in known]) for name in Usage.BUCKETS)
        return Usage(uncached, read, write_5m, write_1h, output, reasoning)


def _total(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model was offered. `parameters` is its JSON schema."""

    name: str
    description: str = ""
    parameters: Any = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """What one recorded request held before its conversation.

    Parameters
    ----------
    system : tuple of str
        System text by block: what stands outside the message list, then the leading system messages.
    tools : tuple of ToolSpec
        The tools that it offered, in order.
    """

    system: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One provider request.

    Parameters
    ----------
    index : int
        Place in ``Transcript.calls``.
    kind : str
        ``response``, or ``compaction`` if the request only made a summary.
    usage : Usage or None
        As reported; None if the source has none.
    produced : tuple of int
        Messages that it produced, in order.
    context : tuple of int or None
        The exact messages that it was sent, where the source records them.
    ts : int or None
        UTC epoch milliseconds of the response's first record.
    prefix : Prefix or None
        What stood before the conversation, where the source records it for each request. One shared object while
        nothing changes. A leading system message of the thread that this request did not send is not in `context`.
    """

    index: int
    id: str
    model: str | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    produced: tuple[int, ...] = ()
    context: tuple[int, ...] | None = None
    thread: str = MAIN
    ts: int | None = None
    kind: Literal["response", "compaction"] = "response"
    prefix: Prefix | None = field(default=None, repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that really happened.

    Parameters
    ----------
    after : int
        Index of the last message that stood before it in its thread; -1 if none did.
    kind : str
        ``summary``, ``replace``, ``opaque``, ``edit``, ``trim`` or ``continuation``.
    trigger : str or None
        ``auto``, ``manual`` or ``server``.
    tokens_before, tokens_after : int or None
        As recorded; None if not.
    summary : int or None
        Index of the message that holds the summary.
    kept : tuple of int
        Earlier messages that stayed in the context beside the summary.
    call : int or None
        Index of the request that made the summary.
    raw : tuple of int
        The source records (1-based) that it was made from.
    """

    after: int
    kind: str
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    summary: int | None = None
    kept: tuple[int, ...] = ()
    thread: str = MAIN
    call: int | None = None
    raw: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """One line of conversation: the main one, a subagent's, or an abandoned branch.

    Parameters
    ----------
    parent : str or None
        The thread it sprang from.
    spawned_by : str or None
        Id of the tool call that started it.
    records : int
        Source records that stand in it.
    """

    id: str
    kind: Literal["main", "subagent", "branch"] = "main"
    parent: str | None = None
    spawned_by: str | None = None
    records: int = 0


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something in the source that was not as it should be. `line` is 1-based (record number for arrays)."""

    line: int | None
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a transcript came from.

    Parameters
    ----------
    format : str
        Name of the reader.
    path : str or None
        The file, as text for display; nothing follows it.
    confidence : float
        Of the detection, 0 to 1; 1 if the format was given.
    reasons : tuple of str
        What in the content spoke for the format.
    """

    format: str
    path: str | None = None
    size: int | None = None
    confidence: float = 1.0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Records:
    """Every record of the source, counted once in the first class that fits."""

    messages: int = 0
    calls: int = 0
    compactions: int = 0
    metadata: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        """All records."""
        return sum(getattr(self, item.name) for item in fields(self))


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Transcript:
    """A saved conversation: append-only and complete. A policy never changes it.

    Parameters
    ----------
    system : tuple of str
        System text that the format keeps outside the message list, by block.
    tools : tuple of ToolSpec
        The tools that the model was offered, where recorded.
    meta : mapping
        What else the source says: title, model, cwd, version, …
    """

    id: str
    source: Source
    messages: tuple[Message, ...] = ()
    calls: tuple[Call, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    system: tuple[str, ...] = ()
    threads: tuple[Thread, ...] = (Thread(MAIN),)
    diagnostics: tuple[Diagnostic, ...] = ()
    records: Records = Records()
    meta: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def __repr__(self) -> str:
        return f"<Transcript {self.title!r}: {len(self.history()):,} messages, {self.source.format}>"

    @property
    def title(self) -> str:
        """Its title if it has one, else the file's name, else its id."""
        title = self.meta.get("title")
        if isinstance(title, str) and title.strip():
            return title.strip()
        return self.name

    @property
    def name(self) -> str:
        """The file's name, or the id."""
        return (self.source.path or self.id).replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def model(self) -> str | None:
        """The model of the newest response in the main thread that names one."""
        for call in reversed(self.calls):
            if call.thread == MAIN and call.model and call.kind == "response":
                return call.model
        model = self.meta.get("model")
        return model if isinstance(model, str) and model else next((call.model for call in self.calls if call.model), None)

    def thread(self, thread: str = MAIN) -> tuple[int, ...]:
        """Indices of all messages of a thread, summaries of real compactions included."""
        return tuple(message.index for message in self.messages if message.thread == thread)

    def fixed(self, thread: str = MAIN) -> tuple[int, ...]:
        """Indices of the leading system messages of a thread: with `system` and `tools` they are the fixed part."""
        return tuple(_leading_system(self._of(thread)))

    def compacted(self, thread: str = MAIN) -> tuple[Compaction, ...]:
        """The real compactions of a thread, in order."""
        return tuple(item for item in self.compactions if item.thread == thread)

    def history(self, thread: str = MAIN, which: History = "full") -> tuple[int, ...]:
        """Indices of one of the two histories of a thread.

        Parameters
        ----------
        which : {"full", "live"}
            ``full``: all that was ever said, without the summaries of real compactions. ``live``: what the model
            had after the last real compaction: leading system messages, summary, what was kept, all newer messages.
            Without a real compaction both are the same.
        """
        indices = self.thread(thread)
        compactions = self.compacted(thread)
        if not compactions:
            return indices
        fixed = self.fixed(thread)
        if which == "full":
            # A summary of messages that the file does not hold is all that is left of them, so it stays.
            first = indices[len(fixed)] if len(indices) > len(fixed) else 0
            gone = {item.summary for item in compactions if item.summary is not None and item.after >= first}
            return tuple(index for index in indices if index not in gone)
        last = compactions[-1]
        summary = () if last.summary is None else (last.summary,)
        newer = (index for index in indices if index > last.after)
        return tuple(dict.fromkeys((*fixed, *summary, *last.kept, *newer)))

    def _of(self, thread: str) -> Iterator[Message]:
        return (message for message in self.messages if message.thread == thread)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a request may hold, in tokens.

    Parameters
    ----------
    max_tokens : int
        The context window.
    reserve_output_tokens : int
        Kept free for the answer.
    safety_margin_tokens : int
        Kept free for the error of the estimate.

    Examples
    --------
    >>> Budget(32_000).available
    21760
    """

    max_tokens: int = 128_000
    reserve_output_tokens: int = 8_192
    safety_margin_tokens: int = 2_048

    @property
    def available(self) -> int:
        """What is left for the prompt; negative if reserve and margin are larger than the window."""
        return self.max_tokens - self.reserve_output_tokens - self.safety_margin_tokens


def _leading_system(messages: Iterator[Message]) -> Iterator[int]:
    for message in messages:
        if message.role != "system":
            return
        yield message.index
