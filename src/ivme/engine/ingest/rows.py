"""Rows as users have them, in whatever form, to an Arrow table with exactly the columns of one of our tables.

Accepted are lists (any iterables) of tuples, lists or dicts; pandas and polars DataFrames; pyarrow tables, record
batches and datasets, and whatever else streams Arrow data; NumPy arrays, structured or of two dimensions; Spark
DataFrames; and the paths of files.
Columns that already have the right Arrow type are shared, not copied. No value is changed on the way in (the rule is
in `value_check`), except that pandas' NaN and NaT mean NULL, as pandas has it. What does not fit is a `DataError` that
names table, column, row and value. Each column is converted as a whole; only one that does not convert is gone
through value by value, to find the one to blame.
"""

from __future__ import annotations

import datetime
import math
import os
import sys
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_schema, arrow_type, cast_decimals, declared_type
from ivme.engine.codes.nested_values import arrow_array
from ivme.engine.codes.value_check import checked
from ivme.engine.ingest.files import names_file, read_path
from ivme.engine.ingest.row_check import check_row, default_values, matched, place, positional, refuse_single, row_check
from ivme.errors import DataError
from ivme.query.model import Column, Table
from ivme.query.types import Type

__all__ = ["check_row", "rounded", "rounded_float", "row_check", "to_arrow"]

_PYTHON_TYPES: dict[str, set[type]] = {
    "int": {int},
    "float": {float},
    "decimal": {Decimal},
    "string": {str},
    "bool": {bool},
    "date": {datetime.date},
    "timestamp": {datetime.datetime},
    "binary": {bytes},
}
"""The Python types whose values Arrow converts exactly, or refuses."""

MAX_PRECISION = 38
_DIGITS = Context(prec=2 * MAX_PRECISION, rounding=ROUND_HALF_UP)
_MOST_ROWS_BY_HAND = 16
"""Up to this many rows in a list are checked value by value."""

_CONVERSION_ERRORS = (pa.ArrowException, OverflowError, ValueError, TypeError)


