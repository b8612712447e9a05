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
        ("timestamp", "2024-02-29T12:00:00.1234567"),
        ("int", "1_0"),
        ("int", " 1"),
        ("int", "١"),
        ("float", "1_0"),
        ("decimal(10, 2)", "1_0"),
        ("decimal(10, 2)", "9" * 1000),
        ("decimal(10, 2)", "1e999999999999999999999"),
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


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"a": 1, "b": {"c": 2, "c": 3}}', "the key 'c' twice"),
        (b'{"a": NaN}', "NaN, which is not JSON"),
        (b"[-Infinity]", "-Infinity, which is not JSON"),
        (b"[" + b"9" * 5000 + b"]", "an integer of thousands of digits"),
        (b"[0." + b"9" * 5000 + b"]", "a number that is too long"),
        (b"[1e999999999999999999999]", "a number that is too long, or too large"),
        (b"[" * 100_000, "nested too deeply"),
        (rb'["\ud800"]', "a lone surrogate in '.ud800'"),
        (rb'{"a": [{"\udfff": 1}]}', "a lone surrogate"),
        (b'["\xed\xa0\x80"]', "not JSON in UTF-8"),
        ('["a"]'.encode("utf-16"), "not JSON in UTF-8"),
    ],
    ids=range(11),
)
def test_a_body_that_leaves_something_open_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(Problem, match=reason):
        read_json(body)


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert ["\U0001f600", "\\ud800"] == read_json(rb'["\ud83d\ude00", "\\ud800"]')
