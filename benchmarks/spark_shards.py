"""Sharded views on local Spark: streaming through the shards in batches, and a bulk load, beside Spark's own SQL.

    python -m benchmarks.spark_shards [--rows 1000000] [--batch 200000] [--batches 5] [--shards 2]

The targets are for --rows 10000000: at least 60,000 changes a second through two shards in batches of 200,000, each
exactly once, and a bulk load in less than 60 seconds. Rows are parquet files, as a pipeline finds them. Seconds of the
processors are printed beside those on the wall: on a machine that others use as well, the latter say little.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ivme
from ivme.spark.session.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "SELECT R.a, COUNT(*) AS n, SUM(S.c) AS total FROM R JOIN S ON R.a = S.a GROUP BY R.a"
SCHEMAS = {"R": {"a": "int", "b": "int"}, "S": {"a": "int", "c": "int"}}


def write_rows(folder: Path, name: str, rows: int, keys: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    other = next(column for column in SCHEMAS[name] if column != "a")
    target = folder / f"{name}-{seed}"
    target.mkdir()
    for part in range(4):
        size = rows // 4 + (rows % 4 if part == 0 else 0)
        columns = {"a": rng.integers(0, keys, size), other: rng.integers(0, rows, size)}
        pq.write_table(pa.table(columns), target / f"{part}.parquet")
    return str(target)


def processor_seconds(db: ivme.SparkDatabase) -> float:
    """What this process, those that it started (Spark's among them) and the shards' have used of the processors."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
            used[int(path.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    hosts = {status["pid"] for status in db.status()}
    return sum(seconds for process, seconds in used.items() if process in hosts or _is_ours(process, parents))


def _is_ours(process: int, parents: dict[int, int]) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = parents.get(process, 0)
    return False


def measured(db: ivme.SparkDatabase, work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the wall, and of the processors."""
    before, start = processor_seconds(db), time.perf_counter()
    work()
    return time.perf_counter() - start, processor_seconds(db) - before


def bulk_load(spark: SparkSession, folder: Path, rows: int, shards: int) -> ivme.SparkDatabase:
    """Both tables into a database whose view is there already; the same rows and view by Spark SQL beside it."""
    paths = {name: write_rows(folder, name, rows // 2, max(rows // 10, 1), seed) for seed, name in enumerate("RS", 1)}
    frames = {name: spark.read.parquet(path) for name, path in paths.items()}
    db = ivme.SparkDatabase(spark, shards, folder / "checkpoint")
    for name, schema in SCHEMAS.items():
        db.create_table(name, schema)
    view = db.create_view("v", QUERY)

    def load() -> None:
        with db.batch() as batch:
            for name, frame in frames.items():
                batch.insert(name, frame)

    took, processors = measured(db, load)
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    computed: list[Any] = []
    spark_took, _ = measured(
        db, lambda: computed.append(spark.sql(QUERY).selectExpr("count(*)", "sum(total)").collect())
    )
    found = view.to_arrow()
    assert list(computed[0][0]) == [found.num_rows, int(np.sum(found.column("total").to_numpy()))]
    print(f"bulk load of {rows:,} rows into a join view on {shards} shards: {took:.1f} s", flush=True)
    print(f"  {rows / took:,.0f} rows/s, {processors:.1f} s of the processors; load {os.getloadavg()[0]:.1f}")
    print(f"  Spark SQL computes the view once, from the files, in {spark_took:.1f} s")
    return db


def streaming(spark: SparkSession, db: ivme.SparkDatabase, folder: Path, size: int, batches: int, keys: int) -> None:
    """Files of one batch each through a stream, with weights: half inserts, half deletes of the batch before."""
    source, rng = folder / "stream", np.random.default_rng(9)
    source.mkdir()
    before = pa.table({"a": [], "b": []}, schema=pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    for number in range(batches + 1):
        new = pa.table({"a": rng.integers(0, keys, size // 2), "b": rng.integers(10**9, 10**10, size // 2)})
        both = pa.concat_tables([new, before])
        weights = np.concatenate([np.ones(new.num_rows, np.int64), -np.ones(before.num_rows, np.int64)])
        pq.write_table(both.append_column("w", pa.array(weights)), source / f"{number:04}.parquet")
        os.utime(source / f"{number:04}.parquet", (number + 1, number + 1))
        before = new
    frame = spark.readStream.schema("a long, b long, w long").option("maxFilesPerTrigger", 1).parquet(str(source))
    start = time.perf_counter()
    query = db.stream("R", frame, name="bench", weight="w")
    took: list[float] = []
    reached, before_all = -1, 0.0
    while reached < batches:
        time.sleep(0.01)
        if query.exception() is not None:
            raise RuntimeError(query.exception())
        now = db.position("bench")
        if now is not None and now > reached:
            took.append(time.perf_counter() - start)
            before_all = before_all or processor_seconds(db)
            start, reached = time.perf_counter(), now
    processors = processor_seconds(db) - before_all
    query.stop()
    steady = took[1:]
    rate = size * len(steady) / sum(steady)
    print(f"streaming through {db.checkpoint.shards} shards, {len(steady)} batches of {size:,}: {rate:,.0f} changes/s")
    print(f"  seconds a batch: {', '.join(f'{each:.2f}' for each in steady)}")
    each = processors / len(steady)
    print(f"  {each:.2f} s of the processors a batch; load {os.getloadavg()[0]:.1f}", flush=True)


def check(spark: SparkSession, db: ivme.SparkDatabase, folder: Path, batches: int) -> None:
    """The view equals what Spark SQL computes from the loaded rows and the last batch."""
    last = spark.read.parquet(str(folder / "stream" / f"{batches:04}.parquet")).filter("w = 1").select("a", "b")
    spark.read.parquet(str(folder / "R-1")).union(last).createOrReplaceTempView("R")
    totals = "SELECT COUNT(*), SUM(n), SUM(total) FROM"
    db.table("v").createOrReplaceTempView("v")
    assert spark.sql(f"{totals} ({QUERY})").collect() == spark.sql(f"{totals} v").collect()
    entries = [sum(status["entries"].values()) for status in db.status()]
    print(f"equal to Spark SQL; entries by process: {', '.join(f'{each:,}' for each in entries)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--shards", type=int, default=2)
    given = parser.parse_args()
    spark = open_session("spark-shards", master="local[2]")
    folder = Path(tempfile.mkdtemp(prefix="ivme-bench-"))
    try:
        with bulk_load(spark, folder, given.rows, given.shards) as db:
            streaming(spark, db, folder, given.batch, given.batches, max(given.rows // 10, 1))
            check(spark, db, folder, given.batches)
    finally:
        spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
