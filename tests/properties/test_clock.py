"""The clock of a database: rows that expire and NOW() in WHERE, under random batches and advances, against DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError
from tests.databases import in_one_batch, make_database

_START = datetime(2024, 2, 27, 23)
_VIEWS = {
    "SELECT id, c FROM o": "ts + INTERVAL '7' DAY",
    "SELECT c, COUNT(*) AS n, SUM(id) AS s, MAX(id) AS m FROM o GROUP BY c": "ts + INTERVAL '3' DAY",
    "SELECT o.id, d.name FROM o JOIN d ON o.c = d.c": "o.ts + INTERVAL '5' DAY",
    "SELECT COUNT(*) AS n, SUM(id) AS s FROM o WHERE ts > NOW() - INTERVAL '2' DAY": None,
    "SELECT id FROM o WHERE ts <= NOW()": None,
    "SELECT id FROM o WHERE ts BETWEEN NOW() - INTERVAL '4' DAY AND NOW() - INTERVAL '1' DAY": None,
    "SELECT * FROM o WHERE day >= CURRENT_TIMESTAMP - INTERVAL '3' DAY": None,
    "SELECT d.c, COUNT(o.id) AS n FROM d LEFT JOIN (SELECT * FROM o WHERE ts > NOW()) o USING (c) GROUP BY d.c": None,
    "SELECT c FROM o WHERE ts > NOW() - INTERVAL '1' DAY UNION ALL SELECT c FROM d": None,
    "SELECT id, ts FROM o WHERE ts > NOW() - INTERVAL '6' DAY ORDER BY ts DESC, id LIMIT 3": None,
}


def _in_duckdb(text: str, expire: str | None, now: datetime) -> str:
    moment = f"TIMESTAMP '{now}'"
    if expire is not None:
        condition = f" WHERE COALESCE({expire} > {moment}, TRUE)"
        head, by, tail = text.partition(" GROUP BY")
        return head + condition + by + tail
    return text.replace("NOW()", moment).replace("CURRENT_TIMESTAMP", moment)


def _row(rng: random.Random, now: datetime) -> tuple[Any, ...]:
    moment = now + timedelta(hours=rng.randrange(-240, 120))
    ts = rng.choice([moment, moment, moment, None])
    return rng.randrange(30), rng.choice([1, 2, 3, None]), ts, rng.choice([moment.date(), None])


def run_clock(backend: str, seed: int, batches: int) -> None:
    rng = random.Random(seed)
    db, duck = make_database(backend), duckdb.connect()
    duck.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    db.create_table("o", {"id": "int", "c": "int", "ts": "timestamp", "day": "date"})
    db.create_table("d", {"c": "int", "name": "string"})
    duck.execute(
        "CREATE TABLE o (id BIGINT, c BIGINT, ts TIMESTAMP, day DATE); CREATE TABLE d (c BIGINT, name VARCHAR)"
    )
    names = [(1, "a"), (2, "b")]
    db.insert("d", names)
    duck.executemany("INSERT INTO d VALUES (?, ?)", names)
    db.advance(_START)
    made = {}
    for number, (text, expire) in enumerate(_VIEWS.items()):
        made[text] = db.create_view(f"v{number}", text, **({} if expire is None else {"expire": expire}))
    changes = {text: view.changes() for text, view in made.items()}
    heard: dict[str, Counter[Any]] = {text: Counter(view) for text, view in made.items()}
    rows: list[Any] = []
    now = _START
    for _ in range(batches):
        if rng.random() < 0.5:
            now += timedelta(hours=rng.randrange(60))
            db.advance(now)
        new = [_row(rng, now) for _ in range(rng.randrange(6))]
        rows += new
        gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randrange(4)))]
        in_one_batch(db, ("insert", "o", new), ("delete", "o", gone))
        duck.execute("DELETE FROM o")
        if rows:
            duck.executemany("INSERT INTO o VALUES (?, ?, ?, ?)", rows)
        for text, view in made.items():
            for change in changes[text]:
                heard[text].update(change)
            expected = Counter(duck.execute(_in_duckdb(text, _VIEWS[text], now)).fetchall())
            assert expected == Counter(view), (text, now)
            assert Counter(view) == +heard[text], text
    for view in made.values():
        view.verify()
    duck.close()


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "seed"), [("native", 1), ("pure", 2)])
def test_views_of_the_clock_are_those_of_duckdb_at_that_time(backend: str, seed: int) -> None:
    run_clock(backend, seed, 10)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("backend", ["native", "pure"])
def test_views_of_the_clock_are_those_of_duckdb_for_longer(backend: str, seed: int) -> None:
    run_clock(backend, seed, 40)


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("o", {"id": "int", "ts": "timestamp"})
    return made


def _days(*days: int) -> list[Any]:
    return [(day, datetime(2024, 1, day)) for day in days]


def test_only_rows_that_leave_are_told(db: Database) -> None:
    view = db.create_view("v", "SELECT id FROM o", expire="ts + INTERVAL '7' DAY")
    db.insert("o", _days(*range(1, 21)))
    changes = view.changes()
    db.advance(datetime(2024, 1, 10))
    db.advance(datetime(2024, 1, 10))
    assert [{(1,): -1, (2,): -1, (3,): -1}] == [dict(change) for change in changes]


def test_late_rows_never_enter(db: Database) -> None:
    view = db.create_view("v", "SELECT id FROM o", expire="ts + INTERVAL '7' DAY")
    db.advance(datetime(2024, 1, 10))
    changes = view.changes()
    db.insert("o", _days(1))
    assert [] == list(view)
    assert [] == list(changes)
    assert 1 == len(list(db.table("o")))


def test_the_clock_does_not_go_back(db: Database) -> None:
    view = db.create_view("v", "SELECT id FROM o", expire="ts")
    db.insert("o", _days(5, 6))
    db.advance(datetime(2024, 1, 5))
    with pytest.raises(DataError, match="does not go back"):
        db.advance(datetime(2024, 1, 4))
    assert datetime(2024, 1, 5) == db.now
    assert [(6,)] == list(view)


def test_a_moment_with_a_time_zone_is_the_one_of_utc(db: Database) -> None:
    db.advance(datetime(2024, 1, 5, 2, tzinfo=timezone(timedelta(hours=2))))
    assert datetime(2024, 1, 5) == db.now
    db.advance(datetime(2024, 1, 5, 1, tzinfo=UTC))
    assert datetime(2024, 1, 5, 1) == db.now


def test_a_clock_moves_by_moments_only(db: Database) -> None:
    with pytest.raises(DataError, match="a datetime"):
        db.advance("2024-01-01")  # type: ignore[arg-type]
    assert db.now is None


def test_the_time_is_there_in_a_directory_that_is_opened_again(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as db:
        db.create_table("o", {"id": "int", "ts": "timestamp"})
        db.create_view("v", "SELECT id FROM o", expire="ts + INTERVAL '7' DAY")
        db.insert("o", _days(1, 5, 9))
        db.advance(datetime(2024, 1, 10))
    with Database(tmp_path / "db") as db:
        assert datetime(2024, 1, 10) == db.now
        assert [(5,), (9,)] == sorted(db.view("v"))
        db.checkpoint()
        db.advance(datetime(2024, 1, 13))
    with Database(tmp_path / "db") as db:
        assert [(9,)] == list(db.view("v"))
        with pytest.raises(DataError, match="does not go back"):
            db.advance(datetime(2024, 1, 12))


def test_moving_on_costs_the_rows_that_leave(db: Database) -> None:
    db.create_view("v", "SELECT id FROM o", expire="ts + INTERVAL '7' DAY")
    counted = []
    for size in (1_000, 8_000):
        db.insert("o", [(n, datetime(2025, 1, 1) + timedelta(seconds=n)) for n in range(size)])
        states = db._runtime.catalog.views.values()
        before = sum(getattr(state.group, "operations", 0) for state in states)
        db.advance(datetime(2024, 1, 1) + timedelta(seconds=size))
        counted.append(sum(getattr(state.group, "operations", 0) for state in states) - before)
    assert counted[1] <= counted[0] + 40


@pytest.mark.parametrize(
    ("query", "expire", "words"),
    [
        ("SELECT id FROM o", "ts +", "must be an SQL expression"),
        ("SELECT id FROM o", 7, "must be an SQL expression"),
        ("SELECT id FROM o", "(SELECT 1)", "must be an SQL expression"),
        ("SELECT id FROM o", "moment", "there is no column 'moment'"),
        ("SELECT id FROM o", "id", "int and timestamp"),
        ("SELECT id FROM o UNION ALL SELECT id FROM o", "ts", "for a single SELECT"),
        ("SELECT id, NOW() AS n FROM o", None, "not the same each time"),
    ],
)
def test_what_is_no_expiry_is_refused(db: Database, query: str, expire: Any, words: str) -> None:
    with pytest.raises(IvmeError, match=words):
        db.create_view("v", query, **({} if expire is None else {"expire": expire}))
    assert () == db.views


def test_a_parameter_may_be_shifted(db: Database) -> None:
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM o WHERE ts > :now - INTERVAL '7' DAY")
    db.insert("o", _days(*range(1, 21)))
    assert [(18,)] == list(view(now=datetime(2024, 1, 9)))
    view.verify()


def test_the_first_reader_of_a_view_with_now_is_told_that_the_clock_was_never_set() -> None:
    db = Database()
    db.create_table("click", {"page": "string", "ts": "timestamp"})
    db.insert("click", [("/", datetime(2026, 3, 1))])
    text = "SELECT page FROM click WHERE ts > NOW() - INTERVAL '7' DAY"
    week, other = (db.create_view(name, text) for name in ("week", "other"))
    with pytest.warns(UserWarning, match=r"view week compares rows with NOW\(\), which is 1970 .* call db.advance"):
        assert len(list(week)) == 1
    assert len(list(week)) == 1, "once is enough"
    db.advance(datetime(2026, 3, 20))
    assert list(other) == [], "the clock is set"
