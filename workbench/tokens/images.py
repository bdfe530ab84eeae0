"""Tokens of images and other media: by their size in pixels, never by the length of their base64."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ..model import Media
from .choose import bare_name, claude_version, family

#: What a picture whose size is not recorded is taken for: a screenshot's order of magnitude.
UNKNOWN_SIZE = (1024, 1024)
#: Longest side in pixels that is believed: a damaged header must not become a million tokens.
LARGEST = 100_000
#: What other media are taken for, since neither their pages nor their seconds are recorded: one page of a document
#: (text and picture), half a minute of sound at 32 tokens a second, ten seconds of video at 263.
FLAT = {"document": 1_600, "audio": 1_000, "video": 2_630}


def media_tokens(media: Media, model: str | None) -> int:
    """Estimate the tokens of one image, sound, video or document. Never 0.

    Parameters
    ----------
    model : str or None
        Decides the rule; an unknown model gets that of GPT-4o.

    Examples
    --------
    >>> media_tokens(Media("image", width=1024, height=1024), "gpt-4o")
    765
    >>> media_tokens(Media("image", width=512, height=512), "claude-sonnet-4-5")
    361
    """
    if media.kind in FLAT:
        return FLAT[media.kind]
    width, height = media.width or 0, media.height or 0
    if not (0 < width <= LARGEST and 0 < height <= LARGEST):
        width, height = UNKNOWN_SIZE
    return max(1, rule_for(model).tokens(width, height))


@dataclass(frozen=True, slots=True)
class Tiles:
    """OpenAI's older rule: fit into 2048 × 2048, shorter side down to 768, then `base` and `tile` for each 512 px tile."""

    base: int
    tile: int

    def tokens(self, width: int, height: int) -> int:
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        return self.base + self.tile * _grid(width * scale, height * scale, 512)


@dataclass(frozen=True, slots=True)
class Patches:
    """One token for each patch of `side` pixels, times `factor`; the longer side is first scaled down to `edge`.

    Parameters
    ----------
    cap : int
        Most patches that are counted.
    """

    side: int
    factor: float
    cap: int
    edge: int | None = None

    def tokens(self, width: int, height: int) -> int:
        scale = 1.0 if self.edge is None else min(1.0, self.edge / max(width, height))
        return round(self.factor * min(self.cap, _grid(width * scale, height * scale, self.side)))


@dataclass(frozen=True, slots=True)
class Gemini2:
    """Gemini 2: 258 for a small picture, else 258 for each 768 px tile."""

    def tokens(self, width: int, height: int) -> int:
        return 258 if max(width, height) <= 384 else 258 * _grid(width, height, 768)


@dataclass(frozen=True, slots=True)
class Flat:
    """The same for every size."""

    value: int

    def tokens(self, width: int, height: int) -> int:
        return self.value


Rule = Tiles | Patches | Gemini2 | Flat

#: OpenAI's rules by prefix of the model's name, the longest first where one begins with another.
_OPENAI: tuple[tuple[str, Rule], ...] = (
    ("gpt-4o-mini", Tiles(2833, 5667)),
    ("gpt-4.1-mini", Patches(32, 1.62, 1536)),
    ("gpt-4.1-nano", Patches(32, 2.46, 1536)),
    ("gpt-5-mini", Patches(32, 1.62, 1536)),
    ("gpt-5-nano", Patches(32, 2.46, 1536)),
    ("gpt-5.4", Patches(32, 1.2, 10_000)),
    ("gpt-5.5", Patches(32, 1.2, 10_000)),
    ("gpt-6", Patches(32, 1.2, 10_000)),
    ("gpt-5", Tiles(70, 140)),
    ("o4-mini", Patches(32, 1.72, 1536)),
    ("o1", Tiles(75, 150)),
    ("o3", Tiles(75, 150)),
)
_GPT_4O = Tiles(85, 170)
_CLAUDE = Patches(28, 1.0, 1_568, edge=1_568)
_CLAUDE_FINE = Patches(28, 1.0, 4_784, edge=2_576)  # Opus 4.7 and later


def rule_for(model: str | None) -> Rule:
    """The rule of a model's family. Sources and how sure each is: the project's notes on tokenizers, section 3."""
    name, whose = bare_name(model), family(model)
    if whose == "claude":
        version = claude_version(name)
        return _CLAUDE if version is not None and version < (4, 7) else _CLAUDE_FINE
    if whose == "gemini":
        return Gemini2() if name.startswith(("gemini-1", "gemini-2")) else Flat(1_080)
    return next((rule for prefix, rule in _OPENAI if name.startswith(prefix)), _GPT_4O)


def _grid(width: float, height: float, side: int) -> int:
    # A hair less than a whole tile more is a rounding error of the scale, not a tile.
    return ceil(width / side - 1e-9) * ceil(height / side - 1e-9)
