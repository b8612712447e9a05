"""Many access requests at once: columns of parameters in, one Arrow table out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domains import Domain
from ivme.engine.codes.nested_values import arrow_array, comparable
from ivme.engine.codes.value_check import value_check
from ivme.engine.ingest.rows import to_arrow
from ivme.engine.read.asked import known_codes
from ivme.engine.runtime.decoding import is_global
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import DataError
from ivme.query.model import Column, Table
from ivme.query.nested import from_bytes
from ivme.query.types import Type


def request_many(reader: Reader, state: ViewState, columns: Mapping[str, Any]) -> pa.Table:
    """The rows of all requests, in their order: the parameters in front, then the view's columns.

    A parameter that a column of the view has the name of is named with a colon in front. A request with a NULL or with
    a value that occurs nowhere has no rows. Linear in the requests and the rows.
    """
    query = state.typed.query
    asked = _parameters(state, columns)
    codes = {v: _found(state.finisher.domain(v), asked.column(i)) for i, v in enumerate(query.input)}
    for variable, known in zip(query.input, query.known, strict=False):
        codes[variable] = known_codes(reader, known, codes[variable]) if known else codes[variable]
    numbers, block = reader.request_many(state, codes)
    given = dict(zip(query.input, (asked.column(i) for i in range(asked.num_columns)), strict=True))
    chosen = {variable: column.take(pa.array(numbers)).combine_chunks() for variable, column in given.items()}
    batch, counts = state.finisher.batch(block, chosen)
    whole = np.repeat(np.arange(len(counts)), np.maximum(counts, 0))
    rows = pa.Table.from_batches([batch])
    if len(whole) != len(counts) or (counts != 1).any():
        rows, numbers = rows.take(pa.array(whole)), numbers[whole]
    if is_global(query.head, query.output):
        rows, numbers = _with_nothing(state, rows, numbers, asked.num_rows)
    return _in_front(asked, rows, numbers)


def _parameters(state: ViewState, columns: Mapping[str, Any]) -> pa.Table:
    """The parameters, checked, in the types and the order of the view's."""
    query = state.typed.query
    types = [state.typed.types[variable] for variable in query.input]
    described = tuple(Column(name, type_) for name, type_ in zip(query.parameters, types, strict=True))
    arrays = []
    for column, type_ in zip(described, types, strict=True):
        values = columns[column.name]
        try:
            is_list = isinstance(values, list | tuple)
            arrays.append(_listed(values, type_) if is_list else pa.array(values))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"parameter {column.name} of view {state.name}: {error}") from None
    if len({len(array) for array in arrays}) > 1:
        lengths = ", ".join(f"{c.name}: {len(array)}" for c, array in zip(described, arrays, strict=True))
        raise DataError(f"the columns of the requests differ in length: {lengths}")
    return to_arrow(pa.table(arrays, names=list(query.parameters)), Table(f"requests of {state.name}", described))


def _listed(values: Sequence[Any], type_: Type) -> pa.Array:
    if not type_.is_nested:
        return pa.array(values, type=arrow_type(type_))
    check = value_check(type_)
    return arrow_array([None if value is None else check(value) for value in values], type_)


def _found(domain: Domain, column: pa.ChunkedArray) -> Codes:
    """The codes of parameters; no value is added to a dictionary, and NULL stands for what occurs nowhere."""
    if domain.orders_by_code:
        return domain.encode(column)
    distinct = comparable(column).combine_chunks().dictionary_encode()
    values = distinct.dictionary.to_pylist()
    if domain.type.is_nested:
        values = [from_bytes(value, domain.type) for value in values]
    found = [domain.find_value(value) for value in values]
    codes = np.array([*(NULL_CODE if code is None else code for code in found), NULL_CODE], dtype=np.int64)
    positions = distinct.indices.fill_null(len(found)) if distinct.null_count else distinct.indices
    return np.ascontiguousarray(codes[positions.to_numpy()])


def _with_nothing(state: ViewState, rows: pa.Table, numbers: Codes, requests: int) -> tuple[pa.Table, Codes]:
    """Aggregates over everything have a row for each request, also for those that find nothing."""
    missing = np.setdiff1d(np.arange(requests), numbers)
    nothing = pa.Table.from_pylist(
        [dict(zip(state.finisher.schema.names, state.finisher.nothing(), strict=True))], schema=state.finisher.schema
    )
    both = pa.concat_tables([rows, nothing.take(pa.array(np.zeros(len(missing), np.int64)))])
    whose = np.concatenate([numbers, missing])
    order = np.argsort(whose, kind="stable")
    return both.take(pa.array(order)), whose[order]


def _in_front(asked: pa.Table, rows: pa.Table, numbers: Codes) -> pa.Table:
    names = [f":{name}" if name in rows.column_names else name for name in asked.column_names]
    parameters = asked.take(pa.array(numbers))
    return pa.table([*parameters.columns, *rows.columns], names=[*names, *rows.column_names])
