"""A column of a SELECT may read those before it by their names, where no table has such a column, as in Spark."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

import ivme

QUERIES = [
    "SELECT a AS x, x + 1 AS y FROM t",
    "SELECT a AS b, b + 1 AS y FROM t",  # a column of the table comes first
    "SELECT s, SUM(b) AS total, COUNT(*) AS n, total * n AS m FROM t GROUP BY s",
    "SELECT a AS x, x * 2 AS y, y + x AS z FROM t WHERE a > 1",
    "SELECT t.a AS x, o.b AS y, x + y AS z FROM t JOIN t o ON t.a = o.a",
    "SELECT z FROM (SELECT a + 1 AS y, y * y AS z FROM t) WHERE z > 4",
    "SELECT a AS x, x + 1 AS y FROM t UNION ALL SELECT b, a FROM t",
    "SELECT a AS x, CASE WHEN x > 1 THEN 'many' ELSE 'one' END AS y, COUNT(*) AS n FROM t GROUP BY a",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_column_reads_those_before_it(query: str) -> None:
    db, duck = ivme.Database(), duckdb.connect()
    db.create_table("t", {"a": "int", "b": "int", "s": "string"})
    duck.execute("CREATE TABLE t (a BIGINT, b BIGINT, s VARCHAR)")
    view = db.create_view("v", query)
    for rows in ([(1, 2, "x"), (3, 4, "y")], [(3, None, "x"), (None, 1, None)]):
        db.insert("t", rows)
        duck.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        assert Counter(duck.execute(query).fetchall()) == Counter(view)
    view.verify()
    duck.close()


def test_a_column_behind_it_is_unknown() -> None:
    db = ivme.Database()
    db.create_table("t", {"a": "int"})
    with pytest.raises(ivme.IvmeError, match="there is no column 'x'"):
        db.create_view("v", "SELECT x + 1 AS y, a AS x FROM t")
