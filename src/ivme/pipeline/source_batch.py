"""What a source of changes has read: changes, events by key or a snapshot, and rows that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.pipeline.keyed_events import SEQUENCES, KeyedEvents
from ivme.pipeline.model import BATCH, ORIGIN, RAW, REASON, WEIGHT
from ivme.pipeline.table_changes import TableChanges, together


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows that a table is to hold."""

    rows: pa.Table

    @property
    def size(self) -> int:
        return int(self.rows.num_rows)


Content = TableChanges | KeyedEvents | Snapshot


@dataclass(frozen=True, slots=True)
class TransactionIds:
    """For each row of a batch, its transaction and the number of its event there, NULL where the source has none.

    `come` has both for all rows that came, those among them that cannot be taken, too.
    """

    ids: pa.Array
    numbers: pa.Array
    come: pa.Table

    @property
    def is_numbered(self) -> bool:
        """Whether an event that comes again can be told from others."""
        of_some = self.come.filter(pc.is_valid(self.come.column("id")))
        return bool(of_some.column("number").null_count == 0)

    def taken(self, places: pa.Array) -> TransactionIds:
        """Those of some rows, by their places."""
        return TransactionIds(self.ids.take(places), self.numbers.take(places), self.come)


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """The content of a batch, and where each of its rows is from; `letters` are rows that cannot be taken."""

    content: Content
    letters: pa.Table | None = None
    origins: pa.Array | None = None
    transactions: TransactionIds | None = None
    is_repeatable: bool = True
    """Whether the source gives the same rows again when it is requested again."""

    @property
    def size(self) -> int:
        return self.content.size + (0 if self.letters is None else self.letters.num_rows)


def snapshot_changes(
    snapshot: Snapshot, rows: pa.Table, counts: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> TableChanges:
    """What to change in a table so that it holds a snapshot: O(n) for n rows of both, equal rows cancel."""
    new = together([(snapshot.rows, 1)])
    both = TableChanges(
        pa.concat_tables([new.rows, rows.cast(new.rows.schema)]),
        np.concatenate([new.weights, -counts.astype(np.int64)]),
    )
    return net(both)


def net(changes: TableChanges) -> TableChanges:
    """The changes with equal rows added up, without those that cancel."""
    names = changes.rows.column_names
    if not names or any(pa.types.is_nested(field.type) for field in changes.rows.schema):
        return changes
    numbered = changes.rows.rename_columns([f"c{i}" for i in range(len(names))]).append_column(
        WEIGHT, pa.array(changes.weights)
    )
    summed = numbered.group_by(numbered.column_names[:-1], use_threads=False).aggregate([(WEIGHT, "sum")])
    left = summed.filter(pc.not_equal(summed.column(f"{WEIGHT}_sum"), 0))
    weights = left.column(f"{WEIGHT}_sum").to_numpy().astype(np.int64)
    rows = left.drop_columns([f"{WEIGHT}_sum"]).rename_columns(names).cast(changes.rows.schema)
    return TableChanges(rows, weights)


def letters_of(
    content: TableChanges | KeyedEvents, reasons: dict[int, str], origins: pa.Array | None = None
) -> pa.Table:
    """The rows at some places as letters: with their weight or kind, their sequence, the reason and the origin."""
    places = np.array(sorted(reasons), np.int64)
    part = content.taken(places)
    weights = part.weights if isinstance(part, TableChanges) else part.kinds.astype(np.int64)
    found = part.rows.append_column(WEIGHT, pa.array(weights))
    for number, sequence in enumerate(part.sequences if isinstance(part, KeyedEvents) else ()):
        found = found.append_column(f"{SEQUENCES}{number}", sequence)
    found = found.append_column(REASON, pa.array([reasons[place] for place in places.tolist()], pa.string()))
    if origins is not None:
        found = found.append_column(ORIGIN, origins.take(pa.array(places)))
    return found


def unread_letters(raw: Sequence[str | None], reasons: Sequence[str], origins: pa.Array | None) -> pa.Table:
    """Texts that are not rows of the table, as letters."""
    found = pa.table({RAW: pa.array(raw, pa.string()), REASON: pa.array(reasons, pa.string())})
    return found if origins is None else found.append_column(ORIGIN, origins.cast(pa.string()))


def all_letters(parts: Sequence[pa.Table | None], table: str, batch: int) -> pa.Table:
    """Letters of several kinds in one table, which says for each row its source and its batch."""
    given = [part for part in parts if part is not None and part.num_rows]
    if not given:
        return pa.table({})
    found = pa.concat_tables(given, promote_options="default")
    origins = found.column(ORIGIN) if ORIGIN in found.column_names else pa.nulls(found.num_rows, pa.string())
    found = found.drop_columns([name for name in (ORIGIN, BATCH) if name in found.column_names])
    found = found.append_column(ORIGIN, pc.fill_null(origins, table))
    return found.append_column(BATCH, pa.array(np.full(found.num_rows, batch), pa.int64()))
