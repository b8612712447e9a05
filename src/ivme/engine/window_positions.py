"""The values of window functions for single rows, by their positions in an ordered map: O(log N) each.

A frame is a range of positions. How many rows and how much of a summed column it has, the map's nodes know; the first
and the last value of it, and LAG and LEAD, are rows at a position. So neither the rows of a frame are read nor those
that are like the row itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.ordered import OrderedMap
from ivme.engine.window_functions import Computed
from ivme.query.aggregates import AGGREGATES
from ivme.query.windows import TOTALS, Edge, WindowCall

Between = Callable[[Edge], tuple[Codes, Codes]]
"""For an edge of values, the positions at which the rows at that distance from each row begin and end."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Rows of an ordered map: where they are, where the rows like them begin and end, and their partitions."""

    ordered: OrderedMap
    at: Codes
    peers: tuple[Codes, Codes]
    partition: tuple[Codes, Codes]
    summed: Sequence[int]
    """The columns that the map's nodes add up."""
    near: Between

    def frame(self, call: WindowCall) -> tuple[Codes, Codes]:
        """The positions at which the frames of the rows begin and end."""
        assert call.frame is not None
        first = self._edge(call, call.frame.start, is_end=False)
        last = self._edge(call, call.frame.end, is_end=True)
        return first, np.maximum(first, last)

    def _edge(self, call: WindowCall, edge: Edge, *, is_end: bool) -> Codes:
        start, stop = self.partition
        if edge is None:
            return stop if is_end else start
        assert call.frame is not None
        if call.frame.unit == "rows":
            assert isinstance(edge, int)
            return np.clip(self.at + edge + is_end, start, stop)
        return self.peers[is_end] if not edge else np.clip(self.near(edge)[is_end], start, stop)

    def totals(self, column: int, first: Codes, last: Codes) -> tuple[list[int], Codes]:
        """The sums of a column between positions, and how many values are not NULL."""
        n, place = len(first), self.summed.index(column)
        sums, known = self.ordered.totals(np.concatenate([first, last]))
        words = [whole(each) for each in sums[place].tolist()]
        return [high - low for low, high in zip(words[:n], words[n:], strict=True)], known[place][n:] - known[place][:n]

    def value_at(self, column: int, places: Codes, is_there: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Codes:
        """The values of a column at positions; NULL where there is none."""
        first = np.where(is_there, places, 0)
        numbers, columns, _ = self.ordered.rows(first, first + is_there)
        found = np.full(len(places), NULL_CODE)
        found[numbers] = columns[column]
        return found


def whole(words: Sequence[int]) -> int:
    """A sum of the map's nodes, which has two words."""
    return (words[1] << 64) + (words[0] % 2**64)


def is_found(computed: Computed, summed: Sequence[int], *, has_near: bool) -> bool:
    """Whether the value of a call is found by position alone; others are computed from rows."""
    call = computed.call
    if not call.is_by_position or call.function not in _BY_NAME:
        return False
    if call.function in TOTALS and call.column is not None and call.column not in summed:
        return False
    frame = call.frame
    is_of_values = frame is not None and frame.unit == "range" and bool(frame.start or frame.end)
    return has_near or not is_of_values


def value_of(computed: Computed, rows: Positions) -> Codes:
    """The values of a call for rows, as codes."""
    return _BY_NAME[computed.call.function](computed, rows)


def _row_number(_: Computed, rows: Positions) -> Codes:
    return rows.at - rows.partition[0] + 1


def _rank(_: Computed, rows: Positions) -> Codes:
    return rows.peers[0] - rows.partition[0] + 1


def _percent_rank(computed: Computed, rows: Positions) -> Codes:
    others = rows.partition[1] - rows.partition[0] - 1
    before = rows.peers[0] - rows.partition[0]
    return computed.shown.encode(pa.array(np.where(others > 0, before / np.maximum(others, 1), 0.0)))


def _cume_dist(computed: Computed, rows: Positions) -> Codes:
    start, stop = rows.partition
    return computed.shown.encode(pa.array((rows.peers[1] - start) / (stop - start)))


def _ntile(computed: Computed, rows: Positions) -> Codes:
    """The first buckets have one row more than the others, if they cannot be equal."""
    place, size = rows.at - rows.partition[0], rows.partition[1] - rows.partition[0]
    small, large = size // computed.call.number, size % computed.call.number
    in_large = large * (small + 1)
    found: Codes = np.where(place < in_large, place // (small + 1), large + (place - in_large) // np.maximum(small, 1))
    return found + 1


def _shifted(computed: Computed, rows: Positions) -> tuple[Codes, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    step = -computed.call.number if computed.call.function.startswith("lag") else computed.call.number
    places = rows.at + step
    return places, (places >= rows.partition[0]) & (places < rows.partition[1])


def _shift(computed: Computed, rows: Positions) -> Codes:
    return rows.value_at(_column(computed), *_shifted(computed, rows))


def _first_value(computed: Computed, rows: Positions) -> Codes:
    first, last = rows.frame(computed.call)
    return rows.value_at(_column(computed), first, first < last)


def _last_value(computed: Computed, rows: Positions) -> Codes:
    first, last = rows.frame(computed.call)
    return rows.value_at(_column(computed), last - 1, first < last)


def _nth_value(computed: Computed, rows: Positions) -> Codes:
    first, last = rows.frame(computed.call)
    place = first + computed.call.number - 1
    return rows.value_at(_column(computed), place, place < last)


def _column(computed: Computed) -> int:
    assert isinstance(computed.call.column, int), "it is of a column"
    return computed.call.column


def _count(computed: Computed, rows: Positions) -> Codes:
    first, last = rows.frame(computed.call)
    return last - first if computed.call.column is None else rows.totals(_column(computed), first, last)[1]


def _total(computed: Computed, rows: Positions) -> Codes:
    """SUM and AVG."""
    sums, counts = rows.totals(_column(computed), *rows.frame(computed.call))
    finish = AGGREGATES[computed.call.function].finish
    assert finish is not None
    assert computed.given is not None
    types = computed.given.type, computed.shown.type
    codes = [
        computed.shown.code_computed(finish(count, [total], *types, computed.where)) if count else NULL_CODE
        for total, count in zip(sums, counts.tolist(), strict=True)
    ]
    return np.array(codes, np.int64)


_BY_NAME: dict[str, Callable[[Computed, Positions], Codes]] = {
    "row_number": _row_number,
    "rank": _rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": _shift,
    "lead": _shift,
    "first_value": _first_value,
    "last_value": _last_value,
    "nth_value": _nth_value,
    "count": _count,
    "sum": _total,
    "avg": _total,
}
