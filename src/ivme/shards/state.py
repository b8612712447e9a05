"""The database of a pipeline over shards: rows live in the shards, and what is known of tables and views here.

An embedded database without rows has the same tables and views, and answers questions on definitions: columns, keys,
blocks. A batch of the pipeline is one step, whose record has the batch's number, and whose files have what changed in
followed views: a sink that lacks a batch after a crash gets it from there, and nothing is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ivme.database import Database
from ivme.definitions.readable_table import ReadableTable
from ivme.definitions.user_functions import UserFunction
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.runtime.delta import ArrowRows, Delta
from ivme.errors import SchemaError, SparkError
from ivme.query.model import Table
from ivme.query.table import promises
from ivme.shards.batch import ShardedBatch
from ivme.shards.changes import view_change
from ivme.shards.checkpoint import Record
from ivme.shards.database import ShardedDatabase
from ivme.shards.distribute import place_in_table, with_weights
from ivme.shards.merge import WEIGHT, consolidated
from ivme.shards.message import Question
from ivme.shards.view import ShardedView

if TYPE_CHECKING:
    import numpy.typing as npt

    from ivme.definitions.definitions import Definitions


class ShardedState:
    """Tables and views over shards, with what `ivme.pipeline.state_database.StateDatabase` asks for."""

    def __init__(self, shards: ShardedDatabase, functions: Iterable[UserFunction], source: str) -> None:
        """`source` is the one whose last batch sinks may lack: its changes stay until `release`."""
        self.shards = shards
        self._source = source
        given = list(functions)
        self._known = Database(functions=given, replan=False)
        self._known.definitions.warns_of_clock = False
        shards.keep_changes_from(self._step_of_last_batch())
        there = {name.lower() for name in shards.functions}
        for each in given:
            if each.name.lower() not in there:
                shards.create_function(
                    *(each.name, each.function),
                    arguments=each.arguments,
                    returns=each.returns,
                    called_with_null=each.called_with_null,
                )
        for name in shards.tables:
            self._declare(shards.relation(name))
        if shards.now is not None:
            self._known.advance(shards.now)
        for name in shards.views:
            entry = shards.entry(name)  # its text has what expires as a condition
            self._known.create_view(entry.name, entry.text, **dict(entry.options))

    def _declare(self, table: Table) -> None:
        types = {column.name: column.type for column in table.columns if column.type is not None}
        self._known.create_table(table.name, types, **promises(table))

    # What is known

    @property
    def known(self) -> Database:
        """A database with the same tables and views, and no rows."""
        return self._known

    def positions(self) -> dict[str, int]:
        """How far each source has been applied."""
        return self.shards.positions()

    @property
    def definitions(self) -> Definitions:
        return self._known.definitions

    @property
    def tables(self) -> tuple[str, ...]:
        return self.shards.tables

    @property
    def views(self) -> tuple[str, ...]:
        return self.shards.views

    @property
    def now(self) -> datetime | None:
        """What the clock says; None if there is none."""
        return self.shards.now

    def advance(self, now: datetime) -> None:
        """Advances the clock, which is made if there is none."""
        self.shards.advance(now)
        self._known.advance(now)

    def relation(self, name: str) -> Table:
        """The declaration of a table, or of a view as if it were a table."""
        return self._known.relation(name)

    # Catalog

    def create_table(self, name: str, schema: Any, **promised: Any) -> None:
        self.shards.create_table(name, schema, **promised)
        self._known.create_table(name, schema, **promised)

    def create_view(self, name: str, query: str, **options: Any) -> ShardedView:
        made = self.shards.create_view(name, query, **options)
        self._known.create_view(name, query, **options)
        return made

    def drop_view(self, name: str) -> None:
        self.shards.drop_view(name)
        self._known.drop_view(name)

    def drop_table(self, name: str) -> None:
        self.shards.drop_table(name)
        self._known.drop_table(name)

    def add_column(self, table: str, column: str, type_: Any, default: object = None) -> None:
        self.shards.add_column(table, column, type_, default)
        self._known.add_column(table, column, type_, default)

    # Rows

    def view(self, name: str) -> ShardedView:
        return self.shards.view(name)

    def table(self, name: str) -> ShardedTable:
        """A table to read: its rows, and those of some keys."""
        return ShardedTable(self.shards, self.relation(name))

    def contents(self, name: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The distinct rows of a table, or of a view without parameters, and their multiplicities."""
        return self.shards.contents(name)

    # Changes

    def insert(self, table: str, rows: Any) -> None:
        self.shards.insert(table, rows)

    def apply(self, table: str, rows: Any, weights: Any) -> None:
        self.shards.apply(table, rows, weights)

    def batch(self, source: str | None = None, position: int | None = None) -> ShardedBatch:
        return self.shards.batch(source, position)

    def position(self, source: str) -> int | None:
        return self.shards.position(source)

    def change_of_batch(self, batch: int, view: str) -> Delta | None:
        """What a batch changed in a followed view, from the files of its step; None if nothing."""
        step = self._step_of(batch)
        if step is None:
            raise SparkError(f"the checkpoint no longer has batch {batch}, whose changes of view {view} a sink lacks")
        found = view_change(self.shards.checkpoint, view, step)
        rows = consolidated(pa.concat_tables(found)) if found else None
        if rows is None or not rows.num_rows:
            return None
        return Delta(ArrowRows(rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy()))

    def record_of(self, batch: int) -> Record | None:
        """The record of the step of a batch, while it is stored."""
        step = self._step_of(batch)
        return None if step is None else self.shards.checkpoint.record(step)

    def release(self) -> None:
        """All sinks have the last batch."""
        self.shards.keep_changes_from(None)

    def _step_of_last_batch(self) -> int | None:
        position = self.shards.position(self._source)
        return None if position is None else self._step_of(position)

    def _step_of(self, batch: int) -> int | None:
        """The step of a batch: the first one whose record says that the source is there."""
        checkpoint, found = self.shards.checkpoint, None
        for number in reversed(checkpoint.numbers()):
            record = checkpoint.record(number)
            position = None if record is None else record.sources.get(self._source)
            if position is None or position < batch:
                break
            if position == batch:
                found = number
        return found

    def status(self) -> list[dict[str, Any]]:
        """For each shard its host, its step, its memory and its entries."""
        return self.shards.status()

    def close(self) -> None:
        self.shards.close()
        self._known.close()


