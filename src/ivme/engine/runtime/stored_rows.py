"""The rows of a table, whose columns are copied out of the kernel when they are first read."""

from __future__ import annotations

from ivme.engine.backend import Backend, Codes
from ivme.engine.ingest.row_batch import Layout, RowBatch


class StoredRows(RowBatch):
    """All rows of a table, as long as nothing changes it: only under the lock. Equal ones may come more than once."""

    __slots__ = ("_backend", "_name")

    def __init__(self, layout: Layout, backend: Backend, name: str) -> None:
        super().__init__(layout, backend.weights(name))
        self._backend = backend
        self._name = name

    def code(self, position: int) -> Codes:
        if self._codes[position] is None:
            self._codes[position] = self._backend.column(self._name, position)
        return super().code(position)
