"""A disk that is full: the batch fails and leaves no trace, and the database goes on when there is room again."""

from __future__ import annotations

import errno
import os
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import StorageError
from tests.durability.directories import bag, crash, log_of


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file can grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(params=["sync", "async"])
def db(request: Any, tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path, durability=request.param)
    made.create_table("R", {"a": "int", "b": "string"})
    made.create_view("v", "SELECT b, COUNT(*) AS n FROM R GROUP BY b")
    made.insert("R", [(1, "x")])
    yield made
    made.close()


def test_a_batch_that_does_not_fit_changes_nothing(db: Database, tmp_path: Path) -> None:
    feed = db.view("v").changes()
    size = log_of(tmp_path).stat().st_size
    attempts: list[Callable[[], object]] = [
        lambda: db.insert("R", [(2, "y" * 500)]),
        lambda: db.insert("R", [(n, f"y{n}") for n in range(1000)]),
        lambda: db.delete("R", [(1, "x")]),
        lambda: db.create_table("S", {"a": "int"}),
        lambda: db.create_view("w", "Q(A) = R(A, B)"),
        lambda: db.drop_view("v"),
    ]
    with files_of_at_most(size + 60):
        for attempt in attempts:
            with pytest.raises(StorageError, match=r"log-000000000001\.ivme cannot be written: File too large"):
                attempt()
            assert size == log_of(tmp_path).stat().st_size
            assert (("R",), ("v",), Counter({(1, "x"): 1})) == (db.tables, db.views, bag(db, "R"))
            assert [("x", 1)] == list(db.view("v"))
            assert [] == list(feed)
        with pytest.raises(StorageError), db.batch(source="s", position=1) as batch:
            batch.insert("R", [(2, "y" * 500)])
        assert db.position("s") is None
    feed.close()
    db.insert("R", [(3, "z")])
    db.view("v").verify()
    crash(db)
    with Database(tmp_path) as again:
        assert Counter({(1, "x"): 1, (3, "z"): 1}) == bag(again, "R")


def test_a_snapshot_that_does_not_fit_leaves_the_old_one(db: Database, tmp_path: Path) -> None:
    db.insert("R", [(n, f"{n * 7919:x}") for n in range(5000)])
    with files_of_at_most(10_000), pytest.raises(StorageError, match="cannot be written"):
        db.checkpoint()
    assert not list(tmp_path.glob("table-*"))
    db.insert("R", [(1, "after")])
    expected = bag(db, "R")
    crash(db)
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")
        again.checkpoint()
        assert 1 == len(list(tmp_path.glob("log-*")))
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")


def test_a_full_disk_does_not_stop_the_writers_when_a_snapshot_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise StorageError("no room")

    monkeypatch.setattr("ivme.store.store.LEAST_LOG", 500)
    monkeypatch.setattr("ivme.store.store.write_table", full)
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        for value in range(50):
            db.insert("R", [(value,)])
    assert "no snapshot" in caplog.text
    with Database(tmp_path) as db:
        assert 50 == bag(db, "R").total()


def test_a_write_that_stops_half_way_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite

    def stops(descriptor: int, data: Any, place: int) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[: len(data) // 2], place)

    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        size = log_of(tmp_path).stat().st_size
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", stops)
            with pytest.raises(StorageError, match="No space left on device; nothing was changed"):
                db.insert("R", [(1,)])
        assert (size, Counter()) == (log_of(tmp_path).stat().st_size, bag(db, "R"))


def test_after_a_sync_that_failed_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    db = Database(tmp_path)
    db.create_table("R", {"a": "int"})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken)
        with pytest.raises(StorageError, match=r"cannot be synced: .*Input/output error"):
            db.insert("R", [(1,)])
    with pytest.raises(StorageError, match="open it again"):
        db.insert("R", [(2,)])
    with pytest.raises(StorageError, match="open it again"):
        db.close()
    with Database(tmp_path) as db:
        assert bag(db, "R") in (Counter(), Counter({(1,): 1}))


def test_an_interrupted_commit_is_undone_in_memory_and_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        size = log_of(tmp_path).stat().st_size
        store = db.definitions.store
        assert store is not None
        for table_rows in (
            [(1,)],
            [(number,) for number in range(100)],
        ):  # a short list would be one call of the kernel
            with monkeypatch.context() as patch:
                patch.setattr(store, "_snapshot_if_due", _interrupted)
                with pytest.raises(KeyboardInterrupt):
                    db.insert("R", table_rows)
            assert (size, Counter()) == (log_of(tmp_path).stat().st_size, bag(db, "R"))
        db.insert("R", [(3,)])
    with Database(tmp_path) as db:
        assert Counter({(3,): 1}) == bag(db, "R")


def _interrupted() -> None:
    raise KeyboardInterrupt
