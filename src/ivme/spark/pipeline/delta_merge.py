"""A Delta table that mirrors a view, by key: each batch is one MERGE, and one commit.

The number of the batch is an application transaction of that commit, so that a batch that comes again after a crash
changes nothing. A MERGE rewrites the files that have rows of the batch's keys: its cost grows with them, not with the
view alone. NULL is a value of a key as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.errors import DataError, SparkError
from ivme.pipeline.merge import GONE, merged_rows, unmatched
from ivme.pipeline.model import WEIGHT, Sink
from ivme.spark.pipeline.sink import DeltaWriter, SparkDeltaWriter

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from pyspark.sql import SparkSession

Key = Callable[[], tuple[tuple[str, ...], bool]]
"""The columns to merge by, and whether they are known to be a key."""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def same_key(key: tuple[str, ...]) -> str:
    """The condition under which two rows have one key, NULL included."""
    return " AND ".join(f"(t.{quoted(name)} IS NOT DISTINCT FROM s.{quoted(name)})" for name in key) or "true"


class DeltaMergeWriter(DeltaWriter):
    """Merges through deltalake; the first batch, and one after the view was redefined, replaces all rows."""

    def __init__(self, sink: Sink, application: str, key: Key) -> None:
        super().__init__(str(sink.path), application, dict(sink.options), "rows")
        self._name, self._key = sink.name, key
        self._opened: DeltaTable | None = None

    def write(self, batch: int, rows: pa.Table) -> None:
        """Merges changes (rows with weights), or replaces all rows (without)."""
        if WEIGHT not in rows.column_names:
            self._check_unique(rows)
            super().write(batch, rows)
            return
        table = self._table()
        reached = table.transaction_version(self._application)
        if reached is not None and reached >= batch:
            return
        key, is_known = self._key()
        merged = merged_rows(rows, key, f"sink {self._name}")
        if not is_known:
            self._check_absent(table, unmatched(merged, rows, key), key)
        self._merge(table, merged, key, batch)

    def _merge(self, table: DeltaTable, merged: pa.Table, key: tuple[str, ...], batch: int) -> None:
        from deltalake.exceptions import DeltaError

        columns = {quoted(name): f"s.{quoted(name)}" for name in merged.column_names if name != GONE}
        try:
            (
                table.merge(
                    merged,
                    predicate=same_key(key),
                    source_alias="s",
                    target_alias="t",
                    commit_properties=self._commit(batch),
                )
                .when_matched_delete(f"s.{GONE}")
                .when_matched_update(columns)
                .when_not_matched_insert(columns, predicate=f"NOT s.{GONE}")
                .execute()
            )
        except DeltaError as error:
            raise SparkError(f"the Delta table {self._path} cannot be merged into: {error}") from error

    def _table(self) -> DeltaTable:
        """The table as it is now; after the first time only what was added to its log is read."""
        from deltalake import DeltaTable

        if self._opened is None:
            self._opened = DeltaTable(self._path, storage_options=self._options)
        else:
            self._opened.update_incremental()
        return self._opened

    def _commit(self, batch: int) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        return CommitProperties(app_transactions=[Transaction(self._application, batch)])

    def _check_unique(self, rows: pa.Table) -> None:
        """All rows of a view, where nothing but the file says that there is one for each key."""
        key, is_known = self._key()
        if not is_known:
            weighted = rows.append_column(WEIGHT, pa.array([1] * rows.num_rows, pa.int64()))
            merged_rows(weighted, key, f"sink {self._name}")

    def _check_absent(self, table: DeltaTable, keys: pa.Table, key: tuple[str, ...]) -> None:
        """Refuses new rows whose key another row of the view has; O(rows of the table), where no key is known."""
        if not keys.num_rows:
            return
        there = table.to_pyarrow_dataset().to_table(columns=list(key)).cast(keys.schema)
        both = pa.concat_tables([keys, there]).group_by(list(key)).aggregate([([], "count_all")])
        if both.num_rows < keys.num_rows + there.num_rows:
            raise DataError(f"sink {self._name}: {', '.join(key)} is not a key of the view: several rows have one key")


class SparkDeltaMergeWriter(SparkDeltaWriter):
    """Merges through Delta's jar, which skips a batch of an application that the table's log has already."""

    def __init__(self, spark: SparkSession, sink: Sink, application: str, key: Key) -> None:
        super().__init__(spark, sink, application)
        self._key = key

    def write(self, batch: int, rows: pa.Table) -> None:
        if WEIGHT not in rows.column_names:
            super().write(batch, rows)
            return
        key, _ = self._key()
        merged = merged_rows(rows, key, f"sink {self._sink.name}")
        self._spark.createDataFrame(merged).createOrReplaceTempView("ivme_merged")
        columns = [quoted(name) for name in merged.column_names if name != GONE]
        statement = (
            f"MERGE INTO delta.{quoted(str(self._sink.path))} t USING ivme_merged s ON "
            + " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in key)
            + f" WHEN MATCHED AND s.{GONE} THEN DELETE WHEN MATCHED THEN UPDATE SET "
            + ", ".join(f"t.{name} = s.{name}" for name in columns)
            + f" WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT ({', '.join(columns)}) VALUES ("
            + ", ".join(f"s.{name}" for name in columns)
            + ")"
        )
        self._once(batch, lambda: self._spark.sql(statement))

    def _once(self, batch: int, run: Callable[[], Any]) -> None:
        """Runs a statement under the number of its batch, which Delta's jar takes from the session."""
        once = {"txnAppId": self._application, "txnVersion": str(batch)}
        names = {f"spark.databricks.delta.write.{name}": value for name, value in once.items()}
        for name, value in names.items():
            self._spark.conf.set(name, value)
        try:
            run()
        finally:
            for name in names:
                self._spark.conf.unset(name)
