"""What an aggregate function is; `aggregates.AGGREGATES` has all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ivme.query.types import Type

Finish = Callable[[int, Sequence[Any], Type, Type, str], Any]
"""From how many values a group has, NULL excluded and one at least, and the totals of the other slots, to the value.

The types are those of what is added up and of what is shown; the text says where a value is that does not fit."""

Values = Sequence[tuple[Any, int]]
"""The distinct values of a group that are not NULL, in ascending order, each with its multiplicity; one at least."""

Fold = Callable[[Values, Sequence[Any], Type, Type, str], Any]
"""From the values of a group and the constants of the call to the value; types and text as for `Finish`."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function.

    `slots` are the totals that payloads carry for it: "count" of the values that are not NULL, "sum", and "square", the
    sum of the squares; "exact_sum" is a sum that is read without rounding. One of two arguments has "partner sum" and
    "partner square" for the other argument, and "product", the sum of the products. "joint count" and "joint sum" are
    of products of arguments of two tables, which are never computed row by row.

    One without slots needs its values in order instead, so that its column counts as free when widths are computed.
    `reads` is what it reads of them: "min", "max" or "count_distinct", which an index answers, or all "values" of the
    group, which `fold` makes its value from, in time linear in the group. `fold` also finishes what "min" and "max"
    give, where that is not the value yet, and a "percentile", which an ordered index finds in O(log N): it is given the
    one or two values at its position, in the place of all that are before or behind them.

    `type` is that of its value for one of its argument, None if it takes no such argument. `takes` are the kinds of
    its argument, all if it is empty. `kernel` finishes whole columns (`engine/runtime/finishing.py`). `parts` are the
    aggregates that shards add up in its place; `is_additive` says whether there are such parts at all. `over_nothing`
    is its value where no value is there: 0 for what counts, the empty array, NULL otherwise.
    """

    name: str
    type: Callable[[Type], Type | None]
    slots: tuple[str, ...] = ()
    finish: Finish | None = None
    kernel: str = ""
    over_nothing: int | tuple[()] | None = None
    parts: tuple[str, ...] = ()
    reads: str = ""
    fold: Fold | None = None
    takes: tuple[str, ...] = ()
    is_additive: bool = True

    @property
    def is_ordered(self) -> bool:
        return not self.slots

    @property
    def counts_rows(self) -> bool:
        """Whether its value depends on how often a row is there."""
        return self.reads in ("", "values", "percentile")
