"""SCD type 2: every version of a row, from when to when it was valid.

A table with `history: name` has a table beside it with all events, by key and sequence, and a view of that name over
it, which other views and sinks read like any other: the columns of the table, `__START_AT` and `__END_AT`, as AUTO CDC
names them. An event that repeats the row before it starts no version. Since the view is made of the events, one that
comes late is put where it belongs, whatever came before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.pipeline.keyed_events import (
    DELETE,
    DELETED,
    SEQUENCES,
    TRUNCATE,
    Find,
    KeyedEvents,
    event_ranks,
    greatest_by_key,
    key_names,
)
from ivme.pipeline.model import TableSource, ViewText
from ivme.pipeline.table_changes import TableChanges, together
from ivme.query.model import Column, Table
from ivme.query.types import Type

HISTORY = "ivme_history_"
"""How the names of tables with all events of a table start."""

START, END = "__START_AT", "__END_AT"
_SEQUENCE = f"{SEQUENCES}0"


def history_table(table: Table, sequence: Type) -> Table:
    """The table of all events: the sequence, whether it is a delete, and the row (of deletes only the key).

    The columns of the row are last, so that others can be added behind them.
    """
    columns = (Column(_SEQUENCE, sequence), Column(DELETED, Type("bool")), *table.columns)
    return Table(HISTORY + table.name, columns, primary_key=(*key_names(table), _SEQUENCE))


def history_view(source: TableSource) -> ViewText:
    """The view of all versions, as a query over the events: O(log N) for an event, and the versions beside it."""
    assert source.changes is not None
    assert source.changes.history is not None
    table = source.table
    names = [_quoted(name) for name in table.column_names]
    by = ", ".join(_quoted(name) for name in key_names(table))
    window = f"OVER (PARTITION BY {by} ORDER BY {_SEQUENCE})"
    was = [f"LAG({name}) {window} AS ivme_was_{i}" for i, name in enumerate(names)]
    differs = " OR ".join(f"{name} IS DISTINCT FROM ivme_was_{i}" for i, name in enumerate(names))
    own = ", ".join((*names, _SEQUENCE, DELETED))
    query = (
        f"SELECT {', '.join(names)}, {_SEQUENCE} AS {START}, ivme_until AS {END} FROM (\n"
        f"  SELECT {own}, LEAD({_SEQUENCE}) {window} AS ivme_until FROM (\n"
        f"    SELECT {own}, LAG({DELETED}) {window} AS ivme_was_deleted, {', '.join(was)}\n"
        f"    FROM {_quoted(HISTORY + table.name)}) AS ivme_events\n"
        f"  WHERE {DELETED} IS DISTINCT FROM ivme_was_deleted OR (NOT {DELETED} AND ({differs}))) AS ivme_versions\n"
        f"WHERE NOT {DELETED}"
    )
    return ViewText(source.changes.history, query, source.place)


def history_changes(table: Table, events: KeyedEvents, find: Find) -> TableChanges:
    """What events change in the table of events: of those at one key and sequence the one that counts is there."""
    given = _rows(table, events)
    known = find(given)
    both = pa.concat_tables([known, given.cast(known.schema)])
    winners = greatest_by_key(both.select([*key_names(table), _SEQUENCE]), event_ranks(both, 1))
    new = np.sort(winners[winners >= known.num_rows])
    beaten = np.setdiff1d(np.arange(known.num_rows), winners)
    return together([(both.take(pa.array(beaten, pa.int64())), -1), (both.take(pa.array(new, pa.int64())), 1)])


def _rows(table: Table, events: KeyedEvents) -> pa.Table:
    """The events as rows of the table of events."""
    rows, is_delete = events.rows, pa.array(events.kinds == DELETE)
    keys = set(key_names(table))
    for position, name in enumerate(rows.column_names):
        if name not in keys:
            blank = pa.nulls(rows.num_rows, rows.schema.field(name).type)
            chosen = pa.compute.if_else(is_delete, blank, rows.column(name))
            rows = rows.set_column(position, rows.schema.field(name), chosen)
    return rows.add_column(0, DELETED, is_delete).add_column(0, _SEQUENCE, events.sequences[0])


def events_walked(table: Table, events: KeyedEvents) -> Iterable[tuple[Any, ...]]:
    """The rows that the table of events must have after all events, one after the other: for `ivme verify`."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    keys = key_names(table)
    for row, kind, at in zip(
        events.rows.to_pylist(), events.kinds.tolist(), events.sequences[0].to_pylist(), strict=True
    ):
        place = (*(row[name] for name in keys), at)
        if kind == TRUNCATE or (kind == DELETE and place in found):
            continue
        values = (row[name] if kind != DELETE or name in keys else None for name in table.column_names)
        found[place] = (at, kind == DELETE, *values)
    return found.values()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
