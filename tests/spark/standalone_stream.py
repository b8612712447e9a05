"""`python -m tests.spark.standalone_stream MASTER FOLDER`: files of changes through a stream into shards of a cluster.

After each micro-batch it prints its number and the processes of the hosts, so that whoever started it may kill them,
or it; started again, it goes on where it was. At the end it writes the rows of table and view to files of the folder.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ivme
from ivme.spark.session.session import open_session
from tests.spark.standalone_driver import CONF, served_twice

VIEW = "SELECT R.a, COUNT(*) AS n, SUM(R.b) AS b, SUM(S.c) AS c FROM R JOIN S ON R.a = S.a GROUP BY R.a"
TOTAL = "SELECT COUNT(*) AS n, SUM(b) AS b FROM R"
KEYS = 1000


def write_changes(folder: Path, changes: int, files: int) -> None:
    """Files of changes: three in four are inserts, the others delete rows of the file before."""
    chance, size = np.random.default_rng(3), changes // files
    folder.mkdir()
    before = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})
    for number in range(files):
        gone = before.slice(0, size // 4)
        new = size - gone.num_rows
        inserted = pa.table({"a": chance.integers(0, KEYS, new), "b": chance.integers(0, 10**6, new)})
        weights = np.concatenate([np.ones(new, np.int64), -np.ones(gone.num_rows, np.int64)])
        rows = pa.concat_tables([inserted, gone]).append_column("w", pa.array(weights))
        beside = folder.with_name(f"{number}.writing")
        pq.write_table(rows, beside)
        beside.rename(folder / f"{number:05}.parquet")
        before = inserted


def other_rows() -> pa.Table:
    return pa.table({"a": np.arange(2 * KEYS) % KEYS, "c": np.arange(2 * KEYS)})


def opened(db: ivme.SparkDatabase) -> None:
    for name, columns in {"R": {"a": "int", "b": "int"}, "S": {"a": "int", "c": "int"}}.items():
        if name not in db.tables:
            db.create_table(name, columns)
    for name, text in {"v": VIEW, "total": TOTAL}.items():
        if name not in db.views:
            db.create_view(name, text)
    if db.position("other") is None:
        with db.batch("other", 0) as batch:
            batch.insert("S", other_rows())


def main(master: str, folder: Path) -> None:
    spark = open_session("standalone-stream", master=master, conf=CONF)
    seen = {}
    with ivme.SparkDatabase(spark, 2, folder / "checkpoint") as db:
        opened(db)
        cluster = db._cluster
        frame = spark.readStream.schema("a long, b long, w long").option("maxFilesPerTrigger", 1)
        query = db.stream("R", frame.parquet(str(folder / "source")), name="feed", weight="w")
        told: tuple[int | None, list[int]] = (-1, [])
        through = threading.Thread(target=query.processAllAvailable)  # a killed driver may leave two files to a batch
        through.start()
        while through.is_alive():
            time.sleep(0.05)
            if query.exception() is not None:
                raise RuntimeError(query.exception())
            current = cluster._registry.current()  # type: ignore[attr-defined]
            seen.update({entry.epoch: entry for entry in current.values()})
            now = (db._coordinator.last.sources.get("feed"), sorted({entry.pid for entry in current.values()}))
            if now != told:
                told = now
                print("at", json.dumps([-1 if now[0] is None else now[0], now[1]]), flush=True)
        query.stop()
        print("reached", db.position("feed"), flush=True)
        entries: dict[int, int] = {}
        for each in db.status():
            entries[each["pid"]] = entries.get(each["pid"], 0) + sum(each["entries"].values())
        print("entries", json.dumps(list(entries.values())), flush=True)
        print("twice", json.dumps(served_twice(cluster, seen)), flush=True)  # type: ignore[arg-type]
        print("total", json.dumps(list(db.view("total"))), flush=True)
        pq.write_table(db.table_rows("R"), folder / "R.parquet")
        pq.write_table(db.view("v").to_arrow(), folder / "v.parquet")
        pq.write_table(db.table("v").toArrow(), folder / "read.parquet")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
