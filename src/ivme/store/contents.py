"""What records of the log say, and what they add up to.

A record is one of `{"batch": [part, ...], "source": name, "position": n}`, `{"create_table": ...}`, `{"drop_table":
name}`, `{"change_columns": ...}`, `{"rename_table": [name, to]}`, `{"create_view": ...}`, `{"drop_view": name}`,
`{"change_plan": [view, plan]}` and `{"closed": true}`; one that creates something in the place of another drops that,
too. A batch has a part for each table: a few rows stand in the text. More are in the record's bytes, as an Arrow stream
with the weights as its last column, or, if they all have one weight, as a record batch of Arrow, and the weight in the
text. Records are small and read once at most, so that they are compressed only while the disk cannot take them as fast
as they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_schema, arrow_type, declared_type
from ivme.engine.codes.dictionary import Codes
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.journal import ArrowRecord
from ivme.engine.runtime.positions import Progress
from ivme.errors import DamagedError
from ivme.query.model import Table
from ivme.query.table import with_renamed_table
from ivme.store.plain import convert, read_option, read_table, readers, writers
from ivme.store.record import Record, record_text, sum_of

_MOST_ROWS_BY_HAND = 16
"""Up to this many rows of a table stand in the text of a record."""

_MANY = 65_536

_PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
"""To hand the columns of a record to other threads takes longer than to compress them, and under the lock."""


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view as its maker wrote it, and the text of its plan; None where an older ivme stored none."""

    name: str
    query: str
    options: dict[str, Any]
    plan: str | None = None
    functions: Sequence[Mapping[str, Any]] = ()
    """The signatures of the users' functions that it calls."""

    def plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"name": self.name, "query": self.query, "options": self.options}
        plain |= {} if self.plan is None else {"plan": self.plan}
        return {**plain, "functions": list(self.functions)} if self.functions else plain

    def read_options(self) -> dict[str, Any]:
        return {name: read_option(value) for name, value in self.options.items()}


def batch_record(
    tables: Mapping[str, Table], batch: Mapping[str, RowBatch], progress: Progress | None, *, compressed: bool = False
) -> tuple[dict[str, Any], list[Any]]:
    """The record of a batch: its text, and its bytes."""
    parts, bodies = [], []
    for name, changed in batch.items():
        if len(changed.weights) <= _MOST_ROWS_BY_HAND:
            rows = convert(changed.listed(), writers(tables[name]))
            parts.append({"table": name, "rows": rows, "weights": changed.weights.tolist()})
        else:
            bodies.append(
                arrow_bytes(_in_declared_types(changed, tables[name]), changed.weights, compressed=compressed)
            )
            parts.append({"table": name, "bytes": len(bodies[-1])})
    record: dict[str, Any] = {"batch": parts}
    if progress is not None:
        record |= {"source": progress.source, "position": progress.position}
    return record, bodies


def arrow_record(
    parts: Sequence[tuple[str, pa.Schema, pa.RecordBatch, int]], *, compressed: bool = False
) -> ArrowRecord | None:
    """The record of record batches, each of a table with its columns in Arrow, and with a weight for all of its rows.

    None if one has few rows or is not in the types of its table.
    """
    stated, bodies = [], []
    for table, declared, data, weight in parts:
        if data.num_rows <= _MOST_ROWS_BY_HAND or not _is_of(data.schema, declared):
            return None
        if compressed:
            bodies.append(arrow_bytes(data, np.full(data.num_rows, weight, dtype=np.int64), compressed=True))
            stated.append({"table": table, "bytes": len(bodies[-1])})
        else:
            bodies.append(data.serialize())
            stated.append({"table": table, "bytes": len(bodies[-1]), "weight": weight})
    return record_text({"batch": stated}), bodies, sum_of(bodies)


def _is_of(schema: pa.Schema, declared: pa.Schema) -> bool:
    """Whether columns are in the declared types."""
    return bool(schema.equals(declared)) or schema.types == declared.types


def _in_declared_types(changed: RowBatch, table: Table) -> pa.Table:
    """The rows in the table's own Arrow types; what was given in others is decoded from its codes."""
    if _is_of(changed.data.schema, arrow_schema(table)):
        return changed.data
    return changed.kept(np.arange(len(changed.weights)), changed.weights).data


