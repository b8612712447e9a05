"""Iceberg tables through pyiceberg: rows of a snapshot, and what changed between two.

A batch is a range of snapshots. Where all of them only appended, the files that they added are read; otherwise the last
one is read whole and compared with what the table holds, so that any writer may delete, overwrite or compact. Spark's
own Iceberg, where its jar is, is used for tables that the file gives without the properties of a catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ivme.errors import SparkError
from ivme.extras import require
from ivme.pipeline.journal import ChangeFile, RunJournal
from ivme.pipeline.model import Settings, TableSource
from ivme.pipeline.source_batch import Snapshot, SourceBatch
from ivme.pipeline.table_changes import TableChanges
from ivme.spark.pipeline.load import conformed, plain_arrow
from ivme.spark.pipeline.schema import check_columns, file_schema, spark_schema
from ivme.spark.pipeline.source import Plan

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as IcebergTable
    from pyspark.sql import SparkSession

NOTHING = -1
"""The snapshot of a table that has none yet."""


def open_catalog(options: Settings) -> Catalog:
    """The catalog of some properties; `catalog` names one of pyiceberg's own configuration."""
    require("pyiceberg", "Iceberg")
    from pyiceberg.catalog import load_catalog

    properties = dict(options)
    return load_catalog(properties.pop("catalog", "ivme"), **properties)


def open_table(options: Settings, name: str) -> IcebergTable:
    """The table as it is now."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return open_catalog(options).load_table(name)
    except NoSuchTableError as error:
        raise SparkError(f"the catalog has no Iceberg table {name}") from error


def newest_snapshot(options: Settings, name: str) -> int:
    """The snapshot that the table is at."""
    current = open_table(options, name).current_snapshot()
    return NOTHING if current is None else current.snapshot_id


def snapshot_rows(options: Settings, name: str, snapshot: int | None) -> pa.Table:
    """All rows of a snapshot, by default of the newest."""
    table = open_table(options, name)
    scan = table.scan() if snapshot is None or snapshot == NOTHING else table.scan(snapshot_id=snapshot)
    rows = scan.to_arrow()
    return plain_arrow(rows.slice(0, 0) if snapshot == NOTHING else rows)


class IcebergFeed:
    """The snapshots of an Iceberg table."""

    def __init__(self, _spark: SparkSession, source: TableSource, journal: RunJournal) -> None:
        assert source.changes is not None
        rows = source.changes.rows
        self.table, self._name, self._options = source.table, str(rows.table), rows.options
        self._journal = journal

    def next_plan(self) -> tuple[Plan, list[ChangeFile]] | None:
        latest, reached = newest_snapshot(self._options, self._name), self.reached()
        return None if latest == reached else ({"first": reached, "last": latest}, [])

    def read(self, plan: Plan) -> SourceBatch:
        if not self._only_appended(plan["first"], plan["last"]):
            return self.snapshot(plan["last"])
        table = open_table(self._options, self._name)
        after = None if plan["first"] == NOTHING else plan["first"]
        scan = table.incremental_append_scan(from_snapshot_id_exclusive=after, to_snapshot_id_inclusive=plan["last"])
        rows = self._shaped(plain_arrow(scan.to_arrow()))
        return SourceBatch(TableChanges(rows, np.ones(rows.num_rows, np.int64)))

    def snapshot(self, snapshot: int) -> SourceBatch:
        """All rows of a snapshot."""
        return SourceBatch(Snapshot(self._shaped(snapshot_rows(self._options, self._name, snapshot))))

    def lag(self) -> int:
        reached = self.reached()
        behind = self._behind(newest_snapshot(self._options, self._name), reached)
        return len(behind) if behind is not None else 1

    def reached(self) -> int:
        """The last snapshot that a batch took; before the first one, that of the load."""
        last = self._journal.last_of(self.table.name)
        return self.first() if last is None else int(last.plan["last"])

    def first(self) -> int:
        loaded = self._journal.fact(f"version of {self.table.name}")
        return NOTHING if loaded is None else int(loaded)

    def _only_appended(self, first: int, last: int) -> bool:
        behind = self._behind(last, first)
        return behind is not None and all(operation == "append" for operation in behind)

    def _behind(self, last: int, first: int) -> list[str] | None:
        """What the snapshots after one up to another did; None if the first is not before the last, or is gone."""
        table, found = open_table(self._options, self._name), []
        current: int | None = last
        while current not in (first, None, NOTHING):
            snapshot = table.snapshot_by_id(current)
            if snapshot is None or snapshot.summary is None:
                return None
            found.append(snapshot.summary.operation.value)
            current = snapshot.parent_snapshot_id
        return found if current == first or (first == NOTHING and current is None) else None

    def _shaped(self, rows: pa.Table) -> pa.Table:
        layout: Any = spark_schema(rows.schema)
        check_columns(f"the Iceberg table {self._name}", layout, file_schema(self.table), exactly=False)
        return conformed(rows.select(list(self.table.column_names)), self.table)
