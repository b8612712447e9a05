"""What a subquery is compared with is that of its groups, not that of the rows below them.

`k NOT IN (SELECT s.k * 1 FROM s GROUP BY CUBE (s.k))` had rows although the total of CUBE has NULL: the test for NULL
was one of the rows that are grouped, and `s.k * 1` was a key of every set. Found by the fuzzer after 40 CPU minutes.
NOT IN over an aggregate of groups was refused.
"""

from __future__ import annotations

from random import Random

import pytest

from ivme.database import Database
from ivme.errors import UnsupportedError
from tests.empty_duckdb import empty_duckdb, insert_rows
from tests.example_counts import some_of

COMPARED = [
    "r.k IN ({})",
    "r.k NOT IN ({})",
    "r.k <> ALL ({})",
    "r.k > ALL ({})",
    "r.k = ANY ({})",
    "r.k < ANY ({})",
    "EXISTS ({})",
    "NOT EXISTS ({})",
    "(r.k IN ({})) IS NULL",
    "(r.k NOT IN ({})) OR r.j = 1",
]
SUBQUERIES = [
    "SELECT s.k * 1 AS x FROM s WHERE s.k >= 2 GROUP BY CUBE (s.k)",
    "SELECT s.k FROM s GROUP BY CUBE (s.k, s.j)",
    "SELECT s.k + s.j AS x FROM s GROUP BY ROLLUP (s.k, s.j)",
    "SELECT COALESCE(s.k, 2) AS x FROM s GROUP BY CUBE (s.k)",
    "SELECT MIN(s.k) AS x FROM s GROUP BY CUBE (s.j)",
    "SELECT MAX(s.k) AS x FROM s GROUP BY s.j",
    "SELECT s.k FROM s GROUP BY GROUPING SETS ((s.k), (s.j))",
    "SELECT s.k FROM s GROUP BY s.k, CUBE (s.j)",
]
VALUES = [None, 1, 2, 3, 9]


@pytest.mark.parametrize("compared", some_of(COMPARED, *COMPARED[::3]))
def test_it_has_duckdbs_rows(compared: str) -> None:
    rng = Random(compared)
    ours, theirs = Database(), empty_duckdb()
    for table in "rs":
        ours.create_table(table, {"k": "int", "j": "int"})
        theirs.execute(f"CREATE TABLE {table} (k BIGINT, j BIGINT)")
    texts = [f"SELECT r.k, r.j FROM r WHERE {compared.format(subquery)}" for subquery in SUBQUERIES]
    views = [ours.create_view(f"v{number}", text) for number, text in enumerate(texts)]
    for _ in range(4):
        for table in "rs":
            # Over no rows CUBE has no total, as in Spark, and one in DuckDB: 9 is always there.
            rows = [(9, 2), *((rng.choice(VALUES), rng.choice(VALUES)) for _ in range(rng.randrange(3)))]
            ours.insert(table, rows)
            insert_rows(theirs, table, rows)
        for text, view in zip(texts, views, strict=True):
            assert sorted(map(repr, theirs.execute(text).fetchall())) == sorted(map(repr, view)), text


def test_a_subquery_that_is_tied_to_the_query_around_is_refused() -> None:
    database = Database()
    for table in "rs":
        database.create_table(table, {"k": "int", "j": "int"})
    text = "SELECT r.k FROM r WHERE r.k NOT IN (SELECT s.k * 1 FROM s WHERE s.j = r.j GROUP BY CUBE (s.k))"
    with pytest.raises(UnsupportedError, match="some sets of keys leave it out"):
        database.create_view("v", text)
