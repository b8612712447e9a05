"""The kernel's expressions, `evaluate` row by row, and Arrow: the same columns, and failures for the same rows.

In batches and row by row, in every form that a feed wants, behind guards. Faults that are planted must be found; each
names the kind of expressions among which it is.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.expression import by_code, columns, comparisons, graph, numbers
from ivme.engine.expression.arrow_expression import evaluate_columns
from ivme.engine.expression.columns import KernelColumns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.rows import RowColumns
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.errors import DataError, ExpressionError, SchemaError
from ivme.query.can_fail import can_fail
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.functions import FUNCTIONS
from ivme.query.inference import type_of
from tests.example_counts import examples, some_of
from tests.random_expressions import ANYTHING, COLUMNS, ROWS, TABLE, expressions, table_calls

GUARDS = st.one_of(st.none(), expressions("bool"))


def forms(expression: Expression, guard: Expression | None) -> list[FeedColumn]:
    """An expression in every form that its type has."""
    type_ = type_of(expression, TABLE)
    kind = "null" if type_ is None else type_.kind
    wanted = ["known", *(["code"] if type_ else []), *({"bool": ["test"], "decimal": ["low", "high"]}.get(kind, []))]
    guard = guard if isinstance(expression, Call) else None
    return [FeedColumn(expression, form, None if form == "test" else guard) for form in wanted]


def outcome(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except DataError as error:
        return type(error)


def check(expression: Expression, guard: Expression | None, rows: list[dict[str, Any]]) -> None:
    try:
        wanted = forms(expression, guard)
    except SchemaError:
        return
    domains = native_domains()
    data = pa.Table.from_pylist(rows, schema=arrow_schema(TABLE))
    changed = RowBatch(Layout(TABLE, domains), np.ones(len(rows), np.int64), data)
    kernel, by_row = KernelColumns(TABLE, wanted, domains), RowColumns(TABLE, wanted, domains)
    expected = outcome(lambda: [column.tolist() for column in by_row.of(changed)])
    assert expected == outcome(lambda: [column.tolist() for column in kernel.of(changed)])
    if expected is ExpressionError and guard is None:
        assert can_fail(expression, TABLE)
    again = RowBatch(Layout(TABLE, domains), changed.weights, None, list(changed.codes()))
    assert expected == outcome(lambda: [column.tolist() for column in kernel.of(again)])
    if isinstance(expected, list):
        for number, codes in enumerate(zip(*(column.tolist() for column in changed.codes()), strict=True)):
            assert (*codes, *(column[number] for column in expected)) == kernel.row(codes)
    if guard is None and isinstance(expected, list) and wanted[-1].form == "code":
        domain = domains.domain(type_of(expression, TABLE))  # type: ignore[arg-type]
        assert expected[-1] == domain.encode(evaluate_columns(expression, changed.data)).tolist()


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(ANYTHING), ROWS)
def test_the_kernel_computes_what_rows_and_arrow_do(data: Any, kind: str, rows: list[dict[str, Any]]) -> None:
    check(data.draw(expressions(kind)), data.draw(GUARDS), rows)


@pytest.mark.parametrize("function", ["cast_int", "cast_float", "cast_decimal", "cast_string", "cast_date"])
def test_a_date_that_is_chosen_among_timestamps_is_cast_as_its_midnight(function: str) -> None:
    chosen = Call("greatest", (ColumnRef("z"), ColumnRef("d")))
    row = dict.fromkeys(COLUMNS) | {"z": datetime.datetime(1999, 1, 1), "d": datetime.date(2000, 1, 1)}
    check(Call(function, (chosen, *map(Literal, (20, 0) if function == "cast_decimal" else ()))), None, [row, row])


ALIKE = [name for name, function in FUNCTIONS.items() if function.takes and "decimal" not in function.gives]


@pytest.mark.parametrize("name", ALIKE)
@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), ROWS)
def test_every_function_is_computed_alike_by_row_and_by_column(
    name: str, data: Any, rows: list[dict[str, Any]]
) -> None:
    check(data.draw(table_calls(name)), None, rows)


def _without_masks(_self: Any, _operation: str, mask: Any, _truth: Any) -> Any:
    return mask


def _without_scale(_self: Any, value: Any, scale: int, _mask: Any) -> Any:
    return replace(value, scale=scale)


def _never_null(self: Any, kind: str) -> Any:
    return {"w": self.word, "d": self.wide, "r": self.real}[kind](0)


def _no_doubt(self: Any, codes: tuple[int, ...]) -> tuple[int, int]:
    return _one(self, codes)[0], by_code.KNOWN


def _fill_with_nothing(self: Any) -> None:
    codes = self.table.requested()
    self.table.fill(codes, np.zeros(len(codes), np.int64), np.ones(len(codes), np.uint8))
    self.table.withdraw()


def _truncate(self: Any, value: Any, scale: int, _how: str) -> Any:
    return _lowered(self, value, scale, "truncate")


def _always_true(self: Any, value: Any) -> Any:
    return numbers.Value(self._graph.word(1), value.type)


_one, _lowered = by_code.Elsewhere._one, numbers.Numbers.lowered

FAULTS: dict[str, tuple[str, type, str, Callable[..., Any]]] = {
    "guards are ignored": ("float", graph.Graph, "narrowed", _without_masks),
    "decimals are not brought to one scale": ("decimal", numbers.Numbers, "raised", _without_scale),
    "decimals are cut off": ("decimal", numbers.Numbers, "lowered", _truncate),
    "NULL is zero": ("int", graph.Graph, "null", _never_null),
    "doubtful rows are left as they are": ("int", columns.KernelColumns, "_settle", lambda *_: None),
    "a failure by code is NULL": ("date", by_code.Elsewhere, "_one", _no_doubt),
    "what is remembered by code is wrong": ("string", by_code.CodeMemo, "fill", _fill_with_nothing),
    "every number is true": ("bool", comparisons.Comparisons, "truth", _always_true),
}


@pytest.mark.parametrize("fault", some_of(FAULTS, "NULL is zero", "what is remembered by code is wrong"))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, owner, name, wrong = FAULTS[fault]
    monkeypatch.setattr(owner, name, wrong)

    @settings(
        max_examples=3000,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data(), ROWS)
    def search(data: Any, rows: list[dict[str, Any]]) -> None:
        check(data.draw(expressions(kind)), data.draw(GUARDS), rows)

    with pytest.raises((AssertionError, ValueError, TypeError)):
        search()
