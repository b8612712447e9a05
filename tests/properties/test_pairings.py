"""ASOF joins and joins by inequalities under random batches, against DuckDB: rows, changes, the view's own check."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from ivme.errors import IvmeError, UnsupportedError
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.properties.window_queries import normal

_COLUMNS = {"id": "int", "k": "int", "x": "int", "f": "float", "d": "decimal(10, 2)", "s": "string", "day": "date"}
_DUCK = "(id BIGINT, k BIGINT, x BIGINT, f DOUBLE, d DECIMAL(10, 2), s VARCHAR, day DATE)"
_TABLES = ("l", "r", "t")

_NEAREST = {">=": ("<=", "DESC"), ">": ("<", "DESC"), "<=": (">=", "ASC"), "<": (">", "ASC")}
"""For each comparison of l with r how r is compared with l, and which way the nearest row comes first."""


def asof(bound: str, comparison: str, keys: str, shown: list[str], *, left: bool) -> tuple[str, str]:
    """An ASOF JOIN, and DuckDB's text for it with ties as they are documented."""
    items = ", ".join(f"r.{name} AS r_{name}" for name in shown)
    on = " AND ".join([*(f"l.{key} = r.{key}" for key in keys), f"l.{bound} {comparison} r.{bound}"])
    view = f"SELECT l.id, l.x, {items} FROM l ASOF {'LEFT ' if left else ''}JOIN r ON {on}"
    other, way = _NEAREST[comparison]
    tests = " AND ".join([*(f"r.{key} = l.{key}" for key in keys), f"r.{bound} {other} l.{bound}"])
    order = ", ".join([f"r.{bound} {way}", *(f"r.{name} ASC NULLS FIRST" for name in shown)])
    first = f"(SELECT * FROM r WHERE {tests} ORDER BY {order} LIMIT 1)"
    join = f"LEFT JOIN LATERAL {first} r ON TRUE" if left else f"JOIN LATERAL {first} r ON TRUE"
    return view, f"SELECT l.id, l.x, {items} FROM l {join}"


_ASOF = [
    asof(bound, comparison, keys, shown, left=left)
    for bound, keys, shown in [("x", "k", ["id", "s"]), ("f", "", ["d"]), ("s", "k", ["x"]), ("day", "k", ["f", "s"])]
    for comparison in _NEAREST
    for left in (True, False)
]

