"""A table of another database that mirrors a view, by key, through JDBC: each batch is one transaction there.

Spark writes the rows of a batch to a table beside the target (`<table>_ivme`). One transaction of the other database
then takes away the rows whose keys changed, puts the new ones in, and notes the number of the batch in `ivme_batches`,
so that a batch that comes again after a crash changes nothing. It needs nothing but DELETE and INSERT of any SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ivme.errors import SparkError
from ivme.pipeline.merge import GONE, merged_rows
from ivme.pipeline.model import WEIGHT, Sink
from ivme.spark.pipeline.delta_merge import Key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCHES = "ivme_batches"
_CLOBS = ("jdbc:derby:", "jdbc:db2:")
"""Where Spark makes texts CLOBs, which cannot be compared: keys are compared by their first characters."""

_COMPARED = "VARCHAR(2000)"


class JdbcMergeWriter:
    """Merges through JDBC; the first batch, and one after the view was redefined, replaces all rows."""

    def __init__(self, spark: SparkSession, sink: Sink, application: str, key: Key) -> None:
        if not hasattr(spark, "_jvm"):
            raise SparkError(
                f"{sink.place}: sink {sink.name} merges through JDBC, which Spark Connect cannot; use --master"
            )
        self._spark, self._sink, self._key = spark, sink, key
        self._application = application.replace("'", "''")
        self._options, self._table = dict(sink.options), str(sink.table)
        self._stage = f"{self._table}_ivme"

    def claim(self) -> None:
        if self.last() is not None:
            return
        with self._connection() as run:
            if _is_there(run, self._table) and run.rows(f"SELECT COUNT(*) FROM {self._table}")[0]:
                raise SparkError(
                    f"the table {self._table} of sink {self._sink.name} has rows that this pipeline's state did not "
                    "write; empty it, write to another table, or bring back the state that wrote it"
                )

    def last(self) -> int | None:
        with self._connection() as run:
            if not _is_there(run, _BATCHES):
                return None
            found = run.rows(f"SELECT batch FROM {_BATCHES} WHERE application = '{self._application}'")
            return found[0] if found else None

    def write(self, batch: int, rows: pa.Table) -> None:
        """Merges changes (rows with weights), or replaces all rows (without)."""
        reached = self.last()
        if reached is not None and reached >= batch:
            return
        key, _ = self._key()
        if WEIGHT in rows.column_names:
            rows, whole = merged_rows(rows, key, f"sink {self._sink.name}"), False
        else:
            weighted = rows.append_column(WEIGHT, pa.array([1] * rows.num_rows, pa.int64()))
            rows, whole = merged_rows(weighted, key, f"sink {self._sink.name}"), True
        names = [name for name in rows.column_names if name != GONE]
        gone = pc.cast(rows.column(GONE), pa.int32())
        self._save(rows.select(names).append_column(GONE, gone), self._stage, "overwrite")
        with self._connection() as run:
            self._prepare(run, rows.select(names))
            texts = {name for name in key if pa.types.is_string(rows.schema.field(name).type)}
            for statement in self._statements(names, self._compared(key, texts), batch, whole=whole):
                run.update(statement)
            run.commit()

    def _prepare(self, run: _Connection, rows: pa.Table) -> None:
        """Makes the target and the table of batches, if they are not there."""
        if not _is_there(run, self._table):
            self._save(rows.slice(0, 0), self._table, "append")
        if not _is_there(run, _BATCHES):
            columns = "application VARCHAR(200) NOT NULL PRIMARY KEY, batch BIGINT NOT NULL"
            run.update(f"CREATE TABLE {_BATCHES} ({columns})")
            run.commit()

    def _compared(self, key: Sequence[str], texts: Collection[str]) -> str:
        """The condition under which a row of the target has the key of one of the batch, NULL included."""
        found = []
        for name in key:
            sides = [f"{side}.{self._dialect().quoteIdentifier(name)}" for side in (self._table, "s")]
            is_clob = name in texts and self._options["url"].startswith(_CLOBS)
            one, other = (f"CAST({side} AS {_COMPARED})" if is_clob else side for side in sides)
            found.append(f"({one} = {other} OR ({sides[0]} IS NULL AND {sides[1]} IS NULL))")
        return " AND ".join(found) or "1 = 1"

    def _statements(self, names: Sequence[str], matches: str, batch: int, *, whole: bool) -> Iterator[str]:
        quoted = {name: self._dialect().quoteIdentifier(name) for name in (*names, GONE)}
        columns = ", ".join(quoted[name] for name in names)
        only = "" if whole else f" WHERE EXISTS (SELECT 1 FROM {self._stage} s WHERE {matches})"
        yield f"DELETE FROM {self._table}{only}"
        yield f"INSERT INTO {self._table} ({columns}) SELECT {columns} FROM {self._stage} WHERE {quoted[GONE]} = 0"
        yield f"DELETE FROM {_BATCHES} WHERE application = '{self._application}'"
        yield f"INSERT INTO {_BATCHES} VALUES ('{self._application}', {batch})"

    def _save(self, rows: pa.Table, table: str, mode: str) -> None:
        writer = self._spark.createDataFrame(rows).write.format("jdbc").options(**self._options)
        writer.option("dbtable", table).mode(mode).save()

    def _dialect(self) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(self._options["url"])

    @contextmanager
    def _connection(self) -> Iterator[_Connection]:
        """A connection of the driver's JVM, as Spark itself opens them; what is not committed is rolled back."""
        jvm: Any = self._spark._jvm
        parameters = jvm.PythonUtils.toScalaMap({**self._options, "dbtable": self._table})
        given = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(parameters)
        connection = self._dialect().createConnectionFactory(given).apply(-1)
        try:
            connection.setAutoCommit(False)
            yield _Connection(connection)
        finally:
            connection.rollback()
            connection.close()


class _Connection:
    """The few calls of java.sql that are needed."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def update(self, text: str) -> None:
        statement = self._connection.createStatement()
        try:
            statement.executeUpdate(text)
        finally:
            statement.close()

    def rows(self, text: str) -> list[int]:
        """The first column of a query, as whole numbers."""
        statement, found = self._connection.createStatement(), []
        try:
            result = statement.executeQuery(text)
            while result.next():
                found.append(int(result.getLong(1)))
        finally:
            statement.close()
        return found

    def names(self) -> set[str]:
        """The tables that there are, in lower case."""
        found, result = set(), self._connection.getMetaData().getTables(None, None, "%", None)
        while result.next():
            found |= {result.getString(3).lower(), f"{result.getString(2)}.{result.getString(3)}".lower()}
        return found

    def commit(self) -> None:
        self._connection.commit()


def _is_there(run: _Connection, table: str) -> bool:
    return table.lower() in run.names()
