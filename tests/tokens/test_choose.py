"""Which counter a model or a name gets, and what its label says."""

from __future__ import annotations

import numpy as np
import pytest
import tiktoken.model

from workbench.errors import CounterError
from workbench.ledger import count
from workbench.model import Source, Transcript
from workbench.tokens import NAMES, RatioCounter, ScaledCounter, TiktokenCounter, choose, counter_for, get


@pytest.mark.parametrize(
    ("model", "id_", "label", "exact", "error"),
    [
        ("gpt-4o-mini-2024-07-18", "o200k_base", "o200k_base", True, 0),
        ("openai/gpt-4.1", "o200k_base", "o200k_base", True, 0),
        ("gpt-5.5", "o200k_base", "o200k_base", True, 0),
        ("o3-mini", "o200k_base", "o200k_base", True, 0),
        ("gpt-5-codex", "o200k_base", "o200k_base", True, 0),
        ("openai/gpt-oss-120b", "o200k_base", "o200k_base", True, 0),
        ("ft:gpt-4o-mini:org::id", "o200k_base", "o200k_base", True, 0),
        ("gpt-4", "cl100k_base", "cl100k_base", True, 0),
        ("gpt-4-turbo", "cl100k_base", "cl100k_base", True, 0),
        ("gpt-3.5-turbo-0125", "cl100k_base", "cl100k_base", True, 0),
        ("claude-3-5-sonnet-20241022", "o200k_base*1.18", "o200k × 1.18 ± 25 %", False, 0.25),
        ("claude-opus-4-20250514", "o200k_base*1.18", "o200k × 1.18 ± 25 %", False, 0.25),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "o200k_base*1.18", "o200k × 1.18 ± 25 %", False, 0.25),
        ("claude-opus-4-6", "o200k_base*1.18", "o200k × 1.18 ± 25 %", False, 0.25),
        ("claude-opus-4-7", "o200k_base*1.53", "o200k × 1.53 ± 25 %", False, 0.25),
        ("anthropic/claude-opus-4.7", "o200k_base*1.53", "o200k × 1.53 ± 25 %", False, 0.25),
        ("claude-sonnet-5@20261001", "o200k_base*1.53", "o200k × 1.53 ± 25 %", False, 0.25),
        ("gpt-6", "o200k_base", "o200k_base, assumed", False, 0.25),
        ("gemini-2.5-pro", "o200k_base", "o200k_base, assumed", False, 0.25),
        (None, "o200k_base", "o200k_base, assumed", False, 0.25),
        ("\ud800 ‮", "o200k_base", "o200k_base, assumed", False, 0.25),
    ],
)
def test_default_by_model(model, id_, label, exact, error):
    """Input 12: an unknown name is no error, and says so."""
    counter = counter_for(model)
    assert (counter.id, counter.label, counter.exact, counter.error) == (id_, label, exact, error)


def test_openai_families_agree_with_tiktoken():
    """Every chat model that tiktoken maps to one of our vocabularies gets the same one here."""
    known = tiktoken.model.MODEL_TO_ENCODING | {f"{prefix}x": encoding for prefix, encoding in tiktoken.model.MODEL_PREFIX_TO_ENCODING.items()}
    known = {model: encoding.replace("o200k_harmony", "o200k_base") for model, encoding in known.items()}
    chat = {model: encoding for model, encoding in known.items() if choose.family(model) == "openai" and encoding in NAMES}
    assert len(chat) > 15
    assert {model: counter_for(model).id for model in chat} == chat


@pytest.mark.parametrize("name", NAMES)
def test_the_id_is_the_name(name):
    assert get(name).id == name
    assert get(name) == get(get(name).id)


def test_any_ratio_and_factor_has_a_name():
    assert get("bytes/3.57") == RatioCounter(3.57)
    assert get("chars/3") == RatioCounter(3, "chars")
    assert get("cl100k_base×1.35") == ScaledCounter(TiktokenCounter("cl100k_base"), 1.35)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "p50k_base",
        "bytes/0",
        "bytes/",
        "words/2",
        "o200k_base*0",
        "nothing*2",
        "bytes/4\n",
        "bytes/0.0000001",
        "o200k_base*9999999999",
        "chars/" + "9" * 400,
        "o200k_base" + "*1" * 2_000,
    ],
)
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(CounterError) as caught:
        get(name)
    assert "o200k_base" in str(caught.value)
    assert "bytes/4" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ratio_counts_bytes_or_characters():
    assert RatioCounter(4).count_texts(["", "a", "日本語", "\ud800x"]).tolist() == [0, 1, 3, 1]
    assert RatioCounter(4, "chars").count_texts(["", "a", "日本語", "\ud800x"]).tolist() == [0, 1, 1, 1]


def test_scaled_rounds_each_text_and_never_to_nothing():
    half = ScaledCounter(RatioCounter(1), 0.3)
    assert half.count_texts(["", "a", "aaaa", "a" * 10]).tolist() == [0, 1, 1, 3]
    assert half.count_texts(["aaaa"]).dtype == np.int64
    for factor in (0, -1, float("nan"), float("inf")):
        with pytest.raises(CounterError, match="positive"):
            ScaledCounter(RatioCounter(), factor)


@pytest.mark.parametrize("wrong", [3, object(), RatioCounter])
def test_what_is_no_counter_is_refused(wrong):
    with pytest.raises(CounterError, match="give a name"):
        count(Transcript("t", Source("made"), ()), wrong)
