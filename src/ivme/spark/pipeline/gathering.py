"""All rows of a frame in the driver, never as one result of a job: `spark.driver.maxResultSize` limits no load.

Where tasks see the driver's disk they write files there. Elsewhere `staging` in the pipeline's file names a place that
both reach, such as an object store. Without it a cluster's rows come partition by partition, as Arrow; only a remote
Spark Connect server then sends one result, as it has no other way.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from ivme.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_AT_ONCE = 65_536
_LOCAL = ("localhost", "127.0.0.1", "::1", "")


def collected(frame: DataFrame, folder: Path, staging: str | None = None) -> pa.Table:
    """All rows of a frame. `folder` is on the driver's disk, and is gone afterwards."""
    if staging is not None:
        return _by_store(frame, f"{staging.rstrip('/')}/{folder.name}-{uuid.uuid4().hex}")
    if shares_disk(frame.sparkSession):
        return _by_files(frame, folder)
    return by_partition(frame) if hasattr(frame.sparkSession, "_jvm") else frame.toArrow()


def shares_disk(spark: SparkSession) -> bool:
    """Whether tasks write to the disk of this process: local mode, also behind a Connect server on this host."""
    if not (spark.conf.get("spark.master", "") or "").startswith("local["):
        return False
    return hasattr(spark, "_jvm") or str(getattr(spark.client, "host", "?")) in _LOCAL


def _by_files(frame: DataFrame, folder: Path) -> pa.Table:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        frame.write.option("compression", "lz4").parquet(str(folder))
        return pq.read_table(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _by_store(frame: DataFrame, address: str) -> pa.Table:
    """By files in a store that tasks and the driver reach, which are removed afterwards."""
    store, path = fs.FileSystem.from_uri(address if urlparse(address).scheme else Path(address).as_uri())
    try:
        frame.write.option("compression", "lz4").parquet(address)
        return pq.read_table(path, filesystem=store)
    except (pa.ArrowException, OSError) as error:
        raise SparkError(f"what tasks wrote to {address} cannot be read here: {error}") from error
    finally:
        if store.get_file_info(path).type != fs.FileType.NotFound:
            store.delete_dir(path)


def by_partition(frame: DataFrame) -> pa.Table:
    """By one job for each partition, whose rows are Arrow from the task on."""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema)
    parts = frame.mapInArrow(_packed, "part binary").toLocalIterator()
    batches = [batch for part in parts for batch in pa.ipc.open_stream(part["part"])]
    return pa.Table.from_batches(batches, batches[0].schema if batches else schema)


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a partition as streams of Arrow, each one value."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _ROWS_AT_ONCE:
            yield _as_value(waiting)
            waiting = []
    if waiting:
        yield _as_value(waiting)


def _as_value(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return pa.RecordBatch.from_arrays([pa.array([target.getvalue().to_pybytes()], pa.binary())], ["part"])
