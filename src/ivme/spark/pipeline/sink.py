"""Where the rows of a view, or their changes, are written: each batch once, however many times it is written.

A sink gets the number of the batch with it. Parquet files carry it in their path or metadata, and appear by renaming;
a Delta table has it in its log as an application transaction, written in the same commit; what Spark itself
writes goes to a folder of the batch, which is overwritten, and over shards does not pass through the driver. Formats
without any of this may repeat the last batch after a crash, which the pipeline file has to accept.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ivme.definitions.user_functions import imported
from ivme.errors import SparkError
from ivme.pipeline.journal import digits, numbered
from ivme.pipeline.model import BATCH, Sink
from ivme.store import system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Writer(Protocol):
    """Writes the batches of one sink."""

    def claim(self) -> None:
        """Refuses a target that something else has written to; called before a pipeline first writes there."""

    def last(self) -> int | None:
        """The last batch that the target itself knows to have; None if it cannot tell, or has none."""

    def write(self, batch: int, rows: pa.Table) -> None:
        """Writes a batch; one that is there already stays as it is, or is replaced by the same."""


class ParquetChanges:
    """A folder for each batch, which readers see as the partition column `ivme_batch`."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path, self._owner = path, owner

    def claim(self) -> None:
        _claim(self._path, self._owner)

    def last(self) -> int | None:
        names = os.listdir(self._path) if self._path.is_dir() else []
        return max(numbered(names, f"{BATCH}="), default=None)

    def write(self, batch: int, rows: pa.Table) -> None:
        target = self._path / f"{BATCH}={digits(batch)}"
        if target.exists():
            return
        partial = self._path / f".{BATCH}={digits(batch)}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _write_whole(rows, partial / "changes.parquet")
        partial.rename(target)
        system.sync_directory(self._path)


class ParquetRows:
    """One file, replaced whole: a reader sees the rows of one batch, never a mixture."""

    def __init__(self, path: Path, owner: str) -> None:
        self._file, self._owner = path / "rows.parquet", owner

    def claim(self) -> None:
        _claim(self._file.parent, self._owner)

    def last(self) -> int | None:
        if not self._file.exists():
            return None
        metadata = pq.read_schema(self._file).metadata or {}
        return int(metadata[b"ivme.batch"]) if b"ivme.batch" in metadata else None

    def write(self, batch: int, rows: pa.Table) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_name(".rows.parquet")
        _write_whole(rows.replace_schema_metadata({"ivme.batch": str(batch)}), partial)
        partial.replace(self._file)
        system.sync_directory(self._file.parent)


class DeltaWriter:
    """A Delta table through deltalake: changes are appended with their `ivme_batch`, rows replace all others."""

    def __init__(self, path: str, application: str, options: dict[str, str], what: str) -> None:
        self._path, self._application, self._options, self._what = path, application, options, what

    def claim(self) -> None:
        from deltalake import DeltaTable

        if DeltaTable.is_deltatable(self._path, storage_options=self._options) and self.last() is None:
            raise _occupied(self._path)

    def last(self) -> int | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            version = DeltaTable(self._path, storage_options=self._options).transaction_version(self._application)
        except TableNotFoundError:
            return None
        return None if version is None else int(version)

    def write(self, batch: int, rows: pa.Table) -> None:
        from deltalake import CommitProperties, Transaction, write_deltalake
        from deltalake.exceptions import DeltaError

        reached = self.last()
        if reached is not None and reached >= batch:
            return
        if self._what == "changes":
            rows = rows.append_column(BATCH, pa.array([batch] * rows.num_rows, pa.int64()))
        try:
            write_deltalake(
                self._path,
                rows,
                mode="append" if self._what == "changes" else "overwrite",
                schema_mode=None if self._what == "changes" else "overwrite",
                storage_options=self._options,
                commit_properties=CommitProperties(app_transactions=[Transaction(self._application, batch)]),
            )
        except DeltaError as error:
            raise SparkError(f"the Delta table {self._path} cannot be written: {error}") from error


class SparkWriter:
    """Any format that Spark writes. Under a path, a batch of changes has a folder of its own, which is overwritten.

    What Kafka gets are rows as JSON.
    """

    def __init__(self, spark: SparkSession, sink: Sink) -> None:
        self._spark, self._sink = spark, sink

    def claim(self) -> None:
        """Spark's formats cannot tell who wrote; what is there is added to, or overwritten."""

    def last(self) -> int | None:
        return None

    def write(self, batch: int, rows: pa.Table) -> None:
        self.write_frame(batch, self._spark.createDataFrame(rows))

    def write_frame(self, batch: int, frame: DataFrame) -> None:
        """Writes a batch whose rows are where Spark's tasks are."""
        sink = self._sink
        if sink.mode == "changes" and sink.path is None:
            frame = _with_batch(frame, batch)
        if sink.format == "kafka":
            frame = frame.selectExpr("to_json(struct(*)) AS value")
        writer = frame.write.format(sink.format).options(**dict(sink.options))
        if sink.table is not None:
            writer.mode("append" if sink.mode == "changes" else "overwrite").saveAsTable(sink.table)
        elif sink.path is None:
            writer.mode("append" if sink.mode == "changes" else "overwrite").save()
        elif sink.mode == "changes":
            writer.mode("overwrite").save(f"{sink.path}/{BATCH}={digits(batch)}")
        else:
            writer.mode("overwrite").save(sink.path)


class PythonWriter:
    """A Python function that takes a batch: rows in Arrow, its number and the name of the sink.

    After a crash it may be called with the last batch again; the number tells.
    """

    def __init__(self, sink: Sink) -> None:
        self._name, self._call = sink.name, imported(str(sink.call), f"of sink {sink.name}")

    def claim(self) -> None:
        """The function knows where it writes."""

    def last(self) -> int | None:
        return None

    def write(self, batch: int, rows: pa.Table) -> None:
        self._call(rows, batch=batch, sink=self._name)


class SparkDeltaWriter(SparkWriter):
    """A Delta table through Delta's jar, which skips a batch of an application that the table's log has already."""

    def __init__(self, spark: SparkSession, sink: Sink, application: str) -> None:
        super().__init__(spark, sink)
        self._application = application

    def write_frame(self, batch: int, frame: DataFrame) -> None:
        sink = self._sink
        if sink.mode == "changes":
            frame = _with_batch(frame, batch)
        once = {"txnAppId": self._application, "txnVersion": str(batch)}
        writer = frame.write.format("delta").options(**dict(sink.options), **once)
        writer.mode("append" if sink.mode == "changes" else "overwrite").save(sink.path)


def _with_batch(frame: DataFrame, batch: int) -> DataFrame:
    from pyspark.sql import functions

    return frame.withColumn(BATCH, functions.lit(batch).cast("long"))


def _claim(path: Path, owner: str) -> None:
    """Marks a folder as written by a state; one that is marked by another, or has files of others, is refused."""
    mark = path / ".ivme"
    if path.is_dir() and any(path.iterdir()) and (not mark.exists() or mark.read_text("utf-8") != owner):
        raise _occupied(str(path))
    path.mkdir(parents=True, exist_ok=True)
    mark.write_text(owner, "utf-8")


def _occupied(path: str) -> SparkError:
    return SparkError(
        f"{path} has rows that this pipeline's state did not write; remove it, write to another path, or bring back "
        "the state that wrote it"
    )


def _write_whole(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