def weighted_schema(table: Table) -> pa.Schema:
    """A table's columns with that of the weights behind them."""
    return arrow_schema(table).append(pa.field("weight", pa.int64(), nullable=False))


def arrow_bytes(data: pa.Table | pa.RecordBatch, weights: Codes, *, compressed: bool = False) -> pa.Buffer:
    """Rows and their weights as an Arrow stream."""
    schema = data.schema.append(pa.field("weight", pa.int64(), nullable=False))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_COMPRESSED if compressed else _PLAIN) as writer:
        writer.write(type(data).from_arrays([*data.columns, pa.array(weights)], schema=schema))
    return sink.getvalue()


def read_arrow(buffer: Any, table: Table, path: Path) -> tuple[pa.Table, Codes]:
    """What `arrow_bytes` wrote."""
    with _damaged(table, path), pa.ipc.open_stream(pa.py_buffer(buffer)) as reader:
        found = reader.read_all()
    if found.schema.types != weighted_schema(table).types:
        raise DamagedError(f"{path} is damaged: the columns of table {table.name} are not those that were declared")
    columns = found.columns[:-1]
    weights: Codes = found.column(len(columns)).to_numpy()
    return pa.Table.from_arrays(columns, schema=arrow_schema(table)), weights


def _read_rows(buffer: Any, weight: int, table: Table, path: Path) -> tuple[pa.Table, Codes]:
    """A record batch of rows that all have a weight."""
    schema = arrow_schema(table)
    with _damaged(table, path):
        rows = pa.ipc.read_record_batch(pa.py_buffer(buffer), schema)
        rows.validate()
    return pa.Table.from_batches([rows], schema), np.full(rows.num_rows, weight, dtype=np.int64)


