"""The aggregates that tests run, with DuckDB's text for the same, and the comparison of their values."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from tests.empty_duckdb import empty_duckdb, insert_rows

Row = tuple[Any, ...]

SCHEMA = {"g": "int", "b": "bool", "i": "int", "f": "float", "d": "decimal(6, 2)", "s": "string", "day": "date"}
_DUCKDB = "g BIGINT, b BOOLEAN, i BIGINT, f DOUBLE, d DECIMAL(6, 2), s VARCHAR, day DATE"

_SAME = (
    "BOOL_AND(t.b)",
    "BOOL_OR(t.b)",
    "BIT_AND(t.i)",
    "BIT_OR(t.i)",
    "BIT_XOR(t.i)",
    "VAR_POP(t.i)",
    "VAR_POP(t.d)",
    "STDDEV_POP(t.f)",
    *(
        f"{name}({arguments})"
        for name in ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT")
        for arguments in ("t.i, t.f", "t.f, t.d")
    ),
    *(f"{name}(t.f, t.i)" for name in ("REGR_AVGX", "REGR_AVGY", "REGR_SXX", "REGR_SYY", "REGR_SXY")),
    "MEDIAN(t.i)",
    "MEDIAN(t.f)",
    "SUM(DISTINCT t.i)",
    "SUM(DISTINCT t.d)",
    "AVG(DISTINCT t.f)",
    "VAR_SAMP(DISTINCT t.i)",
    "STDDEV_POP(DISTINCT t.f)",
    "MIN(DISTINCT t.s)",
    "BIT_AND(DISTINCT t.i)",
)


def _array(values: str, order: str) -> str:
    """ARRAY_AGG as Spark has it: without NULLs, and empty where no value is left."""
    column = values.removeprefix("DISTINCT ")
    return f"COALESCE(LIST({values} ORDER BY {order}) FILTER (WHERE {column} IS NOT NULL), [])"


def _by(end: str, value: str, order: str) -> dict[str, str]:
    """MAX_BY or MIN_BY; of equal rows the one with the greatest or least value, NULL being the least."""
    key = f"ROW(t.{order}, t.{value} IS NOT NULL, t.{value})"
    duck = f"(ARG_{end}_NULL({{'x': t.{value}}}, {key}) FILTER (WHERE t.{order} IS NOT NULL)).x"
    return {f"{end}_BY(t.{value}, t.{order})": duck}


CALLS: dict[str, str] = {
    **{text: text for text in _SAME},
    "COUNT_IF(t.b)": "COUNT(*) FILTER (WHERE t.b)",
    "COUNT_IF(t.i > 3)": "COUNT(*) FILTER (WHERE t.i > 3)",
    "COUNT_IF(DISTINCT t.b)": "COUNT(DISTINCT t.b) FILTER (WHERE t.b)",
    "COUNT(DISTINCT t.i, t.s)": "COUNT(DISTINCT (t.i, t.s)) FILTER (WHERE t.i IS NOT NULL AND t.s IS NOT NULL)",
    "COUNT(t.i, t.s)": "COUNT(*) FILTER (WHERE t.i IS NOT NULL AND t.s IS NOT NULL)",
    "EVERY(t.i > 0)": "BOOL_AND(t.i > 0)",
    "SOME(t.i > 5)": "BOOL_OR(t.i > 5)",
    "ANY(t.b)": "BOOL_OR(t.b)",
    "ANY_VALUE(t.s)": "MIN(t.s)",
    "APPROX_COUNT_DISTINCT(t.s)": "COUNT(DISTINCT t.s)",
    "MEAN(t.f)": "AVG(t.f)",
    "STD(t.i)": "STDDEV(t.i)",
    **_by("MAX", "s", "i"),
    **_by("MIN", "s", "i"),
    **_by("MAX", "f", "day"),
    **_by("MIN", "d", "s"),
    **_by("MAX", "day", "f"),
    **_by("MAX", "b", "d"),
    "MEDIAN(t.d)": "MEDIAN(CAST(t.d AS DOUBLE))",
    "PERCENTILE(t.i, 0.3)": "QUANTILE_CONT(t.i, 0.3)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY t.f)": "QUANTILE_CONT(t.f, 0.25)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY t.i DESC)": "QUANTILE_CONT(t.i, 0.75)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY t.i)": "QUANTILE_DISC(t.i, 0.5)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY t.d)": "QUANTILE_DISC(t.d, 0.5)",
    "STRING_AGG(t.s, ', ')": "STRING_AGG(t.s, ', ' ORDER BY t.s)",
    "STRING_AGG(t.s)": "STRING_AGG(t.s, '' ORDER BY t.s)",
    "GROUP_CONCAT(t.s)": "STRING_AGG(t.s, ',' ORDER BY t.s)",
    "STRING_AGG(t.i, ';')": "STRING_AGG(CAST(t.i AS VARCHAR), ';' ORDER BY CAST(t.i AS VARCHAR))",
    "STRING_AGG(DISTINCT t.s, ',')": "STRING_AGG(DISTINCT t.s, ',' ORDER BY t.s)",
    "LISTAGG(t.s, ',') WITHIN GROUP (ORDER BY t.i DESC)": "STRING_AGG(t.s, ',' ORDER BY t.i DESC NULLS LAST, t.s)",
    "LISTAGG(t.s, ',') WITHIN GROUP (ORDER BY t.s DESC)": "STRING_AGG(t.s, ',' ORDER BY t.s DESC)",
    "STRING_AGG(t.s, '' ORDER BY t.f, t.d DESC)": (
        "STRING_AGG(t.s, '' ORDER BY t.f NULLS FIRST, t.d DESC NULLS LAST, t.s)"
    ),
    "STRING_AGG(t.s, '' ORDER BY t.d NULLS LAST, t.day DESC)": (
        "STRING_AGG(t.s, '' ORDER BY t.d NULLS LAST, t.day DESC NULLS LAST, t.s)"
    ),
    "ARRAY_AGG(t.i)": _array("t.i", "t.i"),
    "COLLECT_LIST(t.s)": _array("t.s", "t.s"),
    "COLLECT_SET(t.d)": _array("DISTINCT t.d", "t.d"),
    "ARRAY_AGG(DISTINCT t.day)": _array("DISTINCT t.day", "t.day"),
    "ARRAY_AGG(t.f ORDER BY t.i DESC, t.s)": _array("t.f", "t.i DESC NULLS LAST, t.s NULLS FIRST, t.f"),
    "ARRAY_AGG(t.d ORDER BY t.b NULLS LAST)": _array("t.d", "t.b NULLS LAST, t.d"),
    "ARRAY_AGG(t.b ORDER BY t.day)": _array("t.b", "t.day NULLS FIRST, t.b"),
    "MODE(t.i)": "LIST_SORT(LIST(t.i))",
    "MODE() WITHIN GROUP (ORDER BY t.s DESC)": "LIST_REVERSE_SORT(LIST(t.s))",
}
"""Aggregates as ivme has them, and as DuckDB has the same. DuckDB's MODE breaks ties anyhow: it gives all values."""


