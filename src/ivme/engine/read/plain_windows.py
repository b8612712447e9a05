"""Window functions by their definitions, row by row: what the maintained ones are checked with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Any

from ivme.engine.read.plain_aggregates import plain_aggregate
from ivme.engine.read.recompute import Row
from ivme.query.nested import in_order
from ivme.query.order import Order, OrderKey, Ties
from ivme.query.types import Type
from ivme.query.windows import SHIFTS, Edge, Frame, WindowCall

Types = Sequence[tuple[Type | None, Type]]
"""For each call the types of its column and of its values."""

_RANKS: dict[str, Ties] = {"row_number": "none", "rank": "last", "dense_rank": "values"}


def plain_windows(rows: list[Row], order: Order, types: Types) -> list[Row]:
    """The rows, repeated by their multiplicities, each with the values of the order's window functions."""
    made: list[Row] = []
    for partition in partitions(rows, order):
        columns = [partition.values(call, *each) for call, each in zip(order.windows, types, strict=True)]
        made += [(*row, *(column[place] for column in columns)) for place, row in enumerate(partition.rows)]
    return made


def partitions(rows: Iterable[Row], order: Order) -> Iterator[Partition]:
    """The partitions of rows, each in its order."""
    groups = [place for place in order.groups if isinstance(place, int)]

    def group(row: Row) -> tuple[Any, ...]:
        return tuple(_sortable(row[place]) for place in groups)

    ordered = sorted(rows, key=lambda row: tuple(map(_sortable, row)))
    for _, members in groupby(sorted(ordered, key=group), key=group):
        yield Partition(list(members), order.keys)


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is not None, 0 if value is None else in_order(value))


