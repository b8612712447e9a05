"""Rows of a table of another database that are new by a column which only grows, through Spark's JDBC.

A batch is a range of the column: above the greatest value that was taken, up to the greatest that is there. A row that
is written with a smaller value later, or deleted, is not seen: the column must be one that every write sets, such as a
version or a time, and `delay` keeps a distance from now for transactions that end late. Reading a range again may give
other rows, so that what was read is stored until the sinks have it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ivme.errors import SparkError
from ivme.pipeline.journal import ChangeFile, RunJournal
from ivme.pipeline.model import TableSource
from ivme.pipeline.source_batch import SourceBatch
from ivme.spark.pipeline.reading import event_frame, source_batch
from ivme.spark.pipeline.source import Plan
from ivme.spark.pipeline.texts import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class JdbcRows:
    """The new rows of a table, by a column."""

    def __init__(self, spark: SparkSession, source: TableSource, journal: RunJournal) -> None:
        assert source.changes is not None
        assert source.changes.cursor is not None
        self.table, self._changes = source.table, source.changes
        self._spark, self._journal = spark, journal
        self._column = source.changes.cursor

    def next_plan(self) -> tuple[Plan, list[ChangeFile]] | None:
        """The range of new values; the greatest is asked of the other database."""
        frame, reached = self._frame(), self._reached()
        new = frame if reached is None else frame.where(f"{self._named} > {self._value(frame, reached)}")
        if self._changes.delay is not None:
            new = new.where(f"{self._named} <= current_timestamp() - INTERVAL {literal(self._changes.delay)}")
        newest = new.selectExpr(f"CAST(max({self._named}) AS string)").first()
        if newest is None or newest[0] is None:
            return None
        return {"after": reached, "last": newest[0]}, []

    def read(self, plan: Plan) -> SourceBatch:
        """The rows of a range; not the same ones if they were written again since."""
        frame = self._frame()
        rows = frame.where(f"{self._named} <= {self._value(frame, plan['last'])}")
        if plan["after"] is not None:
            rows = rows.where(f"{self._named} > {self._value(frame, plan['after'])}")
        rows = rows.sort(quoted(self._column))
        found = event_frame(rows, self._changes, self.table, permissive=True).toArrow()
        return replace(source_batch(found, self._changes, self.table), is_repeatable=False)

    def lag(self) -> int:
        """What waits is known only by asking for it."""
        return 0

    def first(self) -> int:
        return 0

    @property
    def _named(self) -> str:
        return quoted(self._column)

    def _reached(self) -> str | None:
        last = self._journal.last_of(self.table.name)
        return None if last is None else last.plan["last"]

    def _frame(self) -> DataFrame:
        rows = self._changes.rows
        return self._spark.read.format("jdbc").options(**dict(rows.options)).load()

    def _value(self, frame: DataFrame, text: str) -> str:
        """A value of the column as Spark SQL has it."""
        kinds = {field.name.lower(): field.dataType.simpleString() for field in frame.schema}
        if self._column.lower() not in kinds:
            raise SparkError(f"the source of table {self.table.name} has no column {self._column} to find new rows by")
        return f"CAST({literal(text)} AS {kinds[self._column.lower()]})"
