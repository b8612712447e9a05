"""A shard goes from step to step, is rebuilt, compacts, and trusts only the checkpoint; a batch is all or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ivme.errors import DataError, SparkError, StaleCursor
from ivme.shards import coordinator
from ivme.shards.database import ShardedDatabase
from ivme.shards.shard import Shard
from tests.sharded_databases import LocalCluster, local_database, reopened

JOIN = "SELECT r.b, COUNT(*) AS n, SUM(s.c) AS t FROM r JOIN s ON r.b = s.b GROUP BY r.b"


@pytest.fixture
def db(tmp_path: Path) -> ShardedDatabase:
    made = local_database(tmp_path, 2)
    made.create_table("r", {"a": "int", "b": "int"})
    made.create_table("s", {"b": "int", "c": "int"})
    made.create_view("v", JOIN)
    made.insert("r", [(i, i % 5) for i in range(40)])
    made.insert("s", [(i % 5, i) for i in range(10)])
    return made


def cluster_of(db: ShardedDatabase) -> LocalCluster:
    cluster: Any = db._cluster
    assert isinstance(cluster, LocalCluster)
    return cluster


def rebuilds(db: ShardedDatabase) -> list[int]:
    return [shard.rebuilds for shard in cluster_of(db).shards.values()]


def test_a_shard_whose_process_ended_is_rebuilt(db: ShardedDatabase) -> None:
    expected = sorted(db.view("v"))
    cluster_of(db).kill(1)
    assert expected == sorted(db.view("v"))
    assert [1, 1] == rebuilds(db)
    db.view("v").verify()


def test_a_reader_of_a_step_that_is_over_is_refused(db: ShardedDatabase) -> None:
    before = db.step
    db.insert("r", [(100, 1)])
    with pytest.raises(StaleCursor, match="it changed while it was being read"):
        cluster_of(db).shards[0].ensure_at(before)


def test_a_batch_that_fails_in_one_shard_changes_none(db: ShardedDatabase) -> None:
    expected, before = sorted(db.view("v")), rebuilds(db)
    rows = [*((i, i % 5) for i in range(100, 120)), (7, 7)]
    with pytest.raises(DataError, match=r"cannot delete \(7, 7\)"):
        db.apply("r", rows, [*[1] * 20, -1])
    assert expected == sorted(db.view("v"))
    assert before == rebuilds(db), "open transactions are rolled back"
    db.view("v").verify()


def test_a_failed_batch_of_a_table_that_only_grows_is_rolled_back_without_rebuilding(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("log", {"n": "int", "m": "int"}, primary_key="n", append_only=True)
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM log")
    db.insert("log", [(i, i) for i in range(20)])
    before = rebuilds(db)
    with pytest.raises(DataError, match="primary key"):
        db.insert("log", [(i, -1) for i in range(19, 40)])
    assert [(20,)] == list(view)
    assert before == rebuilds(db)
    with pytest.raises(DataError, match="append-only"):
        db.delete("log", [(1, 1)])


def test_a_failure_in_a_view_undoes_its_tables(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_view("v", "SELECT a, SUM(b) AS s FROM r GROUP BY a", whole_rows=True)
    db.insert("r", [(1, 2**62)])
    with pytest.raises(DataError, match=r"column .* of view v does not fit"):
        db.insert("r", [(a, 5) for a in range(2, 20)] + [(1, 2**62)])
    assert [(1, 2**62)] == list(db.view("v"))
    db.view("v").verify()


@pytest.mark.parametrize("again", [False, True])
def test_a_sum_over_shards_that_does_not_fit_refuses_the_batch(tmp_path: Path, again: bool) -> None:
    """Each shard's part of the sum fits; nobody follows the view."""
    db = local_database(tmp_path, 2)
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_view("v", "SELECT SUM(b) AS s FROM r")
    db.create_view("w", "SELECT a % 2 AS k, SUM(b) AS s, COUNT(*) AS n FROM r GROUP BY a % 2")
    db.insert("r", [(1, 2**62)])
    if again:
        cluster_of(db).kill(0)
        cluster_of(db).kill(1)
        db = reopened(db)
    for a in range(2, 12):
        with pytest.raises(DataError, match=r"column .* of view [vw] does not fit"):
            db.insert("r", [(a, 2**62 + a)])
    assert [(2**62,)] == list(db.view("v"))
    db.insert("r", [(a, a) for a in range(2, 40)])
    with pytest.raises(DataError, match="column s of view v does not fit"):
        db.insert("r", [(100, 2**62 - 1)])
    db.insert("r", [(101, -(2**62)), (102, 5)])
    db.insert("r", [(100, 2**62 - 1)])
    assert [(2**62 - 1 + 5 + sum(range(2, 40)),)] == list(db.view("v"))
    db.view("v").verify()
    db.view("w").verify()


