"""From frames of changes to Arrow: columns in the types of a table, and rows that do not fit set apart.

A frame is first read strictly, so that the first bad row ends the job. Only then is it read again with each row judged:
`permissive` adds the reason for which a row cannot be taken, and its text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.arrow_types import arrow_type
from ivme.pipeline.keyed_events import DELETE, KeyedEvents, objections
from ivme.pipeline.model import ORIGIN, RAW, REASON, WEIGHT, Changes
from ivme.pipeline.source_batch import Snapshot, SourceBatch, TransactionIds, letters_of, unread_letters
from ivme.pipeline.table_changes import delta_of
from ivme.query.model import Table
from ivme.spark.pipeline.envelope import MOVED, NUMBER, TRANSACTION
from ivme.spark.pipeline.event_texts import event_texts
from ivme.spark.pipeline.load import conformed
from ivme.spark.pipeline.schema import exact_columns, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def event_frame(frame: DataFrame, changes: Changes, table: Table, *, permissive: bool = False) -> DataFrame:
    """The columns of the table, the weight, the sequences and the origin; the reason and the text if permissive."""
    if changes.rows.where is not None:
        frame = frame.where(changes.rows.where)
    exact = exact_columns(frame.schema, table)
    return frame.selectExpr(*event_texts(frame.columns, changes, table, permissive=permissive, exact=exact))


def sequence_fields(changes: Changes, table: Table) -> list[tuple[str | None, DataType]]:
    """The columns of files that only say the order of events, or their transactions."""
    from pyspark.sql.types import LongType, StringType

    if changes.envelope is not None:
        return []
    typed: list[tuple[str | None, DataType]] = [
        (text, spark_type(type_)) for text, type_ in zip(changes.sequence_by, changes.sequence_types, strict=True)
    ]
    typed += [(changes.transaction_by, StringType()), (changes.transaction_number, LongType())]
    kinds = {text: kind for text, kind in reversed(typed) if text is not None and text.isidentifier()}
    return [(text, kind) for text, kind in kinds.items() if table.column(text) is None]


def source_batch(found: pa.Table, changes: Changes, table: Table) -> SourceBatch:
    """The rows of a frame that came as Arrow, and those that are to be set aside."""
    letters, come = None, _come(found)
    if REASON in found.column_names:
        bad = pc.is_valid(found.column(REASON))
        aside, found = found.filter(bad), found.filter(pc.invert(bad))
        origins = _origins(aside)
        letters = unread_letters(aside.column(RAW).to_pylist(), aside.column(REASON).to_pylist(), origins)
        letters = letters if letters.num_rows else None
    rows = conformed(found.select(list(table.column_names)), table)
    weights, origins = found.column(WEIGHT).combine_chunks(), _origins(found)
    if changes.snapshot:
        return SourceBatch(Snapshot(rows), letters, origins)
    ids = _ids(found, come)
    if not changes.is_keyed:
        return SourceBatch(delta_of(rows, weights), letters, origins, ids)
    kinds = weights.to_numpy(zero_copy_only=False).astype(np.int8)
    types = enumerate(changes.sequence_types)
    sequences = tuple(found.column(f"ivme_s{i}").combine_chunks().cast(arrow_type(type_)) for i, type_ in types)
    return _without_objections(table, SourceBatch(KeyedEvents(rows, kinds, sequences), letters, origins, ids))


def _come(found: pa.Table) -> pa.Table | None:
    """The transactions and numbers of all rows, those among them that cannot be taken, too."""
    if TRANSACTION not in found.column_names:
        return None
    return found.select([TRANSACTION, NUMBER]).rename_columns(["id", "number"])


def _ids(found: pa.Table, come: pa.Table | None) -> TransactionIds | None:
    if come is None:
        return None
    return TransactionIds(found.column(TRANSACTION).combine_chunks(), found.column(NUMBER).combine_chunks(), come)


def _without_objections(table: Table, batch: SourceBatch) -> SourceBatch:
    """A batch of events without rows that only say where a row was, and with those set aside that have no key."""
    events = batch.content
    assert isinstance(events, KeyedEvents)
    if (events.kinds == MOVED).any():
        batch = _at(batch, np.flatnonzero(~_unmoved(table, events)))
        stay = batch.content
        assert isinstance(stay, KeyedEvents)
        events = KeyedEvents(stay.rows, np.where(stay.kinds == MOVED, DELETE, stay.kinds), stay.sequences)
        batch = replace(batch, content=events)
    reasons = objections(table, events)
    if not reasons:
        return batch
    letters, aside = batch.letters, letters_of(events, reasons, batch.origins)
    both = aside if letters is None else pa.concat_tables([letters, aside], promote_options="default")
    good = np.setdiff1d(np.arange(events.size), np.array(sorted(reasons), np.int64))
    return replace(_at(batch, good), letters=both)


def _at(batch: SourceBatch, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> SourceBatch:
    """The rows of a batch of events at some places."""
    assert isinstance(batch.content, KeyedEvents)
    chosen = pa.array(places, pa.int64())
    origins = None if batch.origins is None else batch.origins.take(chosen)
    ids = None if batch.transactions is None else batch.transactions.taken(chosen)
    return replace(batch, content=batch.content.taken(places), origins=origins, transactions=ids)


def _unmoved(table: Table, events: KeyedEvents) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows before an update have the key of the row after it, or no key at all."""
    moved = events.kinds == MOVED
    same = np.ones(events.size, bool)
    for position in table.key_positions:
        values = events.rows.column(position).combine_chunks()
        following = pa.concat_arrays([values.slice(1), pa.nulls(1, values.type)])
        equal = pc.fill_null(pc.equal(values, following), fill_value=False).to_numpy(zero_copy_only=False)
        missing = pc.is_null(values).to_numpy(zero_copy_only=False)
        same &= equal | missing
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = moved & same
    return found


def _origins(found: pa.Table) -> pa.Array | None:
    return found.column(ORIGIN).combine_chunks() if ORIGIN in found.column_names else None
