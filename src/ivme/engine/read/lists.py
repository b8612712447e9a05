"""Requests with lists: the rows of each member, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.algebra.ring import EXACT
from ivme.engine.codes.arrow_types import field_type
from ivme.engine.codes.nested_values import arrow_array, python_values
from ivme.engine.codes.value_check import checked
from ivme.engine.runtime.decoding import Row
from ivme.engine.runtime.distinct import Weighted
from ivme.errors import DataError
from ivme.query.model import Aggregate, Query
from ivme.query.sql_values import DECIMALS
from ivme.query.totals import misfit
from ivme.query.types import Type


def requests_of(query: Query, types: Mapping[str, Type], parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requests for single members that a request with lists is; NULL equals nothing, and is left out."""
    variables = dict(zip(query.parameters, query.input, strict=True))
    choices: list[list[Any]] = []
    for name, value in parameters.items():
        if name not in dict(query.lists):
            choices.append([value])
            continue
        where = f"parameter {name} of view {query.name}"
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            raise DataError(f"{where} is a list; give the values in [ ]")
        members = (each.as_py() if isinstance(each, pa.Scalar) else each for each in value)
        found = (checked(each, types[variables[name]], where) for each in members)
        choices.append(list(dict.fromkeys(each for each in found if each is not None)))
    return [dict(zip(parameters, chosen, strict=True)) for chosen in product(*choices)]


def put_together(query: Query, batches: Iterable[Weighted], schema: pa.Schema, nothing: Row | None) -> list[Weighted]:
    """The rows of all members as those of one request; `nothing` is the row of aggregates over no rows."""
    parts = list(batches)
    across = any(is_across for _, is_across in query.lists)
    if not across and not query.distinct:
        return parts
    rows = [row for batch, counts in parts for row in _rows(batch, counts)]
    if query.distinct:
        made = list(dict.fromkeys(rows))
    else:
        made = _aggregated(query, rows) or ([] if nothing is None else [nothing])
    columns = list(zip(*made, strict=True)) if made else [()] * len(schema)
    arrays = [arrow_array(column, field_type(field)) for column, field in zip(columns, schema, strict=True)]
    return [(pa.RecordBatch.from_arrays(arrays, schema=schema), np.ones(len(made), np.int64))]


def _rows(batch: pa.RecordBatch, counts: Any) -> Iterable[Row]:
    columns = [python_values(column) for column in batch.columns]
    return (row for row, count in zip(zip(*columns, strict=True), counts.tolist(), strict=True) if count > 0)


def _aggregated(query: Query, rows: list[Row]) -> list[Row]:
    groups: dict[Row, list[Row]] = {}
    places = [place for place, column in enumerate(query.head) if isinstance(column.source, str)]
    for row in rows:
        groups.setdefault(tuple(row[place] for place in places), []).append(row)
    return [tuple(_value(query, place, group) for place in range(len(query.head))) for group in groups.values()]


def _value(query: Query, place: int, rows: list[Row]) -> Any:
    source = query.head[place].source
    values = [row[place] for row in rows if row[place] is not None]
    if isinstance(source, Aggregate):
        return _COMBINED[source.function](values, query.head[place].name) if values else None
    return rows[0][place]


def _sum(values: list[Any], name: str) -> Any:
    """The exact sum; DataError if it does not fit the type of the column."""
    if not isinstance(values[0], Decimal):
        total = sum(values)
        if not -_INT_LIMIT <= total <= _INT_LIMIT:
            raise misfit(f"column {name}", "int (64 bits)")
        return total
    exact = reduce(EXACT.add, values)
    if len(exact.as_tuple().digits) > DECIMALS.prec:
        raise misfit(f"column {name}", f"decimal ({DECIMALS.prec} digits)")
    return exact


_INT_LIMIT = 2**63 - 1
_COMBINED: dict[str, Callable[[list[Any], str], Any]] = {
    "count": _sum,
    "sum": _sum,
    "sum_product": _sum,
    "min": lambda values, _: min(values),
    "max": lambda values, _: max(values),
    "bool_and": lambda values, _: all(values),
    "bool_or": lambda values, _: any(values),
}
"""How the aggregates of several lots of rows are put together: those of `query.defaults.COMBINED`."""
