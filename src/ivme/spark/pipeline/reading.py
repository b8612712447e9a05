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
from ivme.spark.pipeline.load import conformed, weight_of
from ivme.spark.pipeline.schema import column_type, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

CORRUPT = "ivme_corrupt"
"""The column in which Spark's readers put the text of what is not a row."""


def event_frame(frame: DataFrame, changes: Changes, table: Table, *, permissive: bool = False) -> DataFrame:
    """The columns of the table, the weight, the sequences and the origin; the reason and the text if permissive."""
    from pyspark.sql import functions as sf

    rows = changes.rows
    if rows.where is not None:
        frame = frame.where(rows.where)
    computed = {name.lower(): sf.expr(text) for name, text in rows.select}
    given = [(column, computed.get(column.name.lower(), sf.col(f"`{column.name}`"))) for column in table.columns]
    casts = [_cast(value, column_type(column), permissive=permissive).alias(column.name) for column, value in given]
    weight = sf.col(WEIGHT) if changes.envelope else weight_of(changes, strict=not permissive)
    extra = [weight.alias(WEIGHT), *_sequences(frame, changes, permissive=permissive), *_transaction(frame, changes)]
    extra += [sf.col(ORIGIN)] if ORIGIN in frame.columns else []
    if permissive:
        own = [value for _, value in given]
        bad = [_misfit(column.name, value, cast) for (column, value), cast in zip(given, casts, strict=True)]
        reason = _reason(frame, weight, changes, bad)
        extra += [reason.alias(REASON), sf.when(reason.isNotNull(), _raw(frame, own)).alias(RAW)]
    return frame.select(*casts, *extra)


def _cast(value: Column, type_: object, *, permissive: bool) -> Column:
    target = spark_type(type_)  # type: ignore[arg-type]
    return value.try_cast(target) if permissive else value.cast(target)


def _sequences(frame: DataFrame, changes: Changes, *, permissive: bool) -> list[Column]:
    from pyspark.sql import functions as sf

    names = [f"ivme_s{number}" for number in range(len(changes.sequence_by))]
    values = [
        sf.col(name) if name in frame.columns else sf.expr(text)
        for name, text in zip(names, changes.sequence_by, strict=True)
    ]
    typed = zip(names, values, changes.sequence_types, strict=True)
    return [_cast(value, type_, permissive=permissive).alias(name) for name, value, type_ in typed]


def _transaction(frame: DataFrame, changes: Changes) -> list[Column]:
    """The transaction of a row, and the number of its event there, where the source has them."""
    from pyspark.sql import functions as sf

    if changes.transaction_by is None:
        return []
    given = [(TRANSACTION, changes.transaction_by), (NUMBER, changes.transaction_number)]
    values = [sf.col(n) if n in frame.columns else sf.expr(text or "NULL") for n, text in given]
    return [value.cast(kind).alias(n) for (n, _), value, kind in zip(given, values, ("string", "bigint"), strict=True)]


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


def _misfit(name: str, value: Column, cast: Column) -> Column:
    from pyspark.sql import functions as sf

    return sf.when(value.isNotNull() & cast.isNull(), sf.lit(name))


def _reason(frame: DataFrame, weight: Column, changes: Changes, bad: list[Column]) -> Column:
    """Why a row cannot be taken; NULL if it can."""
    from pyspark.sql import functions as sf

    columns = sf.concat_ws(", ", *bad)
    found = sf.when(sf.length(columns) > 0, sf.concat(sf.lit("malformed: not a value of its type in "), columns))
    if changes.operation is not None:
        told = sf.coalesce(sf.col(f"`{changes.operation}`"), sf.lit("missing"))
        found = found.when(weight.isNull(), sf.concat(sf.lit("malformed: the operation "), told, sf.lit(" is unknown")))
    else:
        found = found.when(weight.isNull(), sf.lit("malformed: the weight is missing"))
    first = [sf.col(name) for name in (REASON,) if name in frame.columns]
    if CORRUPT in frame.columns:
        first.append(sf.when(sf.col(CORRUPT).isNotNull(), sf.lit("malformed: the row does not fit the columns")))
    return sf.coalesce(*first, found)


def _raw(frame: DataFrame, values: list[Column]) -> Column:
    from pyspark.sql import functions as sf

    own = [sf.col(name) for name in (RAW, CORRUPT) if name in frame.columns]
    return sf.coalesce(*own, sf.to_json(sf.struct(*values)))


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
