"""Changes a second from files through two views to a Delta table that is merged into, and where the time goes.

    python -m benchmarks.spark_merge [--batches 1000 10000 100000] [--files 8] [--keys 200000]

Files of Parquet hold upserts and deletes by key with a sequence; one in ten comes late. One view joins and groups, the
other reads it; the first is merged into a Delta table by its key. Each file is a batch. The parts are those of a batch
in the driver: `read` (Spark and Arrow), `resolve` (events to changes), `keep` (the synced copy for recovery), `engine`
(the durable commit with both views), `sink` (the MERGE) and the rest (journal, listing). Before anything is shown the
merged table is compared with the view, and all tables and views with plain Spark SQL. The CPU time of a batch is shown
beside, of this process and of the JVM, which other work on the machine changes less than the time on the clock.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from benchmarks.spark_workloads import session
from ivme.pipeline import read_pipeline
from ivme.pipeline.taken import TakenBatches
from ivme.spark.pipeline import driver as driving
from ivme.spark.pipeline.delta_merge import DeltaMergeWriter
from ivme.spark.pipeline.directory import Directory
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Applied, Event, Opening
from ivme.spark.pipeline.verify import verify_pipeline

WARM_UP = 2

_FILE = """\
tables:
  sales:
    columns: {id: int, shop: int, amount: int}
    primary_key: id
    load: {format: parquet, path: sales.parquet}
    changes:
      directory: changes
      format: parquet
      operation: op
      upsert: true
      sequence_by: lsn
      files_per_batch: 1
  shops:
    columns: {id: int, city: string}
    primary_key: id
    load: {format: parquet, path: shops.parquet}
views:
  per_shop:
    sql: |
      SELECT s.shop, h.city, COUNT(*) AS n, SUM(s.amount) AS total
      FROM sales s JOIN shops h ON s.shop = h.id GROUP BY s.shop, h.city
  per_city:
    sql: SELECT city, SUM(total) AS total FROM per_shop GROUP BY city
sinks:
  merged: {view: per_shop, mode: merge, format: delta, path: out/merged}
"""


def write_files(folder: Path, keys: int, batch: int, files: int) -> None:
    """The pipeline, its tables, and files of changes."""
    chance = np.random.default_rng(1)
    (folder / "changes").mkdir(parents=True)
    (folder / "p.yml").write_text(_FILE)
    shops = keys // 20
    pq.write_table(
        pa.table({"id": np.arange(shops), "city": [f"c{i % 50}" for i in range(shops)]}), folder / "shops.parquet"
    )
    columns = {"id": np.arange(keys), "shop": chance.integers(0, shops, keys), "amount": chance.integers(0, 99, keys)}
    pq.write_table(pa.table(columns), folder / "sales.parquet")
    for number in range(files):
        lsn = np.arange(number * batch, (number + 1) * batch)
        late = chance.random(batch) < 0.1
        lsn[late] = chance.integers(0, (number + 1) * batch, int(late.sum()))
        ids = chance.integers(0, int(1.1 * keys), batch)
        changes = {
            "op": np.where(chance.random(batch) < 0.1, "d", "u"),
            "id": ids,
            "shop": chance.integers(0, shops, batch),
            "amount": chance.integers(0, 99, batch),
            "lsn": lsn,
        }
        pq.write_table(pa.table(changes), folder / "changes" / f"{number}.parquet")


@contextmanager
def timed(times: dict[str, float]) -> Iterator[None]:
    """Adds up the seconds of the parts of a batch."""

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                times[name] = times.get(name, 0.0) + time.perf_counter() - start

        return run

    with ExitStack() as stack:
        for name, holder, attribute in (
            ("read", Directory, "read"),
            ("resolve", driving, "prepared"),
            ("keep", TakenBatches, "save"),
            ("sink", DeltaMergeWriter, "write"),
        ):
            stack.enter_context(patch.object(holder, attribute, wrapped(name, getattr(holder, attribute))))
        yield


def cpu_seconds(spark: Any) -> tuple[float, float]:
    """The CPU time that this process and the JVM have had."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return time.process_time(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(spark: Any, folder: Path) -> list[dict[str, float]]:
    """The seconds of each batch, by part; the merged table and the views are right at the end."""
    found: list[dict[str, float]] = []
    times: dict[str, float] = {}
    before = list(cpu_seconds(spark))

    def note(event: Event) -> None:
        if isinstance(event, Opening):
            return
        assert isinstance(event, Applied), event
        own, java = cpu_seconds(spark)
        spent = {"python": own - before[0], "jvm": java - before[1]}
        before[:] = own, java
        found.append({**times, **spent, "engine": event.engine_seconds, "all": event.seconds, "rows": event.rows_in})
        times.clear()

    driver = Driver(spark, read_pipeline(folder / "p.yml"), note)
    try:
        times.clear()
        before[:] = cpu_seconds(spark)
        with timed(times):
            while driver.step("sales"):
                pass
        merged = DeltaTable(str(folder / "out/merged")).to_pyarrow_table()
        assert sorted(driver.database.view("per_shop")) == sorted(tuple(row.values()) for row in merged.to_pylist())
        assert not any(compared.differences for compared in verify_pipeline(driver))
    finally:
        driver.close()
    return found[WARM_UP:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--keys", type=int, default=200_000)
    given = parser.parse_args()
    for batch in given.batches:
        with session() as spark, tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), given.keys, batch, given.files)
            parts = measured(spark, Path(folder))
        middle = {name: median(part.get(name, 0.0) for part in parts) for name in parts[0]}
        named = ("read", "resolve", "keep", "engine", "sink")
        rest = middle["all"] - sum(middle[name] for name in named)
        shown = ", ".join(f"{name} {1000 * middle[name]:.0f}" for name in named)
        print(f"{batch:,} changes: {1000 * middle['all']:.0f} ms a batch, {batch / middle['all']:,.0f} changes/s")
        print(f"  ms: {shown}, rest {1000 * rest:.0f}")
        spent = (f"{name} {1000 * middle[name]:.0f}" for name in ("python", "jvm"))
        print(f"  ms of CPU: {', '.join(spent)}; load of the machine {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
