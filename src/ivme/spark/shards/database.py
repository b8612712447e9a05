"""`ivme.SparkDatabase`: views over shards on Spark, with the methods of `ivme.Database`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ivme.errors import PlanError, SparkError
from ivme.shards.catalog import MOST_SHARDS
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.database import ShardedDatabase
from ivme.shards.flight_cluster import LEASE, HostStarter
from ivme.shards.processes import ChildProcesses, by_host
from ivme.store.checkpoint_store import CheckpointStore, open_checkpoint_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_logger = logging.getLogger("ivme")


class SparkDatabase(ShardedDatabase):
    """Tables and views in shards, with steps and snapshots in a checkpoint that all hosts can reach."""

    def __init__(
        self,
        spark: SparkSession,
        shards: int | None = None,
        checkpoint: str | Path = "",
        *,
        hosts: int | None = None,
        lease: float = LEASE,
        tls: bool = False,
    ) -> None:
        """Opens the database of a checkpoint, or makes one with as many shards as given.

        The shards are served by so many hosts: tasks of Spark, one for each executor if not said; in a local session
        processes, one for each shard. `lease` is for how many seconds a host lives
        on that hears nothing of the driver. With `tls`, all connections are encrypted.
        """
        from ivme.spark.shards.cluster import SparkCluster

        if not str(checkpoint):
            raise SparkError("a SparkDatabase needs a checkpoint: a folder that all hosts reach, or an s3:// address")
        _check_count("shards", shards)
        _check_count("hosts", hosts)
        self.spark = spark

        def cluster(wanted: int | None) -> SparkCluster:
            found = Checkpoint.open(_driver_store(spark, checkpoint), wanted)
            starter, listen, most = _host_starter(spark, found.shards)
            served = by_host(found.shards, min(hosts or most, found.shards))
            return SparkCluster(found, starter, served, listen=listen, lease=lease, tls=tls)

        super().__init__(cluster(shards), lambda: cluster(None))

    # Streams

    def stream(
        self, table: str, frame: DataFrame, *, name: str | None = None, weight: str | None = None
    ) -> StreamingQuery:
        """Applies a streaming DataFrame to a table, each micro-batch once: it is a batch of the source `name`.

        `weight` is the column with the weights of rows; without it, rows are inserts.
        """
        if not getattr(frame, "isStreaming", False):
            raise PlanError(f"table {table}: the DataFrame is not a stream; use insert() or apply() for it")
        if type(self.spark).__module__.startswith("pyspark.sql.connect"):
            raise PlanError(
                "stream() needs a classic Spark session: through Spark Connect a micro-batch runs in a process that "
                "does not have the database; apply() bounded DataFrames, or run with spark-submit"
            )
        declared = self._catalog.table(table)
        source = name or f"stream of {declared.name}"

        def applied(batch: DataFrame, batch_id: int) -> None:
            reached = self.position(source)
            if reached is None or batch_id > reached:
                with self.batch(source, batch_id) as changes:
                    changes.apply(declared.name, batch, weight or 1)

        writer = frame.writeStream.foreachBatch(applied).queryName(f"{source} {self.checkpoint.identity[:8]}")
        return writer.option("checkpointLocation", f"{self.checkpoint.store.address}/sources/{source}").start()

    # DataFrames

    def table(self, view: str, **parameters: Any) -> DataFrame:
        """The rows of a view, whole or for given parameters, as a DataFrame over all shards, at the present step."""
        from ivme.spark.shards.reader import read_view

        return read_view(self, view, parameters)

    def changes(self, view: str) -> DataFrame:
        """The changes of a view from now on, as a streaming DataFrame with the weights of rows in `_weight`."""
        from ivme.spark.shards.reader import stream_changes

        self._follow(view)
        return stream_changes(self, self._catalog.view(view).name)

    def register(self, view: str, name: str | None = None) -> None:
        """Makes a view with parameters a function in SQL: `SELECT * FROM view(origin => 'London')`."""
        from ivme.spark.shards.sql import register_view

        register_view(self, self._catalog.view(view).name, name or view)


def _host_starter(spark: SparkSession, shards: int) -> tuple[HostStarter, str, int]:
    """What starts the hosts, the address at which the driver listens, and how many hosts there are if not said."""
    from ivme.spark.shards.tasks import SparkTasks, can_reserve, cpus_of_a_task, executors

    if can_reserve(spark):
        listen = str(spark.conf.get("spark.driver.host") or "127.0.0.1")
        return SparkTasks(spark, cpus_of_a_task(spark)), listen, executors(spark, shards)
    if not (spark.conf.get("spark.master", "") or "").startswith("local"):
        _logger.warning("shards are served by processes of this machine: a Spark Connect session cannot reserve tasks")
    return ChildProcesses(), "127.0.0.1", shards


def _driver_store(spark: SparkSession, address: str | Path) -> CheckpointStore:
    """The store of a checkpoint for its driver, which creates records."""
    from ivme.spark.shards.hadoop_records import hadoop_create
    from ivme.store.hadoop_store import HadoopStore

    found = open_checkpoint_store(address)
    return found.created_by(hadoop_create(spark)) if isinstance(found, HadoopStore) else found


def _check_count(name: str, given: object) -> None:
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MOST_SHARDS):
        raise SparkError(f"{name} must be a number from 1 to {MOST_SHARDS}; it is {given!r}")
