from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from ivme.errors import DataError, SchemaError
from ivme.query.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    columns_of,
    conjunction,
    evaluate,
    is_predicate,
)
from ivme.query.functions import FUNCTIONS
from ivme.query.model import table
from ivme.query.sql import parse_sql

COLUMNS = {"i": "int", "j": "int", "f": "float", "n": "decimal(10, 2)", "s": "string", "t": "string", "b": "bool"} | {
    "d": "date",
    "z": "timestamp",
}
VALUES = table("v", COLUMNS)


def expression(text: str) -> Expression:
    """The expression as parse_sql translates it, by selecting it."""
    (computed,) = parse_sql(f"SELECT {text} AS x FROM v", [VALUES]).atoms[0].columns
    return computed


def value(text: str, **row: Any) -> Any:
    """The value of an expression that reads no column, or those given."""
    return evaluate(expression(f"CASE WHEN i IS NULL THEN {text} END"), dict.fromkeys(COLUMNS) | row)


EXPRESSIONS = [
    *("i + j", "i - j", "i * j", "-i", "i % 3", "abs(i)", "i + f", "n + i", "n * n", "f * n", "i / 2", "f / 4"),
    *("i = j", "i <> j", "i < j", "i <= j", "i > j", "i >= j", "i = f", "n = i", "n < f", "s = t", "s < t", "b = TRUE"),
    *("b AND i > 0", "b OR i > 0", "NOT b", "b AND s = 'x'", "b OR s = 'x'", "NOT (b AND i = j)"),
    *("i IS NULL", "s IS NOT NULL", "i IN (1, 2)", "i IN (1, NULL)", "i NOT IN (1, NULL)", "s IN (t, 'ab')"),
    *("i BETWEEN j AND 3", "i NOT BETWEEN 0 AND 1", "i IS NOT DISTINCT FROM j", "i IS DISTINCT FROM j"),
    *("s LIKE 'a%'", "s LIKE '_b'", "s NOT LIKE '%B'", "s LIKE t", "s LIKE 'a!%' ESCAPE '!'"),
    *("CASE WHEN i > 0 THEN s WHEN i < 0 THEN t ELSE 'none' END", "CASE i WHEN 1 THEN 'one' WHEN j THEN 'j' END"),
    *("CASE WHEN j <> 0 THEN i * 1.5 / 3 END", "COALESCE(i, j, 7)", "NULLIF(i, j)", "IF(i > j, i, j)"),
    *("LOWER(s)", "UPPER(s)", "LENGTH(s)", "SUBSTRING(s, 2)", "SUBSTRING(s, 1, 1)", "SUBSTRING(s, -1, 1)", "s || t"),
    *("TRIM(s)", "YEAR(d)", "MONTH(d)", "DAY(d)", "EXTRACT(YEAR FROM z)", "YEAR(z)"),
    *("ROUND(f)", "ROUND(f, 1)", "ROUND(n, 1)", "ROUND(n)", "FLOOR(f)", "CEIL(f)", "FLOOR(n)", "CEIL(n)"),
    *("CAST(i AS STRING)", "CAST(i AS DOUBLE)", "CAST(b AS BIGINT)", "CAST(i AS BOOLEAN)", "CAST(i AS DECIMAL(6, 2))"),
    *(
        "CAST(n AS DECIMAL(6, 1))",
        "CAST(f AS DECIMAL(6, 1))",
        "CAST(n AS STRING)",
        "CAST(z AS DATE)",
        "CAST(d AS STRING)",
    ),
    *("CAST(d AS TIMESTAMP)", "CAST(z AS STRING)", "CAST(CAST(i AS STRING) AS BIGINT)", "CAST(b AS STRING)"),
    *("d = DATE '2024-02-29'", "d < '2024-03-01'", "z >= TIMESTAMP '2024-02-29 12:30:00'", "z > d", "d = z"),
]
SAMPLES: dict[str, list[Any]] = {
    "i": [None, -7, 0, 1, 2],
    "j": [None, 0, 2],
    "f": [None, -2.5, 0.1, 3.0],
    "n": [None, Decimal("-1.25"), Decimal("2.00")],
    "s": [None, "", "ab", "a%", " B "],
    "t": [None, "ab", "B"],
    "b": [None, True, False],
    "d": [None, datetime.date(2024, 2, 29), datetime.date(1999, 12, 31)],
    "z": [None, datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(2024, 2, 29, 0, 0, 0, 250000)],
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE v (i BIGINT, j BIGINT, f DOUBLE, n DECIMAL(10, 2), s VARCHAR, t VARCHAR, b BOOLEAN, d DATE, "
            "z TIMESTAMP)"
        )
        yield connection


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_has_the_value_that_duckdb_gives_it(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    computed = expression(text)
    mentioned = sorted(set(columns_of(computed)))
    rows = [
        dict.fromkeys(COLUMNS) | dict(zip(mentioned, values, strict=True))
        for values in itertools.product(*(SAMPLES[column] for column in mentioned))
    ]
    connection.execute("DELETE FROM v")
    connection.executemany("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [list(row.values()) for row in rows])
    expected = [row[0] for row in connection.execute(f"SELECT {text} FROM v").fetchall()]

    actual = [evaluate(computed, row) for row in rows]

    assert list(map(plain, expected)) == list(map(plain, actual))


def plain(value: Any) -> Any:
    """The value, numbers to 9 digits: DuckDB types the results of decimals as doubles."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return round(float(value), 9) if is_number else value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i / j", "i / j fails: division by zero; guard it with NULLIF or CASE"),
        ("i % j", "i % j fails: division by zero; guard it with NULLIF or CASE"),
        ("i + 9223372036854775807", "i + 9223372036854775807 fails: the integer does not fit 64 bits"),
        ("i * 9223372036854775807 * 2", "the integer does not fit 64 bits; CAST to a decimal"),
        ("CAST(s AS BIGINT)", "CAST(s AS BIGINT) fails: 'x1' is not an integer"),
        ("CAST(s AS DOUBLE)", "CAST(s AS DOUBLE) fails: could not convert"),
        ("CAST(s AS DATE)", "'x1' is not a date; write YYYY-MM-DD"),
        ("CAST(s AS TIMESTAMP)", "'x1' is not a timestamp; write YYYY-MM-DD HH:MM:SS"),
        ("CAST(s AS BOOLEAN)", "'x1' is not a boolean"),
        ("CAST(s AS DECIMAL(4, 2))", "'x1' is not a decimal number"),
        ("CAST(i AS DECIMAL(2, 2))", "2 does not fit decimal(2,2)"),
        ("CAST(f AS BIGINT)", "cannot convert float infinity to integer"),
    ],
)
def test_what_cannot_be_computed_names_the_expression(text: str, expected: str) -> None:
    with pytest.raises(DataError) as raised:
        evaluate(expression(text), {"i": 2, "j": 0, "s": "x1", "f": float("inf")})
    assert expected in str(raised.value)
    assert " fails: " in str(raised.value)


def test_a_case_evaluates_only_the_branch_that_it_takes() -> None:
    guarded = expression("CASE WHEN j = 0 THEN -1 ELSE i / j END")
    assert [evaluate(guarded, {"i": 6, "j": j}) for j in (0, 4)] == [-1, 1.5]


def test_and_stops_at_the_first_false_argument() -> None:
    guarded = expression("j <> 0 AND i / j > 1")
    assert [evaluate(guarded, {"i": 6, "j": j}) for j in (0, 4, None)] == [False, True, None]


def test_values_of_kinds_that_do_not_compare_are_an_error() -> None:
    with pytest.raises(DataError, match="cannot compare 'x' with 1; CAST one of them"):
        evaluate(Call("eq", (ColumnRef("a"), Literal(1))), {"a": "x"})
    with pytest.raises(DataError, match="cannot compare True with 1"):
        evaluate(Call("lt", (ColumnRef("a"), Literal(1))), {"a": True})


def test_a_number_is_no_truth_value() -> None:
    with pytest.raises(DataError, match="a is 3, not a truth value"):
        evaluate(Call("not", (ColumnRef("a"),)), {"a": 3})


def test_nan_equals_itself_and_is_the_largest_number() -> None:
    nan, inf = float("nan"), float("inf")
    comparisons = [("eq", nan, nan), ("gt", nan, inf), ("lt", nan, 1.0), ("ne", 1.0, nan)]
    assert [evaluate(Call(name, (Literal(a), Literal(b))), {}) for name, a, b in comparisons] == [
        True,
        True,
        False,
        True,
    ]


def test_rounding_is_half_away_from_zero_in_the_digits_that_print() -> None:
    assert [value(f"ROUND({number}, 2)") for number in ("1.005d", "-1.005d", "2.345", "7")] == [
        1.01,
        -1.01,
        Decimal("2.35"),
        7,
    ]
    assert value("ROUND(1250, -2)") == 1300


def test_the_remainder_has_the_sign_of_the_dividend() -> None:
    assert [value(text) for text in ("-7 % 3", "7 % -3", "-7.5d % 2", "-7.5 % 2")] == [-1, 1, -1.5, Decimal("-1.5")]


def test_decimals_keep_38_digits() -> None:
    long = Decimal("12345678901234567890123456789012345678")
    results = [
        evaluate(expression(text), {"n": long}) for text in ("n - 1", "n + 1", "-n", "ABS(-n)", "n * 1", "n / 1")
    ]
    assert list(map(str, results)) == [
        "12345678901234567890123456789012345677",
        "12345678901234567890123456789012345679",
        "-12345678901234567890123456789012345678",
        *[str(long)] * 3,
    ]


def test_substrings_count_as_spark_does() -> None:
    starts = [(0, 2), (-5, 4), (9, 1), (2, -1), (-2, 9)]
    assert [value(f"SUBSTRING('abc', {start}, {size})") for start, size in starts] == ["ab", "ab", "", "", "bc"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(12345678.5d AS STRING)", "1.23456785E7"),
        ("CAST(0.00012d AS STRING)", "1.2E-4"),
        ("CAST(-1e7 AS STRING)", "-1.0E7"),
        ("CAST(100.0d AS STRING)", "100.0"),
        ("CAST(TIMESTAMP '2024-01-02 03:04:05.120' AS STRING)", "2024-01-02 03:04:05.12"),
        ("CAST(' 42 ' AS BIGINT)", 42),
        ("CAST('2024-3-1' AS DATE)", datetime.date(2024, 3, 1)),
        ("CAST('YES' AS BOOLEAN)", True),
        ("CAST(2.5 AS DECIMAL(3, 0))", Decimal("3")),
        ("CAST(9.99 AS DECIMAL(3, 2))", Decimal("9.99")),
    ],
)
def test_casts_of_literals_follow_spark(text: str, expected: Any) -> None:
    assert value(text) == expected


def test_concat_is_null_if_a_part_is() -> None:
    joined = expression("CONCAT(s, 1, TRUE)")
    assert [evaluate(joined, {"s": text}) for text in ("a", None)] == ["a1true", None]


def test_literals_are_typed_as_in_spark() -> None:
    literals = {"1": 1, "1.50": Decimal("1.50"), "1e3": 1000.0, "3L": 3, "-2": -2, "TRUE": True, "'it''s'": "it's"} | {
        "9223372036854775808": Decimal(2**63),
        "-9223372036854775808": -(2**63),
        "'a' 'b'": "ab",
    }
    for text, expected in literals.items():
        found = value(text)
        assert (type(found), found) == (type(expected), expected)


def test_literals_of_different_types_differ() -> None:
    literals = [Literal(1), Literal(1.0), Literal(True), Literal(Decimal(1)), Literal("1"), Literal(None)]
    assert len(set(literals)) == len(literals)
    assert Literal(1) == Literal(1)
    assert Literal(1) != 1


@pytest.mark.parametrize(
    "text",
    [
        "i * (1 - n)",
        "(i > 1) AND (s LIKE 'a%') AND (NOT b)",
        "CASE WHEN i > 1 THEN s ELSE 'x' END",
        "CAST(i AS DECIMAL(6, 2))",
        "i IN (1, 2, NULL)",
        "lower(s) || t",
        "(d = DATE '2024-02-29') OR (d IS NULL)",
        "-(i + 1)",
        "s LIKE 'a!%' ESCAPE '!'",
        "z < TIMESTAMP '2024-02-29 12:30:00'",
    ],
)
def test_expressions_print_as_sql_that_reads_back(text: str) -> None:
    printed = str(expression(text))
    assert printed == text
    assert expression(printed) == expression(text)


def test_a_call_is_checked_when_it_is_made() -> None:
    with pytest.raises(SchemaError, match="unknown function 'guess'"):
        Call("guess", (Literal(1),))
    with pytest.raises(SchemaError, match="eq does not take 1 arguments"):
        Call("eq", (Literal(1),))


def test_a_missing_column_is_a_data_error() -> None:
    with pytest.raises(DataError, match="the row has no column 'a'"):
        evaluate(ColumnRef("a"), {})


def test_predicates_are_known_as_such() -> None:
    truths = [expression(text) for text in ("i = 1", "b AND i = 1", "i + 1", "COALESCE(b, TRUE)")]
    assert [is_predicate(truth) for truth in (*truths, Literal(True), Literal(3), ColumnRef("b"))] == [
        *(True, True, False, None),
        *(True, False, None),
    ]


def test_a_conjunction_of_one_is_that_one() -> None:
    one = Call("is_null", (ColumnRef("a"),))
    assert [conjunction([]), conjunction([one]), conjunction([one, one])] == [None, one, Call("and", (one, one))]


def test_every_strict_function_is_null_on_null() -> None:
    for name, function in FUNCTIONS.items():
        if function.nulls == "strict":
            assert evaluate(Call(name, (Literal(None),) * max(function.minimum, 1)), {}) is None


def test_a_long_sum_is_written_in_time_linear_in_its_terms() -> None:
    total: Expression = ColumnRef("x")
    for _ in range(100):
        total = Call("add", (total, ColumnRef("x")))
    assert str(total).count("x") == 101
