"""Iceberg tables as sinks, through pyiceberg: a batch and its number are one commit.

The number is a property of the table, set in the transaction that writes the rows, so that it outlives the expiry of
snapshots. A commit asserts the snapshot that it was made from and is not tried again, so that of two drivers that
write one batch the second is refused. A merge deletes the keys of a batch and appends their new rows; files that have
such keys are rewritten.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ivme.errors import SparkError
from ivme.pipeline.merge import GONE, merged_rows
from ivme.pipeline.model import BATCH, WEIGHT, Sink
from ivme.spark.pipeline.iceberg import open_catalog, open_table

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table import Transaction

_RETRIES = "commit.retry.num-retries"


class IcebergWriter:
    """A table of an Iceberg catalog: changes are appended, rows replace all others, or changes are merged by key.

    A table that was made, and not yet written to when the driver crashed, says by whom.
    """

    def __init__(self, sink: Sink, application: str, key: Callable[[], tuple[str, ...]]) -> None:
        self._sink, self._name, self._key = sink, str(sink.table), key
        self._property, self._made = f"ivme.batch.{application}", f"ivme.made.{application}"

    def claim(self) -> None:
        if not open_catalog(self._sink.options).table_exists(self._name):
            return
        if not {self._property, self._made} & open_table(self._sink.options, self._name).properties.keys():
            raise SparkError(
                f"the Iceberg table {self._name} has rows that this pipeline's state did not write; drop it, write to "
                "another table, or bring back the state that wrote it"
            )

    def last(self) -> int | None:
        if not open_catalog(self._sink.options).table_exists(self._name):
            return None
        noted = open_table(self._sink.options, self._name).properties.get(self._property)
        return None if noted is None else int(noted)

    def write(self, batch: int, rows: pa.Table) -> None:
        if self._sink.mode == "changes":
            rows = rows.append_column(BATCH, pa.array([batch] * rows.num_rows, pa.int64()))
        merges = self._sink.mode == "merge" and WEIGHT in rows.column_names
        table = self._table(rows.drop_columns([WEIGHT]) if merges else rows)
        noted = table.properties.get(self._property)
        if noted is not None and int(noted) >= batch:
            return
        self._commit(table, batch, lambda changing: self._change(changing, rows, merges=merges))

    def _change(self, changing: Transaction, rows: pa.Table, *, merges: bool) -> None:
        if not merges and self._sink.mode == "changes":
            changing.append(rows)
        elif not merges:
            changing.overwrite(rows)
        else:
            merged = merged_rows(rows, self._key(), f"sink {self._sink.name}")
            changing.delete(_of_keys(merged.select(list(self._key()))))
            came = merged.filter(pc.invert(merged.column(GONE))).drop_columns([GONE])
            if came.num_rows:
                changing.append(came)

    def _commit(self, table: IcebergTable, batch: int, change: Callable[[Transaction], None]) -> None:
        from pyiceberg.exceptions import CommitFailedException

        table.metadata.properties[_RETRIES] = "0"  # of this copy: a second try would write after another driver's
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Delete operation did not match any records")
                with table.transaction() as changing:
                    change(changing)
                    changing.set_properties({self._property: str(batch)})
        except CommitFailedException as error:
            raise SparkError(
                f"the Iceberg table {self._name} was written by another one at the same time, and batch {batch} was "
                f"not: {error}"
            ) from error

    def _table(self, rows: pa.Table) -> IcebergTable:
        """The table, made with the columns of the rows if it is not there; rows that replace others may change them."""
        catalog = open_catalog(self._sink.options)
        if not catalog.table_exists(self._name):
            catalog.create_namespace_if_not_exists(self._name.rsplit(".", 1)[0])
            return catalog.create_table(self._name, rows.schema, properties={self._made: "yes"})
        return catalog.load_table(self._name)


def _of_keys(keys: pa.Table) -> BooleanExpression:
    """The rows that have one of some keys, NULL as any other value.

    It is never unknown: pyiceberg's delete loses rows for which a condition is neither true nor false.
    """
    from pyiceberg.expressions import AlwaysFalse, And, EqualTo, In, IsNull, NotNull, Or

    names = keys.column_names
    if len(names) == 1:
        values = keys.column(0).drop_null().unique().to_pylist()
        found: list[BooleanExpression] = [And(NotNull(names[0]), In(names[0], values))] if values else []
        found += [IsNull(names[0])] if keys.column(0).null_count else []
    else:
        found = []
        for row in keys.to_pylist():
            empty = [IsNull(name) if value is None else NotNull(name) for name, value in row.items()]
            found.append(And(*empty, *(EqualTo(name, value) for name, value in row.items() if value is not None)))
    if len(found) < 2:
        return found[0] if found else AlwaysFalse()
    return Or(*found)
