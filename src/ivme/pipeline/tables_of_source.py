"""The tables that a source has in the database: its own, and those that ivme keeps beside it."""

from __future__ import annotations

from ivme.pipeline.history import history_table
from ivme.pipeline.keyed_events import sequence_table
from ivme.pipeline.model import TableSource
from ivme.query.model import Table


def tables_of(source: TableSource) -> list[Table]:
    """The table, that of its sequences, and that of all its events."""
    changes = source.changes
    if changes is None or not changes.sequence_types:
        return [source.table]
    found = [source.table, sequence_table(source.table, changes.sequence_types)]
    return [*found, history_table(source.table, changes.sequence_types[0])] if changes.history else found
