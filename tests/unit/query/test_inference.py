from __future__ import annotations

from decimal import Decimal

import pytest

from ivme.errors import SchemaError
from ivme.query.expression import Call, Expression, Literal
from ivme.query.functions import FUNCTIONS
from ivme.query.inference import common_type, head_types, type_of, variable_types
from ivme.query.model import Atom, Query, column_refs, plain_head, table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from ivme.query.types import parse_type

VALUES = table(
    "v",
    {
        "i": "int",
        "f": "float",
        "n": "decimal(10, 2)",
        "w": "decimal(38, 10)",
        "s": "string",
        "b": "bool",
        "d": "date",
        "z": "timestamp",
        "x": "binary",
    },
)


def expression(text: str) -> Expression:
    (computed,) = parse_sql(f"SELECT {text} AS x FROM v", [VALUES]).atoms[0].columns
    return computed


TYPES = {
    **dict.fromkeys(("i + i", "-i", "i % 2", "ABS(i)", "ROUND(i)", "FLOOR(f)", "CEIL(i)", "LENGTH(s)"), "int"),
    **dict.fromkeys(("YEAR(d)", "CAST(s AS BIGINT)", "COALESCE(i, 1)", "NULLIF(i, 2)", "LENGTH(x)", "i + NULL"), "int"),
    **dict.fromkeys(
        ("i / i", "i + f", "f * n", "ROUND(f, 1)", "n / f", "f % 2", "CASE WHEN b THEN n ELSE f END"), "float"
    ),
    **dict.fromkeys(("CAST(s AS DOUBLE)", "COALESCE(i, f)"), "float"),
    **dict.fromkeys(("i = 1", "b AND i > 1", "s LIKE 'a%'", "i IN (1, 2)", "i IS NULL", "CAST(s AS BOOLEAN)"), "bool"),
    **dict.fromkeys(("LOWER(s)", "s || i", "SUBSTRING(s, 1, 2)", "CAST(d AS STRING)", "TRIM(s)"), "string"),
    "CAST(s AS DATE)": "date",
    "CAST(d AS TIMESTAMP)": "timestamp",
    "COALESCE(d, z)": "timestamp",
    "x": "binary",
    "n + n": "decimal(11,2)",
    "n - n": "decimal(11,2)",
    "PMOD(n, 3)": "decimal(3,2)",
    "BROUND(n, 1)": "decimal(10,1)",
    "GREATEST(n, 1.25, NULL)": "decimal(10,2)",
    "LEAST(i, f)": "float",
    "GREATEST(d, z)": "timestamp",
    "EXTRACT(SECOND FROM z)": "decimal(8,6)",
    "TRY_CAST(s AS DECIMAL(7, 3))": "decimal(7,3)",
    "d + INTERVAL '1' DAY": "date",
    "d + INTERVAL '1' HOUR": "timestamp",
    "DATE_TRUNC('month', d)": "timestamp",
    "n + 1": "decimal(11,2)",
    "n + i": "decimal(23,2)",
    "n * n": "decimal(21,4)",
    "n * 1.5": "decimal(13,3)",
    "n / 3": "decimal(14,6)",
    "n % 3": "decimal(3,2)",
    "-n": "decimal(10,2)",
    "ROUND(n, 1)": "decimal(10,1)",
    "ROUND(n)": "decimal(9,0)",
    "CEIL(n, 1)": "decimal(10,1)",
    "FLOOR(n, 5)": "decimal(11,2)",
    "CEIL(f, 2)": "decimal(18,2)",
    "FLOOR(i, -1)": "decimal(21,0)",
    "CAST(NULL AS ARRAY<INT>)": "array<int>",
    "ROUND(n, 5)": "decimal(10,2)",
    "ROUND(n, -2)": "decimal(9,0)",
    "FLOOR(n)": "decimal(9,0)",
    "CAST(f AS DECIMAL(7, 3))": "decimal(7,3)",
    "w + w": "decimal(38,9)",
    "w * w": "decimal(38,6)",
    "w / w": "decimal(38,6)",
    "n * 0.05": "decimal(13,4)",
    "COALESCE(n, i)": "decimal(22,2)",
    "CASE WHEN b THEN 1 ELSE 2.5 END": "decimal(2,1)",
    "CASE WHEN b THEN NULL ELSE n END": "decimal(10,2)",
    "COALESCE(w, 1.25)": "decimal(38,10)",
}


@pytest.mark.parametrize(("text", "expected"), TYPES.items())
def test_an_expression_has_the_type_that_spark_gives_it(text: str, expected: str) -> None:
    assert str(type_of(expression(text), VALUES)) == expected


