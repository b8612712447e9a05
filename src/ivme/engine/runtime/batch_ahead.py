"""A batch whose record batches become codes on another thread while the batch before it is applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.record_batches import PartAhead
from ivme.engine.runtime.runtime import Runtime


class BatchAhead(Batch):
    """Changes that are given at once, each a table, rows and a weight; what is wrong with them is raised by `make_all`.

    Codes that were taken back in between, tables and views that came or went, and whatever does not pay on another
    thread, are left to what a batch does with them anyway.
    """

    def __init__(self, runtime: Runtime, changes: Sequence[tuple[str, Any, Any]]) -> None:
        super().__init__(runtime)
        self._begun = [(change, self._begin(*change)) for change in changes]

    def _begin(self, table: str, rows: Any, weight: Any) -> PartAhead | None:
        return self._encoded.begin(table, rows, weight) if type(rows) in (pa.RecordBatch, pa.Table) else None

    def make_all(self) -> None:
        """Applies all changes, or none."""
        with self:
            for (table, rows, weight), part in self._begun:
                if part is None or self._few or self._parts or not self._encoded.finish(part):
                    self._add_change(table, rows, weight)

    def _add_change(self, table: str, rows: Any, weight: Any) -> None:
        if type(weight) is int and weight == 1:
            self.insert(table, rows)
        elif type(weight) is int and weight == -1:
            self.delete(table, rows)
        else:
            self.apply(table, rows, weight)

    def _forget(self) -> None:
        super()._forget()
        self._begun = []