_MEETING = [
    "SELECT l.id, r.id AS other FROM l JOIN r ON l.x < r.x",
    "SELECT l.id, r.id AS other FROM l, r WHERE l.k = r.k AND l.x >= r.x AND r.f > 0",
    "SELECT l.s, r.d FROM l JOIN r ON l.s > r.s AND l.k = r.k",
    "SELECT l.id, r.id AS other FROM l JOIN r ON l.x BETWEEN r.x AND r.k",
    "SELECT l.id, r.id AS other FROM l JOIN r ON l.k = r.k AND r.d >= l.d AND r.d < l.f",
    "SELECT l.id, r.id AS other FROM l JOIN r ON l.day <= r.day AND l.x > r.x",
    "SELECT l.id, r.id AS other FROM l JOIN r ON l.x + 1 <= r.f",
    "SELECT l.id, r.id AS other FROM l JOIN r ON l.k = r.f AND l.x < r.x",
    "SELECT COUNT(*) AS n FROM l JOIN r ON l.x < r.x",
    "SELECT COUNT(*) AS n, SUM(l.x) AS a, SUM(r.k) AS b, AVG(r.x) AS c, COUNT(r.d) AS e, SUM(r.d) AS h "
    "FROM l JOIN r ON l.x <= r.x",
    "SELECT l.k, COUNT(*) AS n, SUM(r.d) AS a, COUNT(r.d) AS b, SUM(l.x) AS c FROM l JOIN r ON l.k = r.k AND l.f > r.f "
    "GROUP BY l.k",
    "SELECT l.id, COUNT(*) AS n, SUM(r.x) AS a, MIN(r.x) AS b FROM l JOIN r ON l.k = r.k AND l.x > r.x GROUP BY l.id",
    "SELECT l.id, COUNT(*) AS n, SUM(r.x) AS a FROM l JOIN r ON l.x > r.x GROUP BY l.id",
    "SELECT r.s, COUNT(l.d) AS n, SUM(l.d) AS a FROM l JOIN r ON l.k = r.k AND l.day >= r.day GROUP BY r.s",
    "SELECT l.k, COUNT(*) AS n FROM l JOIN r ON l.x BETWEEN r.x AND r.k GROUP BY l.k HAVING COUNT(*) > 1",
    "SELECT l.s, r.s AS other, SUM(l.x * r.x) AS a FROM l JOIN r ON l.x < r.x GROUP BY l.s, r.s",
    "SELECT r.k, SUM(r.x) AS a FROM l JOIN r ON l.k = r.k AND l.x < r.x GROUP BY r.k",
    "SELECT l.id, r.id AS other FROM l LEFT JOIN r ON l.k = r.k AND l.x < r.x",
    "SELECT l.id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.x > l.x)",
    "SELECT l.id FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.x > l.x AND r.k = l.k)",
    "SELECT a.id, b.id AS other FROM l a JOIN l b ON a.x < b.x AND a.k = b.k",
    "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS s FROM l a JOIN l b ON a.x < b.x AND a.k = b.k GROUP BY a.k",
    "SELECT l.id, t.id AS other, r.s FROM l JOIN r ON l.k = r.k AND l.x < r.x JOIN t ON t.k = r.k AND t.x >= l.x",
    "SELECT l.id, t.s FROM l JOIN t ON l.k = t.k JOIN r ON r.k = t.k AND r.f < l.f",
    "SELECT COUNT(*) AS n FROM l JOIN t ON l.id = t.id JOIN r ON l.x < r.x AND r.d > t.d",
    "SELECT DISTINCT l.k FROM l JOIN r ON l.x < r.x",
    "SELECT l.id, q.id AS other FROM l ASOF JOIN (SELECT id, k, x FROM r WHERE x > 1) q USING (k, x) WHERE l.id <> q.k",
]

_DUCK_TEXT = {
    _MEETING[-1]: "SELECT l.id, q.id AS other FROM l JOIN LATERAL (SELECT id, k, x FROM r WHERE x > 1 AND r.k = l.k "
    "AND r.x <= l.x ORDER BY x DESC, id LIMIT 1) q ON TRUE WHERE l.id <> q.k",
}


def _row(rng: random.Random, number: int) -> tuple[Any, ...]:
    return (
        number,
        rng.choice([1, 1, 2, 3, None]),
        rng.choice([*range(-2, 9), None]),
        rng.choice([0.25, -1.5, 2.0, 3.0, None]),
        rng.choice([Decimal("0.25"), Decimal("-3.50"), Decimal("1.00"), Decimal("2.75"), None]),
        rng.choice(["a", "b", "longer than eight", "longer than nine", "é", None]),
        rng.choice([*(date(2024, 2, 27) + timedelta(days=n) for n in range(6)), None]),
    )


