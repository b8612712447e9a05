"""Upserts, deletes by key and their order, turned into rows that go and rows that come.

An event says what the row of a primary key is from now on, or that it is gone. Of the events of a key the one with the
greatest sequence counts, whenever it comes (SCD type 1, as AUTO CDC has it): a table beside the table has the sequence
of the last event that counted for each key, deleted ones too, so that a late event changes nothing. Of two events with
one sequence an upsert counts before a delete, and of two upserts the one that comes later. Without sequences the last
event of a key counts.

Everything here is a function of the events and of the rows that the tables have for their keys: O(n log n) for n
events, whatever the size of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.errors import PipelineError
from ivme.pipeline.table_changes import TableChanges, together
from ivme.query.model import Column, Table
from ivme.query.types import Type

UPSERT, DELETE, TRUNCATE = 1, -1, 0

SEQUENCES = "ivme_sequence_"
"""How the names of tables and columns start that hold sequences."""

DELETED, _PLACE = "ivme_deleted", "ivme_place"

Find = Callable[[pa.Table], pa.Table]
"""The rows of a table that have the primary keys of some rows."""


@dataclass(frozen=True, slots=True)
class KeyedEvents:
    """Events of one table in the order in which they came: rows (of deletes only the key counts), kinds, sequences."""

    rows: pa.Table
    kinds: np.ndarray[Any, np.dtype[np.int8]]
    sequences: tuple[pa.Array, ...] = ()

    @property
    def size(self) -> int:
        return int(self.rows.num_rows)

    def taken(self, places: Any) -> KeyedEvents:
        """Some of the events, by their places."""
        chosen = pa.array(places, pa.int64())
        sequences = tuple(each.take(chosen) for each in self.sequences)
        return KeyedEvents(self.rows.take(chosen), self.kinds[places], sequences)


def sequence_table(table: Table, types: tuple[Type, ...]) -> Table:
    """The table beside a table that holds, for each key, the sequence of the last event that counted."""
    keys = tuple(table.columns[position] for position in table.key_positions)
    own = tuple(Column(f"{SEQUENCES}{number}", type_) for number, type_ in enumerate(types))
    columns = (*keys, *own, Column(DELETED, Type("bool")))
    return Table(SEQUENCES + table.name, columns, primary_key=tuple(column.name for column in keys))


def objections(table: Table, events: KeyedEvents) -> dict[int, str]:
    """The events that cannot be taken, by their places, with the reasons."""
    found: dict[int, str] = {}
    events_of_rows = events.kinds != TRUNCATE
    for position in table.key_positions:
        missing = _nulls(events.rows.column(position)) & events_of_rows
        reason = f"malformed: the primary key column {table.columns[position].name} is NULL"
        found |= dict.fromkeys(np.flatnonzero(missing).tolist(), reason)
    for sequence in events.sequences:
        found |= dict.fromkeys(np.flatnonzero(_nulls(sequence)).tolist(), "malformed: the sequence is NULL")
    if events.sequences:
        reason = "not applicable: a truncate has no place among events with sequences"
        found |= dict.fromkeys(np.flatnonzero(~events_of_rows).tolist(), reason)
    return found


def resolved(
    table: Table, events: KeyedEvents, find: Find, everything: Callable[[], pa.Table], sequences: Find | None = None
) -> dict[str, TableChanges]:
    """What events change, by table: the rows of the table, and its sequences where there are some.

    `find` gives the rows that the table has now, `everything` all of them (for a truncate), `sequences` what the table
    of sequences has.
    """
    if not table.primary_key:
        raise PipelineError(f"table {table.name} needs a primary key to take upserts by")
    if events.sequences:
        assert sequences is not None
        return _in_sequence(table, events, find, sequences)
    start = _after_truncate(events)
    rest = events.taken(np.arange(start, events.size)) if start else events
    old = everything() if start else None
    last = rest.taken(greatest_by_key(rest.rows.select(key_names(table)), np.arange(rest.size)))
    return {table.name: _difference(last, find(last.rows) if old is None else old)}


def _in_sequence(table: Table, events: KeyedEvents, find: Find, sequences: Find) -> dict[str, TableChanges]:
    known = sequences(_sequence_rows(table, events))
    both = pa.concat_tables([known, _sequence_rows(table, events).cast(known.schema)])
    winners = greatest_by_key(both.select(key_names(table)), event_ranks(both, len(events.sequences)))
    new = np.sort(winners[winners >= known.num_rows] - known.num_rows)
    beaten = np.setdiff1d(np.arange(known.num_rows), winners)
    last = events.taken(new)
    marks = together([(known.take(pa.array(beaten, pa.int64())), -1), (_sequence_rows(table, last), 1)])
    return {table.name: _difference(last, find(last.rows)), SEQUENCES + table.name: marks}


def _sequence_rows(table: Table, events: KeyedEvents) -> pa.Table:
    """The events as rows of the table of sequences."""
    found = events.rows.select(key_names(table))
    for number, sequence in enumerate(events.sequences):
        found = found.append_column(f"{SEQUENCES}{number}", sequence)
    return found.append_column(DELETED, pa.array(events.kinds == DELETE))


def event_ranks(rows: pa.Table, sequences: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of each row in the order in which events count: by sequence, upserts last, then as they came."""
    upserts = pc.cast(pc.invert(rows.column(DELETED)), pa.int8())
    columns = {f"s{i}": rows.column(f"{SEQUENCES}{i}") for i in range(sequences)}
    keyed = pa.table({**columns, "upsert": upserts, _PLACE: pa.array(np.arange(rows.num_rows))})
    order = pc.sort_indices(keyed, sort_keys=[(name, "ascending") for name in keyed.column_names])
    ranks = np.empty(rows.num_rows, np.int64)
    ranks[order.to_numpy()] = np.arange(rows.num_rows)
    return ranks


