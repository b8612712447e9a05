"""Transactions over several tables: what a source changed together reaches views and sinks together.

Events come table by table, and a log says which transactions were committed, in their order, and how many events each
has in each table (Debezium's transaction metadata). Events wait in tables of the database (`ivme_held_T`) until all
events of their transaction, and of all transactions before it in the log, have come; then they are taken together, in
the batch that brought the last one. What waits, what has come and what is finished are tables, too, so that a batch
and what it releases are one transaction of the database, and a crash changes nothing.

Events are told apart by their order within the transaction, so that one that comes again counts once. Everything here
costs O(n + w) for n events of a batch and w that wait.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.pipeline.keyed_events import SEQUENCES, KeyedEvents
from ivme.pipeline.model import LOG, TableSource
from ivme.pipeline.source_batch import Content, SourceBatch
from ivme.pipeline.state_database import StateDatabase
from ivme.pipeline.table_changes import TableChanges, together
from ivme.query.model import Column, Table
from ivme.query.model import table as declare
from ivme.query.types import Type

HELD = "ivme_held_"
"""How the names of tables start whose events wait."""

_PENDING = declare("ivme_transactions", {"place": "int", "id": "string", "part": "string", "events": "int"})
_ARRIVED = declare("ivme_arrived", {"id": "string", "part": "string", "number": "int"})
_FINISHED = declare("ivme_finished", {"id": "string", "place": "int"}, primary_key=["id"])

_REMEMBERED = 1_000_000
"""How many finished transactions are known, for events that come again."""

_PLACE, _ID, _KIND = "ivme_place", "ivme_transaction", "ivme_kind"
_NOWHERE = 2**62


@dataclass(frozen=True, slots=True)
class Released:
    """What a batch brings by table, and how the tables of what waits change."""

    contents: Mapping[str, Content]
    books: Mapping[str, TableChanges]


def transaction_tables() -> list[Table]:
    """The tables of a pipeline with transactions, beside those of waiting events."""
    return [_PENDING, _ARRIVED, _FINISHED]


def held_table(source: TableSource) -> Table:
    """The table of events that wait; the columns of the row are last, so that others can be added behind them."""
    assert source.changes is not None
    types = enumerate(source.changes.sequence_types)
    own = [Column(_PLACE, Type("int")), Column(_ID, Type("string")), Column(_KIND, Type("int"))]
    own += [Column(f"{SEQUENCES}{number}", type_) for number, type_ in types]
    return Table(HELD + source.table.name, (*own, *source.table.columns), primary_key=(_PLACE,))


def released(
    database: StateDatabase, group: Sequence[TableSource], name: str, batch: SourceBatch, number: int
) -> Released:
    """What a batch of a table of the group, or of the log, releases, and what waits after it."""
    waiting = _Waiting.of(database)
    coming = _coming(database, group, name, batch, number, waiting)
    pending = pa.concat_tables([waiting.pending, coming.pending])
    arrived = pa.concat_tables([waiting.arrived, coming.arrived])
    places = _complete(pending, arrived)
    contents: dict[str, Content] = {}
    books: dict[str, TableChanges] = {}
    for source in group:
        held = database.table(HELD + source.table.name).to_arrow()
        new = coming.rows if source.table.name == name else held.slice(0, 0)
        goes, stays = _is_free(held, places), _is_free(new, places)
        free = pa.concat_tables([held.filter(goes), new.filter(stays)])
        if free.num_rows or source.table.name == name:
            contents[source.table.name] = _content(source, _in_order(free, places))
        books[HELD + source.table.name] = together([(held.filter(goes), -1), (new.filter(pc.invert(stays)), 1)])
    done = _rows(_FINISHED, [{"id": key, "place": place} for key, place in places.items()])
    books[_FINISHED.name] = together([(_forgotten(database), -1), (done, 1)])
    books[_PENDING.name] = _moved(waiting.pending, coming.pending, places)
    books[_ARRIVED.name] = _moved(waiting.arrived, coming.arrived, places)
    return Released(contents, {table: each for table, each in books.items() if each.size})


def waiting(database: StateDatabase, group: Sequence[TableSource]) -> dict[str, Any]:
    """How many transactions of the log lack events, which is the first of them, and how many events wait."""
    pending = _Waiting.of(database).pending.sort_by("place")
    ids = list(dict.fromkeys(pending.column("id").to_pylist()))
    events = sum(len(database.table(HELD + source.table.name)) for source in group)
    return {"transactions": len(ids), "events": events, "first": ids[0] if ids else None}


def without_waiting(database: StateDatabase, name: str, batch: SourceBatch) -> SourceBatch:
    """All events of a table without those that wait, each once: what `ivme verify` compares the table with."""
    content, transactions = batch.content, batch.transactions
    assert isinstance(content, KeyedEvents | TableChanges)
    if transactions is None:
        return batch
    waiting = set(database.table(HELD + name).to_arrow().column(_ID).to_pylist())
    kinds = content.kinds if isinstance(content, KeyedEvents) else content.weights
    numbers = _numbered(transactions.numbers, _NOWHERE)
    keep, seen = [], set()
    for place, each in enumerate(zip(transactions.ids.to_pylist(), numbers, kinds.tolist(), strict=True)):
        if each[0] is None or (each[0] not in waiting and each not in seen):
            keep.append(place)
        seen.add(each)
    return SourceBatch(content.taken(np.array(keep, np.int64)))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The log from the first transaction on that lacks events, and the events that have come of it."""

    pending: pa.Table
    arrived: pa.Table

    @staticmethod
    def of(database: StateDatabase) -> _Waiting:
        return _Waiting(database.table(_PENDING.name).to_arrow(), database.table(_ARRIVED.name).to_arrow())


