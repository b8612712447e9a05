"""From rows of a table to the parts for each shard: its own engine's, and those of every view that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog, ViewEntry
from ivme.shards.merge import WEIGHT
from ivme.shards.parts import EngineKey, PackedPart, Part
from ivme.shards.routing import Numbers, split_rows
from ivme.shards.sharding import sharding

Placed = tuple[int, Part]
"""A part, and the shard that it is for."""


def place_rows(catalog: ShardCatalog, shards: int, table: Table, rows: pa.Table) -> Iterator[Placed]:
    """The parts of a batch's rows, which have their weights as last column; linear in rows and copies."""
    yield from place_in_table(shards, table, rows, catalog.spread_columns(table))
    for entry in catalog.views:
        yield from place_in_view(catalog, entry, table, rows)


def place_in_table(shards: int, table: Table, rows: pa.Table, by: Iterable[str] = ()) -> Iterator[Placed]:
    """Tables are spread by primary key, so that a shard sees all rows of a key, or else by whole rows.

    `by` says by which columns, if some were added after the first rows were there.
    """
    named = {name.lower() for name in by or table.primary_key or table.column_names}
    columns = [rows.column(name) for name in table.column_names if name.lower() in named]
    for shard, numbers in split_rows(shards, columns, rows.num_rows):
        yield shard, Part(EngineKey(table.name), table.name, _chosen(rows, numbers))


def place_in_view(catalog: ShardCatalog, entry: ViewEntry, table: Table, rows: pa.Table) -> Iterator[Placed]:
    """The parts for the engines of one view."""
    routed = sharding(entry, catalog.tables).route(table.name, rows)
    for pattern, shard, name, numbers in routed:
        yield shard, Part(EngineKey(entry.name, entry.generation, pattern), name, _chosen(rows, numbers))


def _chosen(rows: pa.Table, numbers: Numbers) -> pa.Table:
    return rows if len(numbers) == rows.num_rows else rows.take(pa.array(numbers))


def packed_by_shard(placed: Iterable[Placed]) -> dict[int, list[PackedPart]]:
    """Parts in their bytes, by the shards that they are for."""
    found: dict[int, list[PackedPart]] = {}
    for shard, part in placed:
        found.setdefault(shard, []).append(PackedPart.of(part))
    return found


def with_weights(data: pa.Table, weights: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    """Rows with their weights as last column."""
    return data.append_column(WEIGHT, pa.array(weights, pa.int64()))