def greatest_by_key(keys: pa.Table, ranks: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of the row of each key that has the greatest rank, in the order of ranks."""
    ranked = keys.append_column(_PLACE, pa.array(ranks, pa.int64()))
    best = ranked.group_by(keys.column_names, use_threads=False).aggregate([(_PLACE, "max")])
    places = np.empty(len(ranks), np.int64)
    places[ranks] = np.arange(len(ranks))
    found: np.ndarray[Any, np.dtype[np.int64]] = places[np.sort(best.column(f"{_PLACE}_max").to_numpy())]
    return found


def _difference(last: KeyedEvents, old: pa.Table) -> TableChanges:
    """The rows of the events' keys go, and those that are upserted come."""
    new = last.rows.filter(pa.array(last.kinds == UPSERT))
    return together([(old.cast(new.schema), -1), (new, 1)])


def _after_truncate(events: KeyedEvents) -> int:
    """Where the events start that no truncate takes away; 0 if there is no truncate."""
    places = np.flatnonzero(events.kinds == TRUNCATE)
    return int(places[-1]) + 1 if len(places) else 0


def key_names(table: Table) -> list[str]:
    """The columns of a table's primary key."""
    return [table.columns[position].name for position in table.key_positions]


def _nulls(column: pa.Array | pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found: np.ndarray[Any, np.dtype[np.bool_]] = np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False), bool)
    return found


def latest_rows(table: Table, loaded: pa.Table, events: KeyedEvents) -> pa.Table:
    """The rows that a table must have after all events, one event after the other: what `ivme verify` compares with.

    Rows that were loaded have no sequence: every event comes after them.
    """
    keys = key_names(table)
    rows: dict[tuple[Any, ...], Mapping[str, Any]] = {tuple(r[k] for k in keys): r for r in loaded.to_pylist()}
    reached: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    sequences = list(zip(*(each.to_pylist() for each in events.sequences), strict=True)) or [()] * events.size
    for row, kind, sequence in zip(events.rows.to_pylist(), events.kinds.tolist(), sequences, strict=True):
        if kind == TRUNCATE:
            rows.clear()
            continue
        key = tuple(row[name] for name in keys)
        rank = (*sequence, kind)
        if events.sequences and key in reached and rank < reached[key]:
            continue
        reached[key] = rank
        rows.pop(key, None)
        if kind == UPSERT:
            rows[key] = row
    return pa.Table.from_pylist(list(rows.values()), schema=loaded.schema)
