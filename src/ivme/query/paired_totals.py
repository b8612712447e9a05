"""COVAR, CORR and REGR: from the exact totals of two columns of floats to the value, rounded once.

The totals of x and y are sums of floats in units of 2^-1074 (`algebra.exact`), over the rows where both have a value.
With n rows, the products of deviations from the mean add up to (n·Σxy - Σx·Σy) / n: here they are stored times n, in
whole numbers of units squared, so that nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ivme.algebra.exact import ExactSum

_UNIT_BITS = 1074


@dataclass(frozen=True, slots=True)
class Deviations:
    """Sums of products of deviations from the mean, times n, in units squared, with what they come from.

    `x` belongs to the second argument and `y` to the first, as in REGR_SLOPE(y, x).
    """

    n: int
    y: int
    x: int
    yy: int
    xx: int
    xy: int

    @property
    def scale(self) -> int:
        """What to divide by beside n."""
        return 1 << 2 * _UNIT_BITS


def deviations(n: int, sums: Sequence[ExactSum]) -> Deviations | float:
    """The deviations of a group from the totals of y, x, yy, xx, xy; a float if they are not finite.

    A value that is not finite makes everything NaN, and so does a sum of products to which infinities of both signs
    were added; a product that is too large for a float makes everything infinite.
    """
    y, x, yy, xx, xy = sums
    if not (y.is_finite and x.is_finite) or any(math.isnan(float(each)) for each in (yy, xx, xy)):
        return math.nan
    if not (yy.is_finite and xx.is_finite and xy.is_finite):
        return next(float(each) for each in (xy, yy, xx) if not each.is_finite)

    def of(products: ExactSum, one: ExactSum, other: ExactSum) -> int:
        return (n * products.units << _UNIT_BITS) - one.units * other.units

    return Deviations(n, y.units, x.units, max(0, of(yy, y, y)), max(0, of(xx, x, x)), of(xy, x, y))


def quotient(dividend: int, divisor: int) -> float:
    """The nearest float; infinite beyond the largest."""
    try:
        return dividend / divisor
    except OverflowError:
        return math.inf if (dividend > 0) == (divisor > 0) else -math.inf


def covariance_population(d: Deviations) -> float | None:
    return quotient(d.xy, d.n * d.n * d.scale)


def covariance_sample(d: Deviations) -> float | None:
    return quotient(d.xy, d.n * (d.n - 1) * d.scale) if d.n > 1 else None


def correlation(d: Deviations) -> float | None:
    """The correlation; none of one row, or of a column that does not vary.

    >>> correlation(deviations(3, [ExactSum.of(v) for v in (6.0, 6.0, 14.0, 14.0, 14.0)]))
    1.0
    """
    if d.n < 2 or not (d.xx and d.yy):
        return None
    root = math.sqrt(quotient(d.xy * d.xy, d.xx * d.yy))
    return -root if d.xy < 0 else root


def slope(d: Deviations) -> float | None:
    return quotient(d.xy, d.xx) if d.xx else None


def intercept(d: Deviations) -> float | None:
    """Where the line crosses: the mean of y less the slope times the mean of x."""
    return quotient(d.y * d.xx - d.xy * d.x, d.n * d.xx << _UNIT_BITS) if d.xx else None


def determination(d: Deviations) -> float | None:
    """The square of the correlation; 1 if y does not vary, none if x does not."""
    if not d.xx:
        return None
    return quotient(d.xy * d.xy, d.xx * d.yy) if d.yy else 1.0


def products_of_deviations(d: Deviations) -> float | None:
    return quotient(d.xy, d.n * d.scale)


def finish_with(value: Callable[[Deviations], float | None]) -> Callable[..., Any]:
    """An aggregate's `Finish` from a function of the deviations."""

    def finish(n: int, sums: Sequence[Any], *_: object) -> float | None:
        found = deviations(n, sums)
        if not isinstance(found, float):
            return value(found)
        return None if value(_SINGLE if n == 1 else _VARYING) is None else found

    return finish


_SINGLE, _VARYING = Deviations(1, 0, 0, 0, 0, 0), Deviations(2, 0, 0, 1, 1, 0)
"""Groups of one row and of two, to see whether there is a value at all where none is finite."""