class Partition:
    """The rows of a partition in their order."""

    def __init__(self, rows: list[Row], keys: Sequence[OrderKey]) -> None:
        self.keys = [(key.column, key.descending, key.nulls_first) for key in keys if isinstance(key.column, int)]
        for place, descending, nulls_first in reversed(self.keys):
            nulls = [row for row in rows if row[place] is None]
            known = [row for row in rows if row[place] is not None]
            known.sort(key=lambda row: in_order(row[place]), reverse=descending)
            rows = nulls + known if nulls_first else known + nulls
        self.rows = rows
        self.like = [tuple(_sortable(row[place]) for place, _, _ in self.keys) for row in rows]

    def values(self, call: WindowCall, given: Type | None, shown: Type) -> list[Any]:
        """The value of a call for each row."""
        column = self._column(call)
        return [self._value(call, place, column, given, shown) for place in range(len(self.rows))]

    def value(self, call: WindowCall, place: int, given: Type | None, shown: Type) -> Any:
        """The value of a call for one row."""
        return self._value(call, place, self._column(call), given, shown)

    def _column(self, call: WindowCall) -> list[Any]:
        assert not isinstance(call.column, str), "it is a position"
        return [None if call.column is None else row[call.column] for row in self.rows]

    def used(self, call: WindowCall, place: int) -> list[int]:
        """The places of the rows that a value is computed from: those alone in their partition give the same value."""
        count = len(self.rows)
        if call.frame is not None:
            inside = [other for other in range(count) if self._is_inside(call.frame, place, other)]
            return list(range(min([place, *inside]), max([place, *inside]) + 1))
        if call.function in _RANKS:
            return list(range(place + 1))
        if call.function not in SHIFTS:
            return list(range(count))
        found, column = [place], self._column(call)
        for other in range(place - 1, -1, -1) if call.function.startswith("lag") else range(place + 1, count):
            if len(found) > call.number:
                break
            found += [other] if column[other] is not None or not call.ignores_nulls else []
        return sorted(found)

    def rank(self, ties: Ties, place: int) -> int:
        """The rank of a row, from 1: by rows, by what is before those like it, or by values."""
        if ties == "values":
            return self._groups[place] + 1
        return 1 + (place if ties == "none" else self.like.index(self.like[place]))

    def _value(self, call: WindowCall, place: int, column: list[Any], given: Type | None, shown: Type) -> Any:
        if call.frame is None:
            return self._shifted(call, place, column) if call.function in SHIFTS else self._rank(call, place)
        inside = [column[other] for other in range(len(column)) if self._is_inside(call.frame, place, other)]
        if call.function in ("first_value", "last_value", "nth_value"):
            known = [value for value in inside if value is not None or not call.ignores_nulls]
            wanted = {"first_value": 0, "last_value": len(known) - 1, "nth_value": call.number - 1}[call.function]
            return known[wanted] if 0 <= wanted < len(known) else None
        if call.column is None:
            return len(inside)
        assert given is not None
        return plain_aggregate(call.function, [value for value in inside if value is not None], shown)

    def _rank(self, call: WindowCall, place: int) -> Any:
        size, first = len(self.rows), self.like.index(self.like[place])
        if call.function in _RANKS:
            return self.rank(_RANKS[call.function], place)
        if call.function == "percent_rank":
            return first / (size - 1) if size > 1 else 0.0
        if call.function == "cume_dist":
            return (first + self.like.count(self.like[place])) / size
        sizes = [size // call.number + (bucket < size % call.number) for bucket in range(call.number)]
        return next(bucket + 1 for bucket in range(call.number) if place < sum(sizes[: bucket + 1]))

    def _shifted(self, call: WindowCall, place: int, column: list[Any]) -> Any:
        is_back = call.function.startswith("lag")
        others = range(place - 1, -1, -1) if is_back else range(place + 1, len(column))
        found = [place, *(other for other in others if column[other] is not None or not call.ignores_nulls)]
        is_there = call.number < len(found)
        if call.function.endswith("_there"):
            return is_there
        return column[found[call.number]] if is_there else None

    @cached_property
    def _groups(self) -> list[int]:
        """The number of each row's peers among all."""
        numbers = {like: number for number, like in enumerate(dict.fromkeys(self.like))}
        return [numbers[like] for like in self.like]

    def _is_inside(self, frame: Frame, place: int, other: int) -> bool:
        if frame.unit == "rows":
            return _is_between(other - place, frame)
        if frame.unit == "groups":
            return _is_between(self._groups[other] - self._groups[place], frame)
        return self._is_behind(frame.start, place, other, 1) and self._is_behind(frame.end, place, other, -1)

    def _is_behind(self, edge: Edge, place: int, other: int, sign: int) -> bool:
        """Whether a row is behind the edge that another row's frame has on one side."""
        if edge is None:
            return True
        is_like = self.like[other] == self.like[place]
        if not edge:
            return is_like or (other > place) == (sign > 0)
        column, descending, _ = self.keys[0]
        mine, its = self.rows[place][column], self.rows[other][column]
        if mine is None or its is None:
            return is_like or (other > place) == (sign > 0)
        return bool(_distance(its, mine, edge, descending=descending) * sign >= 0)


def _is_between(distance: int, frame: Frame) -> bool:
    is_low = frame.start is None or distance >= frame.start  # type: ignore[operator]
    return is_low and (frame.end is None or distance <= frame.end)  # type: ignore[operator]


def _distance(its: Any, mine: Any, edge: Any, *, descending: bool) -> Any:
    """How far a value is behind an edge, in the direction of the order."""
    if isinstance(its, float):
        way = -1 if descending else 1
        end = way * mine + float(edge)
        return math.copysign(1, way * its - end) if way * its != end else 0
    if isinstance(its, date) and not isinstance(its, datetime) and not isinstance(edge, timedelta):
        its, mine = its.toordinal(), mine.toordinal()
    if isinstance(edge, timedelta):
        return ((mine - its if descending else its - mine) - edge) // timedelta(microseconds=1)
    return (Fraction(mine) - Fraction(its) if descending else Fraction(its) - Fraction(mine)) - Fraction(edge)
