"""Views that feed views: shards send each other what changes, within the step."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.shards.database import ShardedDatabase
from ivme.shards.exchange import last_round
from ivme.shards.message import LostError
from tests.databases import in_one_batch
from tests.sharded_databases import LocalCluster, hosted_database, kill, local_database

VIEWS = {
    "degrees": "SELECT src, COUNT(*) AS n FROM edge GROUP BY src",
    "named": "SELECT d.n, c.name FROM degrees d JOIN city c ON d.n = c.id",
    "outer_named": "SELECT d.n, c.name FROM degrees d LEFT JOIN city c ON d.n = c.id",
    "counted": "SELECT name, COUNT(DISTINCT n) AS k FROM named GROUP BY name",
    "middle": "SELECT name, MEDIAN(n) AS m FROM named GROUP BY name",
    "again": "SELECT k, COUNT(*) AS q FROM counted GROUP BY k HAVING COUNT(*) > 0",
}

Rows = dict[str, list[Any]]


def declared(db: Any) -> Any:
    db.create_table("city", {"id": "int", "name": "string"})
    db.create_table("edge", {"src": "int", "dst": "int"})
    return db


def change(chance: random.Random, here: Rows, databases: list[Any], size: int = 3) -> None:
    """A batch of both tables with inserts and deletes."""
    given = {}
    for table, rows in here.items():
        new = [(chance.choice([None, *range(5)]), _second(chance, table)) for _ in range(chance.randint(0, size))]
        gone = [rows.pop(chance.randrange(len(rows))) for _ in range(min(len(rows), chance.randint(0, 2)))]
        given[table] = new, gone
        rows += new
    for db in databases:
        with db.batch() as batch:
            for table, (new, gone) in given.items():
                batch.insert(table, new)
                batch.delete(table, gone)


def _second(chance: random.Random, table: str) -> Any:
    return chance.choice("AB") if table == "city" else chance.choice([None, *range(5)])


def check_same(expected: Any, db: Any) -> None:
    for name in expected.views:
        assert Counter(expected.view(name)) == Counter(db.view(name)), name


def both(path: Path, chance: random.Random, here: Rows, shards: int = 3) -> tuple[Database, ShardedDatabase]:
    """The embedded database and shards, with rows from before the views."""
    expected, db = declared(Database()), declared(local_database(path, shards))
    change(chance, here, [expected, db], size=12)
    for each in (expected, db):
        for name, text in VIEWS.items():
            each.create_view(name, text)
    return expected, db


def check_stream(path: Path, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    here: dict[str, list[Any]] = {"city": [], "edge": []}
    expected, db = both(path, chance, here)
    databases: list[Any] = [expected, db]
    feeds = {name: (expected.view(name).changes(), db.view(name).changes()) for name in VIEWS}
    for number in range(steps):
        change(chance, here, [expected, db])
        if number == steps // 2:
            kill(db, 0)
            db.rebalance("degrees")
        for each in databases:
            with pytest.raises(IvmeError, match="not there"):
                in_one_batch(each, ("insert", "edge", [(1, 1)]), ("delete", "city", [(99, "nowhere")]))
        check_same(expected, db)
    for name, (wanted, found) in feeds.items():
        assert [dict(each) for each in wanted] == [dict(each) for each in found], name
        db.view(name).verify()
    db = local_database(path, None)
    check_same(expected, db)
    for shards in (1, 3, 2) if steps > 10 else (2,):
        db.reshard(shards)
        change(chance, here, [expected, db])
        check_same(expected, db)


@pytest.mark.slow
def test_views_that_are_fed_have_the_rows_and_changes_of_the_embedded_database(tmp_path: Path) -> None:
    check_stream(tmp_path, 1, 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 22))
def test_views_that_are_fed_have_the_rows_and_changes_of_the_embedded_database_for_longer(
    tmp_path: Path, seed: int
) -> None:
    check_stream(tmp_path, seed, 25)


def test_a_view_that_is_fed_is_spread_and_says_so(tmp_path: Path) -> None:
    _, db = both(tmp_path, random.Random(1), {"city": [], "edge": []})
    said = " ".join(db.view("named").explain().notes)
    assert "fed by degrees: shards send each other what changes there, within the step" in said
    assert 3 == last_round(db._catalog)
    with pytest.raises(IvmeError, match="cannot drop view degrees"):
        db.drop_view("degrees")


def test_what_a_later_round_refuses_leaves_no_trace(tmp_path: Path) -> None:
    _, db = both(tmp_path, random.Random(1), {"city": [], "edge": []})
    db.create_view("shares", "SELECT d.n, c.name, 10 / (d.n - 9) AS s FROM degrees d JOIN city c ON d.n = c.id")
    assert db._catalog.view("shares").feeds
    db.insert("city", [(9, "C")])
    before = {name: Counter(db.view(name)) for name in db.views}
    with pytest.raises(IvmeError, match="division by zero"):
        db.insert("edge", [(77, n) for n in range(9)])
    assert before == {name: Counter(db.view(name)) for name in db.views}
    db.insert("edge", [(77, n) for n in range(8)])
    for name in db.views:
        db.view(name).verify()


def test_a_shard_that_is_lost_between_rounds_costs_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    here: dict[str, list[Any]] = {"city": [], "edge": []}
    expected, db = both(tmp_path, chance, here)
    forward = LocalCluster._forward
    lost: list[int] = []

    def losing(self: LocalCluster, shard: int, *given: Any) -> None:
        if not lost:
            lost.append(shard)
            self.kill(shard)
            raise LostError("gone")
        forward(self, shard, *given)

    monkeypatch.setattr(LocalCluster, "_forward", losing)
    while not lost:
        change(chance, here, [expected, db])
    check_same(expected, db)


def test_an_attempt_that_was_not_through_is_not_kept_by_a_step_without_this_shard(tmp_path: Path) -> None:
    """Its abort was lost, and the record of the step names no file of this shard."""
    db = declared(local_database(tmp_path, 2))
    db.create_view("degrees", VIEWS["degrees"])
    cluster: Any = db._cluster
    service, step = cluster.services[0], db.step + 1
    service.put("lost", ("driver", "0"), [])
    head = {"step": step, "transaction": "lost", "attempt": 99, "driver_epoch": 1, "catalog": None, "clipped": []}
    begun = {**head, "checked": [], "round": 0, "last_round": 1, "parts": [("driver", "0")]}
    assert [] == service.prepare(begun, cluster._forward).head["sent"]
    kept: list[bool] = []
    decide = service._open.decide

    def noted(keep: bool) -> None:
        kept.append(keep)
        decide(keep)

    service._open.decide = noted
    service.commit(step, None, {})
    assert [False] == kept


@pytest.mark.long
def test_hosts_send_each_other_what_changes(tmp_path: Path) -> None:
    chance = random.Random(5)
    here: dict[str, list[Any]] = {"city": [], "edge": []}
    with declared(hosted_database(tmp_path, 3, 2)) as db:
        expected = declared(Database())
        change(chance, here, [expected, db], size=12)
        for each in (expected, db):
            for name, text in VIEWS.items():
                each.create_view(name, text)
        for _ in range(12):
            change(chance, here, [expected, db])
            check_same(expected, db)
