"""The types that SQL names, in casts and in CREATE TABLE."""

from __future__ import annotations

import re

from sqlglot import exp

from ivme.errors import SchemaError
from ivme.query.sql_text import DIALECT, SqlText
from ivme.query.types import Type, parse_type

_DECIMAL = re.compile(r"\bDECIMAL\b(?!\s*\()", re.IGNORECASE)

NARROW = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32}
"""The bits of Spark's smaller integers; ours have 64, and those that do not fit the smaller ones are errors."""

_TIMESTAMPS = (exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPTZ)
"""Spark's timestamps with and without a zone; ours are UTC."""


def read_type(source: SqlText, node: exp.DataType) -> Type:
    """The column type that a SQL type names; DECIMAL alone is DECIMAL(10, 0), as in Spark."""
    text = "TIMESTAMP" if node.this in _TIMESTAMPS else node.sql(dialect=DIALECT)
    time = next((each for each in node.find_all(exp.DataType) if each.this == exp.DType.TIME), None)
    if time is not None:  # sqlglot would make it a TIMESTAMP
        raise source.unsupported("unknown type 'time'", time, "use STRING, or BIGINT for the seconds of a day")
    try:
        return parse_type(_DECIMAL.sub("DECIMAL(10, 0)", text))
    except SchemaError as error:
        message, _, instead = str(error).partition("; ")
        types = "use BIGINT, DOUBLE, DECIMAL(p, s), STRING, BOOLEAN, DATE, TIMESTAMP, BINARY, ARRAY or STRUCT"
        instead = instead if instead and not instead.startswith("use one of") else types
        raise source.unsupported(message, node, instead) from error


def refuse_without_zone(source: SqlText, node: exp.Expr) -> None:
    """Refuses TIMESTAMP WITHOUT TIME ZONE of a text: sqlglot takes it for TIMESTAMP, which does not drop a zone."""
    without = next((token for token in source.tokens if token.text.upper() == "WITHOUT"), None)
    if without is not None and node.args["to"].this == exp.DType.TIMESTAMPTZ:
        message = "a CAST of a text to TIMESTAMP WITHOUT TIME ZONE is not supported"
        raise source.unsupported(message, node, "write TIMESTAMP_NTZ, which is the same")


def type_node(type_: Type) -> exp.DataType:
    """A type as CAST and CREATE TABLE write it: a float of ours is a DOUBLE.

    >>> type_node(parse_type("struct<float float, n array<int>>")).sql("spark")
    'STRUCT<`float`: DOUBLE, `n`: ARRAY<BIGINT>>'
    """
    if type_.element is not None:
        return exp.DataType(this=exp.DType.ARRAY, expressions=[type_node(type_.element)], nested=True)
    if type_.fields:
        fields = [
            exp.ColumnDef(this=exp.to_identifier(name, quoted=True), kind=type_node(each))
            for name, each in type_.fields
        ]
        return exp.DataType(this=exp.DType.STRUCT, expressions=fields, nested=True)
    return exp.DataType.build({"float": "DOUBLE", "int": "BIGINT"}.get(type_.kind, str(type_)), dialect=DIALECT)
