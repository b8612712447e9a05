"""Columns computed from codes are those that Arrow computes, on every batch."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.codes.domains import Domains
from ivme.engine.expression.code_expression import code_number, code_test
from ivme.engine.ingest.feed import Feed, FeedColumn
from ivme.engine.ingest.row_batch import Changed, Inputs, Layout, _arrow_column, _column
from ivme.errors import DataError
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.model import table

T = table("T", {"i": "int", "j": "int", "p": "decimal(15, 2)", "d": "decimal(4, 3)", "t": "date", "s": "string"})
N, J, P, D, DAY, S = (ColumnRef(column.name) for column in T.columns)
NEW_YEAR = Literal(datetime.date(1995, 1, 1))

TESTS: list[Expression] = [
    *(Call(function, (N, Literal(3))) for function in ("eq", "ne", "lt", "le", "gt", "ge")),
    Call("lt", (Literal(3), N)),
    Call("ge", (P, Literal(2))),
    Call("ne", (P, Literal(Decimal("0.5")))),
    Call("and", (Call("ge", (DAY, NEW_YEAR)), Call("lt", (N, Literal(0))))),
    Call("or", (Call("le", (DAY, NEW_YEAR)), Call("eq", (S, Literal("x"))), Call("ne", (S, Literal("y"))))),
]
NUMBERS: list[Expression] = [
    Call("multiply", (P, Call("subtract", (Literal(1), D)))),
    Call("add", (Call("multiply", (N, J)), Literal(7))),
    Call("subtract", (P, D)),
    Call("multiply", (P, N)),
    Call("add", (P, Literal(Decimal("0.125")))),
    Call("subtract", (N, J)),
]

small = st.none() | st.integers(-9, 9)
ROWS = st.lists(
    st.tuples(
        small | st.sampled_from([2**62, -(2**63) + 1, 3_037_000_500]),
        small | st.just(3_037_000_500),
        st.none() | st.decimals(-5, 5, places=2) | st.just(Decimal("9999999999999.99")),
        st.none() | st.decimals(-1, 1, places=3),
        st.none() | st.dates(datetime.date(1994, 12, 30), datetime.date(1995, 1, 3)),
        st.none() | st.sampled_from("xyz"),
    ),
    max_size=6,
)


def changed(rows: list[tuple[object, ...]], domains: Domains) -> Changed:
    schema = arrow_schema(T)
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return Changed(Layout(T, domains), np.ones(len(rows), np.int64), pa.Table.from_arrays(arrays, schema=schema))


@pytest.mark.parametrize("expression", TESTS, ids=str)
@settings(deadline=None, max_examples=40)
@given(rows=ROWS)
def test_a_predicate_over_codes_holds_where_arrow_says(expression: Expression, rows: list[tuple[object, ...]]) -> None:
    domains = Domains()
    assert code_test(expression, T, domains) is not None
    wanted = FeedColumn(expression, "test")
    given_rows = changed(rows, domains)
    mine = _column(wanted, T, domains)(given_rows, {})
    assert mine.dtype == np.int64
    assert mine.tolist() == _arrow_column(wanted, T, domains)(given_rows, {}).tolist()


@pytest.mark.parametrize("expression", NUMBERS, ids=str)
@settings(deadline=None, max_examples=40)
@given(rows=ROWS)
def test_numbers_over_codes_are_those_of_arrow(expression: Expression, rows: list[tuple[object, ...]]) -> None:
    domains = Domains()
    assert code_number(expression, T) is not None
    given_rows = changed(rows, domains)
    feed = Feed(T.column_names)
    whole = expression in (NUMBERS[1], NUMBERS[5])
    for form in ("known", "code", "int") if whole else ("known", "low", "high"):
        feed.column(expression, form)
    try:
        columns = [_arrow_column(c, T, domains)(given_rows, {}).tolist() for c in feed.columns]
    except DataError:
        with pytest.raises(DataError):
            Inputs(T, domains, [("t", feed)]).of(given_rows)
        return
    ((_, mine),) = Inputs(T, domains, [("t", feed)]).of(given_rows)
    assert [column.tolist() for column in mine] == columns


def test_what_may_not_fit_64_bits_is_left_to_arrow() -> None:
    numeric = code_number(Call("multiply", (N, J)), T)
    assert numeric is not None
    assert numeric(changed([(2**62, 2, None, None, None, None)], Domains())) is None
    fits = numeric(changed([(2**61, 2, None, None, None, None)], Domains()))
    assert fits is not None
    assert fits.values.tolist() == [2**62]


@pytest.mark.parametrize(
    "expression",
    [
        Call("lt", (S, Literal("x"))),
        Call("eq", (N, Literal(1.0))),
        Call("eq", (P, Literal(Decimal("0.001")))),
        Call("not", (Call("eq", (N, Literal(1))),)),
        Call("eq", (N, J)),
    ],
    ids=str,
)
def test_other_predicates_are_left_to_arrow(expression: Expression) -> None:
    assert code_test(expression, T, Domains()) is None
