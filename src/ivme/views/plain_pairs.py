"""The pairs of a pairing by Python's own lists and bisection, to verify what its maps find."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from ivme.engine.read.recompute import Row
from ivme.engine.read.verify import compare_rows
from ivme.engine.runtime.reader import Reader
from ivme.query.nested import in_order
from ivme.query.pairing import Comparison, Pairing
from ivme.views.branch_feed import plain_rows

_Totals = dict[Row, list[Any]]


def compare_pairs(pairing: Pairing, reader: Reader, place: int, found: Iterable[tuple[Row, int]]) -> None:
    """Compares pairs with those that the rows of both sides have: O(n log n), and O(1) for each pair.

    Columns that are only added up are compared by their counts and sums. `place` 1 says that they come from the right
    side: then left rows without partners are not among them.
    """
    summed = _summed(pairing)
    wanted = _pairs(pairing, reader, pads=pairing.pads and place == 0)
    compare_rows(f"the pairs of {pairing.name}", _totals(wanted, summed), _totals(found, summed))


def _summed(pairing: Pairing) -> list[int]:
    first = len(pairing.left.columns)
    return [*sorted(pairing.left.summed), *(first + place for place in sorted(pairing.right.summed))]


def _totals(pairs: Iterable[tuple[Row, int]], summed: list[int]) -> dict[Row, Any]:
    """For each pair without its summed columns how often it is there, and the counts and sums of these columns."""
    found: _Totals = {}
    for row, weight in pairs:
        key = tuple(value for place, value in enumerate(row) if place not in summed)
        total = found.setdefault(key, [0] * (1 + 2 * len(summed)))
        total[0] += weight
        for number, place in enumerate(summed):
            if row[place] is not None:
                total[1 + 2 * number] += weight
                total[2 + 2 * number] += weight * row[place]
    return {key: tuple(total) for key, total in found.items() if any(total)}


def _pairs(pairing: Pairing, reader: Reader, *, pads: bool) -> Iterator[tuple[Row, int]]:
    return ((shown_pair(pairing, *pair), weight) for pair, weight in met_rows(pairing, reader, pads=pads))


def shown_pair(pairing: Pairing, left: Row, right: Row | None) -> Row:
    """The columns of a pair, from the rows of both sides: keys, bounds and columns; NULLs for a missing partner."""
    keys, bounds = len(pairing.left.keys), len(pairing.right.bounds)
    shown = (None,) * len(pairing.right.columns) if right is None else right[keys + bounds :]
    return (*left[keys + 1 :], *shown)


def met_rows(pairing: Pairing, reader: Reader, *, pads: bool) -> Iterator[tuple[tuple[Row, Row | None], int]]:
    """The rows of both sides that meet, each with how often."""
    keys, bounds = len(pairing.left.keys), len(pairing.right.bounds)
    groups: dict[Row, list[tuple[Row, int]]] = {}
    for row, weight in plain_rows(reader, pairing.right.branch):
        if all(value is not None for value in row[: keys + bounds]):
            groups.setdefault(row[:keys], []).append((row, weight))
    for group in groups.values():
        group.sort(key=lambda each: [_rank(value) for value in each[0]])
    for row, weight in plain_rows(reader, pairing.left.branch):
        known = all(value is not None for value in row[: keys + 1])
        partners = _partners(groups.get(row[:keys], []), row[keys], pairing, keys) if known else []
        for other, times in partners:
            yield (row, other), weight * times
        if pads and not partners:
            yield (row, None), weight


def _partners(group: list[tuple[Row, int]], bound: Any, pairing: Pairing, keys: int) -> list[tuple[Row, int]]:
    """The rows of a sorted group that a bound meets; with `first`, the first one of the nearest."""
    values = [in_order(row[keys]) for row, _ in group]
    low, high = _range(values, in_order(bound), pairing.comparisons[0])
    if pairing.first:
        if low >= high:
            return []
        nearest = values[high - 1] if pairing.comparisons[0] in (">", ">=") else values[low]
        return [(group[bisect_left(values, nearest)][0], 1)]
    found = group[low:high]
    for place, comparison in enumerate(pairing.comparisons[1:], 1):
        found = [each for each in found if _holds(in_order(bound), in_order(each[0][keys + place]), comparison)]
    return found


def _range(values: list[Any], bound: Any, comparison: Comparison) -> tuple[int, int]:
    if comparison in (">", ">="):
        return 0, (bisect_right if comparison == ">=" else bisect_left)(values, bound)
    return (bisect_left if comparison == "<=" else bisect_right)(values, bound), len(values)


def _holds(left: Any, right: Any, comparison: Comparison) -> bool:
    if comparison in ("<", "<="):
        return bool(left < right or (comparison == "<=" and left == right))
    return bool(left > right or (comparison == ">=" and left == right))


def _rank(value: object) -> tuple[bool, Any]:
    return (value is not None, in_order(value) if value is not None else 0)
