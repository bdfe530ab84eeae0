"""vak's measured capacity: what a model's window really holds, learned from what providers report. Rules: four_systems.md §5.

"Chars" are UTF-8 bytes here, as everywhere in the original.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal

from .rustjson import U64_MAX

FEEDBACK_EWMA_ALPHA = 0.3
UNCALIBRATED_TOKENS_PER_CHAR = 0.25
CAPACITY_FEEDBACK_CHANGE_THRESHOLD = 0.05
METADATA_CONFIDENCE = 0.3
FEEDBACK_CONFIDENCE = 0.6
NEAR_HORIZON = 0.8  # a failure below this share of the horizon says nothing about it
OVER_LENGTH_SHRINK = 0.9


@dataclass(frozen=True, slots=True)
class Ewma:
    """A moving average that knows how many samples it has seen: the first replaces the value, later ones are blended in.

    Examples
    --------
    >>> Ewma().observe(0.5).observe(0.25)
    Ewma(value=0.425, alpha=0.3, samples=2)
    """

    value: float = 0.0
    alpha: float = FEEDBACK_EWMA_ALPHA
    samples: int = 0

    def observe(self, sample: float) -> Ewma:
        """The average with one more sample."""
        value = self.alpha * sample + (1.0 - self.alpha) * self.value if self.samples else sample
        return replace(self, value=value, samples=min(self.samples + 1, 2**32 - 1))


@dataclass(frozen=True, slots=True)
class Horizon:
    """The largest prompt, in tokens, at which a model still follows instructions, and how sure that is (0 to 1)."""

    tokens: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider reports of one request. `prefill_ms` is its own measure of the time before the first token."""

    input_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    prefill_ms: int | None = None

    @property
    def prompt_tokens(self) -> int:
        """The whole prompt, what came from a cache included."""
        return self.input_tokens + (self.cache_read_input_tokens or 0) + (self.cache_creation_input_tokens or 0)


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is known of a model's capacity. Every observation gives a new profile.

    Parameters
    ----------
    verified_window : int or None
        The smallest request that the provider refused as too long.
    output_reserve : int
        Tokens kept for the answer.
    needs_reprobe : bool
        True since an observation lowered the horizon.
    current_turn_reserve : Ewma
        Sizes of past turns in tokens.
    """

    declared_window: int
    instruction_horizon: Horizon
    output_reserve: int = 0
    verified_window: int | None = None
    tokens_per_char: Ewma = field(default_factory=Ewma)
    prefill_tps: Ewma = field(default_factory=Ewma)
    needs_reprobe: bool = False
    current_turn_reserve: Ewma = field(default_factory=Ewma)

    @classmethod
    def from_metadata(cls, declared_window: int, output_reserve: int) -> Capacity:
        """The profile of a model that was never probed: the horizon is the declared window."""
        return cls(declared_window, Horizon(declared_window, METADATA_CONFIDENCE), output_reserve)

    @property
    def ratio(self) -> float:
        """Tokens per char: as measured, or the value for a model that was never measured."""
        return self.tokens_per_char.value if self.tokens_per_char.samples else UNCALIBRATED_TOKENS_PER_CHAR

    def estimate_tokens(self, chars: int) -> int:
        """Tokens of so many chars, rounded half away from zero."""
        return round_half_away(chars * self.ratio)

    def chars_for_tokens(self, tokens: int) -> int:
        """Chars that fill so many tokens, rounded down; 0 if a char has none."""
        return _unsigned(tokens / self.ratio) if self.ratio > 0 else 0

    @property
    def prompt_ceiling(self) -> int:
        """The largest prompt: the horizon, and no more than the declared window leaves beside the answer."""
        return min(self.instruction_horizon.tokens, max(0, self.declared_window - self.output_reserve))

    def budget(self, prefix_tokens: int, tail_tokens: int, reserve: int) -> int:
        """Tokens for closed turns, by the newer formula: from the ceiling, saturating at each step."""
        return max(0, max(0, max(0, self.prompt_ceiling - prefix_tokens) - tail_tokens) - reserve)

    def budget_from_horizon(self, prefix_tokens: int, tail_tokens: int, reserve: int) -> int:
        """The same by the older formula, which takes the output reserve from the horizon. The original does not decide between them."""
        return max(0, self.instruction_horizon.tokens - prefix_tokens - tail_tokens - self.output_reserve - reserve)

    def turn_reserve(self, measured: int) -> int:
        """Tokens to keep for the current turn, of which so many are spent: what turns usually take, and at least that."""
        usual = self.current_turn_reserve
        return max(round_half_away(usual.value), measured) if usual.samples else measured

    def observe_usage(self, chars_sent: int, usage: Usage, first_token_latency_ms: int | None, cache_miss: bool) -> Capacity:
        """Learn from a request that was answered. The speed of prefill is measured only where no cache helped."""
        profile = self
        if chars_sent > 0 and usage.prompt_tokens > 0:
            profile = replace(profile, tokens_per_char=profile.tokens_per_char.observe(usage.prompt_tokens / chars_sent))
        latency = first_token_latency_ms if usage.prefill_ms is None else usage.prefill_ms
        if cache_miss and usage.input_tokens > 0 and latency:
            profile = replace(profile, prefill_tps=profile.prefill_tps.observe(usage.input_tokens / (latency / 1000.0)))
        return profile

    def observe_instruction_failure(self, request_tokens: int) -> Capacity:
        """Learn from a request whose instructions were not followed, if it was near the horizon."""
        if request_tokens < NEAR_HORIZON * self.instruction_horizon.tokens:
            return self
        return self._lowered(request_tokens)

    def observe_over_length(self, request_tokens: int) -> Capacity:
        """Learn from a request that was refused as too long."""
        verified = request_tokens if self.verified_window is None else min(self.verified_window, request_tokens)
        return replace(self._lowered(_unsigned(request_tokens * OVER_LENGTH_SHRINK)), verified_window=verified)

    def observe_turn(self, tokens: int) -> Capacity:
        """Learn the size of a turn that has ended."""
        return replace(self, current_turn_reserve=self.current_turn_reserve.observe(float(tokens)))

    def _lowered(self, tokens: int) -> Capacity:
        horizon = Horizon(min(self.instruction_horizon.tokens, tokens), FEEDBACK_CONFIDENCE)
        return replace(self, instruction_horizon=horizon, needs_reprobe=True)


def capacity_feedback_delta(before: Capacity, after: Capacity) -> dict[str, str]:
    """What of two profiles is worth a record: field → ``A -> B``, sorted by field.

    The measured rates count from a change of more than a twentieth, the horizon at any.
    """
    delta = {}
    if before.instruction_horizon.tokens != after.instruction_horizon.tokens:
        delta["instruction_horizon_tokens"] = f"{before.instruction_horizon.tokens} -> {after.instruction_horizon.tokens}"
    for name, old, new in (
        ("prefill_tps", before.prefill_tps.value, after.prefill_tps.value),
        ("tokens_per_char", before.tokens_per_char.value, after.tokens_per_char.value),
    ):
        if relative_change(old, new) > CAPACITY_FEEDBACK_CHANGE_THRESHOLD:
            delta[name] = f"{display(old)} -> {display(new)}"
    return delta


def relative_change(before: float, after: float) -> float:
    """Change as a share of the value before; from nothing to something it is 1."""
    if before == 0:
        return 0.0 if after == 0 else 1.0
    return abs((after - before) / before)


def display(value: float) -> str:
    """A float as Rust prints it: shortest digits, never an exponent, no ``.0``.

    Examples
    --------
    >>> [display(value) for value in (1.0, 1e-7, 1e21, 0.1, -0.0, float("inf"))]
    ['1', '0.0000001', '1000000000000000000000', '0.1', '-0', 'inf']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return format(Decimal(repr(float(value))), "f").removesuffix(".0")


def round_half_away(value: float) -> int:
    """A float as an unsigned integer, rounded half away from zero; what is out of range saturates.

    Examples
    --------
    >>> [round_half_away(value) for value in (0.5, 1.5, 2.5, 0.49999999999999994, -3.0, 1e30)]
    [1, 2, 3, 0, 0, 18446744073709551615]
    """
    whole = _unsigned(value)
    return whole + 1 if value - whole >= 0.5 and whole < U64_MAX else whole


def _unsigned(value: float) -> int:
    if math.isnan(value) or value <= 0:
        return 0
    return U64_MAX if value >= U64_MAX else int(value)
