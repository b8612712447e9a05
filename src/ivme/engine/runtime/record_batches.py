"""Record batches of which only the kernel has to know: encoded as they are added, then applied in one call.

Whatever is out of the ordinary is left to the batch path, which takes the codes along.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ivme.engine.ingest.row_batch import RowBatch

if TYPE_CHECKING:
    from ivme._kernel import EncodedRows, RowsAhead
    from ivme.engine.runtime.runtime import Runtime
    from ivme.query.model import Table

MANY_ROWS = 1000
"""For so many rows it pays to find their way through the kernel before the first of them; for fewer, behind them."""


class EncodedPart(NamedTuple):
    """A record batch as codes of the columns that its table had, and its rows' weight."""

    table: str
    rows: EncodedRows
    given: pa.RecordBatch | CopiedRows
    weight: int
    declared: Table

    @property
    def data(self) -> pa.RecordBatch:
        """The record batch."""
        return pa.record_batch(self.given) if isinstance(self.given, CopiedRows) else self.given


@dataclass(slots=True)  # a frozen one takes three times as long to make
class CopiedRows:
    """The copy of a record batch, which Arrow is given only if it is needed."""

    rows: RowsAhead
    part: int
    schema: pa.Schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self.schema.__arrow_c_schema__(), self.rows.data(self.part)


def open_path(runtime: Runtime, name: str, rows: int) -> None:
    """Many rows that are the first of a table are taken as all others are."""
    if rows >= MANY_ROWS:
        with runtime.catalog.lock:
            if name in runtime.catalog.tables:
                runtime.single_row_path(name)


class EncodedBatches:
    """The record batches of a batch that the kernel may take, each of another table."""

    def __init__(self, runtime: Runtime, parts: list[EncodedPart] | None = None, sweeps: int | None = None) -> None:
        """So many sweeps had been when the parts were encoded."""
        self._runtime = runtime
        self._catalog = runtime.catalog
        self.sweeps = runtime.domains.sweeps if sweeps is None else sweeps
        self.parts: list[EncodedPart] = [] if parts is None else parts

    def copy(self) -> EncodedBatches:
        return EncodedBatches(self._runtime, list(self.parts), self.sweeps)

    def take(self, name: str, data: pa.RecordBatch | pa.Table, weight: Any) -> bool:
        """Whether a record batch, or a table of one, is among them now."""
        gate, batch = self._catalog.row_gate, self._fitting(name, data, weight)
        state = self._catalog.tables.get(name) if type(name) is str else None
        if gate is None or batch is None or state is None:
            return False
        declared = state.table  # before the codes: they are those of this table, or of a later one
        rows = gate.encode(name, batch.__arrow_c_array__(), weight)
        if rows is not None:
            self.parts.append(EncodedPart(name, rows, batch, weight, declared))
        return rows is not None

    def _has(self, name: str) -> bool:
        return bool(self.parts) and any(part.table == name for part in self.parts)

    def _fitting(self, name: str, data: pa.RecordBatch | pa.Table, weight: Any) -> pa.RecordBatch | None:
        """The one record batch that is given, if the kernel may take it."""
        if type(weight) is not int or abs(weight) != 1 or self._has(name):
            return None
        batches = data.to_batches() if type(data) is pa.Table else [data]
        if len(batches) != 1:
            return None
        (batch,) = batches
        if name not in self._catalog.single_rows:
            open_path(self._runtime, name, batch.num_rows)
        try:
            batch.validate()
        except pa.ArrowInvalid:
            return None
        return batch

    def try_apply(self) -> bool:
        """Applies them, all or none, as durably as was requested; False if the batch path has to.

        It has to if codes may be others' by now.
        """
        gate = self._catalog.row_gate
        if gate is None or self.sweeps != self._catalog.domains.sweeps:
            return False
        journal, record = self._catalog.journal, None
        if journal is not None:
            record = journal.record([(part.table, part.data, part.weight) for part in self.parts])
            if record is None:
                return False
        if not gate.apply_encoded([(part.rows, part.weight) for part in self.parts], record):
            return False
        if journal is not None:
            journal.wait_taken()
        return True

    def row_batches(self) -> Iterator[tuple[EncodedPart, RowBatch | None]]:
        """What the batch path takes in their place; they are spent then. None if a table has other columns by now."""
        for part in self.parts:
            state = self._catalog.tables.get(part.table)
            if state is None or (state.table is not part.declared and state.table != part.declared):
                yield part, None
                continue
            weights = np.full(len(part.rows), part.weight, dtype=np.int64)
            layout = self._catalog.layout(part.table)
            yield part, RowBatch(layout, weights, part.data, list(part.rows.columns()))
