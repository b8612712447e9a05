"""Pairs of rows that meet in one inequality, or where one is between two bounds of the other (paired_view.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domain import Domain
from ivme.query.nested import in_order
from ivme.query.pairing import FLIPPED, Comparison
from ivme.query.types import Type
from ivme.views.branch_feed import Part, times
from ivme.views.paired_view import Mask, PairedSide, PairedView

_LISTED = 1 << 20
"""How many partners are listed at a time."""

_ORDERED_CODES = ("int", "float", "date", "timestamp", "bool")
"""Types whose codes compare as their values do."""


class RangeJoinView(PairedView):
    """All pairs for which the comparisons hold."""

    @property
    def is_of_whole_changes(self) -> bool:  # type: ignore[override]
        """Sums stand in rows whose multiplicities add up only together."""
        return any(self.is_added_up(place) and self.sides[1 - place].summed for place in (0, 1))

    def _take(self, place: int, columns: list[Codes], weights: Codes) -> None:
        side = self.sides[place]
        known = side.known(columns)
        columns, weights = [column[known] for column in columns], weights[known]
        self._parts += self._met(place, columns, weights)
        side.map.apply(columns, weights)

    def _of_side(self, place: int, columns: list[Codes], weights: Codes) -> Iterator[Part]:
        known = self.sides[place].known(columns)
        return self._met(place, [column[known] for column in columns], weights[known])

    def is_added_up(self, place: int) -> bool:
        """Whether the partners of a row of this side are added up, and not listed."""
        return self.sides[1 - place].side.is_added_up and not (place == 0 and len(self.pairing.comparisons) > 1)

    def _met(self, place: int, columns: list[Codes], weights: Codes) -> Iterator[Part]:
        """The pairs of rows of a side with the other side as it is."""
        if not len(weights):
            return
        first, last = self._spans(place, columns)
        if self.is_added_up(place):
            yield from self._added_up(place, columns, weights, first, last)
            return
        if self._shows_nothing(place):
            yield self._between(place, weights, first, last)
            return
        for start, stop in _pieces(last - first):
            part = [column[start:stop] for column in columns]
            yield self._listed(place, part, weights[start:stop], first[start:stop], last[start:stop])

    def _spans(self, place: int, columns: list[Codes]) -> tuple[Codes, Codes]:
        """Between which ranks of the other side's map the partners of rows are, perhaps with others in between."""
        side, other = self.sides[place], self.sides[1 - place]
        keys = columns[: side.keys]
        spans = []
        for number, comparison in enumerate(self.pairing.comparisons):
            if place == 0 and number:
                break  # the right side is in the order of its first bound only
            bound = columns[side.keys + (number if place else 0)]
            spans.append(_span(other, keys, bound, FLIPPED[comparison] if place else comparison))
        first = np.maximum.reduce([each for each, _ in spans])
        return first, np.maximum(first, np.minimum.reduce([each for _, each in spans]))

    def _shows_nothing(self, place: int) -> bool:
        """Whether nothing is read of a side but keys, so that pairs with equal partners are equal."""
        is_filtered = place == 0 and len(self.pairing.comparisons) > 1
        return not is_filtered and all(key is not None for key in self.sides[place].side.of_keys)

    def _between(self, place: int, weights: Codes, first: Codes, last: Codes) -> Part:
        """The pairs of rows of which nothing is read, by how often each partner is in their ranges.

        Where a row takes the place of another, as the time of a clock does, these are the partners between the two.
        """
        side, other = self.sides[place], self.sides[1 - place]
        edges, places = np.unique(np.concatenate([first, last]), return_inverse=True)
        often = np.zeros(len(edges), np.int64)
        np.add.at(often, places.reshape(-1), np.concatenate([weights, -weights]))
        often = np.cumsum(often)[:-1]
        there = np.flatnonzero(often)
        numbers, found, copies = other.map.rows(edges[there], edges[there + 1])
        mine = [found[key] for key in side.side.of_keys if key is not None]
        return self._in_order(place, mine, other.shown(found)), times(often[there][numbers], copies, self.name)

    def _listed(self, place: int, columns: list[Codes], weights: Codes, first: Codes, last: Codes) -> Part:
        """The pairs with all partners, row by row."""
        side, other = self.sides[place], self.sides[1 - place]
        numbers, found, copies = other.map.rows(first, last)
        if place == 0 and len(self.pairing.comparisons) > 1:
            bound, limit = columns[side.keys][numbers], found[other.keys + 1]
            kept = compared(bound, limit, self.pairing.comparisons[1], other.domains[other.keys])
            numbers, copies, found = numbers[kept], copies[kept], [column[kept] for column in found]
        mine = [column[numbers] for column in side.shown(columns)]
        return self._in_order(place, mine, other.shown(found)), times(weights[numbers], copies, self.name)

    def _in_order(self, place: int, mine: list[Codes], others: list[Codes]) -> list[Codes]:
        return [*others, *mine] if place else [*mine, *others]

    # Sums

    def _added_up(self, place: int, columns: list[Codes], weights: Codes, first: Codes, last: Codes) -> Iterator[Part]:
        """For each row, rows whose weights, counts and sums are those of all its partners.

        A column of n values, m of them known, with the sum s, stands as s once, 0 m - 1 times, and NULL n - m times; a
        sum that the column does not hold, as its greatest value some times, and the rest. Each of several columns has
        its own rows, NULL in the others, but for the first row, which has the sums of all.
        """
        side, other = self.sides[place], self.sides[1 - place]
        there = np.flatnonzero(last > first)
        columns, weights = [column[there] for column in columns], weights[there]
        counts = (last - first)[there]
        sums, known = self._totals(other, first[there], last[there])
        n = len(weights)
        null, zero = np.full(n, NULL_CODE, np.int64), np.zeros(n, np.int64)

        def part(values: Sequence[Codes], often: Codes) -> Part:
            given = iter(values)
            keys = other.side.of_keys
            shown = [next(given) if key is None else columns[key] for key in keys]
            made = times(weights, often, self.name)
            kept = made != 0
            rows = self._in_order(place, side.shown(columns), shown)
            return [column[kept] for column in rows], made[kept]

        if not sums:
            yield part([], counts)
            return
        most = [_greatest(other.domains[column].type) for column in other.summed]
        whole = [[_parts(each, m) for each in column] for column, m in zip(sums, most, strict=True)]
        rest = [_codes(remainder for _, remainder in column) for column in whole]
        firsts = [np.where(m > 0, codes, NULL_CODE) for m, codes in zip(known, rest, strict=True)]
        yield part(firsts, np.ones(n, np.int64))
        left = counts - 1
        for number, column in enumerate(whole):
            before, behind = [null] * number, [null] * (len(sums) - number - 1)
            often = _codes(quotient for quotient, _ in column)
            more = np.maximum(known[number] - 1, 0)
            yield part([*before, zero, *behind], more - often)
            yield part([*before, np.full(n, most[number], np.int64), *behind], often)
            left = left - more
        yield part([null] * len(sums), left)

    def _totals(self, side: PairedSide, first: Codes, last: Codes) -> tuple[list[list[int]], list[Codes]]:
        """The sums of columns between ranks, and how many values are not NULL."""
        if not side.summed:
            return [], []
        n = len(first)
        sums, known = side.map.totals(np.concatenate([first, last]))
        wholes = [[_whole(words) for words in each.tolist()] for each in sums]
        found = [[high - low for low, high in zip(each[:n], each[n:], strict=True)] for each in wholes]
        return found, [each[n:] - each[:n] for each in known]


