"""Rows in the order of their values, in plain Python: a sorted list, and counts that are added up when they are needed.

The interface is described in engine/ordered.py. A change takes O(N): this one is there to be read and compared with.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cmp_to_key
from itertools import accumulate
from typing import Any

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.ordered import OrderedColumn, Ties
from ivme.engine.reference.columns import PureOverflow

Row = tuple[int, ...]
Packed = tuple[int, int, int, int]
_WORD, _MOST = 2**64, 2**63 - 1


class PureOrderedMap:
    """Rows of codes; `_rows` has them by their places in the order, sorted, and `_counts` the copies of each."""

    def __init__(self, order: Sequence[OrderedColumn], groups: int, summed: Sequence[int]) -> None:
        self._order = list(order)
        self._groups = groups
        self._summed = list(summed)
        self._rows: list[Row] = []
        self._counts: dict[Row, int] = {}
        self._before: dict[Row, int] = {}
        self._key = cmp_to_key(self._compare)
        self.operations = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def copies(self) -> int:
        return sum(self._counts.values())

    def load(self, columns: Sequence[Codes], weights: Codes, /) -> None:
        self.apply(columns, weights)
        self.commit()

    def apply(self, columns: Sequence[Codes], weights: Codes, /) -> None:
        for row, weight in self._given(columns, weights):
            self._add(row, weight)

    def apply_shown(self, columns: Sequence[Codes], weights: Codes, window: Packed, /) -> tuple[list[Codes], Codes]:
        given = list(self._given(columns, weights))
        groups = list(dict.fromkeys(row[: self._groups] for row, _ in given))
        old = [part for group in groups for part in self._window(group, window)]
        self.apply(columns, weights)
        new = [part for group in groups for part in self._window(group, window)]
        parts = [*new, *((row, -copies) for row, copies in old)]
        return self._by_column(row for row, _ in parts), np.array([copies for _, copies in parts], np.int64)

    def _add(self, row: Row, weight: int) -> None:
        now = self._counts.get(row, 0) + weight
        if now < 0:
            raise ValueError("a row of an ordered map has fewer than no copies")
        if self.copies + weight > _MOST:
            raise PureOverflow("a count does not fit 64 bits")
        self._before.setdefault(row, now - weight)
        self._set(row, now)

    def _set(self, row: Row, copies: int) -> None:
        """Makes the copies of a row these, also where an interrupt left the list and the counts at odds."""
        place = bisect_left(self._rows, self._key(row), key=self._key)
        is_there = self._rows[place : place + 1] == [row]
        if copies and not is_there:
            self._rows.insert(place, row)
        elif not copies and is_there:
            del self._rows[place]
        if copies:
            self._counts[row] = copies
        else:
            self._counts.pop(row, None)

    def commit(self) -> None:
        self._before = {}

    def roll_back(self) -> None:
        for row, copies in self._before.items():
            self._set(row, copies)
        self._before = {}

    # Reading

    def ranks(self, columns: Sequence[Codes], n: int, after: bool, /) -> Codes:
        listed = zip(*(column.tolist() for column in columns), strict=True) if columns else iter([()] * n)
        return np.array([self._rank(row, after) for row in listed], np.int64)

    def shown(self, groups: Sequence[Codes], n: int, window: Packed, /) -> tuple[Codes, Codes]:
        listed = zip(*(column.tolist() for column in groups), strict=True) if groups else iter([()] * n)
        spans = [self._span(group, window) for group in listed]
        return np.array([first for first, _ in spans], np.int64), np.array([last for _, last in spans], np.int64)

    def all_shown(self, window: Packed, /) -> tuple[Codes, Codes]:
        groups = list(dict.fromkeys(row[: self._groups] for row in self._rows))
        columns = [np.array([group[i] for group in groups], np.int64) for i in range(self._groups)]
        return self.shown(columns, len(groups), window)

    def rows(self, first: Codes, last: Codes, /) -> tuple[Codes, list[Codes], Codes]:
        found = [
            (number, row, copies)
            for number, span in enumerate(zip(first.tolist(), last.tolist(), strict=True))
            for row, copies in self._between(*span)
        ]
        columns = self._by_column(row for _, row, _ in found)
        return (
            np.array([number for number, _, _ in found], np.int64),
            columns,
            np.array([copies for _, _, copies in found], np.int64),
        )

    def totals(self, ranks: Codes, /) -> tuple[list[Codes], list[Codes]]:
        places = [next(i for i, each in enumerate(self._order) if each.position == p) for p in self._summed]
        sums, known = [], []
        for place in places:
            parts = [list(self._between(0, rank)) for rank in ranks.tolist()]
            there = [[(row[place], copies) for row, copies in part if row[place] != NULL_CODE] for part in parts]
            whole = [sum(value * copies for value, copies in part) for part in there]
            words = [[_signed(total % _WORD), total >> 64] for total in whole]
            sums.append(np.array(words, np.int64).reshape(-1, 2))
            known.append(np.array([sum(copies for _, copies in part) for part in there], np.int64))
        return sums, known

    def codes(self) -> list[Codes]:
        columns = self._by_column(self._rows)
        return [columns[each.position] for each in self._order if not each.domain.orders_by_code]

    def check(self) -> None:
        """The list is sorted, and has the rows that are counted."""
        assert self._rows == sorted(self._counts, key=self._key)

    def memory_bytes(self) -> int:
        """A rough estimate, as for maps."""
        return 250 * len(self._rows)

    def _given(self, columns: Sequence[Codes], weights: Codes) -> Iterator[tuple[Row, int]]:
        """Rows with their columns in the order, and weights."""
        listed = [columns[each.position].tolist() for each in self._order]
        rows = zip(*listed, strict=True) if listed else iter([()] * len(weights))
        return ((row, weight) for row, weight in zip(rows, weights.tolist(), strict=True) if weight)

    def _by_column(self, rows: Any) -> list[Codes]:
        found = list(rows)
        places = {each.position: i for i, each in enumerate(self._order)}
        return [np.array([row[places[p]] for row in found], np.int64) for p in range(len(places))]

    def _compare(self, a: Row, b: Row) -> int:
        """Rows, or what they begin with: as far as both reach."""
        self.operations += 1
        for column, x, y in zip(self._order, a, b, strict=False):
            if x != y:
                return _order_of(column, x, y)
        return 0

    def _rank(self, row: Row, after: bool) -> int:
        find: Callable[..., int] = bisect_right if after else bisect_left
        place = find(self._rows, self._key(row), key=self._key)
        return sum(self._counts[each] for each in self._rows[:place])

    def _between(self, first: int, last: int) -> Iterator[tuple[Row, int]]:
        ends = accumulate(self._counts[row] for row in self._rows)
        for row, end in zip(self._rows, ends, strict=True):
            inside = min(end, last) - max(end - self._counts[row], first)
            if inside > 0:
                yield row, inside

    def _window(self, group: Row, window: Packed) -> list[tuple[Row, int]]:
        return list(self._between(*self._span(group, window)))

    def _span(self, group: Row, window: Packed) -> tuple[int, int]:
        offset, limit, ties, ordered_by = window
        start, stop = self._rank(group, False), self._rank(group, True)
        if ties == Ties.VALUES:
            values = list(dict.fromkeys(row[:ordered_by] for row, _ in self._between(start, stop)))[:limit]
            last = self._rank(values[-1], True) if values else start
        elif offset + limit >= stop - start:
            last = stop
        else:
            last = start + offset + limit
            if ties == Ties.LIKE_LAST and limit:
                ((row, _),) = self._between(last - 1, last)
                last = self._rank(row[:ordered_by], True)
        return min(start + min(offset, stop - start), last), last


def _order_of(column: OrderedColumn, x: int, y: int) -> int:
    """Below zero if a value comes before another one, which is different."""
    if NULL_CODE in (x, y):
        return -1 if (x == NULL_CODE) == column.nulls_first else 1
    before = column.domain.sort_key(x) < column.domain.sort_key(y)
    return -1 if before != column.descending else 1


def _signed(word: int) -> int:
    return word - _WORD if word >= 2**63 else word
