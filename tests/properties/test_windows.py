"""Window functions under random batches, against DuckDB: rows, changes, and the view's own check."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import duckdb
import pytest

from ivme.database import Database
from ivme.errors import DataError
from ivme.views.window_view import WindowView
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.properties.window_queries import COLUMNS, normal, random_row, window_select


def run_windows(backend: str, seed: int, views: int, batches: int) -> None:
    rng = random.Random(seed)
    db, duck = make_database(backend), duckdb.connect()
    db.create_table("r", COLUMNS)
    db.create_table("s", {"k": "int"})
    duck.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    duck.execute("""CREATE TABLE r (id BIGINT, g BIGINT, x BIGINT, f DOUBLE, d DECIMAL(10, 2), name VARCHAR, day DATE,
        moment TIMESTAMP); CREATE TABLE s (k BIGINT)""")
    has_copies = seed % 3 == 0
    texts = [window_select(rng, 1 if has_copies else 3) for _ in range(views)]
    made = [db.create_view(f"v{number}", text) for number, text in enumerate(texts)]
    changes = [view.changes() for view in made]
    heard: list[Counter[Any]] = [Counter() for _ in made]
    rows: list[Any] = []
    keys: list[Any] = []
    fresh = rng.sample(range(10_000), 500)
    for _ in range(batches):
        new = [random_row(rng, fresh.pop(), 200) for _ in range(rng.randrange(7))]
        new += [rng.choice(new)] if new and has_copies else []
        gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randrange(6)))]
        more = [(rng.choice([1, 2, None]),)] if has_copies else [(len(keys) + 1,)]
        keys += more
        in_one_batch(db, ("insert", "r", new), ("delete", "r", gone), ("insert", "s", more))
        rows += new
        duck.execute("DELETE FROM r")
        duck.executemany("INSERT INTO s VALUES (?)", more)
        if rows:
            duck.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        for number, (view, text) in enumerate(zip(made, texts, strict=True)):
            for change in changes[number]:
                heard[number].update(change)
            expected = Counter(map(normal, duck.execute(text).fetchall()))
            found = Counter(map(normal, view))
            assert expected == found, (text, expected - found, found - expected)
            assert Counter(list(view)) == +heard[number], text
    for view in made:
        view.verify()
    duck.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_are_those_of_duckdb_after_each_batch(backend: str, seed: int) -> None:
    run_windows(backend, seed, 5, 5)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_are_those_of_duckdb_for_longer(backend: str, seed: int) -> None:
    run_windows(backend, seed, 10, 15)


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("r", COLUMNS)
    return made


def test_a_sliding_frame_changes_only_the_rows_next_to_a_changed_one(db: Database) -> None:
    text = "SELECT id, SUM(x) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM r"
    view = db.create_view("v", text)
    db.insert("r", _filled((n, 1, 1) for n in range(0, 100, 2)))
    changes = view.changes()
    db.insert("r", _filled([(51, 1, 5)]))
    assert [{(51, 6): 1, (52, 2): -1, (52, 6): 1}] == [dict(change) for change in changes]


_FRAMES = [
    "ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "PARTITION BY g ORDER BY x DESC RANGE BETWEEN 2 PRECEDING AND CURRENT ROW",
    "PARTITION BY g ORDER BY x RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "PARTITION BY g ORDER BY x RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    "PARTITION BY g ORDER BY d RANGE BETWEEN 1.5 PRECEDING AND 0.25 FOLLOWING",
    "PARTITION BY g ORDER BY day DESC RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING",
    "PARTITION BY g ORDER BY moment RANGE BETWEEN INTERVAL 3 HOUR PRECEDING AND CURRENT ROW",
    "PARTITION BY g ORDER BY moment DESC NULLS FIRST RANGE BETWEEN INTERVAL 5 HOUR PRECEDING AND CURRENT ROW",
]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_frames_of_values_are_those_of_duckdb_after_each_batch(backend: str) -> None:
    rng = random.Random(5)
    db, duck = make_database(backend), duckdb.connect()
    db.create_table("r", COLUMNS)
    duck.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    duck.execute("""CREATE TABLE r (id BIGINT, g BIGINT, x BIGINT, f DOUBLE, d DECIMAL(10, 2), name VARCHAR, day DATE,
        moment TIMESTAMP)""")
    texts = [f"SELECT id, SUM(id) OVER w AS s, MIN(x) OVER w AS m FROM r WINDOW w AS ({frame})" for frame in _FRAMES]
    made = [db.create_view(f"v{number}", text) for number, text in enumerate(texts)]
    changes = [view.changes() for view in made]
    heard: list[Counter[Any]] = [Counter() for _ in made]
    rows: list[Any] = []
    for batch in range(8):
        new = [random_row(rng, 100 * batch + number, 200) for number in range(rng.randrange(12))]
        gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randrange(6)))]
        in_one_batch(db, ("insert", "r", new), ("delete", "r", gone))
        rows += new
        duck.execute("DELETE FROM r")
        if rows:
            duck.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        for number, (view, text) in enumerate(zip(made, texts, strict=True)):
            for change in changes[number]:
                heard[number].update(change)
            assert Counter(duck.execute(text).fetchall()) == Counter(view), text
            assert Counter(view) == +heard[number], text
    for view in made:
        view.verify()
    duck.close()


def test_a_frame_of_values_reads_only_the_rows_around_a_changed_one(db: Database) -> None:
    text = "SELECT id, SUM(x) OVER (ORDER BY id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM r"
    view = db.create_view("v", text)
    db.insert("r", _filled((n, 1, 1) for n in range(0, 1_000, 2)))
    changes = view.changes()
    group = db._runtime.catalog.views["v#2"].group
    assert isinstance(group, WindowView)
    read: list[int] = []
    values = group._values

    def counted(*given: Any) -> Any:
        found = values(*given)
        read.append(len(found[1]))
        return found

    with patch.object(group, "_values", counted):
        db.insert("r", _filled([(501, 1, 5)]))
    assert [{(501, 6): 1, (502, 2): -1, (502, 7): 1}] == [dict(change) for change in changes]
    assert max(read) <= 4


def test_a_frame_of_values_at_the_ends_of_the_numbers_is_right(db: Database) -> None:
    text = "SELECT id, COUNT(*) OVER (ORDER BY id RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS n FROM r"
    view = db.create_view("v", text)
    most = 2**63 - 1
    for number in (most, most - 1, -most, -most + 5, 0, 1):
        db.insert("r", _filled([(number, 1, 1)]))
    assert {most: 2, most - 1: 2, -most: 1, -most + 5: 1, 0: 2, 1: 2} == dict(view)
    view.verify()


def test_a_running_sum_at_the_end_compares_few_rows(db: Database) -> None:
    db.create_view("v", "SELECT id, SUM(x) OVER (PARTITION BY g ORDER BY id) AS s FROM r")
    counted = []
    for size in (1_000, 8_000):
        start = 10_000 * size
        db.insert("r", _filled((start + n, 1, 1) for n in range(size)))
        before = _operations(db)
        db.insert("r", _filled([(start + size, 1, 1)]))
        counted.append(_operations(db) - before)
    assert counted[1] <= counted[0] + 40


def test_explain_says_how_far_a_change_reaches(db: Database) -> None:
    def notes(call: str) -> str:
        view = db.create_view(f"v{len(list(db.views))}", f"SELECT id, {call} AS w FROM r")
        return str(view.explain().blocks[1].explanation.notes)

    assert "2 rows around a changed one" in notes("LAG(x) OVER (ORDER BY id)")
    assert "a row at its end costs O(log N)" in notes("SUM(x) OVER (PARTITION BY g ORDER BY id)")
    assert "read from its first row on" in notes("MAX(x) OVER (PARTITION BY g ORDER BY id)")
    assert "whole partition" in notes("SUM(x) OVER (PARTITION BY g)")
    assert "whose frame has a changed one" in notes(
        "SUM(x) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"
    )
    assert "O(log N)" == str(
        db.create_view("v", "SELECT id, LEAD(x, 2) OVER (ORDER BY id) AS w FROM r").explain().update
    )


def test_a_parameter_may_be_what_windows_are_partitioned_by(db: Database) -> None:
    view = db.create_view("v", "SELECT id, SUM(x) OVER (PARTITION BY g ORDER BY id) AS s FROM r WHERE g = :g AND x > 0")
    db.insert("r", _filled([(1, 1, 2), (2, 1, 3), (3, 2, 4), (4, 1, -1)]))
    assert [(1, 2), (2, 5)] == sorted(view(g=1))
    assert [] == list(view(g=7))


def test_a_sum_beyond_64_bits_changes_nothing(db: Database) -> None:
    view = db.create_view("v", "SELECT id, SUM(x) OVER (ORDER BY id) AS s FROM r")
    db.insert("r", _filled([(1, 1, 2**62)]))
    with pytest.raises(DataError, match="does not fit int"):
        db.insert("r", _filled([(2, 1, 2**62)]))
    assert [(1, 2**62)] == list(view)
    db.insert("r", _filled([(2, 1, -5)]))
    assert [(1, 2**62), (2, 2**62 - 5)] == sorted(view)


def test_windows_of_views_on_views_follow(db: Database) -> None:
    db.create_view("inner_view", "SELECT g, SUM(x) AS s FROM r GROUP BY g")
    view = db.create_view("v", "SELECT g, s, SUM(s) OVER (ORDER BY g) AS total FROM inner_view")
    outer = db.create_view("w", "SELECT MAX(total) AS m FROM v")
    db.insert("r", _filled([(1, 1, 2), (2, 1, 3), (3, 2, 4)]))
    assert [(1, 5, 5), (2, 4, 9)] == sorted(view)
    db.delete("r", _filled([(2, 1, 3)]))
    assert [(6,)] == list(outer)


def _filled(rows: Iterable[tuple[int, int, int]]) -> list[Any]:
    return [(each, g, x, None, None, None, None, None) for each, g, x in rows]


def _operations(db: Database) -> int:
    return sum(getattr(state.group, "operations", 0) for state in db._runtime.catalog.views.values())
