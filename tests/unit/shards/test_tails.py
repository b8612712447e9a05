"""Snapshots as what has changed: many small steps do not have all rows of a shard written again."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import SparkError
from ivme.shards import coordinator, tails
from ivme.shards.database import ShardedDatabase
from ivme.shards.shard import Shard
from tests.sharded_databases import LocalCluster, local_database, reopened

VIEWS = {
    "counts": "SELECT b, COUNT(*) AS n FROM r GROUP BY b",
    "pairs": "SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a",
    "above": "SELECT n, COUNT(*) AS k FROM counts GROUP BY n",
}


def declared(db: Any) -> Any:
    db.create_table("r", {"a": "int", "b": "int"})
    for name, text in VIEWS.items():
        db.create_view(name, text)
    return db


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShardedDatabase:
    """A database with snapshots, and tails after every third step."""
    made: ShardedDatabase = declared(local_database(tmp_path, 2))
    made.insert("r", [(number % 7, number % 5) for number in range(50)])
    made._coordinator.compact(lambda: made.step, now=True)
    monkeypatch.setattr(coordinator, "LONGEST_LOG", 2)
    return made


def snapshots(db: ShardedDatabase) -> list[tuple[int, int]]:
    """Of each shard the step of its last snapshot, and how many tails it has."""
    return [(db.checkpoint.snapshots(s)[-1].step, len(db.checkpoint.tails(s))) for s in range(db.checkpoint.shards)]


def cluster_of(db: ShardedDatabase) -> LocalCluster:
    cluster = db._cluster
    assert isinstance(cluster, LocalCluster)
    return cluster


def test_small_steps_are_written_as_tails_and_read_back(db: ShardedDatabase) -> None:
    before = snapshots(db)
    for number in range(9):
        db.insert("r", [(number, 1)])
    assert [(step, 3) for step, _ in before] == snapshots(db)
    assert len(db.checkpoint.numbers()) <= 3, "the steps that tails have are gone"
    expected = {name: Counter(db.view(name)) for name in VIEWS}
    cluster_of(db).kill(0)
    cluster_of(db).kill(1)
    assert expected == {name: Counter(db.view(name)) for name in VIEWS}
    again = reopened(db)
    assert expected == {name: Counter(again.view(name)) for name in VIEWS}
    again.insert("r", [(1, 1)])
    for name in VIEWS:
        again.view(name).verify()


def test_a_new_view_and_many_rows_are_written_whole(db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        db.insert("r", [(number, 1)])
    assert [1, 1] == [count for _, count in snapshots(db)]
    db.create_view("later", "SELECT a FROM r")
    for number in range(3):
        db.insert("r", [(number, 1)])
    assert [0, 0] == [count for _, count in snapshots(db)]
    monkeypatch.setattr(tails, "MOST_ROWS", 10)
    for _ in range(3):
        db.insert("r", [(number, 1) for number in range(40)])
    assert [0, 0] == [count for _, count in snapshots(db)]


def test_after_many_tails_a_snapshot_is_written(db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "MOST_TAILS", 2)
    counts = []
    for number in range(18):
        db.insert("r", [(number, 1)])
        counts.append(snapshots(db)[0][1])
    assert 2 == max(counts)
    assert 0 in counts[9:]
    cluster_of(db).kill(0)
    for name in VIEWS:
        db.view(name).verify()


def test_lenient_deletes_in_tails_take_only_what_is_there(db: ShardedDatabase) -> None:
    db.delete("r", [(99, 99)] * 3, strict=False)
    db.insert("r", [(99, 99)])
    db.delete("r", [(99, 99)] * 2, strict=False)
    db.insert("r", [(99, 99)])
    assert [1, 1] == [count for _, count in snapshots(db)]
    cluster_of(db).kill(0)
    cluster_of(db).kill(1)
    assert [(99, 1)] == [row for row in db.view("counts") if row[0] == 99]


def test_the_batch_ids_of_streams_are_in_tails(db: ShardedDatabase) -> None:
    with db.batch("feed", 7) as batch:
        batch.insert("r", [(1, 1)])
    for _ in range(3):
        db.insert("r", [(1, 1)])
    cluster_of(db).kill(0)
    db.status()
    assert 7 == cluster_of(db).shards[0].sources["feed"]
    assert 7 == reopened(db).position("feed")


def test_a_damaged_tail_is_refused(db: ShardedDatabase) -> None:
    for number in range(3):
        db.insert("r", [(number, 1)])
    (name,) = db.checkpoint.tails(0)
    path = Path(db.checkpoint.store.address) / name.path(0)
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)
    with pytest.raises(SparkError, match="damaged"):
        Shard(db.checkpoint, 0).recover()


def check_stream(path: Path, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches, lost shards, other drivers, new columns and another number of shards, among tails."""
    chance, here = random.Random(seed), list[tuple[Any, ...]]()
    monkeypatch.setattr(coordinator, "LONGEST_LOG", chance.choice([1, 2, 3]))
    monkeypatch.setattr(tails, "MOST_TAILS", chance.choice([1, 2, 5]))
    expected, db = declared(Database()), declared(local_database(path, 2))
    width = 2
    for _ in range(steps):
        gone = chance.sample(here, min(len(here), chance.randrange(3)))
        come = [tuple(chance.randrange(4) for _ in range(width)) for _ in range(chance.randrange(3))]
        absent = [tuple(9 for _ in range(width))] * chance.randrange(2)
        for row in gone:
            here.remove(row)
        here += come
        for each in (expected, db):
            with each.batch() as batch:
                batch.delete("r", [*gone, *absent], strict=not absent)
                batch.insert("r", come)
        match chance.randrange(12):
            case 0:
                db.reshard(chance.choice([1, 2, 3]))
            case 1:
                db = reopened(db)
            case 2 | 3 | 4:
                cluster_of(db).kill(chance.randrange(db.checkpoint.shards))
            case 5 if width < 4:
                for each in (expected, db):
                    each.add_column("r", f"c{width}", "int", 1)
                width, here = width + 1, [(*row, 1) for row in here]
        assert {n: Counter(expected.view(n)) for n in VIEWS} == {n: Counter(db.view(n)) for n in VIEWS}
    for name in VIEWS:
        db.view(name).verify()


def test_tails_agree_with_the_embedded_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_stream(tmp_path, 3, 20, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4, 14))
def test_tails_agree_with_the_embedded_database_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    check_stream(tmp_path, seed, 60, monkeypatch)
