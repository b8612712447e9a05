"""A batch whose record batches become codes on another thread while the batch before it is applied."""

from __future__ import annotations

import copy
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.record_batches import MANY_ROWS, CopiedRows, EncodedBatches, EncodedPart, open_path
from ivme.engine.runtime.runtime import Runtime
from ivme.errors import DataError

if TYPE_CHECKING:
    from ivme._kernel import RowsAhead
    from ivme.engine.runtime.view_state import TableState

Change = tuple[str, Any, Any]
"""A table, rows, and their weight."""

_PLAIN = frozenset({bool, int, float, str, bytes, Decimal, date, datetime, type(None)})
"""Values that do not change."""


class BatchAhead:
    """Changes that are given at once, each a table, rows and a weight; what is wrong with them is raised by `make_all`.

    Record batches that the kernel may take are encoded on another thread. All else, and what was encoded for tables
    and views that were changed meanwhile, is left to a batch as others make them.
    """

    __slots__ = ("_changes", "_failure", "_rows", "_runtime", "_states", "_sweeps")

    def __init__(self, runtime: Runtime, changes: list[Change]) -> None:
        self._runtime, self._changes = runtime, changes
        self._sweeps = runtime.domains.sweeps
        self._failure: Exception | None = None
        self._states = [(state, state.table) if state is not None else None for state in self._tables()]
        self._rows = self._begin()

    def _tables(self) -> list[TableState | None]:
        return [self._runtime.catalog.tables.get(name) for name, _, _ in self._changes]

    def _begin(self) -> RowsAhead | None:
        """The codes of record batches, which become of their tables as these are now, or later."""
        catalog = self._runtime.catalog
        if catalog.row_gate is None or catalog.memory_limit is not None:
            return None
        for number, (name, data, weight) in enumerate(self._changes):
            if type(data) is pa.Table:
                batches = data.to_batches()
                if len(batches) != 1:
                    return None
                data = batches[0]
                self._changes[number] = (name, data, weight)
            if type(data) is not pa.RecordBatch or self._states[number] is None:
                return None
            if name not in catalog.single_rows:
                open_path(self._runtime, name, data.num_rows)
        return catalog.row_gate.encode_ahead(self._changes)

    def take_all(self) -> bool:
        """Copies what has not been copied: the giver of the rows may change them from here on.

        False if something is of a kind that is not copied: it has to be applied before its giver is asked for more.
        """
        try:
            if self._rows is not None:
                if self._rows.take():
                    return True
                self._rows = None
            for number, (table, rows, weight) in enumerate(self._changes):
                own = _own(rows)
                if own is None or type(weight) is not int:
                    return False
                self._changes[number] = (table, own, weight)
        except Exception as error:
            self._failure = error
        return True

    def make_all(self) -> None:
        """Applies all changes, or none."""
        if self._failure is not None:
            raise self._failure
        if self._rows is not None:
            self._check_tables()
            encoded = EncodedBatches(self._runtime, self._parts(self._rows), self._sweeps)
            with Batch(self._runtime, encoded=encoded):
                return
        with Batch(self._runtime) as batch:
            for table, rows, weight in self._changes:
                if type(weight) is int and abs(weight) == 1:
                    (batch.insert if weight > 0 else batch.delete)(table, rows)
                else:
                    batch.apply(table, rows, weight)

    def _check_tables(self) -> None:
        """Of a table that keeps no rows, only columns that its views read were taken: they are for no other table."""
        for begun, now in zip(self._states, self._tables(), strict=True):
            if begun is not None and begun[0] is not now and not begun[1].keep_rows:
                raise DataError(
                    f"table {begun[1].name} was dropped while a batch of its rows was taken ahead; give the batch again"
                )

    def _parts(self, rows: RowsAhead) -> list[EncodedPart]:
        return [
            EncodedPart(table, encoded, CopiedRows(rows, number, data.schema), weight, begun[1])
            for number, (encoded, (table, data, weight), begun) in enumerate(
                zip(rows.rows(), self._changes, self._states, strict=True)
            )
            if begun is not None
        ]


def _own(rows: Any) -> Any:
    """A copy of Arrow data, or of a few rows of plain values in a list; None of all else.

    Iterators read what they stand for later, and many kinds of rows share memory with something else.
    """
    if isinstance(rows, list) and len(rows) <= MANY_ROWS:
        own = [_own_row(row) for row in rows]
        return None if None in own else own
    if isinstance(rows, pa.RecordBatch):
        return _own(pa.Table.from_batches([rows]))
    if isinstance(rows, pa.Table):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(unify_dictionaries=True)
        try:
            with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
                stream.write_table(rows)
        except pa.ArrowException:  # what is wrong with the rows is said when they are applied
            return None
        return pa.ipc.open_stream(sink.getvalue()).read_all()
    return None


def _own_row(row: Any) -> Any:
    if type(row) not in (tuple, list, dict):
        return None
    values = row.values() if type(row) is dict else row
    return copy.copy(row) if all(type(value) in _PLAIN for value in values) else None
