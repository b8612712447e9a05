"""`python -m tests.spark.standalone_driver MASTER CHECKPOINT BATCHES KILLS SEED`: a database on a standalone cluster.

It applies numbered batches, from the driver and from DataFrames in turn, while a thread kills workers of Python and
executors at random, and prints what it found. A batch that was applied before the driver was killed is not applied
again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import ivme
from ivme.shards.flight_client import ShardClients
from ivme.shards.flight_cluster import FlightCluster
from ivme.shards.message import LostError, Question, raise_error
from ivme.shards.registry import HostEntry
from ivme.spark.session.session import open_session
from tests.test_docs import ROOT

VIEW = "SELECT R.a, SUM(S.c) AS t, COUNT(*) AS n FROM R JOIN S ON R.b = S.b GROUP BY R.a"
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.cores": "3",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.deploy.maxExecutorRetries": "-1",
}


def rows_of(number: int) -> list[tuple[int, int]]:
    return [((number * 7 + i) % 9, (number * 13 + i * i) % 50) for i in range(200)]


def apply(db: Any, number: int, spark: SparkSession | None = None) -> None:
    rows = rows_of(number)
    with db.batch("feed", number) if spark is not None else db.batch() as batch:
        if spark is not None and number % 4 == 3:
            batch.insert("R", spark.createDataFrame(rows, "a long, b long"))
        else:
            batch.insert("R", rows)
        batch.insert("S", rows)
        if number:
            batch.delete("R", rows_of(number - 1)[:5])


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().split(")")[-1].split()[1])


def executor_of(worker: int) -> int | None:
    """The executor's JVM, above a worker of Python and its daemon."""
    above = worker
    while (above := parent(above)) > 1:
        if "java" in Path(f"/proc/{above}/exe").resolve().name:
            return above
    return None


def kill_at_random(cluster: FlightCluster, kills: int, seed: int, over: threading.Event, done: list[str]) -> None:
    chance = random.Random(seed)
    while len(done) < kills and not over.wait(1 + 4 * chance.random()):
        entry = cluster._registry.current().get(chance.randrange(2))
        if entry is None:
            continue
        with suppress(FileNotFoundError, ProcessLookupError):
            target = executor_of(entry.pid) if chance.random() < 0.4 else entry.pid
            os.kill(target or entry.pid, signal.SIGKILL)
            done.append("worker" if target in (None, entry.pid) else "executor")


def served_twice(cluster: FlightCluster, seen: dict[int, HostEntry]) -> list[int]:
    """The epochs of hosts that answer though others have their shards."""
    current = {entry.epoch for entry in cluster._registry.current().values()}
    found = []
    for epoch, entry in seen.items():
        shard = next(s for s in range(2) if cluster._registry._host_of[s] == entry.host)
        question = Question(shard, {"op": "status"})
        try:
            raise_error(ShardClients(cluster.access).ask(entry.address, epoch, question, 10).head)
            found += [] if epoch in current else [epoch]
        except (LostError, TimeoutError):
            pass
    return found


def main(master: str, checkpoint: str, batches: int, kills: int, seed: int) -> None:
    spark = open_session("standalone", master=master, conf=CONF)
    with ivme.SparkDatabase(spark, 2, checkpoint) as db:
        cluster: Any = db._cluster
        for table in "RS":
            if table not in db.tables:
                db.create_table(table, {"a": "int", "b": "int"} if table == "R" else {"b": "int", "c": "int"})
        if "v" not in db.views:
            db.create_view("v", VIEW)
        print("open", json.dumps([status["pid"] for status in db.status()]), flush=True)
        over, done, seen = threading.Event(), list[str](), dict[int, HostEntry]()
        killer = threading.Thread(target=kill_at_random, args=(cluster, kills, seed, over, done))
        killer.start()
        reached, number = db.position("feed"), 0
        number = 0 if reached is None else reached + 1
        while number < batches or len(done) < kills:
            seen.update({entry.epoch: entry for entry in cluster._registry.current().values()})
            apply(db, number, spark)
            print("batch", number, flush=True)
            number += 1
        over.set()
        killer.join()
        status = db.status()
        seen.update({entry.epoch: entry for entry in cluster._registry.current().values()})
        entries = {each["pid"]: sum(each["entries"].values()) for each in status}
        print("kills", json.dumps(done), flush=True)
        print("twice", json.dumps(served_twice(cluster, seen)), flush=True)
        print("entries", json.dumps(list(entries.values())), flush=True)
        read = sorted([list(row) for row in db.table("v").collect()])
        print("read", json.dumps(read == sorted(list(row) for row in db.view("v"))), flush=True)
        print("rows", json.dumps([number, sorted(db.view("v"))]), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
