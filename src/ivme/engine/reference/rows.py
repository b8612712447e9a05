"""From enumerated tuples to the rows of a view: its columns in order, aggregates finished, as SQL has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ivme.algebra.exact import ExactSum
from ivme.algebra.ring import Payload, count
from ivme.engine.expression.row_expression import Row
from ivme.engine.reference.kernel import Kernel
from ivme.query.model import Aggregate, Query
from ivme.query.sql_values import DECIMALS
from ivme.query.totals import variance


def rows(query: Query, kernel: Kernel, parameters: Mapping[str, Any]) -> Iterator[tuple[Row, int]]:
    """The distinct rows of an access request, each with its multiplicity, lazily.

    `parameters` has a value for each of the query's parameters. Aggregates that no output groups are one row even
    over nothing (COUNT 0, SUM NULL); a view with DISTINCT has every row once.
    """
    inputs = {variable: parameters[name] for variable, name in zip(query.input, query.parameters, strict=True)}
    nothing = True
    for output, payload, extremes in kernel.items(inputs):
        nothing = False
        values = {**inputs, **dict(zip(query.output, output, strict=True))}
        row = tuple(_column(c.source, values, payload, extremes, kernel) for c in query.head)
        yield row, 1 if query.distinct or query.aggregates else count(payload)
    if nothing and _is_global(query):
        yield tuple(_over_nothing(column.source) for column in query.head), 1


def _is_global(query: Query) -> bool:
    return bool(query.aggregates) and not query.output and len(query.aggregates) == len({c.source for c in query.head})


def _column(source: str | Aggregate, values: Mapping[str, Any], payload: Payload, extremes: Row, kernel: Kernel) -> Any:
    if isinstance(source, str):
        return values[source]
    return _aggregate(source, values, payload, extremes, kernel)


def _aggregate(aggregate: Aggregate, values: Mapping[str, Any], payload: Payload, extremes: Row, kernel: Kernel) -> Any:
    reading = kernel.program.enumeration
    if aggregate.variable is None:
        return count(payload)
    if aggregate.definition.is_ordered:
        if aggregate.variable in values:
            value = values[aggregate.variable]
            return value if aggregate.function != "count_distinct" else int(value is not None)
        wanted = (aggregate.function, aggregate.variable)
        return next(v for e, v in zip(reading.extremes, extremes, strict=True) if (e.function, e.variable) == wanted)
    totals = dict(zip(reading.slots, payload[1:] if isinstance(payload, tuple) else (), strict=True))
    present, *sums = (totals[slot, aggregate.variable] for slot in aggregate.definition.slots)
    if aggregate.function == "count":
        return present
    return _FINISHED[aggregate.function](present, *sums) if present else None


def _sum(_: int, total: Any) -> Any:
    return float(total) if isinstance(total, ExactSum) else total


def _mean(present: int, total: Any) -> Any:
    total = _sum(present, total)
    return DECIMALS.divide(total, present) if isinstance(total, Decimal) else total / present


def _variance(present: int, total: Any, squares: Any) -> float | None:
    """Over the values themselves: decimals are not in units here, and no type is known."""
    if isinstance(total, Decimal):
        total, squares = Fraction(total), Fraction(squares)
        spread = present * squares - total * total
        return None if present == 1 else float(spread / (present * (present - 1)))
    return variance(present, total, squares, 0)


def _deviation(present: int, total: Any, squares: Any) -> float | None:
    found = _variance(present, total, squares)
    return None if found is None else math.sqrt(found)


_FINISHED: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "avg": _mean,
    "var_samp": _variance,
    "stddev_samp": _deviation,
}


def _over_nothing(source: str | Aggregate) -> int | None:
    return source.definition.over_nothing if isinstance(source, Aggregate) else None
