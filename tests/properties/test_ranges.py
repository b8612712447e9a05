"""Parameters in ranges under random batches, against DuckDB: rows and aggregates, on both backends."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from ivme.errors import DataError, PlanError, UnsupportedError
from tests.databases import BACKENDS, in_one_batch, make_database

QUERIES = {
    "half open": "SELECT id, x FROM r WHERE g = :g AND ts >= :low AND ts < :high",
    "between": "SELECT id FROM r WHERE ts BETWEEN :low AND :high AND id > 3",
    "one end": "SELECT id, name FROM r WHERE name > :name",
    "the other end": "SELECT id FROM r WHERE :f >= f",
    "an expression": "SELECT id FROM r WHERE x + id < :x",
    "a join": "SELECT r.id, s.x AS y FROM r JOIN s ON r.g = s.g WHERE r.d > :d AND s.x = :x",
    "sorted": "SELECT id, x FROM r WHERE x >= :x ORDER BY x DESC, id LIMIT 3",
    "sums": """SELECT COUNT(*) AS n, COUNT(x) AS m, SUM(x) AS s, AVG(x) AS a FROM r
        WHERE g = :g AND ts > :low AND ts <= :high""",
    "decimals": "SELECT SUM(d) AS d, COUNT(*) AS n FROM r WHERE x <= :x",
    "groups": "SELECT g, COUNT(*) AS n, SUM(x) AS s, SUM(d) AS d FROM r WHERE ts >= :low AND ts < :high GROUP BY g",
    "groups that are not shown": "SELECT SUM(x) AS s FROM r WHERE x < :x GROUP BY g, name",
    "a beginning": "SELECT id, name FROM r WHERE name LIKE :name || '%'",
    "a beginning of groups": "SELECT COUNT(*) AS n, x FROM r WHERE name LIKE :name || '%' AND g = :g GROUP BY 2",
    "two ranges": "SELECT id, x FROM r WHERE ts >= :low AND ts < :high AND :x <= x AND g = :g",
    "two ranges, sorted": "SELECT id, f FROM r WHERE x > :x AND f <= :f ORDER BY id, f LIMIT 4",
    "a beginning and a range": "SELECT id, name FROM r WHERE ts > :low AND name LIKE :name || '%'",
    "sums of two ranges": "SELECT COUNT(*) AS n, SUM(x) AS s, SUM(d) AS d FROM r WHERE ts <= :high AND d > :d",
    "groups of two ranges": "SELECT g, SUM(x) AS s, MAX(name) AS m FROM r WHERE ts <= :high AND d > :d GROUP BY g",
    "extremes": """SELECT MIN(x) AS a, MAX(name) AS b, MIN(f) AS c, MAX(d) AS d, COUNT(*) AS n FROM r
        WHERE g = :g AND ts BETWEEN :low AND :high""",
    "extremes of groups": "SELECT name, MIN(ts) AS a, MAX(f) AS b FROM r WHERE x < :x GROUP BY name",
    "a sum of a join": "SELECT SUM(r.x) AS s FROM r JOIN s ON r.g = s.g WHERE s.x >= :low AND s.x < :high",
}
TS = [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=n) for n in range(12)]
VALUES: dict[str, list[Any]] = {
    "g": ["a", "b", "nobody"],
    "low": TS,
    "high": TS,
    "name": ["", "b", "longer than 8 characters", "~"],
    "f": [-1.0, 0.5, 2.25],
    "x": [-1, 2, 5, 9],
    "d": [Decimal("0.50"), Decimal("3.25")],
}


def _row(rng: random.Random) -> tuple[Any, ...]:
    def some(values: list[Any]) -> Any:
        return rng.choice([*values, None])

    names = ["a", "b", "c", "longer than 8 characters", "longer than 8 characters, too"]
    decimals = [Decimal(n) / 4 for n in range(-8, 20)]
    return (
        rng.randrange(20),
        some(["a", "b"]),
        some(TS),
        some(list(range(-3, 9))),
        some(names),
        some([-1.0, 0.25, 2.25]),
        some(decimals),
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_range_has_the_rows_and_sums_of_duckdb(backend: str) -> None:
    db, duck, rng = make_database(backend), duckdb.connect(), random.Random(5)
    columns = {"id": "int", "g": "string", "ts": "timestamp", "x": "int"}
    columns |= {"name": "string", "f": "float", "d": "decimal(10,2)"}
    db.create_table("r", columns)
    db.create_table("s", {"g": "string", "x": "int"})
    duck.execute("""CREATE TABLE r (id BIGINT, g VARCHAR, ts TIMESTAMP, x BIGINT, name VARCHAR, f DOUBLE,
        d DECIMAL(10,2)); CREATE TABLE s (g VARCHAR, x BIGINT)""")
    duck.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    views = {name: db.create_view(f"v{n}", text) for n, (name, text) in enumerate(QUERIES.items())}
    rows: list[Any] = []
    for _ in range(6):
        new, more = [_row(rng) for _ in range(15)], [(rng.choice(["a", "b", None]), rng.randrange(6))]
        gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), 8))]
        in_one_batch(db, ("insert", "r", new), ("delete", "r", gone), ("insert", "s", more))
        rows += new
        duck.execute("DELETE FROM r")
        duck.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        duck.executemany("INSERT INTO s VALUES (?, ?)", more)
        for name, view in views.items():
            integers = name == "a sum of a join"
            given = {p: rng.choice([0, 2, 4] if integers else VALUES[p]) for p in view.parameters}
            for asked in (given, {**given, view.parameters[-1]: None}):
                text = QUERIES[name]
                for parameter in asked:
                    text = text.replace(f":{parameter}", f"${parameter}")
                expected = Counter(duck.execute(text, asked).fetchall())
                assert expected == Counter(list(view(**asked))), (name, asked)
                assert expected == Counter(dict(view.items(**asked))), (name, asked)
    for view in views.values():
        view.verify()
    duck.close()


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("r", {"g": "string", "x": "int", "f": "float"})
    made.insert("r", [("a", 1, 1.0), ("a", 5, 2.0), ("b", 3, 3.0), (None, 4, None), ("a", None, 5.0)])
    return made


def test_many_requests_of_a_range_come_in_one_table(db: Database) -> None:
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM r WHERE g = :g AND x > :x")
    found = view.request_many(g=["a", "nobody", "b"], x=[1, 0, 2])
    assert [1, 0, 1] == found.column("n").to_pylist()


def test_a_range_survives_in_a_directory(tmp_path: Path) -> None:
    with Database(tmp_path) as made:
        made.create_table("r", {"g": "string", "x": "int"})
        made.create_view("v", "SELECT x FROM r WHERE g >= :low AND g < :high")
        made.insert("r", [("a", 1), ("b", 2), ("c", 3)])
    with Database(tmp_path) as opened:
        assert [(1,), (2,)] == list(opened.view("v")(low="a", high="c"))
        opened.delete("r", [("a", 1)])
        assert [(2,)] == list(opened.view("v")(low="", high="c"))
        opened.view("v").verify()


def test_what_a_request_costs_is_said_and_is_log_n(db: Database) -> None:
    view = db.create_view("v", "SELECT SUM(x) AS s FROM r WHERE x >= :low")
    assert "O(log N)" == str(view.explain().update)
    assert "O(log N) to add up a request" in " ".join(str(view.explain()).split())
    db.insert("r", [("c", n, 0.0) for n in range(20_000)])
    group: Any = db.definitions.catalog.views["v"].group
    before = group.operations
    assert sum(range(10_000, 20_000)) == view.scalar(low=10_000)
    assert group.operations - before < 100


def test_a_second_range_is_said_to_be_a_filter(db: Database) -> None:
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM r WHERE x >= :low AND f < :f")
    said = " ".join(str(view.explain()).split())
    assert ":f: a filter on the rows between the ends, which are read" in said
    assert "to add up a request" not in said
    assert [1, 0] == [view.scalar(low=1, f=2.0), view.scalar(low=1, f=None)]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT g FROM r WHERE x > :x AND x >= :y", UnsupportedError, "a second lower end"),
        ("SELECT g FROM r WHERE x > :x AND f = :x", UnsupportedError, "is compared more than once"),
        ("SELECT g FROM r WHERE x > :x DEFAULT 3", UnsupportedError, "a default of :x"),
        ("SELECT g, COUNT(*) AS n FROM r WHERE x > :x GROUP BY g HAVING COUNT(*) > 1", UnsupportedError, "with HAVING"),
        ("SELECT g, COUNT(*) AS n FROM r WHERE x > :x GROUP BY ROLLUP (g)", UnsupportedError, "only COUNT, SUM"),
        ("SELECT g FROM r WHERE g LIKE :g || '%' AND g > :h", UnsupportedError, "a second lower end"),
        ("SELECT STDDEV(f) AS m FROM r WHERE x > :x", UnsupportedError, "only COUNT, SUM, AVG, MIN and MAX"),
        ("SELECT g FROM r WHERE x > :x AND f > :f AND f > :h", UnsupportedError, "a second lower end"),
        ("SELECT SUM(f) AS s FROM r WHERE x > :x", PlanError, "SUM of floats over a range"),
        ("SELECT g FROM r WHERE x > :x OR f > 1", UnsupportedError, "the parameter :x is not allowed here"),
    ],
)
def test_what_a_range_cannot_be_is_refused_by_name(
    db: Database, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        db.create_view("v", text)


def test_a_beginning_is_taken_as_it_is_written_or_refused(db: Database) -> None:
    view = db.create_view("v", "SELECT x FROM r WHERE g LIKE :g || '%'")
    assert 4 == view.count(g="")
    assert [(3,)] == list(view(g="b"))
    with pytest.raises(DataError, match="it cannot have %, _"):
        list(view(g="%b"))


def test_a_range_checks_its_parameters_and_is_not_followed(db: Database) -> None:
    view = db.create_view("v", "SELECT g FROM r WHERE x > :x")
    with pytest.raises(DataError, match="parameter x of view v"):
        list(view(x="one"))
    with pytest.raises(PlanError, match="has parameters in a range"):
        view.changes()
