"""Columns that tables over shards get: old rows have the default, also in shards that are rebuilt."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.errors import PlanError, SchemaError
from ivme.shards.database import ShardedDatabase
from tests.sharded_databases import LocalCluster, local_database, reopened

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


def test_what_cannot_be_added_is_refused(tmp_path: Path) -> None:
    with local_database(tmp_path, 2) as db:
        db.create_table("R", {"a": "int"})
        db.create_view("v", "SELECT a FROM R")
        with pytest.raises(PlanError, match="v needs it; drop view v, add a column to R, and create v again"):
            db.add_column("R", "b", "int")
        db.drop_view("v")
        with pytest.raises(SchemaError, match="has a column A already"):
            db.add_column("R", "A", "int")
        with pytest.raises(PlanError, match="is the time, which each shard would take for itself"):
            db.add_column("R", "t", "timestamp", "now()")
        db.insert("R", [(1,)])
        assert [[1, 1]] == [list(row.values()) for row in db.table_rows("R").to_pylist()]
