"""Our types in Spark, and whether a source still has the columns that a table was declared with.

A source whose columns have changed is refused by the name of the column; nothing is converted that could lose
anything. Text is parsed, since some formats have nothing else, and what does not parse is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa
from pyspark.sql import types as st

from ivme.errors import SchemaError
from ivme.query.model import Column, Table
from ivme.query.types import Type
from ivme.spark.pipeline.texts import type_name

_SPARK: dict[str, st.DataType] = {
    "int": st.LongType(),
    "float": st.DoubleType(),
    "string": st.StringType(),
    "bool": st.BooleanType(),
    "date": st.DateType(),
    "timestamp": st.TimestampNTZType(),
    "binary": st.BinaryType(),
}

_SAFE: dict[str, tuple[type[st.DataType], ...]] = {
    "int": (st.ByteType, st.ShortType, st.IntegerType, st.LongType),
    "float": (st.FloatType, st.DoubleType, st.ByteType, st.ShortType, st.IntegerType),
    "string": (st.StringType, st.VarcharType, st.CharType),
    "bool": (st.BooleanType,),
    "date": (st.DateType,),
    "timestamp": (st.TimestampNTZType, st.TimestampType),
    "binary": (st.BinaryType,),
}
"""The types that become ours without loss; text becomes anything by parsing."""


def spark_type(type_: Type) -> st.DataType:
    """The Spark type of a column.

    >>> spark_type(Type("decimal", 12, 2)).simpleString(), spark_type(Type("int")).simpleString()
    ('decimal(12,2)', 'bigint')
    """
    if type_.kind == "decimal":
        return st.DecimalType(type_.precision or 38, type_.scale or 0)
    if type_.element is not None:
        return st.ArrayType(spark_type(type_.element))
    if type_.fields:
        return st.StructType([st.StructField(name, spark_type(each)) for name, each in type_.fields])
    return _SPARK[type_.kind]


def spark_schema(schema: pa.Schema) -> st.StructType:
    """Spark's own reading of an Arrow schema, for which no job is needed."""
    from pyspark.sql.pandas.types import from_arrow_schema

    found = from_arrow_schema(schema)
    assert isinstance(found, st.StructType)
    return found


def column_type(column: Column) -> Type:
    """The declared type of a pipeline's column; the file's reader has seen to it that there is one."""
    assert column.type is not None
    return column.type


def file_schema(table: Table, extra: Iterable[tuple[str, st.DataType]] = ()) -> st.StructType:
    """The layout of files that have a table's columns and some more."""
    columns = [st.StructField(column.name, spark_type(column_type(column))) for column in table.columns]
    return st.StructType([*columns, *(st.StructField(name, kind) for name, kind in extra)])


def check_columns(
    what: str, found: st.StructType, wanted: st.StructType, *, exactly: bool, is_first: bool = False
) -> None:
    """Refuses a source by the names of the columns that are missing, new (if they must agree exactly) or changed.

    What is read for the first time has not drifted: it never was as the pipeline has it.
    """
    names = {field.name.lower(): field for field in found}
    check_names(what, found.names, wanted.names, exactly=exactly, is_first=is_first)
    for field in wanted:
        there = names[field.name.lower()].dataType
        if not _fits(there, field.dataType) and is_first:
            has, needs = type_name(there), type_name(field.dataType)
            raise SchemaError(
                f"column {field.name} of {what} is {has}, and the table has {needs}: declare it as {has}, or convert "
                f'it with select: {{{field.name}: "CAST({field.name} AS {field.dataType.simpleString()})"}}'
            )
        if not _fits(there, field.dataType):
            raise SchemaError(
                f"schema drift: column {field.name} of {what} is {there.simpleString()} now; the pipeline has "
                f"{field.dataType.simpleString()}, which not all its values fit"
            )


def check_names(
    what: str, found: Iterable[str], wanted: Collection[str], *, exactly: bool, is_first: bool = False
) -> None:
    """The part of the check that needs no types."""
    found = list(found)
    has, needs = {name.lower() for name in found}, {name.lower() for name in wanted}
    missing = [name for name in wanted if name.lower() not in has]
    extra = [name for name in found if name.lower() not in needs] if exactly else []
    if missing or extra:
        parts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(extra)} besides"] * bool(extra)
        raise SchemaError(
            f"{'' if is_first else 'schema drift: '}{what} {' and '.join(parts)}; its columns are "
            f"{', '.join(found) or 'none'}, and the pipeline has {', '.join(wanted)}{_separated(found)}"
        )


def _separated(found: list[str]) -> str:
    """What to say of a header that is one name because something else than a comma is between the names."""
    between = next((sign for sign in ";\t|" if len(found) == 1 and sign in found[0]), None)
    return "" if between is None else f"; for values with {between!r} between them say options: {{sep: {between!r}}}"


def exact_columns(given: st.StructType, table: Table) -> set[str]:
    """The columns of a table, in lower case, whose types take what is given without loss and without reading texts."""
    types = {field.name.lower(): field.dataType for field in given}
    wanted = [(column.name.lower(), spark_type(column_type(column))) for column in table.columns]
    found = [(name, types.get(name), kind) for name, kind in wanted]
    return {
        name
        for name, there, kind in found
        if there is not None and not isinstance(there, st.StringType) and _fits(there, kind)
    }


def _fits(found: st.DataType, wanted: st.DataType) -> bool:
    if isinstance(wanted, st.ArrayType):
        return isinstance(found, st.ArrayType) and _fits(found.elementType, wanted.elementType)
    if isinstance(wanted, st.StructType):
        names = [name.lower() for name in wanted.names]
        if not isinstance(found, st.StructType) or [name.lower() for name in found.names] != names:
            return False
        return all(_fits(f.dataType, w.dataType) for f, w in zip(found, wanted, strict=True))
    if found == wanted or isinstance(found, st.StringType | st.NullType):
        return True
    if isinstance(wanted, st.DecimalType):
        if isinstance(found, st.DecimalType):
            whole = wanted.precision - wanted.scale
            return found.scale <= wanted.scale and found.precision - found.scale <= whole
        return isinstance(found, _SAFE["int"])
    kind = next(kind for kind, spark in _SPARK.items() if spark == wanted)
    return isinstance(found, _SAFE[kind])
