"""Sums whose parts fit and whose whole may not: how large the parts of a view's sums are in one shard.

As long as no shard has a part that is larger than its share of what the type holds, every sum fits, and nothing has to
be added up. A view with a larger part is *large*: what a step changes in it, the driver adds up before it happens.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ivme.query.model import Aggregate
from ivme.query.sql_values import DECIMALS
from ivme.query.totals import total_of
from ivme.query.types import Type
from ivme.shards.sharding import Sharding, needs_merging

_MARGIN = 0.999
"""For the rounding of quotients."""

WatchedSum = tuple[str, Type, int]
"""The partial column of a sum, the type of its values, and how many of their smallest units the sum's type holds."""


def watched_sums(made: Sharding | None) -> tuple[WatchedSum, ...]:
    """The sums of a view that may not fit; none if its groups are whole in one shard, or only requests show them."""
    if made is None or not made.has_partial_rows or not needs_merging(made) or made.query.input:
        return ()
    found = []
    for column in made.partial:
        source = column.source
        if isinstance(source, Aggregate) and source.function == "exact_sum":
            type_ = made.typed.types[str(source.variable)]
            if type_.kind in ("int", "decimal"):
                found.append((column.name, type_, 2**63 - 1 if type_.kind == "int" else 10**DECIMALS.prec))
    return tuple(found)


def largest_part(sums: tuple[WatchedSum, ...], rows: pa.Table) -> float:
    """The largest part of a sum among partial rows, as a fraction of what its type holds."""
    return max((_largest(rows.column(name), type_) / limit for name, type_, limit in sums), default=0.0)


def _largest(values: pa.ChunkedArray, type_: Type) -> int:
    if pa.types.is_decimal(values.type):
        most = pc.max(pc.abs(values)).as_py()
        return 0 if most is None else abs(int(total_of(most, type_)))
    return max((abs(int(total_of(part, type_))) for part in values.to_pylist() if part is not None), default=0)


def is_large(largest: float, shards: int) -> bool:
    """Whether parts of so many shards may add up to what does not fit."""
    return largest * shards > _MARGIN
