"""`workbench compare`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shared import SAMPLES
from workbench.model import Budget

from .conftest import Done

Run = Callable[..., Done]
CODING = SAMPLES / "coding_agent.jsonl"


def test_each_policy_is_its_select_document_without_items_and_steps(run: Run) -> None:
    document = run("compare", CODING, "--json", "--max-tokens", "32000", "--policy", "none", "--policy", "scv", "--set", "scv.summary_max_chars=500").document
    assert [policy["label"] for policy in document["policies"]] == ["none", "scv"]
    for policy in document["policies"]:
        given = ("--set", "summary_max_chars=500") if policy["policy"] == "scv" else ()
        alone = run("select", CODING, "--json", "--max-tokens", "32000", "--policy", policy["policy"], *given).document
        del alone["items"], alone["steps"], policy["label"]
        assert policy == alone
    fates = {policy["policy"]: policy["fates"] for policy in document["policies"]}
    every = document["policies"][0]["indices"]  # none sends all
    parted = [index for index, left, right in zip(every, fates["none"], fates["scv"], strict=True) if left != right]
    assert [item["message"] for item in document["differ"]] == parted
    assert {item["way"] for item in document["differ"]} == {"sent"}


def test_it_agrees_with_the_library(run: Run) -> None:
    import workbench as wb

    frame = wb.compare(wb.count(wb.read(CODING)), budget=Budget(32_000))
    document = run("compare", CODING, "--json", "--max-tokens", "32000").document
    assert [policy["label"] for policy in document["policies"]] == frame.index.tolist()
    assert [policy.get("after_tokens") for policy in document["policies"]] == [
        None if value is None else int(value) for value in frame["after_tokens"].astype(object).where(frame["feasible"], None)
    ]


def test_a_person_sees_a_table_and_where_they_part(run: Run) -> None:
    done = run("compare", CODING, "--max-tokens", "32000", "--policy", "none", "--policy", "scv")
    assert done.code == 0
    assert "They part on " in done.out
    assert "sent by some only" in done.out
    assert "▒" in done.out
    assert "█" in done.out
    same = run("compare", CODING, "--policy", "none")
    assert "part on" not in same.out


def test_a_budget_that_cannot_hold_is_an_answer(run: Run, chat: Path) -> None:
    args = ("--max-tokens", "10", "--reserve-output-tokens", "0", "--policy", "scv", "--policy", "none")
    scv, none = run("compare", chat, "--json", *args).document["policies"]
    assert (scv["feasible"], none["feasible"]) == (False, True)
    assert scv["needed"] > scv["available"]
    done = run("compare", chat, *args)
    assert done.code == 0
    assert "scv: " in done.out
    assert "raise the window" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--policy", "none", "--policy", "nonsense"), "no policy is called 'nonsense'"),
        (("--policy", "none", "--set", "scv.summary_max_chars=4"), "no policy 'scv' is chosen"),
        (("--policy", "none", "--policy", "scv", "--set", "summary_max_chars=4"), "has no parameter"),
        (("--thread", "nowhere"), "no thread 'nowhere'"),
    ],
)
def test_wrong_options_are_one_line(args: tuple[str, ...], says: str, run: Run, chat: Path) -> None:
    assert says in run("compare", chat, *args).complaint
