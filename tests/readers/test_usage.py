"""Every provider's usage in the same disjoint buckets; impossible numbers are no numbers."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.model import Usage
from workbench.readers.usage import anthropic, inclusive, tokens


def test_b31_the_uncached_rest_is_not_the_context() -> None:
    usage, fault = anthropic({"input_tokens": 6, "cache_creation_input_tokens": 37172, "cache_read_input_tokens": 0})
    assert fault is None
    assert usage is not None
    assert usage.prompt == 37178
    assert usage.cache_write_5m == 37172


@pytest.mark.parametrize("read", [anthropic, inclusive])
def test_b32_negative_input_is_inconsistent(read: Any) -> None:
    usage, fault = read({"input_tokens": -120, "cache_read_input_tokens": 500, "output_tokens": 5})
    assert usage == Usage(output=5)
    assert usage.prompt is None
    assert usage.total == 5
    assert fault is not None
    assert "inconsistent usage" in fault


def test_b35_cached_and_reasoning_are_parts() -> None:
    usage, fault = inclusive({"input_tokens": 123_302, "cached_input_tokens": 96_128, "output_tokens": 1_944, "reasoning_output_tokens": 1_129})
    assert fault is None
    assert usage is not None
    assert (usage.total, usage.input_uncached, usage.cache_read) == (125_246, 27_174, 96_128)
    assert (usage.output or 0) - (usage.reasoning or 0) == 815


def test_more_cached_than_sent_is_inconsistent() -> None:
    usage, fault = inclusive({"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 11}})
    assert usage == Usage(output=3)
    assert fault is not None


def test_cache_writes_by_time_to_live() -> None:
    split = {"input_tokens": 1, "cache_creation_input_tokens": 30, "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}}
    assert anthropic(split)[0] == Usage(1, None, 10, 20)
    assert anthropic({**split, "cache_creation": {"ephemeral_1h_input_tokens": 20}})[0] == Usage(1, None, 10, 20)
    assert anthropic({**split, "cache_creation": "oops"})[0] == Usage(1, None, 30, None)
    assert anthropic({**split, "cache_creation": {"ephemeral_1h_input_tokens": 99}})[0] == Usage(1, None, 30, None)
    assert anthropic({"input_tokens": 1, "cache_creation_input_tokens": 0})[0] == Usage(1, None, 0, None)  # a zero that is recorded is a zero


def test_iterations_are_summed() -> None:
    """The top level leaves out what the server's own compaction took."""
    usage, _ = anthropic(
        {
            "input_tokens": 220,
            "output_tokens": 8,
            "iterations": [{"type": "compaction", "input_tokens": 55196, "output_tokens": 125}, {"type": "message", "input_tokens": 220, "output_tokens": 8}],
        }
    )
    assert usage is not None
    assert (usage.prompt, usage.output, len(usage.iterations)) == (55416, 133, 2)
    assert anthropic({"input_tokens": 1, "iterations": []})[0] == Usage(1)
    assert anthropic({"input_tokens": 1, "iterations": [None, 7, "x"]})[0] == Usage(1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, -0.5, 2.5, 2**53, 10**400, True, "12", [], {}, None])
def test_what_is_no_token_count(value: Any) -> None:
    assert tokens(value) is None
    for read in (anthropic, inclusive):
        usage, fault = read({"input_tokens": value, "output_tokens": 3})
        assert usage is not None
        assert usage.output == 3
        assert usage.prompt is None
        assert (fault is None) == (value is None)


@pytest.mark.parametrize("raw", [None, {}, [], 3, "x", {"service_tier": "standard"}])
def test_no_usage_is_not_zero(raw: Any) -> None:
    for read in (anthropic, inclusive):
        assert read(raw)[0] is None
