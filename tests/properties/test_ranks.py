"""Ranks and the first rows of groups under random batches, against DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from ivme.errors import UnsupportedError
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.example_counts import some_of

NUMBER = "ROW_NUMBER() OVER (PARTITION BY g ORDER BY x, id)"
QUERIES = {
    "rows of a group": f"SELECT g, x FROM (SELECT g, x, {NUMBER} AS rn FROM r) t WHERE rn <= 2",
    "with their numbers": f"SELECT * FROM (SELECT g, x, {NUMBER} AS rn FROM r) t WHERE 3 > rn",
    "the last first": """SELECT * FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC, name, id) AS rn
        FROM r) t WHERE rn <= 2""",
    "rank": """SELECT * FROM (SELECT g, x, RANK() OVER (PARTITION BY g ORDER BY x) AS rn, id FROM r) t
        WHERE t.rn < 3""",
    "rank without its column": "SELECT id FROM r QUALIFY RANK() OVER (PARTITION BY g ORDER BY x) <= 2",
    "dense rank": "SELECT g, x FROM r QUALIFY DENSE_RANK() OVER (PARTITION BY g ORDER BY x) <= 2",
    "a dense rank": """SELECT g, id FROM (SELECT g, id, DENSE_RANK() OVER (PARTITION BY g ORDER BY x) rn FROM r) t
        WHERE rn = 2""",
    "a rank of groups": "SELECT g, SUM(x) AS s FROM r GROUP BY g QUALIFY RANK() OVER (ORDER BY SUM(x) DESC) = 1",
    "QUALIFY by name": f"SELECT id, {NUMBER} AS rn FROM r QUALIFY rn BETWEEN 2 AND 3",
    "WITH": f"""WITH t AS (SELECT *, {NUMBER} AS rn FROM r) SELECT id, g FROM t WHERE rn = 2 AND x > 0""",
    "twice": f"""WITH t AS (SELECT *, {NUMBER} AS rn FROM r)
        SELECT a.id, b.id AS other FROM t a JOIN t b ON a.g = b.g WHERE a.rn = 1 AND b.rn = 2""",
    "DISTINCT ON": "SELECT DISTINCT ON (g) g, x, id FROM r ORDER BY g, x DESC, id",
    "DISTINCT ON with a star": "SELECT DISTINCT ON (g, x) * FROM r ORDER BY g, x, name, id",
    "all ranks": "SELECT id, RANK() OVER (PARTITION BY g ORDER BY x) AS k FROM r",
    "all numbers": "SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS k FROM r",
    "an inner join": f"""SELECT COUNT(*) AS n FROM (SELECT g, {NUMBER} rn FROM r) t
        JOIN s ON s.g = t.g AND t.rn = 1""",
    "an outer join": f"""SELECT s.g, t.id FROM s LEFT JOIN (SELECT g, id, {NUMBER} rn FROM r) t
        ON s.g = t.g AND t.rn = 1""",
    "the padded side in WHERE": f"""SELECT s.g, t.id FROM s LEFT JOIN (SELECT g, id, {NUMBER} rn FROM r) t
        ON s.g = t.g WHERE t.rn = 1 OR t.rn IS NULL""",
    "IN": "SELECT g FROM s WHERE g IN (SELECT g FROM r QUALIFY ROW_NUMBER() OVER (ORDER BY x, id) <= 3)",
    "two ranks": f"""SELECT id, {NUMBER} AS n, x, RANK() OVER (ORDER BY x DESC, name) AS k,
        DENSE_RANK() OVER (PARTITION BY name ORDER BY g) AS l FROM r""",
    "two ranks of groups": """SELECT * FROM (SELECT g, RANK() OVER (ORDER BY SUM(x)) AS a,
        RANK() OVER (ORDER BY COUNT(*) DESC) AS b FROM r GROUP BY g) WHERE a <= 2 OR b <= 1""",
    "a rank in an expression": f"SELECT id, {NUMBER} + 1 AS k FROM r",
    "a rank and another condition": f"SELECT id FROM r QUALIFY {NUMBER} = 1 AND x > 1",
    "nobody": f"SELECT id FROM (SELECT id, {NUMBER} rn FROM r) WHERE rn < 1",
}


def _batch(rng: random.Random, rows: list[Any]) -> tuple[list[Any], list[Any]]:
    names = ["a", "b", "longer than eight", None]
    new = [
        (rng.randrange(30), rng.choice([1, 2, 3, None]), rng.choice([1, 2, 3, None]), rng.choice(names))
        for _ in range(rng.randrange(6))
    ]
    gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randrange(5)))]
    return new, gone


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(range(2), 0))
@pytest.mark.parametrize("backend", BACKENDS)
def test_ranks_are_those_of_duckdb_after_each_batch(backend: str, seed: int) -> None:
    db, duck, rng = make_database(backend), duckdb.connect(), random.Random(seed)
    db.create_table("r", {"id": "int", "g": "int", "x": "int", "name": "string"})
    db.create_table("s", {"g": "int"})
    duck.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    duck.execute("CREATE TABLE r (id BIGINT, g BIGINT, x BIGINT, name VARCHAR); CREATE TABLE s (g BIGINT)")
    views = {name: db.create_view(f"v{n}", text) for n, (name, text) in enumerate(QUERIES.items())}
    changes = {name: view.changes() for name, view in views.items()}
    heard: dict[str, Counter[Any]] = {name: Counter(list(view)) for name, view in views.items()}
    rows: list[Any] = []
    for _ in range(12):
        new, gone = _batch(rng, rows)
        more = [(rng.choice([1, 2, 3, None]),)]
        in_one_batch(db, ("insert", "r", new), ("delete", "r", gone), ("insert", "s", more))
        rows += new
        duck.execute("DELETE FROM r")
        duck.executemany("INSERT INTO s VALUES (?)", more)
        if rows:
            duck.executemany("INSERT INTO r VALUES (?, ?, ?, ?)", rows)
        for name, view in views.items():
            for change in changes[name]:
                heard[name].update(change)
            expected = Counter(duck.execute(QUERIES[name]).fetchall())
            assert expected == Counter(list(view)), name
            assert expected == +heard[name], name
    for view in views.values():
        view.verify()
    duck.close()


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("r", {"id": "int", "g": "int", "x": "int"})
    return made


def test_a_rank_that_nobody_reads_changes_no_rows_but_those_at_the_edge(db: Database) -> None:
    view = db.create_view("v", f"SELECT id FROM (SELECT id, {NUMBER} AS rn FROM r) t WHERE rn <= 2")
    db.insert("r", [(1, 1, 10), (2, 1, 20), (3, 1, 30), (4, 2, 10)])
    changes = view.changes()
    db.insert("r", [(5, 1, 5)])
    assert [{(5,): 1, (2,): -1}] == [dict(change) for change in changes]
    assert "O(log N)" in str(view.explain().update)


def test_ranks_of_all_rows_cost_the_rows_behind(db: Database) -> None:
    whole = db.create_view("whole", f"SELECT id, {NUMBER} AS rn FROM r").explain()
    first = db.create_view("first", f"SELECT id, {NUMBER} AS rn FROM r QUALIFY rn <= 3").explain()
    assert ("O(N)", "O(log N)") == (str(whole.update), str(first.update))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"SELECT id FROM (SELECT id, {NUMBER} AS k FROM r WHERE x = :g) WHERE k = 1",
            "the parameter :g cannot decide",
        ),
        (f"SELECT id FROM r WHERE {NUMBER} = 1", "stands in SELECT or in QUALIFY"),
    ],
)
def test_what_ranks_cannot_be_is_refused_by_name(db: Database, text: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        db.create_view("v", text)
