"""Aggregates that need all values of a group: from the values in order to the value that is shown.

Time is linear in the distinct values of the group, for STRING_AGG in all values. Positions of percentiles are computed
in floats, in the order of operations that Spark has, so that both give the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

from ivme.algebra.exact import ExactSum
from ivme.query.aggregate_function import Finish, Fold, Values
from ivme.query.order_key import last_part
from ivme.query.sql_values import DECIMALS
from ivme.query.types import Type


def continuous(values: Values, options: Sequence[Any], *_: object) -> float:
    """PERCENTILE_CONT: between the two values around the position, in proportion; `options` are fraction and direction.

    >>> continuous([(1, 1), (2, 1), (4, 2)], (Decimal("0.5"), False))
    3.0
    """
    fraction, is_descending = options
    ordered = values[::-1] if is_descending else values
    last = sum(count for _, count in values) - 1
    position = last * float(fraction)
    lower, upper = math.floor(position), math.ceil(position)
    below, above = value_at(ordered, lower), value_at(ordered, upper)
    if lower == upper or below == above:
        return float(below)
    return (upper - position) * float(below) + (position - lower) * float(above)


def discrete(values: Values, options: Sequence[Any], *_: object) -> float:
    """PERCENTILE_DISC: the first value that so large a part of the group does not exceed."""
    fraction, is_descending = options
    total = sum(count for _, count in values)
    place = max(0, math.ceil(total * float(fraction)) - 1)
    return float(value_at(values[::-1] if is_descending else values, place))


def value_at(values: Values, position: int) -> Any:
    """The value at a position among all, from 0."""
    for value, count in values:
        position -= count
        if position < 0:
            return value
    raise IndexError(position)


def mode(values: Values, options: Sequence[Any], *_: object) -> Any:
    """MODE: the most frequent value, of several the least, or the greatest if the order is descending."""
    (is_descending,) = options
    ordered = reversed(values) if is_descending else values
    return max(ordered, key=lambda each: each[1])[0]


def joined(values: Values, options: Sequence[Any], *_: object) -> str:
    """STRING_AGG; `options` are the separator, the form of the keys if values are keys, and whether each comes once."""
    separator, form, is_distinct = options
    counted = ((v, 1) for v, _ in values) if is_distinct else values
    if form:
        counted = ((last_part(value, form, _STRING), count) for value, count in counted)
    return str(separator).join(value for value, count in counted for _ in range(count))


_STRING = Type("string")


def collected(values: Values, options: Sequence[Any], _summed: Type, shown: Type, _where: str) -> tuple[Any, ...]:
    """ARRAY_AGG; `options` are the form of the keys if values are keys, and whether each comes once.

    >>> collected([(1, 2), (3, 1)], ("", False), Type("int"), Type("array", element=Type("int")), "")
    (1, 1, 3)
    """
    form, is_distinct = options
    counted = [(value, 1 if is_distinct else count) for value, count in values]
    if form:
        assert shown.element is not None
        counted = [(last_part(value, form, shown.element), count) for value, count in counted]
    return tuple(value for value, count in counted for _ in range(count))


def of_last_part(values: Values, options: Sequence[Any], _summed: Type, shown: Type, _where: str) -> Any:
    """MAX_BY and MIN_BY: what the greatest or least key ends with."""
    return last_part(values[0][0], options[0], shown)


def bits(operation: Callable[[int, int], int]) -> Fold:
    """BIT_AND and BIT_OR, for which it does not matter how often a value is there."""
    return lambda values, *_: reduce(operation, (value for value, _ in values))


def exclusive_bits(values: Values, *_: object) -> int:
    """BIT_XOR: a value that is there twice cancels."""
    return reduce(lambda one, other: one ^ other, (value for value, count in values if count % 2), 0)


def of_distinct(finish: Finish, *, squares: bool = False) -> Fold:
    """An aggregate of sums over distinct values: SUM(DISTINCT x)."""

    def fold(values: Values, _options: Sequence[Any], summed: Type, shown: Type, where: str) -> Any:
        units = [_units(value, summed) for value, _ in values]
        totals: list[Any] = [sum(units, start=ExactSum() if summed.kind == "float" else 0)]
        if squares:
            totals.append(sum((_square(value, summed) for value, _ in values), start=0 * totals[0]))
        return finish(len(values), totals, summed, shown, where)

    return fold


def _units(value: Any, type_: Type) -> Any:
    if type_.kind == "float":
        return ExactSum.of(value)
    return int(Decimal(value).scaleb(type_.scale or 0, DECIMALS)) if type_.kind == "decimal" else value


def _square(value: Any, type_: Type) -> Any:
    return ExactSum.of_square(value) if type_.kind == "float" else _units(value, type_) ** 2
