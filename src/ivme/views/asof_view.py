"""ASOF JOIN: each left row with the right row of its keys whose bound is nearest on one side (paired_view.py).

The right side's map is in the order in which partners are preferred, so that the partner of a left row is the first row
from its own bound on: O(log N). A changed right row is the partner of the left rows between its own bound and that of
the row before it in that order, so that only these are looked up, as they were and as they are. Why the old order is
enough: the left rows that have a new row as their partner are within the spans, in the old order, of this row and of
the changed rows between it and the next unchanged one.

Of right rows with equal keys and bounds the one whose other columns come first is the partner.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.views.branch_feed import Part
from ivme.views.paired_view import PairedView


class AsofView(PairedView):
    """Left rows with their nearest partner; those without are padded with NULLs, or left out."""

    def _take(self, place: int, columns: list[Codes], weights: Codes) -> None:
        side = self.sides[place]
        known = side.known(columns)
        kept = [column[known] for column in columns], weights[known]
        if place == 0:
            self._parts += self._of_side(0, columns, weights)
            side.map.apply(*kept)
            return
        _, rows, copies = self.sides[0].map.rows(*self._reached(kept[0], len(kept[1])))
        self._parts += self._of_side(0, rows, -copies)
        side.map.apply(*kept)
        self._parts += self._of_side(0, rows, copies)

    def _of_side(self, place: int, columns: list[Codes], weights: Codes) -> Iterator[Part]:
        """Those of the right side are the pairs of all left rows that have a partner."""
        if place == 0:
            return self._of_left(columns, weights, pads=self.pairing.pads)
        left = self.sides[0].map
        _, columns, weights = left.rows(np.zeros(1, np.int64), np.full(1, left.copies, np.int64))
        return self._of_left(columns, weights, pads=False)

    def _of_left(self, columns: list[Codes], weights: Codes, *, pads: bool) -> Iterator[Part]:
        """Left rows, each with its partner."""
        left, right = self.sides
        known = left.known(columns)
        given = [column[known] for column in columns]
        keys, bound = given[: left.keys], given[left.keys]
        first = right.ranks(keys, bound, after=self.pairing.comparisons[0] in ("<", ">"))
        _, stop = right.ends(keys, len(bound))
        has_partner = first < stop
        _, found, _ = right.map.rows(first[has_partner], first[has_partner] + 1)
        mine = [column[has_partner] for column in left.shown(given)]
        yield [*mine, *right.shown(found)], weights[known][has_partner]
        if pads:
            alone = ~known
            alone[known] = ~has_partner
            nulls = [np.full(int(alone.sum()), NULL_CODE, np.int64) for _ in right.side.columns]
            yield [*(column[alone] for column in left.shown(columns)), *nulls], weights[alone]

    def _reached(self, columns: list[Codes], n: int) -> tuple[Codes, Codes]:
        """The ranks between which the left rows are that changed right rows may be the partners of."""
        left, right = self.sides
        keys, bound = columns[: right.keys], columns[right.keys]
        comparison = self.pairing.comparisons[0]
        start, stop = left.ends(keys, n)
        place = right.ranks(keys, bound, after=False)
        begin, _ = right.ends(keys, n)
        preferred = place > begin
        after = comparison in (">", "<=")
        own = left.ranks(keys, bound, after=after)
        _, found, _ = right.map.rows(place[preferred] - 1, place[preferred])
        edge = left.ranks([key[preferred] for key in keys], found[right.keys], after=after)
        if comparison in (">", ">="):
            last = stop.copy()
            last[preferred] = edge
            return _merged(own, last)
        first = start.copy()
        first[preferred] = edge
        return _merged(first, own)


def _merged(first: Codes, last: Codes) -> tuple[Codes, Codes]:
    """Spans that meet are one, so that no row comes twice; those without rows are left out.

    >>> first, last = _merged(np.array([5, 0, 2, 9]), np.array([7, 3, 4, 9]))
    >>> first.tolist(), last.tolist()
    ([0, 5], [4, 7])
    """
    order = np.argsort(first, kind="stable")
    order = order[first[order] < last[order]]
    first, last = first[order], np.maximum.accumulate(last[order])
    if not len(first):
        return first, last
    begins = np.concatenate([[True], first[1:] > last[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return first[begins], last[ends]
