"""The Arrow types of columns, and back: one Arrow type for each of ours."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa

from ivme.errors import SchemaError
from ivme.query.model import Column, Table
from ivme.query.types import Type

_ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "binary": pa.binary(),
}
_DIGITS, _WIDE_DIGITS = 38, 76
"""Of all numbers with so many digits, decimal128 and decimal256 hold each."""

_KINDS = {arrow: kind for kind, arrow in _ARROW.items()}


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type in which columns of a type are stored.

    >>> str(arrow_type(Type("decimal", 12, 2))), str(arrow_type(Type("timestamp")))
    ('decimal128(12, 2)', 'timestamp[us]')
    """
    if type_.kind == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    if type_.element is not None:
        return pa.list_(arrow_type(type_.element))
    if type_.fields:
        return pa.struct([pa.field(name, arrow_type(each)) for name, each in type_.fields])
    return _ARROW[type_.kind]


def column_type(arrow: pa.DataType) -> Type | None:
    """The type whose columns are stored in an Arrow type; None for Arrow's null type."""
    if pa.types.is_decimal128(arrow):
        return Type("decimal", arrow.precision, arrow.scale)
    if pa.types.is_null(arrow):
        return None
    if pa.types.is_list(arrow):
        return Type("array", element=column_type(arrow.value_type))
    if pa.types.is_struct(arrow):
        return Type("struct", fields=tuple((field.name, field_type(field)) for field in arrow))
    kind = _KINDS.get(arrow)
    if kind is None:
        raise SchemaError(f"no column is stored as {arrow}; ingest.to_arrow converts data to the stored types")
    return Type(kind)


def field_type(field: pa.Field) -> Type:
    found = column_type(field.type)
    if found is None:
        raise SchemaError(f"the field {field.name} of a struct is NULL everywhere and has no type")
    return found


@lru_cache(maxsize=256)
def arrow_schema(table: Table) -> pa.Schema:
    """A table's columns in Arrow; every column needs a declared type."""
    return pa.schema([(column.name, arrow_type(declared_type(table, column))) for column in table.columns])


def declared_type(table: Table, column: Column) -> Type:
    """A column's type, or `SchemaError` if it is undeclared."""
    if column.type is None:
        raise SchemaError(f"column {column.name} of table {table.name} has no type; declare one")
    return column.type


def cast_decimals(values: Any, wanted: pa.DataType) -> Any:
    """Decimals in another type of decimals; `ArrowInvalid` if one does not fit.

    Arrow moves the point without a look at what goes over the end of its words: 27737044 as a decimal(38, 35) is
    628.2722..., so that numbers go by way of words that hold them.
    """
    given = values.type
    digits = given.precision + max(wanted.scale - given.scale, 0)
    if digits > _WIDE_DIGITS:
        raise pa.ArrowInvalid(f"{given} may have more digits than fit {wanted}")
    if digits > _DIGITS:
        values = values.cast(pa.decimal256(_WIDE_DIGITS, max(wanted.scale, given.scale)))
    return values.cast(wanted)


def combined(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array.

    Chunks without rows are left out: Arrow fails where one that came over a stream begins behind the end of its memory.
    """
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    return chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks, column.type).combine_chunks()
