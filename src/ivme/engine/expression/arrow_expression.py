"""Expressions over whole columns: what `expression.evaluate` gives row by row, in the type that `inference` gives.

A function runs as an Arrow kernel where that kernel means exactly the same (`arrow_functions` knows where); otherwise,
and wherever a row is in error, `evaluate` itself is called, once for each distinct row of the columns that the
expression reads. Errors are therefore always those of `evaluate`. AND, OR, CASE and COALESCE evaluate an argument only
for the rows that get to it, so that a CASE guards a division.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.arrow_types import arrow_type, column_type
from ivme.engine.expression.arrow_functions import KERNELS, widened
from ivme.errors import DataError, ExpressionError
from ivme.query.expression import Call, ColumnRef, Expression, Literal, columns_of, evaluate
from ivme.query.inference import BOOL, in_type, type_of, valued_arguments
from ivme.query.model import Column, Table
from ivme.query.types import Type


def evaluate_columns(expression: Expression, data: pa.Table) -> pa.Array:
    """The expression's value for each row of the data, an array of the expression's type.

    The data's columns have the Arrow types that columns are kept in. An expression that is only ever NULL gives an
    array of Arrow's null type. Raises `DataError` where `evaluate` does for some row.

    >>> half = Call("divide", (ColumnRef("n"), Literal(2)))
    >>> evaluate_columns(half, pa.table({"n": [1, None, 4]})).to_pylist()
    [0.5, None, 2.0]
    """
    return _column(expression, _scope(expression, data))


def evaluate_guarded(expression: Expression, data: pa.Table, kept: npt.NDArray[np.bool_]) -> pa.Array:
    """`evaluate_columns` for the rows that are kept; NULL for the others, for which the expression may well fail."""
    if kept.all():
        return evaluate_columns(expression, data)
    found = evaluate_columns(expression, data.filter(pa.array(kept)))
    return found.take(pa.array(np.cumsum(kept) - 1, mask=~kept))


@dataclass(frozen=True, slots=True)
class _Scope:
    """The rows that an expression is evaluated for: all `rows` of the columns, or those at `chosen`."""

    table: Table
    columns: dict[str, pa.Array]
    rows: int
    chosen: pa.Array | None = None

    def column(self, name: str) -> pa.Array:
        whole = self.columns.get(name.lower())
        if whole is None:
            raise DataError(f"the row has no column {name!r}")
        return whole if self.chosen is None else whole.take(self.chosen)

    def where(self, mask: pa.Array) -> _Scope:
        """The rows for which the mask is true."""
        chosen = pa.array(np.arange(self.rows)) if self.chosen is None else self.chosen
        kept = chosen.filter(mask)
        return _Scope(self.table, self.columns, len(kept), kept)

    def type_of(self, expression: Expression) -> Type | None:
        return type_of(expression, self.table)


def _scope(expression: Expression, data: pa.Table) -> _Scope:
    read = {name.lower() for name in columns_of(expression)}
    fields = [field for field in data.schema if field.name.lower() in read]
    columns = {field.name.lower(): _whole(data.column(field.name)) for field in fields}
    described = tuple(Column(field.name, column_type(field.type)) for field in fields)
    return _Scope(Table("data", described), columns, data.num_rows)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _column(expression: Expression, scope: _Scope) -> pa.Array:
    if isinstance(expression, ColumnRef):
        return scope.column(expression.name)
    if isinstance(expression, Literal):
        return pa.repeat(_scalar(expression, scope), scope.rows)
    lazy = _LAZY.get(expression.function)
    try:
        found = _eagerly(expression, scope) if lazy is None else lazy(expression, scope)
    except pa.ArrowException:
        found = None
    return _row_by_row(expression, scope) if found is None else found


def _scalar(literal: Literal, scope: _Scope) -> pa.Scalar:
    type_ = scope.type_of(literal)
    return pa.scalar(literal.value, pa.null() if type_ is None else arrow_type(type_))


def _eagerly(call: Call, scope: _Scope) -> pa.Array | None:
    """The value of a function that needs all its arguments; None if no kernel gives exactly that."""
    types = [scope.type_of(argument) for argument in call.arguments]
    kernel = KERNELS.get(call.function)
    reads_nothing = next(columns_of(call), None) is None
    if kernel is None or reads_nothing or None in types or any(_is_loose(a, scope) for a in call.arguments):
        return None
    arguments = [_scalar(a, scope) if isinstance(a, Literal) else _column(a, scope) for a in call.arguments]
    found = kernel(call, [type_ for type_ in types if type_ is not None], arguments)
    type_ = scope.type_of(call)
    if found is None or type_ is None or found.type == arrow_type(type_):
        return found
    return found.cast(arrow_type(type_))


def _is_loose(expression: Expression, scope: _Scope) -> bool:
    """Whether `evaluate` gives values inside the expression that its type only holds rounded, or of another kind."""
    if not isinstance(expression, Call):
        return False
    type_ = scope.type_of(expression)
    if type_ is None or not (type_.is_numeric or type_.kind == "timestamp") or expression.function.startswith("cast_"):
        return False
    arguments = valued_arguments(expression)
    if expression.function in ("case", "coalesce"):
        if any(scope.type_of(argument) not in (None, type_) for argument in arguments):
            return True
    elif type_.kind == "decimal" and (expression.function == "divide" or type_.precision == 38):
        return True
    return any(_is_loose(argument, scope) for argument in arguments)


def _row_by_row(expression: Expression, scope: _Scope) -> pa.Array:
    """The values from `evaluate`, called for each distinct row; for each row where floats are read (0.0 and -0.0)."""
    names = list(dict.fromkeys(columns_of(expression)))
    type_ = scope.type_of(expression)
    arrow = pa.null() if type_ is None else arrow_type(type_)
    if not names:
        value = in_type(evaluate(expression, {}), type_, expression) if scope.rows else None
        return pa.repeat(pa.scalar(value, arrow), scope.rows)
    columns = [scope.column(name) for name in names]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    if any(pa.types.is_floating(column.type) for column in columns):
        return pa.array(_each(expression, names, type_, rows), type=arrow)
    known: dict[tuple[Any, ...], Any] = {}
    found = []
    for row in rows:
        if row not in known:
            (known[row],) = _each(expression, names, type_, iter([row]))
        found.append(known[row])
    return pa.array(found, type=arrow)


def _each(expression: Expression, names: list[str], type_: Type | None, rows: Iterator[Any]) -> list[Any]:
    return [in_type(evaluate(expression, dict(zip(names, row, strict=True))), type_, expression) for row in rows]


def _truths(expression: Expression, scope: _Scope) -> pa.Array:
    truths = _column(expression, scope)
    return truths.cast(pa.bool_()) if pa.types.is_null(truths.type) else truths


def _are_truths(conditions: tuple[Expression, ...], scope: _Scope) -> bool:
    return all(scope.type_of(condition) in (None, BOOL) for condition in conditions)


def _connective(call: Call, scope: _Scope) -> pa.Array | None:
    """AND and OR: a later argument counts only in rows that no earlier one has decided."""
    if not _are_truths(call.arguments, scope):
        return None
    combine, decided = (pc.and_kleene, False) if call.function == "and" else (pc.or_kleene, True)
    found = _truths(call.arguments[0], scope)
    for argument in call.arguments[1:]:
        is_open = pc.not_equal(found, decided).fill_null(True)
        if is_open.true_count == scope.rows:
            found = combine(found, _truths(argument, scope))
        else:
            rest = combine(found.filter(is_open), _truths(argument, scope.where(is_open)))
            found = pc.replace_with_mask(found, is_open, rest)
    return found


def _negation(call: Call, scope: _Scope) -> pa.Array | None:
    return pc.invert(_truths(call.arguments[0], scope)) if _are_truths(call.arguments, scope) else None


def _branches(call: Call, scope: _Scope) -> pa.Array | None:
    """CASE and COALESCE: pieces of the result, each with the rows that it is for, put together in the end."""
    type_ = scope.type_of(call)
    values = valued_arguments(call)
    conditions = call.arguments[0:-1:2] if call.function == "case" else ()
    if type_ is None or not _are_truths(conditions, scope):
        return None
    if any(_is_loose(value, scope) and scope.type_of(value) != type_ for value in values):
        return None
    pieces = _case_pieces(call, scope) if call.function == "case" else _coalesce_pieces(call, scope)
    parts, places = zip(*pieces, strict=True)
    joined = pa.concat_arrays([widened(part, type_) for part in parts])
    order = np.empty(scope.rows, dtype=np.int64)
    order[np.concatenate(places)] = np.arange(scope.rows)
    return joined.take(pa.array(order))


_Piece = tuple[pa.Array, np.ndarray[Any, Any]]


def _case_pieces(call: Call, scope: _Scope) -> Iterator[_Piece]:
    places = np.arange(scope.rows)
    for condition, value in zip(call.arguments[0:-1:2], call.arguments[1::2], strict=False):
        hit = _truths(condition, scope).fill_null(False)
        mask = hit.to_numpy(zero_copy_only=False)
        yield _column(value, scope.where(hit)), places[mask]
        scope, places = scope.where(pc.invert(hit)), places[~mask]
    yield _column(call.arguments[-1], scope) if len(call.arguments) % 2 else pa.nulls(scope.rows), places


def _coalesce_pieces(call: Call, scope: _Scope) -> Iterator[_Piece]:
    places = np.arange(scope.rows)
    for argument in call.arguments:
        values = _column(argument, scope)
        valid = values.is_valid()
        mask = valid.to_numpy(zero_copy_only=False)
        yield values.filter(valid), places[mask]
        scope, places = scope.where(pc.invert(valid)), places[~mask]
    yield pa.nulls(scope.rows), places


def _failures(call: Call, scope: _Scope) -> pa.Array:
    """Where one of the arguments has no value. Only those that fail somewhere are looked at row by row."""
    found = np.zeros(scope.rows, dtype=bool)
    for argument in call.arguments:
        try:
            _column(argument, scope)
        except ExpressionError:
            found |= _failing_rows(argument, scope)
    return pa.array(found)


def _failing_rows(argument: Expression, scope: _Scope) -> npt.NDArray[np.bool_]:
    names = list(dict.fromkeys(columns_of(argument)))
    columns = [scope.column(name).to_pylist() for name in names]
    known: dict[tuple[Any, ...], bool] = {}
    found = np.zeros(scope.rows, dtype=bool)
    for i, row in enumerate(zip(*columns, strict=True) if names else [()] * scope.rows):
        if row not in known:
            known[row] = bool(evaluate(Call("fails", (argument,)), dict(zip(names, row, strict=True))))
        found[i] = known[row]
    return found


_LAZY = {
    **dict.fromkeys(("and", "or"), _connective),
    **dict.fromkeys(("case", "coalesce"), _branches),
    "not": _negation,
    "fails": _failures,
}
