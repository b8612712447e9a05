"""NOW(), `expire` and `advance` over shards: the rows of the embedded database, at each moment."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.errors import DataError
from tests.sharded_databases import local_database, reopened

VIEWS = {
    "rows": "SELECT k, x FROM R WHERE ts > NOW() - INTERVAL '7' DAY",
    "groups": "SELECT k, SUM(x) AS s FROM R WHERE ts > NOW() - INTERVAL '7' DAY GROUP BY k",
    "joined": "SELECT R.k, COUNT(*) AS n FROM R JOIN S ON R.k = S.k WHERE R.ts > NOW() GROUP BY R.k",
    "total": "SELECT COUNT(*) AS n FROM R WHERE ts BETWEEN NOW() - INTERVAL '1' DAY AND NOW()",
    "first": "SELECT x FROM R WHERE ts > NOW() ORDER BY ts, k LIMIT 3",
    "above": "SELECT s, COUNT(*) AS n FROM groups GROUP BY s",
    "without": "SELECT k FROM S WHERE NOT EXISTS (SELECT 1 FROM R WHERE R.k = S.k AND R.ts > NOW())",
}
START = datetime(2024, 1, 1)


def made(db: Any) -> Any:
    db.create_table("R", {"k": "int", "ts": "timestamp", "x": "int"})
    db.create_table("S", {"k": "int", "y": "int"})
    for name, text in VIEWS.items():
        db.create_view(name, text)
    db.create_view("left", "SELECT k, COUNT(*) AS n FROM R GROUP BY k", expire="ts + INTERVAL '3' DAY")
    return db


def test_views_with_the_time_have_the_rows_of_the_embedded_database(tmp_path: Path) -> None:
    chance, moment = random.Random(5), START
    one, several = made(ivme.Database()), made(local_database(tmp_path, 3))
    gathered = [name for name in several.views if "alone" in several.view(name).explain().remarks[-1]]
    assert ["first"] == gathered
    feeds = {name: (one.view(name).changes(), several.view(name).changes()) for name in ("groups", "total")}
    for number in range(6):
        hours = [moment + timedelta(hours=chance.randrange(-200, 200)) for _ in range(4)]
        rows = [(chance.randrange(5), each, chance.randrange(9)) for each in hours]
        moment += timedelta(hours=chance.randrange(30))
        for db in (one, several):
            db.insert("R", rows)
            db.insert("S", [(number % 7, 1)])
            db.advance(moment)
        assert moment == several.now == one.now
        for name in several.views:
            assert sorted(one.view(name)) == sorted(several.view(name)), name
    for expected, found in feeds.values():
        assert net(expected) == net(found)
    again = reopened(several)
    assert moment == again.now
    for name in again.views:
        assert sorted(one.view(name)) == sorted(again.view(name)), name
        again.view(name).verify()


def net(changes: Any) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for change in changes:
        for row, weight in change.items():
            found[row] = found.get(row, 0) + weight
    return {row: weight for row, weight in found.items() if weight}


def test_the_clock_does_not_go_back_and_is_no_table_of_the_user(tmp_path: Path) -> None:
    with local_database(tmp_path, 2) as db:
        assert [None] == [db.now]
        db.advance(START)
        with pytest.raises(DataError, match="does not go back to 2023-12-31"):
            db.advance(START - timedelta(days=1))
        db.advance(START)
        assert [START, ()] == [db.now, db.tables]
