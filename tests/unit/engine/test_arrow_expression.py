from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.arrow_expression import evaluate_columns
from ivme.engine.arrow_functions import KERNELS
from ivme.engine.arrow_types import arrow_schema, arrow_type
from ivme.errors import DataError
from ivme.query import sql_values
from ivme.query.expression import FUNCTIONS, Call, ColumnRef, Expression, Literal, evaluate
from ivme.query.inference import type_of
from ivme.query.model import table
from ivme.query.types import Type

COLUMNS = {
    "i": "int",
    "j": "int",
    "f": "float",
    "g": "float",
    "n": "decimal(10, 2)",
    "m": "decimal(25, 4)",
    "s": "string",
    "t": "string",
    "b": "bool",
    "c": "bool",
    "d": "date",
    "z": "timestamp",
    "x": "binary",
}
TABLE = table("v", COLUMNS)

INTS = st.one_of(st.integers(-3, 3), st.integers(-(2**63) + 1, 2**63 - 1))
FLOATS = st.one_of(st.sampled_from([0.0, 1.0, -2.5, 0.125, 2.5, 1e300]), st.floats(allow_nan=False))
NARROW = st.decimals(-(10**6), 10**6, places=2, allow_nan=False)
WIDE = st.decimals(-(10**19), 10**19, places=4, allow_nan=False)
TEXTS = st.one_of(
    st.sampled_from(["", "a", "ab", "aB ", " b", "a\nb", "ß", "12", "2024-02-29", "a%b", "a_b", "true", "x\\"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
DATES = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
MOMENTS = st.datetimes().map(lambda moment: moment.replace(fold=0))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": INTS,
    "j": INTS,
    "f": FLOATS,
    "g": FLOATS,
    "n": NARROW,
    "m": WIDE,
    "s": TEXTS,
    "t": TEXTS,
    "b": st.booleans(),
    "c": st.booleans(),
    "d": DATES,
    "z": MOMENTS,
    "x": st.binary(max_size=3),
}
LITERALS: dict[str, st.SearchStrategy[Any]] = {
    "int": INTS,
    "float": FLOATS,
    "decimal": NARROW,
    "string": TEXTS,
    "bool": st.booleans(),
    "date": DATES,
    "timestamp": MOMENTS,
    "binary": st.binary(max_size=3),
}
KINDS: dict[str, list[str]] = {
    kind: [name for name, declared in COLUMNS.items() if declared.startswith(kind)] for kind in LITERALS
}


@st.composite
def expressions(draw: Any, kind: str, depth: int = 3) -> Expression:
    """An expression of a kind that SQL accepts; what it computes may still be in error."""
    if depth == 0 or (depth < 3 and draw(st.booleans())):
        if draw(st.integers(0, 4)) == 0:
            return Literal(draw(st.one_of(LITERALS[kind], LITERALS[kind], st.none())))
        return ColumnRef(draw(st.sampled_from(KINDS[kind])))

    def sub(*kinds: str) -> Expression:
        return draw(expressions(draw(st.sampled_from(kinds)), depth - 1))

    def call(function: str, *arguments: Expression) -> Expression:
        return Call(function, arguments)

    shape = draw(st.integers(0, 12))
    if shape == 0:
        branches = [part for _ in range(draw(st.integers(1, 2))) for part in (sub("bool"), sub(*mixes(kind)))]
        return call("case", *branches, *([sub(*mixes(kind))] if draw(st.booleans()) else []))
    if shape == 1:
        return call("coalesce", *(sub(*mixes(kind)) for _ in range(draw(st.integers(1, 3)))))
    if shape == 2:
        return call("nullif", sub(kind), sub(kind))
    return draw(st.sampled_from(FORMS[kind]))(sub, call, draw)


def mixes(kind: str) -> tuple[str, ...]:
    return {"decimal": ("decimal", "int"), "float": ("float", "float", "int"), "timestamp": ("timestamp", "date")}.get(
        kind, (kind,)
    )


NUMBERS = ("int", "float", "decimal")
ANYTHING = tuple(LITERALS)
OPERATORS = st.sampled_from(["add", "subtract", "multiply"])
COMPARISONS = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq"])
PATTERNS = st.one_of(TEXTS, st.text("ab%_\\.", max_size=4)).map(Literal)
PLACES = st.integers(-3, 4).map(Literal)
DAYS = st.one_of(DATES.map(str), st.sampled_from(["2024-02-29", "2024", "nonsense"])).map(Literal)
DECIMALS = st.sampled_from([(5, 0), (12, 2), (30, 10)])


def same_kind(sub: Any, draw: Any, number: int) -> list[Expression]:
    group = draw(st.sampled_from([NUMBERS, ("string",), ("date", "timestamp"), ("bool",), ("binary",)]))
    return [sub(*group) for _ in range(number)]


FORMS: dict[str, list[Any]] = {
    "int": [
        lambda sub, call, draw: call(draw(OPERATORS), sub("int"), sub("int")),
        lambda sub, call, _: call("modulo", sub("int"), sub("int")),
        lambda sub, call, draw: call(draw(st.sampled_from(["negate", "abs"])), sub("int")),
        lambda sub, call, draw: call(draw(st.sampled_from(["floor", "ceil"])), sub("int", "float")),
        lambda sub, call, draw: call("round", sub("int"), *([draw(PLACES)] if draw(st.booleans()) else [])),
        lambda sub, call, _: call("length", sub("string", "binary")),
        lambda sub, call, draw: call(draw(st.sampled_from(["year", "month", "day"])), sub("date", "timestamp")),
        lambda sub, call, _: call("cast_int", sub(*NUMBERS, "bool", "string")),
    ],
    "float": [
        lambda sub, call, draw: call(draw(OPERATORS), sub("float"), sub(*NUMBERS)),
        lambda sub, call, draw: call(draw(st.sampled_from(["divide", "modulo"])), sub(*NUMBERS), sub("float")),
        lambda sub, call, _: call("divide", sub("int"), sub("int")),
        lambda sub, call, draw: call(draw(st.sampled_from(["negate", "abs"])), sub("float")),
        lambda sub, call, draw: call("round", sub("float"), draw(PLACES)),
        lambda sub, call, _: call("cast_float", sub(*NUMBERS, "bool", "string")),
    ],
    "decimal": [
        lambda sub, call, draw: call(draw(OPERATORS), sub("decimal"), sub("decimal", "int")),
        lambda sub, call, draw: call(draw(OPERATORS), sub("int"), sub("decimal")),
        lambda sub, call, draw: call(
            draw(st.sampled_from(["divide", "modulo"])), sub("decimal"), sub("decimal", "int")
        ),
        lambda sub, call, draw: call(draw(st.sampled_from(["negate", "abs", "floor", "ceil"])), sub("decimal")),
        lambda sub, call, draw: call("round", sub("decimal"), draw(PLACES)),
        lambda sub, call, draw: call("cast_decimal", sub(*NUMBERS, "string", "bool"), *map(Literal, draw(DECIMALS))),
    ],
    "string": [
        lambda sub, call, draw: call(draw(st.sampled_from(["lower", "upper", "trim"])), sub("string")),
        lambda sub, call, draw: call("substring", sub("string"), *draw(st.lists(PLACES, min_size=1, max_size=2))),
        lambda sub, call, _: call("concat", sub("string"), sub("string"), sub(*ANYTHING)),
        lambda sub, call, _: call("concat", sub("string"), sub("string")),
        lambda sub, call, _: call("cast_string", sub(*ANYTHING)),
    ],
    "bool": [
        lambda sub, call, draw: call(draw(st.sampled_from(["and", "or"])), sub("bool"), sub("bool"), sub("bool")),
        lambda sub, call, _: call("not", sub("bool")),
        lambda sub, call, draw: call(draw(COMPARISONS), *same_kind(sub, draw, 2)),
        lambda sub, call, draw: call(draw(COMPARISONS), sub("date", "timestamp"), draw(DAYS)),
        lambda sub, call, draw: call("in", *same_kind(sub, draw, 3)),
        lambda sub, call, _: call("is_null", sub(*ANYTHING)),
        lambda sub, call, draw: call("like", sub("string"), draw(PATTERNS)),
        lambda sub, call, _: call("like", sub("string"), sub("string"), Literal("!")),
        lambda sub, call, _: call("cast_bool", sub("int", "float", "bool", "string")),
    ],
    "date": [lambda sub, call, _: call("cast_date", sub("date", "timestamp", "string"))],
    "timestamp": [lambda sub, call, _: call("cast_timestamp", sub("date", "timestamp", "string"))],
    "binary": [lambda sub, call, _: call("nullif", sub("binary"), sub("binary"))],
}

ROWS = st.lists(st.fixed_dictionaries({k: st.one_of(v, v, st.none()) for k, v in VALUES.items()}), max_size=6)


def expected(expression: Expression, rows: list[dict[str, Any]], type_: Type | None) -> list[Any] | None:
    """The values as `evaluate` gives them, in the expression's type; None if some row is in error."""
    try:
        return [in_type(evaluate(expression, row), type_) for row in rows]
    except (DataError, OverflowError):
        return None


def in_type(value: Any, type_: Type | None) -> Any:
    if value is None or type_ is None:
        return value
    if type_.kind == "decimal":
        return sql_values.to_decimal(value, type_.precision or 0, type_.scale or 0)
    return float(value) if type_.kind == "float" else value


def as_shown(values: list[Any]) -> list[str]:
    """Values told apart by type and sign of zero, except that a date may stand for its midnight."""
    return [
        repr(
            abs(v)
            if isinstance(v, Decimal) and not v
            else sql_values.to_timestamp(v)
            if isinstance(v, datetime.date)
            else v
        )
        for v in values
    ]


@settings(max_examples=400, deadline=None)
@given(st.data(), st.sampled_from(ANYTHING), ROWS)
def test_columns_are_evaluated_as_rows_are(data: Any, kind: str, rows: list[dict[str, Any]]) -> None:
    expression = data.draw(expressions(kind))
    columns = pa.Table.from_pylist(rows, schema=arrow_schema(TABLE))
    type_ = type_of(expression, TABLE)
    wanted = expected(expression, columns.to_pylist(), type_)
    if wanted is None:
        with pytest.raises(DataError):
            evaluate_columns(expression, columns)
        return
    found = evaluate_columns(expression, columns)
    assert found.type == (pa.null() if type_ is None else arrow_type(type_))
    assert as_shown(found.to_pylist()) == as_shown(wanted)


def case_of_division() -> Expression:
    j = ColumnRef("j")
    return Call("case", (Call("ne", (j, Literal(0))), Call("divide", (ColumnRef("i"), j)), Literal(-1.0)))


def test_a_case_guards_a_division() -> None:
    data = pa.table({"i": [1, 2, None, 3], "j": [2, 0, 4, None]})
    assert evaluate_columns(case_of_division(), data).to_pylist() == [0.5, -1.0, None, -1.0]


def test_a_conjunct_is_not_evaluated_where_an_earlier_one_is_false() -> None:
    data = pa.table({"i": [1, 2], "j": [2, 0]})
    guarded = Call("gt", (Call("divide", (ColumnRef("i"), ColumnRef("j"))), Literal(0.25)))
    nonzero = Call("ne", (ColumnRef("j"), Literal(0)))
    assert evaluate_columns(Call("and", (nonzero, guarded)), data).to_pylist() == [True, False]
    assert evaluate_columns(Call("or", (Call("not", (nonzero,)), guarded)), data).to_pylist() == [True, True]
    with pytest.raises(DataError, match=r"cannot compute i / j: division by zero"):
        evaluate_columns(Call("and", (guarded, nonzero)), data)


def test_an_overflow_names_the_expression() -> None:
    data = pa.table({"i": [2**62, 2**62]})
    with pytest.raises(DataError, match=r"cannot compute i \+ i: the integer does not fit 64 bits"):
        evaluate_columns(Call("add", (ColumnRef("i"), ColumnRef("i"))), data)


def test_a_constant_in_error_harms_no_empty_table() -> None:
    broken = Call("divide", (Literal(1), Literal(0)))
    assert evaluate_columns(broken, pa.table({"i": pa.array([], pa.int64())})).type == pa.float64()
    with pytest.raises(DataError, match="division by zero"):
        evaluate_columns(broken, pa.table({"i": [1]}))


def test_columns_are_found_whatever_their_case_and_chunks() -> None:
    column = pa.chunked_array([[1, 2], [], [3]], pa.int64())
    assert evaluate_columns(Call("negate", (ColumnRef("N"),)), pa.table({"n": column})).to_pylist() == [-1, -2, -3]
    assert evaluate_columns(ColumnRef("N"), pa.table({"n": column})).to_pylist() == [1, 2, 3]
    with pytest.raises(DataError, match="the row has no column 'm'"):
        evaluate_columns(ColumnRef("m"), pa.table({"n": column}))


@pytest.mark.parametrize("number", [1, 40])
def test_a_quotient_of_decimals_is_rounded_half_up_to_its_digits(number: int) -> None:
    data = pa.table({"n": pa.array([Decimal("2.00")] * number, pa.decimal128(4, 2))})
    found = evaluate_columns(Call("divide", (ColumnRef("n"), Literal(3))), data)
    assert found.type == pa.decimal128(8, 6)
    assert found.to_pylist() == [Decimal("0.666667")] * number


def test_the_functions_with_kernels_are_those_that_need_all_arguments() -> None:
    assert set(KERNELS) == {name for name, function in FUNCTIONS.items() if not function.lazy}
