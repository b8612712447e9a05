"""From the exact total of a group to the value that is shown: SUM and AVG in the types of their columns.

Totals are wider than the types of sums (algebra.ring, decision 0100), so that only here one can turn out not to fit.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from ivme.algebra.exact import ExactSum
from ivme.engine.codes.value_check import INT_LIMIT
from ivme.errors import DataError
from ivme.query.sql_values import DECIMALS
from ivme.query.types import Type

_MOST = 10**DECIMALS.prec


def sum_value(total: Any, type_: Type, where: str) -> Any:
    """The value of SUM, of a decimal the total of its smallest units; DataError names `where` it does not fit."""
    if type_.kind == "int" and not -INT_LIMIT <= total <= INT_LIMIT:
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


def one_nan(value: float) -> float:
    """The float as columns hold it: 0.0 for -0.0, and always one object for NaN, so that rows with it are equal."""
    return value + 0.0 if value == value else math.nan


def part_value(total: Any, type_: Type) -> Decimal | bytes:
    """A total as one shard hands it to others (`inference.exact_sum_type`), a decimal or bytes."""
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
