"""The changes of a view in frames."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from ivme.database import Database
from ivme.serve.feed import ChangeFeed, Marker, Subscriber


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        made.create_table("R", {"a": "int"})
        made.create_view("v", "Q(A) = R(A)")
        yield made


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def opened(db: Database, most: int = 100) -> ChangeFeed:
    feed = ChangeFeed(db.definitions.map_view("v"), most)
    feed.open()
    return feed


def test_batches_between_two_frames_are_summed_up(db: Database) -> None:
    async def test() -> None:
        feed, subscriber = opened(db), Subscriber(100)
        feed.subscribers.add(subscriber)
        db.insert("R", [(1,), (2,)])
        db.delete("R", [(1,)])
        db.insert("R", [(2,)])
        assert 1 == feed.flush()
        frame = await subscriber.take(0)
        assert frame is not None
        assert (1, {(2,): 2}) == (frame.position, frame.change)

    run(test())


def test_batches_that_cancel_out_make_no_frame(db: Database) -> None:
    async def test() -> None:
        feed = opened(db)
        db.insert("R", [(1,)])
        db.delete("R", [(1,)])
        assert (0, 0) == (feed.flush(), feed.position)

    run(test())


def test_a_marker_parts_what_was_read_from_what_came_later(db: Database) -> None:
    async def test() -> None:
        feed, subscriber = opened(db), Subscriber(100)
        db.insert("R", [(1,)])
        marker = Marker(subscriber, asyncio.get_running_loop().create_future())
        rows = feed.read_and_mark({}, 10, marker).rows
        db.insert("R", [(2,)])
        feed.flush()
        frame = await subscriber.take(0)
        assert frame is not None
        assert ([((1,), 1)], 1, {(2,): 1}) == (rows, marker.placed.result(), frame.change)

    run(test())


def test_who_falls_behind_is_dropped_and_the_others_are_not(db: Database) -> None:
    async def test() -> None:
        feed, slow, quick = opened(db), Subscriber(3), Subscriber(3)
        feed.subscribers |= {slow, quick}
        for value in range(5):
            db.insert("R", [(value,)])
            feed.flush()
            assert await quick.take(0) is not None
        assert "dropped: more than 3" in slow.over
        assert await slow.take(0) is None
        assert {quick} == feed.subscribers

    run(test())


def test_frames_are_kept_up_to_a_number_of_rows(db: Database) -> None:
    async def test() -> None:
        feed = opened(db, most=3)
        for value in range(6):
            db.insert("R", [(value,)])
            feed.flush()
        assert [False, False, False, True, True, True, True, False] == [
            feed.resume(Subscriber(10), position) for position in range(8)
        ]
        subscriber = Subscriber(10)
        assert feed.resume(subscriber, 4)
        assert [5, 6] == [frame.position for frame in subscriber.frames]

    run(test())


def test_a_new_feed_can_be_resumed_from_its_beginning_only(db: Database) -> None:
    async def test() -> None:
        feed = opened(db)
        assert feed.resume(Subscriber(10), 0)
        assert not feed.resume(Subscriber(10), 1)

    run(test())


def test_who_left_before_its_marker_was_reached_is_no_subscriber(db: Database) -> None:
    async def test() -> None:
        feed, subscriber = opened(db), Subscriber(10)
        feed.read_and_mark({}, 10, Marker(subscriber, asyncio.get_running_loop().create_future()))
        feed.leave(subscriber)
        feed.flush()
        assert not feed.subscribers

    run(test())


def test_those_who_are_dropped_are_counted_however_many_come(db: Database) -> None:
    async def test() -> None:
        feed, slow, new = opened(db), Subscriber(1), Subscriber(10)
        feed.subscribers.add(slow)
        db.insert("R", [(1,), (2,)])
        feed.queue.append(Marker(new, asyncio.get_running_loop().create_future()))
        feed.flush()
        assert (1, {new}) == (feed.dropped, feed.subscribers)

    run(test())


def test_long_rows_count_by_their_size(db: Database) -> None:
    """Ten rows of 100 KB are 1,000 rows of 1 KB: memory is bounded, not only a number."""

    async def test() -> None:
        db.create_table("T", {"text": "string"})
        db.create_view("texts", "SELECT text FROM T")
        feed, slow = ChangeFeed(db.definitions.map_view("texts"), 500), Subscriber(500)
        feed.open()
        feed.subscribers.add(slow)
        for value in range(10):
            db.insert("T", [(f"{value}" * 102_400,)])
            feed.flush()
        assert "dropped: more than 500" in slow.over
        assert not feed.resume(Subscriber(10_000), 5)
        assert feed.resume(Subscriber(10_000), 6)

    run(test())
