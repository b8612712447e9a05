"""Watermarks: how far the events of tables are in time, which moves the clock of the database.

A table with a watermark says which column has the time of its events, and how late they may come. The clock is the
least, over these tables, of the greatest time that was seen less the delay; rows leave views with `expire` or NOW() by
it, and tables with `keep` let go of rows that are older. What was seen is a table of the database, and it moves with
the clock in the transaction of the batch, so that a run after a crash, or of the same batches on another day, has the
same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.pipeline.model import TableSource
from ivme.pipeline.read_tables import create_table
from ivme.pipeline.source_batch import net
from ivme.pipeline.state_database import StateDatabase
from ivme.pipeline.table_changes import TableChanges, together
from ivme.query.clock import CLOCK_TABLE
from ivme.query.model import Table
from ivme.query.model import table as declare
from ivme.query.names import CLOCK

WATERMARKS = "ivme_watermarks"
"""The table with the greatest time that was seen of each table."""

_START = datetime(1970, 1, 1)

_TABLE = declare(WATERMARKS, {"name": "string", "seen": "timestamp"}, primary_key=["name"])


def create_watermarks(database: StateDatabase, sources: Iterable[TableSource]) -> None:
    """Makes the table of watermarks and the clock, if tables have watermarks; they start at 1970."""
    if any(source.watermark is not None for source in sources):
        if database.now is None:
            database.advance(_START)
        if WATERMARKS not in database.tables:
            create_table(database, _TABLE)


def clock_changes(
    database: StateDatabase, sources: Iterable[TableSource], changes: Mapping[str, TableChanges]
) -> dict[str, TableChanges]:
    """How a batch of changes moves the watermarks and the clock on; empty if it does not. O(n) for n changes."""
    marked = [source for source in sources if source.watermark is not None]
    found = {s.table.name: s.watermark.column for s in marked if s.watermark is not None and s.table.name in changes}
    return clock_moves(database, marked, {name: _latest(changes[name], column) for name, column in found.items()})


def clock_moves(
    database: StateDatabase, sources: Iterable[TableSource], latest: Mapping[str, datetime | None]
) -> dict[str, TableChanges]:
    """The same for changes of which the greatest time of each table is known."""
    marked = {s.table.name: s.watermark for s in sources if s.watermark is not None}
    if not marked:
        return {}
    seen: dict[str, datetime] = dict(database.table(WATERMARKS))
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


def without_old(
    database: StateDatabase, sources: Iterable[TableSource], changes: Mapping[str, TableChanges]
) -> dict[str, TableChanges]:
    """Changes that move the clock, and the rows that tables then let go of.

    A table is looked through when the clock has moved by a sixteenth of what it keeps, so that each row is seen some
    sixteen times before it goes: O(1) amortised for a row.
    """
    found = dict(changes)
    if CLOCK not in changes:
        return found
    (before,), (now,) = (_clocks(changes[CLOCK], sign) for sign in (-1, 1))
    for source in sources:
        mark = source.watermark
        if mark is None or mark.keep is None or not _is_due(before, now, mark.keep):
            continue
        name, limit = source.table.name, now - mark.keep
        rows, counts = database.contents(name)
        coming = [found[name]] if name in found else []
        whole = [_older(each, mark.column, limit) for each in (TableChanges(rows, counts.astype(np.int64)), *coming)]
        old = net(TableChanges(pa.concat_tables(each.rows for each in whole), _joined(whole)))
        went = [*coming, TableChanges(old.rows, -old.weights)]
        found[name] = TableChanges(pa.concat_tables(each.rows for each in went), _joined(went))
    return found


def _joined(parts: Sequence[TableChanges]) -> Any:
    return np.concatenate([each.weights for each in parts])


def _is_due(before: datetime, now: datetime, keep: timedelta) -> bool:
    step = keep / 16
    return (now - _START) // step > (before - _START) // step


def _older(changes: TableChanges, column: str, limit: datetime) -> TableChanges:
    times = changes.rows.column(column)
    moment = limit.date() if pa.types.is_date(times.type) else limit
    old = pc.fill_null(pc.less(times, pa.scalar(moment, times.type)), fill_value=False)
    return TableChanges(changes.rows.filter(old), changes.weights[np.asarray(old, bool)])


def _clocks(moved: TableChanges, sign: int) -> list[datetime]:
    found: list[datetime] = moved.rows.filter(pa.array(moved.weights * sign > 0)).column(0).to_pylist()
    return found


def clock_before(database: StateDatabase, changes: Mapping[str, TableChanges]) -> datetime | None:
    """What the clock said before changes that the database has; None if there is no clock."""
    if CLOCK not in changes:
        return database.now
    moved = changes[CLOCK]
    went: datetime = moved.rows.filter(pa.array(moved.weights < 0)).column(0)[0].as_py()
    return went


def _latest(changes: TableChanges, column: str) -> datetime | None:
    """The greatest time among the rows that come."""
    return as_moment(pc.max(changes.rows.column(column).filter(pa.array(changes.weights > 0))).as_py())


def as_moment(time: Any) -> datetime | None:
    """A value of a column of times, as the clock has it."""
    return datetime.combine(time, datetime.min.time()) if type(time) is date else time


def _rows(table: Table, rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = arrow_schema(table)
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
