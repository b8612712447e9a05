"""What is made of a batch that was read, before the database takes it: changes of tables, and rows to set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ivme.errors import DataError
from ivme.pipeline.history import HISTORY, history_changes
from ivme.pipeline.keyed_events import SEQUENCES, KeyedEvents, resolved
from ivme.pipeline.model import LOG, ORIGIN, REASON, Pipeline
from ivme.pipeline.source_batch import Content, Snapshot, SourceBatch, all_letters, letters_of, snapshot_changes
from ivme.pipeline.state_database import StateDatabase
from ivme.pipeline.table_changes import TableChanges
from ivme.pipeline.transactions import Released, released
from ivme.query.model import Table
from ivme.shown_table import counted
from ivme.spark.pipeline.dead_letters import refused_events, refused_places


class StoppedError(DataError):
    """The pipeline stops at rows that it cannot take, and nothing of their batch is applied."""


def stopped(table: str, why: str) -> StoppedError:
    return StoppedError(f"a batch of table {table} cannot be applied: {why}; the pipeline stops at bad changes")


def told(letters: pa.Table, rows: int) -> str:
    """What is said of rows that are set aside."""
    some = counted(letters.num_rows, "row")
    first = str(letters.column(REASON)[0])
    kind, _, why = first.partition(": ")
    origin = f" (of {letters.column(ORIGIN)[0]})" if ORIGIN in letters.column_names else ""
    return f"{kind}: {some} of {rows}, the first{origin}: {why}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """Changes by table, and rows to set aside by table. `is_repeatable` if the source gives the same changes again."""

    changes: dict[str, TableChanges]
    letters: dict[str, pa.Table]
    is_repeatable: bool

    @property
    def set_aside(self) -> int:
        """How many rows are set aside."""
        return sum(each.num_rows for each in self.letters.values())


def prepared(pipeline: Pipeline, database: StateDatabase, table: Table, batch: SourceBatch, number: int) -> Prepared:
    """The changes that a batch makes of the tables as they are."""
    found = _released(pipeline, database, table, batch, number)
    return _prepared(pipeline, database, found, {table.name: [batch.letters]}, number, repeatable=batch.is_repeatable)


def prepared_without_refused(
    pipeline: Pipeline, database: StateDatabase, table: Table, batch: SourceBatch, number: int, error: DataError
) -> Prepared:
    """The same, without the rows that the database refuses, which are set aside with the others."""
    found = _released(pipeline, database, table, batch, number)
    letters: dict[str, list[pa.Table | None]] = {table.name: [batch.letters]}
    good: dict[str, Content] = {}
    for name, content in found.contents.items():
        origins = batch.origins if content is batch.content else None
        good[name], aside = _without_refused(database, pipeline.table(name).table, content, origins)
        letters.setdefault(name, []).append(aside)
    if not any(aside is not None for parts in letters.values() for aside in parts[len(parts) - 1 :]):
        raise error
    return _prepared(pipeline, database, Released(good, found.books), letters, number, repeatable=batch.is_repeatable)


def _without_refused(
    database: StateDatabase, table: Table, content: Content, origins: pa.Array | None
) -> tuple[Content, pa.Table | None]:
    """What the database takes of a table's changes, and the rest as letters, None if there is none."""
    changes = _changes(database, table, content)[table.name]
    if isinstance(content, KeyedEvents):
        reasons = refused_events(database, table, changes, content)
    else:
        reasons = refused_places(database, table, changes)
    if not reasons:
        return content, None
    reasons = {place: f"not applicable: {reason}" for place, reason in reasons.items()}
    blamed = changes if isinstance(content, Snapshot) else content
    aside = letters_of(blamed, reasons, origins)
    return blamed.taken(np.setdiff1d(np.arange(blamed.size), np.array(sorted(reasons), np.int64))), aside


def _released(pipeline: Pipeline, database: StateDatabase, table: Table, batch: SourceBatch, number: int) -> Released:
    """What a batch brings by table: its own content, or what it completes of transactions."""
    names = [LOG, *(source.table.name for source in pipeline.together)]
    if pipeline.transactions is None or table.name not in names or not _is_of_source(batch, table):
        return Released({table.name: batch.content}, {})
    return released(database, pipeline.together, table.name, batch, number)


def _is_of_source(batch: SourceBatch, table: Table) -> bool:
    """Whether a batch is one that events of transactions come in; rows that are taken again are not."""
    return table.name == LOG or batch.transactions is not None


def _prepared(
    pipeline: Pipeline,
    database: StateDatabase,
    found: Released,
    letters: Mapping[str, Sequence[pa.Table | None]],
    number: int,
    *,
    repeatable: bool,
) -> Prepared:
    changes: dict[str, TableChanges] = {}
    for name, content in found.contents.items():
        changes |= _changes(database, pipeline.table(name).table, content)
    aside = {name: all_letters(parts, name, number) for name, parts in letters.items()}
    repeatable = repeatable and not found.books and all(isinstance(c, TableChanges) for c in found.contents.values())
    return Prepared({**changes, **found.books}, {n: each for n, each in aside.items() if each.num_rows}, repeatable)


def _changes(database: StateDatabase, table: Table, content: Content) -> dict[str, TableChanges]:
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
