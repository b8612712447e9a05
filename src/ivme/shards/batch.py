"""A batch of changes to a sharded database: collected, then applied all or nothing."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from ivme.engine.ingest.rows import to_arrow
from ivme.engine.runtime.positions import read_progress
from ivme.engine.runtime.weights import read_weights
from ivme.errors import DataError, PlanError
from ivme.query.model import Table
from ivme.shards.coordinator import PutPlace, StepInput
from ivme.shards.distribute import packed_by_shard, place_rows, with_weights
from ivme.shards.entries import table_size

if TYPE_CHECKING:
    from ivme.shards.database import ShardedDatabase

DRIVER = ("driver", "0")
"""The key of the rows that the driver puts."""


class ShardedBatch:
    """Changes to several tables that take effect together when the `with` block ends."""

    def __init__(self, database: ShardedDatabase, source: str | None, position: int | None) -> None:
        self._database = database
        progress = read_progress(source, position)
        self._progress = None if progress is None else (progress.source, progress.position)
        self._rows: list[tuple[Table, pa.Table]] = []
        self._frames: list[tuple[Table, Any, int | str]] = []
        self._clipped: dict[str, None] = {}
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if kind is None and (self._rows or self._frames or self._progress):
            self._commit()

    def insert(self, table: str, rows: Any) -> None:
        """Inserts rows."""
        self._take(table, rows, 1)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Deletes rows."""
        made = self._take(table, rows, -1)
        if not strict:
            self._clipped[made.name] = None

    def apply(self, table: str, rows: Any, weights: Any) -> None:
        """Inserts as many copies of each row as its weight; for a DataFrame, `weights` is the name of a column."""
        self._take(table, rows, weights)

    def check(self) -> None:
        """Raises what ending the batch now would raise, and changes nothing: shards prepare the step, and roll back."""
        with self._database._lock:
            self._check_tables()
            if self._rows or self._frames:
                self._database._try(self._made)

    def discard(self) -> None:
        """Discards the changes so far."""
        self._rows, self._frames, self._clipped, self._progress = [], [], {}, None

    def _take(self, name: str, rows: Any, weights: Any) -> Table:
        if self._over:
            raise PlanError("the batch is over; open another one with db.batch()")
        table = self._database._catalog.table(name)
        if self._database._cluster.is_frame(rows):
            if not isinstance(weights, int | str):
                raise DataError(f"the weights of a DataFrame for table {name} are a number, or the name of a column")
            self._frames.append((table, rows, weights))
            return table
        data = to_arrow(rows, table)
        given = read_weights(weights, data.num_rows, table.name)
        if data.num_rows:
            self._rows.append((table, with_weights(data, given)))
        return table

    def _commit(self) -> None:
        database = self._database
        with database._lock:
            if self._progress is not None:
                reached = database.position(self._progress[0])
                if reached is not None and self._progress[1] <= reached:
                    raise DataError(
                        f"source {self._progress[0]} has been applied up to position {reached}, so that the batch at "
                        f"position {self._progress[1]} has been applied before; nothing was changed"
                    )
            self._check_tables()
            if self._rows or self._frames or self._progress is not None:
                database._take(self._made)
                database._rebalance_if_skewed()

    def _check_tables(self) -> None:
        """What an engine cannot see, which has a part of the table's rows; all else their shards check."""
        for table in [*(table for table, _ in self._rows), *(table for table, _, _ in self._frames)]:
            if table.static and table_size(self._database._coordinator.entries, table):
                raise DataError(f"table {table.name} is static: it is loaded once and then does not change")

    def _made(self, transaction: str) -> StepInput:
        """Sends the rows to their shards."""
        database, catalog = self._database, self._database._catalog
        shards, cluster = database.checkpoint.shards, database._cluster
        placed = (each for table, rows in self._rows for each in place_rows(catalog, shards, table, rows))
        packed = packed_by_shard(placed)
        places: list[PutPlace] = [(shard, DRIVER) for shard in packed]
        cluster.put(transaction, DRIVER, packed)
        for number, (table, frame, weight) in enumerate(self._frames):
            places += cluster.place_frame(catalog, table, frame, weight, transaction, f"frame-{number}")
        return StepInput(transaction, places, clipped=tuple(self._clipped), source=self._progress)
