"""A block that adds the columns of window functions to the rows of another one.

An ordered map (engine/ordered.py) has the rows by partition and order. What a batch changes is found by ranks: only
rows within the reach of a changed one (query/windows.py) are computed as they were and as they are, from the rows
within their context. The reach of a frame of values (RANGE) is one of values, which an unchanged row is in before and
after, or not. Running counts and sums of whole numbers begin with those that the map's nodes know.

Why the same rows are found before and after: a row r that did not change itself has a new value only if a changed row k
is among the n rows next to it, before or after the batch. Of the changed rows on that side let k be the nearest to r.
No row between r and k changed, so that their number is the same in both states, and r is within n rows of k in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domain import Domain
from ivme.engine.ordered import NO_LIMIT, OrderedMap, Ties, Window
from ivme.engine.read.plain_windows import Types, plain_windows
from ivme.engine.read.recompute import Row
from ivme.engine.runtime.reader import Reader
from ivme.engine.window_frames import LARGEST, Key, Part, code_offset
from ivme.engine.window_functions import Computed
from ivme.engine.window_positions import whole
from ivme.query.model import Query
from ivme.query.order import Order
from ivme.query.windows import AGGREGATED, TOTALS, VALUES, Reach, WindowCall, widest
from ivme.views.ordered_view import OrderedView

_SUMMED_DIGITS = 18
"""Decimals of up to so many digits are their own codes."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Parts of partitions: the ranks at which each begins and ends, and those of its partition."""

    first: Codes
    last: Codes
    start: Codes
    stop: Codes


