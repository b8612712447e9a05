"""What comes late, twice or never between driver, shards and checkpoint: each step counts once or not at all."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.errors import SparkError, StorageError
from ivme.shards import coordinator
from ivme.shards.coordinator import Coordinator, StepInput
from ivme.shards.database import ShardedDatabase
from ivme.shards.distribute import packed_by_shard, place_rows, with_weights
from ivme.shards.held_step import HeldStep
from ivme.shards.message import LostError, Message, Question, error_head
from ivme.shards.shard import Shard
from ivme.store.checkpoint_store import FolderStore
from tests.sharded_databases import LocalCluster, local_database, reopened

COUNT = "SELECT COUNT(*) AS n FROM r"


class CrashError(Exception):
    """The driver ends here."""


@pytest.fixture
def db(tmp_path: Path) -> ShardedDatabase:
    made = local_database(tmp_path, 2)
    made.create_table("r", {"a": "int"})
    made.create_view("v", COUNT)
    made.insert("r", [(i,) for i in range(10)])
    return made


def cluster_of(db: ShardedDatabase) -> LocalCluster:
    cluster: Any = db._cluster
    assert isinstance(cluster, LocalCluster)
    return cluster


def rows_of(db: ShardedDatabase, values: Sequence[int]) -> Any:
    """Rows for the table, packed for their shards."""
    rows = with_weights(pa.table({"a": pa.array(values, pa.int64())}), np.ones(len(values), np.int64))
    return packed_by_shard(place_rows(db._catalog, 2, db._catalog.table("r"), rows))


def take(db: ShardedDatabase, transaction: str, places: Any) -> None:
    db._coordinator.take(StepInput(transaction, places), db._merged_changes)


# Puts


def test_only_the_parts_of_attempts_that_are_named_count(db: ShardedDatabase) -> None:
    first, second = rows_of(db, range(100, 120)), rows_of(db, range(100, 120))
    cluster_of(db).put("t", ("partition-0", "attempt-1"), first)
    cluster_of(db).put("t", ("partition-0", "attempt-2"), second)
    cluster_of(db).put("t", ("partition-0", "attempt-2"), second)
    cluster_of(db).put("other", ("partition-0", "attempt-1"), first)
    take(db, "t", [(shard, ("partition-0", "attempt-2")) for shard in second])
    assert 30 == db.view("v").scalar()
    cluster_of(db).put("t", ("partition-0", "attempt-1"), first)
    db.insert("r", [(1,)])
    assert 31 == db.view("v").scalar()
    db.view("v").verify()


def test_a_part_that_was_lost_is_missed_and_the_batch_is_tried_again(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, put = cluster_of(db), cluster_of(db).put
    kills = [0, 1]

    def put_and_die(*given: Any) -> None:
        put(*given)
        if kills:
            cluster.kill(kills.pop())

    with pytest.raises(LostError, match="has no part"):
        take(db, "t", [(0, ("driver", "0"))])
    monkeypatch.setattr(cluster, "put", put_and_die)
    db.insert("r", [(i,) for i in range(100, 150)])
    assert [] == kills
    assert 60 == db.view("v").scalar()


# The record


class FaultyStore(FolderStore):
    """A folder whose calls can be made to fail."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.faults: list[Callable[[str], None]] = []
        self.after: list[Callable[[str], None]] = []
        self.is_full = False

    def create(self, name: str, data: bytes) -> bool:
        if self.faults:
            self.faults.pop(0)(name)
        made = super().create(name, data)
        if self.after:
            self.after.pop(0)(name)
        return made

    def write(self, name: str, pieces: Any) -> None:
        if self.is_full:
            raise StorageError(f"{name} cannot be written: {OSError(errno.ENOSPC, 'No space left on device')}")
        super().write(name, pieces)


def failing(name: str) -> None:
    raise StorageError(f"no answer to {name}")


def faulty(db: ShardedDatabase) -> FaultyStore:
    """Lets the calls of a database to its checkpoint fail."""
    store = FaultyStore(Path(db.checkpoint.store.address))
    object.__setattr__(db.checkpoint, "store", store)
    return store


def test_a_record_whose_reply_was_lost_counts(db: ShardedDatabase) -> None:
    faulty(db).after = [failing]
    db.insert("r", [(100,)])
    assert 11 == db.view("v").scalar()
    db.insert("r", [(101,)])
    assert 12 == db.view("v").scalar()
    assert 12 == reopened(db).view("v").scalar()