def _span(other: PairedSide, keys: Sequence[Codes], bound: Codes, comparison: Comparison) -> tuple[Codes, Codes]:
    """The ranks of the rows of the other side that a bound is less than, or greater than."""
    start, stop = other.ends(keys, len(bound))
    if comparison in (">", ">="):
        return start, other.ranks(keys, bound, after=comparison == ">=")
    return other.ranks(keys, bound, after=comparison == "<"), stop


def compared(left: Codes, right: Codes, comparison: Comparison, domain: Domain) -> Mask:
    """Which values of two columns a comparison holds for; neither has NULLs."""
    a, b = left, right
    if not has_ordered_codes(domain.type):
        values = sorted(
            {*np.unique(left).tolist(), *np.unique(right).tolist()}, key=lambda c: in_order(domain.decode_value(c))
        )
        codes = np.array(values, np.int64)
        by_code = np.argsort(codes)
        ranks = by_code  # the place of each code, in the order of codes, among the values in their order
        a, b = (ranks[np.searchsorted(codes[by_code], each)] for each in (left, right))
    found: Mask = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[comparison](a, b)
    return found


def has_ordered_codes(type_: Type) -> bool:
    """Whether codes of a type compare as its values do."""
    return type_.kind in _ORDERED_CODES or (type_.kind == "decimal" and (type_.precision or 0) <= 18)


def _pieces(sizes: Codes) -> Iterator[tuple[int, int]]:
    """Parts of rows that have about so many partners together, at least one row each."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _LISTED, side="right")))
        yield start, stop
        start = stop


def _greatest(type_: Type) -> int:
    return 2**61 if type_.kind == "int" else int(10 ** (type_.precision or 0)) - 1


def _parts(number: int, most: int) -> tuple[int, int]:
    """How often the greatest value, or the least one, is in a number, and the rest.

    >>> _parts(25, 10), _parts(-25, 10)
    ((2, 5), (-2, -5))
    """
    times_, rest = divmod(abs(number), most)
    return (times_, rest) if number >= 0 else (-times_, -rest)


def _codes(values: Iterator[int]) -> Codes:
    return np.array(list(values), np.int64)


def _whole(words: Sequence[int]) -> int:
    return (words[1] << 64) + (words[0] % 2**64)
