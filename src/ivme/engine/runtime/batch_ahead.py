"""A batch whose record batches become codes on another thread while the batch before it is applied."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

import pyarrow as pa

from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.record_batches import EncodedBatches, EncodedPart, PartAhead
from ivme.engine.runtime.runtime import Runtime

Change = tuple[str, Any, Any]
"""A table, rows, and their weight."""


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

    def take_all(self) -> None:
        """Copies what has not been copied: the giver of the rows may change them from here on."""
        begun, self._begun = self._begun, []
        try:
            self._taken = [_taken(change, part) for change, part in begun]
        except Exception as error:
            self._failure = error

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


def _taken(change: Change, begun: PartAhead | None) -> Change | EncodedPart:
    part = None if begun is None else EncodedBatches.taken(begun)
    table, rows, weight = change
    return (table, _own(rows), _own(weight)) if part is None else part


def _own(rows: Any) -> Any:
    """Rows, or weights, that stay as they are when whoever gave them uses the memory again."""
    if isinstance(rows, list):
        return [copy.copy(row) if isinstance(row, dict | list) or is_dataclass(row) else row for row in rows]
    if isinstance(rows, pa.RecordBatch):
        return _own(pa.Table.from_batches([rows]))
    if isinstance(rows, pa.Table):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(unify_dictionaries=True)
        with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
            stream.write_table(rows)
        return pa.ipc.open_stream(sink.getvalue()).read_all()
    if hasattr(rows, "__array_interface__") or type(rows).__module__.partition(".")[0] in ("pandas", "polars"):
        return copy.deepcopy(rows)
    return rows