@dataclass(frozen=True, slots=True)
class _Coming(_Waiting):
    """What a batch adds to it, and its events as rows of the table of waiting ones."""

    rows: pa.Table


def _coming(
    database: StateDatabase, group: Sequence[TableSource], name: str, batch: SourceBatch, number: int, waiting: _Waiting
) -> _Coming:
    first = number << 24
    if name == LOG:
        assert isinstance(batch.content, TableChanges)
        return _Coming(_entries(database, group, batch.content.rows, first, waiting), _rows(_ARRIVED, []), pa.table({}))
    source = next(each for each in group if each.table.name == name)
    rows = _held_rows(source, batch, first)
    if batch.transactions is None:
        return _Coming(_rows(_PENDING, []), _rows(_ARRIVED, []), rows)
    numbers = _numbered(batch.transactions.numbers, first)
    rows = _first_of_each(rows, numbers, batch.transactions.numbers)
    known = pa.concat_tables([waiting.arrived.filter(pc.equal(waiting.arrived.column("part"), name))])
    seen = set(zip(known.column("id").to_pylist(), known.column("number").to_pylist(), strict=True))
    finished = _finished(database, batch.transactions.come.column("id"))
    given = zip(rows.column(_ID).to_pylist(), rows.column(_PLACE).to_pylist(), strict=True)
    at = dict(zip(range(first, first + len(numbers)), numbers, strict=True))
    exact = batch.transactions.is_numbered
    is_new = [not exact or key is None or not (key in finished or (key, at[place]) in seen) for key, place in given]
    rows = rows.filter(pa.array(is_new, pa.bool_()))
    rows = _without_ids(rows, finished)
    come = batch.transactions.come
    pairs = dict.fromkeys(zip(come.column("id").to_pylist(), _numbered(come.column("number"), first), strict=True))
    new = [{"id": key, "part": name, "number": n} for key, n in pairs if key is not None and key not in finished]
    new = [each for each in new if (each["id"], each["number"]) not in seen]
    return _Coming(_rows(_PENDING, []), _rows(_ARRIVED, new), rows)


def _numbered(numbers: pa.Array, first: int) -> list[int]:
    """The orders of events in their transactions; without one, something that no other has."""
    return [first + place if number is None else number for place, number in enumerate(numbers.to_pylist())]


def _first_of_each(rows: pa.Table, numbers: list[int], given: pa.Array) -> pa.Table:
    """The rows without those of events that the batch has twice; the rows of one event have different kinds."""
    if given.null_count == len(given):
        return rows
    told = zip(rows.column(_ID).to_pylist(), numbers, rows.column(_KIND).to_pylist(), strict=True)
    seen: set[Any] = set()
    keep = []
    for each in told:
        keep.append(each[0] is None or each not in seen)
        seen.add(each)
    return rows.filter(pa.array(keep, pa.bool_()))


def _without_ids(rows: pa.Table, finished: set[str]) -> pa.Table:
    """The rows of finished transactions go on as if they had none."""
    ids = [None if key in finished else key for key in rows.column(_ID).to_pylist()]
    return rows.set_column(rows.column_names.index(_ID), rows.schema.field(_ID), pa.array(ids, pa.string()))


def _entries(
    database: StateDatabase, group: Sequence[TableSource], log: pa.Table, first: int, waiting: _Waiting
) -> pa.Table:
    """The entries of the log: for each transaction one without a table, and one for each table of the group."""
    known = set(waiting.pending.column("id").to_pylist()) | _finished(database, log.column("id"))
    names = _names(group)
    found: list[dict[str, Any]] = []
    for place, entry in enumerate(log.to_pylist()):
        if entry["id"] in known:
            continue
        known.add(entry["id"])
        common = {"place": first + place, "id": entry["id"]}
        found.append({**common, "part": "", "events": 0})
        for count in json.loads(entry["counts"] or "[]"):
            collection = str(count["data_collection"]).lower()
            part = names.get(collection, names.get(collection.rsplit(".", 1)[-1]))
            if part is not None:
                found.append({**common, "part": part, "events": int(count["event_count"])})
    return _rows(_PENDING, found)


