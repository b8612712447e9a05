"""Sources of changes that are polled: each says what its next batch consists of, and reads a batch again.

`next_plan` gives a plan, which is plain data for the journal; `read` turns a plan into rows and weights,
always the same ones however many times it is called. That is all that exactly-once needs from a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from ivme.errors import SparkError
from ivme.pipeline.journal import ChangeFile, RunJournal
from ivme.pipeline.model import BATCH, DELETES, WEIGHT, Changes, TableSource
from ivme.pipeline.source_batch import Snapshot, SourceBatch
from ivme.pipeline.table_changes import TableChanges, delta_of
from ivme.pipeline.view_sink import ViewSink
from ivme.query.model import Table
from ivme.spark.pipeline.load import conformed, plain_arrow
from ivme.spark.pipeline.schema import check_columns, file_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Plan = Mapping[str, Any]

LOAD, AGAIN, BACKFILL = "load of ", "again of ", "backfill of "
"""How the sources of batches start that load a table which was added, take changes again that were set aside, or load a
range again."""


def table_of(source: str) -> str:
    """The table that a batch changes, by its source.

    >>> table_of("load of routes"), table_of("routes")
    ('routes', 'routes')
    """
    return source.removeprefix(LOAD).removeprefix(AGAIN).removeprefix(BACKFILL)


class Source(Protocol):
    """A source of changes of one table."""

    table: Table

    def next_plan(self) -> tuple[Plan, list[ChangeFile]] | None:
        """What the next batch consists of, and the files behind it; None if there is nothing new."""

    def read(self, plan: Plan) -> SourceBatch:
        """The changes of a planned batch."""

    def lag(self) -> int:
        """How much is waiting: files, versions or batches."""

    def first(self) -> int:
        """The first version or batch that was ever applied, where they have numbers."""


class DeltaFeed:
    """The change feed of a Delta table, read by deltalake: a batch is a range of versions."""

    def __init__(self, spark: SparkSession, source: TableSource, journal: RunJournal) -> None:
        assert source.changes is not None
        self.table, self._path = source.table, str(source.changes.rows.path)
        self._spark, self._journal = spark, journal
        self._start, self._whole = source.changes.starting_version, source.changes.snapshot

    def next_plan(self) -> tuple[Plan, list[ChangeFile]] | None:
        latest, last = self._latest(), self.reached()
        return None if latest <= last else ({"first": last + 1, "last": latest}, [])

    def read(self, plan: Plan) -> SourceBatch:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if self._whole:
            return self.snapshot(plan["last"])
        try:
            feed = DeltaTable(self._path).load_cdf(starting_version=plan["first"], ending_version=plan["last"])
            found = plain_arrow(pa.table(feed.read_all()))
        except (DeltaError, OSError) as error:
            raise SparkError(
                f"the change feed of {self._path} cannot be read from version {plan['first']} on: {error}; it needs "
                "the table property delta.enableChangeDataFeed = true from there on"
            ) from error
        types = found.column("_change_type").to_pylist()
        weights = np.array([-1 if kind in DELETES else 1 for kind in types], dtype=np.int64)
        rows = found.drop_columns(["_change_type", "_commit_version", "_commit_timestamp"])
        layout = spark_schema(rows.schema)
        check_columns(f"the change feed of table {self.table.name}", layout, file_schema(self.table), exactly=False)
        return SourceBatch(TableChanges(conformed(rows.select(list(self.table.column_names)), self.table), weights))

    def snapshot(self, version: int) -> SourceBatch:
        """All rows of a version, for tables without a change feed."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            rows = plain_arrow(DeltaTable(self._path, version=version).to_pyarrow_table())
        except (DeltaError, OSError) as error:
            raise SparkError(f"version {version} of the Delta table {self._path} cannot be read: {error}") from error
        layout = spark_schema(rows.schema)
        check_columns(f"the Delta table of table {self.table.name}", layout, file_schema(self.table), exactly=False)
        return SourceBatch(Snapshot(conformed(rows.select(list(self.table.column_names)), self.table)))

    def lag(self) -> int:
        return max(self._latest() - self.reached(), 0)

    def reached(self) -> int:
        """The last version that a batch took; before the first one, that of the load."""
        last = self._journal.last_of(self.table.name)
        return self.first() - 1 if last is None else int(last.plan["last"])

    def first(self) -> int:
        loaded = self._journal.fact(f"version of {self.table.name}")
        return int(loaded) + 1 if loaded is not None else self._start or 0

    def _latest(self) -> int:
        return delta_version(self._path)


def delta_version(path: str) -> int:
    """The newest version of a Delta table; -1 where there is none yet."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return int(DeltaTable(path).version())
    except TableNotFoundError:
        return -1


class ViewChanges:
    """The changes that another pipeline writes to a sink (parquet or delta): its batches, one after the other."""

    def __init__(self, spark: SparkSession, source: TableSource, journal: RunJournal) -> None:
        assert source.changes is not None
        self.table, self._path = source.table, str(source.changes.rows.path)
        self._sink, self._spark, self._journal = ViewSink(self._path), spark, journal

    def next_plan(self) -> tuple[Plan, list[ChangeFile]] | None:
        waiting = self._waiting()
        return ({"first": waiting[0], "last": waiting[-1]}, []) if waiting else None

    def read(self, plan: Plan) -> SourceBatch:
        found = plain_arrow(self._sink.read(plan["first"], plan["last"]).drop_columns([BATCH]))
        layout = spark_schema(found.drop_columns([WEIGHT]).schema)
        check_columns(f"the sink {self._path}", layout, file_schema(self.table), exactly=True)
        rows = conformed(found.select(list(self.table.column_names)), self.table)
        return SourceBatch(delta_of(rows, found.column(WEIGHT).combine_chunks()))

    def lag(self) -> int:
        return len(self._waiting())

    def first(self) -> int:
        return 0

    def _waiting(self) -> list[int]:
        last = self._journal.last_of(self.table.name)
        reached = -1 if last is None else int(last.plan["last"])
        return [number for number in self._sink.batches() if number > reached]


def is_exact(changes: Changes) -> bool:
    """Whether what has been applied can be read again later, for verification."""
    return changes.kind != "stream"
