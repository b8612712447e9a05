"""Changes that the database refuses, found among those that it takes, so that one bad row stops no other.

Rows with one primary key belong together, and without a key equal rows do: what the table says to a batch does not
depend on how such groups are mixed. So a batch that is refused is tried in halves, without changing anything, until
the groups to blame are found.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.database import Database
from ivme.errors import DataError
from ivme.pipeline.model import WEIGHT
from ivme.query.model import Table
from ivme.spark.pipeline.source import TableChanges

REASON = "ivme_reason"
"""The column of changes that were set aside which says why."""

_MOST_TRIALS = 1_000
"""After so many trials, what is refused together is set aside together."""

Positions = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Search:
    database: Database
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
        part = _taken(self.changes, places)
        try:
            with self.database.batch() as batch:
                batch.apply(self.table, part.rows, part.weights)
                batch.check()
                batch.discard()
        except DataError as error:
            return error
        return None


def separated(database: Database, table: Table, changes: TableChanges) -> tuple[TableChanges, pa.Table]:
    """The changes that the database takes, and the others, with their weights and the reasons."""
    search = _Search(database, table.name, changes)
    search.blame(_groups(table, changes.rows))
    bad = np.array(sorted(search.reasons), dtype=np.int64)
    good = np.setdiff1d(np.arange(changes.size), bad)
    aside = _taken(changes, bad)
    reasons = pa.array([search.reasons[place] for place in bad.tolist()], pa.string())
    letters = aside.rows.append_column(WEIGHT, pa.array(aside.weights)).append_column(REASON, reasons)
    return _taken(changes, good), letters


def without_letters(changes: TableChanges, letters: pa.Table) -> TableChanges:
    """The changes without those that were set aside."""
    rows = letters.select(changes.rows.column_names).cast(changes.rows.schema)
    weights = letters.column(WEIGHT).to_numpy().astype(np.int64)
    return TableChanges(pa.concat_tables([changes.rows, rows]), np.concatenate([changes.weights, -weights]))


def _taken(changes: TableChanges, places: Positions) -> TableChanges:
    return TableChanges(changes.rows.take(pa.array(places)), changes.weights[places])


def _groups(table: Table, rows: pa.Table) -> list[Positions]:
    """The positions of rows that belong together."""
    names = table.primary_key or table.column_names
    found: dict[str, list[int]] = {}
    columns = [rows.column(name).to_pylist() for name in names]
    for place, key in enumerate(zip(*columns, strict=True)):
        found.setdefault(repr(key), []).append(place)
    return [np.array(places, dtype=np.int64) for places in found.values()]
