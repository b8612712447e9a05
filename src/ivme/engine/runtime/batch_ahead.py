"""A batch whose record batches become codes on another thread while the batch before it is applied."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.record_batches import MANY_ROWS, EncodedBatches, EncodedPart, PartAhead
from ivme.engine.runtime.runtime import Runtime

Change = tuple[str, Any, Any]
"""A table, rows, and their weight."""

_PLAIN = frozenset({bool, int, float, str, bytes, Decimal, date, datetime, type(None)})
"""Values that do not change."""


class BatchAhead(Batch):
    """Changes that are given at once, each a table, rows and a weight; what is wrong with them is raised by `make_all`.

    Codes that were taken back in between, tables and views that came or went, and whatever does not pay on another
    thread, are left to what a batch does with them anyway.
    """

    def __init__(self, runtime: Runtime, changes: Sequence[Change]) -> None:
        super().__init__(runtime)
        self._begun: list[tuple[Change, PartAhead | None]] = [(change, self._begin(*change)) for change in changes]
        self._taken: list[Change | EncodedPart] = []
        self._failure: Exception | None = None

    def _begin(self, table: str, rows: Any, weight: Any) -> PartAhead | None:
        return self._encoded.begin(table, rows, weight) if type(rows) in (pa.RecordBatch, pa.Table) else None

    def take_all(self) -> bool:
        """Copies what has not been copied: the giver of the rows may change them from here on.

        False if something is of a kind that is not copied: it has to be applied before its giver is asked for more.
        """
        begun, self._begun = self._begun, []
        try:
            taken = [_taken(change, part) for change, part in begun]
        except Exception as error:
            self._failure = error
            return True
        self._taken = [change if part is None else part for (change, _), part in zip(begun, taken, strict=True)]
        return all(part is not None for part in taken)

    def make_all(self) -> None:
        """Applies all changes, or none."""
        with self:
            if self._failure is not None:
                raise self._failure
            for each in (*self._taken, *(change for change, _ in self._begun)):
                if not isinstance(each, EncodedPart):
                    self._add_change(*each)
                elif self._few or self._parts or not self._encoded.add(each):
                    self._add_change(each.table, each.data, each.weight)

    def _add_change(self, table: str, rows: Any, weight: Any) -> None:
        if type(weight) is int and weight == 1:
            self.insert(table, rows)
        elif type(weight) is int and weight == -1:
            self.delete(table, rows)
        else:
            self.apply(table, rows, weight)

    def _forget(self) -> None:
        super()._forget()
        self._begun, self._taken = [], []


def _taken(change: Change, begun: PartAhead | None) -> Change | EncodedPart | None:
    """A change that stays as it is whatever its giver does; None if that cannot be told."""
    part = None if begun is None else EncodedBatches.taken(begun)
    if part is not None:
        return part
    table, rows, weight = change
    own = _own(rows)
    if own is None or type(weight) is not int:
        return None
    return table, own, weight


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
