"""How many entries the engines of shards have: of a view, and of a table."""

from __future__ import annotations

from collections.abc import Mapping

from ivme.query.model import Table
from ivme.shards.catalog import ViewEntry
from ivme.shards.parts import EngineKey

Entries = Mapping[int, Mapping[str, int]]
"""By shard, how many entries each engine has."""


def view_loads(entries: Entries, entry: ViewEntry) -> dict[int, int]:
    """How many entries each shard has for a view."""
    start = f"view {entry.name}/{entry.generation}/"
    return {s: sum(size for label, size in found.items() if label.startswith(start)) for s, found in entries.items()}


def table_size(entries: Entries, table: Table) -> int:
    """How many entries a table has in all shards."""
    return sum(found.get(str(EngineKey(table.name)), 0) for found in entries.values())
