"""Changes a second through a stream into one join view, exactly once: Spark's micro-batches into the durable database.

    python -m benchmarks.spark_stream [--batches 10000 100000] [--states 1 1000000] [--files 8] [--runs 1]

The view is the five-table join with GROUP BY. Time is that of the micro-batches as Spark reports them
(triggerExecution), without the first two, in which code is loaded. The peer in the same run is Spark's own
groupBy().count() over the same files, in update mode into nothing, with its state store. Target: at least 150,000
changes a second in batches of 100,000.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measure import parse, show
from benchmarks.spark_refresh import counted
from benchmarks.spark_workloads import Workload, sales, session, stream_pipeline, write_changes
from ivme.pipeline import read_pipeline
from ivme.spark.driver import Driver
from ivme.spark.micro_batch import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WARM_UP = 2


def taken(query: StreamingQuery) -> list[float]:
    """The seconds of the micro-batches after the first ones."""
    took = [progress.durationMs["triggerExecution"] for progress in query.recentProgress if progress.numInputRows]
    return [milliseconds / 1000 for milliseconds in took[WARM_UP:]]


def maintained(spark: SparkSession, workload: Workload, folder: Path, batch: int, files: int) -> list[float]:
    """Takes all files through the pipeline, compares with Spark, and gives the seconds of the micro-batches."""
    pipeline = read_pipeline(stream_pipeline(folder, workload))
    driver = Driver(spark, pipeline)
    try:
        rows = workload.more(batch * files)
        for number in range(files):
            write_changes(folder, f"{number:06d}", rows.slice(number * batch, batch), np.ones(batch, np.int64))
        stream = MicroBatches(driver, pipeline.table(workload.changing))
        stream.start(once=True)
        assert stream.query is not None
        stream.query.awaitTermination()
        for name, table in workload.tables.items():
            frame = spark.createDataFrame(table)
            if name == workload.changing:
                frame = frame.unionByName(spark.createDataFrame(rows))
            frame.createOrReplaceTempView(name)
        expected = counted(spark.sql(workload.sql).toArrow())
        assert expected == counted(driver.database.view("v").to_arrow()), "Spark and ivme differ"
        return taken(stream.query)
    finally:
        driver.close()


def built_in(spark: SparkSession, workload: Workload, folder: Path) -> list[float]:
    """Spark's own count by two keys over the same files."""
    schema = spark.createDataFrame(workload.tables[workload.changing].slice(0, 0)).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").parquet(str(folder / "stream"))
    counts = files.groupBy("item", "store").count()
    writer = counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(folder / "own"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return taken(query)


def in_folder(measure: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--states", type=int, nargs="+", default=[1, 1_000_000])
    parser.add_argument("--files", type=int, default=8)
    options = parse(parser)
    with session() as spark:
        for state in options.states:
            for batch in options.batches:

                def measure(folder: Path, state: int = state, batch: int = batch) -> None:
                    workload = sales(state)
                    ours = maintained(spark, workload, folder, batch, options.files)
                    target = "150,000 /s" if batch == 100_000 else ""
                    theirs = built_in(spark, workload, folder)
                    speed, own = (batch / fmean(seconds) for seconds in (ours, theirs))
                    show(f"ivme, batches of {batch:,} over {state:,} rows", speed, "changes/s", target)
                    show("  Spark's groupBy().count() over the same files", own, "rows/s")

                in_folder(measure)


if __name__ == "__main__":
    main()
