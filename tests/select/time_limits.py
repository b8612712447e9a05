"""Ends a case that never ends: by CPU time, so that a busy machine raises no false alarm."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from types import FrameType

STILL = 0.02
"""The CPU seconds that a process at work has at least in the wall time of a limit, however many others want the CPU."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError after so many CPU seconds of this process, or if it did nothing in as much wall time.

    The second catches what waits for something that never comes, which takes no CPU time. For the main thread.
    """
    used = process_time()

    def spent(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {seconds} s of CPU time")

    def look(_signal: int, _frame: FrameType | None) -> None:
        nonlocal used
        before, used = used, process_time()
        if used - before < STILL:
            raise TimeoutError(f"waits for something: {used - before:.3f} s of CPU time in {seconds} s")

    handlers = ((signal.SIGPROF, signal.ITIMER_PROF, spent), (signal.SIGALRM, signal.ITIMER_REAL, look))
    before = [signal.signal(number, handler) for number, _, handler in handlers]
    try:
        for _, timer, _ in handlers:
            signal.setitimer(timer, seconds, seconds)
        yield
    finally:
        for (number, timer, _), handler in zip(handlers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
