"""Hosts as long-running tasks of Spark: a job of one task for each, started again when it ends.

Not one job for all: a task that fails too often would end those of the others. A resource profile reserves the slots,
and with more than half of an executor's cores for a task, each executor gets one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.shards.host import HostStart
from ivme.shards.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger("ivme")
_LONGEST_PAUSE = 30.0
_HEALTHY_SECONDS = 60.0
_STOP_SECONDS = 10.0
_FIRST_EXECUTOR_SECONDS = 60.0
_NEXT_EXECUTOR_SECONDS = 5.0
_LOCAL_CLUSTER = "local-cluster["


class SparkTasks:
    """A `HostStarter` whose hosts are tasks of a session; `cpus` is how many slots each of them reserves."""

    def __init__(self, spark: SparkSession, cpus: int) -> None:
        self._spark = spark
        self._cpus = cpus
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: dict[int, str] = {}

    def start(self, hosts: Sequence[HostStart], registry: Registry) -> None:
        del registry  # their beats say which hosts are alive
        for start in hosts:
            thread = threading.Thread(target=self._run, args=(start,), name=f"ivme-host-{start.host}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, start: HostStart) -> None:
        """Keeps one host running; the pause before each start is longer, until one has lived for a while."""
        pause = 0.0
        while not self._over.wait(pause):
            began = time.monotonic()
            try:
                self._job(start)
            except Exception as error:
                self._failures[start.host] = str(error)[-1000:]
                if not self._over.is_set():
                    _logger.warning("the job of host %s ended and is started again: %s", start.host, error)
            lived = time.monotonic() - began
            pause = 0.1 if lived > _HEALTHY_SECONDS else min(max(2 * pause, 0.5), _LONGEST_PAUSE)

    def _job(self, start: HostStart) -> None:
        described = start.to_json()

        def serving(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from ivme.shards.host import HostStart, serve

            for batch in batches:
                serve(HostStart.from_json(described))
                yield batch

        frame = self._spark.range(0, 1, 1, 1)
        frame.mapInArrow(serving, "id long", profile=self._profile()).collect()

    def _profile(self) -> Any:
        from pyspark.resource.profile import ResourceProfileBuilder
        from pyspark.resource.requests import TaskResourceRequests

        if self._cpus <= 1:
            return None
        return ResourceProfileBuilder().require(TaskResourceRequests().cpus(self._cpus)).build

    def failure(self) -> str:
        found = [f"the job of host {host} ended: {why}" for host, why in self._failures.items()]
        return "; ".join(found) or "no task has started: has the cluster enough free cores?"

    def close(self) -> None:
        """Waits for the tasks to end, as their beats have."""
        self._over.set()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)


def executors(spark: SparkSession, wanted: int) -> int:
    """How many executors a session has, up to as many as wanted; waits for those that are on their way."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    count, until = 0, time.monotonic() + _FIRST_EXECUTOR_SECONDS
    while count < wanted and time.monotonic() < until:
        now = len(tracker.getExecutorInfos()) - 1  # one is the driver
        if now > count:
            count, until = now, time.monotonic() + _NEXT_EXECUTOR_SECONDS
        time.sleep(0.1)
    return max(min(count, wanted), 1)


def can_reserve(spark: SparkSession) -> bool:
    """Whether Spark can run long tasks beside others: not in a local session, nor behind Spark Connect.

    `local-cluster[...]` has executors of its own.
    """
    classic = not type(spark).__module__.startswith("pyspark.sql.connect")
    master = _master(spark)
    return classic and (not master.startswith("local") or master.startswith(_LOCAL_CLUSTER))


def cpus_of_a_task(spark: SparkSession) -> int:
    """More than half of an executor's cores, so that each has one host; 1 where the cores are not known."""
    cores, master = spark.conf.get("spark.executor.cores", None), _master(spark)
    if not cores and master.startswith(_LOCAL_CLUSTER):
        cores = master.removeprefix(_LOCAL_CLUSTER).split(",")[1]
    return int(cores) // 2 + 1 if cores else 1


def _master(spark: SparkSession) -> str:
    return spark.conf.get("spark.master", "") or ""
