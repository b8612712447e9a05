"""Rows of a view that does not show all that it groups by: groups may look the same, and are one row then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.nested_values import comparable, restored

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
    """The same of Arrow batches, all in Arrow: one batch with each row once."""
    parts = list(batches)
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in parts)])
    rows = pa.Table.from_batches([batch for batch, _ in parts], schema=schema)
    names = [f"c{i}" for i in range(rows.num_columns)]
    keyed = pa.table([*map(_comparable, rows.columns), pa.array(counts)], [*names, "count"])
    total = keyed.group_by(names, use_threads=False).aggregate([("count", "sum")])
    present = total.filter(pc.not_equal(total["count_sum"], 0)).combine_chunks()
    arrays = [_whole(restored(present.column(n), f.type), f.type) for n, f in zip(names, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema), present.column("count_sum").to_numpy()


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats that are equal have the same bits: one zero, and one NaN. Arrow groups by bits, and no arrays."""
    if not pa.types.is_floating(column.type):
        return comparable(column)
    return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), pc.add(column, 0.0))


def _whole(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type_)
