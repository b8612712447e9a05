"""Which writer a sink has, by its format and mode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ivme.extras import require
from ivme.pipeline.model import Pipeline, Sink
from ivme.pipeline.read_sinks import merge_key
from ivme.pipeline.state_database import StateDatabase
from ivme.spark.pipeline.delta_merge import DeltaMergeWriter, SparkDeltaMergeWriter
from ivme.spark.pipeline.iceberg_sink import IcebergWriter
from ivme.spark.pipeline.jdbc_merge import JdbcMergeWriter
from ivme.spark.pipeline.load import has_delta, is_pyiceberg
from ivme.spark.pipeline.sink import (
    DeltaWriter,
    ParquetChanges,
    ParquetRows,
    PythonWriter,
    SparkDeltaWriter,
    SparkWriter,
    Writer,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_packages(pipeline: Pipeline, has_jar: bool) -> None:
    """Raises MissingPackageError for a sink whose package is not installed; for Delta, Spark's own jar will do."""
    for sink in pipeline.sinks:
        if sink.table is not None and is_pyiceberg(sink.format, sink.options):
            require("pyiceberg", f"sink {sink.name}")
        elif sink.format == "delta" and sink.table is None and not has_jar:
            require("deltalake", f"sink {sink.name}")


def open_writer(spark: SparkSession, pipeline: Pipeline, sink: Sink, owner: str, database: StateDatabase) -> Writer:
    """The writer for a sink's format. `owner` is the pipeline's state: another state's batches are not these."""
    if sink.call is not None:
        return PythonWriter(sink)
    local = sink.path is not None and "://" not in sink.path and sink.table is None
    if sink.format == "parquet" and local:
        kind = ParquetChanges if sink.mode == "changes" else ParquetRows
        return kind(Path(str(sink.path)), owner)
    application = f"ivme/{pipeline.name}/{sink.name}/{owner}"
    if sink.format == "jdbc" and sink.mode == "merge":
        return JdbcMergeWriter(spark, sink, application, lambda: merge_key(sink, database))
    if sink.table is not None and is_pyiceberg(sink.format, sink.options):
        return IcebergWriter(sink, application, lambda: merge_key(sink, database)[0])
    if sink.format != "delta" or sink.table is not None:
        return SparkWriter(spark, sink)
    jar = has_delta(spark)
    if sink.mode == "merge":
        if jar:
            return SparkDeltaMergeWriter(spark, sink, application, lambda: merge_key(sink, database))
        return DeltaMergeWriter(sink, application, lambda: merge_key(sink, database))
    if jar:
        return SparkDeltaWriter(spark, sink, application)
    return DeltaWriter(str(sink.path), application, dict(sink.options), sink.mode)
