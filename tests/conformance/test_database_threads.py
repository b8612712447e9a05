"""One writer and many readers: what readers see is always a whole batch, and a cursor never gives wrong rows."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ivme.database import Database
from tests.databases import BACKENDS, make_database

KEYS = 300
BATCHES = 60


@pytest.fixture(autouse=True)
def _switches() -> Iterator[None]:
    """Threads take turns often, so that they meet."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(params=BACKENDS)
def db(request: Any) -> Database:
    """Two tables that every batch keeps equal: they hold the same window of keys."""
    made = make_database(request.param)
    for table in ("A", "B"):
        made.create_table(table, {"k": "int", "x": "int"})
        made.insert(table, [(i, 0) for i in range(KEYS)])
    return made


def shift(db: Database, number: int) -> None:
    """Moves the window of both tables by one."""
    with db.batch() as batch:
        for table in ("A", "B"):
            batch.delete(table, [(number, 0)])
            batch.insert(table, [(number + KEYS, 0)])


def while_writing(db: Database, reads: list[Callable[[], None]]) -> None:
    """Runs each read again and again in a thread of its own while batches come; raises what they raise."""
    over = threading.Event()
    errors: list[BaseException] = []
    done = [0] * len(reads)

    def repeat(number: int) -> None:
        try:
            while not over.is_set():
                reads[number]()
                done[number] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(len(reads))]
    for thread in threads:
        thread.start()
    number = 0
    while number < BATCHES or (not all(done) and not errors and number < 100 * BATCHES):
        shift(db, number)
        number += 1
    over.set()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert all(done)


def test_readers_see_only_whole_batches(db: Database) -> None:
    joined = db.create_view("joined", "SELECT A.k FROM A JOIN B ON A.k = B.k")
    total = db.create_view("total", "SELECT COUNT(*) AS n FROM A JOIN B ON A.x = B.x")
    lazy = db.create_view("lazy", "SELECT A.k FROM A JOIN B ON A.k = B.k", strategy="recompute")
    at = db.create_view("at", "SELECT A.k FROM A JOIN B ON A.x = B.x AND A.k = B.k WHERE A.x = :x")

    def whole(keys: list[int]) -> None:
        assert sorted(keys) == list(range(min(keys), min(keys) + KEYS))

    while_writing(
        db,
        [
            lambda: whole(joined.snapshot().column("k").to_pylist()),
            lambda: whole(lazy.to_arrow().column("k").to_pylist()),
            lambda: whole(at.to_arrow(x=0).column("k").to_pylist()),
            lambda: _equal(total.scalar(), KEYS * KEYS),
            lambda: _equal(joined.count(), KEYS),
        ],
    )


def test_a_cursor_gives_rows_of_one_state(db: Database) -> None:
    view = db.create_view("joined", "SELECT A.k FROM A JOIN B ON A.k = B.k")

    def read() -> None:
        keys = [key for (key,) in view]
        assert len(keys) == len(set(keys)) == KEYS
        assert max(keys) - min(keys) < KEYS

    while_writing(db, [read, read])


def test_a_snapshot_stays_as_it_was(db: Database) -> None:
    view = db.create_view("joined", "SELECT A.k FROM A JOIN B ON A.k = B.k")
    snapshot = view.snapshot()
    shift(db, 0)
    assert sorted(snapshot.column("k").to_pylist()) == list(range(KEYS))
    assert sorted(view.snapshot().column("k").to_pylist()) == list(range(1, KEYS + 1))


def test_views_may_come_and_go_while_others_are_read(db: Database) -> None:
    view = db.create_view("joined", "SELECT A.k FROM A JOIN B ON A.k = B.k")

    def come_and_go() -> None:
        db.create_view("guest", "SELECT A.k, COUNT(*) AS n FROM A JOIN B ON A.k = B.k GROUP BY A.k")
        db.drop_view("guest")

    while_writing(db, [come_and_go, lambda: _equal(view.count(), KEYS)])


def _equal(found: Any, expected: Any) -> None:
    assert found == expected