class ShardedTable(ReadableTable):
    """The rows of a table in shards. Each time it is read it has those of that moment."""

    def __init__(self, shards: ShardedDatabase, declared: Table) -> None:
        self._shards, self.declared, self.name = shards, declared, declared.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.declared.column_names

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; a row of multiplicity m occurs m times."""
        rows = self._shards.table_rows(self.name)
        counts = rows.column(WEIGHT).to_numpy()
        plain = rows.drop_columns([WEIGHT])
        if not (counts == 1).all():
            plain = plain.take(pa.array(np.repeat(np.arange(len(counts)), np.maximum(counts, 0))))
        return plain.cast(arrow_schema(self.declared))

    def of_keys(self, rows: pa.Table) -> pa.Table:
        """The rows that have the primary keys of some other rows: each shard is asked for the keys that it has."""
        if not self.declared.primary_key:
            raise SchemaError(f"table {self.name} has no primary key to find rows by; declare one")
        given = with_weights(rows.cast(arrow_schema(self.declared)), np.ones(rows.num_rows, np.int64))
        found = [answer.tables[0] for answer in self._shards.ask(self._questions(given))]
        return pa.concat_tables([arrow_schema(self.declared).empty_table(), *found])

    def _questions(self, given: pa.Table) -> Iterator[Question]:
        for shard, part in place_in_table(self._shards.checkpoint.shards, self.declared, given):
            yield Question(shard, {"op": "keys", "table": self.name}, (part.rows.drop_columns([WEIGHT]),))
