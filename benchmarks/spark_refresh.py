"""A view that is fresh again after changes, against plain Spark SQL recomputing it from cached tables, warm.

    python -m benchmarks.spark_refresh [--sales 1000000] [--edges 1000000] [--shares 0.001 0.01 0.1] [--runs 2]

The changes are half deletes and half inserts, and come in one batch. "apply and read" is the database alone, from Arrow
to the view's rows; "through the stream" is a micro-batch of a pipeline as Spark reports it (triggerExecution), durable
commit included. Answers are compared before ratios are shown. Targets: at 10M rows and 1% the five-table join at least
10 times faster; at 1M edges and 0.1% the triangle count at least 40 times through the stream, and 500 times as apply
and read.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.measure import now, parse, show
from benchmarks.spark_workloads import (
    Workload,
    sales,
    session,
    skewed_triangles,
    stream_pipeline,
    triangles,
    write_changes,
)
from ivme.database import Database
from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.micro_batch import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def counted(rows: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def recomputed(
    spark: SparkSession, workload: Workload, tables: dict[str, pa.Table], runs: int
) -> tuple[list[float], Counter[Any]]:
    """The times of several runs after a first one, and the answer."""
    frames = [(name, spark.createDataFrame(table).cache()) for name, table in tables.items()]
    for name, frame in frames:
        frame.count()
        frame.createOrReplaceTempView(name)
    times, answer = [], pa.table({})
    for _ in range(runs + 1):
        start = now()
        answer = spark.sql(workload.sql).toArrow()
        times.append(now() - start)
    for _, frame in frames:
        frame.unpersist()
    return times[1:], counted(answer)


def filled(workload: Workload) -> Database:
    database = Database()
    for name, table in workload.tables.items():
        database.create_table(name, dict.fromkeys(table.column_names, "int"))
        database.insert(name, table)
    database.create_view("v", workload.sql)
    return database


def applied(database: Database, workload: Workload, size: int, runs: int) -> tuple[list[float], Counter[Any]]:
    """The times of several applications from Arrow, with the view read; each is taken back, the last stays."""
    rows, weights = workload.changes(size)
    times, answer = [], pa.table({})
    for run in range(runs):
        if run:
            database.apply(workload.changing, rows, -weights)
        start = now()
        database.apply(workload.changing, rows, weights)
        answer = database.view("v").to_arrow()
        times.append(now() - start)
    database.apply(workload.changing, rows, -weights)
    return times, counted(answer)


class Streamed:
    """A pipeline whose changes are a stream that runs on."""

    def __init__(self, spark: SparkSession, workload: Workload, folder: Path) -> None:
        self.folder, self.workload = folder, workload
        pipeline = read_pipeline(stream_pipeline(folder, workload))
        self.driver = Driver(spark, pipeline)
        self.stream = MicroBatches(self.driver, pipeline.table(workload.changing))
        self.stream.start(once=False)
        self.sent = 0

    def take(self, rows: pa.Table, weights: object) -> float:
        """The seconds of the micro-batch that takes these changes."""
        query = self.stream.query
        assert query is not None
        write_changes(self.folder, f"{self.sent:06d}", rows, weights)  # type: ignore[arg-type]
        self.sent += 1
        while self.driver.reached < self.sent:
            time.sleep(0.01)
            if self.stream.error is not None:
                raise self.stream.error
        query.processAllAvailable()
        took = [p.durationMs["triggerExecution"] for p in query.recentProgress if p.numInputRows]
        return float(took[-1]) / 1000

    def refresh(self, size: int, runs: int) -> list[float]:
        rows, weights = self.workload.changes(size)
        times = []
        for _ in range(runs):
            times.append(self.take(rows, weights))
            self.take(rows, -weights)
        return times

    def close(self) -> None:
        if self.stream.query is not None:
            self.stream.query.stop()
        self.driver.close()


def compare(spark: SparkSession, workload: Workload, shares: list[float], runs: int) -> None:
    size = workload.tables[workload.changing].num_rows
    print(f"{workload.name}, {size:,} rows of {workload.changing}")
    database = filled(workload)
    for share in shares:
        changes = max(2, int(size * share))
        theirs, expected = recomputed(spark, workload, workload.after(changes), runs)
        ours, answer = applied(database, workload, changes, runs)
        assert expected == answer, "Spark and ivme differ"
        show(f"  {share:.1%}: Spark recomputes", min(theirs), "s")
        show(f"  {share:.1%}: ivme applies and reads", min(ours), f"s, {min(theirs) / min(ours):,.0f} times faster")
    database.close()
    with tempfile.TemporaryDirectory() as folder:
        streamed = Streamed(spark, workload, Path(folder))
        try:
            for share in shares:
                changes = max(2, int(size * share))
                theirs, _ = recomputed(spark, workload, workload.after(changes), 1)
                ours = streamed.refresh(changes, runs)
                faster = min(theirs) / min(ours)
                show(f"  {share:.1%}: ivme through the stream", min(ours), f"s, {faster:,.1f} times faster")
        finally:
            streamed.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sales", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--edges", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001, 0.01, 0.1])
    options = parse(parser)
    with session() as spark:
        for made, sizes in ((sales, options.sales), (triangles, options.edges), (skewed_triangles, options.edges)):
            for size in sizes:
                compare(spark, made(size), options.shares, options.runs)


if __name__ == "__main__":
    main()
