"""What happens when a pipeline is opened: its state is made to be what the file says.

Tables that are new are made and loaded, the first time all in one batch; views are made, or recreated where their text
differs; and sinks are brought from the views that they were written under to those of the file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ivme.engine.ingest.rows import to_arrow
from ivme.pipeline.journal import Planned
from ivme.pipeline.model import Rows, TableSource
from ivme.pipeline.plan_changes import VIEWS, Definitions, definitions
from ivme.pipeline.read_tables import create_table
from ivme.pipeline.table_changes import TableChanges
from ivme.pipeline.tables_of_source import tables_of
from ivme.pipeline.transactions import transaction_tables
from ivme.pipeline.watermarks import as_moment, clock_changes, clock_moves, create_watermarks
from ivme.query.model import Table
from ivme.spark.pipeline.events import Opening
from ivme.spark.pipeline.evolving import EVOLVED
from ivme.spark.pipeline.gathering import collected
from ivme.spark.pipeline.iceberg import newest_snapshot
from ivme.spark.pipeline.load import conformed, is_pyiceberg, load_frame
from ivme.spark.pipeline.load_failure import loading
from ivme.spark.pipeline.open_database import SOURCE
from ivme.spark.pipeline.source import LOAD, delta_version
from ivme.spark.pipeline.taking import Prepared
from ivme.spark.session.jobs import described_jobs, watched_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ivme.shards.state import ShardedState
    from ivme.spark.pipeline.driver import Driver

_DUE, _DONE = "due", "done"


def create_tables(driver: Driver) -> None:
    """Makes the tables that are not there; one that was added to the file of a state is to be loaded, too."""
    for source in driver.pipeline.tables:
        for table in tables_of(driver.pipeline, source):
            if table.name not in driver.database.tables:
                if driver.reached >= 0 and source.load is not None and table == source.table:
                    driver.journal.note(f"load {table.name}", _DUE)
                create_table(driver.database, table)
    if driver.pipeline.transactions is not None:
        for table in transaction_tables():
            if table.name not in driver.database.tables:
                create_table(driver.database, table)
    create_watermarks(driver.database, driver.pipeline.tables)


def load_all(driver: Driver) -> None:
    """Fills the tables from their sources, in one transaction, as batch 0; views are then built in bulk."""
    loads = [(source, source.load) for source in driver.pipeline.tables if source.load is not None]
    if driver.sharded is not None:
        _load_shards(driver, driver.sharded, loads)
        return
    changes = {}
    for place, (source, load) in enumerate(loads):
        with _told(driver, "load", source.table.name, place, len(loads)):
            changes[source.table.name] = _inserts(_loaded(driver, source, load))
    changes |= clock_changes(driver.database, driver.pipeline.tables, changes)
    with driver.database.batch(source=SOURCE, position=0) as batch:
        for name, delta in changes.items():
            batch.apply(name, delta.rows, delta.weights)


def _load_shards(driver: Driver, shards: ShardedState, loads: Sequence[tuple[TableSource, Rows]]) -> None:
    """The same over shards: Spark's tasks send the rows to their shards, and none passes through the driver."""
    names = ", ".join(source.table.name for source, _ in loads)
    with _told(driver, "load", names, 0, 1), shards.batch(source=SOURCE, position=0) as batch:
        frames = [(source, _frame_of_shards(driver, source, load)) for source, load in loads]
        latest = {source.table.name: _latest(source, frame) for source, frame in frames if source.watermark is not None}
        for (source, frame), (_, load) in zip(frames, loads, strict=True):
            with loading(driver.spark, load, source.table):
                batch.apply(source.table.name, frame, 1)
        for name, moved in clock_moves(shards, driver.pipeline.tables, latest).items():
            batch.apply(name, moved.rows, moved.weights)


def _latest(source: TableSource, frame: DataFrame) -> datetime | None:
    """The greatest time among the rows of a load, which Spark finds."""
    assert source.watermark is not None
    column = source.table.column(source.watermark.column)
    assert column is not None
    found = frame.select(column.name).agg({column.name: "max"}).toArrow().rename_columns([column.name])
    return as_moment(to_arrow(found, Table(source.table.name, (column,))).column(0)[0].as_py())


def _inserts(rows: pa.Table) -> TableChanges:
    return TableChanges(rows, np.ones(rows.num_rows, np.int64))


