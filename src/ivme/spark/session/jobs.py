"""Names for Spark's jobs, so that its user interface says whose they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def described_jobs(spark: SparkSession, group: str, description: str) -> Iterator[None]:
    """Jobs that this thread starts in the block are in a group, with a description; over Connect they have a tag."""
    if not hasattr(spark, "_jvm"):
        tag = group.replace(",", " ")
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    context = spark.sparkContext
    context.setJobGroup(group, description)
    try:
        yield
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]


def share_done(spark: SparkSession, group: str) -> float:
    """How much of the running stages of a group of jobs is done, from 0 to 1; 0 if that is unknown."""
    if not hasattr(spark, "_jvm"):
        return 0.0
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    running = [stage for job in jobs if job is not None and job.status == "RUNNING" for stage in job.stageIds]
    stages = [stage for stage in map(tracker.getStageInfo, running) if stage is not None]
    tasks = sum(stage.numTasks for stage in stages)
    return sum(stage.numCompletedTasks for stage in stages) / tasks if tasks else 0.0


@contextmanager
def watched_jobs(spark: SparkSession, group: str, tell: Callable[[float], None], every: float = 0.5) -> Iterator[None]:
    """Tells now and then, from a thread of its own, how much of the block's jobs is done."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            tell(share_done(spark, group))

    watcher = threading.Thread(target=watch, name="ivme progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
