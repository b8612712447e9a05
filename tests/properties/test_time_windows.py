"""Windows of time in GROUP BY under random batches, against DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from ivme.errors import UnsupportedError
from tests.databases import BACKENDS, in_one_batch, make_database

_BUCKET = "time_bucket(INTERVAL '5 minutes', ts, TIMESTAMP '1970-01-01')"
QUERIES = {
    "SELECT window.start, window.end AS e, COUNT(*) AS n FROM r GROUP BY window(ts, '5 minutes')": f"""SELECT
        {_BUCKET}, {_BUCKET} + INTERVAL 5 MINUTE, COUNT(*) FROM r GROUP BY 1, 2""",
    """SELECT g, TUMBLE(ts, INTERVAL '5' MINUTE) AS w, SUM(x) AS s FROM r
        GROUP BY g, TUMBLE(ts, INTERVAL '5' MINUTE)""": f"""SELECT g, {_BUCKET}, SUM(x) FROM r GROUP BY 1, 2""",
    """SELECT TUMBLE_END(ts, INTERVAL '5' MINUTE) AS w, MAX(x) AS m FROM r WHERE x > 1
        GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE) HAVING COUNT(*) > 1""": f"""SELECT {_BUCKET} + INTERVAL 5 MINUTE,
        MAX(x) FROM r WHERE x > 1 GROUP BY 1 HAVING COUNT(*) > 1""",
    "SELECT window.start AS w, COUNT(*) AS n FROM r GROUP BY window(ts, '15 minutes', '5 minutes')": f"""SELECT
        {_BUCKET} - n * INTERVAL 5 MINUTE, COUNT(*) FROM r, (VALUES (0), (1), (2)) h(n) GROUP BY 1""",
    """SELECT g, HOP_START(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE) AS w, COUNT(x) AS n FROM r
        GROUP BY g, HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)""": f"""SELECT g,
        {_BUCKET} - n * INTERVAL 5 MINUTE, COUNT(x) FROM r, (VALUES (0), (1)) h(n) GROUP BY 1, 2""",
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_of_time_are_those_of_duckdb_after_each_batch(backend: str) -> None:
    rng, db, duck = random.Random(7), make_database(backend), duckdb.connect()
    db.create_table("r", {"g": "int", "x": "int", "ts": "timestamp"})
    duck.execute("CREATE TABLE r (g BIGINT, x BIGINT, ts TIMESTAMP)")
    views = [db.create_view(f"v{n}", text) for n, text in enumerate(QUERIES)]
    rows: list[Any] = []
    for _ in range(6):
        moments = [datetime(1969, 12, 31, 23, 50) + timedelta(seconds=rng.randrange(2400)) for _ in range(6)]
        new = [
            (rng.randrange(2), rng.choice([1, 2, 3, None]), rng.choice([moment, moment, None])) for moment in moments
        ]
        gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), 3))]
        in_one_batch(db, ("insert", "r", new), ("delete", "r", gone))
        rows += new
        duck.execute("DELETE FROM r")
        duck.executemany("INSERT INTO r VALUES (?, ?, ?)", rows)
        for view, (text, plain) in zip(views, QUERIES.items(), strict=True):
            with_moments = plain.replace("FROM r", "FROM (FROM r WHERE ts IS NOT NULL) r")
            assert Counter(duck.execute(with_moments).fetchall()) == Counter(list(view)), text
    for view in views:
        view.verify()
    duck.close()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("window(ts, '5 months')", "not a length of time"),
        ("window(ts, x)", "not a length of time"),
        ("window(ts, 'soon')", "not a length of time"),
        ("window(ts, '')", "not a length of time"),
        ("window(ts, '٥ minutes')", "not a length of time"),
        ("TUMBLE(ts, INTERVAL '1' MONTH)", "in days or less"),
        ("TUMBLE(ts)", "takes a moment"),
        ("HOP(ts, INTERVAL '7' MINUTE, INTERVAL '10' MINUTE)", "multiple of its slide"),
    ],
)
def test_other_windows_of_time_are_refused_by_name(call: str, message: str) -> None:
    db = Database()
    db.create_table("r", {"x": "int", "ts": "timestamp"})
    with pytest.raises(UnsupportedError, match=message):
        db.create_view("v", f"SELECT COUNT(*) AS n FROM r GROUP BY {call}")


def test_a_window_of_spark_is_no_column_by_itself() -> None:
    db = Database()
    db.create_table("r", {"x": "int", "ts": "timestamp"})
    with pytest.raises(UnsupportedError, match="is a struct"):
        db.create_view(
            "v", "SELECT window(ts, '5 minutes') AS w, COUNT(*) AS n FROM r GROUP BY window(ts, '5 minutes')"
        )
    view = db.create_view("v", "SELECT window(ts, '1 hour').end AS w FROM r")
    db.insert("r", [(1, datetime(2024, 1, 1, 9, 59))])
    assert [(datetime(2024, 1, 1, 10),)] == list(view)
