"""What functions mean in other systems, they mean in their translation; or they are refused by name.

The expected values are those of PostgreSQL 15 and DuckDB, which were run; of the others, which were not, they are what
those systems are known to give.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import ivme

_COLUMNS = {
    "id": "int", "a": "int", "n": "int", "s": "string", "f": "float", "m": "decimal(8, 2)", "d": "date",
    "ts": "timestamp",
}  # fmt: skip
_ROWS = [
    (1, 100, 2, "abcabc", 2.5, Decimal("2.50"), date(2026, 11, 15), datetime(2026, 11, 15, 10, 20, 30)),  # a Sunday
    (2, -7, None, "Äb", 3.5, Decimal("0.45"), date(2021, 1, 3), datetime(2021, 1, 3, 23, 59, 59)),
    (3, 8, -3, "", -0.5, None, date(2024, 12, 30), datetime(2024, 12, 30)),
]


@pytest.fixture(scope="module")
def db() -> ivme.Database:
    made = ivme.Database()
    made.create_table("t", _COLUMNS, not_null=["s"])
    made.insert("t", _ROWS)
    return made


MEANINGS: list[tuple[str, str, Any]] = [
    ("postgres", "array_agg(s ORDER BY id DESC)", ("", "Äb", "abcabc")),
    ("postgres", "array_agg(n ORDER BY id DESC) FILTER (WHERE n IS NOT NULL)", (-3, 2)),
    ("postgres", "array_agg(n) FILTER (WHERE n IS NOT NULL AND n > 5)", None),
    ("duckdb", "list(s ORDER BY id DESC)", ("", "Äb", "abcabc")),
    ("bigquery", "array_agg(n IGNORE NULLS ORDER BY id DESC)", (-3, 2)),
    ("snowflake", "array_agg(n) WITHIN GROUP (ORDER BY id DESC)", (-3, 2)),
    ("trino", "array_agg(s ORDER BY id DESC)", ("", "Äb", "abcabc")),
    ("databricks", "array_agg(s)", ("", "abcabc", "Äb")),
    ("postgres", "string_agg(s, '-' ORDER BY id DESC)", "-Äb-abcabc"),
    ("bigquery", "string_agg(s ORDER BY id DESC)", ",Äb,abcabc"),
    ("mysql", "group_concat(s ORDER BY id DESC SEPARATOR ';')", ";Äb;abcabc"),
    ("snowflake", "listagg(s, '-') WITHIN GROUP (ORDER BY id DESC)", "-Äb-abcabc"),
    ("oracle", "listagg(s, '-') WITHIN GROUP (ORDER BY id DESC)", "-Äb-abcabc"),
    ("tsql", "string_agg(s, '-') WITHIN GROUP (ORDER BY id DESC)", "-Äb-abcabc"),
    ("postgres", "percentile_disc(0.5) WITHIN GROUP (ORDER BY a)", 8),
    ("postgres", "percentile_cont(0.25) WITHIN GROUP (ORDER BY a)", 0.5),
    ("postgres", "percentile_cont(0.25) WITHIN GROUP (ORDER BY a DESC)", 54.0),
    ("duckdb", "quantile_cont(a, 0.25)", 0.5),
    ("duckdb", "max_by(n, a) FILTER (WHERE n IS NOT NULL)", 2),
    ("postgres", "max(log(a + 0.0))", 2.0),
    ("duckdb", "max(log(abs(a)))", 2.0),
    ("snowflake", "max(log(10, abs(a)))", 2.0),
    ("bigquery", "max(log(abs(a), 10))", 2.0),
    ("postgres", "max(extract(dow FROM ts))", 1),
    ("postgres", "max(date_part('isodow', ts))", 7),
    ("duckdb", "max(weekday(d))", 1),
    ("snowflake", "max(dayofweek(d))", 1),
    ("bigquery", "max(extract(DAYOFWEEK FROM d))", 2),
    ("postgres", "min(extract(epoch FROM ts))", 1609718399.0),
    ("duckdb", "max(extract(second FROM ts))", 59),
    ("snowflake", "max(dateadd(month, 1, ts))", datetime(2026, 12, 15, 10, 20, 30)),
    ("snowflake", "max(dateadd(month, 1, d))", date(2026, 12, 15)),
    ("snowflake", "max(dateadd(hour, n, d))", datetime(2026, 11, 15, 2)),
    ("trino", "max(date_add('week', 1, ts))", datetime(2026, 11, 22, 10, 20, 30)),
    ("bigquery", "max(date_sub(d, INTERVAL 1 MONTH))", date(2026, 10, 15)),
    ("mysql", "max(date_add(ts, INTERVAL 1 DAY))", datetime(2026, 11, 16, 10, 20, 30)),
    ("duckdb", "max(date_diff('month', d, DATE '2026-12-01'))", 71),
    ("duckdb", "max(date_diff('hour', ts, TIMESTAMP '2026-11-15 11:00:00'))", 51396),
    ("tsql", "max(datediff(year, d, '2027-01-01'))", 6),
    ("trino", "max(date_diff('month', d, DATE '2026-12-01'))", 70),
    ("mysql", "max(datediff(ts, d))", 0),
    ("snowflake", "max(date_trunc('hour', ts))", datetime(2026, 11, 15, 10)),
    ("bigquery", "max(date_trunc(d, MONTH))", date(2026, 11, 1)),
    ("mysql", "max(dayname(d))", "Sunday"),
    ("postgres", "max(to_char(ts, 'YYYY-MM-DD HH24:MI'))", "2026-11-15 10:20"),
    ("postgres", "max(round(f))", 4.0),
    ("postgres", "min(round(f + 3))", 2.0),  # 2.5
    ("duckdb", "max(round(f - 1))", 3.0),  # 2.5
    ("postgres", "max(round(f * 2 - 2.5))", 4.0),  # 4.5
    ("postgres", "max(round(2.5))", Decimal(3)),
    ("postgres", "max(round(m, 1))", Decimal("2.5")),
    ("postgres", "max(greatest(n, 1))", 2),
    ("snowflake", "sum(greatest(n, 1))", 3),
    ("postgres", "sum(greatest(n, 1))", 4),
    ("postgres", "max(substring(s, n + 0))", "bcabc"),
    ("postgres", "min(substring(s, -2))", ""),
    ("postgres", "max(substring(s, -2))", "Äb"),
    ("postgres", "max(s::varchar(1))", "Ä"),
    ("duckdb", "max(s::varchar(1))", "Äb"),
    ("duckdb", "max(a::decimal)", Decimal("100.000")),
    ("postgres", "max(div(a, 7))", 14),
    ("postgres", r"max(regexp_replace(s, '(b)', '[\1]$', 'g'))", "Ä[b]$"),
    ("postgres", "max(to_hex(a + 155))", "ff"),
    ("duckdb", r"count_if(s LIKE 'a\bc%')", 0),
    ("postgres", "bool_or(a = ANY(ARRAY[7, 8]))", True),
    ("duckdb", "count_if(a > 5) FILTER (WHERE a > 1000)", None),
    ("duckdb", "count_if(n > 0)", 1),
    ("snowflake", "count_if(a > 1000)", 0),
    ("postgres", "max(sign(a) || 'x')", "1x"),
    ("duckdb", "string_agg(sign(a), ';' ORDER BY id)", "1;-1;1"),
    ("postgres", "max((d + INTERVAL '1 day')::text)", "2026-11-16 00:00:00"),
    ("snowflake", "max((d + INTERVAL '1 day')::text)", "2026-11-16"),
    ("postgres", "max(concat_ws('-', d + INTERVAL '2 hours' + INTERVAL '1 day', s))", "2026-11-16 02:00:00-abcabc"),
    ("duckdb", "max(substring(s, 1, n))", "ab"),
    ("duckdb", "max(substring(s, 2, length(s)))", "bcabc"),
]


@pytest.mark.parametrize(("dialect", "expression", "expected"), MEANINGS, ids=lambda each: str(each)[:60])
def test_an_expression_means_what_it_means_in_its_system(
    db: ivme.Database, dialect: str, expression: str, expected: Any
) -> None:
    where = " WHERE a > 0" if "to_hex" in expression or "log(a" in expression else ""
    found = db.create_view("v", f"SELECT {expression} AS x FROM t{where}", dialect=dialect, replace=True).scalar()
    assert expected == found


@pytest.mark.parametrize(
    ("dialect", "expression", "message"),
    [
        ("postgres", "array_agg(n ORDER BY id)", "ARRAY_AGG keeps NULLs in postgres and leaves them out in Spark"),
        ("bigquery", "array_agg(s ORDER BY id LIMIT 2)", "LIMIT in .* is not supported"),
        ("postgres", "regexp_replace(s, 'b', 'x')", "replaces the first match in postgres, and Spark all of them"),
        ("duckdb", "regexp_replace(s, 'B', 'x', 'gi')", "the flags of .* have no translation"),
        ("postgres", "left(s, n)", "leaves out that many in postgres if the number is negative"),
        ("duckdb", "substring(s, 0, 2)", "has another meaning in duckdb than in Spark"),
        ("snowflake", "substr(s, n)", "has another meaning in snowflake than in Spark if n is below 1"),
        ("postgres", "f::text", "writes a float as postgres does"),
        ("postgres", "s::char(5)", "is filled up with blanks in postgres"),
        ("postgres", "f::numeric", "keeps other digits in postgres than in Spark"),
        ("postgres", "ts::time", "is a time of day"),
        ("postgres", "to_char(ts, 'HH:MI')", "the pattern of .* has no translation from postgres"),
        ("duckdb", "s LIKE s", "a backslash in a pattern of LIKE is one in duckdb"),
        ("sqlite", "s LIKE 'A%'", "ignores case in sqlite"),
        ("bigquery", "extract(week FROM d)", "is not translated from bigquery"),
        ("bigquery", "date_trunc(d, WEEK)", "is not translated from bigquery"),
        ("mysql", "length(s)", "is not translated from mysql"),
        ("duckdb", "levenshtein(s, 'x')", "is not translated from duckdb"),
        ("duckdb", "max_by(n, a)", "steps over rows whose first argument is NULL in duckdb"),
        ("duckdb", "median(m)", "has the digits of its argument in duckdb"),
        ("clickhouse", "round(f)", "may round a half to the even number in clickhouse"),
        ("tsql", "avg(a)", "of integers is an integer in tsql"),
        ("oracle", "s || 'x'", "takes NULL for an empty text in oracle"),
        ("snowflake", "regexp_like(s, 'b')", "is not translated from snowflake"),
        ("snowflake", "dateadd(month, 1, s)", "depends on types that are not known here"),
        ("oracle", "add_months(d, 1)", "is not translated from oracle"),
        ("exasol", "greatest(a, n)", "is not translated from exasol"),
        ("presto", "log(2, a)", "is not translated from presto"),
        ("postgres", "f || 'x'", "writes a float as postgres does"),
        ("duckdb", "concat_ws('-', f / 2, s)", "writes a float as duckdb does"),
        ("duckdb", "string_agg(f, ',')", "writes a float as duckdb does"),
        ("postgres", "concat_ws('-', a > 1, s)", "writes a bool as t or f"),
        ("postgres", "date_trunc('month', d)::text", "writes a timestamp in postgres"),
        ("duckdb", "substring(s, 3, n)", "has another meaning in duckdb than in Spark if n is below 0"),
        ("postgres", "factorial(a)", "is not translated from postgres"),
    ],
)
def test_what_means_something_else_is_refused_by_name(
    db: ivme.Database, dialect: str, expression: str, message: str
) -> None:
    with pytest.raises(ivme.IvmeError, match=message) as caught:
        db.create_view("v", f"SELECT {expression} AS x FROM t", dialect=dialect, replace=True)
    assert "Instead: " in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "log(abs(a))", "log(2, abs(a))", "ln(n * 0)", "log10(abs(a))", "round(f)", "round(m, 1)", "dayofweek(d)",
        "isodow(d)", "dayname(d)", "monthname(ts)", "date_part('isoyear', d)", "epoch(ts)", "date_part('week', d)",
        "date_diff('quarter', d, DATE '2026-12-01')", "date_diff('minute', ts, TIMESTAMP '2026-11-16 01:00:00')",
        "substring(s, -2)", "s LIKE '%b'", "greatest(a, n, 3)", "trunc(f)", "mod(a, 3)", "a // 3", "hex(a)",
        "strftime(ts, '%d %b %Y %I:%M %p')", "date_trunc('week', ts)", "split_part(s, 'b', 2)", "upper(s)",
    ],
)  # fmt: skip
def test_an_expression_has_the_values_of_duckdb(db: ivme.Database, expression: str) -> None:
    query = f"SELECT {expression} AS x FROM t ORDER BY id"
    found = [row[0] for row in db.create_view("v", query, dialect="duckdb", replace=True)]
    with duckdb.connect() as duck:
        duck.execute(
            "CREATE TABLE t (id INT, a BIGINT, n BIGINT, s TEXT, f DOUBLE, m DECIMAL(8, 2), d DATE, ts TIMESTAMP)"
        )
        duck.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _ROWS)
        expected = [row[0] for row in duck.execute(query).fetchall()]
    assert [pytest.approx(each) if isinstance(each, float) else each for each in expected] == found


def test_an_array_of_other_rows_is_as_there_whatever_its_order(db: ivme.Database) -> None:
    query = "SELECT array_agg(s ORDER BY id) AS x FROM t WHERE a > 1000"
    assert db.create_view("v", query, dialect="postgres", replace=True).scalar() is None
    assert () == db.create_view("v", query, dialect="snowflake", replace=True).scalar()


def test_a_column_of_an_outer_join_may_be_null_although_its_table_promises_otherwise(db: ivme.Database) -> None:
    query = "SELECT array_agg(u.s) AS x FROM (SELECT id AS k FROM t) v LEFT JOIN t u ON u.id = v.k"
    with pytest.raises(ivme.IvmeError, match="may be NULL"):
        db.create_view("v", query, dialect="postgres", replace=True)


def test_hex_in_small_letters_is_small() -> None:
    db = ivme.Database()
    db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (255)")
    assert [("ff", "FF")] == list(db.sql("SELECT LOWER(HEX(a)), HEX(a) FROM t").rows())
