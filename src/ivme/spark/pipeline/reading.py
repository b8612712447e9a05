"""From frames of changes to Arrow: columns in the types of a table, and rows that do not fit set apart.

A frame is first read strictly, so that the first bad row ends the job. Only then is it read again with each row judged:
`permissive` adds the reason for which a row cannot be taken, and its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.arrow_types import arrow_type
from ivme.pipeline.keyed_events import DELETE, KeyedEvents, objections
from ivme.pipeline.model import ORIGIN, RAW, REASON, WEIGHT, Changes
from ivme.pipeline.source_batch import Snapshot, SourceBatch, letters_of, unread_letters
from ivme.pipeline.table_changes import delta_of
from ivme.query.model import Table
from ivme.spark.pipeline.envelope import MOVED
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
    extra = [weight.alias(WEIGHT), *_sequences(frame, changes, permissive=permissive)]
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


def sequence_fields(changes: Changes, table: Table) -> list[tuple[str | None, DataType]]:
    """The columns of files that only say the order of events."""
    if changes.envelope is not None:
        return []
    typed = zip(changes.sequence_by, changes.sequence_types, strict=True)
    return [(text, spark_type(type_)) for text, type_ in typed if table.column(text) is None and text.isidentifier()]


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
    letters = None
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
    if not changes.is_keyed:
        return SourceBatch(delta_of(rows, weights), letters, origins)
    kinds = weights.to_numpy(zero_copy_only=False).astype(np.int8)
    types = enumerate(changes.sequence_types)
    sequences = tuple(found.column(f"ivme_s{i}").combine_chunks().cast(arrow_type(type_)) for i, type_ in types)
    return _without_objections(table, KeyedEvents(rows, kinds, sequences), letters, origins)


def _without_objections(
    table: Table, events: KeyedEvents, letters: pa.Table | None, origins: pa.Array | None
) -> SourceBatch:
    if (events.kinds == MOVED).any():
        stay = np.flatnonzero(~_unmoved(table, events))
        events, origins = events.taken(stay), None if origins is None else origins.take(pa.array(stay))
        events = KeyedEvents(events.rows, np.where(events.kinds == MOVED, DELETE, events.kinds), events.sequences)
    reasons = objections(table, events)
    if not reasons:
        return SourceBatch(events, letters, origins)
    aside = letters_of(events, reasons, origins)
    good = np.setdiff1d(np.arange(events.size), np.array(sorted(reasons), np.int64))
    both = aside if letters is None else pa.concat_tables([letters, aside], promote_options="default")
    return SourceBatch(events.taken(good), both, None if origins is None else origins.take(pa.array(good)))


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
