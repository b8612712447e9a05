"""Shards on Spark: one streaming query takes every step of the log through all of them.

    log of steps ──▶ groupBy(shard).transformWithState ──▶ outcomes
                        │            ▲
                        ▼            │ where the shard is: snapshot, steps since, version
                  the shard's    the state store
                  daemon

The state store holds, for each shard, its snapshot and the digests of the steps since then. It moves on with the
query's own offsets, so that each step counts exactly once whatever fails; the daemon follows, or is rebuilt. Rows never
pass through the query: they rest in the files that the steps name.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ivme.errors import SparkError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.client import LEASE, ask, ask_running, stop_running
from ivme.shards.cluster import Question
from ivme.shards.journal import StepJournal
from ivme.shards.outcome import record_outcome
from ivme.shards.parts import PartFile
from ivme.shards.protocol import Message
from ivme.shards.shard import Base
from ivme.shards.stepping import take_steps
from ivme.spark.shards.asking import ask_by_job
from ivme.spark.shards.frames import place_frame
from ivme.spark.shards.step_source import StepSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ivme.query.model import Table

_STATE = "org.apache.spark.sql.execution.streaming.state"
_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.sql.adaptive.enabled": "false",
}
_ON_ONE_MACHINE = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""A third off each micro-batch; safe where one process writes to a local disk."""

_PING_SECONDS = 10.0


class ShardProcessor(StatefulProcessor):
    """Takes one shard through the steps that come; its state is where the shard is."""

    def __init__(self, root: str, lease: float) -> None:
        self._root = root
        self._lease = lease

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._place = handle.getValueState("place", "version long, base string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        journal = StepJournal.open(Path(self._root), None)
        given = [(row.shard, row.step) for row in rows]
        shard = given[0][0]
        found = self._place.get()
        base = Base() if found is None else Base.from_json(json.loads(found[1]))
        taken = take_steps(
            journal, shard, base, sorted(step for _, step in given), partial(ask, journal, shard, lease=self._lease)
        )
        self._place.update((Base.from_json(taken["base"]).position[0], json.dumps(taken["base"])))
        yield Row(shard=shard, taken=json.dumps(taken))

    def close(self) -> None:
        pass


def record_outcomes(root: str, batch: DataFrame, _batch_id: int) -> None:
    """Writes the outcome of each step of a micro-batch; the same again if Spark repeats it."""
    journal = StepJournal.open(Path(root), None)
    taken = [json.loads(row.taken) for row in batch.collect()]
    for number in sorted({report["step"] for shard in taken for report in shard["reports"]}):
        record_outcome(journal, number, taken)


class SparkCluster:
    """A `Cluster` on Spark. Daemons on the driver's own host are asked directly, others through jobs."""

    def __init__(self, spark: SparkSession, journal: StepJournal, *, lease: float = LEASE) -> None:
        self.journal = journal
        self._spark = spark
        self._lease = lease
        self._classic = not _is_connect(spark)
        self._local = (spark.conf.get("spark.master", "") or "").startswith("local") and self._classic
        self._stopped = threading.Event()
        self._query = self._start()
        self._pinging = threading.Thread(target=self._keep_alive, name="ivme-keep-alive", daemon=True)
        self._pinging.start()

    def _start(self) -> StreamingQuery:
        session = self._spark.newSession()
        session.conf.set("spark.sql.shuffle.partitions", str(self.journal.shards))
        for key, value in {**_SETTINGS, **(_ON_ONE_MACHINE if self._local else {})}.items():
            session.conf.set(key, value)
        root = str(self.journal.root)
        session.dataSource.register(StepSource)
        steps = session.readStream.format("ivme_steps").option("checkpoint", root).load()
        taken = steps.groupBy("key").transformWithState(
            statefulProcessor=ShardProcessor(root, self._lease),
            outputStructType="shard int, taken string",
            outputMode="Update",
            timeMode="None",
        )
        writer = taken.writeStream.foreachBatch(partial(record_outcomes, root)).outputMode("update")
        return writer.option("checkpointLocation", f"{root}/stream").queryName(f"ivme-{self.journal.identity}").start()

    def take_step(self, number: int) -> dict[str, Any]:
        """Waits until the streaming query has taken a step."""
        while True:
            found = self.journal.outcome(number)
            if found is not None:
                return found
            if not self._query.isActive:
                failed = self._query.exception()
                raise SparkError(f"the streaming query of {self.journal.root} ended at step {number}: {failed}")
            time.sleep(0.005)

    def ask(self, questions: Sequence[Question]) -> list[Message]:
        if self._local:
            return self._ask_at_once(questions)
        return ask_by_job(self._spark, self.journal, questions, self._lease)

    def _ask_at_once(self, questions: Sequence[Question]) -> list[Message]:
        def one(question: Question) -> Message:
            return ask(self.journal, question.shard, question.head, question.tables, self._lease)

        if len(questions) == 1:
            return [one(questions[0])]
        with ThreadPoolExecutor(max(len(questions), 1)) as pool:
            return list(pool.map(one, questions))

    def place_frame(
        self, catalog: ShardCatalog, table: Table, frame: Any, weight: int | str, folder: str, writer: str
    ) -> list[PartFile]:
        return place_frame(self.journal, catalog, table, frame, weight, folder, writer)

    def is_frame(self, rows: Any) -> bool:
        return hasattr(rows, "mapInArrow")

    def _keep_alive(self) -> None:
        """Asks the daemons on this host now and then, so that they do not end while the database is open."""
        while not self._stopped.wait(min(_PING_SECONDS, self._lease / 3)):
            for shard in range(self.journal.shards):
                ask_running(self.journal, shard, {"op": "ping"})

    def close(self) -> None:
        """Ends the query, and the daemons on this host; those on others end when their lease is over."""
        self._stopped.set()
        self._query.stop()
        stop_running(self.journal)


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")
