"""A query of WITH is visible from where it stands, and hides what has its name, and nothing before it.

All queries of WITH around a query were one list by name: one of an inner WITH took the place of an outer one in queries
that had been written over the latter, and one that is listed later that of a table before it. Rows were wrong. In
subqueries of conditions, the queries of their own WITH were not found.
"""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

import ivme

QUERIES = [
    "WITH p AS (SELECT x FROM a), q AS (SELECT x FROM p) SELECT * FROM (WITH p AS (SELECT x FROM b) SELECT x FROM q) s",
    "WITH p AS (SELECT x FROM b), b AS (SELECT x FROM a) SELECT x FROM p",
    "WITH p AS (SELECT x FROM b), b AS (SELECT x FROM p) SELECT x FROM b",
    "WITH b AS (SELECT x FROM b WHERE x > 3) SELECT b.x FROM b",
    "WITH a AS (SELECT x FROM a WHERE x > 1) SELECT a.x, b.x AS y FROM a JOIN b ON a.x < b.x",
    "WITH p AS (SELECT x FROM a), q AS (WITH p AS (SELECT x FROM p UNION ALL SELECT x FROM c) SELECT x FROM p) "
    "SELECT x FROM q",
    "SELECT x FROM a WHERE x IN (WITH w AS (SELECT x FROM a) SELECT x FROM a t WHERE EXISTS "
    "(SELECT 1 FROM w WHERE w.x = t.x))",
    "SELECT a.x FROM a, b WHERE (a.x, b.x) IN (WITH w AS (SELECT x FROM c) SELECT a.x, b.x FROM a, b "
    "WHERE EXISTS (SELECT x FROM w))",
    "SELECT x FROM a WHERE EXISTS (WITH q AS (SELECT x FROM b), a AS (SELECT x FROM q) "
    "SELECT 1 FROM a n WHERE n.x > a.x + 2)",
    "WITH p AS (SELECT x FROM a) SELECT (WITH p AS (SELECT x FROM b) SELECT MAX(p.x) FROM p) AS m, p.x FROM p",
    "WITH p AS (SELECT x FROM a) SELECT x FROM p UNION ALL (WITH p AS (SELECT x FROM b) SELECT x FROM p)",
    "WITH p(y) AS (SELECT x FROM a), q(z) AS (WITH p(k) AS (SELECT x FROM b) SELECT k FROM p) "
    "SELECT y, z FROM p JOIN q ON y < z",
    "(WITH p AS (SELECT x FROM a) SELECT x FROM p)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_with_are_visible_where_sql_says(query: str) -> None:
    db, duck = ivme.Database(), duckdb.connect()
    for table in "abc":
        db.create_table(table, {"x": "int"})
        duck.execute(f"CREATE TABLE {table} (x BIGINT)")
    view = db.create_view("v", query)
    for table, values in (("a", (1, 2, 3)), ("b", (3, 4, 5)), ("c", (6,)), ("a", (4, 4)), ("b", (9,))):
        rows = [(value,) for value in values]
        db.insert(table, rows)
        duck.executemany(f"INSERT INTO {table} VALUES (?)", rows)
        assert Counter(duck.execute(query).fetchall()) == Counter(view)
    view.verify()
    duck.close()


def test_two_queries_of_one_with_under_one_name_are_refused() -> None:
    db = ivme.Database()
    db.create_table("a", {"x": "int"})
    with pytest.raises(ivme.IvmeError, match="two queries of WITH are called 'p'"):
        db.create_view("v", "WITH p AS (SELECT x FROM a), p AS (SELECT x FROM a) SELECT x FROM p")


def test_a_query_that_reads_its_own_name_is_recursive_only_if_it_says_so() -> None:
    db = ivme.Database()
    db.create_table("edge", {"src": "int", "dst": "int"})
    step = "SELECT r.src, e.dst FROM r JOIN edge e ON r.dst = e.src"
    text = f"r AS (SELECT src, dst FROM edge UNION {step}) SELECT * FROM r"
    db.create_view("v", f"WITH RECURSIVE {text}")
    with pytest.raises(ivme.IvmeError, match="there is no table 'r'"):
        db.create_view("w", f"WITH {text}")
