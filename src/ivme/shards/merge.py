"""One result out of the shards' parts: multiplicities, counts and sums add up, extremes are the extremes of the parts.

Each assignment of the query's variables lies in exactly one shard. So what is a sum over assignments adds up; a
DISTINCT row is there if it is in some shard; the smallest value is the smallest of the shards' smallest; and COUNT
DISTINCT adds up because its variable is shared by value (`sharding.shareable`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.codes.nested_values import comparable, restored
from ivme.errors import DataError
from ivme.query.inference import aggregate_type
from ivme.query.model import Aggregate, HeadColumn
from ivme.query.totals import misfit, part_value, total_of
from ivme.query.types import Type
from ivme.shards.sharding import Sharding, is_whole

WEIGHT = "#"
"""The column with the multiplicities of rows. No table has one of that name that is not quoted, and none of ours."""


def merge(sharding: Sharding, parts: Sequence[pa.Table]) -> pa.Table:
    """The view's rows, with their multiplicities as last column, from the partial rows of its shards.

    Distinct rows come once, unless the view hides some of its groups. Linear in the parts.
    """
    together = pa.concat_tables(parts)
    if not sharding.has_partial_rows:
        return _added_rows(sharding, together)
    return finish(sharding, together if is_whole(sharding) else _added_groups(sharding, together))


def _added_rows(sharding: Sharding, rows: pa.Table) -> pa.Table:
    if not is_whole(sharding):
        rows = consolidated(rows)
    if sharding.query.distinct:
        rows = rows.set_column(rows.num_columns - 1, WEIGHT, pa.array(np.ones(rows.num_rows, np.int64)))
    return rows


def consolidated(rows: pa.Table) -> pa.Table:
    """Each row once, with the sum of its weights; those that cancel are left out."""
    groups, count = group_numbers(rows)
    weights = rows.column(WEIGHT).to_numpy()
    totals, sizes = np.zeros(count, np.int64), np.zeros(count, np.float64)
    np.add.at(totals, groups, weights)
    np.add.at(sizes, groups, weights.astype(np.float64))
    if (np.abs(sizes - totals) > 2.0**32).any():
        raise DataError("the multiplicity of a row of a view over shards does not fit 64 bits")
    kept = _first(groups, count)[totals != 0]
    shown = pa.chunked_array([totals[totals != 0]])
    return rows.take(pa.array(kept)).set_column(rows.num_columns - 1, WEIGHT, shown)


def _first(groups: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """The place of the first row of each group."""
    first = np.full(count, len(groups), np.int64)
    np.minimum.at(first, groups, np.arange(len(groups)))
    return first


def group_numbers(rows: pa.Table) -> tuple[np.ndarray[Any, Any], int]:
    """The number of each row's group of rows that are equal but for their weights, and how many groups there are."""
    numbers = np.zeros(rows.num_rows, np.int64)
    if not rows.num_rows:
        return numbers, 0
    for column in (column for name, column in zip(rows.column_names, rows.columns, strict=True) if name != WEIGHT):
        encoded = comparable(column).combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        pairs = numbers * (int(codes.max()) + 1) + codes
        numbers = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    return numbers, int(numbers.max()) + 1


def _added_groups(sharding: Sharding, parts: pa.Table) -> pa.Table:
    """Partial rows with one for each group."""
    keys = [column.name for column in sharding.partial if isinstance(column.source, str)]
    groups, count = group_numbers(parts.select(keys)) if keys else (np.zeros(parts.num_rows, np.int64), 1)
    columns = [parts.column(key).take(pa.array(_first(groups, count))) for key in keys]
    for column in sharding.partial[len(keys) :]:
        assert isinstance(column.source, Aggregate)
        values = parts.column(column.name)
        if pa.types.is_binary(values.type) and column.source.is_part:
            summed = sharding.typed.types[str(column.source.variable)]
            wanted = aggregate_type(column.source, sharding.typed.types)
            columns.append(_added_bytes(values, groups, count, summed, wanted))
        else:
            columns.append(_added(column.source.function, values, groups, sharding.name))
    return pa.table(columns, names=[column.name for column in sharding.partial])