def load_added(driver: Driver) -> None:
    """Loads the tables that were added to the file, each as a batch of its own."""
    for source in driver.pipeline.tables:
        name = source.table.name
        if source.load is None or driver.journal.fact(f"load {name}") != _DUE:
            continue
        driver.refuse_owing(f"table {name} was added")
        last = driver.journal.last_of(LOAD + name)
        if last is None or last.number > driver.reached:
            start, planned = time.perf_counter(), Planned(driver.next_number(), LOAD + name, {})
            driver.journal.plan(planned)
            with _told(driver, "load", name, 0, 1):
                found = Prepared({name: _inserts(_loaded(driver, source, source.load))}, {}, is_repeatable=True)
            driver.apply_prepared(planned, found, start, 0)
        driver.journal.note(f"load {name}", _DONE)


@contextmanager
def _told(driver: Driver, what: str, name: str, done: int, total: int) -> Iterator[None]:
    """Reports the beginning and the end of a part of opening, and names its jobs in Spark's user interface."""
    start, group = time.perf_counter(), f"ivme {driver.pipeline.name}"
    driver.report(Opening(what, name, done, total))

    def tell(share: float) -> None:
        driver.report(Opening(what, name, done, total, share=share))

    with described_jobs(driver.spark, group, f"{what} of {name}"), watched_jobs(driver.spark, group, tell):
        yield
    driver.report(Opening(what, name, done + 1, total, time.perf_counter() - start))


def _loaded(driver: Driver, source: TableSource, load: Rows) -> pa.Table:
    folder = driver.pipeline.state / "loading" / source.table.name
    with loading(driver.spark, load, source.table):
        return conformed(collected(_frame(driver, source, load), folder, driver.pipeline.staging), source.table)


def _frame_of_shards(driver: Driver, source: TableSource, load: Rows) -> DataFrame:
    with loading(driver.spark, load, source.table):
        return _frame(driver, source, load)


def _frame(driver: Driver, source: TableSource, load: Rows) -> DataFrame:
    """The rows that a table is loaded with; which version of its source they are is noted."""
    name = source.table.name
    if load.format == "delta":
        driver.journal.note(f"version of {name}", str(delta_version(str(load.path))))
    if load.table is not None and is_pyiceberg(load.format, load.options):
        driver.journal.note(f"version of {name}", str(newest_snapshot(load.options, load.table)))
    return load_frame(driver.spark, load, source.table, driver.loaded_version(name), is_first=True)


def create_views(driver: Driver) -> None:
    """Makes the views that are not there as the file has them; if one differs, all are recreated."""
    wanted = {view.name: json.dumps([view.query, dict(view.options)]) for view in driver.pipeline.views}
    there = {name: driver.journal.fact(f"view {name}") for name in driver.database.views}
    if any(wanted.get(name) != said for name, said in there.items()):
        for name in reversed(driver.database.views):
            driver.database.drop_view(name)
    missing = [view for view in driver.pipeline.views if view.name not in driver.database.views]
    for place, view in enumerate(missing):
        driver.journal.note(f"view {view.name}", wanted[view.name])
        with _told(driver, "build", view.name, place, len(missing)):
            driver.database.create_view(view.name, view.query, **dict(view.options))


def redefine(driver: Driver, old: Definitions) -> None:
    """Brings sinks from the views that they were written under to those of the file, as a batch of its own.

    A crash may have left such a batch half done, for a file that has been changed again since.
    """
    new, last = definitions(driver.pipeline), driver.journal.last()
    widths = json.loads(driver.journal.fact(EVOLVED) or "{}")
    half_done = last is not None and last.source == VIEWS and last.number == driver.reached
    goals = [last.plan["views"], new] if half_done and last is not None else [new]
    for number, goal in enumerate(goals):
        if goal == old and not widths:
            continue
        driver.refuse_owing("views were changed")
        if number or not half_done:
            planned = Planned(driver.next_number(), VIEWS, {"views": goal})
            driver.journal.plan(planned)
            with driver.database.batch(source=SOURCE, position=planned.number):
                pass
        driver.outlets.write_difference(driver.reached, old, goal, widths)
        old, widths = goal, {}
        driver.journal.note(VIEWS, json.dumps(goal))
    driver.journal.note(VIEWS, json.dumps(new))
    driver.journal.note(EVOLVED, "{}")
