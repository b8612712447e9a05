"""Changes that the database refuses, found among those that it takes, so that one bad row stops no other.

Rows with one primary key belong together, and without a key equal rows do: what the table says to a batch does not
depend on how such groups are mixed. So a batch that is refused is tried in halves, without changing anything, until
the groups to blame are found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.errors import DataError
from ivme.pipeline.keyed_events import KeyedEvents
from ivme.pipeline.model import RAW, WEIGHT
from ivme.pipeline.state_database import StateDatabase
from ivme.pipeline.table_changes import TableChanges
from ivme.query.model import Table

_MOST_TRIALS = 1_000
"""After so many trials, what is refused together is set aside together."""

Positions = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Search:
    database: StateDatabase
    table: str
    changes: TableChanges
    trials: int = 0
    reasons: dict[int, str] = field(default_factory=dict)

    def blame(self, groups: list[Positions]) -> None:
        """Notes the reasons for which rows of some groups are refused."""
        if not groups:
            return
        error = self._refusal(np.sort(np.concatenate(groups)))
        if error is None:
            return
        if len(groups) == 1 or self.trials > _MOST_TRIALS:
            self.reasons |= {int(place): str(error) for group in groups for place in group}
            return
        middle = len(groups) // 2
        self.blame(groups[:middle])
        self.blame(groups[middle:])

    def _refusal(self, places: Positions) -> DataError | None:
        self.trials += 1
        part = self.changes.taken(places)
        try:
            with self.database.batch() as batch:
                batch.apply(self.table, part.rows, part.weights)
                batch.check()
                batch.discard()
        except DataError as error:
            return error
        return None


def refused_places(database: StateDatabase, table: Table, changes: TableChanges) -> dict[int, str]:
    """The places of changes that the database does not take, with the reasons."""
    search = _Search(database, table.name, changes)
    keys = _keys(table, changes.rows)
    groups: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    search.blame([np.array(places, dtype=np.int64) for places in groups.values()])
    return search.reasons


def refused_events(database: StateDatabase, table: Table, changes: TableChanges, events: KeyedEvents) -> dict[int, str]:
    """The places of the events whose keys the database does not take, by what is to change for them."""
    reasons = refused_places(database, table, changes)
    keys = _keys(table, changes.rows)
    bad = {keys[place]: reason for place, reason in reasons.items()}
    return {place: bad[key] for place, key in enumerate(_keys(table, events.rows)) if key in bad}


def without_letters(changes: TableChanges, letters: pa.Table) -> TableChanges:
    """The changes without those that were set aside; letters that were never rows of the table are not part of them."""
    if RAW in letters.column_names:
        letters = letters.filter(letters.column(RAW).is_null())
    if not letters.num_rows:
        return changes
    rows = letters.select(changes.rows.column_names).cast(changes.rows.schema)
    weights = letters.column(WEIGHT).to_numpy().astype(np.int64)
    return TableChanges(pa.concat_tables([changes.rows, rows]), np.concatenate([changes.weights, -weights]))


def _keys(table: Table, rows: pa.Table) -> list[str]:
    """What says which rows belong together."""
    columns: list[list[Any]] = [rows.column(name).to_pylist() for name in table.primary_key or table.column_names]
    return [repr(key) for key in zip(*columns, strict=True)]
