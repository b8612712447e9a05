"""Values, tables and options in JSON."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme.errors import StorageError
from ivme.query.model import table
from ivme.store.plain import convert, plain_option, plain_table, read_option, read_table, readers, writers

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63) + 1, 2**63 - 1),
    "float": st.floats(allow_nan=False),
    "decimal(38, 6)": st.decimals(allow_nan=False, allow_infinity=False, places=6),
    "string": st.text(),
    "bool": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "binary": st.binary(),
}


@pytest.mark.parametrize("kind", VALUES)
@given(st.data())
def test_every_value_comes_back_from_json_as_it_was(kind: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind] | st.none())
    declared = table("R", {"other": "int", "a": kind})
    text = json.dumps(convert([[1, value]], writers(declared)))
    ((other, back),) = convert(json.loads(text), readers(declared))
    assert (1, value, type(value)) == (other, back, type(back))


def test_a_timestamp_of_a_whole_second_comes_back() -> None:
    declared = table("R", {"at": "timestamp"})
    at = datetime.datetime(2024, 1, 1)
    assert [[at]] == convert(convert([[at]], writers(declared)), readers(declared))


def test_a_table_comes_back_with_its_types_and_promises() -> None:
    declared = table("Ü", {"a": "decimal(12, 3)", "B": "varchar(3)"}, primary_key=("B",), append_only=True)
    assert declared == read_table(json.loads(json.dumps(plain_table(declared))))


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 0.1, "auto", Fraction(1, 3), Decimal("0.10"), {"R": Fraction(1, 2), "S": 0.5}, ["R", "S"], []],
)
def test_an_option_comes_back_as_it_was(value: object) -> None:
    back = read_option(json.loads(json.dumps(plain_option("epsilon", value))))
    assert (value, type(value)) == (back, type(back))


def test_an_option_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(StorageError, match="option epsilon is a object"):
        plain_option("epsilon", object())
