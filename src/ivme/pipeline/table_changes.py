"""Changes of one table as rows and weights: what every source of changes is turned into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Weights = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table: rows, and how often each came or went."""

    rows: pa.Table
    weights: Weights

    @property
    def size(self) -> int:
        return int(self.rows.num_rows)

    def taken(self, places: Any) -> TableChanges:
        """Some of the changes, by their places."""
        return TableChanges(self.rows.take(pa.array(places, pa.int64())), self.weights[places])


def delta_of(rows: pa.Table, weights: pa.Array) -> TableChanges:
    return TableChanges(rows, weights.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))


def together(parts: Sequence[tuple[pa.Table, int]]) -> TableChanges:
    """Rows that come or go, each part with one weight."""
    weights = [np.full(rows.num_rows, weight, np.int64) for rows, weight in parts]
    return TableChanges(pa.concat_tables([rows for rows, _ in parts]), np.concatenate(weights))
