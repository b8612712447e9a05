"""Expressions over codes: arithmetic of whole numbers and comparisons with constants, as NumPy does them.

What these functions give is exactly what `evaluate_columns` gives, at a fraction of its cost for a small batch. They
know only the common cases, and give up (None) on all others: for good when they are made, or for one batch where the
numbers may not fit 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.value_check import INT_LIMIT
from ivme.errors import DataError
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.inference import literal_type, type_of
from ivme.query.model import Table
from ivme.query.types import Type

Mask = npt.NDArray[np.bool_]

_NARROW_DIGITS = 18
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEVER_NULL = ("eq", "gt", "ge")
"""Comparisons with a constant on the right that the code of NULL, the least of all, fails by itself."""


class CodedRows(Protocol):
    """Rows whose columns are there as codes."""

    def code(self, position: int) -> Codes: ...


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers, those of decimals without their point; 0 where `null`. No magnitude is above `bound`."""

    values: Any
    null: Mask | None
    bound: int


Numeric = Callable[[CodedRows], Numbers | None]
Test = Callable[[CodedRows], Mask]


def code_test(expression: Expression, table: Table, domains: Domains) -> Test | None:
    """Where a predicate holds."""
    if not isinstance(expression, Call):
        return None
    if expression.function in ("and", "or"):
        tests = [code_test(argument, table, domains) for argument in expression.arguments]
        known = [test for test in tests if test is not None]
        combine = np.logical_and if expression.function == "and" else np.logical_or
        return None if len(known) < len(tests) else lambda rows: combine.reduce([test(rows) for test in known])
    if expression.function not in _COMPARISONS:
        return None
    left, right = expression.arguments
    if isinstance(left, Literal):
        return _compared(_MIRRORED[expression.function], right, left, table, domains)
    return _compared(expression.function, left, right, table, domains)


def _compared(function: str, left: Expression, right: Expression, table: Table, domains: Domains) -> Test | None:
    if not isinstance(left, ColumnRef) or not isinstance(right, Literal):
        return None
    type_, constant = type_of(left, table), literal_type(right.value)
    if type_ is None or constant is None or (constant.kind, type_.kind) not in _comparable(type_):
        return None
    domain = domains.domain(type_)
    if not domain.orders_by_code and function not in ("eq", "ne"):
        return None
    try:
        code = domain.encode_value(right.value)
    except DataError:
        return None
    compare, position = _COMPARISONS[function], _position(left, table)
    if function in _NEVER_NULL:
        return lambda rows: compare(rows.code(position), code)
    return lambda rows: compare(rows.code(position), code) & (rows.code(position) != NULL_CODE)


def _comparable(type_: Type) -> tuple[tuple[str, str], ...]:
    return ((type_.kind, type_.kind), ("int", "decimal"))


def code_number(expression: Expression, table: Table) -> Numeric | None:
    """The values of an expression of ints and decimals; a batch whose numbers may be too large gives None."""
    if isinstance(expression, Literal):
        return None
    return _number(expression, table)


def _number(expression: Expression, table: Table) -> Numeric | None:
    type_ = type_of(expression, table)
    if type_ is None or type_.kind not in ("int", "decimal"):
        return None
    if isinstance(expression, Literal):
        whole = int(Decimal(expression.value).scaleb(type_.scale or 0))
        constant = Numbers(whole, None, abs(whole))
        return lambda _: constant
    if isinstance(expression, ColumnRef):
        narrow = type_.precision is None or type_.precision <= _NARROW_DIGITS
        return _column(_position(expression, table)) if narrow else None
    if expression.function in ("add", "subtract", "multiply"):
        return _arithmetic(expression, type_, table)
    return None


def _position(column: ColumnRef, table: Table) -> int:
    return next(i for i, each in enumerate(table.columns) if each.name.lower() == column.name.lower())


def _column(position: int) -> Numeric:
    def numbers(rows: CodedRows) -> Numbers:
        codes = rows.code(position)
        least, most = int(codes.min(initial=0)), int(codes.max(initial=0))
        if least != NULL_CODE:
            return Numbers(codes, None, max(-least, most))
        null = codes == NULL_CODE
        values = np.where(null, 0, codes)
        return Numbers(values, null, max(-int(values.min(initial=0)), most))

    return numbers


def _arithmetic(call: Call, type_: Type, table: Table) -> Numeric | None:
    left, right = (_number(argument, table) for argument in call.arguments)
    scales = [getattr(type_of(argument, table), "scale", None) or 0 for argument in call.arguments]
    scale = type_.scale or 0
    if left is None or right is None:
        return None
    if call.function == "multiply":
        return _limited(left, right, np.multiply, 1, 1, type_) if sum(scales) == scale else None
    operation = np.add if call.function == "add" else np.subtract
    shifts = [10 ** (scale - own) for own in scales if own <= scale]
    return _limited(left, right, operation, shifts[0], shifts[1], type_) if len(shifts) == len(scales) else None


def _limited(left: Numeric, right: Numeric, operation: Any, up: int, also_up: int, type_: Type) -> Numeric:
    """An operation on two columns, the first times `up` and the second times `also_up`, within what a type holds."""
    limit = INT_LIMIT if type_.precision is None else min(INT_LIMIT, 10**type_.precision - 1)

    def numbers(rows: CodedRows) -> Numbers | None:
        one, other = left(rows), right(rows)
        if one is None or other is None:
            return None
        bounds = one.bound * up, other.bound * also_up
        bound = bounds[0] * bounds[1] if operation is np.multiply else sum(bounds)
        if max(bound, *bounds) > limit:
            return None
        first = one.values if up == 1 else one.values * up
        second = other.values if also_up == 1 else other.values * also_up
        null = other.null if one.null is None else one.null if other.null is None else one.null | other.null
        values = operation(first, second)
        return Numbers(values if null is None else np.where(null, 0, values), null, bound)

    return numbers


def number_form(numbers: Numbers, form: str) -> Codes:
    """Numbers as a column of a feed: "low" and "high" words, "known", or codes."""
    if form == "high":
        return np.asarray(numbers.values >> 63)
    if form == "low":
        return np.ascontiguousarray(numbers.values)
    values = np.zeros(len(numbers.values), np.int64) if form == "known" else numbers.values
    return values if numbers.null is None else np.where(numbers.null, NULL_CODE, values)


def has_codes(type_: Type) -> bool:
    """Whether the code of a number of a type is the number itself."""
    return type_.kind == "int" or (type_.precision is not None and type_.precision <= _NARROW_DIGITS)
