"""A batch of changes to a sharded database: collected, then applied all or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.engine.ingest.rows import to_arrow
from ivme.engine.runtime.open_batch import OpenBatch
from ivme.engine.runtime.positions import read_progress
from ivme.engine.runtime.weights import read_weights
from ivme.errors import DataError, PlanError
from ivme.query.model import Table
from ivme.shards import table_changes
from ivme.shards.coordinator import PutPlace, StepInput
from ivme.shards.distribute import packed_by_shard, place_rows, with_weights
from ivme.shards.entries import table_size
from ivme.shards.table_changes import GivenChange, resolved

if TYPE_CHECKING:
    from ivme.shards.database import ShardedDatabase

DRIVER = ("driver", "0")
"""The key of the rows that the driver puts."""


class ShardedBatch(OpenBatch):
    """Changes to several tables that take effect together when the `with` block ends."""

    def __init__(self, database: ShardedDatabase, source: str | None, position: int | None) -> None:
        super().__init__()
        self._database = database
        progress = read_progress(source, position)
        self._progress = None if progress is None else (progress.source, progress.position)
        self._changes: dict[str, tuple[Table, list[pa.Table | GivenChange]]] = {}
        self._frames: list[tuple[Table, Any, int | str]] = []
        self._clipped: dict[str, None] = {}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if kind is None and (self._changes or self._frames or self._progress):
            self._commit()

    def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows. With `round_floats`, here and below, floats are rounded to the scale of a decimal column."""
        self._take(table, rows, 1, round_floats=round_floats)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Deletes rows."""
        made = self._take(table, rows, -1)
        if not strict:
            self._clipped[made.name] = None

    def apply(self, table: str, rows: Any, weights: Any, *, round_floats: bool = False) -> None:
        """Inserts as many copies of each row as its weight; for a DataFrame, `weights` is the name of a column."""
        self._take(table, rows, weights, round_floats=round_floats)

    # Changes that depend on what is in a table; each sees what the batch did before it

    def delete_keys(self, table: str, keys: Any, *, strict: bool = True) -> None:
        """Deletes the rows with the given primary keys: values, or tuples or dicts for keys of several columns."""
        made = self._table(table)
        self._add(made, table_changes.delete_keys(made, keys, strict=strict))

    def upsert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows, each in place of the row with the same primary key."""
        made = self._table(table, rows)
        self._add(made, table_changes.upsert(made, rows, round_floats=round_floats))

    def replace(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Replaces all rows of the table by these; only the difference changes."""
        made = self._table(table, rows)
        self._add(made, table_changes.replace(made, rows, round_floats=round_floats))

    def truncate(self, table: str) -> None:
        """Deletes all rows."""
        self._add(self._table(table), table_changes.truncate())

    def delete_where(self, table: str, where: str, /, **parameters: Any) -> None:
        """Deletes the rows that meet a condition: SQL over the table's columns, with `:name` for parameters."""
        made = self._table(table)
        self._add(made, table_changes.delete_where(made, where, parameters))

    def update(
        self,
        table: str,
        /,
        *,
        set: Mapping[str, Any],
        where: str | None = None,
        round_floats: bool = False,
        **parameters: Any,
    ) -> None:
        """Sets columns to new values in the rows that meet a condition, or in all rows, as `ivme.Batch.update` does."""
        made = self._table(table)
        self._add(made, table_changes.update(made, set, where, parameters, round_floats=round_floats))

    def check(self) -> None:
        """Raises what ending the batch now would raise, and changes nothing: shards prepare the step, and roll back."""
        with self._database._lock:
            self._check_tables()
            if self._changes or self._frames:
                self._database._try(self._made)

    def discard(self) -> None:
        """Discards the changes so far."""
        self._changes, self._frames, self._clipped, self._progress = {}, [], {}, None

    def _table(self, name: str, rows: Any = None) -> Table:
        """A table to change by what is in it, where the driver must have the rows that come."""
        self._check_open()
        table = self._database._catalog.table(name)
        if self._database._cluster.is_frame(rows):
            raise DataError(
                f"a DataFrame's rows do not pass through the driver, and can only be inserted, deleted or applied; to "
                f"change table {table.name} by its own rows, give them as frame.toArrow()"
            )
        return table

    def _add(self, table: Table, change: pa.Table | GivenChange) -> None:
        self._changes.setdefault(table.name, (table, []))[1].append(change)

    def _take(self, name: str, rows: Any, weights: Any, *, round_floats: bool = False) -> Table:
        table = self._table(name)
        if self._database._cluster.is_frame(rows):
            if not isinstance(weights, int | str):
                raise DataError(f"the weights of a DataFrame for table {name} are a number, or the name of a column")
            self._frames.append((table, rows, weights))
            return table
        comes = type(weights) is int and weights > 0
        data = to_arrow(rows, table if comes else table.without_defaults(), round_floats=round_floats)
        given = read_weights(weights, data.num_rows, table.name)
        if data.num_rows:
            self._add(table, with_weights(data, given))
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
            if self._changes or self._frames or self._progress is not None:
                database._take(self._made)
                database._rebalance_if_skewed()

    def _check_tables(self) -> None:
        """What an engine cannot see, which has a part of the table's rows; all else their shards check."""
        for table in [*(table for table, _ in self._changes.values()), *(table for table, _, _ in self._frames)]:
            if table.static and table_size(self._database._coordinator.entries, table):
                raise DataError(f"table {table.name} is static: it is loaded once and then does not change")
            if table.columns != self._database._catalog.table(table.name).columns:
                raise PlanError(f"table {table.name} was given other columns while the batch was open; make it again")
        for table, _, _ in self._frames:
            if any(isinstance(change, GivenChange) for change in self._changes.get(table.name, (table, []))[1]):
                raise PlanError(
                    f"table {table.name} is changed by what is in it, and by a DataFrame whose rows are not at hand; "
                    "make two batches of that"
                )

    def _made(self, transaction: str) -> StepInput:
        """Sends the rows to their shards."""
        database, catalog = self._database, self._database._catalog
        shards, cluster = database.checkpoint.shards, database._cluster
        packed = packed_by_shard(
            placed
            for table, changes in self._changes.values()
            for placed in place_rows(catalog, shards, table, resolved(catalog, shards, table, changes, database._ask))
        )
        places: list[PutPlace] = [(shard, DRIVER) for shard in packed]
        cluster.put(transaction, DRIVER, packed)
        for number, (table, frame, weight) in enumerate(self._frames):
            places += cluster.place_frame(catalog, table, frame, weight, transaction, f"frame-{number}")
        return StepInput(transaction, places, clipped=tuple(self._clipped), source=self._progress)
