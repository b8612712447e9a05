"""Runs a pipeline: until it has caught up, or until it is told to stop; then it stops between two batches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ivme.errors import IvmeError, SparkError
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.micro_batch import MicroBatches
from ivme.spark.session.failure import is_gone, reason_of

POLL_SECONDS = 0.2
"""How long a pipeline that has caught up waits before it looks for more."""


def run(driver: Driver, *, once: bool, stop: threading.Event | None = None, pause: float | None = None) -> None:
    """Applies batches until there are none (`once`), or until `stop` is set.

    When it has caught up, it looks for more after `pause` seconds.
    """
    stop = stop or threading.Event()
    streams = [
        MicroBatches(driver, source)
        for source in driver.pipeline.sources
        if source.changes is not None and source.changes.kind == "stream"
    ]
    try:
        for stream in streams:
            stream.start(once=once, pause=pause)
        _work(driver, streams, stop, once=once, pause=pause or POLL_SECONDS)
        driver.outlets.flush(driver.reached)
    except IvmeError:
        raise
    except Exception as error:
        if is_gone(driver.spark, error):
            raise SparkError(
                f"Spark's JVM has ended ({type(error).__name__}); committed batches are stored: run the pipeline "
                f"again and it continues after batch {driver.reached}"
            ) from error
        raise SparkError(f"Spark failed: {reason_of(error)}") from error
    finally:
        _stop(driver, streams)


def _work(driver: Driver, streams: list[MicroBatches], stop: threading.Event, *, once: bool, pause: float) -> None:
    while not stop.is_set():
        running = [stream for stream in streams if _is_running(stream)]
        worked = False
        for table in driver.sources:
            worked |= not stop.is_set() and driver.step(table)
        if not worked:
            if once and not running:
                return
            driver.outlets.flush(driver.reached)
            stop.wait(pause if not running else min(pause, POLL_SECONDS))


def _is_running(stream: MicroBatches) -> bool:
    """Whether a stream goes on; raises what ended it."""
    assert stream.query is not None
    if stream.query.isActive:
        return True
    if stream.error is not None:
        raise stream.error
    failure = stream.query.exception()
    if failure is not None:
        raise SparkError(f"a stream failed: {reason_of(failure)}")
    return False


def _stop(driver: Driver, streams: list[MicroBatches]) -> None:
    """Stops streams after the batch under way: the driver takes no more, so that no thread waits for another."""
    driver.halt()
    for stream in streams:
        try:
            if stream.query is not None and stream.query.isActive:
                stream.query.stop()
        except Exception as error:
            if not is_gone(driver.spark, error):
                raise


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second SIGINT interrupts at once."""
    stop = threading.Event()

    def handle(number: int, _frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