class WindowView(OrderedView):
    """The rows of the view `inner`, each with the values of the window functions of an order."""

    def __init__(self, shape: Query, inner: str, order: Order, reader: Reader) -> None:
        super().__init__(shape, inner, order, reader)
        self._of_columns: list[Domain] = list(reader.catalog.layout(inner).domains)
        self._calls: list[Computed] = []
        for call in self._order.windows:
            given = self._of_columns[call.column] if isinstance(call.column, int) else None
            type_ = call.type_of(None if given is None else given.type)
            assert type_ is not None, "it takes its column"
            where = f"{call.text} of view {shape.name}"
            self._calls.append(Computed(call, given, reader.catalog.domains.domain(type_), where))
        self._keys = [
            Key(key.column, self._of_columns[key.column], key.descending)
            for key in self._order.keys
            if isinstance(key.column, int)
        ]
        near = {call.name: found for call in self._order.windows if (found := self._offsets(call)) is not None}
        self._near: tuple[int, int] | None = None
        if near:
            self._near = min(low for low, _ in near.values()), max(high for _, high in near.values())
        others = [call for call in self._order.windows if call.name not in near]
        self._reach: Reach = widest([call.reach for call in others])
        summed = self._summed_places()
        self._context: Reach = widest(
            [call.context(summed=call.column is None or call.column in summed) for call in others]
        )
        self._has_copies = any(call.needs_copies for call in self._order.windows)

    def _summed_places(self) -> list[int]:
        """The columns of running counts and sums whose codes are their values."""
        found = []
        for computed in self._order.windows:
            is_running = computed.frame is not None and computed.frame.is_running and computed.function in TOTALS
            if is_running and isinstance(computed.column, int) and computed.column not in found:
                found += [computed.column] if self._is_summed(computed.column) else []
        return found

    def _is_summed(self, place: int) -> bool:
        """Whether the map's nodes can add a column up."""
        type_ = self._of_columns[place].type
        return type_.kind == "int" or (type_.kind == "decimal" and (type_.precision or 0) <= _SUMMED_DIGITS)

    def _offsets(self, call: WindowCall) -> tuple[int, int] | None:
        """How far the frame of a row reaches in the codes of the key, if it is of values; None if it is not that."""
        frame = call.frame
        is_of_values = call.function in (*AGGREGATED, *VALUES) and frame is not None and frame.unit == "range"
        if not is_of_values or frame is None or len(self._keys) != 1 or not self._own_keys:
            return None
        ends = [code_offset(self._keys[0], edge) for edge in (frame.start, frame.end)]
        low, high = ends
        return None if low is None or high is None else (math.floor(low), math.ceil(high))

    # Changes

    def _apply_ranked(self, ordered: OrderedMap, codes: list[Codes], weights: Codes) -> None:
        """Computes the rows within reach of what changes, as they were and as they are."""
        old, copies = self._values(ordered, self._reached(ordered, codes, len(weights)))
        self._parts.append((old, -copies))
        ordered.apply(codes, weights)
        self._parts.append(self._values(ordered, self._reached(ordered, codes, len(weights))))

    def _reached(self, ordered: OrderedMap, codes: list[Codes], n: int) -> Spans:
        """The rows whose values the changed ones may change."""
        groups = [codes[place] for place in self._groups()]
        start, stop = ordered.ranks(groups, n, False), ordered.ranks(groups, n, True)
        before, after = self._reach
        first, last = start, stop
        if before is not None:
            peers = [codes[place] for place in self._places[: len(groups) + len(self._own_keys)]]
            row = [codes[place] for place in self._places]
            first = np.minimum(ordered.ranks(row, n, False) - before, ordered.ranks(peers, n, False))
            first = np.maximum(first, start)
        if after is not None:
            row = [codes[place] for place in self._places]
            last = np.minimum(ordered.ranks(row, n, True) + after, stop)
        if self._near is not None:
            low, high = self._near
            near = self._between(ordered, groups, codes[self._own_keys[0]], (-high, -low))
            first, last = np.minimum(first, near[0]), np.maximum(last, near[1])
        return _merged(Spans(first, last, start, stop))

    def _between(
        self, ordered: OrderedMap, groups: list[Codes], keys: Codes, offsets: tuple[int, int], ends: Codes | None = None
    ) -> tuple[Codes, Codes]:
        """The ranks of rows whose key is so far from those given, up to `ends` if these are others; NULL has peers.

        Where codes are so large that they cannot be added to, it is all rows of the partition.
        """
        n = len(keys)
        ends = keys if ends is None else ends
        first, last = ordered.ranks(groups, n, False), ordered.ranks(groups, n, True)
        if any(abs(each) >= LARGEST for each in offsets) or any(
            (_size(each) >= LARGEST).any() for each in (keys, ends)
        ):
            return first, last
        low, high = offsets if not self._keys[0].descending else (-offsets[0], -offsets[1])
        begin = np.where(keys == NULL_CODE, NULL_CODE, keys + low)
        end = np.where(ends == NULL_CODE, NULL_CODE, ends + high)
        return ordered.ranks([*groups, begin], n, False), ordered.ranks([*groups, end], n, True)

    @property
    def _own_keys(self) -> list[int]:
        """The columns of the order that are not those of the partition."""
        groups = self._groups()
        return list(dict.fromkeys(key.position for key in self._keys if key.position not in groups))

    @property
    def _places(self) -> list[int]:
        """All columns, in the order of the map."""
        return list(dict.fromkeys([*self._groups(), *self._own_keys, *range(len(self._of_columns))]))

    # Values

    def _ranked(self, ordered: OrderedMap, first: Codes, last: Codes) -> tuple[list[Codes], Codes]:
        """All rows of partitions."""
        return self._values(ordered, Spans(first, last, first, last))

    def _values(self, ordered: OrderedMap, spans: Spans) -> tuple[list[Codes], Codes]:
        """The rows of parts of partitions with the values of functions, and their copies."""
        before, after = self._context
        first = spans.start if before is None else np.maximum(spans.first - before, spans.start)
        last = spans.stop if after is None else np.minimum(spans.last + after, spans.stop)
        if self._near is not None and len(first):
            near = self._context_by_value(ordered, spans)
            first, last = np.minimum(first, near[0]), np.maximum(last, near[1])
        numbers, columns, copies = ordered.rows(first, last)
        part = Part(numbers, columns, copies, self._keys, first - spans.start, self._carried(ordered, first, spans))
        part = part.expanded() if self._has_copies else part
        values = [*part.columns, *(each.of(part) for each in self._calls)]
        return _cut(part, values, spans.first - first, spans.last - first)

    def _context_by_value(self, ordered: OrderedMap, spans: Spans) -> tuple[Codes, Codes]:
        """The ranks of the rows that frames of values are computed from: around the first and the last row of spans."""
        assert self._near is not None
        _, begin, _ = ordered.rows(spans.first, spans.first + 1)
        _, end, _ = ordered.rows(spans.last - 1, spans.last)
        groups = [begin[place] for place in self._groups()]
        key = self._own_keys[0]
        near = self._between(ordered, groups, begin[key], self._near, end[key])
        return np.maximum(near[0], spans.start), np.minimum(near[1], spans.stop)

    def _carried(self, ordered: OrderedMap, first: Codes, spans: Spans) -> dict[int, tuple[list[int], Codes]]:
        places = self._summed_places()
        if not places or not len(first):
            return {}
        sums, known = ordered.totals(np.concatenate([first, spans.start]))
        n = len(first)
        return {
            place: (
                [whole(one) - whole(other) for one, other in zip(words[:n], words[n:], strict=True)],
                counts[:n] - counts[n:],
            )
            for place, words, counts in zip(places, (each.tolist() for each in sums), known, strict=True)
        }

    def _window(self) -> tuple[int, int, int, int]:
        return Window(0, NO_LIMIT, Ties.NONE, len(self._groups())).packed()

    @property
    def types(self) -> Types:
        """For each call the types of its column and of its values."""
        return [(each.given.type if each.given is not None else None, each.shown.type) for each in self._calls]

    def _plain(self, rows: list[Row]) -> list[Row]:
        return plain_windows(rows, self._order, self.types)


def _size(codes: Codes) -> Codes:
    """The absolute values of codes that are not NULL."""
    return np.abs(np.where(codes == NULL_CODE, 0, codes))


def _cut(part: Part, values: list[Codes], first: Codes, last: Codes) -> tuple[list[Codes], Codes]:
    """The copies between two places of each part; a row at an edge may have some inside."""
    if not len(part):
        return values, part.copies
    start = part.copies_before[part.partitions[0]]
    begin, end = part.copies_before[:-1] - start, part.copies_before[1:] - start
    inside = np.minimum(end, last[part.numbers]) - np.maximum(begin, first[part.numbers])
    kept = np.flatnonzero(inside > 0)
    return [column[kept] for column in values], inside[kept]


def _merged(spans: Spans) -> Spans:
    """Spans that meet are one, so that no row comes twice; those without rows are left out."""
    order = np.lexsort((spans.first, spans.start))
    order = order[spans.first[order] < spans.last[order]]
    first, last, start, stop = (each[order] for each in (spans.first, spans.last, spans.start, spans.stop))
    kept: list[int] = []
    ends: list[int] = []
    for number, (low, high, group) in enumerate(zip(first.tolist(), last.tolist(), start.tolist(), strict=True)):
        if kept and start[kept[-1]] == group and low <= ends[-1]:
            ends[-1] = max(ends[-1], high)
        else:
            kept.append(number)
            ends.append(high)
    places = np.array(kept, np.int64)
    return Spans(first[places], np.array(ends, np.int64), start[places], stop[places])
