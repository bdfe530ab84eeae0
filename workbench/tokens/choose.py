"""Which counter: by the model's name, or by its own."""

from __future__ import annotations

import re

from ..errors import CounterError
from .base import Counter, RatioCounter
from .bpe import TiktokenCounter
from .scaled import ScaledCounter

#: Prefixes of OpenAI's model names, the longest first where one begins with another.
_OPENAI = (
    ("gpt-4o", "o200k_base"),
    ("gpt-4.", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-5", "o200k_base"),
    ("gpt-3.5", "cl100k_base"),
    ("gpt-35", "cl100k_base"),
    ("gpt-oss", "o200k_base"),  # o200k_harmony: the same ranks, so the same counts of ordinary text
    ("chatgpt-4o", "o200k_base"),
    ("codex-", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4", "o200k_base"),
)
#: Tokens of Claude for one of o200k_base, and how far off a session may be: priors, until they are fitted to its usage.
CLAUDE_TO_4_6, CLAUDE_NEWER, CLAUDE_ERROR = 1.18, 1.53, 0.25

_DATE = re.compile(r"\d{6,}|(?<=-)v\d.*$|@.*$")
_NUMBER = re.compile(r"\d+")


def family(model: str | None) -> str:
    """Whose model it is, by its name: ``openai``, ``claude``, ``gemini`` or ``""``.

    Prefixes of routers and clouds do not matter.

    Examples
    --------
    >>> family("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), family("openrouter/openai/gpt-4o"), family("qwen3")
    ('claude', 'openai', '')
    """
    name = bare_name(model)
    if name.startswith("claude"):
        return "claude"
    if name.startswith("gemini"):
        return "gemini"
    return "openai" if any(name.startswith(prefix) for prefix, _ in _OPENAI) or name.startswith("gpt-") else ""


def bare_name(model: str | None) -> str:
    """A model's name in small letters, without what routers and clouds put before it."""
    name = (model or "").strip().lower().rsplit("/", 1)[-1]
    name = name.removeprefix("ft:")
    at = name.find("claude")
    return name[at:] if at > 0 else name


def claude_version(model: str) -> tuple[int, int] | None:
    """Major and minor version in a Claude model's name; None if it has none.

    Examples
    --------
    >>> claude_version("claude-3-7-sonnet-20250219"), claude_version("claude-opus-4-20250514"), claude_version("claude-opus-4.7")
    ((3, 7), (4, 0), (4, 7))
    """
    numbers = [int(number) for number in _NUMBER.findall(_DATE.sub("", bare_name(model)))]
    return (numbers[0], numbers[1] if len(numbers) > 1 else 0) if numbers else None


def counter_for(model: str | None) -> Counter:
    """Return the best counter for a model.

    OpenAI's families have an exact one. Claude's tokenizer is not public: o200k_base times a prior (``specs``: 1.18 up to
    version 4.6, 1.53 for newer ones; a name without a version means the newest). Any other model gets o200k_base, and
    its label says that this is assumed.

    Examples
    --------
    >>> counter_for("gpt-4o-mini").label, counter_for("claude-sonnet-4-5").label, counter_for("llama-4").label
    ('o200k_base', 'o200k × 1.18 ± 25 %', 'o200k_base, assumed')
    """
    name = bare_name(model)
    if name.startswith("claude"):
        version = claude_version(name)
        factor = CLAUDE_TO_4_6 if version is not None and version <= (4, 6) else CLAUDE_NEWER
        return ScaledCounter(TiktokenCounter("o200k_base"), factor, CLAUDE_ERROR)
    for prefix, encoding in _OPENAI:
        if name.startswith(prefix):
            return TiktokenCounter(encoding)  # type: ignore[arg-type]
    return TiktokenCounter("o200k_base", assumed=True)


#: Names that `get` knows. Any other ratio and any other factor may be given in the same way.
NAMES = ("o200k_base", "cl100k_base", "o200k_base*1.18", "o200k_base*1.53", "bytes/4", "chars/4", "chars/3")

#: Ratios and factors that a name may have: no count of a real text leaves the range of its integers.
LEAST, MOST = 1e-6, 1e6

_RATIO = re.compile(r"(bytes|chars)/(\d+(?:\.\d+)?)")
_SCALED = re.compile(r"([^*×]+)[*×](\d+(?:\.\d+)?)")


def get(name: str) -> Counter:
    """Return the counter of a name. Every counter's ``id`` is such a name.

    Raises
    ------
    CounterError
        No counter has this name.

    Examples
    --------
    >>> get("chars/4").id, get("o200k_base*1.18").label
    ('chars/4', 'o200k × 1.18 ± 25 %')
    """
    if name in ("o200k_base", "cl100k_base"):
        return TiktokenCounter(name)  # type: ignore[arg-type]
    ratio = _RATIO.fullmatch(name)
    if ratio and LEAST <= float(ratio[2]) <= MOST:
        return RatioCounter(float(ratio[2]), ratio[1])  # type: ignore[arg-type]
    scaled = _SCALED.fullmatch(name)
    if scaled and LEAST <= float(scaled[2]) <= MOST:
        return ScaledCounter(get(scaled[1]), float(scaled[2]))
    raise CounterError(f"no counter {name[:80]!r}; known: {', '.join(NAMES)} (any ratio, any factor)")
