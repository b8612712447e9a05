"""Changes a second through a stream into one join view, exactly once: Spark's micro-batches into the durable database.

    python -m benchmarks.spark_stream [--batches 10000 100000] [--states 1 1000000] [--files 8] [--runs 1]

The view is the five-table join with GROUP BY. Time is that of the micro-batches as Spark reports them
(triggerExecution), without the first two, in which code is loaded. The peer in the same run is the same SQL as a
streaming query of Spark's own over the same files, in update mode, with its state store; it can do so because the
stream only brings rows of one table, and ivme's answer would also follow deletes and the four other tables. Target: at
least 150,000 changes a second in batches of 100,000.
"""

from __future__ import annotations

import argparse
import os
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
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.micro_batch import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
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
    """The same view as Spark's own streaming query over the same files, behind one with the rows that were there."""
    first = workload.tables[workload.changing]
    write_changes(folder, "first", first, np.ones(first.num_rows, np.int64))
    os.utime(folder / "stream" / "first.parquet", (0, 0))  # the oldest file comes first
    for name, table in workload.tables.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    expected = _all_at_once(spark, workload, folder)
    schema = spark.createDataFrame(first.slice(0, 0)).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").parquet(str(folder / "stream"))
    files.createOrReplaceTempView(workload.changing)
    answer: dict[tuple[int, ...], tuple[int, ...]] = {}

    def keep(batch: DataFrame, _: int) -> None:
        for *group, n, total in zip(*(column.to_pylist() for column in batch.toArrow().columns), strict=True):
            answer[tuple(group)] = (n, total)

    writer = spark.sql(workload.sql).writeStream.foreachBatch(keep).outputMode("update")
    query = writer.option("checkpointLocation", str(folder / "own")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert {(*group, *sums) for group, sums in answer.items()} == expected, "Spark's stream and Spark differ"
    assert query.recentProgress[0].numInputRows == first.num_rows, "the rows that were there did not come first"
    return taken(query)[1:]


def _all_at_once(spark: SparkSession, workload: Workload, folder: Path) -> set[tuple[int, ...]]:
    spark.read.parquet(str(folder / "stream")).createOrReplaceTempView(workload.changing)
    return set(zip(*(column.to_pylist() for column in spark.sql(workload.sql).toArrow().columns), strict=True))


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
                    show("  the same SQL as Spark's own stream", own, "rows/s")

                in_folder(measure)


if __name__ == "__main__":
    main()
