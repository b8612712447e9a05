"""The changes of a view as rows to merge by key: those that take the place of others, and those that go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.errors import DataError
from ivme.pipeline.keyed_events import greatest_by_key
from ivme.pipeline.model import WEIGHT

GONE = "ivme_gone"
"""The column of rows to merge that says whether the row of a key goes."""


def merged_rows(changes: pa.Table, key: Sequence[str], what: str) -> pa.Table:
    """The new row of each key that changes, or the old one where there is none any more; O(n) for n changes.

    Two new rows with one key are an error that names them: the columns are not a key.
    """
    weights = changes.column(WEIGHT).to_numpy()
    rows = changes.drop_columns([WEIGHT])
    come = weights > 0
    ranks = np.empty(len(weights), np.int64)
    ranks[np.argsort(come, kind="stable")] = np.arange(len(weights))
    places = np.sort(greatest_by_key(rows.select(list(key)), ranks))
    if come[places].sum() != weights[come].sum():
        raise DataError(f"{what}: {_repeated(rows.filter(pa.array(come)), key)}")
    return rows.take(pa.array(places)).append_column(GONE, pa.array(~come[places]))


def _repeated(rows: pa.Table, key: Sequence[str]) -> str:
    counted = rows.select(list(key)).group_by(list(key)).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted.column("count_all"), 1)).drop_columns(["count_all"])
    shown = (twice if twice.num_rows else rows.select(list(key))).slice(0, 1).to_pylist()[0]
    return f"two rows have the key {shown}; {', '.join(key)} is not a key of the view"


def unmatched(merged: pa.Table, changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """The keys of rows that come where none goes: they must not be in the target yet."""
    gone = changes.filter(pc.less(changes.column(WEIGHT), 0)).select(list(key))
    came = merged.filter(pc.invert(merged.column(GONE))).select(list(key))
    both = pa.concat_tables([came, gone])
    ranks = np.arange(both.num_rows)
    places = greatest_by_key(both, ranks)
    return came.take(pa.array(np.sort(places[places < came.num_rows])))