def test_every_function_whose_type_depends_on_its_arguments_has_a_case() -> None:
    functions = {call.function for call in map(expression, TYPES) if isinstance(call, Call)}
    assert {name for name, function in FUNCTIONS.items() if function.type is None} - functions == set()


def test_null_and_undeclared_columns_have_no_type() -> None:
    assert type_of(Literal(None), VALUES) is None
    assert type_of(Call("add", (Literal(None), Literal(None))), VALUES) is None
    assert type_of(column_refs(["a"])[0], table("U", ["a"])) is None


def test_parts_without_a_common_type_are_refused() -> None:
    with pytest.raises(SchemaError, match="has values of type int and string; CAST one of them"):
        type_of(Call("coalesce", (Literal(1), Literal("x"))), VALUES)
    with pytest.raises(SchemaError, match="computes with a value of type string"):
        type_of(Call("add", (Literal(1), Literal("x"))), VALUES)
    with pytest.raises(SchemaError, match="more than 38 digits"):
        type_of(Literal(Decimal("1E+40")), VALUES)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int", "int", "int"),
        ("int", "float", "float"),
        ("int", "decimal(10,2)", "decimal(22,2)"),
        ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
        ("date", "timestamp", "timestamp"),
        ("decimal(10,2)", "float", "float"),
    ],
)
def test_columns_are_compared_in_one_type(left: str, right: str, expected: str) -> None:
    for pair in ((left, right), (right, left)):
        assert str(common_type([parse_type(pair[0]), None, parse_type(pair[1])])) == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [("int", "string"), ("bool", "int"), ("decimal(38,0)", "decimal(38,30)")],
)
def test_columns_without_a_common_type_do_not_join(left: str, right: str) -> None:
    with pytest.raises(SchemaError) as caught:
        common_type([parse_type(left), parse_type(right)])
    assert left in str(caught.value)
    assert right in str(caught.value)


def test_nothing_has_no_common_type() -> None:
    assert common_type([]) is common_type([None]) is None


def test_a_variable_has_the_common_type_of_its_columns() -> None:
    tables = [table("R", {"a": "int", "b": "int"}), table("S", {"b": "decimal(4, 1)", "c": "date"})]
    query = parse_rule("Q(A, B, C) = R(A, B), S(B, C)", tables)
    assert {name: str(type_) for name, type_ in variable_types(query).items()} == {
        "A": "int",
        "B": "decimal(21,1)",
        "C": "date",
    }
    assert list(map(str, head_types(query))) == ["int", "decimal(21,1)", "date"]


def test_a_join_without_a_common_type_names_the_variable() -> None:
    tables = [table("R", {"a": "int"}), table("S", {"a": "string"})]
    with pytest.raises(SchemaError, match="variable A of Q: int and string do not join"):
        variable_types(parse_rule("Q(A) = R(A), S(A)", tables))


def test_both_ends_of_a_closure_have_one_type() -> None:
    def closure(source: str, target: str) -> Query:
        edge = table("edge", {"src": source, "dst": target})
        atom = Atom("edge", ("X", "Y"), column_refs(["src", "dst"]), closure=True)
        return Query("Q", ("X", "Y"), (), (atom,), (edge,), plain_head(["X", "Y"]))

    assert set(map(str, head_types(closure("int", "decimal(10, 2)")))) == {"decimal(22,2)"}
    with pytest.raises(SchemaError, match="floats do not hold every integer"):
        head_types(closure("int", "float"))


def test_a_column_without_a_type_is_refused() -> None:
    with pytest.raises(SchemaError, match="column b of table R has no type; declare one"):
        variable_types(parse_rule("Q(A) = R(A, B)", [table("R", ["b", "c"])]))


def test_aggregates_have_the_types_of_sums() -> None:
    query = parse_sql(
        "SELECT s, COUNT(*) AS c, COUNT(i) AS ci, SUM(i) AS si, SUM(f) AS sf, SUM(n) AS sn, AVG(i) AS ai, AVG(n) AS an,"
        " MIN(d) AS md, MAX(s) AS ms, SUM(n * 2) AS s2 FROM v GROUP BY s",
        [VALUES],
    )
    assert dict(zip((column.name for column in query.head), map(str, head_types(query)), strict=True)) == {
        "s": "string",
        "c": "int",
        "ci": "int",
        "si": "int",
        "sf": "float",
        "sn": "decimal(38,2)",
        "ai": "float",
        "an": "decimal(38,6)",
        "md": "date",
        "ms": "string",
        "s2": "decimal(38,2)",
    }


def test_a_sum_of_text_is_refused() -> None:
    with pytest.raises(SchemaError, match="CAST it to a number"):
        head_types(parse_rule("Q(SUM(A)) = R(A)", [table("R", {"a": "string"})]))
