"""The tables that a source has in the database: its own, and those that ivme keeps beside it."""

from __future__ import annotations

from ivme.pipeline.history import history_table
from ivme.pipeline.keyed_events import sequence_table
from ivme.pipeline.model import Pipeline, TableSource
from ivme.pipeline.transactions import held_table
from ivme.query.model import Table


def tables_of(pipeline: Pipeline, source: TableSource) -> list[Table]:
    """The table, that of its sequences, that of all its events, and that of events that wait."""
    found, changes = [source.table], source.changes
    if changes is not None and changes.sequence_types:
        found.append(sequence_table(source.table, changes.sequence_types))
        if changes.history is not None:
            found.append(history_table(source.table, changes.sequence_types[0]))
    if source in pipeline.together:
        found.append(held_table(source))
    return found
