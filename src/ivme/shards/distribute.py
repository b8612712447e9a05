"""From rows of a table to the parts for each shard: its own engine's, and those of every view that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog, ViewEntry
from ivme.shards.merge import WEIGHT
from ivme.shards.parts import EngineKey, Part, PartFile, PartWriter
from ivme.shards.routing import Numbers, split_rows
from ivme.shards.sharding import sharding

Placed = tuple[int, Part]
"""A part, and the shard that it is for."""


def place_rows(catalog: ShardCatalog, shards: int, table: Table, rows: pa.Table) -> Iterator[Placed]:
    """The parts of a batch's rows, which have their weights as last column; linear in rows and copies."""
    yield from place_in_table(shards, table, rows)
    for entry in catalog.views:
        yield from place_in_view(catalog, entry, table, rows)


def place_in_table(shards: int, table: Table, rows: pa.Table) -> Iterator[Placed]:
    """Tables are spread by primary key, so that a shard sees all rows of a key, or else by whole rows."""
    named = {name.lower() for name in table.primary_key or table.column_names}
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


def write_placed(root: Path, folder: str, writer: str, placed: Iterable[Placed]) -> list[PartFile]:
    """Writes parts as they come, one file for each shard that has some; `writer` keeps several writers apart."""
    writers: dict[int, PartWriter] = {}
    try:
        for shard, part in placed:
            if shard not in writers:
                writers[shard] = PartWriter(root, f"{folder}/{shard}-{writer}", shard)
            writers[shard].write(part)
    except BaseException:  # a key that cannot be computed, say
        for each in writers.values():
            each.abandon()
        raise
    return [open_.close() for open_ in writers.values()]


def with_weights(data: pa.Table, weights: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    """Rows with their weights as last column."""
    return data.append_column(WEIGHT, pa.array(weights, pa.int64()))
