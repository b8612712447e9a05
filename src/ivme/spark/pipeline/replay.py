"""The changes that a batch made in views, computed again when the database already has the batch.

A crash between the database's commit and a sink's write loses the changes that were on their way. They are a function
of the tables before the batch, and of the batch, so that a second database in memory, made of today's tables without
the batch, gives them again when it takes the batch. This costs as much as opening the database did; it happens at
most once after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ivme.database import Database
from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.delta import Delta as ViewDelta
from ivme.pipeline.model import Pipeline
from ivme.pipeline.read_tables import create_table
from ivme.pipeline.state_database import StateDatabase
from ivme.pipeline.table_changes import TableChanges
from ivme.pipeline.watermarks import clock_before
from ivme.query.names import CLOCK
from ivme.view import View


def replay(
    pipeline: Pipeline,
    database: StateDatabase,
    changes: Mapping[str, TableChanges] | None,
    views: Iterable[str],
    note: Callable[[View], None] = lambda _: None,
    widths: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, ViewDelta | None]:
    """The changes of views that a batch made; without a batch, all their rows, as changes from nothing.

    Tables promise nothing here, since taking a batch back deletes rows; promises change costs, never answers. `note`
    sees the views. `widths` are the numbers of columns that tables had when the views were written.
    """
    with Database(functions=pipeline.functions) as other:
        other.definitions.warns_of_clock = False
        for name in database.tables:
            table = database.relation(name)
            columns = table.columns[: widths.get(name, len(table.columns))]
            create_table(other, replace(table, columns=columns, append_only=False, static=False))
        before = clock_before(database, changes or {})
        if before is not None:
            other.advance(before)
        if changes is not None:
            _fill(database, other, changes)
        for view in pipeline.views:
            other.create_view(view.name, view.query, **dict(view.options))
        feeds = {name: other.view(name).changes() for name in views}
        for name in feeds:
            note(other.definitions.map_view(name))
        with other.batch() as batch:
            if changes is None:
                _add(database, batch, widths)
            for changed, delta in (changes or {}).items():
                batch.apply(changed, delta.rows, delta.weights)
        return {name: next(iter(feed), None) for name, feed in feeds.items()}


def _fill(database: StateDatabase, other: Database, without: Mapping[str, TableChanges]) -> None:
    with other.batch() as batch:
        _add(database, batch)
        for table, delta in without.items():
            if table != CLOCK:
                batch.apply(table, delta.rows, -delta.weights)


def _add(database: StateDatabase, batch: Batch, widths: Mapping[str, int] = MappingProxyType({})) -> None:
    for name in database.tables:
        rows, weights = database.contents(name)
        batch.apply(name, rows.select(rows.column_names[: widths.get(name, rows.num_columns)]), weights)
