from __future__ import annotations

import time

import pytest
from hypothesis import given

from tests.strategies import texts
from workbench.losses.words import IDENTIFIERS, Reader, instructions


def found(text: str, home: str = "/home/dev/app", files: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    return Reader(home, files).find(text)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("see src/load.py.", "path", "src/load.py"),
        ("(/home/dev/app/src/load.py:12:3)", "path", "src/load.py"),
        ("./src/load.py#L10-L20", "path", "src/load.py"),
        ("open @src/load.ts, please", "path", "src/load.ts"),
        ("in /etc/hosts", "path", "/etc/hosts"),
        ("the README.md says", "path", "README.md"),
        ("`docs/`, /srv/app/docs/", "path", "/srv/app/docs"),
        ("at https://example.org/a/b?x.", "url", "https://example.org/a/b?x"),
        ("self.read_rows()", "symbol", "read_rows"),
        ("new FooBar(baz)", "symbol", "FooBar"),
        ("--max_tokens=5", "symbol", "max_tokens"),
        ("commit 4F9C2D1 is", "hash", "4f9c2d1"),
        ("id 550E8400-e29b-41d4-a716-446655440000.", "hash", "550e8400-e29b-41d4-a716-446655440000"),
        ("12,480 rows", "number", "12480"),
        ("port 8080", "number", "8080"),
        ("on 2026-03-14T09:12", "number", "2026-03-14"),
        ("app.store.StoreError: no row 7 for 'x'\nmore", "error", "StoreError: no row 7 for x"),
        ("it said `error: no such file`", "error", "error: no such file"),
        ("error[E0382]: use of moved value", "error", "error[E0382]: use of moved value"),
        ('{"a":"line one\\nread_rows"}', "symbol", "read_rows"),
    ],
)
def test_found(text, kind, name):
    assert (kind, name) in found(text)


@pytest.mark.parametrize(
    "text", ["and/or read/write", "e.g. this", "3 of 12", "x" * 5000, "a.b.c", "</div>", "obj.attr", "100 %", "hello, world: yes", "> /dev/null", "deadbeef"]
)
def test_nothing_found(text):
    assert found(text) == set()


def test_a_file_without_an_ending_is_one_where_a_call_named_it():
    assert found("the Makefile") == set()
    assert found("the Makefile", files=("Makefile",)) == {("path", "Makefile")}
    assert found("a/src/load and b/src/load", files=("src/load",)) == {("path", "src/load")}


@given(texts, texts)
def test_what_stands_in_a_part_stands_in_the_whole(one, other):
    reader = Reader()
    whole = reader.find(f"{one}\n{other}")
    assert reader.find(one) | reader.find(other) <= whole
    assert {kind for kind, _ in whole} <= set(IDENTIFIERS)


def test_instructions():
    assert instructions("Never push! You must ask. I mustn’t. Nothing else.\nonly here") == ("Never push!", "You must ask.", "I mustn’t.", "only here")
    assert instructions("The mustard is commonly eaten") == ()


HOSTILE = ["/", "a_", "rror: ", "1,111", "a.", "Error: a b\n", "00000000-", "://", "\\", "aB", "x" * 290 + " ", ":1", "../", "must ", ".\n", "`'\""]


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear_in_a_hostile_text(unit):
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            Reader().find(text)
            instructions(text)
            best = min(best, time.process_time() - start)
        return best

    small, large = seconds(25_000), seconds(200_000)
    assert large <= 8 * 4 * small + 0.1  # a square would be 64 times, and seconds
