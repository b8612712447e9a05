"""Arrays and structs in codes and in Arrow: their codes are those of their bytes, in one dictionary for all types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_type, column_type
from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.domain import DictionaryValues, Nulls
from ivme.errors import DataError
from ivme.query.nested import from_bytes, frozen, thawed, to_bytes
from ivme.query.types import Type


class NestedValues(DictionaryValues):
    """Arrays or structs of one type. Encoding and decoding take Python's work for each value, linear in its parts."""

    def _encode(self, array: pa.Array) -> Codes:
        try:
            found = [None if each is None else to_bytes(self._check(each), self.type) for each in array.to_pylist()]
        except (TypeError, ValueError) as error:
            raise DataError(f"not a value of type {self.type}: {error}") from None
        return self.dictionary.encode(pa.array(found, type=pa.binary()))

    def _decode(self, codes: Codes, null: Nulls | None) -> pa.Array:
        found = self.dictionary.decode(codes, null, pa.binary()).to_pylist()
        values = [None if each is None else thawed(from_bytes(each, self.type), self.type) for each in found]
        return pa.array(values, type=self.arrow_type)

    def _code(self, value: Any) -> int:
        return self.dictionary.add(to_bytes(value, self.type))

    def _found(self, value: Any) -> int | None:
        return self.dictionary.find(to_bytes(value, self.type))

    def _value(self, code: int) -> Any:
        return from_bytes(self.dictionary.value(code), self.type)


def comparable(column: Any) -> Any:
    """A column as Arrow can compare, sort and group it: arrays and structs as their bytes, others as they are."""
    if not pa.types.is_nested(column.type):
        return column
    type_ = column_type(column.type)
    assert type_ is not None
    values = [None if each is None else to_bytes(frozen(each, type_), type_) for each in column.to_pylist()]
    made = pa.array(values, type=pa.binary())
    return pa.chunked_array([made]) if isinstance(column, pa.ChunkedArray) else made


def comparable_table(rows: pa.Table) -> pa.Table:
    """The same for all columns of a table."""
    if not any(pa.types.is_nested(field.type) for field in rows.schema):
        return rows
    return pa.table([comparable(column) for column in rows.columns], names=rows.column_names)


def restored(column: Any, arrow: pa.DataType) -> Any:
    """What `comparable` was given, of the type that it had."""
    if not pa.types.is_nested(arrow):
        return column
    type_ = column_type(arrow)
    assert type_ is not None
    values = [None if each is None else from_bytes(each, type_) for each in column.to_pylist()]
    made = arrow_array(values, type_)
    return pa.chunked_array([made]) if isinstance(column, pa.ChunkedArray) else made


def python_values(column: Any) -> list[Any]:
    """The values of a column as rows have them: what Arrow gives, and tuples for arrays and structs.

    >>> python_values(pa.array([[1, None], None])), python_values(pa.array([1, 2]))
    ([(1, None), None], [1, 2])
    """
    values: list[Any] = column.to_pylist()
    if not pa.types.is_nested(column.type):
        return values
    type_ = column_type(column.type)
    assert type_ is not None
    return [frozen(value, type_) for value in values]


def arrow_array(values: Iterable[Any], type_: Type) -> pa.Array:
    """Values of rows in Arrow."""
    return pa.array([thawed(value, type_) for value in values] if type_.is_nested else values, type=arrow_type(type_))
