"""Plans as text: what is written is read, and nothing else is."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from ivme.compile import compile_plan
from ivme.errors import StorageError
from ivme.plan.assemble.blueprint import Leaf
from ivme.plan.ir.codec import Codec
from ivme.plan.plan_text import plan_text, read_plan
from ivme.query.parse import parse
from ivme.tables import read_tables

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "explain").glob("*.txt"))
CODEC = Codec([Leaf])


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_plan_of_a_golden_query_is_read_as_it_was_written(path: Path) -> None:
    case = yaml.safe_load(path.read_text("utf-8").partition("---\n")[0])
    query = parse(case["query"], read_tables(case.get("tables") or None))
    explanation, plan = compile_plan(query, **case.get("options", {}))
    text = plan_text(explanation, plan)
    stored = read_plan(text)
    assert (explanation, plan) == (stored.explanation, stored.plan)
    assert str(explanation) == str(stored.explanation)
    assert text == plan_text(stored.explanation, stored.plan)


@pytest.mark.parametrize(
    "value",
    [
        (),
        ("", "=set", "Leaf", 0, -1, 2**80, True, None),
        (1, True, 1.0, Decimal("1.0"), Fraction(1)),
        (0.1, -0.0, float("inf"), Decimal("-1.50"), Fraction(2, 3), b"\x00\xff"),
        (datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)),
        frozenset({frozenset({"A", "B"}), frozenset()}),
        {"A": (1, {}), "B": Leaf("R", ("A", "\ud800"))},
    ],
)
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    read = CODEC.read(CODEC.write(value))
    assert repr(value) == repr(read) or value == read
    assert CODEC.write(value) == CODEC.write(read)


def test_equal_values_are_written_once() -> None:
    many = tuple(Leaf("R", ("A" * 100,)) for _ in range(100))
    assert len(CODEC.write(many)) < 800


def test_a_deep_value_is_written_and_read() -> None:
    value: tuple[object, ...] = ()
    for _ in range(5000):
        value = (value,)
    text = CODEC.write(value)
    assert text == CODEC.write(CODEC.read(text))


def test_what_is_not_in_the_list_is_not_written() -> None:
    @dataclass(frozen=True)
    class Other:
        label: str

    for value in (Other("R"), [1], {1}, object()):
        with pytest.raises(TypeError, match="cannot be stored"):
            CODEC.write((value,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"classes":{},"values":[]}',
        '{"classes":{"Leaf":["label"]},"values":["R",["Leaf",0]]}',
        '{"classes":{"Other":["label"]},"values":["R",["Other",0]]}',
        '{"classes":{},"values":["R",["Other",0]]}',
        '{"classes":{"Leaf":["label","schema"]},"values":["R",["Leaf",0]]}',
        '{"classes":{},"values":[[0]]}',
        '{"classes":{},"values":["R",[-1]]}',
        '{"classes":{},"values":["R",[true]]}',
        '{"classes":{},"values":[{"a":1}]}',
        '{"classes":{},"values":[1.5]}',
        '{"classes":{},"values":[["=fraction","1/0"]]}',
        '{"classes":{},"values":[["=date","today"]]}',
        '{"classes":{},"values":[["=eval","1"]]}',
        '{"classes":{},"values":["R",["=dict",0]]}',
    ],
)
def test_a_text_that_was_not_written_by_it_is_refused(text: str) -> None:
    with pytest.raises(StorageError, match="a stored plan"):
        CODEC.read(text)


def test_a_damaged_text_is_refused() -> None:
    text = plan_text(*compile_plan(parse("Q(A, C) = R(A, B), S(B, C)", ())))
    damaged = [text[:-8], text[: len(text) // 2], text + "AAAA", "", "?", text[:40] + "AAAA" + text[44:]]
    for each in damaged:
        with pytest.raises(StorageError, match="a stored plan"):
            read_plan(each)
    assert json.dumps(text)
