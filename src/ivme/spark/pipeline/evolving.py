"""Tables whose declaration in the file has changed: columns are added, and types become wider.

Views are dropped before and recreated after, so that none stands in the way. Adding a column is one durable step of
the database. A wider type is not: the rows are first written to a file of the state, and the table is recreated from
it, also after a crash in between. Sinks of rows and merged tables are written again after it (`EVOLVED`).
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.errors import PipelineError
from ivme.pipeline.declarations import TableEdit, declaration, edit_of
from ivme.pipeline.journal import Planned
from ivme.pipeline.model import WEIGHT, TableSource
from ivme.pipeline.plan_changes import planned_steps
from ivme.pipeline.read_tables import create_table
from ivme.pipeline.tables_of_source import tables_of
from ivme.query.model import Table
from ivme.spark.pipeline.source import LOAD, DeltaFeed

if TYPE_CHECKING:
    from ivme.spark.pipeline.driver import Driver

EVOLVED = "evolved"
"""The fact that says that sinks are to be written again, with the numbers of columns that changed tables had."""

GROWN = "grown "
"""How the facts start that say which tables have columns that their old rows came without."""

_WIDENING = "widening "
_SAVED, _DUE, _DONE = "saved", "due", "done"


def refuse_impossible(driver: Driver) -> None:
    """Refuses a file whose differences from the state cannot be made good, before anything is changed."""
    steps = planned_steps(driver.pipeline, driver.journal)
    if any(step.is_edit for step in steps):
        _refuse_unwritten(driver)
    refused = [step for step in steps if step.refused]
    if refused:
        places = {source.table.name: source.place for source in driver.pipeline.tables}
        places |= {sink.name: sink.place for sink in driver.pipeline.sinks}
        told = "; ".join(f"{places[step.name]}: {step.kind} {step.name}: {step.what}" for step in refused)
        raise PipelineError(f"{told}. The state is in {driver.pipeline.state}; nothing was changed")


def _refuse_unwritten(driver: Driver) -> None:
    """A batch that sinks lack is made of tables as they were: it must reach them before the tables change."""
    last, journal = driver.journal.last(), driver.journal
    if last is None or last.number > driver.reached:
        return
    written = [(sink.name, journal.written(sink.name)) for sink in driver.pipeline.sinks if sink.mode != "rows"]
    late = [name for name, batch in written if batch is not None and batch < last.number]
    if late:
        raise PipelineError(
            f"{driver.pipeline.file}: tables were changed, while sink {late[0]} lacks batch {last.number}; run the "
            "pipeline as it was once more, then change it"
        )


def evolve_tables(driver: Driver) -> None:
    """Changes the tables of the state to what the file declares, and notes it."""
    for source in driver.pipeline.tables:
        for table in tables_of(driver.pipeline, source):
            noted = driver.journal.fact(f"table {table.name}")
            edit = TableEdit() if noted is None else edit_of(noted, table)
            if edit and table.name in driver.database.tables:
                _evolve(driver, source, table, edit)
            elif driver.journal.fact(_WIDENING + table.name) == _SAVED:
                _remake(driver, table)
            driver.journal.note(f"table {table.name}", declaration(table))


def _evolve(driver: Driver, source: TableSource, table: Table, edit: TableEdit) -> None:
    widths = json.loads(driver.journal.fact(EVOLVED) or "{}")
    widths.setdefault(table.name, len(table.columns) - len(edit.added))
    driver.journal.note(EVOLVED, json.dumps(widths))
    for name in reversed(driver.database.views):
        driver.database.drop_view(name)
    if edit.widened and driver.journal.fact(_WIDENING + table.name) != _SAVED:
        _save(driver, table)
    if driver.journal.fact(_WIDENING + table.name) == _SAVED:
        _remake(driver, table)
    for column in edit.added:
        if driver.database.relation(table.name).column(column.name) is None:
            default = dict(source.defaults).get(column.name)
            assert column.type is not None
            driver.database.add_column(table.name, column.name, column.type, default)
    if edit.added:
        driver.journal.note(GROWN + table.name, _DUE)


def _save(driver: Driver, table: Table) -> None:
    """Writes the rows of a table to a file of the state, whole and synced."""
    path = driver.pipeline.state / "widening" / f"{table.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows, weights = driver.database.contents(table.name)
    pq.write_table(rows.append_column(WEIGHT, pa.array(weights)), path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    driver.journal.note(_WIDENING + table.name, _SAVED)


def _remake(driver: Driver, table: Table) -> None:
    """Recreates a table from the file of its rows; safe to repeat after a crash."""
    path = driver.pipeline.state / "widening" / f"{table.name}.parquet"
    saved = pq.read_table(path)
    old = tuple(column for column in table.columns if column.name in saved.column_names)
    for name in reversed(driver.database.views):
        driver.database.drop_view(name)
    if table.name in driver.database.tables:
        driver.database.drop_table(table.name)
    create_table(driver.database, Table(table.name, old, table.primary_key, table.append_only, table.static))
    schema = pa.schema([field for field in arrow_schema(table) if field.name in saved.column_names])
    driver.database.apply(
        table.name, saved.drop_columns([WEIGHT]).cast(schema), saved.column(WEIGHT).to_numpy().astype("int64")
    )
    driver.journal.note(_WIDENING + table.name, _DONE)
    path.unlink()


def backfill_grown(driver: Driver) -> None:
    """Gives the old rows of tables that follow a Delta table what it has in their new columns, as a batch."""
    for source in driver.pipeline.tables:
        name, feed = source.table.name, driver.sources.get(source.table.name)
        if driver.journal.fact(GROWN + name) != _DUE:
            continue
        if isinstance(feed, DeltaFeed) and feed.reached() >= 0:
            driver.refuse_owing(f"columns of table {name} were added")
            planned = Planned(driver.next_number(), LOAD + name, {})
            driver.journal.plan(planned)
            driver.take(planned, feed.snapshot(feed.reached()), time.perf_counter(), feed.lag())
        driver.journal.note(GROWN + name, _DONE)
