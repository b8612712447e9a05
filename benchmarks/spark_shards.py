"""Sharded views on Spark: a bulk load and a stream through the shards, beside one engine and Spark's own SQL.

    python -m benchmarks.spark_shards [--rows 1000000] [--batch 200000] [--batches 5] [--shards 2]
        [--master spark://127.0.0.1:7077]

The targets are for --rows 10000000: at least 60,000 changes a second through two shards in batches of 200,000, each
exactly once, and a bulk load in less than 60 seconds. Rows are parquet files, as a pipeline finds them. Seconds of the
processors are printed beside those on the wall: on a machine that others use as well, the latter say little. They are
told by process: the driver, its JVM, the hosts of shards, executors, and other workers of Python. The same rows and
batches go through one engine in this process (`ivme.Database`), and Spark computes the view anew from all rows. With a
master, such as `scripts/standalone start FOLDER` prints, shards are tasks of that cluster, else child processes.
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
from benchmarks.shard_steps import CLUSTER
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


Seconds = dict[str, float]


def processor_seconds(hosts: set[int]) -> Seconds:
    """What each kind of process has used of the processors: the driver, those that it started, and the cluster's."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    is_java: dict[int, bool] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            fields, process = rest.split(), int(path.parent.name)
            parents[process], is_java[process] = int(fields[1]), "java" in name
            used[process] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    executors = {each for host in hosts for each in _above(host, parents) if is_java.get(each)}
    found = dict.fromkeys(("driver", "its JVM", "hosts of shards", "executors", "other workers"), 0.0)
    for process, seconds in used.items():
        above = [process, *_above(process, parents)]
        if process == os.getpid():
            found["driver"] += seconds
        elif process in hosts:
            found["hosts of shards"] += seconds
        elif os.getpid() in above:
            found["its JVM" if is_java[process] else "other workers"] += seconds
        elif executors & set(above):
            found["executors" if is_java[process] else "other workers"] += seconds
    return found


def _above(process: int, parents: dict[int, int]) -> list[int]:
    found: list[int] = []
    while (process := parents.get(process, 0)) > 1:
        found.append(process)
    return found


def hosts_of(db: ivme.SparkDatabase) -> set[int]:
    return {status["pid"] for status in db.status()}


def measured(db: ivme.SparkDatabase, work: Callable[[], Any]) -> tuple[float, Seconds]:
    """Seconds on the wall, and of the processors by process."""
    hosts = hosts_of(db)
    before, start = processor_seconds(hosts), time.perf_counter()
    work()
    took, after = time.perf_counter() - start, processor_seconds(hosts)
    return took, {name: after[name] - before[name] for name in after}


def told(seconds: Seconds) -> str:
    shares = ", ".join(f"{name} {each:.1f}" for name, each in seconds.items() if each >= 0.05)
    return f"{sum(seconds.values()):.1f} s of the processors ({shares}); load {os.getloadavg()[0]:.1f}"


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
    spark_took, spark_seconds = measured(
        db, lambda: computed.append(spark.sql(QUERY).selectExpr("count(*)", "sum(total)").collect())
    )
    found = view.to_arrow()
    assert list(computed[0][0]) == [found.num_rows, int(np.sum(found.column("total").to_numpy()))]
    print(f"bulk load of {rows:,} rows into a join view on {shards} shards: {took:.1f} s", flush=True)
    print(f"  {rows / took:,.0f} rows/s, {told(processors)}")
    print(
        f"  Spark SQL computes the view once, from the files, in {spark_took:.1f} s, {told(spark_seconds)}", flush=True
    )
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
    reached, before_all, hosts = -1, Seconds(), hosts_of(db)
    while reached < batches:
        time.sleep(0.01)
        if query.exception() is not None:
            raise RuntimeError(query.exception())
        now = db.position("bench")
        if now is not None and now > reached:
            took.append(time.perf_counter() - start)
            before_all = before_all or processor_seconds(hosts)
            start, reached = time.perf_counter(), now
    after_all = processor_seconds(hosts)
    query.stop()
    steady = took[1:]
    rate = size * len(steady) / sum(steady)
    print(f"streaming through {db.checkpoint.shards} shards, {len(steady)} batches of {size:,}: {rate:,.0f} changes/s")
    print(f"  seconds a batch: {', '.join(f'{each:.2f}' for each in steady)}")
    each = {name: (after_all[name] - before_all[name]) / len(steady) for name in after_all}
    print(f"  a batch {told(each)}", flush=True)


def check(spark: SparkSession, db: ivme.SparkDatabase, folder: Path, batches: int) -> None:
    """The view equals what Spark SQL computes from the loaded rows and the last batch."""
    last = spark.read.parquet(str(folder / "stream" / f"{batches:04}.parquet")).filter("w = 1").select("a", "b")
    spark.read.parquet(str(folder / "R-1")).union(last).createOrReplaceTempView("R")
    totals = "SELECT COUNT(*), SUM(n), SUM(total) FROM"
    db.table("v").createOrReplaceTempView("v")
    assert spark.sql(f"{totals} ({QUERY})").collect() == spark.sql(f"{totals} v").collect()
    entries = [sum(status["entries"].values()) for status in db.status()]
    print(f"equal to Spark SQL; entries by process: {', '.join(f'{each:,}' for each in entries)}")


def one_engine(folder: Path, batches: int) -> None:
    """The same rows and batches through an embedded database in a directory, read from the files by Arrow."""
    with ivme.Database(folder / "one", durability="sync") as db:
        for name, schema in SCHEMAS.items():
            db.create_table(name, schema)
        view = db.create_view("v", QUERY)
        files = [folder / "stream" / f"{number:04}.parquet" for number in range(batches + 1)]
        before, start = time.process_time(), time.perf_counter()
        with db.batch() as batch:
            for number, name in enumerate(SCHEMAS, 1):
                batch.insert(name, pq.read_table(folder / f"{name}-{number}"))
        took = time.perf_counter() - start
        print(f"one engine: load {took:.1f} s, {time.process_time() - before:.1f} s of the processors", flush=True)
        changes = 0
        for number, path in enumerate(files):
            if number == 1:
                before, start = time.process_time(), time.perf_counter()
            rows = pq.read_table(path)
            changes += rows.num_rows if number else 0
            db.apply("R", rows.drop_columns(["w"]), rows.column("w").to_numpy())
        took, used = time.perf_counter() - start, time.process_time() - before
        print(f"  {batches} batches: {changes / took:,.0f} changes/s, {used / batches:.2f} s of the processors a batch")
        print(f"  {view.count():,} rows; load {os.getloadavg()[0]:.1f}", flush=True)


def recomputed(spark: SparkSession) -> None:
    """Spark computes the view from all rows, as it would have to after each batch."""
    start = time.perf_counter()
    spark.sql(f"SELECT COUNT(*), SUM(n), SUM(total) FROM ({QUERY})").collect()
    print(f"Spark SQL recomputes the view in {time.perf_counter() - start:.1f} s; load {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    conf = {} if given.master.startswith("local") else CLUSTER
    spark = open_session("spark-shards", master=given.master, conf=conf)
    folder = Path(tempfile.mkdtemp(prefix="ivme-bench-"))
    try:
        with bulk_load(spark, folder, given.rows, given.shards) as db:
            streaming(spark, db, folder, given.batch, given.batches, max(given.rows // 10, 1))
            check(spark, db, folder, given.batches)
            recomputed(spark)
        spark.stop()
        one_engine(folder, given.batches)
    finally:
        spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
