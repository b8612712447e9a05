"""Names for Spark's jobs, so that its user interface says whose they are."""

from __future__ import annotations

from collections.abc import Iterator
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
