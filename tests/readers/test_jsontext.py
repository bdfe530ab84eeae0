"""JSON that was damaged on its way: mended where it can be, reported always."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.readers.jsontext import MAX_DIGITS, NotJson, member, parse, sound, split

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_sound_json_is_what_the_standard_library_reads(value: object) -> None:
    parsed = parse(json.dumps(value).encode())
    assert parsed.value == json.loads(json.dumps(value))
    assert parsed.faults == ()


@pytest.mark.parametrize(
    ("text", "value", "fault"),
    [
        (b'{"n": NaN}', {"n": None}, "NaN is not a number"),
        (b'{"n": -Infinity}', {"n": None}, "-Infinity is not a number"),
        (b'{"n": 1e400}', {"n": None}, "1e400 is out of range"),
        (b'{"n": ' + b"9" * 5_000 + b"}", {"n": None}, "an integer of 5,000 digits is out of range"),
        (b'{"role": "user", "role": "tool"}', {"role": "tool"}, 'the key "role" stands twice'),
        (b'{"m":{"role":"user","role":"tool"}}', {"m": {"role": "tool"}}, 'the key "role" stands twice'),
        (b'{"a": "\xff"}', {"a": "\ufffd"}, "bytes that are not UTF-8"),
    ],
)
def test_what_is_mended_is_reported(text: bytes, value: object, fault: str) -> None:
    parsed = parse(text)
    assert parsed.value == value
    assert parsed.faults == (fault,)
    with pytest.raises(NotJson):
        sound(text)


def test_roles_of_several_objects_are_no_fault() -> None:
    assert parse(b'[{"role":"user"},{"role":"user"}]').faults == ()


def test_long_integers_stay_exact() -> None:
    assert parse(b"9007199254740993").value == 2**53 + 1
    assert parse(b"1" * MAX_DIGITS).value == int("1" * MAX_DIGITS)


def test_lone_surrogates_survive() -> None:
    assert parse(b'"\\ud99c ok"').value == "\ud99c ok"
    assert parse(b'"\\ud83d\\ude42"').value == "🙂"


def test_raw_control_characters_survive() -> None:
    assert parse(b'"a\x01\tb"').value == "a\x01\tb"


@pytest.mark.parametrize(
    ("text", "why"), [(b'{"a": "b', "unfinished"), (b'{"a"', "unfinished"), (b"{oops", "expecting"), (b'{"a": 1} x', "extra data"), (b"", "")]
)
def test_why_it_is_not_json(text: bytes, why: str) -> None:
    with pytest.raises(NotJson) as error:
        parse(text)
    assert why in str(error.value)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000])
def test_nesting_is_bounded(text: bytes) -> None:
    with pytest.raises(NotJson):
        parse(text)
    split(text)


def test_split_is_linear() -> None:
    start = time.process_time()
    split(b"[" + b'"\\' * 300_000)
    split(b"[" + b'{"a": "' + b"x" * 1_000_000)
    assert time.process_time() - start < 2


@given(st.lists(VALUES, max_size=6), st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_a_cut_list_keeps_its_whole_elements(values: list[object], cut: int) -> None:
    text = json.dumps(values).encode()
    pieces, finished = split(text)
    assert finished
    assert [json.loads(piece) for piece in pieces] == json.loads(text)
    shorter, _ = split(text[: 1 + cut])
    for piece, whole in zip(shorter[:-1], pieces, strict=False):
        assert piece == whole


def test_members() -> None:
    assert member(b'"a\\"b" : [1') == ('a"b', b"[1")
    assert member(b"a: 1") is None
    assert member(b'"\xff": 1') == ("\ufffd", b"1")
