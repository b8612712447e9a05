"""`db.reshard(n)`: another number of shards, with all rows once, whatever dies on the way."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import PlanError, SparkError, StorageError
from ivme.shards.database import ShardedDatabase
from ivme.shards.merge import WEIGHT
from ivme.store.checkpoint_store import FolderStore
from tests.example_counts import some_of
from tests.sharded_databases import LocalCluster, hosted_database, local_database, reopened

VIEWS = {
    "joined": "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "grouped": "SELECT r.b, COUNT(*) AS n, SUM(s.c) AS t, MIN(s.c) AS least FROM r JOIN s ON r.b = s.b GROUP BY r.b",
    "best": "SELECT b, n FROM grouped ORDER BY n DESC, b LIMIT 3",
    "asked": "SELECT s.c FROM r JOIN s ON r.b = s.b WHERE r.a = :a",
}
TABLES = {"r": {"a": "int", "b": "int"}, "s": {"b": "int", "c": "int"}}


def made(db: Any) -> Any:
    for name, columns in TABLES.items():
        db.create_table(name, columns)
    db.create_table("keyed", {"id": "int", "what": "string"}, primary_key="id")
    for name, text in VIEWS.items():
        db.create_view(name, text)
    return db


def change(*databases: Any, seed: int, rows: int = 40) -> None:
    chance = random.Random(seed)
    for name in TABLES:
        given = [(chance.randrange(9), chance.randrange(9)) for _ in range(rows)]
        for db in databases:
            db.insert(name, given)
            db.delete(name, given[: rows // 3])
    for db in databases:
        db.insert("keyed", [(seed * 100 + i, "x") for i in range(10)])


def check(expected: Database, db: ShardedDatabase) -> None:
    for name in VIEWS:
        if name != "asked":
            assert Counter(expected.view(name)) == Counter(db.view(name)), name
    for a in range(9):
        assert Counter(expected.view("asked")(a=a)) == Counter(db.view("asked")(a=a))
    for name in (*TABLES, "keyed"):
        rows = db.table_rows(name)
        values = zip(*(column.to_pylist() for column in rows.columns[:-1]), strict=True)
        found = Counter(dict(zip(values, rows.column(WEIGHT).to_pylist(), strict=True)))
        assert Counter(expected.table(name)) == found, name


@pytest.mark.parametrize("numbers", [(2, 3, 1), pytest.param((5, 2), marks=pytest.mark.long)])
def test_another_number_of_shards_has_the_same_rows_and_goes_on(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    with made(Database()) as expected, made(local_database(tmp_path, numbers[0])) as db:
        change(expected, db, seed=1)
        feed = db.view("grouped").changes()
        before = Counter(db.view("grouped"))
        for seed, number in enumerate(numbers[1:], 2):
            db.reshard(number)
            assert number == len(db.status()) == db.checkpoint.shards
            check(expected, db)
            change(expected, db, seed=seed)
            check(expected, db)
        for delta in feed:
            before.update(delta)
        assert Counter(db.view("grouped")) == +before
        for name in VIEWS:
            db.view(name).verify()
        with pytest.raises(Exception, match="key"):
            db.insert("keyed", [(105, "y")])
        again = reopened(db)
        assert numbers[-1] == again.checkpoint.shards
        check(expected, again)


def test_the_position_of_a_source_stays(tmp_path: Path) -> None:
    with made(local_database(tmp_path, 2)) as db:
        with db.batch("feed", 7) as batch:
            batch.insert("r", [(1, 2)])
        db.reshard(3)
        assert 7 == db.position("feed")
        assert 7 == reopened(db).position("feed")


@pytest.mark.parametrize("times", some_of([1, 2], 1))
def test_a_new_shard_is_rebuilt_from_the_layout_and_from_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    with made(Database()) as expected, made(local_database(tmp_path, 2)) as db:
        change(expected, db, seed=1)
        with monkeypatch.context() as without:
            without.setattr("ivme.shards.coordinator.Coordinator.compact", lambda *_, **__: None)
            db.reshard(4)
        cluster: Any = db._cluster
        for seed in range(2, 2 + times):
            for shard in range(4):
                cluster.kill(shard)
            check(expected, db)
            change(expected, db, seed=seed)
            db._coordinator.compact(db._oldest_wanted, now=True)


class FullError(OSError):
    """No space is left on the device."""


@pytest.mark.parametrize("numbers", some_of([(2, 3), (3, 2)], (2, 3)))
def test_a_checkpoint_opens_whole_wherever_a_change_of_the_number_of_shards_broke_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, int]
) -> None:
    """Every write of the checkpoint is once the last one; the old or the new number of shards opens, with all rows."""
    old, new = numbers
    opened, write = [], FolderStore._written
    with local_database(tmp_path / "whole", old) as db:
        db.create_table("r", {"a": "int", "b": "int"})
        db.create_view("n", "SELECT b, COUNT(*) AS n FROM r GROUP BY b")
        db.insert("r", [(a, a % 3) for a in range(20)])
    for most in range(1000):
        folder = tmp_path / str(most)
        shutil.copytree(tmp_path / "whole", folder)
        left = [most]

        def written(store: FolderStore, path: Path, pieces: Any, left: list[int] = left) -> Path:
            if not left[0]:
                raise FullError("no space left on device")
            left[0] -= 1
            return write(store, path, pieces)

        db = local_database(folder, old)
        with monkeypatch.context() as full:
            full.setattr(FolderStore, "_written", written)
            with suppress(SparkError, StorageError):
                db.reshard(new)
        again = local_database(folder, None)
        opened.append(again.checkpoint.shards)
        assert [(0, 7), (1, 7), (2, 6)] == sorted(again.view("n"))
        again.insert("r", [(20, 2)])
        assert (2, 7) in set(again.view("n"))
        if left[0]:
            break
    assert {old, new} == set(opened)
    assert sorted(opened, reverse=old > new) == opened


def test_a_database_whose_reshard_failed_before_its_record_goes_on_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(Database()) as expected, made(local_database(tmp_path, 2)) as db:
        change(expected, db, seed=1)

        def fails(*_: Any) -> None:
            raise StorageError("the store does not answer")

        with monkeypatch.context() as broken:
            broken.setattr("ivme.shards.requests.write_layout", fails)
            with pytest.raises((SparkError, StorageError), match="does not answer"):
                db.reshard(3)
        again = reopened(db)
        assert 2 == again.checkpoint.shards
        change(expected, again, seed=2)
        check(expected, again)


def test_a_driver_that_another_one_followed_cannot_change_the_number_of_shards(tmp_path: Path) -> None:
    with made(local_database(tmp_path, 2)) as db:
        other = reopened(db)
        with pytest.raises(SparkError, match="another driver has taken over"):
            db.reshard(3)
        assert 2 == other.checkpoint.shards
        other.insert("r", [(1, 2)])


def test_numbers_that_are_none_are_refused_and_the_same_number_does_nothing(tmp_path: Path) -> None:
    with made(local_database(tmp_path, 2)) as db:
        for number in (0, -1, 2000, True, "3"):
            with pytest.raises(SparkError, match="must be a number from 1 to 1024"):
                db.reshard(number)
        step = db.step
        db.reshard(2)
        assert step == db.step
        with pytest.raises(SparkError, match=r"has 2 shards, not 3; open it with shards=2, and call reshard\(3\)"):
            local_database(tmp_path, 3)
    with (
        ShardedDatabase(LocalCluster(tmp_path / "other", 2)) as fixed,
        pytest.raises(PlanError, match="cannot be restarted"),
    ):
        fixed.reshard(3)


@pytest.mark.long
def test_hosts_of_the_old_number_end_and_those_of_the_new_one_answer(tmp_path: Path) -> None:
    with made(Database()) as expected, made(hosted_database(tmp_path, 2, hosts=1)) as db:
        change(expected, db, seed=1)
        before = {status["pid"] for status in db.status()}
        db.reshard(3)
        assert 3 == len(db.status())
        assert not before & {status["pid"] for status in db.status()}
        change(expected, db, seed=2)
        check(expected, db)
