"""What is made of a batch that was read, before the database takes it: changes of tables, and rows to set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ivme.database import Database
from ivme.errors import DataError
from ivme.pipeline.history import HISTORY, history_changes
from ivme.pipeline.keyed_events import SEQUENCES, KeyedEvents, resolved
from ivme.pipeline.model import ORIGIN, REASON
from ivme.pipeline.source_batch import Snapshot, SourceBatch, all_letters, letters_of, snapshot_changes
from ivme.pipeline.table_changes import TableChanges
from ivme.query.model import Table
from ivme.spark.pipeline.dead_letters import refused_events, refused_places


class StoppedError(DataError):
    """The pipeline stops at rows that it cannot take, and nothing of their batch is applied."""


def stopped(table: str, why: str) -> StoppedError:
    return StoppedError(f"a batch of table {table} cannot be applied: {why}; the pipeline stops at bad changes")


def told(letters: pa.Table, rows: int) -> str:
    """What is said of rows that are set aside."""
    some = f"{letters.num_rows} row{'s' if letters.num_rows > 1 else ''}"
    first = str(letters.column(REASON)[0])
    kind, _, why = first.partition(": ")
    origin = f" (of {letters.column(ORIGIN)[0]})" if ORIGIN in letters.column_names else ""
    return f"{kind}: {some} of {rows}, the first{origin}: {why}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """Changes by table; `letters` are set aside. `is_repeatable` if the source gives the same changes again later."""

    changes: dict[str, TableChanges]
    letters: pa.Table
    is_repeatable: bool

    def of(self, table: str) -> TableChanges:
        return self.changes[table]


def prepared(database: Database, table: Table, batch: SourceBatch, number: int) -> Prepared:
    """The changes that a batch makes of the tables as they are."""
    letters = all_letters([batch.letters], table.name, number)
    return Prepared(_changes(database, table, batch.content), letters, isinstance(batch.content, TableChanges))


def prepared_without_refused(
    database: Database, table: Table, batch: SourceBatch, number: int, error: DataError
) -> Prepared:
    """The same, without the rows that the database refuses, which are set aside with the others."""
    content = batch.content
    changes = _changes(database, table, content)[table.name]
    if isinstance(content, KeyedEvents):
        reasons = refused_events(database, table, changes, content)
    else:
        reasons = refused_places(database, table, changes)
    if not reasons:
        raise error
    reasons = {place: f"not applicable: {reason}" for place, reason in reasons.items()}
    blamed = changes if isinstance(content, Snapshot) else content
    origins = None if isinstance(content, Snapshot) else batch.origins
    letters = all_letters([batch.letters, letters_of(blamed, reasons, origins)], table.name, number)
    good = blamed.taken(np.setdiff1d(np.arange(blamed.size), np.array(sorted(reasons), np.int64)))
    return Prepared(_changes(database, table, good), letters, isinstance(content, TableChanges))


def _changes(
    database: Database, table: Table, content: TableChanges | KeyedEvents | Snapshot
) -> dict[str, TableChanges]:
    if isinstance(content, TableChanges):
        return {table.name: content}
    if isinstance(content, Snapshot):
        return {table.name: snapshot_changes(content, *database.contents(table.name))}
    rows = database.table(table.name)
    sequences = database.table(SEQUENCES + table.name).of_keys if content.sequences else None
    found = resolved(table, content, rows.of_keys, rows.to_arrow, sequences)
    if HISTORY + table.name in database.tables:
        find = database.table(HISTORY + table.name).of_keys
        found[HISTORY + table.name] = history_changes(table, content, find)
    return found