def _names(group: Sequence[TableSource]) -> dict[str, str]:
    """The tables of the group by the names that the log has for them."""
    given = ((each.changes.collection if each.changes else None, each.table.name) for each in group)
    return {(collection or name).lower(): name for collection, name in given}


def _finished(database: StateDatabase, ids: pa.ChunkedArray) -> set[str]:
    """Which transactions are finished, among some."""
    asked = [{"id": key, "place": 0} for key in pc.unique(ids).to_pylist() if key is not None]
    return set(database.table(_FINISHED.name).of_keys(_rows(_FINISHED, asked)).column("id").to_pylist())


def _forgotten(database: StateDatabase) -> pa.Table:
    """The finished transactions that are forgotten: the oldest, a tenth at a time."""
    table = database.table(_FINISHED.name)
    if len(table) <= _REMEMBERED:
        return _rows(_FINISHED, [])
    return table.to_arrow().sort_by("place").slice(0, _REMEMBERED // 10)


def _complete(pending: pa.Table, arrived: pa.Table) -> dict[str, int]:
    """The transactions before the first that lacks events, with their places in the log."""
    counted: dict[tuple[str, str], int] = {}
    grouped = arrived.group_by(["id", "part"]).aggregate([([], "count_all")])
    for row in grouped.to_pylist():
        counted[row["id"], row["part"]] = row["count_all"]
    entries = pending.to_pylist()
    lacking = (e["place"] for e in entries if counted.get((e["id"], e["part"]), 0) < e["events"])
    first = min(lacking, default=_NOWHERE)
    return {entry["id"]: entry["place"] for entry in entries if entry["place"] < first}


def _is_free(rows: pa.Table, places: Mapping[str, int]) -> pa.Array:
    """Which events need not wait: those of released transactions, and of none."""
    if not rows.num_rows:
        return pa.array([], pa.bool_())
    ids = rows.column(_ID)
    return _whole(pc.or_(pc.is_null(ids), pc.is_in(ids, pa.array(list(places), pa.string()))))


def _in_order(rows: pa.Table, places: Mapping[str, int]) -> pa.Table:
    """Events in the order of the log, and within a transaction as they came; those of none first."""
    ids = rows.column(_ID).to_pylist()
    ranks = np.array([-1 if key is None else places[key] for key in ids], np.int64)
    order = np.lexsort((rows.column(_PLACE).to_numpy(), ranks))
    return rows.take(pa.array(order))


def _held_rows(source: TableSource, batch: SourceBatch, first: int) -> pa.Table:
    """The events of a batch as rows of the table of waiting ones."""
    content, schema = batch.content, arrow_schema(held_table(source))
    assert isinstance(content, KeyedEvents | TableChanges)
    kinds = content.kinds if isinstance(content, KeyedEvents) else content.weights
    ids = pa.nulls(content.size, pa.string()) if batch.transactions is None else batch.transactions.ids
    own = [pa.array(np.arange(first, first + content.size)), ids, pa.array(kinds.astype(np.int64))]
    own += list(content.sequences) if isinstance(content, KeyedEvents) else []
    columns = [*own, *content.rows.columns]
    return pa.Table.from_arrays([pa.chunked_array(each) for each in map(_chunks, columns)], schema.names).cast(schema)


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) and column.num_chunks else [_whole(column)]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _content(source: TableSource, rows: pa.Table) -> Content:
    """Rows of the table of waiting events as what a source gives."""
    assert source.changes is not None
    own = rows.select(list(source.table.column_names)).cast(arrow_schema(source.table))
    kinds = rows.column(_KIND).to_numpy()
    if not source.changes.is_keyed:
        return TableChanges(own, kinds.astype(np.int64))
    count = len(source.changes.sequence_types)
    sequences = tuple(_whole(rows.column(f"{SEQUENCES}{number}")) for number in range(count))
    return KeyedEvents(own, kinds.astype(np.int8), sequences)


def _moved(old: pa.Table, new: pa.Table, places: Mapping[str, int]) -> TableChanges:
    """What goes of the rows that waited, and what comes to them, when transactions are released."""
    names = pa.array(list(places), pa.string())
    gone = old.filter(pc.is_in(old.column("id"), names))
    return together([(gone, -1), (new.filter(pc.invert(pc.is_in(new.column("id"), names))), 1)])


def _rows(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=arrow_schema(table))
