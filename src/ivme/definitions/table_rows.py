"""A table of a database to read: its rows as they are, in Python, Arrow and pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ivme.definitions.readable_table import ReadableTable
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.table_change import rows_with_keys
from ivme.errors import SchemaError
from ivme.query.model import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from ivme.definitions.definitions import Definitions


class TableRows(ReadableTable):
    """The rows of a table, as they are at the moment of each read."""

    def __init__(self, definitions: Definitions, name: str) -> None:
        self._definitions = definitions
        self.name = definitions.table(name).name

    @property
    def declared(self) -> Table:
        """The table's columns with their types, its key and its options."""
        return self._definitions.table(self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.declared.column_names

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; a row of multiplicity m occurs m times."""
        self._definitions.check_open()
        with self._definitions.runtime.lock:
            schema = arrow_schema(self.declared)
            data, counts = self._definitions.runtime.reader.contents(self.name)
        if not (counts == 1).all():
            data = data.take(np.repeat(np.arange(len(counts)), np.maximum(counts, 0)))
        return data.cast(schema)

    def of_keys(self, rows: pa.Table) -> pa.Table:
        """The rows that have the primary keys of some other rows, which have all columns; O(1) for each."""
        self._definitions.check_open()
        runtime = self._definitions.runtime
        with runtime.lock:
            state = runtime.catalog.tables[self.name]
            if not state.table.key_positions:
                raise SchemaError(f"table {self.name} has no primary key to find rows by; declare one")
            given = RowBatch(runtime.catalog.layout(self.name), np.ones(rows.num_rows, np.int64), rows)
            return rows_with_keys(runtime.catalog, state, given).data

    def __repr__(self) -> str:
        columns = ", ".join(f"{column.name} {column.type}" for column in self.declared.columns)
        return f"<Table {self.name}: {columns}>"