_SUMS = ("count", "exact_sum", "count_distinct")


def _added(function: str, values: pa.ChunkedArray, groups: np.ndarray[Any, Any], view: str) -> pa.ChunkedArray:
    """One aggregate's parts, added up by group; counts are added as decimals, so that none wraps around."""
    kind = values.type
    if function in _SUMS and pa.types.is_integer(kind):
        values = values.cast(pa.decimal128(20, 0)).cast(pa.decimal128(38, 0))
    operation = "sum" if function in _SUMS else function
    found = pa.table({"g": groups, "v": comparable(values)}).group_by("g").aggregate([("v", operation)]).sort_by("g")
    try:
        return restored(found.column(f"v_{operation}"), kind).cast(kind)
    except pa.ArrowException as error:
        raise DataError(f"a count in view {view} does not fit 64 bits: {error}") from None


def _added_bytes(
    values: pa.ChunkedArray, groups: np.ndarray[Any, Any], count: int, summed: Type, wanted: Type
) -> pa.ChunkedArray:
    """Exact sums that come as bytes, added up by group; NULL where no part has a value."""
    totals: list[Any] = [None] * count
    for group, part in zip(groups.tolist(), values.to_pylist(), strict=True):
        if part is not None:
            total = total_of(part, summed)
            totals[group] = total if totals[group] is None else totals[group] + total
    return pa.chunked_array([[None if total is None else part_value(total, wanted) for total in totals]], values.type)


def finish(sharding: Sharding, groups: pa.Table) -> pa.Table:
    """The rows of a view with aggregates, each with multiplicity 1, from whole groups."""
    query = sharding.query
    typed = zip(query.head, sharding.typed.head, strict=True)
    columns = [_finished(sharding, column, type_, groups) for column, type_ in typed]
    ones = pa.array(np.ones(groups.num_rows, np.int64))
    return pa.table([*columns, ones], names=[*(column.name for column in query.head), WEIGHT])


def _finished(sharding: Sharding, column: HeadColumn, type_: Type, groups: pa.Table) -> pa.ChunkedArray | pa.Array:
    """A column of the view, from the columns of its whole groups."""
    sources = {each.source: each.name for each in sharding.partial}
    if column.source in sources:
        return groups.column(sources[column.source]).cast(arrow_type(type_))
    assert isinstance(column.source, Aggregate)
    variable, where = column.source.variable, f"column {column.name} of view {sharding.name}"
    named = {part: groups.column(sources[Aggregate(part, variable)]) for part in column.source.definition.parts}
    if column.source.function == "sum" and pa.types.is_decimal(named["exact_sum"].type):
        try:
            return named["exact_sum"].cast(arrow_type(type_))
        except pa.ArrowException:
            raise misfit(where, str(type_)) from None
    return pa.array(_values(column.source, named, sharding.typed.types[str(variable)], type_, where), arrow_type(type_))


def _values(
    aggregate: Aggregate, parts: Mapping[str, pa.ChunkedArray], summed: Type, type_: Type, where: str
) -> list[Any]:
    """An aggregate's value for each group from its parts; NULL where no part has a value."""
    finish, fold = aggregate.definition.finish, aggregate.definition.fold
    if fold is not None:
        (keys,) = parts.values()
        return [
            None if k is None else fold([(k, 1)], aggregate.options, summed, type_, where) for k in keys.to_pylist()
        ]
    assert finish is not None
    columns = [column.to_pylist() for part, column in parts.items() if part != "count"]
    counts = parts["count"].to_pylist() if "count" in parts else [1] * len(columns[0])
    return [
        None if sums[0] is None else finish(n, [total_of(part, summed) for part in sums], summed, type_, where)
        for n, *sums in zip(counts, *columns, strict=True)
    ]


def expanded(rows: pa.Table) -> pa.Table:
    """Rows as SQL gives them: each repeated by its multiplicity, without that column."""
    weights = rows.column(WEIGHT).to_numpy()
    if not (weights == 1).all():  # rows without columns have a number as long as the weights are there
        rows = rows.take(pa.array(np.repeat(np.arange(rows.num_rows), np.maximum(weights, 0))))
    return rows.drop_columns([WEIGHT])
