"""`ivme.SparkDatabase`: views over shards on Spark, with the methods of `ivme.Database` (DESIGN section 2)."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import unquote, urlsplit

from ivme.errors import PlanError, SparkError
from ivme.shards.client import LEASE
from ivme.shards.database import ShardedDatabase
from ivme.shards.journal import StepJournal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class SparkDatabase(ShardedDatabase):
    """Tables and views in shards on Spark's hosts, kept in a checkpoint that all hosts reach by the same path."""

    def __init__(
        self, spark: SparkSession, shards: int | None = None, checkpoint: str | Path = "", *, lease: float = LEASE
    ) -> None:
        """Opens the database of a checkpoint, or makes one with as many shards as given.

        `lease` is for how many seconds a shard's process lives on that nobody asks anything.
        """
        from ivme.spark.shards.stream import SparkCluster

        root = checkpoint_folder(checkpoint)
        if shards is not None and (not isinstance(shards, int) or isinstance(shards, bool) or not 1 <= shards <= 1024):
            raise SparkError(f"shards must be a number from 1 to 1024; it is {shards!r}")
        self._held = _locked(root)
        self.spark = spark
        try:
            super().__init__(SparkCluster(spark, StepJournal.open(root, shards), lease=lease))
        except BaseException:
            self._held.close()
            raise

    # Streams

    def stream(
        self, table: str, frame: DataFrame, *, name: str | None = None, weight: str | None = None
    ) -> StreamingQuery:
        """Applies a streaming DataFrame to a table, each micro-batch once: it is a batch of the source `name`.

        `weight` is the column with the weights of rows; without it, rows are inserts.
        """
        if not getattr(frame, "isStreaming", False):
            raise PlanError(f"table {table}: the DataFrame is no stream; use insert() or apply() for it")
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

        writer = frame.writeStream.foreachBatch(applied).queryName(f"{source} {self._journal.identity[:8]}")
        return writer.option("checkpointLocation", str(self._journal.root / "sources" / source)).start()

    # DataFrames

    def table(self, view: str, **parameters: Any) -> DataFrame:
        """The rows of a view, or of an access request, as a DataFrame over all shards, at the present step."""
        from ivme.spark.shards.reader import read_view

        return read_view(self, view, parameters)

    def changes(self, view: str) -> DataFrame:
        """The changes of a view from now on, as a streaming DataFrame with the weights of rows in `_weight`."""
        from ivme.spark.shards.reader import stream_changes

        self._follow(view)
        return stream_changes(self, self._catalog.view(view).name)

    def register(self, view: str, name: str | None = None) -> None:
        """Makes a view with parameters a function of SQL: `SELECT * FROM view(origin => 'London')`."""
        from ivme.spark.shards.sql import register_view

        register_view(self, self._catalog.view(view).name, name or view)

    def close(self) -> None:
        """Ends the streaming query and the shards' processes; the checkpoint can be opened again."""
        super().close()
        self._held.close()


def _locked(root: Path) -> TextIO:
    """Holds a checkpoint against others who would write to it."""
    root.mkdir(parents=True, exist_ok=True)
    held = (root / "lock").open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise SparkError(f"the database at {root} is open already, in this process or another; close it") from None
    return held


def checkpoint_folder(checkpoint: str | Path) -> Path:
    """The folder of a checkpoint; other file systems than those that hosts mount are refused by name."""
    text = str(checkpoint)
    if not text:
        raise SparkError("a SparkDatabase needs a checkpoint: a folder that all hosts reach by the same path")
    parts = urlsplit(text)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).absolute()
    if "://" in text:
        raise SparkError(
            f"the checkpoint {text} is on {parts.scheme}; shards keep theirs in a folder that all hosts mount under "
            "the same path: use a local folder or a network file system"
        )
    return Path(text).absolute()
