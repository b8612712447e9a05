"""The rows of views over shards, and what a batch changed in them, as DataFrames that tasks read: for sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.pandas.types import from_arrow_schema

from ivme.pipeline.model import WEIGHT
from ivme.shards.checkpoint import Checkpoint
from ivme.shards.engine import change_schema
from ivme.shards.sharding import is_whole
from ivme.spark.shards.database import SparkDatabase
from ivme.store.checkpoint_store import open_checkpoint_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ivme.shards.state import ShardedState


Reading = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class ViewFrames:
    """What sinks get of the database of a pipeline without it passing through the driver."""

    def __init__(self, state: ShardedState) -> None:
        assert isinstance(state.shards, SparkDatabase)
        self._state, self._database = state, state.shards

    def rows(self, view: str) -> DataFrame | None:
        """The rows of a view as they are now; None if they have an order, which a DataFrame would lose."""
        made = self._database.view(view).sharding
        return None if made.order is not None else self._database.table(view)

    def changed_rows(self, view: str, batch: int) -> int:
        """How many rows a batch changed in a followed view, as far as shards counted them each for itself."""
        record = self._state.record_of(batch)
        return 0 if record is None else record.changed.get(view, 0)

    def changes(self, view: str, batch: int, names: Sequence[str]) -> DataFrame | None:
        """What a batch changed in a followed view, in columns of these names and the weight; None if nothing."""
        record = self._state.record_of(batch)
        if record is None or not record.changed.get(view, 0):
            return None
        database, made = self._database, self._database.view(view).sharding
        files = list(record.files.values())
        listed = database.spark.createDataFrame([(each,) for each in files], "file string")
        schema = from_arrow_schema(pa.schema(list(zip((*names, WEIGHT), change_schema(made).types, strict=True))))
        reading = _reader(database.checkpoint.store.address, view, [*names, WEIGHT])
        found = listed.repartition(len(files)).mapInArrow(reading, schema)
        return found if is_whole(made) and len(made.routing.patterns) == 1 else _added_up(found, names)


def _reader(address: str, view: str, names: list[str]) -> Reading:
    """What reads the changes of a view from files of the checkpoint, in tasks."""

    def reading(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        checkpoint = Checkpoint.open(open_checkpoint_store(address), None)
        files = (name for batch in batches for name in batch.column(0).to_pylist())
        for part in (part for name in files for part in checkpoint.read_file(name)):
            if part.is_change_of(view):
                yield from part.unpacked().rows.rename_columns(names).to_batches()

    return reading


def _added_up(changes: DataFrame, names: Sequence[str]) -> DataFrame:
    """Each row once: it may have come in one shard and gone in another."""
    keys = [functions.col(f"`{name}`") for name in names]
    return changes.groupBy(*keys).agg(functions.sum(WEIGHT).alias(WEIGHT)).filter(functions.col(WEIGHT) != 0)
