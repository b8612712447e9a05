"""WHERE is evaluated before SELECT, per row, and AND, OR, CASE, COALESCE and IF let the left guard the right.

`SELECT a / b ... WHERE b <> 0` once refused the row (3, 0), and with it everyone who inserts into the table.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.errors import DataError, ExpressionError, UnsupportedError
from tests.databases import BACKENDS, make_database
from tests.example_counts import some_of
from tests.sharded_databases import local_database

ROWS = [(3, 0, "x", None), (4, 2, "12", datetime.date(2026, 1, 1)), (0, 0, "7", None), (None, 5, None, None)]
SCHEMA = {"a": "int", "b": "int", "s": "string", "d": "date"}
GUARDED: list[tuple[str, list[Any]]] = [
    ("SELECT a / b AS q FROM R WHERE b <> 0", [(2.0,), (None,)]),
    ("SELECT a FROM R WHERE b <> 0 AND a / b > 1", [(4,)]),
    ("SELECT a FROM R WHERE b = 0 OR a / b > 1", [(0,), (3,), (4,)]),
    ("SELECT SUM(a / b) AS q FROM R WHERE b <> 0", [(2.0,)]),
    ("SELECT SUM(a % b) AS q, COUNT(*) AS n FROM R WHERE b > 0", [(0, 2)]),
    ("SELECT a % b AS m, COUNT(*) AS n FROM R WHERE b = 2 GROUP BY a % b", [(0, 1)]),
    ("SELECT CAST(s AS BIGINT) AS n FROM R WHERE s LIKE '1%'", [(12,)]),
    ("SELECT SUM(CAST(s AS DECIMAL(10, 2))) AS n FROM R WHERE s <> 'x'", [(Decimal("19.00"),)]),
    ("SELECT MAX(CAST(s AS BIGINT)) AS n FROM R WHERE s <> 'x'", [(12,)]),
    ("SELECT COUNT(DISTINCT CAST(s AS BIGINT)) AS n FROM R WHERE s <> 'x'", [(2,)]),
    ("SELECT a * 4611686018427387904 AS n FROM R WHERE a < 2", [(0,)]),
    ("SELECT R.a FROM R JOIN S ON R.a / R.b = S.k WHERE R.b <> 0", [(4,)]),
    ("SELECT 1 / (a - b) AS q FROM R JOIN S ON R.a = S.n WHERE a <> b", [(0.5,)]),
    ("SELECT CASE WHEN b = 0 THEN -1e0 ELSE a / b END AS q FROM R WHERE a IS NOT NULL", [(-1.0,), (-1.0,), (2.0,)]),
    ("SELECT IF(b = 0, 0e0, a / b) AS q FROM R WHERE a > 0", [(0.0,), (2.0,)]),
    ("SELECT COALESCE(d, CAST(s AS DATE)) AS q FROM R WHERE a = 4", [(datetime.date(2026, 1, 1),)]),
    ("SELECT 10 / a AS q FROM R WHERE a = b AND a = 5", []),
    ("SELECT 10 / a AS q FROM R WHERE a = b AND b > 0 AND 10 / a > 1", []),
]


def fill(db: Any) -> Any:
    db.create_table("R", SCHEMA)
    db.create_table("S", {"k": "float", "n": "int"})
    db.insert("S", [(2.0, 4)])
    return db


def sorted_rows(view: Any) -> list[Any]:
    return sorted(view, key=lambda row: [(value is None, value) for value in row])


@pytest.mark.parametrize("way", ["one by one", "few", "many", "before"])
@pytest.mark.parametrize("backend", some_of(BACKENDS, "native"))
@pytest.mark.parametrize(("query", "expected"), GUARDED)
def test_what_where_drops_is_not_computed(query: str, expected: list[Any], backend: str, way: str) -> None:
    db = fill(make_database(backend))
    if way == "before":
        db.insert("R", ROWS)
    view = db.create_view("v", query)
    if way == "one by one":
        for row in ROWS:
            db.insert("R", [row])
    elif way == "few":
        db.insert("R", ROWS)
    elif way == "many":
        db.insert("R", ROWS * 20)
        db.delete("R", ROWS * 19)
    assert sorted_rows(view) == expected
    view.verify()


@pytest.mark.parametrize(("query", "expected"), GUARDED)
def test_shards_do_not_compute_it_either(query: str, expected: list[Any], tmp_path: Path) -> None:
    db = fill(local_database(tmp_path, 2))
    db.insert("R", ROWS)
    view = db.create_view("v", query)
    assert sorted_rows(view) == expected
    db.insert("R", ROWS)
    db.delete("R", ROWS)
    assert sorted_rows(view) == expected
    view.verify()


def test_a_parameter_may_be_compared_with_a_guarded_expression(tmp_path: Path) -> None:
    for db in (fill(make_database("native")), fill(local_database(tmp_path, 2))):
        view = db.create_view("v", "SELECT a FROM R WHERE b <> 0 AND a / b = :q")
        db.insert("R", ROWS)
        assert list(view(q=2.0)) == [(4,)]
        view.verify()


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_row_that_no_view_can_take_is_refused_by_name(backend: str, rows: int) -> None:
    db = fill(make_database(backend))
    view = db.create_view("v", "SELECT ROUND(a / b, 1) AS q FROM R WHERE a > 0")
    message = r"view v: a / b fails for the row \(3, 0, 'x', None\) of table R: division by zero"
    with pytest.raises(ExpressionError, match=message):
        db.insert("R", ROWS * rows)
    assert list(view) == [] == db.contents("R")[0].to_pylist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_view_that_cannot_take_the_rows_that_are_there_is_refused_by_name(backend: str) -> None:
    db = fill(make_database(backend))
    db.insert("R", ROWS)
    with pytest.raises(ExpressionError, match=r"view v: a / b fails for the row \(3, 0, 'x', None\) of table R"):
        db.create_view("v", "SELECT a / b AS q FROM R")
    db.create_view("names", "SELECT s FROM R")
    with pytest.raises(ExpressionError, match=r"view w: .* fails for the row \('x',\) of view names"):
        db.create_view("w", "SELECT CAST(s AS BIGINT) AS n FROM names")
    assert db.views == ("names",)


@pytest.mark.parametrize("rows", [1, 40])
def test_a_sum_of_what_does_not_fit_is_refused_however_few_rows_come(rows: int) -> None:
    db = make_database("native")
    db.create_table("R", {"w": "decimal(38, 10)"})
    db.create_view("v", "SELECT SUM(w * w) AS s FROM R")
    with pytest.raises(DataError, match=r"view v: w \* w fails for the row .* does not fit decimal\(38,6\)"):
        db.insert("R", [(Decimal("12345678901234567890.5"),)] * rows)


@pytest.mark.parametrize("rows", [1, 40])
def test_a_case_of_floats_and_decimals_is_a_float_before_it_is_rounded(rows: int) -> None:
    db = make_database("native")
    db.create_table("R", {"ok": "bool", "f": "float", "w": "decimal(38, 10)"})
    view = db.create_view("v", "SELECT MIN(FLOOR(CASE WHEN ok THEN f ELSE w END)) AS n FROM R")
    db.insert("R", [(False, 2.5, Decimal("1.5")), (True, 2.5, None)] * rows)
    assert list(view) == [(1,)]
    view.verify()
    with pytest.raises(ExpressionError, match="the integer does not fit 64 bits"):
        db.insert("R", [(False, None, Decimal("12345678901234567890.5"))] * rows)


HOPELESS = [
    ("a % 0 = 1", "a % 0 fails: division by zero"),
    ("a / (1 - 1) > 1", "division by zero"),
    ("b > 1 AND a / 0.0 > 1", "division by zero"),
    ("d > '2026-13-45'", "month must be in 1..12"),
    ("d IN ('2026-01-01', 'tomorrow')", "'tomorrow' is not a date"),
    ("d = DATE '2026-02-30'", "day is out of range"),
    ("CAST(CONCAT('x', 'y') AS BIGINT) = a", "'xy' is not an integer"),
    ("s LIKE 'a!b' ESCAPE '!'", "must come before %, _ or itself"),
    ("s LIKE 'a' ESCAPE 'ab'", "ESCAPE takes one character"),
    ("NOT a", "a is of type int; NOT needs a condition"),
    ("a = 1 AND NOT b", "b is of type int; NOT needs a condition"),
    ("CASE WHEN a THEN TRUE ELSE FALSE END", "a is of type int; WHEN needs a condition"),
    ("COALESCE('a', d) = 'a'", "has values of type string and date"),
    ("LAST_DAY(a) = d", "a is of type int"),
    ("YEAR(a) = 1", "a is of type int"),
    ("CAST(d AS BIGINT) = 1", "d is of type date"),
]


@pytest.mark.parametrize(("where", "reason"), HOPELESS)
def test_what_fails_for_every_row_is_refused_before_there_are_any(where: str, reason: str) -> None:
    with pytest.raises(UnsupportedError) as refused:
        ivme.explain(f"SELECT a FROM R WHERE {where}", {"R": SCHEMA})
    assert reason in refused.value.message
    assert refused.value.position is not None


@pytest.mark.parametrize(
    "where", ["CASE WHEN b = 0 THEN a / 0 ELSE 1 END = 1", "b = 0 OR a / 0 > 1", "COALESCE(a, a % 0) = 1"]
)
def test_what_is_guarded_is_left_to_the_rows(where: str) -> None:
    ivme.explain(f"SELECT a FROM R WHERE {where}", {"R": SCHEMA})
