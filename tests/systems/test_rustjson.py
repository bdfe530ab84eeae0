"""JSON as the originals write it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.systems import rustjson

texts = st.text(st.characters(exclude_categories=()))  # lone surrogates too
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
)


@given(values)
def test_what_is_written_reads_back_equal(value):
    assert rustjson.loads(rustjson.dumps(value)) == value


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_without_floats_it_is_pythons_compact_json(value):
    assert rustjson.dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_their_value_and_a_float_look(value):
    text = rustjson.number(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    assert "." in text or "e" in text
    assert "+" not in text
    if 1e-4 <= abs(value) < 1e16:
        assert text == repr(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1.25e17, "1.25e17"),
        (0.00001, "0.00001"),
        (0.000001, "1e-6"),
        (-1.5e-7, "-1.5e-7"),
        (5e-324, "5e-324"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, "1.8446744073709552e19"),
        (-(2**63) - 1, "-9.223372036854776e18"),
        (10**400, "null"),
        (float("nan"), "null"),
        (float("-inf"), "null"),
    ],
)
def test_numbers(value, text):
    assert rustjson.number(value) == text


@given(texts)
def test_the_bytes_of_characters_sum_to_the_bytes_of_the_string(text):
    sizes = rustjson.char_bytes(text)
    assert len(sizes) == len(text)
    assert int(sizes.sum()) + 2 == rustjson.utf8_len(rustjson.string(text)) == len(rustjson.string(text).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "1e400", "9" * 400, "9" * 5000, "", "[1,]", "nul"])
def test_what_the_originals_refuse_is_refused(text):
    with pytest.raises(ValueError):
        rustjson.loads(text)


def test_odd_numbers_read_as_the_originals_do():
    assert [repr(value) for value in rustjson.loads("[-0, 0, 18446744073709551615, 18446744073709551616, -9223372036854775808, 1.0]")] == [
        "-0.0",
        "0",
        "18446744073709551615",
        "1.8446744073709552e+19",
        "-9223372036854775808",
        "1.0",
    ]


def test_deep_nesting_is_written():
    value: object = 1
    for _ in range(50_000):
        value = [value]
    assert rustjson.dumps(value) == "[" * 50_000 + "1" + "]" * 50_000


def test_control_characters_and_what_stays_raw():
    assert rustjson.string('\b\f\n\r\t\x00\x1f"\\/\x7f\u2028é😀\ud800') == '"\\b\\f\\n\\r\\t\\u0000\\u001f\\"\\\\/\x7f\u2028é😀\ud800"'


def test_sums_saturate():
    assert rustjson.add(2**64 - 1, 5) == 2**64 - 1
    assert rustjson.add() == 0
