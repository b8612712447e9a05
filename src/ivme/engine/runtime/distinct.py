"""Rows of a view that does not show all that it groups by: groups may look the same, and are one row then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

Row = tuple[Any, ...]
Weighted = tuple[pa.RecordBatch, np.ndarray[Any, Any]]


def added_up(items: Iterable[tuple[Row, int]]) -> dict[Row, int]:
    """Each row once, with all its multiplicity.

    >>> added_up([((1,), 2), ((2,), 1), ((1,), 3)])
    {(1,): 5, (2,): 1}
    """
    total: dict[Row, int] = {}
    for row, multiplicity in items:
        total[row] = total.get(row, 0) + multiplicity
    return {row: multiplicity for row, multiplicity in total.items() if multiplicity}


def one_each(batches: Iterable[Weighted], schema: pa.Schema) -> Weighted:
    """The same of Arrow batches: one batch with each row once."""
    items: list[tuple[Row, int]] = []
    for batch, counts in batches:
        columns = [column.to_pylist() for column in batch.columns]
        items += zip(zip(*columns, strict=True), counts.tolist(), strict=True)
    total = added_up(items)
    arrays = [pa.array([row[i] for row in total], type=field.type) for i, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema), np.array(list(total.values()), dtype=np.int64)