def run_pairings(backend: str, seed: int, texts: list[tuple[str, str]], batches: int) -> None:
    rng = random.Random(seed)
    db, duck = make_database(backend), duckdb.connect()
    for table in _TABLES:
        db.create_table(table, _COLUMNS)
        duck.execute(f"CREATE TABLE {table} {_DUCK}")
    rows: dict[str, list[Any]] = {table: [] for table in _TABLES}
    made = [db.create_view(f"v{number}", text) for number, (text, _) in enumerate(texts)]
    changes = [view.changes() for view in made]
    heard: list[Counter[Any]] = [Counter(view) for view in made]
    for number in range(batches):
        steps: list[tuple[str, str, Any]] = []
        for table in _TABLES:
            held = rows[table]
            gone = [held.pop(rng.randrange(len(held))) for _ in range(min(len(held), rng.randrange(5)))]
            gone += [held.pop() for _ in range(len(held))] if number == batches - 2 and table == "r" else []
            new = [_row(rng, rng.randrange(40)) for _ in range(rng.randrange(7))]
            new += [rng.choice(new)] if new else []
            held += new
            steps += [("insert", table, new), ("delete", table, gone)]
        rng.shuffle(steps)
        in_one_batch(db, *[step for step in steps if step[0] == "insert"], *[s for s in steps if s[0] == "delete"])
        for table in _TABLES:
            duck.execute(f"DELETE FROM {table}")
            if rows[table]:
                duck.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)", rows[table])
        for place, (view, (text, other)) in enumerate(zip(made, texts, strict=True)):
            for change in changes[place]:
                heard[place].update(change)
            expected = Counter(map(normal, duck.execute(other).fetchall()))
            found = Counter(map(normal, view))
            assert expected == found, (text, expected - found, found - expected)
            assert Counter(list(view)) == +heard[place], text
    for view in made:
        view.verify()
    duck.close()


def _texts() -> list[tuple[str, str]]:
    return [*_ASOF, *((text, _DUCK_TEXT.get(text, text)) for text in _MEETING)]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "part"), [("native", 0), ("native", 2), ("pure", 1), ("pure", 3)])
def test_pairs_are_those_of_duckdb_after_each_batch(backend: str, part: int) -> None:
    run_pairings(backend, part, _texts()[part::4], 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("backend", BACKENDS)
def test_pairs_are_those_of_duckdb_for_longer(backend: str, seed: int) -> None:
    run_pairings(backend, seed, random.Random(seed).sample(_texts(), 12), 15)


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("l", {"id": "int", "k": "int", "x": "int"})
    made.create_table("r", {"k": "int", "x": "int", "price": "int"})
    return made


def test_a_changed_right_row_changes_only_the_left_rows_up_to_the_next_one(db: Database) -> None:
    view = db.create_view("v", "SELECT l.id, r.price FROM l ASOF JOIN r ON l.k = r.k AND l.x >= r.x")
    db.insert("l", [(n, 1, n) for n in range(100)])
    db.insert("r", [(1, n, n) for n in range(0, 100, 10)])
    changes = view.changes()
    db.insert("r", [(1, 47, 1_000)])
    expected = {(n, 40): -1 for n in (47, 48, 49)} | {(n, 1_000): 1 for n in (47, 48, 49)}
    assert [expected] == [dict(change) for change in changes]


def _operations(db: Database) -> int:
    states = db._runtime.catalog.views.values()
    return sum(getattr(state.group, "operations", 0) for state in states)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("SELECT l.id, r.price FROM l ASOF JOIN r ON l.k = r.k AND l.x >= r.x", "l"),
        ("SELECT l.id, r.price FROM l ASOF JOIN r ON l.k = r.k AND l.x >= r.x", "r"),
        ("SELECT COUNT(*) AS n, SUM(r.price) AS s FROM l JOIN r ON l.k = r.k AND l.x >= r.x", "l"),
        ("SELECT COUNT(*) AS n, SUM(r.price) AS s FROM l JOIN r ON l.k = r.k AND l.x >= r.x", "r"),
        ("SELECT l.k, COUNT(*) AS n FROM l JOIN r ON l.x < r.x GROUP BY l.k", "l"),
    ],
)
def test_a_row_compares_few_others_however_many_there_are(db: Database, text: str, table: str) -> None:
    db.create_view("v", text)
    counted = []
    for size in (500, 8_000):
        db.insert("l", [(size + n, 1, size + n) for n in range(size)])
        db.insert("r", [(1, size + n, 1) for n in range(size)])
        before = _operations(db)
        db.insert(table, [(3 * size, 1, 2 * size)] if table == "l" else [(1, 2 * size, 5)])
        counted.append(_operations(db) - before)
    assert counted[1] <= counted[0] + 60


