"""Percentiles under random batches, also where other tables multiply rows, against DuckDB and Python's own."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.properties.window_queries import normal

_VIEWS = [
    "SELECT g, MEDIAN(x) AS a, MEDIAN(f) AS b, MEDIAN(d) AS c, MIN(x) AS least FROM r GROUP BY g",
    """SELECT g, PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY x) AS a,
       PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x DESC) AS b,
       PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY d) AS c, PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY d DESC) AS e
       FROM r GROUP BY g""",
    "SELECT MEDIAN(x) AS m, PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY f) AS p, COUNT(*) AS n FROM r",
    """SELECT r.g, MEDIAN(r.x) AS m, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY s.y) AS p FROM r JOIN s ON r.g = s.g
       GROUP BY r.g""",
    "SELECT MEDIAN(x) FILTER (WHERE f > 0) AS m FROM r WHERE g = 1",
]


def run_percentiles(backend: str, seed: int, batches: int) -> None:
    rng = random.Random(seed)
    db, duck = make_database(backend), duckdb.connect()
    db.create_table("r", {"g": "int", "x": "int", "f": "float", "d": "decimal(10, 2)"})
    db.create_table("s", {"g": "int", "y": "int"})
    duck.execute("CREATE TABLE r (g BIGINT, x BIGINT, f DOUBLE, d DECIMAL(10, 2)); CREATE TABLE s (g BIGINT, y BIGINT)")
    made = [db.create_view(f"v{number}", text) for number, text in enumerate(_VIEWS)]
    heard: list[Counter[Any]] = [Counter(list(view)) for view in made]
    changes = [view.changes() for view in made]
    rows: dict[str, list[Any]] = {"r": [], "s": []}
    for _ in range(batches):
        for table in rows:
            mine = rows[table]
            mine += (new := [_row(rng) if table == "r" else _other(rng) for _ in range(rng.randrange(9))])
            gone = [mine.pop(rng.randrange(len(mine))) for _ in range(min(len(mine), rng.randrange(7)))]
            in_one_batch(db, ("insert", table, new), ("delete", table, gone))
            duck.execute(f"DELETE FROM {table}")
            if rows[table]:
                marks = ", ".join("?" for _ in rows[table][0])
                duck.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
        for number, (view, text) in enumerate(zip(made, _VIEWS, strict=True)):
            expected = Counter(map(normal, duck.execute(_in_duckdb(text)).fetchall()))
            assert expected == Counter(map(normal, view)), text
            for change in changes[number]:
                heard[number].update(change)
            assert Counter(list(view)) == +heard[number], text
    for view in made:
        view.verify()
    duck.close()


def _in_duckdb(text: str) -> str:
    """With floats for decimals, whose median it rounds."""
    return text.replace("MEDIAN(d)", "MEDIAN(d::DOUBLE)")


def _other(rng: random.Random) -> tuple[int, int]:
    return rng.choice([1, 2]), rng.randrange(4)


def _row(rng: random.Random) -> tuple[Any, ...]:
    return (
        rng.choice([1, 2, None]),
        rng.choice([*range(-3, 8), None]),
        rng.choice([0.25, -1.5, 2.0, 1e300, None]),
        rng.choice([Decimal("0.25"), Decimal("-3.50"), Decimal("1.00"), None]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_percentiles_are_those_of_duckdb_after_each_batch(backend: str) -> None:
    run_percentiles(backend, 1, 6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("backend", BACKENDS)
def test_percentiles_are_those_of_duckdb_for_longer(backend: str, seed: int) -> None:
    run_percentiles(backend, seed, 30)


def test_a_median_of_many_values_costs_few_operations() -> None:
    db, counted = Database(), []
    db.create_table("r", {"g": "int", "x": "int"})
    view = db.create_view("v", "SELECT g, MEDIAN(x) AS m FROM r GROUP BY g")
    values: list[int] = []
    for size in (1_000, 64_000):
        new = list(range(len(values), size))
        db.insert("r", [(1, value) for value in new])
        values += new
        kernel: Any = db.definitions.runtime.backend
        before = kernel.operations
        db.insert("r", [(1, -5)])
        db.delete("r", [(1, 0)])
        assert list(view) == [(1, statistics.median([-5, *values[1:]]))]
        db.insert("r", [(1, 0)])
        db.delete("r", [(1, -5)])
        counted.append(kernel.operations - before)
    assert counted[1] < 3 * counted[0]


def test_a_stored_view_finds_percentiles_when_it_is_opened_again(tmp_path: Any) -> None:
    with Database(tmp_path / "db") as db:
        db.create_table("r", {"g": "int", "x": "int"})
        db.create_view("v", "SELECT g, MEDIAN(x) AS m FROM r GROUP BY g")
        db.insert("r", [(1, value) for value in (5, 1, 9, 9)])
    with Database(tmp_path / "db") as db:
        db.delete("r", [(1, 9)])
        assert list(db.view("v")) == [(1, 5.0)]
        db.view("v").verify()
