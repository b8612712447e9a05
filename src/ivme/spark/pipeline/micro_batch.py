"""Anything that Spark streams as a source of changes: each micro-batch goes to the driver as Arrow."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from ivme.errors import SparkError
from ivme.pipeline.frames import frame_of
from ivme.pipeline.model import FRAME, TableSource
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.envelope import events
from ivme.spark.pipeline.load import SELF_DESCRIBING, TEXTS
from ivme.spark.pipeline.reading import event_frame, sequence_fields, source_batch
from ivme.spark.pipeline.schema import check_columns, file_schema
from ivme.spark.pipeline.text_values import narrowed, text_layout
from ivme.spark.pipeline.texts import CORRUPT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import DataType, StructType

LOCAL_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""A third less time a batch on a local disk, where renames are atomic."""


class MicroBatches:
    """The stream of one table's changes."""

    def __init__(self, driver: Driver, source: TableSource) -> None:
        assert source.changes is not None
        self._driver, self._source, self._changes = driver, source, source.changes
        self.error: BaseException | None = None
        self.query: StreamingQuery | None = None

    def start(self, *, once: bool, pause: float | None = None) -> None:
        """Starts the stream: until it has caught up, or until it is stopped."""
        if not hasattr(self._driver.spark, "_jvm"):
            raise SparkError(
                f"{self._source.place}: table {self._source.table.name} has a stream of changes, which needs Spark's "
                "driver in this process; over Spark Connect batches go to another one. Use a directory, a Delta feed "
                "or another view's changes there, or run with --master"
            )
        frame = event_frame(self._frame(), self._changes, self._source.table, permissive=True)
        writer = frame.writeStream.foreachBatch(_handed_to(self)).queryName(f"ivme-{self._source.table.name}")
        checkpoint = self._driver.pipeline.state / "streams" / self._source.table.name
        self._driver.spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", LOCAL_CHECKPOINTS)
        writer = writer.option("checkpointLocation", str(checkpoint))
        often = f"{round(1000 * (pause or 0.2))} milliseconds"
        trigger = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=often)
        self.query = trigger.start()

    def _frame(self) -> DataFrame:
        from pyspark.sql.types import StringType, StructType

        rows, table = self._changes.rows, self._source.table
        if rows.format == FRAME:
            return self._given(frame_of(rows, table.name, streaming=True))
        options = {"enforceSchema": "false", **dict(rows.options)} if rows.format == "csv" else dict(rows.options)
        reader = self._driver.spark.readStream.format(rows.format).options(**options)
        layout = file_schema(table, self._own_columns())
        if rows.schema is not None:
            stated = StructType.fromDDL(rows.schema)
            assert isinstance(stated, StructType)
            layout = stated
        if self._changes.envelope is not None:
            reader = reader.format("text") if rows.format == "json" else reader
            return self._events(reader.load(rows.path) if rows.path else reader.load(), layout)
        if rows.format in TEXTS:
            reader = reader.option("columnNameOfCorruptRecord", CORRUPT)
            reader = reader.schema(StructType(list(text_layout(layout, rows))).add(CORRUPT, StringType()))
        elif rows.schema is not None or rows.format in ("parquet", "orc", "avro"):
            reader = reader.schema(layout)
        frame = reader.load(rows.path) if rows.path else reader.load()
        if rows.format in TEXTS:
            frame = narrowed(frame, layout, rows, permissive=True)
        if not rows.select and rows.format not in SELF_DESCRIBING:
            check_columns(f"the stream of table {table.name}", frame.schema, file_schema(table), exactly=False)
        return frame

    def _given(self, frame: DataFrame) -> DataFrame:
        """A streaming DataFrame of Python's: rows, or the texts of events in the column `value`."""
        table = self._source.table
        if self._changes.envelope is not None:
            return self._events(frame, file_schema(table, self._own_columns()))
        if not self._changes.rows.select:
            check_columns(f"the stream of table {table.name}", frame.schema, file_schema(table), exactly=False)
        return frame

    def _events(self, frame: DataFrame, layout: StructType) -> DataFrame:
        """The rows of events in an envelope, which are the values of a topic, or lines of text."""
        from pyspark.sql import functions as sf

        texts = frame.select(sf.col("value").cast("string").alias("value"))
        return events(texts, self._changes, self._source.table, layout)

    def _own_columns(self) -> list[tuple[str, DataType]]:
        from pyspark.sql.types import LongType, StringType

        named: list[tuple[str | None, DataType]] = [
            (self._changes.operation, StringType()),
            (self._changes.weight, LongType()),
            *sequence_fields(self._changes, self._source.table),
        ]
        return [(name, kind) for name, kind in named if name is not None]

    def take(self, frame: DataFrame, batch_id: int) -> None:
        """Takes a micro-batch; an error is held for the runner, since Spark passes on only its text."""
        try:
            self._apply(frame, batch_id)
        except BaseException as error:
            self.error = error
            raise

    def _apply(self, frame: DataFrame, batch_id: int) -> None:
        start, table = time.perf_counter(), self._source.table
        frame.sparkSession.sparkContext.setJobDescription(
            f"ivme {self._driver.pipeline.name}: batch {batch_id} of the stream of {table.name}"
        )
        read = source_batch(frame.toArrow(), self._changes, table)
        self._driver.take_stream(table.name, batch_id, read, self._behind(), start)

    def _behind(self) -> int:
        """How far the stream is behind its source, by Spark's last report, where the source says it (Kafka does)."""
        progress = self.query.lastProgress if self.query is not None else None
        told = [source.metrics.get("maxOffsetsBehindLatest", 0) for source in progress.sources] if progress else []
        return int(max(map(float, told), default=0))


def _handed_to(stream: MicroBatches) -> Callable[[DataFrame, int], None]:
    """A function that hands batches to a stream without keeping it: Spark never lets go of what it calls back."""
    reference = weakref.ref(stream)

    def hand_over(frame: DataFrame, batch_id: int) -> None:
        found = reference()
        if found is None:
            raise SparkError("the pipeline of this stream is closed")
        found.take(frame, batch_id)

    return hand_over
