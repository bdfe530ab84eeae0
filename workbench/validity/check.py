"""Asks the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model import Message, Role
from .columns import Columns
from .finding import PROVIDERS, Finding, Provider
from .rules import RULES, About, Rule

_FORMATS: dict[str, Provider] = {
    "anthropic": "anthropic",
    "claude-code": "anthropic",
    "codex": "openai-responses",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
}


def check(
    messages: Sequence[Message],
    provider: Provider | None = None,
    *,
    roles: Sequence[Role] | None = None,
    model: str | None = None,
    own: Provider | None = None,
    open_end: bool = False,
) -> tuple[Finding, ...]:
    """Say what would keep a provider from accepting a list of messages, and what else it should know.

    Parameters
    ----------
    provider : {"openai-chat", "openai-responses", "anthropic"}, optional
        Default: all three.
    roles : sequence of str, optional
        The role with which each message is sent (see `sent_as`). Default: its own; a note goes as user.
    model : str, optional
        The model that will answer: some rules hold for some models. An unknown one is judged by the stricter rule.
    own : str, optional
        The provider that made the responses in the list. Only its own reasoning goes back to it.
    open_end : bool
        More will be added at the end, as when the history of a finished session is judged.

    Returns
    -------
    tuple of Finding
        In the order of `RULES`. What all providers refuse has the provider ``any``.

    Examples
    --------
    >>> from workbench.model import Message, Text, ToolResult
    >>> cut = (Message(3, "", "tool", (ToolResult("a", "ls", (Text("x"),)),)), Message(4, "", "user", (Text(" "),)))
    >>> [(finding.provider, finding.rule, finding.text) for finding in check(cut, "anthropic")]
    [('any', 'orphan_result', 'result #3 has no call'), ('anthropic', 'empty_text', '#4 holds only white space')]
    """
    return check_columns(Columns.of(messages, roles), (provider,) if provider else PROVIDERS, About(model, own, open_end))


def check_columns(columns: Columns, providers: Sequence[Provider] = PROVIDERS, about: About | None = None) -> tuple[Finding, ...]:
    """The same for columns that are made already."""
    return tuple(_ask(columns, RULES, providers, about or About()))


def check_pairs(messages: Sequence[Message]) -> tuple[Finding, ...]:
    """Find tool calls and results whose other half is missing or doubled: what every provider refuses."""
    return tuple(_ask(Columns.of(messages), [rule for rule in RULES if not rule.providers], (), About()))


def _ask(columns: Columns, rules: Iterable[Rule], providers: Sequence[Provider], about: About) -> Iterable[Finding]:
    for rule in rules:
        whom = [provider for provider in rule.providers if provider in providers] if rule.providers else ["any"]
        if rule.find is None or not whom:
            continue
        found = list(rule.find(columns, about))
        for provider in whom:
            for indices, text in found:
                yield Finding(provider, rule.name, indices, text)


def provider_of(format: str, model: str | None = None) -> Provider | None:
    """Which provider's list a transcript is: by its format, else by its model; None if neither says.

    Examples
    --------
    >>> provider_of("claude-code"), provider_of("openai-chat", "claude-sonnet-4-5"), provider_of("langchain", "gemini-2.5-pro")
    ('anthropic', 'openai-chat', None)
    """
    by_format = _FORMATS.get(format)
    if by_format is not None:
        return by_format
    return "anthropic" if "claude" in (model or "").lower() else None