def test_a_record_that_was_not_made_changes_nothing(db: ShardedDatabase) -> None:
    faulty(db).faults = [failing]
    with pytest.raises(SparkError, match="nothing was changed"):
        db.insert("r", [(100,)])
    assert 10 == db.view("v").scalar()
    db.insert("r", [(101,)])
    assert 11 == db.view("v").scalar()
    assert 11 == reopened(db).view("v").scalar()


@pytest.mark.parametrize("made", [True, False])
def test_a_record_of_which_nothing_is_known_is_decided_by_the_next_call(db: ShardedDatabase, made: bool) -> None:
    store = faulty(db)
    if made:
        store.after, store.faults = [failing], [lambda _: None, failing]
    else:
        store.faults = [failing, failing]
    with pytest.raises(SparkError, match="is not known"), db.batch("feed", 1) as batch:
        batch.insert("r", [(100,)])
    assert (1 if made else None) == db.position("feed")
    assert (11 if made else 10) == db.view("v").scalar()
    db.insert("r", [(101,)])
    assert (12 if made else 11) == reopened(db).view("v").scalar()


def test_a_full_disk_refuses_the_batch_and_nothing_else(db: ShardedDatabase) -> None:
    store = faulty(db)
    store.is_full = True
    with pytest.raises(StorageError, match="No space left"):
        db.insert("r", [(i,) for i in range(100, 120)])
    assert 10 == db.view("v").scalar()
    store.is_full = False
    db.insert("r", [(i,) for i in range(100, 120)])
    assert 30 == db.view("v").scalar()


# Drivers


def test_a_driver_that_dies_before_the_record_changes_nothing(db: ShardedDatabase) -> None:
    def crash(_: str) -> None:
        raise CrashError

    faulty(db).faults = [crash]
    with pytest.raises(CrashError):
        db.insert("r", [(100,)])
    assert 10 == reopened(db).view("v").scalar()


def test_a_driver_that_dies_after_the_record_has_changed_everything(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any) -> None:
        raise CrashError

    monkeypatch.setattr(Coordinator, "_committed", crash)
    with pytest.raises(CrashError):
        db.insert("r", [(i,) for i in range(100, 120)])
    monkeypatch.undo()
    assert 30 == reopened(db).view("v").scalar()


def test_of_two_drivers_the_older_one_ends(db: ShardedDatabase) -> None:
    other = reopened(db)
    other.insert("r", [(100,)])
    with pytest.raises(SparkError, match="another driver has taken over"):
        db.insert("r", [(200,)])
    with pytest.raises(SparkError, match="another driver has taken over"):
        db.insert("r", [(200,)])
    assert 11 == other.view("v").scalar()
    assert 11 == reopened(other).view("v").scalar()


def test_a_step_that_an_older_driver_had_prepared_does_not_happen(db: ShardedDatabase) -> None:
    found: list[ShardedDatabase] = []

    def taken_over(_: str) -> None:
        found.append(reopened(db))

    faulty(db).faults = [taken_over]
    with pytest.raises(SparkError, match="another driver has taken over"):
        db.insert("r", [(200,)])
    assert 10 == found[0].view("v").scalar()
    found[0].insert("r", [(300,)])
    assert 11 == found[0].view("v").scalar()


