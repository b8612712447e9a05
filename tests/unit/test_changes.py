"""Followers of a view: they wait in a thread, in an event loop, or are called."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError, PlanError
from ivme.rings import Covariance
from ivme.view import View

_SECONDS = 20
"""Longer than any thread here takes; what waits for longer has failed."""


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        made.create_table("R", {"a": "int", "b": "int"})
        yield made


def _counts(db: Database) -> View:
    return db.create_view("counts", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")


def test_a_feed_that_waits_gets_changes_of_another_thread_until_the_view_is_dropped(db: Database) -> None:
    feed = _counts(db).changes(wait=True)
    got: list[dict[Any, int]] = []
    reader = threading.Thread(target=lambda: got.extend(dict(change) for change in feed))
    reader.start()
    db.insert("R", [(1, 1)])
    db.insert("R", [(1, 2), (2, 2)])
    db.drop_view("counts")
    reader.join(_SECONDS)
    assert not reader.is_alive()
    assert [{(1, 1): 1}, {(1, 1): -1, (1, 2): 1, (2, 1): 1}] == got
    assert feed.is_over


def test_the_next_change_is_taken_by_next_as_from_a_server(db: Database) -> None:
    view = _counts(db)
    with view.changes() as feed, view.changes(wait=True) as waiting:
        assert next(feed, None) is None
        db.insert("R", [(1, 1)])
        assert [{(1, 1): 1}] * 2 == [dict(next(feed)), dict(next(waiting))]
        with pytest.raises(StopIteration):
            next(feed)
        db.insert("R", [(2, 1)])
        assert [{(2, 1): 1}] == [dict(change) for change in feed]
        threading.Timer(0.01, waiting.close).start()
        assert {(2, 1): 1} == dict(next(waiting))
        assert next(waiting, None) is None


def test_closing_a_feed_or_the_database_ends_who_waits(db: Database) -> None:
    view = _counts(db)
    for end in (lambda feed: feed.close(), lambda _: db.close()):
        feed = view.changes(wait=True)
        reader = threading.Thread(target=lambda feed=feed: list(feed))
        reader.start()
        end(feed)
        reader.join(_SECONDS)
        assert not reader.is_alive()


def test_get_waits_for_one_change_and_gives_up_in_time(db: Database) -> None:
    with _counts(db).changes() as feed:
        assert feed.get(timeout=0) is None
        assert feed.get(timeout=0.01) is None
        threading.Timer(0.05, lambda: db.insert("R", [(7, 1)])).start()
        assert {(7, 1): 1} == dict(feed.get(timeout=_SECONDS))


def test_a_feed_that_does_not_wait_has_what_came_since_the_last_time(db: Database) -> None:
    with _counts(db).changes() as feed:
        assert [] == list(feed)
        db.insert("R", [(1, 1)])
        assert [{(1, 1): 1}] == [dict(change) for change in feed]
        assert [] == list(feed)


def test_changes_are_awaited_in_an_event_loop(db: Database) -> None:
    view = _counts(db)

    async def follow() -> list[dict[Any, int]]:
        feed = view.changes()
        writer = asyncio.create_task(asyncio.to_thread(_write_and_drop, db))
        got = [dict(change) async for change in feed]
        await writer
        return got

    assert [{(1, 1): 1}, {(1, 1): -1, (1, 2): 1}] == asyncio.run(asyncio.wait_for(follow(), _SECONDS))


def _write_and_drop(db: Database) -> None:
    db.insert("R", [(1, 1)])
    db.insert("R", [(1, 2)])
    db.drop_view("counts")


def test_a_loop_that_is_gone_does_not_hinder_writers(db: Database) -> None:
    feed = _counts(db).changes()

    async def one() -> None:
        async for _ in feed:
            return

    db.insert("R", [(1, 1)])
    asyncio.run(one())
    db.insert("R", [(1, 1)])
    assert [(1, 2)] == list(db.view("counts"))
    assert feed.get(timeout=0) is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_subscriber_that_adds_up_changes_has_the_rows_of_the_view(db: Database, seed: int) -> None:
    """Writers of several threads; the oracle is the view read at the end."""
    view, rows, random = _counts(db), Counter[tuple[Any, ...]](), Random(seed)

    def add(change: Any) -> None:
        for row, weight in change.items():
            rows[row] += weight

    def write(seed: float) -> None:
        mine, own = Random(seed), list[tuple[int, int]]()
        for _ in range(40):
            if own and mine.random() < 0.4:
                db.delete("R", [own.pop(mine.randrange(len(own)))])
            else:
                own.append((mine.randrange(5), mine.randrange(100)))
                db.insert("R", own[-1:])

    with view.subscribe(add) as subscription:
        writers = [threading.Thread(target=write, args=(random.random(),)) for _ in range(3)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(_SECONDS)
        assert subscription.is_active
    assert dict(view.items()) == {row: count for row, count in rows.items() if count}
    assert (subscription.error, subscription.is_active) == (None, False)


def test_a_subscriber_may_write_and_may_end_itself(db: Database) -> None:
    db.create_table("log", {"a": "int"})
    done = threading.Event()
    view = _counts(db)

    def note(change: Any) -> None:
        db.insert("log", [(row[0],) for row, weight in change.items() if weight > 0])
        subscription.close()
        done.set()

    subscription = view.subscribe(note)
    db.insert("R", [(5, 5)])
    assert done.wait(_SECONDS)
    assert [(5,)] == list(db.table("log"))


def test_a_subscriber_that_fails_is_logged_and_ends(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    view = _counts(db)
    subscription = view.subscribe(lambda change: 1 // (len(change) - 1))
    db.insert("R", [(5, 5)])
    subscription.close()
    assert isinstance(subscription.error, ZeroDivisionError)
    assert "a subscriber of view counts failed" in caplog.text
    db.insert("R", [(6, 5)])
    assert 2 == view.count()


def test_what_cannot_be_followed_is_refused(db: Database) -> None:
    view = db.create_view("at", "SELECT a, COUNT(*) AS n FROM R WHERE b = :b GROUP BY a")
    with pytest.raises(PlanError, match="cannot be followed"):
        view.subscribe(print)
    with pytest.raises(DataError, match="a subscriber is a function"):
        _counts(db).subscribe([])  # type: ignore[arg-type]
    db.drop_view("counts")
    gone = _counts(db)
    db.drop_view("counts")
    with pytest.raises(PlanError, match="was dropped"):
        gone.changes(wait=True)


def test_views_of_rings_are_followed_the_same_way(db: Database) -> None:
    view = db.create_ring_view("model", "Q(A) = R(A, B)", Covariance("B"))
    with view.changes(wait=True) as feed:
        db.insert("R", [(2, 3)])
        assert feed.get(timeout=_SECONDS)


def test_rows_as_a_frame_of_polars(db: Database) -> None:
    db.insert("R", [(1, 2), (1, 3)])
    assert [{"a": 1, "n": 2}] == _counts(db).to_polars().to_dicts()
    assert [{"a": 1, "n": 2}] == db.sql("SELECT * FROM counts").to_polars().to_dicts()
    assert {(1, 2), (1, 3)} == set(db.table("R").to_polars().rows())
