"""The lock of a database: alone, or shared by readers, in turns."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ivme._kernel import StateLock

LONG = 20.0
"""Seconds after which a thread counts as stuck."""


def in_a_thread(work: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join(LONG)
    return found[0]


def is_free(side: Any) -> bool:
    """Whether another thread can have it at once."""

    def attempt() -> bool:
        taken: bool = side.acquire(blocking=False)
        if taken:
            side.release()
        return taken

    return bool(in_a_thread(attempt))


def test_readers_share_it_and_keep_writers_out() -> None:
    lock = StateLock()
    with lock.shared:
        assert is_free(lock.shared)
        assert not is_free(lock)
    assert is_free(lock)


def test_a_writer_keeps_everybody_out() -> None:
    lock = StateLock()
    with lock:
        assert not is_free(lock.shared)
        assert not is_free(lock)
    assert is_free(lock.shared)


def test_it_can_be_taken_again_in_any_order() -> None:
    lock = StateLock()
    with lock, lock.shared, lock, lock.shared:
        assert not is_free(lock.shared)
    with lock.shared, lock.shared:
        assert is_free(lock.shared)
        with lock:
            assert not is_free(lock.shared)
            with lock.shared:
                assert not is_free(lock.shared)
        assert is_free(lock.shared)
        assert not is_free(lock), "it is a reader again"
    assert is_free(lock)


def test_two_readers_that_want_it_alone_do_not_wait_for_each_other() -> None:
    lock, both, done = StateLock(), threading.Barrier(2), []

    def work() -> None:
        with lock.shared:
            both.wait(LONG)
            with lock:
                done.append(lock.pending)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert [None, None] == done
    assert is_free(lock)


def test_a_waiting_writer_goes_before_readers_that_come_later() -> None:
    lock, order = StateLock(), []
    waits = threading.Event()

    def write() -> None:
        waits.set()
        with lock:
            order.append("writer")

    def read() -> None:
        with lock.shared:
            order.append("reader")

    with lock.shared:
        writer = threading.Thread(target=write)
        writer.start()
        waits.wait(LONG)
        while is_free(lock.shared):  # until the writer waits
            pass
        reader = threading.Thread(target=read)
        reader.start()
        with lock.shared:
            order.append("again")
    writer.join(LONG)
    reader.join(LONG)
    assert ["again", "writer", "reader"] == order


def test_no_side_starves() -> None:
    lock, over, counts = StateLock(), threading.Event(), {"read": 0, "write": 0}

    def read() -> None:
        while not over.is_set():
            with lock.shared:
                counts["read"] += 1

    readers = [threading.Thread(target=read) for _ in range(4)]
    for thread in readers:
        thread.start()
    for _ in range(200):
        with lock:
            counts["write"] += 1
    over.set()
    for thread in readers:
        thread.join(LONG)
    assert 200 == counts["write"]
    assert counts["read"] > 0
    assert is_free(lock)


def test_waiting_ends_with_the_timeout() -> None:
    lock = StateLock()
    with lock:
        assert not in_a_thread(lambda: lock.acquire(timeout=0.01))
        assert not in_a_thread(lambda: lock.shared.acquire(timeout=0.01))
    assert is_free(lock)
    assert is_free(lock.shared)


def test_only_the_thread_that_has_it_lets_go() -> None:
    lock = StateLock()
    for side in (lock, lock.shared):
        with pytest.raises(RuntimeError, match="does not have the lock"):
            side.release()


def test_a_reader_settles_what_was_left_alone() -> None:
    lock, found = StateLock(), []

    class Left:
        def settle(self) -> None:
            found.append(is_free(lock.shared))
            lock.pending = None

    lock.pending = Left()
    with lock.shared:
        assert [False] == found
        assert is_free(lock.shared)


def in_turn(lock: StateLock) -> None:
    with lock:
        pass


def has_waited(lock: StateLock, seconds: float) -> bool:
    """Whether a thread that asks for a lock which is held for so long is counted among those that waited: where the
    machine is busy it may come to ask only after that time."""
    before = sum(lock.waits()[1:])
    lock.acquire()
    thread = threading.Thread(target=in_turn, args=(lock,))
    thread.start()
    thread.join(seconds)
    lock.release()
    thread.join(LONG)
    return sum(lock.waits()[1:]) == before + 1


def test_waits_are_counted() -> None:
    lock = StateLock()
    with lock:
        pass
    assert (1, 0) == (lock.waits()[0], sum(lock.waits()[1:]))
    assert any(has_waited(lock, seconds) for seconds in (0.05, 0.5, 5))
