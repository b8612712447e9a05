"""The table of functions agrees with what runs them."""

from __future__ import annotations

import datetime
from typing import Any

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
from ivme.query.table_expression import Parameters, parse_condition

T = table(
    "T",
    {
        **{kind: kind for kind in ("int", "float", "string", "bool", "date", "timestamp", "binary")},
        "decimal": "decimal(10, 2)",
    },
)
CONSTANTS: dict[str, Any] = {"string": "a", "int": 2, "date": datetime.date(2024, 1, 1)}
ARGUMENTS: dict[str, tuple[Expression, ...]] = {
    "case": (ColumnRef("bool"), ColumnRef("int")),
    "concat": (ColumnRef("string"), Literal("!")),
    "order_key": (Literal("a"), ColumnRef("string")),
    "cast_string": (ColumnRef("string"),),
    **dict.fromkeys(("cast_decimal", "try_cast_decimal"), (ColumnRef("int"), Literal(10), Literal(2))),
    **dict.fromkeys(("timestampadd", "timestampdiff"), (Literal("DAY"), ColumnRef("int"), ColumnRef("timestamp"))),
    "timestampdiff": (Literal("DAY"), ColumnRef("date"), ColumnRef("timestamp")),
    "date_trunc": (Literal("MONTH"), ColumnRef("timestamp")),
    "trunc": (ColumnRef("date"), Literal("MONTH")),
    "regexp_extract": (ColumnRef("string"), Literal("(a)"), Literal(1)),
    "date_format": (ColumnRef("date"), Literal("yyyy")),
    **dict.fromkeys(("floor_to", "ceil_to"), (ColumnRef("decimal"), Literal(1))),
    "cast_nested": (ColumnRef("int"), Literal("array<int>")),
    **dict.fromkeys(("to_date", "to_timestamp"), (ColumnRef("string"), Literal("yyyy-MM-dd"))),
}
"""Arguments of functions that need more than a column of the kind that each place takes."""


def call(name: str, function: Function) -> Call:
    """A call over a column, with constants behind it where the function is of text."""
    if name in ARGUMENTS:
        return Call(name, ARGUMENTS[name])
    kinds = [(function.kinds(place) or function.takes or ("int",))[0] for place in range(function.minimum)]
    rest = [Literal(CONSTANTS[kind]) if function.runs == "by code" else ColumnRef(kind) for kind in kinds[1:]]
    return Call(name, (ColumnRef(kinds[0]), *rest))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_runs_where_the_table_says(name: str) -> None:
    expression = call(name, FUNCTIONS[name])
    columns = KernelColumns(T, [FeedColumn(expression, "known")], native_domains())
    assert (FUNCTIONS[name].runs == "by row") == bool(columns._foreign)
    assert (FUNCTIONS[name].runs == "by code") == bool(columns._tables)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_the_type_that_the_table_says(name: str) -> None:
    found, said = type_of(call(name, FUNCTIONS[name]), T), FUNCTIONS[name].type
    assert found is not None
    assert said is None or said == found


WRONG = [
    (name, function, place)
    for name, function in FUNCTIONS.items()
    for place in range(function.minimum)
    if function.kinds(place) and name not in ("timestampadd", "timestampdiff", "date_trunc")
]


@pytest.mark.parametrize(("name", "function", "place"), WRONG)
def test_an_argument_that_the_table_does_not_take_is_refused(name: str, function: Function, place: int) -> None:
    wrong = next(kind for kind in ("binary", "bool") if kind not in function.kinds(place))
    arguments = list(call(name, function).arguments)
    if "cast_" in name and place:
        return
    arguments[place] = ColumnRef(wrong)
    with pytest.raises(QueryError):
        parse_sql(f"SELECT {Call(name, tuple(arguments))} AS x FROM T", [T])


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.sql])
def test_a_call_is_read_as_it_is_shown(name: str) -> None:
    made = call(name, FUNCTIONS[name])
    shown = parse_condition(f"({made}) IS NULL", T, Parameters({}))
    assert isinstance(shown, Call)
    assert str(made) == str(shown.arguments[0])


def test_every_function_that_sql_has_is_listed() -> None:
    assert sum(bool(function.sql) for function in FUNCTIONS.values()) == len(listed().splitlines()) - 2
