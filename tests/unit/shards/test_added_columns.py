"""Columns that tables over shards get: old rows have the default, also in shards that are rebuilt."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.database import Database
from ivme.errors import PlanError, SchemaError
from ivme.shards.database import ShardedDatabase
from tests.databases import in_one_batch
from tests.sharded_databases import LocalCluster, kill, local_database, reopened

VIEW = "SELECT kind, day, COUNT(*) AS n, SUM(price) AS price FROM R GROUP BY kind, day"


def changed(db: Any) -> Any:
    db.create_table("R", {"id": "int"}, primary_key="id")
    db.create_table("log", {"a": "int"}, append_only=True)
    db.insert("R", [(number,) for number in range(20)])
    db.insert("log", [(1,), (1,)])
    db.add_column("R", "kind", "string", "plain")
    db.add_column("R", "price", "decimal(6, 2)", Decimal("1.50"))
    db.add_column("log", "day", "date")
    db.insert("R", [{"id": 20, "kind": "new"}, (21, None, None)])
    db.add_column("R", "day", "date", date(2024, 1, 2))
    db.create_view("v", VIEW)
    db.create_view("logged", "SELECT a, day FROM log")
    db.delete("R", [(3, "plain", Decimal("1.50"), date(2024, 1, 2))])
    return db


def rows(db: Any) -> list[Any]:
    return [sorted(db.view(name), key=str) for name in ("v", "logged")]


def test_old_rows_have_the_default_and_new_ones_that_lack_it_too(tmp_path: Path) -> None:
    expected = rows(changed(ivme.Database()))
    db = changed(local_database(tmp_path, 3))
    assert expected == rows(db)
    db.view("v").verify()
    again = reopened(db)  # from the steps alone
    assert expected == rows(again)
    again._coordinator.compact(lambda: again.step, now=True)
    once_more = reopened(again)  # from snapshots
    assert expected == rows(once_more)
    once_more.reshard(2)
    assert expected == rows(once_more)


def test_a_shard_that_dies_between_two_columns_is_rebuilt(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 2)
    db = ShardedDatabase(cluster)
    db.create_table("R", {"a": "int"})
    db.insert("R", [(1,), (2,), (3,), (4,)])
    db.add_column("R", "b", "int", 7)
    cluster.kill(0)
    db.insert("R", [(5, 8)])
    cluster.kill(1)
    db.add_column("R", "c", "int")
    view = db.create_view("v", "SELECT a, b, c FROM R")
    assert [(1, 7, None), (2, 7, None), (3, 7, None), (4, 7, None), (5, 8, None)] == sorted(view)


def test_rows_without_a_key_are_found_after_a_column_was_added(tmp_path: Path) -> None:
    """They were spread by the columns that there were."""
    db = local_database(tmp_path, 3)
    db.create_table("R", {"a": "int"})
    db.insert("R", [(number,) for number in range(20)])
    db.add_column("R", "b", "int", 7)
    db.insert("R", [(number, 7) for number in range(20)])
    db.delete("R", [(number, 7) for number in range(10)])
    db = reopened(db)
    db.add_column("R", "c", "int")
    db.delete("R", [(number, 7, None) for number in range(10)], strict=False)
    db.reshard(2)
    db.delete("R", [(number, 7, None) for number in range(10, 20)] * 2)
    assert db.table_rows("R").num_rows == 0
    db.drop_table("R")
    assert db._catalog.spread_by == ()


UNDER = {
    "all_rows": "SELECT a FROM bag",
    "one_row": "SELECT COUNT(*) AS n, SUM(b) AS s FROM bag",
    "groups": "SELECT b, COUNT(*) AS n FROM bag GROUP BY b",
    "triangles": "SELECT COUNT(*) AS n FROM bag r JOIN bag s ON r.b = s.a JOIN bag t ON s.b = t.a AND t.b = r.a",
    "keyed": "SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS r FROM bag",
    "outer": "SELECT r.id, s.b, t.a AS back FROM R r LEFT JOIN bag s ON s.a = r.id LEFT JOIN bag t ON t.b = r.id",
    "gathered": "SELECT a, ROW_NUMBER() OVER (ORDER BY a, b) AS r FROM bag",
    "above": "SELECT g.b, h.n FROM groups g JOIN groups h ON g.n = h.b",
    "asked": "SELECT b FROM bag WHERE a = :a",
    "closed": "Q(Y | X) = closure(edge)(X, Y)",
}


def check_under(path: Path, seed: int, steps: int) -> None:
    """Rows come and go under every kind of view while tables get columns."""
    chance, here = random.Random(seed), list[tuple[Any, ...]]()
    expected, db = Database(), local_database(path, 3)
    both: list[Any] = [expected, db]
    for each in both:
        each.create_table("R", {"id": "int"}, primary_key="id")
        each.create_table("bag", {"a": "int", "b": "int"})
        each.create_table("edge", {"src": "int", "dst": "int"})
        for name, text in UNDER.items():
            each.create_view(name, text)
        each.insert("R", [(number,) for number in range(4)])
        each.insert("edge", [(1, 2), (2, 3)])
    told = [each.view("groups").changes() for each in both]
    columns: list[Any] = []
    for step in range(steps):
        if step % 4 == 2:
            name, value = f"c{step}", chance.choice([None, 7, "x"])
            for each in both:
                each.add_column("bag", name, "string" if value == "x" else "int", value)
                each.add_column("R", name, "int", 1)
            columns.append(value)
            here = [(*row, value) for row in here]
        gone = chance.sample(here, min(len(here), chance.randrange(3)))
        come = [
            (chance.randrange(5), chance.randrange(5), *(chance.choice([None, value]) for value in columns))
            for _ in range(6)
        ]
        for row in gone:
            here.remove(row)
        here += come
        for each in both:
            in_one_batch(each, ("delete", "bag", gone), ("insert", "bag", come))
        if step % 5 == 4:
            kill(db, chance.randrange(3))
        for name in UNDER.keys() - {"asked", "closed"}:
            assert Counter(expected.view(name)) == Counter(db.view(name)), name
        assert Counter(expected.view("asked")(a=1)) == Counter(db.view("asked")(a=1))
        assert [dict(each) for each in told[0]] == [dict(each) for each in told[1]]
    for name in UNDER:
        db.view(name).verify()
    assert {(2,), (3,)} == set(db.view("closed")(X=1))


@pytest.mark.slow
def test_views_of_every_kind_stay_right_while_their_tables_get_columns(tmp_path: Path) -> None:
    check_under(tmp_path, 1, 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_views_of_every_kind_stay_right_while_their_tables_get_columns_for_longer(tmp_path: Path, seed: int) -> None:
    check_under(tmp_path, seed, 40)


def test_a_view_whose_rows_are_spread_by_their_identity_finds_them_after_a_column_was_added(tmp_path: Path) -> None:
    """Its rows are where the hash of all columns that there were has put them."""
    db = local_database(tmp_path, 3)
    db.create_table("bag", {"a": "int", "b": "int"})
    db.insert("bag", [(1, number) for number in range(30)])
    view = db.create_view("size", "SELECT COUNT(*) AS n FROM bag WHERE a = 1")
    assert {"#0"} == view.sharding.routing.variables
    db.add_column("bag", "c", "string", "new")
    db.delete("bag", [(1, number, "new") for number in range(20)])
    assert 10 == view.scalar()
    db = reopened(db)
    db.add_column("bag", "d", "int")
    db.delete("bag", [(1, number, "new", None) for number in range(20, 29)])
    assert 1 == db.view("size").scalar()
    db.reshard(2)
    db.delete("bag", [(1, 29, "new", None)])
    assert 0 == db.view("size").scalar()


def test_what_cannot_be_added_is_refused(tmp_path: Path) -> None:
    with local_database(tmp_path, 2) as db:
        db.create_table("R", {"a": "int"})
        db.create_view("v", "SELECT * FROM R")
        with pytest.raises(PlanError, match="the text of view v would mean something else with it"):
            db.add_column("R", "b", "int")
        db.drop_view("v")
        with pytest.raises(SchemaError, match="has a column A already"):
            db.add_column("R", "A", "int")
        with pytest.raises(PlanError, match="is the time, which each shard would take for itself"):
            db.add_column("R", "t", "timestamp", "now()")
        db.insert("R", [(1,)])
        assert [[1, 1]] == [list(row.values()) for row in db.table_rows("R").to_pylist()]
