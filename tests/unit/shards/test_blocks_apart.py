"""Blocks of one SELECT that no key has in common: each is spread on its own, and feeds the next one within the step."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ivme.database import Database
from ivme.errors import PlanError, SchemaError, UnknownNameError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.database import ShardedDatabase
from ivme.shards.exchange import last_round
from tests.sharded_databases import local_database
from tests.unit.shards.test_exchange import Rows, change, declared

VIEWS = {
    "three": """
        SELECT k, COUNT(*) AS q FROM (
            SELECT n, COUNT(*) AS k FROM (SELECT src, COUNT(*) AS n FROM edge GROUP BY src) d GROUP BY n
        ) e GROUP BY k""",
    "joined": """
        WITH outs AS (SELECT src, COUNT(*) AS n FROM edge GROUP BY src),
             ins AS (SELECT dst, COUNT(*) AS m, SUM(src) AS s FROM edge GROUP BY dst)
        SELECT c.name, COUNT(*) AS k, SUM(ins.s) AS s FROM outs JOIN ins ON outs.n = ins.m JOIN city c ON c.id = ins.m
        GROUP BY c.name""",
    "rows": """
        SELECT d.src, d.n, e.dst FROM (SELECT src, COUNT(*) AS n FROM edge GROUP BY src) d
        JOIN (SELECT dst, MIN(src) AS low FROM edge GROUP BY dst) e ON d.n = e.low""",
    "asked": """
        SELECT d.src, e.m FROM (SELECT src, COUNT(*) AS n FROM edge GROUP BY src) d
        JOIN (SELECT dst, COUNT(*) AS m FROM edge GROUP BY dst) e ON d.n = e.dst WHERE e.m = :m""",
}
ABOVE = {
    "pairs": "SELECT e.src, e.dst, c.name FROM edge e JOIN city c ON e.dst = c.id",
    "above": """
        SELECT k, COUNT(*) AS q FROM (
            SELECT n, COUNT(*) AS k FROM (SELECT src, COUNT(*) AS n FROM pairs GROUP BY src) d
            JOIN edge ON edge.dst = d.n GROUP BY n
        ) e GROUP BY k""",
    "on_top": "SELECT q, COUNT(*) AS n FROM above GROUP BY q",
}


def answers(db: Any) -> dict[str, Counter[Any]]:
    found = {name: Counter(db.view(name)) for name in db.views if name != "asked"}
    for number in range(4):
        found[f"asked {number}"] = Counter(db.view("asked")(m=number))
    return found


def check(db: ShardedDatabase, expected: Database) -> None:
    assert answers(db) == answers(expected)
    for name in db.views:
        db.view(name).verify()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_blocks_apart_are_the_view(tmp_path: Path, seed: int) -> None:
    chance, here = random.Random(seed), Rows(city=[], edge=[])
    expected = declared(Database())
    with declared(local_database(tmp_path, 3)) as db:
        change(chance, here, [expected, db], 30)
        for each in (expected, db):
            for name, text in VIEWS.items():
                each.create_view(name, text)
        assert db.views == tuple(VIEWS)
        assert last_round(db._catalog) == 2
        feeds = {entry.name: [feed.name for feed in entry.feeds] for entry in db._catalog.shown}
        assert feeds == {
            "three": ["three#2"],
            "joined": ["joined#1", "joined#2"],
            "rows": ["rows#1", "rows#2"],
            "asked": ["asked#1", "asked#2"],
        }
        assert "fed by three#2" in str(db.view("three").explain())
        heard = db.view("three").changes()
        known = Counter(db.view("three"))
        for step in range(4):
            change(chance, here, [expected, db], 8)
            check(db, expected)
            if step == 2:
                db.rebalance("three")
        for delta in heard:
            known.update(dict(delta))
        assert +known == Counter(db.view("three"))
        assert min(known.values()) >= 0
    with local_database(tmp_path, 3) as db:
        check(db, expected)
        change(chance, here, [expected, db], 8)
        check(db, expected)
        with pytest.raises(PlanError, match="drop view joined first"):
            db.drop_table("city")
        for name in VIEWS:
            db.drop_view(name)
        assert not db._catalog.views


def test_blocks_over_views_and_views_over_blocks(tmp_path: Path) -> None:
    chance, here = random.Random(5), Rows(city=[], edge=[])
    expected = declared(Database())
    with declared(local_database(tmp_path, 3)) as db:
        change(chance, here, [expected, db], 30)
        for each in (expected, db):
            for name, text in ABOVE.items():
                each.create_view(name, text)
        assert [feed.name for feed in db._catalog.view("above").feeds] == ["pairs", "above#2"]
        assert [feed.name for feed in db._catalog.view("on_top").feeds] == ["above"]
        for _ in range(5):
            change(chance, here, [expected, db], 8)
            for name in ABOVE:
                assert Counter(db.view(name)) == Counter(expected.view(name)), name
                db.view(name).verify()
        with pytest.raises(PlanError, match="cannot drop view pairs: above, on_top need it"):
            db.drop_view("pairs")


def test_a_with_that_has_the_name_of_a_view(tmp_path: Path) -> None:
    text = """
        WITH o AS (SELECT src, COUNT(*) AS n FROM edge GROUP BY src)
        SELECT a.src AS x, b.src AS y FROM o a JOIN o b ON a.n = b.src"""
    with declared(local_database(tmp_path, 3)) as db:
        db.create_view("o", "SELECT dst FROM edge")
        view = db.create_view("w", text)
        for number in range(8):
            db.insert("edge", [(number, 0)] * (1 + number % 6))
        assert sorted(view) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 1), (7, 2)]
        view.verify()


def test_parts_of_views_are_not_views(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 2)) as db:
        db.create_view("three", VIEWS["three"])
        with pytest.raises(UnknownNameError, match="there is no table 'three#2'"):
            db.create_view("w", 'SELECT k FROM "three#2"')
        for ask in (db.view, db.drop_view):
            with pytest.raises(UnknownNameError, match="there are: three"):
                ask("three#1")
        with pytest.raises(SchemaError, match="there is already a view named three#1"):
            db.create_table("three#1", {"a": "int"})


def test_a_name_that_is_taken_leaves_a_view_in_one_shard(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 2)) as db:
        db.create_table("three#1", {"a": "int"})
        db.create_view("three", VIEWS["three"])
        assert [entry.name for entry in db._catalog.views] == ["three"]
        db.insert("edge", [(1, 2), (1, 3), (2, 3)])
        assert sorted(db.view("three")) == [(1, 2)]


def test_a_view_that_fails_between_its_blocks_leaves_nothing(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 2)) as db:
        build, built = db._build, list[str]()

        def failing(planned: Any) -> None:
            if len(built) == 2:
                raise PlanError("stopped")
            built.append(planned.entry.name)
            build(planned)

        with patch.object(db, "_build", failing), pytest.raises(PlanError, match="stopped"):
            db.create_view("three", VIEWS["three"])
        assert built == ["three#1", "three#2"]
        assert not db._catalog.views
        db.create_view("three", VIEWS["three"])
        assert db.views == ("three",)


def test_parts_that_a_lost_driver_left_are_dropped_with_the_next_view(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 2)) as db:
        db.create_view("three", VIEWS["three"])
        parts = tuple(entry for entry in db._catalog.views if entry.part_of)
        db._change_catalog(replace(db._catalog, views=parts))
    with local_database(tmp_path, 2) as db:
        assert db.views == ()
        db.create_view("three", VIEWS["three"])
        db.insert("edge", [(1, 2), (1, 3), (2, 3)])
        db.view("three").verify()


def test_the_catalog_survives_json(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 2)) as db:
        db.create_view("three", VIEWS["three"])
        assert ShardCatalog.from_json(db._catalog.to_json()) == db._catalog


@pytest.mark.long
def test_another_number_of_shards(tmp_path: Path) -> None:
    chance, here = random.Random(9), Rows(city=[], edge=[])
    expected = declared(Database())
    from ivme.shards.planning import planned_for

    with declared(local_database(tmp_path, 2)) as db:
        for each in (expected, db):
            for name, text in VIEWS.items():
                each.create_view(name, text)
        change(chance, here, [expected, db], 20)
        planned = planned_for(db._catalog, 5, db._degrees)
        assert {entry.name for entry in planned.views} == {entry.name for entry in db._catalog.views}
        assert all(entry.routing.shards == 5 and entry.routing.variables for entry in planned.views)
