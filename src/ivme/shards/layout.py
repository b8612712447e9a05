"""A shard's rows for another number of shards."""

from __future__ import annotations

from itertools import chain

from ivme.shards.catalog import ShardCatalog
from ivme.shards.distribute import packed_by_shard, place_rows
from ivme.shards.exchange import placed_changes, readers
from ivme.shards.shard import Shard


def write_layout(shard: Shard, catalog: ShardCatalog, shards: int, epoch: int) -> tuple[dict[str, str], int]:
    """Writes a shard's rows for a new layout: the files by new shard, and how many rows they have.

    The rows are those of tables, of which each is in one shard, and of views that feed others.
    """
    rows_of = shard.table_rows
    tables = (each for t in catalog.tables for each in place_rows(catalog, shards, t, rows_of(t.name)))
    fed = ((name, shard.relation_rows(name)) for name in readers(catalog))
    placed = chain(tables, placed_changes(catalog, fed))
    files, rows = {}, 0
    for new, parts in packed_by_shard(placed).items():
        owner = f"{new}.{shard.number}"
        files[owner] = shard.checkpoint.write_step(shard.step + 1, owner, epoch, parts)
        rows += sum(part.rows for part in parts)
    return files, rows
