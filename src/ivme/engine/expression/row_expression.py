"""Expressions over one row of Python values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ivme.query.expression import Call, ColumnRef, Expression, evaluate

Row = tuple[Any, ...]
"""The values of a row in the order of its table's columns, or of a tuple in the order of its schema."""


def getter(expression: Expression, columns: tuple[str, ...], guard: Expression | None = None) -> Callable[[Row], Any]:
    """A function from a row with these columns to the value of an expression, which is NULL where a guard fails."""
    if guard is not None:
        expression = Call("case", (guard, expression))
    names = [column.lower() for column in columns]
    if isinstance(expression, ColumnRef):
        position = names.index(expression.name.lower())
        return lambda row: row[position]
    return lambda row: evaluate(expression, dict(zip(columns, row, strict=True)))
