"""Every function of the table has the values that Spark gives it, however it is written and computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.expression.columns import KernelColumns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.errors import DataError, QueryError
from ivme.query.can_fail import can_fail
from ivme.query.expression import Call, Expression, evaluate
from ivme.query.functions import FUNCTIONS
from ivme.query.inference import in_type, type_of
from ivme.query.model import Table, table
from ivme.query.table_expression import Parameters, parse_condition
from tests.functions.cases import ERROR, Case, Row, expected, is_holdable, no_zero, same
from tests.functions.every import CASES

EXPECTED = expected()
NAMES = "abcdefgh"
EVERY = [pytest.param(case, id=f"{name}-{case.sql}-{case.types}") for name, cases in CASES.items() for case in cases]
OLDER = {"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "is_null", "in", "fails"}
OLDER |= {"add", "subtract", "multiply", "divide", "negate", "abs", "floor", "ceil"}
"""Functions whose values `test_expression.py` has."""


def columns(case: Case) -> Table:
    return table("T", {**dict(zip(NAMES, case.types, strict=False)), "always": "int"})


def expression(sql: str, read: Table) -> Expression:
    tested = parse_condition(f"({sql}) IS NULL", read, Parameters({}))
    assert isinstance(tested, Call)
    return tested.arguments[0]


def value(found: Expression, read: Table, row: Row) -> Any:
    try:
        result = evaluate(found, dict(zip(NAMES, row, strict=False)))
        return in_type(result, type_of(found, read), found)
    except DataError:
        return ERROR


@pytest.mark.parametrize("case", EVERY)
def test_a_function_of_columns_has_the_value_that_spark_gives(case: Case) -> None:
    read = columns(case)
    found = expression(case.sql.format(*NAMES), read)
    for row in case.with_nulls():
        wanted = EXPECTED[case.written(row)]
        actual = value(found, read, row)
        assert wanted == actual == ERROR or same(wanted, actual, exact=case.exact), (case.written(row), wanted, actual)


@pytest.mark.parametrize("case", EVERY)
def test_a_function_of_constants_has_the_same_value_or_is_refused(case: Case) -> None:
    read = columns(case)
    for row in case.with_nulls():
        wanted = EXPECTED[case.written(row)]
        try:
            actual = value(expression(case.written(row), read), read, ())
        except QueryError:
            actual = ERROR
        assert wanted == actual == ERROR or same(wanted, actual, exact=case.exact), (case.written(row), wanted, actual)


@pytest.mark.parametrize("case", EVERY)
def test_the_kernel_computes_batches_and_rows_as_evaluate_does(case: Case) -> None:
    read = columns(case)
    found = expression(case.sql.format(*NAMES), read)
    rows = [(*row, 0) for row in case.with_nulls() if value(found, read, row) != ERROR]
    wanted = [value(found, read, row) for row in rows]
    type_ = type_of(found, read)
    assert type_ is not None
    if not all(map(is_holdable, wanted)):
        wanted, rows = (
            list(each) for each in zip(*(p for p in zip(wanted, rows, strict=True) if is_holdable(p[0])), strict=True)
        )
    for times in (1, 100):
        domains = native_domains()
        data = pa.Table.from_pylist(
            [dict(zip(read.column_names, row, strict=True)) for row in rows], arrow_schema(read)
        )
        batch = RowBatch(Layout(read, domains), np.ones(len(rows) * times, np.int64), pa.concat_tables([data] * times))
        kernel = KernelColumns(read, [FeedColumn(found, "code")], domains)
        codes = kernel.of(batch)[0]
        assert [no_zero(each) for each in wanted] * times == domains.domain(type_).decode(codes).to_pylist()
        given = list(zip(*(column.tolist() for column in batch.codes()), strict=True))
        assert codes.tolist()[: len(rows)] == [kernel.row(row)[-1] for row in given[: len(rows)]]


@pytest.mark.parametrize("case", EVERY)
def test_a_row_that_has_no_value_fails_in_the_kernel_too(case: Case) -> None:
    read = columns(case)
    found = expression(case.sql.format(*NAMES), read)
    for row in (row for row in case.with_nulls() if value(found, read, row) == ERROR):
        domains = native_domains()
        data = pa.Table.from_pylist([dict(zip(read.column_names, (*row, 0), strict=True))], arrow_schema(read))
        batch = RowBatch(Layout(read, domains), np.ones(1, np.int64), data)
        kernel = KernelColumns(read, [FeedColumn(found, "code")], domains)
        with pytest.raises(DataError):
            kernel.of(batch)
        assert can_fail(found, read)


def test_every_function_has_cases() -> None:
    assert {name for name in FUNCTIONS if name not in ("order_key", "cast_nested")} - OLDER == set(CASES)
