"""SELECTs that are asked again are answered by the plan of the first time, and as if they were planned anew."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import duckdb
import pytest

from ivme import compile as compiler
from ivme.database import Database
from ivme.definitions import reading_once
from ivme.errors import DataError, QueryError

TEXTS = [
    "SELECT a, b FROM r WHERE b = 1",
    "SELECT r.a, SUM(s.c) AS t FROM r JOIN s ON r.b = s.b GROUP BY r.a",
    "SELECT COUNT(*) AS n FROM r x, r y, r z WHERE x.b = y.a AND y.b = z.a AND z.b = x.a",
    "SELECT r.a, s.c FROM r LEFT JOIN s ON r.b = s.b",
    "SELECT a FROM r EXCEPT SELECT b FROM s",
    "SELECT a, RANK() OVER (ORDER BY b) AS n FROM r",
    "SELECT DISTINCT r.a FROM r JOIN s ON r.b = s.b ORDER BY a LIMIT 2",
]


class Planned:
    """Counts the views that are planned."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, request: Any) -> Any:
        self.count += 1
        return _compile(request)


_compile = compiler.compile_view


def _rows(found: list[Any]) -> Counter[Any]:
    return Counter(map(tuple, found))


def test_answers_follow_the_tables_and_views_that_come_and_go() -> None:
    rng, db, other = random.Random(3), Database(), duckdb.connect()
    for statement in ("CREATE TABLE r (a BIGINT, b BIGINT)", "CREATE TABLE s (b BIGINT, c BIGINT)"):
        db.sql(statement)
        other.execute(statement)
    with patch("ivme.compile.compile_view", planned := Planned()):
        for step in range(8):
            rows = [(rng.randrange(4), rng.randrange(4)) for _ in range(rng.randrange(1, 12))]
            table = rng.choice("rs")
            db.insert(table, rows)
            other.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
            if step % 4 == 1:
                db.create_view(f"v{step}", TEXTS[step % len(TEXTS)] + " -- a view that shares maps")
            for text in TEXTS:
                assert _rows(db.sql(text).rows()) == _rows(other.execute(text).fetchall()), text
                if step % 5 == 4:  # within a transaction, whose changes are not made
                    db.sql("BEGIN")
                    db.sql("INSERT INTO r VALUES (1, 1), (1, 2), (2, 1)")
                    other.execute("BEGIN")
                    other.execute("INSERT INTO r VALUES (1, 1), (1, 2), (2, 1)")
                    assert _rows(db.sql(text).rows()) == _rows(other.execute(text).fetchall()), text
                    db.sql("ROLLBACK")
                    other.execute("ROLLBACK")
    assert planned.count < 8 * len(TEXTS) / 2


def test_what_is_declared_anew_is_planned_anew() -> None:
    db = Database()
    db.sql("CREATE TABLE r (a INT)")
    db.sql("INSERT INTO r VALUES (1), (2)")
    text = "SELECT SUM(a) + 0 AS n FROM r"
    assert [(3,)] == db.sql(text).rows()
    db.sql("CREATE OR REPLACE TABLE r (b INT, a DECIMAL(8, 2))")
    db.sql("INSERT INTO r VALUES (1, 2.50)")
    assert "2.50" == str(db.sql(text).rows()[0][0])
    db.create_function("twice", lambda x: 2 * x, arguments=["int"], returns="int")
    assert [(2,)] == db.sql("SELECT twice(b) AS t FROM r").rows()
    db.drop_function("twice")
    db.create_function("twice", lambda x: 3 * x, arguments=["int"], returns="int")
    assert [(3,)] == db.sql("SELECT twice(b) AS t FROM r").rows()


def test_a_plan_is_used_again_until_tables_have_grown_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_once, "_MOST_PLANS", 2)
    db = Database()
    db.sql("CREATE TABLE r (a INT)")
    db.sql("INSERT INTO r VALUES (1)")

    def planned(*texts: str) -> int:
        with patch("ivme.compile.compile_view", counted := Planned()):
            for text in texts:
                db.sql(text)
        return counted.count

    one, two, three = (f"SELECT a + {n} AS x FROM r" for n in range(3))
    assert 1 == planned(one, one, one)
    assert 0 == planned(one)
    assert 2 == planned(two, three, two, three)
    assert 1 == planned(one)
    db.insert("r", [(n,) for n in range(1000)])
    assert 1 == planned(one, one)


VALUES: list[Any] = [
    *(1, True, 1.0, Decimal(1), Decimal("1.0"), Decimal("1.00"), "1", b"1", None, -1, 0.0, -0.0),
    *(datetime.date(2024, 2, 1), datetime.datetime(2024, 2, 1), "2024-02-01"),
]


@pytest.mark.parametrize("text", ["SELECT a, :x AS x FROM r", "SELECT SUM(a) AS s, MAX(:x) AS x FROM r GROUP BY a"])
def test_values_of_parameters_that_are_equal_in_python_have_plans_of_their_own(text: str) -> None:
    def answer(db: Database, value: Any) -> tuple[Any, ...]:
        try:
            found = db.sql(text, x=value).to_arrow()
        except (QueryError, DataError) as error:
            return type(error), str(error)
        return found.schema, [[repr(each) for each in column.to_pylist()] for column in found.columns]

    def made() -> Database:
        db = Database()
        db.sql("CREATE TABLE r (a INT)")
        db.sql("INSERT INTO r VALUES (1)")
        return db

    fresh = [answer(made(), value) for value in VALUES]
    db = made()
    for _ in range(2):
        assert fresh == [answer(db, value) for value in VALUES]


def test_a_plan_is_used_again_for_the_same_values_of_parameters() -> None:
    db = Database()
    db.sql("CREATE TABLE r (a INT, b INT)")
    db.sql("INSERT INTO r VALUES (1, 10), (2, 20), (3, 30)")
    text = "SELECT SUM(b) AS s FROM r WHERE a >= :low AND a IN (:some)"
    with patch("ivme.compile.compile_view", counted := Planned()):
        for _ in range(3):
            assert [(50,)] == db.sql(text, low=2, some=[1, 2, 3]).rows()
            assert [(30,)] == db.sql(text, low=2, some=[1, 3]).rows()
        assert 2 == counted.count
        db.sql("INSERT INTO r VALUES (2, 5)")
        assert [(55,)] == db.sql(text, low=2, some=[1, 2, 3]).rows()
        assert 2 == counted.count
        db.sql("ALTER TABLE r ADD COLUMN c INT")
        assert [(55,)] == db.sql(text, low=2, some=[1, 2, 3]).rows()
        assert 3 == counted.count