def test_explain_says_what_a_row_of_each_side_costs(db: Database) -> None:
    def notes(text: str) -> str:
        return " ".join(str(db.create_view(f"v{len(list(db.views))}", text).explain()).split())

    rows = "FROM l JOIN r ON l.k = r.k AND l.x < r.x"
    assert "update O(log N) delay" in notes(f"SELECT l.k, COUNT(*) AS n, SUM(r.price) AS s {rows} GROUP BY l.k")
    assert "each of its partners in l" in notes(f"SELECT l.id, COUNT(*) AS n {rows} GROUP BY l.id")
    assert "the other one is a filter" in notes("SELECT l.id, r.price FROM l JOIN r ON l.x BETWEEN r.x AND r.price")
    nearest = notes("SELECT l.id, r.price FROM l ASOF LEFT JOIN r ON l.k = r.k AND l.x >= r.x")
    assert "the worst of l O(log N), r O(N log N)" in nearest


def test_pairs_are_there_in_a_directory_that_is_opened_again(tmp_path: Path) -> None:
    texts = {
        "v": "SELECT l.id, r.price FROM l ASOF LEFT JOIN r ON l.k = r.k AND l.x >= r.x",
        "w": "SELECT l.k, COUNT(*) AS n, SUM(r.price) AS s FROM l JOIN r ON l.k = r.k AND l.x > r.x GROUP BY l.k",
    }
    with Database(tmp_path / "db") as db:
        db.create_table("l", {"id": "int", "k": "int", "x": "int"})
        db.create_table("r", {"k": "int", "x": "int", "price": "int"})
        for name, text in texts.items():
            db.create_view(name, text)
        db.insert("l", [(1, 1, 5), (2, 1, 9), (3, 2, 1), (4, None, 1)])
        db.insert("r", [(1, 4, 10), (1, 7, 20), (None, 0, 30)])
    with Database(tmp_path / "db") as db:
        assert [(1, 10), (2, 20), (3, None), (4, None)] == sorted(db.view("v"), key=repr)
        db.delete("r", [(1, 7, 20)])
        assert [(1, 10), (2, 10), (3, None), (4, None)] == sorted(db.view("v"), key=repr)
        assert [(1, 2, 20)] == list(db.view("w"))
        for name in texts:
            db.view(name).verify()


def test_a_refused_batch_leaves_no_pair_behind(db: Database) -> None:
    view = db.create_view("v", "SELECT l.k, SUM(r.price) AS s FROM l JOIN r ON l.k = r.k AND l.x >= r.x GROUP BY l.k")
    db.insert("l", [(n, 1, 1) for n in range(4)])
    db.insert("r", [(1, 1, 5)])
    with pytest.raises(IvmeError, match="does not fit"):
        db.insert("r", [(1, 0, 2**62)])
    assert [(1, 20)] == list(view)
    view.verify()
    db.insert("r", [(1, 0, 1)])
    assert [(1, 24)] == list(view)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT l.id FROM l ASOF JOIN r ON l.k = r.k", "one inequality"),
        ("SELECT l.id FROM l ASOF JOIN r ON l.k = r.k AND l.x > r.x AND l.x < r.price", "one inequality"),
        ("SELECT l.id FROM l ASOF JOIN r ON l.x + r.x > 3 AND l.k >= r.k", "one inequality"),
        ("SELECT l.id FROM l ASOF FULL JOIN r ON l.x > r.x", "ASOF FULL JOIN is not supported"),
        ("SELECT l.id FROM l ASOF JOIN r", "needs ON or USING"),
    ],
)
def test_an_asof_join_that_is_none_is_refused_with_a_place(db: Database, text: str, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words) as raised:
        db.create_view("v", text)
    assert raised.value.position is not None
