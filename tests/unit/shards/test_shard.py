"""A shard goes from step to step, repeats answers, undoes, compacts and is rebuilt; it trusts only the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ivme.errors import DataError, SparkError, StaleCursor
from ivme.shards import stepping
from ivme.shards.database import ShardedDatabase
from ivme.shards.outcome import bases
from ivme.shards.shard import Base, Shard
from tests.sharded_databases import LocalCluster, local_database

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


def shards_of(db: ShardedDatabase) -> dict[int, Shard]:
    cluster: Any = db._cluster
    found: dict[int, Shard] = cluster.shards
    return found


def rebuilds(db: ShardedDatabase) -> list[int]:
    return [shard.rebuilds for shard in shards_of(db).values()]


def test_a_repeated_step_is_answered_but_not_applied_again(db: ShardedDatabase) -> None:
    before = bases(db._journal.outcome(db.step - 1), 2)[0]
    expected = sorted(db.view("v"))
    shard = shards_of(db)[0]
    steps = [(db.step, db._journal.digest(db.step))]
    assert shard.advance(before, steps) == shard.advance(before, steps)
    assert expected == sorted(db.view("v"))
    assert [0, 0] == rebuilds(db)


def test_a_shard_that_is_elsewhere_is_rebuilt(db: ShardedDatabase) -> None:
    cluster: Any = db._cluster
    cluster.kill(1)
    expected = sorted(db.view("v"))
    assert [0, 1] == rebuilds(db)
    db.view("v").verify()
    assert expected == sorted(db.view("v"))


def test_a_reader_of_a_step_that_is_over_is_refused(db: ShardedDatabase) -> None:
    old = bases(db._outcome, 2)[0]
    db.insert("r", [(100, 1)])
    with pytest.raises(StaleCursor, match="it changed while it was being read"):
        shards_of(db)[0].ensure_at(old)


def test_a_batch_that_fails_in_one_shard_changes_none(db: ShardedDatabase) -> None:
    expected = sorted(db.view("v"))
    rows = [*((i, i % 5) for i in range(100, 120)), (7, 7)]
    with pytest.raises(DataError, match=r"cannot delete \(7, 7\)"):
        db.apply("r", rows, [*[1] * 20, -1])
    assert expected == sorted(db.view("v"))
    assert [0, 0] == rebuilds(db), "opposite changes undo the step"
    db.view("v").verify()


def test_a_failed_batch_of_a_table_that_only_grows_is_undone_by_rebuilding(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("log", {"n": "int", "m": "int"}, primary_key="n", append_only=True)
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM log")
    db.insert("log", [(i, i) for i in range(20)])
    with pytest.raises(DataError, match="primary key"):
        db.insert("log", [(i, -1) for i in range(19, 40)])
    assert [(20,)] == list(view)
    assert any(rebuilds(db))
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


def test_a_sum_over_shards_that_does_not_fit_is_an_error_when_it_is_read(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("r", {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT SUM(b) AS s FROM r")
    db.insert("r", [(1, 2**62)])
    db.insert("r", [(a, 2**62 + a) for a in range(2, 40)])
    with pytest.raises(DataError, match="column s of view v does not fit"):
        list(view)
    db.insert("r", [(a, -(2**62) - a) for a in range(2, 40)])
    assert [(2**62,)] == list(view)


def test_a_log_that_outgrows_its_shard_is_compacted(db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "LEAST_LOG_ROWS", 50)
    for _ in range(12):
        db.insert("r", [(i, i % 5) for i in range(1000, 1030)])
        db.delete("r", [(i, i % 5) for i in range(1000, 1030)])
    base = bases(db._outcome, 2)[0]
    assert base.snapshot
    assert len(base.log) < 12
    assert len(list((db._journal.root / "log").glob("*.json"))) < 20
    cluster: Any = db._cluster
    cluster.kill(0)
    cluster.kill(1)
    db.view("v").verify()
    reopened = ShardedDatabase(LocalCluster(db._journal.root, None))
    reopened.view("v").verify()
    assert sorted(db.view("v")) == sorted(reopened.view("v"))


def test_a_damaged_file_of_the_log_is_refused(db: ShardedDatabase) -> None:
    step = db._journal.read_step(db.step)
    path = db._journal.root / step.files[0].path
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)
    with pytest.raises(SparkError, match="damaged"):
        Shard(db._journal, step.files[0].shard).rebuild(bases(db._outcome, 2)[step.files[0].shard])


def test_a_damaged_snapshot_is_refused(db: ShardedDatabase) -> None:
    shard = shards_of(db)[0]
    file = shard.snapshot()
    path = db._journal.root / file.path
    path.write_bytes(path.read_bytes()[:-1])
    base = Base(db.step, file, (), shard.position or (0, ""))
    with pytest.raises(SparkError, match="damaged"):
        Shard(db._journal, 0).rebuild(base)


def test_a_step_that_was_changed_after_it_was_taken_is_refused(db: ShardedDatabase) -> None:
    path = db._journal.step_path(db.step)
    path.write_text(path.read_text().replace('"clipped": []', '"clipped": ["r"]'))
    with pytest.raises(SparkError, match="not the one that the state store names"):
        Shard(db._journal, 0).rebuild(bases(db._outcome, 2)[0])


def test_a_step_that_was_written_but_not_taken_is_taken_when_the_database_opens(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CrashError(Exception):
        pass

    def crash(*_: Any) -> Any:
        raise CrashError

    monkeypatch.setattr(db._cluster, "take_step", crash)
    with pytest.raises(CrashError):
        db.insert("r", [(500, 1)])
    with pytest.raises(SparkError, match="close the database and open it again"):
        db.insert("r", [(501, 1)])
    reopened = ShardedDatabase(LocalCluster(db._journal.root, None))
    assert 2 * (8 + 1) == {b: n for b, n, _ in reopened.view("v")}[1]
    reopened.view("v").verify()


def test_a_step_that_failed_is_taken_back_when_the_database_opens(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sorted(db.view("v"))

    class CrashError(Exception):
        pass

    def crash() -> None:
        raise CrashError

    monkeypatch.setattr(db, "_take_back", crash)
    with pytest.raises(CrashError):
        db.delete("r", [(i, i % 5) for i in range(39, 60)])
    reopened = ShardedDatabase(LocalCluster(db._journal.root, None))
    assert expected == sorted(reopened.view("v"))
    reopened.view("v").verify()


def test_another_number_of_shards_is_refused(db: ShardedDatabase) -> None:
    with pytest.raises(SparkError, match="has 2 shards, not 4"):
        LocalCluster(db._journal.root, 4)
