"""Exact sums of floats: whole numbers of the smallest float, 2^-1074, rounded once when they are read.

A sum depends only on what is in it, not on the order in which it came or on what has gone again. Infinities and NaN are
counted beside the sum, so that it is finite again once they are gone. The compiled kernel has the same numbers
(kernel/exact_float.hpp).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction

_UNITS = 1 << 1074
_COUNTS = struct.Struct("<qqq")


@dataclass(frozen=True, slots=True)
class ExactSum:
    """`units` of 2^-1074, and how often +Infinity, -Infinity and NaN were added."""

    units: int = 0
    positive: int = 0
    negative: int = 0
    undefined: int = 0

    @staticmethod
    def of(value: float) -> ExactSum:
        """The sum of one float."""
        if math.isfinite(value):
            numerator, denominator = value.as_integer_ratio()
            return ExactSum(numerator * (_UNITS // denominator))
        return ExactSum(0, int(value > 0), int(value < 0), int(math.isnan(value)))

    @staticmethod
    def of_square(value: float) -> ExactSum:
        """The square of one float."""
        return ExactSum.of_product(value, value)

    @staticmethod
    def of_product(one: float, other: float) -> ExactSum:
        """The product of two floats, as two floats: the rounded one, and what its rounding left out."""
        high = one * other
        if not math.isfinite(high):
            return ExactSum.of(high)
        low = float(Fraction(one) * Fraction(other) - Fraction(high))
        return ExactSum.of(high) + ExactSum.of(low)

    @property
    def is_finite(self) -> bool:
        return not (self.positive or self.negative or self.undefined)

    def __add__(self, other: ExactSum | int) -> ExactSum:
        if isinstance(other, int):
            assert other == 0, "only sums are added to a sum, and nothing is 0"
            return self
        return ExactSum(
            self.units + other.units,
            self.positive + other.positive,
            self.negative + other.negative,
            self.undefined + other.undefined,
        )

    __radd__ = __add__

    def __mul__(self, times: int) -> ExactSum:
        return ExactSum(self.units * times, self.positive * times, self.negative * times, self.undefined * times)

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return bool(self.units or self.positive or self.negative or self.undefined)

    def __float__(self) -> float:
        """The nearest float, half to even, as `math.fsum` has it; infinite beyond the largest float."""
        up, down = self.positive > 0 or self.negative < 0, self.positive < 0 or self.negative > 0
        if self.undefined or (up and down):
            return math.nan
        if up or down:
            return math.inf if up else -math.inf
        try:
            return self.units / _UNITS
        except OverflowError:
            return math.inf if self.units > 0 else -math.inf

    def to_bytes(self) -> bytes:
        """All of it, for another process."""
        counts = _COUNTS.pack(self.positive, self.negative, self.undefined)
        return counts + self.units.to_bytes(self.units.bit_length() // 8 + 1, "little", signed=True)

    @staticmethod
    def from_bytes(data: bytes) -> ExactSum:
        counts = _COUNTS.unpack_from(data)
        return ExactSum(int.from_bytes(data[_COUNTS.size :], "little", signed=True), *counts)
