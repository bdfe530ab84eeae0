"""What a provider adds around messages: an estimate by family, kept apart from the texts' own tokens."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Message, ToolCall, ToolResult
from .choose import family


@dataclass(frozen=True, slots=True)
class Framing:
    """Constant overheads, in tokens.

    Parameters
    ----------
    per_message, per_request, per_tool : int
        Added once for each message, each request and each tool schema.
    per_call, per_result : int
        Added for each tool call and each tool result, beside the tokens of its name, arguments and text.
    with_tools : int
        Added once if any tool is offered.
    """

    name: str
    per_message: int
    per_request: int
    per_tool: int
    per_call: int = 0
    per_result: int = 0
    with_tools: int = 0

    def of(self, message: Message) -> int:
        """What is added around one message.

        Examples
        --------
        >>> from workbench.model import Text
        >>> OPENAI_CHAT.of(Message(0, "", "user", (Text("hello"),)))
        4
        """
        total = self.per_message
        for part in message.parts:
            if type(part) is ToolCall:
                total += self.per_call
            elif type(part) is ToolResult:
                total += self.per_result
        return total

    def of_request(self, tools: int) -> int:
        """What is added around a request that offers a number of tools."""
        return self.per_request + self.per_tool * tools + (self.with_tools if tools else 0)


#: OpenAI's cookbook: 3 tokens and the role's one for each message, 3 for the reply's head; 7 + 12 around the tools and about 8
#: for each. It says nothing of calls: 8 and 7 are what the published Harmony layout of gpt-oss spends on
#: "to=functions.NAME", channel and constraint, beyond a message's four.
OPENAI_CHAT = Framing("openai-chat", per_message=4, per_request=3, per_tool=8, per_call=8, per_result=7, with_tools=19)

#: Anthropic's framing is hidden. A message's role takes about 4. With tools comes a system prompt of 300 to 500 tokens by
#: model and tool choice (346 for Claude 4 with "auto"); calls and results are blocks with a name and an id.
ANTHROPIC = Framing("anthropic", per_message=4, per_request=3, per_tool=10, per_call=12, per_result=10, with_tools=346)

_ANTHROPIC_FORMATS = ("claude", "anthropic")


def framing_for(source_format: str, model: str | None) -> Framing:
    """Choose by the model's family; by the format where the model is not known.

    Examples
    --------
    >>> framing_for("openai-chat", "claude-sonnet-4-5").name, framing_for("claude-code", None).name, framing_for("codex", "gpt-5").name
    ('anthropic', 'anthropic', 'openai-chat')
    """
    whose = family(model)
    if whose == "claude" or (not whose and source_format.startswith(_ANTHROPIC_FORMATS)):
        return ANTHROPIC
    return OPENAI_CHAT
