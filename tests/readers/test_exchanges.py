"""Request/response pairs: told apart into runs, and each request into what it repeats and what is new."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

from tests.readers.made import as_json, jsonl
from workbench.readers.exchanges import Exchange, Step, events, leading, pairs, runs
from workbench.readers.source import open_document


def pair(number: int, asked: str, said: str, **more: Any) -> Exchange:
    return Exchange(number, {"messages": list(asked), **more}, {"said": list(said), "id": f"r{number}"})


def told_apart(*exchanges: Exchange) -> list[list[Step]]:
    def sent(exchange: Exchange) -> list[Hashable]:
        return list(exchange.request["messages"])

    def got(exchange: Exchange) -> list[Hashable]:
        return [] if exchange.response is None else list(exchange.response["said"])

    return runs(
        exchanges,
        sent=sent,
        got=got,
        id_of=lambda exchange: (exchange.response or {}).get("id"),
        previous_of=lambda exchange: exchange.request.get("previous_response_id"),
        lead_of=lambda exchange: leading([{"role": key} for key in exchange.request["messages"]], lambda item: "system" if item["role"].isdigit() else "user"),
    )


def shape(found: list[list[Step]]) -> list[list[tuple[int, int, tuple[int, ...]]]]:
    return [[(step.exchange.number, step.repeats, step.context) for step in steps] for steps in found]


def test_a_growing_history_is_one_run() -> None:
    assert shape(told_apart(pair(1, "u", "a"), pair(2, "uav", "b"), pair(3, "uavbw", "c"))) == [[(1, 0, ()), (2, 2, (0, 1)), (3, 4, (0, 1, 2, 3))]]


def test_a_pair_that_extends_nothing_starts_a_run() -> None:
    assert [len(steps) for steps in told_apart(pair(1, "u", "a"), pair(2, "v", "b"), pair(3, "u", "a"))] == [1, 1, 1]


def test_interleaved_conversations() -> None:
    found = told_apart(pair(1, "u", "a"), pair(2, "x", "b"), pair(3, "uav", "c"), pair(4, "xby", "d"))
    assert [[step.exchange.number for step in steps] for steps in found] == [[1, 3], [2, 4]]


def test_a_client_that_trims() -> None:
    """What a client left of the history is the exact context; the run goes on."""
    assert shape(told_apart(pair(1, "su", "a"), pair(2, "suav", "b"), pair(3, "svbw", "c"))) == [[(1, 0, ()), (2, 3, (0, 1, 2)), (3, 3, (0, 3, 4))]]


def test_a_changed_history_is_another_run() -> None:
    assert [len(steps) for steps in told_apart(pair(1, "u", "a"), pair(2, "Uav", "b"))] == [1, 1]


def test_other_leading_system_text_is_the_same_run() -> None:
    """A digit is system text here: in each request another one, none, two, the first again."""
    found = told_apart(pair(1, "1u", "a"), pair(2, "2uav", "b"), pair(3, "uavbw", "c"), pair(4, "12uavbwcx", "d"), pair(5, "1uavbwcxdy", "e"))
    assert shape(found) == [[(1, 0, ()), (2, 3, (1, 2)), (3, 4, (1, 2, 3, 4)), (4, 8, (0, 1, 2, 3, 4, 5, 6)), (5, 9, tuple(range(9)))]]


def test_the_same_system_text_alone_joins_nothing() -> None:
    assert [len(steps) for steps in told_apart(pair(1, "1u", "a"), pair(2, "1v", "b"), pair(3, "2v", "c"))] == [1, 1, 1]
    assert [len(steps) for steps in told_apart(pair(1, "1", ""), pair(2, "2v", "c"), pair(3, "1v", "d"))] == [2, 1]


def test_the_run_with_the_same_system_text_comes_first() -> None:
    found = told_apart(pair(1, "1u", "a"), pair(2, "2u", "a"), pair(3, "1uav", "b"))
    assert [[step.exchange.number for step in steps] for steps in found] == [[1, 3], [2]]


def test_later_system_text_that_changes_is_another_run() -> None:
    assert [len(steps) for steps in told_apart(pair(1, "u1", "a"), pair(2, "u2av", "b"))] == [1, 1]


def test_a_named_previous_response() -> None:
    found = told_apart(pair(1, "u", "a"), pair(2, "v", "b", previous_response_id="r1"), pair(3, "w", "c", previous_response_id="elsewhere"))
    assert shape(found) == [[(1, 0, ()), (2, 0, (0, 1))], [(3, 0, ())]]


def test_a_failed_request_sent_again() -> None:
    failed = Exchange(1, {"messages": ["u"]})
    assert shape(told_apart(failed, pair(2, "u", "a"))) == [[(1, 0, ()), (2, 1, (0,))]]


def test_ten_thousand_independent_pairs_take_linear_time() -> None:
    assert len(told_apart(*(pair(number, f"{chr(number + 256)}", "z") for number in range(5_000)))) == 5_000


def test_pairs_of_documents(tmp_path: Path) -> None:
    one = {"request": {"messages": []}, "response": {"content": []}}
    for path in (as_json(tmp_path / "a.json", [one, one]), jsonl(tmp_path / "b.jsonl", [one, one])):
        assert [exchange.number for exchange in pairs(open_document(path))] == [1, 2]
    assert len(pairs(open_document(as_json(tmp_path / "c.json", one)))) == 1
    assert pairs(open_document(as_json(tmp_path / "d.json", [{"role": "user", "content": "q"}]))) == []


def test_wrapped_and_written_bodies(tmp_path: Path) -> None:
    wrapped = {
        "request": {"headers": {"authorization": "Bearer secret"}, "body": '{"messages": [1]}'},
        "response": {"status": 200, "body": 'data: {"type": "x"}\r\n\r\ndata: [DONE]\n\n'},
    }
    found = pairs(open_document(as_json(tmp_path / "a.json", [wrapped])))
    assert found == [Exchange(1, {"messages": [1]}, None, ({"type": "x"},))]
    assert "secret" not in repr(found)


def test_events() -> None:
    assert events('data: {"a":\ndata: 1}\n\n: note\n\ndata: {oops\n\ndata:[1]\n\ndata:{"b": "x\u2028y"}') == ({"a": 1}, {"b": "x\u2028y"})
    assert events("") == ()


def test_hostile_pairs(tmp_path: Path) -> None:
    rows = [{"request": value, "response": other} for value in (None, 1, "x", [], {}, "{oops") for other in (None, 1, "x", [1], {"body": []})]
    for exchange in pairs(open_document(jsonl(tmp_path / "a.jsonl", rows))):
        assert isinstance(exchange.request, dict)