def test_drivers_that_open_a_checkpoint_at_once_have_epochs_of_their_own(db: ShardedDatabase) -> None:
    opened: list[ShardedDatabase] = []
    threads = [threading.Thread(target=lambda: opened.append(reopened(db))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    epochs = sorted(each._coordinator.last.epoch for each in opened)
    assert [2, 3, 4, 5] == epochs
    newest = max(opened, key=lambda each: each._coordinator.last.epoch)
    newest.insert("r", [(100,)])
    assert 11 == newest.view("v").scalar()


@pytest.mark.parametrize("operation", ["prepare", "commit"])
def test_an_interrupt_leaves_a_step_that_the_next_call_ends(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    one, stopped = cluster_of(db).one, [False]

    def interrupted(question: Question) -> Message:
        if question.head["op"] == operation and not stopped[0]:
            stopped[0] = True
            raise KeyboardInterrupt
        return one(question)

    monkeypatch.setattr(cluster_of(db), "one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.insert("r", [(i,) for i in range(100, 120)])
    before = 30 if operation == "commit" else 10
    db.insert("r", [(1,)])
    assert before + 1 == db.view("v").scalar()
    assert before + 1 == reopened(db).view("v").scalar()


def test_snapshots_that_cannot_be_written_do_not_fail_the_batch(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(coordinator, "LONGEST_LOG", 1)
    dropping(db, "snapshot", 1, monkeypatch)
    db.insert("r", [(100,)])
    assert "no snapshots were made" in caplog.text
    assert 11 == reopened(db).view("v").scalar()


# Shards


def dropping(db: ShardedDatabase, operation: str, shard: int, patch: pytest.MonkeyPatch) -> None:
    """Messages of one kind to a shard are lost."""
    one = cluster_of(db).one

    def lost(question: Question) -> Message:
        if question.head["op"] == operation and question.shard == shard:
            return Message(error_head(LostError("lost")))
        return one(question)

    patch.setattr(cluster_of(db), "one", lost)


def test_a_shard_that_hears_nothing_of_commits_is_brought_along(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        dropping(db, "commit", 1, patch)
        for number in range(3):
            db.insert("r", [(i,) for i in range(100 * number, 100 * number + 20)])
            assert 10 + 20 * (number + 1) == db.view("v").scalar()
    db.view("v").verify()


def test_a_shard_that_hears_nothing_of_an_abort_takes_the_next_step(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for shard in range(2):
            dropping(db, "abort", shard, patch)
        with pytest.raises(Exception, match="cannot delete"):
            db.apply("r", [*((i,) for i in range(100, 120)), (7777,)], [*[1] * 20, -1])
    db.insert("r", [(i,) for i in range(200, 220)])
    assert 30 == db.view("v").scalar()
    db.view("v").verify()


def test_messages_that_come_twice_or_late_change_nothing(db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Question] = []
    one = cluster_of(db).one

    def repeated(question: Question) -> Message:
        if question.head["op"] in ("prepare", "commit", "abort"):
            asked.append(question)
            for old in asked[-8:]:
                one(old)
        return one(question)

    monkeypatch.setattr(cluster_of(db), "one", repeated)
    for number in range(4):
        db.insert("r", [(i,) for i in range(100 * number, 100 * number + 20)])
        with pytest.raises(Exception, match="cannot delete"):
            db.apply("r", [*((i,) for i in range(100, 120)), (7777,)], [*[1] * 20, -1])
    assert 90 == db.view("v").scalar()
    db.view("v").verify()


def test_a_slow_shard_that_is_asked_again_applies_once(db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks again while the first prepare is under way gets the answer of the first."""
    hold, may_go_on, calls = Shard.hold, threading.Event(), []

    def slow(self: Shard, *given: Any) -> bool:
        calls.append(self.number)
        may_go_on.wait(10)
        return hold(self, *given)

    monkeypatch.setattr(Shard, "hold", slow)
    packed = rows_of(db, range(100, 140))
    cluster_of(db).put("t", ("p", "0"), packed)
    head = {"op": "prepare", "step": db.step + 1, "transaction": "t", "attempt": 10**6, "driver_epoch": 1}
    question = Question(0, {**head, "catalog": None, "clipped": [], "checked": [], "parts": [("p", "0")]})
    answers: list[Message] = []
    threads = [threading.Thread(target=lambda: answers.append(cluster_of(db).one(question))) for _ in range(3)]
    for thread in threads:
        thread.start()
    may_go_on.set()
    for thread in threads:
        thread.join()
    assert [0] == calls
    assert 1 == len({answer.head["file"] for answer in answers})
    cluster_of(db).one(Question(0, {"op": "abort", "transaction": "t", "attempt": 10**6}))
    assert 10 == db.view("v").scalar()


def test_an_exception_while_a_step_is_open_takes_it_back(db: ShardedDatabase) -> None:
    shard = cluster_of(db).shards[0]
    before = shard.entries

    def decide(held: HeldStep) -> bool:
        assert held.entries != before
        raise CrashError

    with pytest.raises(CrashError):
        shard.hold(db.step + 1, None, rows_of(db, range(100, 140))[0], [], decide)
    assert before == shard.entries
    db.insert("r", [(1,)])
    assert 11 == db.view("v").scalar()


def test_the_last_record_is_found_while_another_driver_forgets_the_ones_before_it(
    db: ShardedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing is old when it is read: its last record may be gone, behind a later one."""
    checkpoint, listed, last = db.checkpoint, FolderStore.list, db.step
    stale = [[f"{last - 5:012d}"]]
    monkeypatch.setattr(FolderStore, "list", lambda store, folder: stale.pop() if stale else listed(store, folder))
    checkpoint.store.delete(f"records/{last - 5:012d}")
    found = checkpoint.last_record()
    assert found is not None
    assert last == found.number
    assert not stale
