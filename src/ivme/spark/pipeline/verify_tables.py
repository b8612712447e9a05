"""The rows that tables must have, from their sources: what was loaded, and all changes that were applied since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.pipeline.history import events_walked, history_table
from ivme.pipeline.keyed_events import KeyedEvents, latest_rows
from ivme.pipeline.model import RAW, TableSource
from ivme.pipeline.source_batch import Snapshot, SourceBatch
from ivme.pipeline.table_changes import TableChanges
from ivme.pipeline.transactions import without_waiting
from ivme.query.model import Table
from ivme.spark.pipeline.dead_letters import without_letters
from ivme.spark.pipeline.directory import Directory
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.evolving import GROWN
from ivme.spark.pipeline.iceberg import IcebergFeed
from ivme.spark.pipeline.jdbc_source import JdbcRows
from ivme.spark.pipeline.load import conformed, load_frame
from ivme.spark.pipeline.source import AGAIN, BACKFILL, DeltaFeed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNT = "ivme count"


def why_unknown(driver: Driver, source: TableSource) -> str:
    """Why the rows of a table cannot be made of its sources again; "" if they can, or if that is not expected."""
    name, changes = source.table.name, driver.sources.get(source.table.name)
    if isinstance(changes, Directory):
        applied = driver.journal.applied(name, driver.reached)
        gone = sum(not (changes.folder / file.name).exists() for file in applied)
        if gone:
            return f"{gone} of its files are gone"
    if source.watermark is not None and source.watermark.keep is not None:
        return "it lets go of old rows"
    if driver.journal.fact(BACKFILL + name) is not None:
        return "a range of its rows was loaded again"
    if isinstance(changes, JdbcRows):
        return "rows of JDBC are taken when they are new, and cannot be read again as they were"
    if driver.journal.fact(GROWN + name) is not None and not isinstance(changes, DeltaFeed):
        return "columns were added to its rows"
    if source.changes is not None and source.changes.is_keyed and _has_refused_events(driver, name):
        return "events were set aside, and their order is known no more"
    return ""


def _has_refused_events(driver: Driver, table: str) -> bool:
    """Whether events that were rows of the table wait, or were taken again later."""
    if driver.journal.last_of(AGAIN + table) is not None:
        return True
    letters = map(pq.read_table, driver.quarantine.letters(table, driver.reached))
    return any(RAW not in each.column_names or each.column(RAW).null_count for each in letters)


def table_frame(driver: Driver, source: TableSource) -> DataFrame:
    """The rows of a table from its sources: what was loaded, and the changes that were applied, added up.

    A stream cannot be read again, so that its table is taken from the database.
    """
    table = source.table
    if source.changes is not None and source.changes.kind == "stream":
        return database_frame(driver, table.name)
    feed = driver.sources.get(table.name)
    grown = driver.journal.fact(GROWN + table.name) is not None
    if isinstance(feed, IcebergFeed) or (isinstance(feed, DeltaFeed) and grown):
        whole = feed.snapshot(feed.reached()).content
        assert isinstance(whole, Snapshot)
        return driver.spark.createDataFrame(whole.rows)
    read = _all_changes(driver, table)
    if read is None:
        return _loaded_frame(driver, source)
    if isinstance(read.content, TableChanges):
        return _added_up(driver, source, _without_refused(driver, table, read.content))
    return driver.spark.createDataFrame(_latest(driver, source, read.content))


def history_frame(driver: Driver, source: TableSource) -> DataFrame:
    """All events of a table with a history, from its source; of a stream, or where some are gone, as stored."""
    assert source.changes is not None
    table = history_table(source.table, source.changes.sequence_types[0])
    read = None if why_unknown(driver, source) else _all_changes(driver, source.table)
    if read is None or not isinstance(read.content, KeyedEvents):
        return database_frame(driver, table.name)
    rows = [dict(zip(table.column_names, row, strict=True)) for row in events_walked(source.table, read.content)]
    return driver.spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(table)))


def database_frame(driver: Driver, name: str) -> DataFrame:
    """The rows of a table or view as the database has them."""
    rows, weights = driver.database.contents(name)
    return _expanded(driver.spark.createDataFrame(rows.append_column(COUNT, pa.array(weights))))


def _all_changes(driver: Driver, table: Table) -> SourceBatch | None:
    """All that was ever applied to a table after its load, as one batch."""
    source = driver.sources.get(table.name)
    if source is None:
        return None
    if isinstance(source, Directory):
        paths = source.unchanged(driver.journal.applied(table.name, driver.reached))
        return _finished(driver, table, source.read_paths(paths)) if paths else None
    last = driver.journal.last_of(table.name)
    return None if last is None else source.read({"first": source.first(), "last": last.plan["last"]})


def _finished(driver: Driver, table: Table, read: SourceBatch) -> SourceBatch:
    """A batch of all events without those that wait for the end of their transaction."""
    if table.name not in [source.table.name for source in driver.pipeline.together]:
        return read
    return without_waiting(driver.database, table.name, read)


def _loaded_frame(driver: Driver, source: TableSource) -> DataFrame:
    if source.load is None:
        return driver.spark.createDataFrame(arrow_schema(source.table).empty_table())
    return load_frame(driver.spark, source.load, source.table, driver.loaded_version(source.table.name))


def _added_up(driver: Driver, source: TableSource, changes: TableChanges) -> DataFrame:
    from pyspark.sql import functions as sf

    loaded = _loaded_frame(driver, source).withColumn(COUNT, sf.lit(1).cast("bigint"))
    changed = driver.spark.createDataFrame(changes.rows.append_column(COUNT, pa.array(changes.weights)))
    names = [f"`{name}`" for name in source.table.column_names]
    return _expanded(loaded.unionByName(changed).groupBy(*names).agg(sf.sum(f"`{COUNT}`").alias(COUNT)))


def _without_refused(driver: Driver, table: Table, changes: TableChanges) -> TableChanges:
    """The changes without the rows that the database refused."""
    for path in driver.quarantine.letters(table.name, driver.reached):
        changes = without_letters(changes, pq.read_table(path))
    return changes


def _latest(driver: Driver, source: TableSource, content: KeyedEvents | Snapshot) -> pa.Table:
    if isinstance(content, Snapshot):
        return content.rows
    loaded = conformed(_loaded_frame(driver, source).toArrow(), source.table)
    return latest_rows(source.table, loaded, content)


def _expanded(counted: DataFrame) -> DataFrame:
    """Each row, repeated by its count."""
    from pyspark.sql import functions as sf

    times = sf.explode(sf.sequence(sf.lit(1), sf.col(f"`{COUNT}`")))
    return counted.where(sf.col(f"`{COUNT}`") > 0).select("*", times.alias("ivme copy")).drop(COUNT, "ivme copy")
