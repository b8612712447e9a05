"""The columns of a table from what users have: a mapping, an Arrow schema, a DataFrame, a dataclass."""

from __future__ import annotations

import dataclasses
import datetime
import types
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
    if isinstance(schema, type) and (dataclasses.is_dataclass(schema) or hasattr(schema, "model_fields")):
        return _of_class(schema)
    found = _arrow_schema(schema)
    if found is None:
        raise SchemaError(
            f"table {name} needs a mapping from its columns to their types, an Arrow schema, a DataFrame or a "
            f"dataclass; it is {shown(schema)}"
        )
    return {column.name: column.type for column in columns_of_arrow(found)}


_OF_PYTHON = {
    bool: "bool",
    bytes: "binary",
    datetime.date: "date",
    datetime.datetime: "timestamp",
    float: "float",
    int: "int",
    str: "string",
}


def _of_class(schema: Any) -> dict[str, str]:
    """The fields of a dataclass, or of a model of pydantic."""
    is_plain = dataclasses.is_dataclass(schema)
    names = [field.name for field in dataclasses.fields(schema)] if is_plain else list(schema.model_fields)
    hints = typing.get_type_hints(schema, include_extras=True)
    return {name: _named(hints[name], f"the field {name} of {schema.__name__}") for name in names}


def _named(hint: Any, what: str) -> str:
    """The type that an annotation names; `Annotated[Decimal, "decimal(10, 2)"]` names it itself.

    >>> _named(int | None, "x"), _named(list[str], "x")
    ('int', 'array<string>')
    """
    if hint in _OF_PYTHON:
        return _OF_PYTHON[hint]
    own = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)]
    if own:
        return own[0]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        others = [each for each in arguments if each is not type(None)]
        if len(others) == 1:
            return _named(others[0], what)
    if origin is list and len(arguments) == 1:
        return f"array<{_named(arguments[0], what)}>"
    raise SchemaError(f'{what} is a {hint}, which names no type of a column; write Annotated[..., "decimal(10, 2)"]')


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

    is_ = pa.types
    kinds = (
        (is_.is_boolean, "bool"),
        (is_.is_integer, "int"),
        (is_.is_floating, "float"),
        (is_.is_date, "date"),
        (is_.is_timestamp, "timestamp"),
    )
    for check, kind in kinds:
        if check(arrow):
            return Type(kind)
    if is_.is_dictionary(arrow):
        return _type(arrow.value_type, name)
    if is_.is_decimal(arrow) and arrow.precision <= 38:
        return Type("decimal", arrow.precision, arrow.scale)
    if is_.is_string(arrow) or is_.is_large_string(arrow) or is_.is_string_view(arrow):
        return Type("string")
    if is_.is_binary(arrow) or is_.is_large_binary(arrow) or is_.is_fixed_size_binary(arrow):
        return Type("binary")
    if is_.is_list(arrow) or is_.is_large_list(arrow):
        return Type("array", element=_type(arrow.value_type, name))
    if is_.is_struct(arrow):
        return Type("struct", fields=tuple((field.name, _type(field.type, name)) for field in arrow))
    raise SchemaError(f"column {name} has the Arrow type {arrow}, which no column holds; give its type in a mapping")