def test_a_view_that_cannot_be_built_leaves_the_catalog_and_the_engines_as_they_were(db: ShardedDatabase) -> None:
    db.insert("r", [(1, 2**62), (1, 2**62 + 1)])
    engines = {number: set(shard.engines) for number, shard in cluster_of(db).shards.items()}
    with pytest.raises(DataError, match="does not fit"):
        db.create_view("broken", "SELECT a, SUM(b) AS total FROM r GROUP BY a", whole_rows=True)
    assert ("v",) == db.views
    assert engines == {number: set(shard.engines) for number, shard in cluster_of(db).shards.items()}
    db.insert("r", [(2, 3)])
    db.view("v").verify()


def test_a_log_that_outgrows_its_shards_is_compacted(db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "LEAST_LOG_ROWS", 50)
    for _ in range(12):
        db.insert("r", [(i, i % 5) for i in range(1000, 1030)])
        db.delete("r", [(i, i % 5) for i in range(1000, 1030)])
    assert len(db.checkpoint.numbers()) < 12
    assert [1, 1] == [len(db.checkpoint.snapshots(shard)) for shard in range(2)]
    for shard in range(2):
        cluster_of(db).kill(shard)
    db.view("v").verify()
    expected = sorted(db.view("v"))
    again = reopened(db)
    again.view("v").verify()
    assert expected == sorted(again.view("v"))


def test_steps_that_a_feed_has_not_read_outlive_snapshots(db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "LONGEST_LOG", 2)
    feed = db.view("v").changes()
    for _ in range(8):
        db.insert("r", [(1, 1)])
    assert 8 == len(list(feed))
    db.insert("r", [(1, 1)])
    assert len(db.checkpoint.numbers()) <= 3
    assert 1 == len(list(feed))


def test_the_batch_ids_of_streams_outlive_snapshots(db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "LONGEST_LOG", 1)
    with db.batch("feed", 7) as batch:
        batch.insert("r", [(1, 1)])
    for _ in range(5):
        db.insert("r", [(1, 1)])
    assert all(7 == shard.sources["feed"] for shard in cluster_of(db).shards.values())
    again = reopened(db)
    assert 7 == again.position("feed")
    with pytest.raises(DataError, match="has been applied before"), again.batch("feed", 7) as batch:
        batch.insert("r", [(1, 1)])


def test_a_damaged_file_of_a_step_is_refused(db: ShardedDatabase) -> None:
    record = db.checkpoint.record(db.step)
    assert record is not None
    damage(db, next(iter(record.files.values())))
    with pytest.raises(SparkError, match="damaged"):
        Shard(db.checkpoint, int(next(iter(record.files)))).recover()


def test_a_damaged_snapshot_is_refused(db: ShardedDatabase) -> None:
    cluster_of(db).shards[0].snapshot(1)
    (name,) = db.checkpoint.snapshots(0)
    damage(db, name.path(0))
    with pytest.raises(SparkError, match="damaged"):
        Shard(db.checkpoint, 0).recover()


def damage(db: ShardedDatabase, name: str) -> None:
    path = Path(db.checkpoint.store.address) / name
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)


def test_another_number_of_shards_is_refused(db: ShardedDatabase) -> None:
    with pytest.raises(SparkError, match="has 2 shards, not 4"):
        LocalCluster(Path(db.checkpoint.store.address), 4)
