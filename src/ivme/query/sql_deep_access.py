"""Arrays, structs and maps are carried, compared and counted as wholes: what looks into them is refused by name."""

from __future__ import annotations

from sqlglot import exp

from ivme.errors import UnsupportedError
from ivme.query.sql_text import SqlText
from ivme.query.written import spelled

FLATTEN = "store what you need of it as columns, or its elements as rows of a separate table, before loading"

_NAMES = (
    *("cardinality", "get", "arrays_overlap", "arrays_zip", "array_size", "array_position", "try_element_at"),
    *("exists", "forall", "zip_with", "map_filter", "map_concat", "map_entries", "transform_keys", "transform_values"),
    *("named_struct", "inline_outer", "explode_outer", "posexplode_outer", "map_contains_key", "map_values"),
)
"""Functions of arrays and maps that sqlglot does not know."""

_NODES = (
    *(exp.Bracket, exp.Dot, exp.Explode, exp.Posexplode, exp.Inline, exp.Unnest, exp.Struct, exp.Map, exp.VarMap),
    *(exp.Flatten, exp.Transform, exp.Reduce, exp.GenerateSeries, exp.RegexpSplit, exp.Split, exp.MapKeys),
)


def deep_access(source: SqlText, node: exp.Expr) -> UnsupportedError | None:
    """The refusal of what looks into an array, struct or map, or makes one; None if a node does neither."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES
    arrays = type(node).__name__.startswith("Array") and not isinstance(node, exp.AggFunc)
    if not (named or arrays or isinstance(node, _NODES)):
        return None
    start, end = node.meta.get("start"), node.meta.get("end")
    written = "UNNEST" if isinstance(node, exp.Unnest) else spelled(node)
    name = written if start is None or end is None else f"the function {source.text[start : end + 1].upper()}"
    message = f"{name} is not supported: arrays and structs are carried, compared and counted as wholes"
    constant = isinstance(node, exp.Array | exp.Struct)
    return source.unsupported(message, node, "compare with a parameter: column = :name" if constant else FLATTEN)


def field_access(source: SqlText, node: exp.Column, column: str) -> UnsupportedError:
    """The refusal of a field of a struct."""
    message = f"{spelled(node)} is not supported: {column} is a column, and the fields of structs cannot be read"
    return source.unsupported(message, node, FLATTEN)
