"""What is under way is settled by whoever is next at the lock."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import pytest

from ivme._kernel import StateLock
from ivme.engine.runtime.transaction import PlainLock, Transaction, Undo, delivery, taken
from ivme.errors import StorageError


@pytest.fixture(params=[StateLock, PlainLock])
def lock(request: pytest.FixtureRequest) -> Any:
    return request.param()


def _in_a_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_the_end_of_the_block_commits(lock: Any) -> None:
    done: list[str] = []
    with lock, Transaction(lock, [Undo([lambda: done.append("undone")])], [lambda: done.append("finished")]):
        assert lock.pending is not None
    assert ["finished"] == done
    assert lock.pending is None


def test_an_error_undoes_what_was_done(lock: Any) -> None:
    done: list[str] = []
    with pytest.raises(ValueError, match="no"), lock, Transaction(lock, [Undo([lambda: done.append("undone")])]):
        raise ValueError("no")
    assert ["undone"] == done


@pytest.mark.parametrize("committed", [True, False])
def test_what_was_left_is_settled_by_the_next_at_the_lock(lock: Any, committed: bool) -> None:
    done: list[str] = []
    left = Transaction(lock, [Undo([lambda: done.append("undone")])], [lambda: done.append("finished")])
    left.committed = committed
    lock.pending = left

    def next_one() -> None:
        with lock:
            done.append("next")

    _in_a_thread(next_one)
    assert ["finished" if committed else "undone", "next"] == done
    assert lock.pending is None


def test_what_was_left_is_settled_where_the_lock_is_let_go(lock: Any) -> None:
    done: list[str] = []
    with lock:
        with lock:
            lock.pending = Transaction(lock, [Undo([lambda: done.append("undone")])])
        assert [] == done, "whoever holds the lock may still be at it"
    assert ["undone"] == done


def test_settling_that_fails_lets_go_of_the_lock_and_is_done_again(lock: Any) -> None:
    done: list[int] = []

    def interrupted() -> None:
        done.append(len(done))
        if len(done) == 1:
            raise KeyboardInterrupt

    lock.pending = Transaction(lock, [Undo([interrupted])])
    with pytest.raises(KeyboardInterrupt):
        lock.acquire()
    _in_a_thread(lambda: done.append(lock.acquire(False) and not lock.release() and 7))
    assert [0, 1, 7] == done


def test_a_log_that_failed_is_not_asked_again(lock: Any) -> None:
    def fail() -> None:
        raise StorageError("the disk")

    with pytest.raises(StorageError), lock, Transaction(lock, [Undo([fail])]):
        raise ValueError("no")
    with lock:
        assert lock.pending is None


def test_an_item_is_delivered_once() -> None:
    queue: deque[str] = deque()
    deliver = delivery(queue, "a")
    deliver()
    deliver()
    assert ["a"] == list(taken(queue))
    assert not queue
