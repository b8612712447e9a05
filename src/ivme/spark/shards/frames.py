"""Rows of Spark DataFrames, sent to their shards by Spark's tasks: no row passes through the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ivme.engine.ingest.rows import to_arrow
from ivme.engine.runtime.weights import read_weights
from ivme.errors import DataError, IvmeError
from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.coordinator import PutPlace
from ivme.shards.distribute import packed_by_shard, place_rows, with_weights
from ivme.shards.message import LostError
from ivme.shards.parts import PackedPart
from ivme.shards.present import Present

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMA = pa.schema([("shard", pa.int32()), *((name, pa.string()) for name in ("key", "attempt", "kind", "error"))])
_ROWS_AT_ONCE = 500_000


def place_frame(
    checkpoint: Checkpoint,
    catalog: ShardCatalog,
    table: Table,
    frame: DataFrame,
    weight: int | str,
    transaction: str,
    name: str,
) -> list[PutPlace]:
    """Sends the rows of a DataFrame to their shards, each task its own, under a key of its attempt.

    Only the attempts that Spark says succeeded count, whatever others have put.
    """
    if getattr(frame, "isStreaming", False):
        raise DataError(f"table {table.name}: the DataFrame is a stream; use stream() for it")
    address, shards = checkpoint.store.address, checkpoint.shards
    described = catalog.to_json()

    def placing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = ShardCatalog.from_json(described)
        target = known.table(table.name)
        packed: dict[int, list[PackedPart]] = {}
        key = _attempt(name)
        try:
            for chunk in _chunks(batches):
                rows = _weighted(chunk, target, weight)
                for shard, parts in packed_by_shard(place_rows(known, shards, target, rows)).items():
                    packed.setdefault(shard, []).extend(parts)
            _put(Present.of(address), transaction, key, packed)
            found = [{"shard": shard, "key": key[0], "attempt": key[1]} for shard in packed]
        except IvmeError as error:
            found = [{"kind": type(error).__name__, "error": str(error)}]
        yield pa.RecordBatch.from_pylist(found, _SCHEMA)

    put = frame.mapInArrow(placing, "shard int, key string, attempt string, kind string, error string")
    answers = put.toArrow().to_pylist()
    for answer in answers:
        if answer["error"] is not None:
            raise (LostError if answer["kind"] == LostError.__name__ else DataError)(answer["error"])
    return [(answer["shard"], (answer["key"], answer["attempt"])) for answer in answers]


def _attempt(name: str) -> tuple[str, str]:
    """The key of what this attempt at a task puts."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return f"{name}-{context.partitionId()}", str(context.taskAttemptId())


def _put(present: Present, transaction: str, key: tuple[str, str], packed: dict[int, list[PackedPart]]) -> None:
    for shard, parts in packed.items():
        host, epoch = present.host_of(shard)
        present.clients.put(host, shard, epoch, transaction, key, parts)


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
