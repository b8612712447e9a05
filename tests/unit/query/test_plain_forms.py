"""Forms of SQL that are another way to write a SELECT; `select_queries.txt` of tests/properties compares them."""

from __future__ import annotations

import pytest

from ivme.database import Database
from ivme.errors import IvmeError, UnsupportedError

ROWS = [(1, "x", 10), (1, "y", 20), (2, "x", None), (2, "x", 5)]


@pytest.fixture
def db() -> Database:
    database = Database()
    database.create_table("t", {"g": "int", "k": "string", "v": "int"})
    database.insert("t", ROWS)
    return database


def test_a_count_in_pivot_is_null_where_no_row_has_the_value_as_in_spark(db: Database) -> None:
    view = db.create_view("p", "SELECT * FROM t PIVOT (COUNT(v) FOR k IN ('x', 'y', 'z'))")
    assert [(1, 1, 1, None), (2, 1, None, None)] == sorted(view)
    assert ["g", "x", "y", "z"] == view.to_arrow().column_names


def test_pivot_with_several_aggregates_names_columns_as_spark_does(db: Database) -> None:
    view = db.create_view("p", "SELECT * FROM t PIVOT (SUM(v) AS s, MAX(v) AS m FOR k IN ('x' AS ex, 'y'))")
    assert ["g", "ex_s", "ex_m", "y_s", "y_m"] == view.to_arrow().column_names
    db.delete("t", [(1, "y", 20)])
    assert [(1, 10, 10, None, None), (2, 5, 5, None, None)] == sorted(view)
    view.verify()


def test_pivot_of_several_columns_compares_all_of_them(db: Database) -> None:
    view = db.create_view("p", "SELECT * FROM t PIVOT (SUM(v) FOR (g, k) IN ((1, 'x') AS a, (2, 'x') AS b))")
    assert [(10, 5)] == list(view)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT t.g FROM t ASOF RIGHT JOIN t u ON t.g = u.g AND t.v >= u.v", "ASOF RIGHT JOIN is not supported"),
        ("SELECT g FROM t LIMIT 1 BY g", "LIMIT ... BY is not supported"),
        ("SELECT * EXCEPT (h) FROM t", "there is no column 'h' in *"),
        ("SELECT * REPLACE (1 AS h) FROM t", "there is no column 'h' in *"),
    ],
)
def test_what_would_be_dropped_silently_is_refused(db: Database, query: str, words: str) -> None:
    with pytest.raises(IvmeError) as raised:
        db.create_view("v", query)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "call",
    [
        *("LAG(v) OVER ()", "LEAD(v) OVER (PARTITION BY g)", "ROW_NUMBER() OVER ()", "RANK() OVER (PARTITION BY g)"),
        *("DENSE_RANK() OVER ()", "PERCENT_RANK() OVER ()", "CUME_DIST() OVER ()", "NTILE(2) OVER ()"),
        *("FIRST_VALUE(v) OVER ()", "LAST_VALUE(v) OVER (PARTITION BY g)", "NTH_VALUE(v, 2) OVER ()"),
        *("FIRST(v) OVER ()", "LAG(v) IGNORE NULLS OVER ()", "LAG(v) OVER w", "LEAD(v) OVER x"),
        *("SUM(v) OVER (ROWS 1 PRECEDING)", "SUM(v) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
    ],
)
def test_a_window_that_reads_rows_by_position_needs_an_order(db: Database, call: str) -> None:
    with pytest.raises(UnsupportedError, match="without ORDER BY in OVER") as raised:
        db.create_view("made", f"SELECT g, {call} AS x FROM t WINDOW w AS (PARTITION BY g), x AS (w)")
    assert raised.value.position is not None
    assert "write ORDER BY in OVER" in raised.value.instead


@pytest.mark.parametrize(
    "call",
    [
        *("SUM(v) OVER ()", "COUNT(*) OVER (PARTITION BY g)", "ANY_VALUE(g) OVER (PARTITION BY g)"),
        *("MAX(v) OVER (RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)", "LAG(v) OVER (w ORDER BY v)"),
        *("SUM(v) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)", "LAG(v) OVER u"),
    ],
)
def test_a_window_whose_rows_decide_the_answer_is_taken(db: Database, call: str) -> None:
    db.create_view("made", f"SELECT g, {call} AS x FROM t WINDOW w AS (PARTITION BY g), u AS (ORDER BY v)").verify()
