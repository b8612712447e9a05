"""Functions of text over many values at once: what `evaluate` gives row by row, by Arrow's kernels.

For what the kernel's expressions lack (`by_code`), where there are many values. A function runs as an Arrow kernel
where that kernel means exactly the same (`arrow_text` knows where); otherwise, and wherever a value is in error,
`evaluate` itself is called, once for each distinct row of the columns that the expression reads. Errors are therefore
always those of `evaluate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_type, column_type, combined
from ivme.engine.codes.nested_values import arrow_array, python_values
from ivme.engine.expression.arrow_text import KERNELS
from ivme.errors import DataError
from ivme.query.expression import Call, ColumnRef, Expression, Literal, columns_of, evaluate
from ivme.query.inference import in_type, type_of
from ivme.query.model import Column, Table
from ivme.query.types import Type


def evaluate_columns(expression: Expression, data: pa.Table) -> pa.Array:
    """The expression's value for each row of the data, an array of the expression's type.

    The data's columns have the Arrow types of stored columns. An expression that is only ever NULL gives an
    array of Arrow's null type. Raises `DataError` where `evaluate` does for some row.

    >>> long = Call("concat", (Call("upper", (ColumnRef("s"),)), Literal("!")))
    >>> evaluate_columns(long, pa.table({"s": ["a", None, "b"]})).to_pylist()
    ['A!', None, 'B!']
    """
    return _column(expression, _scope(expression, data))


@dataclass(frozen=True, slots=True)
class _Scope:
    """The columns that an expression is evaluated over."""

    table: Table
    columns: dict[str, pa.Array]
    rows: int

    def column(self, name: str) -> pa.Array:
        found = self.columns.get(name.lower())
        if found is None:
            raise DataError(f"the row has no column {name!r}")
        return found

    def type_of(self, expression: Expression) -> Type | None:
        return type_of(expression, self.table)


def _scope(expression: Expression, data: pa.Table) -> _Scope:
    read = {name.lower() for name in columns_of(expression)}
    fields = [field for field in data.schema if field.name.lower() in read]
    columns = {field.name.lower(): combined(data.column(field.name)) for field in fields}
    described = tuple(Column(field.name, column_type(field.type)) for field in fields)
    return _Scope(Table("data", described), columns, data.num_rows)


def _column(expression: Expression, scope: _Scope) -> pa.Array:
    if isinstance(expression, ColumnRef):
        return scope.column(expression.name)
    if isinstance(expression, Literal):
        return pa.repeat(_scalar(expression, scope), scope.rows)
    try:
        found = _at_once(expression, scope)
    except pa.ArrowException:
        found = None
    return _row_by_row(expression, scope) if found is None else found


def _scalar(literal: Literal, scope: _Scope) -> pa.Scalar:
    type_ = scope.type_of(literal)
    return pa.scalar(literal.value, pa.null() if type_ is None else arrow_type(type_))


def _at_once(call: Call, scope: _Scope) -> pa.Array | None:
    """The value by an Arrow kernel; None if none gives exactly that."""
    types = [scope.type_of(argument) for argument in call.arguments]
    kernel, type_ = KERNELS.get(call.function), scope.type_of(call)
    if kernel is None or type_ is None or None in types or next(columns_of(call), None) is None:
        return None
    arguments = [_scalar(a, scope) if isinstance(a, Literal) else _column(a, scope) for a in call.arguments]
    found = kernel(call, [each for each in types if each is not None], arguments)
    return found if found is None or found.type == arrow_type(type_) else found.cast(arrow_type(type_))


def _row_by_row(expression: Expression, scope: _Scope) -> pa.Array:
    """The values from `evaluate`, called for each distinct row; for each row where floats are read (0.0 and -0.0)."""
    names = list(dict.fromkeys(columns_of(expression)))
    type_ = scope.type_of(expression)
    arrow = pa.null() if type_ is None else arrow_type(type_)
    if not names:
        value = in_type(evaluate(expression, {}), type_, expression) if scope.rows else None
        return pa.repeat(pa.scalar(value, arrow), scope.rows)
    columns = [scope.column(name) for name in names]
    rows = zip(*map(python_values, columns), strict=True)
    if any(pa.types.is_floating(column.type) for column in columns):
        return _array(_each(expression, names, type_, rows), type_)
    known: dict[tuple[Any, ...], Any] = {}
    found = []
    for row in rows:
        if row not in known:
            (known[row],) = _each(expression, names, type_, iter([row]))
        found.append(known[row])
    return _array(found, type_)


def _array(values: list[Any], type_: Type | None) -> pa.Array:
    return pa.nulls(len(values)) if type_ is None else arrow_array(values, type_)


def _each(expression: Expression, names: list[str], type_: Type | None, rows: Iterator[Any]) -> list[Any]:
    return [in_type(evaluate(expression, dict(zip(names, row, strict=True))), type_, expression) for row in rows]
