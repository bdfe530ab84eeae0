"""Every golden vector holds, and the runner tells when one does not."""

import copy
import json
from pathlib import Path

import pytest

from tests.golden.__main__ import main
from tests.golden.compare import differences
from tests.golden.runner import load, run
from tests.shared import SHARED, needs_shared

VECTORS = sorted((Path(__file__).parent / "vectors").glob("*.json.gz"))


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.name)
def test_every_vector_holds(path):
    outcomes = list(run(load(path)))
    assert outcomes
    assert [outcome for outcome in outcomes if outcome.differences] == []


@needs_shared
@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.name)
def test_the_copy_is_the_shared_one(path):
    assert load(path) == load(SHARED / "golden" / "systems" / path.name.removesuffix(".gz"))


def test_the_command_passes(capsys):
    assert main([str(path) for path in VECTORS]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{sum(len(load(path)['cases']) for path in VECTORS)} passed, 0 failed"]


def test_a_wrong_number_an_unknown_operation_and_an_unknown_system_fail(tmp_path, capsys):
    cases = load(next(path for path in VECTORS if path.name.startswith("scv")))["cases"]
    wrong = copy.deepcopy(next(case for case in cases if case["op"] == "select" and "ok" in case["output"]))
    wrong["output"]["ok"]["after_tokens"] += 1
    error = copy.deepcopy(next(case for case in cases if "error" in case["output"]))
    error["output"]["error"] += "!"
    document = {"system": "scv", "cases": [cases[0], wrong, error, {"id": "x", "op": "juggle", "input": {}, "output": {}}]}
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(document))
    assert main([str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 passed, 3 failed"
    assert "output.ok.after_tokens" in lines[1]
    assert "output.error" in lines[2]
    assert "unknown operation 'juggle'" in lines[3]

    path.write_text(json.dumps({"system": "nobody", "cases": cases[:2]}))
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("0 passed, 2 failed")


def test_a_file_that_is_none_fails(tmp_path, capsys):
    path = tmp_path / "cases.json"
    path.write_text("[]")
    assert main([str(path), str(tmp_path / "missing.json")]) == 1
    assert capsys.readouterr().out.startswith("0 passed, 2 failed")


@pytest.mark.parametrize(
    ("expected", "actual", "differ"),
    [
        (1, 1.0, 0),
        (1, True, 1),
        (None, 0, 1),
        ([1, 2], [2, 1], 2),
        ([1], [1, 2], 1),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, 0),
        ({"a": 1}, {"b": 1}, 2),
        ("é", "e\u0301", 1),
    ],
)
def test_differences(expected, actual, differ):
    assert len(list(differences(expected, actual))) == differ
