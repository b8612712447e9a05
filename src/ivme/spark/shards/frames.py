"""Rows of Spark DataFrames to the files of a step, by Spark's tasks: no row passes through the driver."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ivme.engine.ingest.rows import to_arrow
from ivme.engine.runtime.batch import read_weights
from ivme.errors import DataError, IvmeError
from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog
from ivme.shards.distribute import Placed, place_rows, with_weights, write_placed
from ivme.shards.journal import StepJournal
from ivme.shards.parts import PartFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEXTS = [(name, pa.string()) for name in ("path", "digest", "error")]
_SCHEMA = pa.schema([("shard", pa.int32()), ("rows", pa.int64()), *_TEXTS])
_ROWS_AT_ONCE = 500_000


def place_frame(
    journal: StepJournal,
    catalog: ShardCatalog,
    table: Table,
    frame: DataFrame,
    weight: int | str,
    folder: str,
    writer: str,
) -> list[PartFile]:
    """Writes the rows of a DataFrame as parts: a file for each shard and task.

    A task that is repeated writes files of its own, and only those of the one that succeeded count.
    """
    if getattr(frame, "isStreaming", False):
        raise DataError(f"table {table.name}: the DataFrame is a stream; use stream() for it")
    root, shards = str(journal.root), journal.shards
    described = catalog.to_json()

    def placing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = ShardCatalog.from_json(described)
        target = known.table(table.name)
        try:
            rows = (_weighted(chunk, target, weight) for chunk in _chunks(batches))
            placed: Iterator[Placed] = (each for chunk in rows for each in place_rows(known, shards, target, chunk))
            files = write_placed(Path(root), folder, f"{writer}-{uuid.uuid4().hex}", placed)
            found = [{"shard": f.shard, "path": f.path, "rows": f.rows, "digest": f.digest} for f in files]
        except IvmeError as error:
            found = [{"error": str(error)}]
        yield pa.RecordBatch.from_pylist(found, _SCHEMA)

    written = frame.mapInArrow(placing, "shard int, rows bigint, path string, digest string, error string")
    answers = written.toArrow().to_pylist()
    for answer in answers:
        if answer["error"] is not None:
            raise DataError(answer["error"])
    return [PartFile(a["shard"], a["path"], a["rows"], a["digest"]) for a in answers]


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Spark's small batches, some at a time: what a part costs is by part more than by row."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _weighted(rows: pa.Table, table: Table, weight: int | str) -> pa.Table:
    if isinstance(weight, int):
        data = to_arrow(rows, table)
        weights = np.full(data.num_rows, weight, np.int64)
    else:
        if weight not in rows.column_names:
            listed = ", ".join(rows.column_names)
            raise DataError(f"table {table.name}: the DataFrame has no column {weight} with weights; it has {listed}")
        data = to_arrow(rows.drop_columns([weight]), table)
        weights = read_weights(rows.column(weight), data.num_rows, table.name)
    if table.append_only and (weights < 0).any():
        raise DataError(f"table {table.name} is append-only: rows cannot be deleted from it")
    return with_weights(data, weights)
