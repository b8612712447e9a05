"""From the exact totals of a group to the value that is shown, in the types of the columns.

Totals are wider than the types of sums (algebra.ring, decision 0100), so that only here one can turn out not to fit.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from ivme.algebra.exact import ExactSum
from ivme.errors import DataError
from ivme.query.sql_values import DECIMALS
from ivme.query.types import Type

_MOST = 10**DECIMALS.prec
_INT_LIMIT = 2**63 - 1
_UNIT_BITS = 1074


def sum_value(total: Any, type_: Type, where: str) -> Any:
    """The value of SUM, of a decimal the total of its smallest units; DataError names `where` it does not fit."""
    if type_.kind == "int" and not -_INT_LIMIT <= total <= _INT_LIMIT:
        raise misfit(where, "int (64 bits)")
    if type_.kind == "float":
        return one_nan(float(total))
    return decimal_value(total, type_, where) if type_.kind == "decimal" else total


def decimal_value(whole: int, type_: Type, where: str) -> Decimal:
    """The decimal of so many smallest units."""
    assert type_.scale is not None
    if not -_MOST < whole < _MOST:
        raise misfit(where, f"decimal ({DECIMALS.prec} digits)")
    return Decimal(whole).scaleb(-type_.scale, DECIMALS)


def average(total: Any, count: int, summed: Type, type_: Type, where: str) -> Any:
    """The value of AVG over values of type `summed`: of decimals the exact quotient, rounded half up once."""
    if type_.kind != "decimal":
        return one_nan(float(total) / count if isinstance(total, ExactSum) else total / count)
    assert type_.scale is not None
    assert summed.scale is not None
    doubled = 2 * abs(total) * 10 ** (type_.scale - summed.scale)
    rounded = (doubled + abs(count)) // (2 * abs(count))
    return decimal_value(rounded if (total < 0) == (count < 0) else -rounded, type_, where)


def variance(count: int, total: Any, squares: Any, scale: int, *, population: bool = False) -> float | None:
    """The variance, of a sample (which one value has not) or of a population: the exact quotient, rounded once.

    The totals are those of the values and of their squares, of decimals in units of 10^-scale. A square that is too
    large for a float makes the variance infinite, an infinite value makes it NaN.

    >>> variance(4, 10, 30, 0), variance(1, 5, 25, 0)
    (1.6666666666666667, None)
    """
    if count <= 1 and not population:
        return None
    return _spread(count, total, squares, scale, count * (count if population else count - 1))


def squared_deviations(count: int, total: Any, squares: Any, scale: int) -> float:
    """The sum of the squared deviations from the mean."""
    return _spread(count, total, squares, scale, count)


def _spread(count: int, total: Any, squares: Any, scale: int, divisor: int) -> float:
    """The sum of the squared deviations times the count, by the divisor."""
    if not isinstance(squares, ExactSum):
        found: float = (count * squares - total * total) / (divisor * 10 ** (2 * scale))
        return found
    assert isinstance(total, ExactSum)
    if not total.is_finite or squares.undefined:
        return math.nan
    if not squares.is_finite:
        return math.inf
    spread = max(0, (count * squares.units << _UNIT_BITS) - total.units * total.units)
    try:
        return spread / (divisor << 2 * _UNIT_BITS)
    except OverflowError:
        return math.inf


def standard_deviation(count: int, total: Any, squares: Any, scale: int, *, population: bool = False) -> float | None:
    """The root of the variance."""
    found = variance(count, total, squares, scale, population=population)
    return None if found is None else math.sqrt(found)


def one_nan(value: float) -> float:
    """The float as columns hold it: 0.0 for -0.0, and always one object for NaN, so that rows with it are equal."""
    return value + 0.0 if value == value else math.nan


def part_value(total: Any, type_: Type) -> Decimal | bytes:
    """A total as one shard hands it to others (`aggregates.exact_sum_type`), a decimal or bytes."""
    if type_.kind == "decimal":
        assert type_.scale is not None
        return Decimal(total).scaleb(-type_.scale, DECIMALS)
    if isinstance(total, ExactSum):
        return total.to_bytes()
    return int(total).to_bytes(total.bit_length() // 8 + 1, "little", signed=True)


def total_of(part: Decimal | bytes, summed: Type) -> Any:
    """The total that a part of type `summed` stands for: smallest units of a decimal, or an exact sum of floats."""
    if isinstance(part, bytes):
        return ExactSum.from_bytes(part) if summed.kind == "float" else int.from_bytes(part, "little", signed=True)
    return int(part.scaleb(summed.scale or 0, DECIMALS))


def misfit(where: str, type_: str) -> DataError:
    return DataError(f"a value of {where} does not fit {type_}")