def some_rows(choose: random.Random, count: int) -> list[Row]:
    """Random rows: few values, many NULLs and duplicates."""

    def perhaps(value: Any) -> Any:
        return None if choose.random() < 0.2 else value

    return [
        (
            choose.randrange(3),
            perhaps(choose.random() < 0.6),
            perhaps(choose.randrange(-2, 9)),
            perhaps(choose.choice([-1.5, 0.25, 2.0, 1e9, 1e9 + 1])),
            perhaps(Decimal(choose.randrange(-300, 300)) / 100),
            perhaps(choose.choice(["", "a", "ab", "b", "ü", "a\0b"])),
            perhaps(_day(choose.randrange(4))),
        )
        for _ in range(count)
    ]


def _day(number: int) -> Any:
    return datetime.date(2026, 1, 1) + datetime.timedelta(days=number)


def expected(query: str, tables: dict[str, tuple[str, Sequence[Row]]]) -> list[Row]:
    """The rows of a query by DuckDB, over tables with their columns."""
    with empty_duckdb() as connection:
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            insert_rows(connection, name, rows)
        return connection.execute(query).fetchall()


def t_rows(rows: Sequence[Row]) -> tuple[str, Sequence[Row]]:
    return _DUCKDB, rows


def assert_same(call: str, wanted: Any, found: Any) -> None:
    """Compares a value with DuckDB's, which rounds floats on its way, and has NaN where Spark has NULL."""
    if call.startswith("MODE"):
        wanted = max(wanted, key=wanted.count) if (wanted := [v for v in wanted or [] if v is not None]) else None
    if isinstance(wanted, float) and math.isnan(wanted):
        wanted = None
    if isinstance(wanted, int | float | Decimal) and not isinstance(wanted, bool) and found is not None:
        assert float(wanted) == pytest.approx(float(found), rel=1e-5, abs=1e-5), call
    else:
        assert (tuple(wanted) if isinstance(wanted, list) else wanted) == found, call
