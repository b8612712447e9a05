"""The change of a view's rows in one batch, as the view's followers get it: decoded when it is looked at."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import repeat
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.nested_values import python_values

Row = tuple[Any, ...]


class WeightedRows(Protocol):
    """Rows and their weights, by column and one by one; `RowBatch` has them as codes."""

    weights: Codes

    @property
    def data(self) -> pa.Table:
        """The columns in Arrow."""

    def rows(self) -> Iterable[Row]:
        """The rows as Python values."""


class ArrowRows:
    """Rows that are there in Arrow."""

    def __init__(self, data: pa.Table, weights: Codes) -> None:
        self.data = data
        self.weights = weights

    def rows(self) -> Iterable[Row]:
        columns = [python_values(column) for column in self.data.columns]
        return zip(*columns, strict=True) if columns else repeat((), len(self.weights))


class Delta(Mapping[Row, int]):
    """By how much the multiplicity of each row changed: a mapping, which is also there as columns.

    The columns are those of a row, behind the values of parameters. Taken by `to_arrow` and `weights`
    they cost no Python object for each value.
    """

    __slots__ = ("_changed", "_rows")

    def __init__(self, changed: WeightedRows) -> None:
        self._changed = changed
        self._rows: dict[Row, int] | None = None

    @property
    def weights(self) -> Codes:
        """The changes of multiplicities, in the order of the rows."""
        return self._changed.weights

    def to_arrow(self) -> pa.Table:
        """The rows that changed, each once, in the order of `weights`."""
        return self._changed.data

    def __len__(self) -> int:
        return len(self._changed.weights)

    def __getitem__(self, row: Row) -> int:
        return self._decoded()[row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._decoded())

    def items(self) -> ItemsView[Row, int]:
        return self._decoded().items()

    def values(self) -> ValuesView[int]:
        return self._decoded().values()

    def __repr__(self) -> str:
        return repr(self._decoded())

    def _decoded(self) -> dict[Row, int]:
        if self._rows is None:
            self._rows = dict(zip(self._changed.rows(), self._changed.weights.tolist(), strict=True))
        return self._rows


def delta_table(deltas: Iterable[Delta], schema: pa.Schema, weight: str) -> pa.Table:
    """Deltas as one table of this schema, with their weights as last column."""
    listed = list(deltas)
    rows = pa.concat_tables([schema.empty_table(), *(delta.to_arrow().cast(schema) for delta in listed)])
    weights = np.concatenate([np.empty(0, np.int64), *(delta.weights for delta in listed)])
    return rows.append_column(weight, pa.array(weights)) if len(schema) else pa.table({weight: weights})
