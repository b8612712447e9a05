"""Every equality beside an inequality counts, also where two of them share a side.

`a.i = b.j AND a.j = b.j AND a.i > b.j` had one of its equalities as the key of an ordered map, and the other one was
forgotten: rows that only the first one lets pass were shown.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest

from tests.databases import BACKENDS, in_one_batch, make_database

QUERIES = [
    "SELECT a.i, b.i AS n FROM r a JOIN r b ON a.j = b.j AND a.i = b.j WHERE a.i >= b.j",
    "SELECT a.i, b.j FROM r a JOIN r b ON a.j = b.j AND a.i = b.j AND a.i > b.j",
    "SELECT COUNT(*) AS n, SUM(b.i) AS s FROM r a JOIN r b ON a.j = b.j AND a.j = b.i WHERE a.i <= b.j",
    "SELECT a.i, b.j FROM r a JOIN r b ON a.i = b.i AND a.j = b.j AND a.i = b.j WHERE a.i BETWEEN b.i AND b.j",
    "SELECT a.i, c.k FROM r a JOIN s c ON a.i = c.k JOIN r b ON b.j = c.k AND b.i = c.k WHERE a.j < b.i",
    "SELECT a.i, b.m FROM r a ASOF JOIN (SELECT i, j, MAX(i) AS m FROM r GROUP BY i, j) b "
    "ON a.i = b.j AND a.j = b.j AND a.i >= b.i",
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_equalities_with_one_side_in_common_both_count(backend: str) -> None:
    rng, db, duck = random.Random(4), make_database(backend), duckdb.connect()
    db.create_table("r", {"i": "int", "j": "int"})
    db.create_table("s", {"k": "int"})
    duck.execute("CREATE TABLE r (i BIGINT, j BIGINT); CREATE TABLE s (k BIGINT)")
    views = [db.create_view(f"v{number}", text) for number, text in enumerate(QUERIES)]
    rows: list[Any] = []
    for _ in range(12):
        new = [(rng.randrange(3), rng.randrange(3)) for _ in range(3)]
        more = [(rng.randrange(3),)]
        rows += new
        gone = [rows.pop(rng.randrange(len(rows))) for _ in range(rng.randrange(3))]
        in_one_batch(db, ("insert", "r", new), ("delete", "r", gone), ("insert", "s", more))
        duck.execute("DELETE FROM r")
        duck.executemany("INSERT INTO r VALUES (?, ?)", rows)
        duck.executemany("INSERT INTO s VALUES (?)", more)
        for view, text in zip(views, QUERIES, strict=True):
            assert Counter(duck.execute(text).fetchall()) == Counter(view), text
    for view in views:
        view.verify()
    duck.close()
