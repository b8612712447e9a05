"""The table of functions agrees with what runs them."""

from __future__ import annotations

import pytest

from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.expression.columns import KernelColumns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.errors import QueryError
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.functions import FUNCTIONS, Function, listed
from ivme.query.inference import type_of
from ivme.query.model import table
from ivme.query.sql import parse_sql

T = table("T", {"int": "int", "string": "string", "bool": "bool", "date": "date", "decimal": "decimal(10, 2)"})
ARGUMENTS: dict[str, tuple[Expression, ...]] = {
    **dict.fromkeys(("and", "or"), (ColumnRef("bool"), ColumnRef("bool"))),
    "not": (ColumnRef("bool"),),
    "case": (ColumnRef("bool"), ColumnRef("int")),
    "like": (ColumnRef("string"), Literal("a%")),
    "substring": (ColumnRef("string"), Literal(2)),
    "concat": (ColumnRef("string"), Literal("!")),
    "order_key": (Literal("a"), ColumnRef("string")),
    "cast_string": (ColumnRef("string"),),
    "cast_decimal": (ColumnRef("int"), Literal(10), Literal(2)),
}
"""Arguments of functions that do not take one column as often as they like."""


def call(name: str, function: Function) -> Call:
    kind = function.takes[0] if function.takes else "int"
    return Call(name, ARGUMENTS.get(name, (ColumnRef(kind),) * function.minimum))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_runs_where_the_table_says(name: str) -> None:
    expression = call(name, FUNCTIONS[name])
    columns = KernelColumns(T, [FeedColumn(expression, "known")], native_domains())
    assert not columns._foreign
    assert (FUNCTIONS[name].runs == "by code") == bool(columns._tables)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_the_type_that_the_table_says(name: str) -> None:
    found, said = type_of(call(name, FUNCTIONS[name]), T), FUNCTIONS[name].type
    assert found is not None
    assert said is None or said == found


@pytest.mark.parametrize(("name", "function"), [(n, f) for n, f in FUNCTIONS.items() if f.takes])
def test_an_argument_that_the_table_does_not_take_is_refused(name: str, function: Function) -> None:
    wrong = next(kind for kind in ("date", "int", "bool", "string") if kind not in function.takes)
    written = str(Call(name, (ColumnRef(wrong), *call(name, function).arguments[1:])))
    with pytest.raises(QueryError):
        parse_sql(f"SELECT {written} AS x FROM T", [T])


def test_every_function_that_sql_has_is_listed() -> None:
    assert sum(bool(function.sql) for function in FUNCTIONS.values()) == len(listed().splitlines()) - 2
