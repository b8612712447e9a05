"""Constants: values of parameters as parts of a syntax tree, and the values of expressions without columns."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp

from ivme.errors import SchemaError, shown
from ivme.query.column_defaults import NOTHING, as_assigned, cast_text, from_nothing
from ivme.query.expression import evaluate
from ivme.query.inference import type_of
from ivme.query.sql_literals import read_number
from ivme.query.sql_text import DIALECT, SqlText
from ivme.query.table_expression import Parameters, literal, read_expression, read_value
from ivme.query.types import Type
from ivme.query.written import in_place_of

_SAFE = 2**53


def plain_value(value: Any) -> Any:
    """A value of Python for one of NumPy, and a list for an array."""
    if isinstance(value, np.generic):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) else value


def given(source: SqlText, node: exp.Placeholder, values: Parameters) -> Any:
    """The value of a parameter; an error at its place if it has none."""
    if not node.this:
        raise source.unsupported("a parameter needs a name", node, "write :name")
    if node.name not in values.given:
        raise source.unknown(f"the parameter :{node.name} has no value", node, f"give {node.name}=...")
    values.used.add(node.name)
    return values.given[node.name]


def with_values(source: SqlText, tree: exp.Expr, values: Parameters) -> exp.Expr:
    """The tree with constants in the place of its parameters; `x IN (:list)` has one for each member."""
    tree = _with_lists(tree.copy())
    for node in list(tree.find_all(exp.Placeholder)):
        value = given(source, node, values)
        listing = node.parent if isinstance(value, list | tuple) else None
        if isinstance(listing, exp.In) and node.arg_key == "expressions":
            members = [in_place_of(constant_node(each, node.name), node) for each in value or ()]
            others = [each for each in listing.expressions if each is not node]
            if others or members:
                listing.set("expressions", [*others, *members])
            else:
                listing.replace(exp.Boolean(this=False))
            continue
        made = in_place_of(constant_node(value, node.name), node)
        if node is tree:
            return made
        node.replace(made)
    return tree


def _with_lists(tree: exp.Expr) -> exp.Expr:
    """The tree with `x IN (:list)` for `x = ANY (:list)`."""
    for node in list(tree.find_all(exp.EQ)):
        listed = node.expression.this.unnest() if isinstance(node.expression, exp.Any) else None
        if isinstance(listed, exp.Placeholder):
            made = exp.In(this=node.this.copy(), expressions=[listed.copy()])
            if node is tree:
                return made
            node.replace(made)
    return tree


def default_values(source: SqlText) -> dict[str, Any]:
    """The values of the parameters that have a default in the text."""
    found = {}
    for default in source.defaults:
        node = sqlglot.parse_one(source.text[default.start : default.end], read=DIALECT)
        found[default.parameter] = typed_value(source, node, Parameters({}))[0]
    return found


def constant_node(value: Any, name: str) -> exp.Expr:
    """A Python value as a constant of SQL."""
    literal(value, f"the parameter :{name}")
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        number = exp.Literal.number(abs(value))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, bytes):
        return exp.HexString(this=value.hex())
    if isinstance(value, float):
        return cast_text(repr(value), "DOUBLE")
    if isinstance(value, datetime.datetime):
        return cast_text(value.isoformat(" "), "TIMESTAMP")
    if isinstance(value, datetime.date):
        return cast_text(value.isoformat(), "DATE")
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        scale = max(-int(exponent), 0)
        precision = max(len(digits) + max(int(exponent), 0), scale, 1)
        return cast_text(f"{value:f}", f"DECIMAL({precision}, {scale})")
    raise SchemaError(f"the parameter :{name} is {shown(value)}, which no column holds")


def with_time(node: exp.Expr, values: Parameters) -> exp.Expr:
    """The time of the statement in the place of NOW() and the like, in UTC, as all times are."""

    def timed(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.CurrentDate):
            return in_place_of(constant_node(values.moment.date(), "now"), each)
        if isinstance(each, exp.CurrentTimestamp) or (isinstance(each, exp.Anonymous) and each.name.upper() == "NOW"):
            return in_place_of(constant_node(values.moment, "now"), each)
        return each

    return node.copy().transform(timed) if node.find(*_NOW) is not None else node


_NOW = (exp.CurrentDate, exp.CurrentTimestamp, exp.Anonymous)


def value_of(source: SqlText, node: exp.Expr, wanted: Type, values: Parameters) -> Any:
    """The value that an expression without columns gives to a column."""
    if isinstance(node, exp.Placeholder) and node.this:
        value = given(source, node, values)
        if not _is_converted(value, wanted):
            return value
        node = in_place_of(constant_node(value, node.name), node)
    node = as_assigned(with_time(node, values), wanted)
    plain = _plain(source, node, wanted)
    if plain is not None:
        return plain
    return evaluate(read_value(source, from_nothing(), node, NOTHING, wanted, values), {})


def _is_converted(value: Any, wanted: Type) -> bool:
    """Whether a column takes a parameter as it does a constant: texts for times, and numbers converted as Spark does.

    What fits exactly is taken as it is, which spares reading an expression for each row.
    """
    if isinstance(value, str):
        return wanted.kind in ("date", "timestamp")
    if isinstance(value, float):
        return wanted.kind in ("decimal", "int") and math.isfinite(value)
    is_short = isinstance(value, Decimal) and -int(value.as_tuple().exponent) <= (wanted.scale or 0)
    return (
        isinstance(value, Decimal) and value.is_finite() and wanted.kind in ("decimal", "int", "float") and not is_short
    )


def typed_value(source: SqlText, node: exp.Expr, values: Parameters) -> tuple[Any, Type | None]:
    """The value of an expression without columns, and its type; None if it is NULL."""
    expression = read_expression(source, from_nothing(), node, NOTHING, values)
    return evaluate(expression, {}), type_of(expression, NOTHING)


def _plain(source: SqlText, node: exp.Expr, wanted: Type) -> Any:
    """The value of a literal that the column takes as it is; None for all else."""
    if isinstance(node, exp.Boolean) and wanted.kind == "bool":
        return bool(node.this)
    sign = "-" if isinstance(node, exp.Neg) else ""
    inner = node.this if sign else node
    if not isinstance(inner, exp.Literal):
        return None
    if inner.is_string:
        return str(inner.this) if wanted.kind == "string" and not sign else None
    value = read_number(source, inner, sign).value
    if isinstance(value, int):
        return value if wanted.kind == "int" or (wanted.kind == "float" and abs(value) <= _SAFE) else None
    return float(value) if wanted.kind == "float" else None
