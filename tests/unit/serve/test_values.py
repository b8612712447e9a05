"""Values in queries and in JSON."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme.query.types import parse_type
from ivme.serve.problem import Problem
from ivme.serve.values import dumps, json_reader, read_json, read_text

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63) + 1, 2**63 - 1),
    "float": st.floats(allow_nan=False),
    "decimal(38, 6)": st.decimals(allow_nan=False, allow_infinity=False, places=6),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "bool": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "binary": st.binary(),
}


@pytest.mark.parametrize("kind", VALUES)
@given(st.data())
def test_a_value_that_goes_out_comes_in_as_it_was(kind: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind] | st.none())
    (back,) = read_json(dumps([value]))
    assert (value, type(value)) == (json_reader(parse_type(kind))(back), type(json_reader(parse_type(kind))(back)))


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "string"])
@given(st.data())
def test_a_parameter_reads_what_json_shows(kind: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    text = json.loads(dumps([value]))[0]
    shown = text if isinstance(text, str) else dumps(text).decode()
    assert value == read_text(shown, parse_type(kind), "it")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "1.5"),
        ("int", "1" * 41),
        ("int", ""),
        ("float", "nan"),
        ("float", "1e999"),
        ("decimal(10, 2)", "NaN"),
        ("decimal(10, 2)", "1e401"),
        ("bool", "True"),
        ("bool", "1"),
        ("date", "29.2.2024"),
        ("timestamp", "now"),
        ("binary", "?"),
    ],
)
def test_a_text_that_is_no_value_is_refused(kind: str, text: str) -> None:
    with pytest.raises(Problem, match="parameter x has the type"):
        read_text(text, parse_type(kind), "parameter x")


@given(st.text())
def test_no_text_does_more_than_being_refused(text: str) -> None:
    for kind in VALUES:
        with suppress(Problem):
            read_text(text, parse_type(kind), "it")
