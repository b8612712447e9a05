"""The clock of a sharded database: a table of one row, which all shards have that maintain views with NOW().

See `ivme.definitions.clock`. Advancing it is a step like any other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime

import numpy as np
import pyarrow as pa

from ivme.definitions.clock import START, not_back, read_moment
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.query.clock import CLOCK_TABLE
from ivme.query.names import CLOCK
from ivme.shards.batch import DRIVER, ShardedBatch
from ivme.shards.cluster import Cluster
from ivme.shards.coordinator import StepInput
from ivme.shards.distribute import packed_by_shard, place_in_table, with_weights
from ivme.shards.table_catalog import TableCatalog


class ShardClock(TableCatalog):
    """The part of `ShardedDatabase` that knows the time."""

    _cluster: Cluster

    @abstractmethod
    def table_rows(self, name: str) -> pa.Table: ...

    @abstractmethod
    def batch(self, source: str | None = None, position: int | None = None) -> ShardedBatch: ...

    @abstractmethod
    def _take(self, make: Callable[[str], StepInput]) -> None: ...

    def advance(self, now: datetime) -> None:
        """Advances the clock, as `Database.advance` does: rows leave and enter views in one step."""
        moment = read_moment(now)
        with self._lock:
            self._make_clock()
            before = self.now
            assert before is not None, "it was made"
            if not_back(before, moment):
                with self.batch() as batch:
                    batch.delete(CLOCK, [(before,)])
                    batch.insert(CLOCK, [(moment,)])

    @property
    def now(self) -> datetime | None:
        """What the clock says; None if it was never advanced, and no view reads it."""
        with self._lock:
            if not self._has_clock:
                return None
            found: datetime = self.table_rows(CLOCK).column(0)[0].as_py()
            return found

    @property
    def _has_clock(self) -> bool:
        return any(table.name == CLOCK for table in self._catalog.tables)

    def _make_clock(self) -> None:
        """Makes the table of the clock with its row, in one step, unless it is there."""
        if self._has_clock:
            return
        row = with_weights(pa.table([[START]], schema=arrow_schema(CLOCK_TABLE)), np.ones(1, np.int64))

        def made(transaction: str) -> StepInput:
            packed = packed_by_shard(place_in_table(self._cluster.checkpoint.shards, CLOCK_TABLE, row))
            self._cluster.put(transaction, DRIVER, packed)
            places = [(shard, DRIVER) for shard in packed]
            return StepInput(transaction, places, self._catalog.with_table(CLOCK_TABLE))

        self._take(made)
