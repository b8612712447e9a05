"""The columns of a table from what users have: a mapping, an Arrow schema, a DataFrame, a dataclass."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ivme.errors import SchemaError, shown
from ivme.query.model import Column
from ivme.query.types import Type

if TYPE_CHECKING:
    import pyarrow as pa


def columns_of(name: str, schema: Any) -> Mapping[str, Any]:
    """The columns of a schema and their types, in whatever form it is given.

    >>> import pyarrow as pa
    >>> {name: str(type_) for name, type_ in columns_of("t", pa.schema([("a", pa.int32()), ("b", pa.utf8())])).items()}
    {'a': 'int', 'b': 'string'}
    """
    if isinstance(schema, Mapping):
        return schema
    if isinstance(schema, type) and dataclasses.is_dataclass(schema):
        return _of_dataclass(schema)
    found = _arrow_schema(schema)
    if found is None:
        raise SchemaError(
            f"table {name} needs a mapping from its columns to their types, an Arrow schema, a DataFrame or a "
            f"dataclass; it is {shown(schema)}"
        )
    return {column.name: column.type for column in columns_of_arrow(found)}


def _of_dataclass(schema: type) -> dict[str, Any]:
    hints = typing.get_type_hints(schema)
    return {field.name: hints[field.name] for field in dataclasses.fields(schema)}


def _arrow_schema(schema: Any) -> pa.Schema | None:
    """The Arrow schema of what has one: Arrow's own, pandas' and polars' DataFrames, and whatever streams Arrow."""
    import pyarrow as pa

    if isinstance(schema, pa.Schema):
        return schema
    own = getattr(schema, "schema", None)
    if isinstance(own, pa.Schema):  # a table, a batch, a reader, a dataset
        return own
    if type(schema).__module__.partition(".")[0] == "pandas" and hasattr(schema, "columns"):
        return pa.Schema.from_pandas(schema, preserve_index=False)
    if hasattr(schema, "__arrow_c_schema__"):
        return pa.schema(schema)
    if hasattr(schema, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(schema).schema
    return None


def columns_of_arrow(schema: pa.Schema) -> tuple[Column, ...]:
    """The columns that hold what an Arrow schema describes."""
    return tuple(Column(field.name, _type(field.type, field.name)) for field in schema)


def _type(arrow: pa.DataType, name: str) -> Type:
    """The type of a column for values of an Arrow type; small integers and floats become the one that we have."""
    import pyarrow as pa

    types = pa.types
    kinds = (
        (types.is_boolean, "bool"),
        (types.is_integer, "int"),
        (types.is_floating, "float"),
        (types.is_date, "date"),
        (types.is_timestamp, "timestamp"),
    )
    for check, kind in kinds:
        if check(arrow):
            return Type(kind)
    if types.is_dictionary(arrow):
        return _type(arrow.value_type, name)
    if types.is_decimal(arrow) and arrow.precision <= 38:
        return Type("decimal", arrow.precision, arrow.scale)
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return Type("string")
    if types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow):
        return Type("binary")
    if types.is_list(arrow) or types.is_large_list(arrow):
        return Type("array", element=_type(arrow.value_type, name))
    if types.is_struct(arrow):
        return Type("struct", fields=tuple((field.name, _type(field.type, name)) for field in arrow))
    raise SchemaError(f"column {name} has the Arrow type {arrow}, which no column holds; give its type in a mapping")
