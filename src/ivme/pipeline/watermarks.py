"""Watermarks: how far the events of tables are in time, which moves the clock of the database.

A table with a watermark says which column has the time of its events, and how late they may come. The clock is the
least, over these tables, of the greatest time that was seen less the delay; rows leave views with `expire` or NOW() by
it. What was seen is a table of the database, and it moves with the clock in the transaction of the batch, so that a run
after a crash, or of the same batches on another day, has the same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ivme.clock import make_clock
from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.pipeline.model import TableSource
from ivme.pipeline.read_tables import create_table
from ivme.pipeline.table_changes import TableChanges, together
from ivme.query.clock import CLOCK_TABLE
from ivme.query.model import Table
from ivme.query.model import table as declare
from ivme.query.names import CLOCK

WATERMARKS = "ivme_watermarks"
"""The table with the greatest time that was seen of each table."""

_TABLE = declare(WATERMARKS, {"name": "string", "seen": "timestamp"}, primary_key=["name"])


def create_watermarks(database: Database, sources: Iterable[TableSource]) -> None:
    """Makes the table of watermarks and the clock, if tables have watermarks; they start at 1970."""
    if any(source.watermark is not None for source in sources):
        make_clock(database.definitions)
        if WATERMARKS not in database.tables:
            create_table(database, _TABLE)


def clock_changes(
    database: Database, sources: Iterable[TableSource], changes: Mapping[str, TableChanges]
) -> dict[str, TableChanges]:
    """How a batch of changes moves the watermarks and the clock on; empty if it does not. O(n) for n changes."""
    marked = {s.table.name: s.watermark for s in sources if s.watermark is not None}
    if not marked:
        return {}
    seen: dict[str, datetime] = dict(database.table(WATERMARKS))
    latest = {name: _latest(changes[name], mark.column) for name, mark in marked.items() if name in changes}
    moved = {name: at for name, at in latest.items() if at is not None and (name not in seen or at > seen[name])}
    if not moved:
        return {}
    old = [(name, seen[name]) for name in moved if name in seen]
    found = {WATERMARKS: together([(_rows(_TABLE, old), -1), (_rows(_TABLE, list(moved.items())), 1)])}
    seen |= moved
    before, held = database.now, [seen[name] - mark.delay for name, mark in marked.items() if name in seen]
    if before is not None and len(held) == len(marked) and min(held) > before:
        found[CLOCK] = together([(_rows(CLOCK_TABLE, [(before,)]), -1), (_rows(CLOCK_TABLE, [(min(held),)]), 1)])
    return found


def clock_before(database: Database, changes: Mapping[str, TableChanges]) -> datetime | None:
    """What the clock said before changes that the database has; None if there is no clock."""
    if CLOCK not in changes:
        return database.now
    moved = changes[CLOCK]
    went: datetime = moved.rows.filter(pa.array(moved.weights < 0)).column(0)[0].as_py()
    return went


def _latest(changes: TableChanges, column: str) -> datetime | None:
    """The greatest time among the rows that come."""
    found: Any = pc.max(changes.rows.column(column).filter(pa.array(changes.weights > 0))).as_py()
    return datetime.combine(found, datetime.min.time()) if type(found) is date else found


def _rows(table: Table, rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = arrow_schema(table)
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
