"""Aggregates computed from all rows of a group, by their definitions: what the maintained ones are checked with.

Nothing here is shared with how they are maintained (`query/totals.py`, `query/folds.py`), but for the bytes of keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from itertools import groupby
from operator import and_, itemgetter, or_, xor
from typing import Any

from ivme.query.aggregates import is_joint
from ivme.query.inference import head_types
from ivme.query.model import Aggregate, Query
from ivme.query.nested import in_order
from ivme.query.order_key import last_part
from ivme.query.types import Type

Assignments = list[tuple[dict[str, Any], int]]
"""Rows by the values of variables, with multiplicities."""

Found = list[tuple[Any, int]]
"""Values that are not NULL, with multiplicities; equal ones may come several times."""

_WIDE = Context(prec=80)
"""Digits enough for what does not fit 38 of them: reading the view is what fails then."""


def aggregate_of(aggregate: Aggregate, group: Assignments, query: Query) -> Any:
    """The value of an aggregate over the rows of a group."""
    if aggregate.variable is None:
        return sum(weight for _, weight in group)
    found = [(a[aggregate.variable], w) for a, w in group if a[aggregate.variable] is not None]
    if aggregate.function == "count":
        return sum(weight for _, weight in found)
    if aggregate.function == "count_distinct":
        return len({value for value, _ in found})
    if not found:
        return () if aggregate.function == "array_agg" else None
    shown = head_types(query)[[c.source for c in query.head].index(aggregate)]
    if aggregate.partner is not None and is_joint(aggregate):
        products = [
            (_exact_product(a[aggregate.variable], a[aggregate.partner]), w)
            for a, w in group
            if a[aggregate.variable] is not None and a[aggregate.partner] is not None
        ]
        return _of_sum(aggregate.function.removesuffix("_product"), products, shown) if products else None
    if aggregate.partner is not None:
        pairs = [
            (a[aggregate.variable], a[aggregate.partner], w) for a, w in group if a[aggregate.variable] is not None
        ]
        return _PAIRED[aggregate.function](pairs)
    if aggregate.function in _OF_VALUES:
        repeated = [value for value, weight in sorted(found, key=_by_value) for _ in range(weight)]
        return _OF_VALUES[aggregate.function](repeated, aggregate.options, shown)
    function = aggregate.function.removesuffix("_distinct")
    if function != aggregate.function:
        found = [(value, 1) for value in dict(found)]
    return _SPREADS[function](found) if function in _SPREADS else _of_sum(function, found, shown)


def plain_aggregate(function: str, values: Sequence[Any], shown: Type) -> Any:
    """The value of an aggregate over values that are not NULL."""
    if function == "count":
        return len(values)
    if not values:
        return None
    found = [(value, 1) for value in values]
    if function in _OF_VALUES:
        return _OF_VALUES[function]([value for value, _ in sorted(found, key=_by_value)], (), shown)
    return _SPREADS[function](found) if function in _SPREADS else _of_sum(function, found, shown)


def _by_value(each: tuple[Any, int]) -> Any:
    """Values in order, NaN last."""
    return (True, 0) if isinstance(each[0], float) and math.isnan(each[0]) else (False, in_order(each[0]))


def _percentile(values: Sequence[Any], options: Sequence[Any], _: Type) -> float:
    """Between the values before and after the position, each with the weight of its nearness."""
    fraction, is_descending = options
    ordered = values[::-1] if is_descending else values
    position = (len(ordered) - 1) * float(fraction)
    before, after = math.floor(position), math.ceil(position)
    low, high = float(ordered[before]), float(ordered[after])
    return low if before == after or low == high else (after - position) * low + (position - before) * high


def _discrete(values: Sequence[Any], options: Sequence[Any], _: Type) -> float:
    fraction, is_descending = options
    ordered = values[::-1] if is_descending else values
    wanted = len(ordered) * float(fraction)
    return float(next(value for number, value in enumerate(ordered, 1) if number >= wanted))


def _mode(values: Sequence[Any], options: Sequence[Any], _: Type) -> Any:
    runs = [(len(list(run)), value) for value, run in groupby(values[::-1] if options[0] else values)]
    return max(runs, key=itemgetter(0))[1]


def _string_agg(values: Sequence[Any], options: Sequence[Any], shown: Type) -> str:
    separator, form, is_distinct = options
    chosen = list(dict.fromkeys(values)) if is_distinct else values
    return str(separator).join(last_part(value, form, shown) if form else value for value in chosen)


def _array_agg(values: Sequence[Any], options: Sequence[Any], shown: Type) -> tuple[Any, ...]:
    form, is_distinct = options
    assert shown.element is not None
    chosen = list(dict.fromkeys(values)) if is_distinct else values
    return tuple(last_part(value, form, shown.element) if form else value for value in chosen)


_OF_VALUES: Mapping[str, Callable[[Sequence[Any], Sequence[Any], Type], Any]] = {
    "min": lambda values, *_: values[0],
    "max": lambda values, *_: values[-1],
    "min_by": lambda values, options, shown: last_part(values[0], options[0], shown),
    "max_by": lambda values, options, shown: last_part(values[-1], options[0], shown),
    "bool_and": lambda values, *_: values[0] == 1,
    "bool_or": lambda values, *_: values[-1] == 1,
    "bit_and": lambda values, *_: reduce(and_, values),
    "bit_or": lambda values, *_: reduce(or_, values),
    "bit_xor": lambda values, *_: reduce(xor, values),
    "percentile_cont": _percentile,
    "percentile_disc": _discrete,
    "mode": _mode,
    "string_agg": _string_agg,
    "array_agg": _array_agg,
}


def _exact_product(one: Any, other: Any) -> Any:
    return _WIDE.multiply(one, other) if isinstance(one, Decimal) else one * other


def _of_sum(function: str, found: Found, shown: Type) -> Any:
    total = _total(found)
    size = 1 if function == "sum" else sum(weight for _, weight in found)
    if not isinstance(found[0][0], Decimal):
        return total if function == "sum" else total / size
    scale = shown.scale or 0
    units = abs(Fraction(total) / size) * 10**scale
    return Decimal(math.floor(units + Fraction(1, 2)) * (-1 if total < 0 else 1)).scaleb(-scale, _WIDE)


def _variance(found: Found, divisor: Callable[[int], int]) -> float | None:
    """The squared deviations from the mean by a divisor that depends on the size, exact and rounded once."""
    size = sum(weight for _, weight in found)
    if not divisor(size):
        return None
    if not all(math.isfinite(value) for value, _ in found):
        return math.nan
    squares = [(_product(value, value), weight) for value, weight in found]
    if any(square is None for square, _ in squares):
        return math.inf
    total = sum((Fraction(value) * weight for value, weight in found), Fraction(0))
    squared = sum((square * weight for square, weight in squares if square is not None), Fraction(0))
    spread = squared - total * total / size
    return _rounded(max(spread, Fraction(0)) / divisor(size))


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


_SPREADS: Mapping[str, Callable[[Found], float | None]] = {
    "var_samp": lambda found: _variance(found, lambda size: size - 1),
    "var_pop": lambda found: _variance(found, lambda size: size),
    "stddev_samp": lambda found: _root(_variance(found, lambda size: size - 1)),
    "stddev_pop": lambda found: _root(_variance(found, lambda size: size)),
    "squared_deviations": lambda found: _variance(found, lambda _: 1),
}


def _product(one: Any, other: Any) -> Fraction | None:
    """The exact product; of floats the sum of two floats, as far as these reach. None if it is too large for one."""
    if not isinstance(one, float):
        return Fraction(one) * Fraction(other)
    high = one * other
    if math.isinf(high):
        return None
    return Fraction(high) + Fraction(float(Fraction(one) * Fraction(other) - Fraction(high)))


Triples = list[tuple[float, float, int]]
"""Values of the first and of the second argument, with multiplicities."""


class _Deviations:
    """Sums of products of deviations from the means, exact."""

    def __init__(self, pairs: Triples) -> None:
        self.size = sum(weight for *_, weight in pairs)
        self.y, self.x = (sum((Fraction(p[i]) * p[2] for p in pairs), Fraction(0)) / self.size for i in (0, 1))
        self.yy = self._sum(pairs, 0, 0) - self.size * self.y * self.y
        self.xx = self._sum(pairs, 1, 1) - self.size * self.x * self.x
        self.xy = self._sum(pairs, 0, 1) - self.size * self.x * self.y

    @staticmethod
    def _sum(pairs: Triples, one: int, other: int) -> Fraction:
        products = ((_product(p[one], p[other]), p[2]) for p in pairs)
        return sum((product * weight for product, weight in products if product is not None), Fraction(0))


def _paired(value: Callable[[_Deviations], float | Fraction | None]) -> Callable[[Triples], float | None]:
    def of(pairs: Triples) -> float | None:
        if all(math.isfinite(p[0]) and math.isfinite(p[1]) for p in pairs) and _fit(pairs):
            found = value(_Deviations(pairs))
            return found if found is None or isinstance(found, float) else _rounded(found)
        size = sum(weight for *_, weight in pairs)
        if value(_Deviations([(0.0, 0.0, 1), *[(1.0, 1.0, 1)] * (size > 1)])) is None:
            return None
        return _unbounded(pairs)

    return of


def _fit(pairs: Triples) -> bool:
    return all(_product(p[i], p[j]) is not None for p in pairs for i, j in ((0, 0), (1, 1), (0, 1)))


def _unbounded(pairs: Triples) -> float:
    """What is shown where a value is not finite, or a product too large for a float."""
    if not all(math.isfinite(p[0]) and math.isfinite(p[1]) for p in pairs):
        return math.nan
    for i, j in ((0, 1), (0, 0), (1, 1)):
        ends = {p[i] * p[j] for p in pairs if math.isinf(p[i] * p[j])}
        if len(ends) > 1:
            return math.nan
        if ends:
            return ends.pop()
    raise AssertionError("some product is not finite")


def _correlation(d: _Deviations) -> float | None:
    if d.size < 2 or not (d.xx and d.yy):
        return None
    return math.copysign(math.sqrt(d.xy * d.xy / (d.xx * d.yy)), d.xy)


_PAIRED: Mapping[str, Callable[[Triples], float | None]] = {
    "covar_pop": _paired(lambda d: d.xy / d.size),
    "covar_samp": _paired(lambda d: d.xy / (d.size - 1) if d.size > 1 else None),
    "corr": _paired(_correlation),
    "regr_slope": _paired(lambda d: d.xy / d.xx if d.xx else None),
    "regr_intercept": _paired(lambda d: d.y - d.xy / d.xx * d.x if d.xx else None),
    "regr_r2": _paired(lambda d: (d.xy * d.xy / (d.xx * d.yy) if d.yy else 1.0) if d.xx else None),
    "regr_sxy": _paired(lambda d: d.xy),
}


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _total(found: list[tuple[Any, int]]) -> Any:
    """The exact sum; of floats rounded once, as `math.fsum` does it."""
    if isinstance(found[0][0], Decimal):
        return sum(Fraction(value) * weight for value, weight in found)
    if not isinstance(found[0][0], float):
        return sum(value * weight for value, weight in found)
    ups, downs = (sum(weight for value, weight in found if value == end) for end in (math.inf, -math.inf))
    if ups or downs:
        return sum(math.inf if times > 0 else -math.inf for times in (ups, -downs) if times)
    found = [(value, weight) for value, weight in found if math.isfinite(value)]
    if all(weight == 1 for _, weight in found):
        with suppress(OverflowError):  # as a part of the sum may, where the whole does not
            return math.fsum(value for value, _ in found)
    total = sum(Fraction(value) * weight for value, weight in found)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf
