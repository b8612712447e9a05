"""Loads a range of a table again: its rows between two moments become those that its source has now.

The difference is applied as one batch like any other, so that sinks get what changed. The changes of the table go on
where they were: a backfill is for rows that were wrong or missing at the source when they were loaded.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ivme.errors import DataError, PipelineError
from ivme.pipeline.journal import Planned
from ivme.pipeline.model import Pipeline, TableSource
from ivme.pipeline.source_batch import Snapshot, snapshot_changes
from ivme.spark.pipeline.gathering import collected
from ivme.spark.pipeline.load import conformed, load_frame
from ivme.spark.pipeline.load_failure import loading
from ivme.spark.pipeline.source import BACKFILL
from ivme.spark.pipeline.taking import Prepared

if TYPE_CHECKING:
    from ivme.spark.pipeline.driver import Driver


@dataclass(frozen=True, slots=True)
class Range:
    """The rows of a table whose column is at `start` or later, and before `end`."""

    source: TableSource
    column: str
    start: date
    end: date

    def condition(self) -> str:
        """The range in Spark SQL."""
        kind = "TIMESTAMP_NTZ" if isinstance(self.start, datetime) else "DATE"
        return f"`{self.column}` >= {kind} '{self.start}' AND `{self.column}` < {kind} '{self.end}'"

    def holds(self, rows: pa.Table) -> pa.ChunkedArray:
        """Which rows are in the range."""
        values: Any = rows.column(self.column)
        found = pc.and_(pc.greater_equal(values, self.start), pc.less(values, self.end))
        return pc.fill_null(found, fill_value=False)


@dataclass(frozen=True, slots=True)
class Backfilled:
    """How many rows a backfill took away and added; a row that changed is counted in both."""

    removed: int
    added: int


def read_range(pipeline: Pipeline, table: str, column: str, start: str, end: str) -> Range:
    """A range as it is written, or an error that says what is wrong with it."""
    names = [source.table.name for source in pipeline.tables]
    if table not in names:
        raise PipelineError(f"{pipeline.file} has no table {table}; there are: {', '.join(names)}")
    source = pipeline.table(table)
    declared = source.table.column(column)
    if source.load is None:
        raise PipelineError(f"table {table} has no load to read rows from again")
    if declared is None or declared.type is None or declared.type.kind not in ("date", "timestamp"):
        raise PipelineError(f"{column} is not a column of dates or timestamps of table {table}")
    moments = [_moment(text, is_date=declared.type.kind == "date") for text in (start, end)]
    if moments[0] >= moments[1]:
        raise PipelineError(f"a range starts before it ends: {start} is not before {end}")
    return Range(source, declared.name, moments[0], moments[1])


def _moment(text: str, *, is_date: bool) -> date:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise PipelineError(f"{text!r} is not a date or a timestamp, such as 2026-11-17") from error
    return found.date() if is_date else found


def backfill(driver: Driver, wanted: Range) -> Backfilled:
    """Makes the rows of a range those that the source has; O(rows of the table)."""
    name, load = wanted.source.table.name, wanted.source.load
    assert load is not None
    with driver.lock:
        driver.refuse_owing(f"a backfill of table {name} was requested")
        start = time.perf_counter()
        with loading(driver.spark, load, wanted.source.table):
            frame = load_frame(driver.spark, load, wanted.source.table).where(wanted.condition())
            folder = driver.pipeline.state / "loading" / name
            new = conformed(collected(frame, folder, driver.pipeline.staging), wanted.source.table)
        rows, counts = driver.database.contents(name)
        inside = wanted.holds(rows)
        changes = snapshot_changes(Snapshot(new), rows.filter(inside), counts[inside.to_numpy()])
        if changes.size:
            _apply(driver, name, Prepared({name: changes}, {}, is_repeatable=False), start)
            driver.outlets.flush(driver.reached)
        weights = changes.weights
        return Backfilled(int(-weights[weights < 0].sum()), int(weights[weights > 0].sum()))


def _apply(driver: Driver, name: str, found: Prepared, start: float) -> None:
    planned = Planned(driver.next_number(), BACKFILL + name, {})
    driver.journal.note(BACKFILL + name, "yes")
    driver.journal.plan(planned)
    try:
        driver.apply_prepared(planned, found, start, 0)
    except DataError:
        driver.journal.drop(planned)
        raise