@contextmanager
def _damaged(table: Table, path: Path) -> Iterator[None]:
    """What Arrow cannot read is damage."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"{path} is damaged: rows of table {table.name} cannot be read: {error}") from error


@dataclass(slots=True)
class StoredTable:
    """A table, its rows in the snapshot, and all changes of them since then."""

    table: Table
    snapshot: tuple[pa.Table, Codes] | None = None
    pieces: list[tuple[pa.Table, Codes]] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)

    def add(self, rows: pa.Table | list[list[Any]], weights: Any) -> None:
        """Takes rows in. Many are a piece; a few become one together now and then, which takes less memory."""
        if isinstance(rows, pa.Table):
            self.pieces.append((rows, weights))
            return
        self.rows += rows
        self.weights += weights
        if len(self.rows) >= _MANY:
            self._gather()

    def take_snapshot(self) -> tuple[pa.Table, Codes]:
        """The rows of the snapshot, which this then forgets."""
        taken, self.snapshot = self.snapshot, None
        return taken or (arrow_schema(self.table).empty_table(), np.zeros(0, dtype=np.int64))

    def take_changes(self) -> tuple[pa.Table, Codes]:
        """All changes since the snapshot in one, which this then forgets."""
        self._gather()
        pieces, self.pieces = self.pieces, []
        return _joined(pieces)

    def take_rows(self) -> tuple[pa.Table, Codes]:
        """The snapshot and the changes since then in one."""
        return _joined([self.take_snapshot(), self.take_changes()])

    def change_columns(self, table: Table, places: list[int | None], default: Any) -> None:
        """Gives the rows that are there other columns: each an old one by its place, or where there is none a constant.

        What the log says from here on has the new ones.
        """
        self._gather()
        values = convert([[default if place is None else None for place in places]], readers(table))[0]
        schema = arrow_schema(table)

        def changed(piece: tuple[pa.Table, Codes]) -> tuple[pa.Table, Codes]:
            data, weights = piece
            columns = [
                pa.repeat(pa.scalar(value, field.type), data.num_rows) if place is None else data.column(place)
                for place, value, field in zip(places, values, schema, strict=True)
            ]
            return pa.Table.from_arrays(columns, schema=schema), weights

        self.snapshot = None if self.snapshot is None else changed(self.snapshot)
        self.pieces = list(map(changed, self.pieces))
        self.table = table

    def _gather(self) -> None:
        columns = list(zip(*convert(self.rows, readers(self.table)), strict=True)) or [()] * len(self.table.columns)
        types = [arrow_type(declared_type(self.table, column)) for column in self.table.columns]
        arrays = [pa.array(values, type=type_) for values, type_ in zip(columns, types, strict=True)]
        few = pa.Table.from_arrays(arrays, schema=arrow_schema(self.table))
        self.pieces.append((few, np.array(self.weights, dtype=np.int64)))
        self.rows, self.weights = [], []


def _joined(pieces: list[tuple[pa.Table, Codes]]) -> tuple[pa.Table, Codes]:
    return pa.concat_tables(data for data, _ in pieces), np.concatenate([weights for _, weights in pieces])


_CATALOG_RECORDS = (
    *("drop_table", "drop_view", "create_table", "change_columns", "rename_table", "create_view"),
    *("change_plan", "closed"),
)
"""What records say about the catalog. One that replaces something has what goes and what comes, in this order."""


@dataclass(slots=True)
class Contents:
    """What a directory holds: the catalog, rows, and positions of sources.

    `changed` are the tables that the log has changed, and `new_views` the views that were made since the snapshot.
    `lost` are tables of the snapshot that could not be read: what the log says about them is left out. `closed` is
    whether the last record says that the database was closed.
    """

    tables: dict[str, StoredTable] = field(default_factory=dict)
    views: dict[str, StoredView] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    new_views: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    closed: bool = False

    def add(self, record: Record, path: Path) -> None:
        """Takes a record in, or raises and takes nothing of it in."""
        content = record.content
        self.closed = "closed" in content
        try:
            if "batch" in content:
                self._add_batch(content, record.body, path)
            else:
                self._change_catalog(content)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(
                f"{path}: record {record.number} is not in the format of this version of ivme: {error!r}"
            ) from error

    def _add_batch(self, content: Mapping[str, Any], body: memoryview, path: Path) -> None:
        place = 0
        taken: list[tuple[StoredTable, Any, Any]] = []
        for part in content["batch"]:
            size = part.get("bytes", 0)
            if part["table"] not in self.lost:
                stored = self.tables[part["table"]]
                if size:
                    # Arrow reads where the bytes are, and they are not aligned in the log.
                    rows = bytes(body[place : place + size])
                    if "weight" in part:
                        taken.append((stored, *_read_rows(rows, part["weight"], stored.table, path)))
                    else:
                        taken.append((stored, *read_arrow(rows, stored.table, path)))
                else:
                    taken.append((stored, part["rows"], part["weights"]))
            place += size
        for stored, rows, weights in taken:
            self.changed.add(stored.table.name)
            stored.add(rows, weights)
        if "source" in content:
            self.positions[content["source"]] = content["position"]

    def _change_catalog(self, content: Mapping[str, Any]) -> None:
        unknown = set(content) - set(_CATALOG_RECORDS)
        if unknown or not content:
            raise KeyError(*unknown)
        for kind in _CATALOG_RECORDS:
            if kind in content:
                self._take(kind, content[kind])

    def _take(self, kind: str, what: Any) -> None:
        if kind == "create_table":
            self.tables[what["name"]] = StoredTable(read_table(what))
            self.changed.add(what["name"])
        elif kind == "change_columns":
            self._change_columns(**what)
        elif kind == "rename_table":
            self._rename_table(*what)
        elif kind == "create_view":
            self.views[what["name"]] = StoredView(**what)
            self.new_views.add(what["name"])
        elif kind == "change_plan":
            name, plan = what
            self.views[name] = replace(self.views[name], plan=plan)
        elif kind == "drop_table" and what in self.lost:
            self.lost.remove(what)
        elif kind == "drop_table":
            del self.tables[what]
        elif kind == "drop_view":
            del self.views[what]

    def _rename_table(self, name: str, to: str) -> None:
        if name in self.lost:
            self.lost = self.lost - {name} | {to}
        elif name not in self.tables:
            raise KeyError(name)
        for each in tuple(self.tables):
            stored = self.tables.pop(each)
            renamed = with_renamed_table(stored.table, name, to)
            if renamed != stored.table:
                self.changed.add(renamed.name)
            stored.table = renamed
            self.tables[renamed.name] = stored

    def _change_columns(self, table: Mapping[str, Any], places: list[int | None], default: Any) -> None:
        declared = read_table(table)
        if declared.name not in self.lost:
            self.tables[declared.name].change_columns(declared, places, default)
            self.changed.add(declared.name)
