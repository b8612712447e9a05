"""Which expressions may have no value for a row, and that none of the others ever fails."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.errors import ExpressionError
from ivme.query.can_fail import can_fail
from ivme.query.expression import evaluate
from ivme.query.inference import in_type, type_of
from ivme.query.model import table
from ivme.query.sql import parse_sql
from tests.example_counts import examples
from tests.random_expressions import ANYTHING, COLUMNS, ROWS, expressions

T = table(
    "t",
    {
        "i": "int",
        "f": "float",
        "b": "bool",
        "s": "string",
        "d": "date",
        "ts": "timestamp",
        "p": "decimal(12, 2)",
        "w": "decimal(38, 2)",
    },
)


@pytest.mark.parametrize(
    ("expression", "fails"),
    [
        ("i + 1", True),
        ("i * i", True),
        ("- i", False),
        ("i / 2", False),
        ("i / 0.5", False),
        ("i % 7", False),
        ("i / i", True),
        ("f * f + f", False),
        ("f / f", True),
        ("p * (1 - p)", False),
        ("w + w", True),
        ("p / p", True),
        ("CAST(i AS DOUBLE)", False),
        ("CAST(f AS BIGINT)", True),
        ("CAST(s AS BIGINT)", True),
        ("CAST(p AS DECIMAL(14, 2))", False),
        ("CAST(p AS DECIMAL(4, 2))", True),
        ("CAST(i AS DECIMAL(21, 2))", False),
        ("CAST(i AS DECIMAL(10, 0))", True),
        ("CAST(s AS DATE)", True),
        ("CAST(ts AS DATE)", False),
        ("YEAR(d)", False),
        ("UPPER(s) || 'x'", False),
        ("s LIKE 'a%'", False),
        ("d > '2024-01-01'", False),
        ("i = f", False),
        ("i IN (1, 2)", False),
        ("ROUND(f, 2)", False),
        ("FLOOR(f)", True),
        ("CASE WHEN b THEN i / 2 END", False),
        ("CASE WHEN i <> 0 THEN 1 / i END", True),
        ("COALESCE(s, 'none')", False),
    ],
)
def test_types_tell_whether_an_expression_may_fail(expression: str, fails: bool) -> None:
    query = parse_sql(f"SELECT {expression} AS e, i AS other FROM t", [T])
    (found,) = (
        c for t, c in zip(query.atoms[0].terms, query.atoms[0].columns, strict=True) if t == query.head[0].source
    )
    assert fails == can_fail(found, T)


WIDE = table("T", COLUMNS)


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), st.sampled_from(ANYTHING), ROWS)
def test_what_cannot_fail_never_does(data: st.DataObject, kind: str, rows: list[dict[str, object]]) -> None:
    expression = data.draw(expressions(kind))
    if can_fail(expression, WIDE):
        return
    for row in rows:
        try:
            in_type(evaluate(expression, row), type_of(expression, WIDE), expression)
        except ExpressionError as error:
            raise AssertionError(f"{expression} was said never to fail: {error}") from error
