"""Takes changes again that were set aside: those that can be taken by now leave the quarantine.

A file of such changes is taken as one batch, like any other: planned in the journal, applied in one transaction with
its number, and written to the sinks. What is still refused waits in a file of that batch; the old file goes once the
database has the batch, also after a crash. Texts that never were rows of the table wait until someone corrects them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.errors import DataError
from ivme.pipeline.journal import Planned
from ivme.pipeline.keyed_events import SEQUENCES, KeyedEvents
from ivme.pipeline.model import ORIGIN, RAW, WEIGHT, TableSource
from ivme.pipeline.plan_changes import Definitions
from ivme.pipeline.source_batch import SourceBatch
from ivme.pipeline.table_changes import TableChanges
from ivme.spark.pipeline.change_files import digest
from ivme.spark.pipeline.directory import Directory
from ivme.spark.pipeline.source import AGAIN, table_of
from ivme.spark.pipeline.taking import Prepared, prepared, prepared_without_refused

if TYPE_CHECKING:
    from ivme.spark.pipeline.driver import Driver


@dataclass(frozen=True, slots=True)
class Redelivered:
    """What became of the changes of a table that were set aside: how many rows were taken, and how many still wait."""

    table: str
    taken: int
    waiting: int


def redeliver(driver: Driver, table: str) -> Redelivered:
    """Takes again all changes of a table that were set aside, in the order of their batches."""
    taken = waiting = 0
    with driver.lock:
        for path in driver.quarantine.letters(table, driver.reached):
            start, read = time.perf_counter(), _read(driver.pipeline.table(table), pq.read_table(path))
            number = driver.next_number()
            found = _prepared(driver, table, read, number)
            good = read.size - found.set_aside
            taken, waiting = taken + good, waiting + found.set_aside
            if not good:
                continue
            planned = Planned(number, AGAIN + table, {"letters": path.name})
            driver.journal.plan(planned)
            if found.set_aside:
                driver.quarantine.keep_letters(table, planned.number, found.letters[table])
            driver.apply_prepared(planned, found, start, 0)
            path.unlink()
    return Redelivered(table, taken, waiting)


@dataclass(frozen=True, slots=True)
class Retried:
    """What became of the whole files of a table that were refused: how many were tried, and how many were again."""

    tried: int
    refused: int


def retry_files(driver: Driver, table: str) -> Retried:
    """Tries the refused files of a table again that are where they were, and takes what else waits there."""
    source = driver.sources.get(table)
    if not isinstance(source, Directory):
        return Retried(0, 0)
    with driver.lock:
        tried = source.look_again()
        digests = {file.digest for file in tried}
        for kept in driver.quarantine.files(table):
            if digest(kept) in digests:
                driver.quarantine.drop_file(kept)
        while tried and driver.step(table):
            pass
    again = {(file.name, file.digest) for file in driver.journal.refused_files(table)}
    return Retried(len(tried), sum((file.name, file.digest) in again for file in tried))


def _prepared(driver: Driver, table: str, read: SourceBatch, number: int) -> Prepared:
    declared = driver.pipeline.table(table).table
    found = prepared(driver.pipeline, driver.database, declared, read, number)
    try:
        with driver.database.batch() as batch:
            for name, changes in found.changes.items():
                batch.apply(name, changes.rows, changes.weights)
            batch.check()
            batch.discard()
    except DataError as error:
        return prepared_without_refused(driver.pipeline, driver.database, declared, read, number, error)
    return found


def finish_redelivery(driver: Driver, planned: Planned, old: Definitions) -> None:
    """Ends such a batch after a crash: it is forgotten, or its sinks get it and the old file goes."""
    table = table_of(planned.source)
    path = driver.quarantine.folder / table / planned.plan["letters"]
    left = driver.quarantine.letters_of(table, planned.number)
    if planned.number > driver.reached:
        left.unlink(missing_ok=True)
        driver.journal.drop(planned)
        return
    if path.exists():
        kept = driver.taken.load(planned.number)
        driver.outlets.write_missing(planned.number, lambda: kept or _taken(driver, planned, path), old)
        path.unlink()


def _taken(driver: Driver, planned: Planned, path: Path) -> dict[str, TableChanges]:
    table = table_of(planned.source)
    content = _read(driver.pipeline.table(table), pq.read_table(path)).content
    assert isinstance(content, TableChanges), "other changes are kept"
    return {table: driver.without_letters_of(table, planned.number, content)}


def _read(source: TableSource, letters: pa.Table) -> SourceBatch:
    """Rows that were set aside, as a batch of their own; texts stay letters."""
    unread = None
    if RAW in letters.column_names:
        is_text = pc.is_valid(letters.column(RAW))
        unread, letters = letters.filter(is_text), letters.filter(pc.invert(is_text))
    origins = letters.column(ORIGIN).combine_chunks() if ORIGIN in letters.column_names else None
    names, found = source.table.column_names, letters.column_names
    if not set(names) <= set(found):  # nothing but texts
        return SourceBatch(TableChanges(arrow_schema(source.table).empty_table(), np.zeros(0, np.int64)), unread)
    rows = letters.select(list(names))
    weights = letters.column(WEIGHT).to_numpy().astype(np.int64)
    if source.changes is None or not source.changes.is_keyed:
        return SourceBatch(TableChanges(rows, weights), unread, origins)
    numbers = range(len(source.changes.sequence_by))
    sequences = tuple(letters.column(f"{SEQUENCES}{number}").combine_chunks() for number in numbers)
    return SourceBatch(KeyedEvents(rows, weights.astype(np.int8), sequences), unread, origins)