def to_arrow(rows: Any, table: Table, *, round_floats: bool = False) -> pa.Table:
    """The rows as an Arrow table with the columns of `table`, in its order and types; linear in the rows.

    With `round_floats`, floats in columns of decimals are rounded to their scale, halves away from zero.

    >>> from ivme.query.model import table
    >>> to_arrow([(1, "x"), {"B": None, "a": 2}], table("R", {"a": "int", "b": "string"})).to_pylist()
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': None}]
    """
    if isinstance(rows, list) and len(rows) <= _MOST_ROWS_BY_HAND and not round_floats:
        return _few_rows(rows, table)
    columns = _frame_columns(rows, table, round_floats=round_floats)
    if columns is None:
        columns = _row_columns(rows, table)
    if round_floats:
        columns = [
            (_rounded(values, declared_type(table, column)), from_pandas)
            for column, (values, from_pandas) in zip(table.columns, columns, strict=True)
        ]
    arrays = [
        _conformed(values, table, column, from_pandas=from_pandas)
        for column, (values, from_pandas) in zip(table.columns, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(table))


def _rounded(values: Any, type_: Type) -> Any:
    """The values of a column with decimals in the place of floats, if it is one of decimals."""
    if type_.kind != "decimal":
        return values
    if isinstance(values, pa.Array | pa.ChunkedArray) and not pa.types.is_floating(values.type):
        return values
    return [rounded_float(value, type_) for value in (values if isinstance(values, list) else values.to_pylist())]


def rounded_float(value: Any, type_: Type) -> Any:
    """A float as a decimal of that type, halves rounded away from zero; other values, NaN and infinities as they are.

    A float is the decimal that it is written as: 0.125 has three digits behind the point, and 0.1 has one.
    """
    if not isinstance(value, float) or not abs(value) < 1e38:
        return value
    return rounded(Decimal(repr(value)), type_)


def rounded(value: Decimal, type_: Type) -> Decimal:
    """A number as a decimal of that type, halves rounded away from zero; one that is too large for any is left."""
    return value.quantize(Decimal(1).scaleb(-(type_.scale or 0)), context=_DIGITS) if abs(value) < 1e38 else value


def _few_rows(rows: list[Any], table: Table) -> pa.Table:
    """Checks value by value, which is the faster way for a few rows."""
    check, schema = row_check(table), arrow_schema(table)
    kept = [check(row, number) for number, row in enumerate(rows)]
    columns = zip(*kept, strict=True) if kept else ((),) * len(schema)
    types = (declared_type(table, column) for column in table.columns)
    arrays = [arrow_array(values, type_) for values, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


_Given = tuple[Any, bool]
"""A column as it was given, a list or something of Arrow's, and whether NaN means NULL in it."""


def _row_columns(rows: Any, table: Table) -> list[_Given]:
    refuse_single(rows, table)
    listed = rows if isinstance(rows, list) else list(rows)
    sequences = positional(listed, table)
    return [(list(map(itemgetter(position), sequences)), False) for position in range(len(table.columns))]


def _frame_columns(rows: Any, table: Table, *, round_floats: bool) -> list[_Given] | None:
    """The columns of anything but a collection of rows, in the table's order; None if it is one."""
    if isinstance(rows, list | tuple | dict):
        return None
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(rows, pandas.DataFrame):
        order = matched(rows.columns, table, f"table {table.name}")
        return _with_defaults(order, lambda position: _pandas_column(rows.iloc[:, position], pandas), table, len(rows))
    if isinstance(rows, np.ndarray):
        return _numpy_columns(rows, table)
    arrow = _arrow_table(rows, table, round_floats=round_floats)
    if arrow is None:
        return None
    order = matched(arrow.column_names, table, f"table {table.name}")
    return _with_defaults(order, lambda position: (arrow.column(position), False), table, arrow.num_rows)


def _with_defaults(order: list[int | None], column: Callable[[int], _Given], table: Table, rows: int) -> list[_Given]:
    """The columns at some positions; those that are not given have their defaults."""
    values = default_values(table) if None in order else []
    return [([values[i]] * rows, False) if place is None else column(place) for i, place in enumerate(order)]


def _arrow_table(rows: Any, table: Table, *, round_floats: bool) -> pa.Table | None:
    if isinstance(rows, os.PathLike) or (isinstance(rows, str) and names_file(rows)):
        return read_path(rows, table, round_floats=round_floats)
    dataset = sys.modules.get("pyarrow.dataset")
    if dataset is not None and isinstance(rows, dataset.Dataset | dataset.Scanner):
        return rows.to_table()
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    try:
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if hasattr(rows, "toArrow"):
            return rows.toArrow()
    except pa.ArrowException as error:
        raise DataError(f"table {table.name}: the data cannot be read as an Arrow table: {error}") from error
    if hasattr(rows, "collect_schema"):
        raise DataError(f"table {table.name}: a LazyFrame has no rows yet; give what its collect() returns")
    return None


def _pandas_column(series: Any, pandas: Any) -> _Given:
    if series.dtype == object:
        return [None if _is_missing(value, pandas) else value for value in series.tolist()], True
    return pa.array(series, from_pandas=True), True


def _is_missing(value: Any, pandas: Any) -> bool:
    return value is pandas.NA or value is pandas.NaT or (isinstance(value, float) and math.isnan(value))


def _numpy_columns(rows: np.ndarray[Any, Any], table: Table) -> list[_Given]:
    if rows.dtype.names is not None and rows.ndim == 1:
        order = matched(rows.dtype.names, table, f"table {table.name}")
        names = rows.dtype.names
        return _with_defaults(order, lambda position: _numpy_column(rows[names[position]]), table, len(rows))
    if rows.ndim != 2 or rows.shape[1] != len(table.columns):
        raise DataError(
            f"table {table.name}: a NumPy array of rows is structured, or has a column for each of the table's "
            f"{len(table.columns)}: {', '.join(table.column_names)}; this one has the shape {rows.shape}"
        )
    return [_numpy_column(rows[:, position]) for position in range(rows.shape[1])]


def _numpy_column(values: np.ndarray[Any, Any]) -> _Given:
    if values.dtype == object:
        return values.tolist(), False
    try:
        return pa.array(np.ascontiguousarray(values)), False
    except _CONVERSION_ERRORS:
        return list(values), False


def _conformed(values: Any, table: Table, column: Column, *, from_pandas: bool) -> pa.Array | pa.ChunkedArray:
    """A column's values in its Arrow type, each checked."""
    if declared_type(table, column).is_nested:
        array = None
    elif isinstance(values, list):
        array = _from_python(values, column, declared_type(table, column).kind)
    else:
        array = _cast(values, arrow_type(declared_type(table, column)))
    if array is not None and from_pandas and pa.types.is_floating(array.type):
        import pyarrow.compute as pc

        array = pc.if_else(pc.is_nan(array), None, array)
    if array is None or not _is_valid(array):
        return _one_by_one(values, table, column)
    return _without_negative_zeros(array) if pa.types.is_floating(array.type) else array


def _from_python(values: list[Any], column: Column, kind: str) -> pa.Array | None:
    """The values in Arrow, or None where only a look at each of them tells whether they fit."""
    assert column.type is not None
    if not set(map(type, values)) <= _PYTHON_TYPES[kind] | {type(None)}:
        return None
    try:
        return pa.array(values, type=arrow_type(column.type))
    except _CONVERSION_ERRORS:
        return None


def _cast(values: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray | None:
    """An Arrow column in the wanted type if each value stays what it is, or None where that is not certain."""
    if values.type == wanted:
        return values
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_null(values.type) or _same_family(values.type, wanted):
            return _cast_exactly(values, wanted)
    except _CONVERSION_ERRORS:
        pass
    return None


def _cast_exactly(values: Any, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray | None:
    if pa.types.is_decimal(wanted) and pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(20, 0))
    if pa.types.is_decimal(wanted) and pa.types.is_decimal(values.type):
        return cast_decimals(values, wanted)
    result = values.cast(wanted)
    if pa.types.is_timestamp(values.type) and pa.types.is_date(wanted):
        return result if result.cast(pa.timestamp("us")).equals(values.cast(pa.timestamp("us"))) else None
    return result


def _same_family(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a safe cast between the types never changes a value; floats and decimals do not mix."""
    types = pa.types
    families = (
        (types.is_integer, (types.is_integer, types.is_floating, types.is_decimal)),
        (types.is_floating, (types.is_integer, types.is_floating)),
        (types.is_decimal, (types.is_integer, types.is_decimal)),
        (types.is_temporal, (types.is_date, types.is_timestamp)),
        (types.is_string, (types.is_large_string, types.is_string_view)),
        (types.is_binary, (types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)),
    )
    return any(is_wanted(wanted) and any(fits(given) for fits in accepted) for is_wanted, accepted in families)


_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_FIRST_DAY = datetime.date.min.toordinal() - _EPOCH_DAY
_LAST_DAY = datetime.date.max.toordinal() - _EPOCH_DAY
_DAY_MICROSECONDS = 86_400_000_000

_RANGES = {
    pa.int64(): (-(2**63) + 1, 2**63 - 1),
    pa.date32(): (_FIRST_DAY, _LAST_DAY),
    pa.timestamp("us"): (_FIRST_DAY * _DAY_MICROSECONDS, (_LAST_DAY + 1) * _DAY_MICROSECONDS - 1),
}
"""The least and the greatest number that stands for a value of a column. Numbers rather than Arrow scalars: making a
scalar imports pandas, a quarter of a second."""


def _is_valid(array: pa.Array | pa.ChunkedArray) -> bool:
    """Whether no value is one that Arrow holds and a column does not: NaN, -2**63, the year 10000, too many digits."""
    import pyarrow.compute as pc  # which takes longer to load than the rest of Arrow

    if pa.types.is_floating(array.type):
        return not pc.any(pc.is_nan(array)).as_py()
    if pa.types.is_decimal(array.type):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True
    if array.type not in _RANGES:
        return True
    bounds = pc.min_max(array)
    if not bounds["min"].is_valid:
        return True
    least, most = _RANGES[array.type]
    return bool(least <= _number(bounds["min"]) and _number(bounds["max"]) <= most)


def _number(scalar: pa.Scalar) -> int:
    """The integer that Arrow stores for a scalar."""
    return int(scalar.as_py() if pa.types.is_integer(scalar.type) else scalar.value)


def _without_negative_zeros(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    import pyarrow.compute as pc

    zeros = array.filter(pc.equal(array, 0.0))
    return pc.add(array, 0.0) if len(zeros) and np.signbit(zeros.to_numpy()).any() else array


def _one_by_one(values: Any, table: Table, column: Column) -> pa.Array:
    """The values checked one by one; raises for the first that does not fit."""
    type_ = declared_type(table, column)
    listed: Sequence[Any] = values if isinstance(values, list) else _python_values(values, table, column)
    kept = [checked(value, type_, place(table, column.name, row)) for row, value in enumerate(listed)]
    return arrow_array(kept, type_)


def _python_values(values: pa.Array | pa.ChunkedArray, table: Table, column: Column) -> list[Any]:
    try:
        return list(values.to_pylist())
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"table {table.name}, column {column.name}: values of {values.type} do not fit {column.type}: {error}"
        ) from None
