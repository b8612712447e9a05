"""Reading in a thread that is told when nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from ivme.errors import DataError
from ivme.serve.interrupting import InterruptedRead, run_interruptible


def assert_no_reading_is_left() -> None:
    """A thread that has said it is done may still be on its way out."""
    for thread in threading.enumerate():
        if thread.name == "ivme-read":
            thread.join(30)
            assert not thread.is_alive()


def test_a_result_and_an_error_come_back() -> None:
    def fail() -> None:
        raise DataError("no")

    assert 3 == asyncio.run(run_interruptible(lambda: 3))
    with pytest.raises(DataError, match="no"):
        asyncio.run(run_interruptible(fail))


def test_what_takes_too_long_is_interrupted_however_often_it_goes_on() -> None:
    """The work swallows the first interruption, as a destructor would."""
    seen: list[str] = []

    def stubborn() -> None:
        for name in ("first", "second"):
            try:
                while True:
                    time.sleep(0.001)
            except InterruptedRead:
                seen.append(name)
        raise InterruptedRead

    async def ask() -> None:
        async with asyncio.timeout(0.05):
            await run_interruptible(stubborn)

    with pytest.raises(TimeoutError):
        asyncio.run(ask())
    assert ["first", "second"] == seen
    assert_no_reading_is_left()


def test_interruptions_that_race_with_the_end_leave_no_thread() -> None:
    async def ask(seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await run_interruptible(lambda: sum(range(20_000)))
        except TimeoutError:
            pass

    async def ask_all() -> None:
        for number in range(150):
            await ask(number / 150_000)

    asyncio.run(ask_all())
    assert_no_reading_is_left()
