"""Who syncs, and for whom."""

from __future__ import annotations

import threading

import pytest

from ivme.errors import StorageError
from ivme.store.group_commit import GroupCommit


def test_threads_that_wait_during_a_sync_share_the_next() -> None:
    started, go_on = threading.Event(), threading.Event()

    def sync() -> None:
        started.set()
        go_on.wait()

    commits = GroupCommit(sync, 0)
    commits.written = 1
    threads = [threading.Thread(target=commits.wait, args=(1,))]
    threads[0].start()
    started.wait()
    commits.written = 9
    threads += [threading.Thread(target=commits.wait, args=(number,)) for number in range(2, 10)]
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert (9, 2) == (commits.durable, commits.syncs)


def test_what_is_durable_needs_no_sync() -> None:
    commits = GroupCommit(lambda: None, 5)
    commits.wait(3)
    commits.wait(5)
    assert 0 == commits.syncs


def test_nobody_waits_for_what_was_taken_back() -> None:
    commits = GroupCommit(lambda: None, 0)
    commits.written = 2
    commits.roll_back(1, lambda: None)
    commits.wait(2)
    assert (1, 1) == (commits.written, commits.durable)


def test_a_record_in_the_place_of_one_that_was_taken_back_is_synced_anew() -> None:
    commits = GroupCommit(lambda: None, 0)
    commits.written = 1
    commits.wait(1)
    commits.roll_back(0, lambda: None)
    commits.written = 1
    commits.wait(1)
    assert 2 == commits.syncs


def test_nothing_is_taken_back_while_somebody_syncs() -> None:
    started, go_on = threading.Event(), threading.Event()
    order = []

    def sync() -> None:
        started.set()
        go_on.wait()
        order.append("synced")

    commits = GroupCommit(sync, 0)
    commits.written = 2
    syncing = threading.Thread(target=commits.wait, args=(1,))
    syncing.start()
    started.wait()
    taking = threading.Thread(target=commits.roll_back, args=(1, lambda: order.append("taken back")))
    taking.start()
    go_on.set()
    syncing.join()
    taking.join()
    assert (["synced", "taken back"], 1, 1) == (order, commits.written, commits.durable)


def test_a_failed_sync_fails_everybody_who_waits_and_comes_later() -> None:
    started, go_on = threading.Event(), threading.Event()
    failures: list[str] = []

    def sync() -> None:
        started.set()
        go_on.wait()
        raise OSError(5, "broken")

    commits = GroupCommit(sync, 0)
    commits.written = 3

    def wait(number: int) -> None:
        try:
            commits.wait(number)
        except StorageError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=wait, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    started.wait()
    go_on.set()
    for thread in threads:
        thread.join()
    with pytest.raises(StorageError, match="broken"):
        commits.check()
    assert (3, 0) == (len(failures), commits.durable)


def test_a_thread_whose_record_is_durable_does_not_wait_for_the_next_sync() -> None:
    started = [threading.Event() for _ in range(2)]
    go_on = [threading.Event() for _ in range(2)]

    def sync() -> None:
        number = commits.syncs
        started[number].set()
        go_on[number].wait()

    commits = GroupCommit(sync, 0)
    commits.written = 1
    first = [threading.Thread(target=commits.wait, args=(1,)) for _ in range(6)]
    first[0].start()
    started[0].wait()
    commits.written = 2
    second = threading.Thread(target=commits.wait, args=(2,))
    for thread in (*first[1:], second):
        thread.start()
    go_on[0].set()
    started[1].wait()
    for thread in first:  # while the second sync is under way
        thread.join()
    assert (1, True) == (commits.durable, second.is_alive())
    go_on[1].set()
    second.join()
    assert (2, 2) == (commits.durable, commits.syncs)
