"""A view whose parameters are the ends of a range: `ts >= :since AND ts < :until`, behind equalities with others.

An ordered map (engine/ordered.py) has the rows of a block by the columns of the equalities and then by that of the
range: a request finds both ends in O(log N), and reads the rows between them. Aggregates are the difference of what is
before the two ends, which the nodes of the map know: O(log N), however many rows are between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.ordered import OrderedColumn, OrderedMap, place_keys
from ivme.engine.read.recompute import Row
from ivme.engine.read.verify import compare_rows, counted
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import PlanError
from ivme.ordered_rows import arrange, first_rows
from ivme.ordered_view import OrderedView
from ivme.query.model import Query
from ivme.query.nested import in_order
from ivme.query.order import Bound, Order, Ranges, Total
from ivme.query.sql_values import DECIMALS
from ivme.query.totals import sum_value
from ivme.query.types import Type

_SAMPLED = 16
"""How many requests are verified."""


class RangeView(OrderedView):
    """The rows of the view `inner` that are in a range. `inputs` of a request are as `Ranges.parameters` lists them."""

    def __init__(self, shape: Query, inner: str, order: Order, reader: Reader) -> None:
        super().__init__(shape, inner, order, reader)
        assert order.ranges is not None
        self._ranges: Ranges = order.ranges
        self.needs_changes = True
        self._columns = list(reader.catalog.views[inner].table.column_names)
        self._places = [self._columns.index(column) for _, column in self._ranges.equal]
        self._place = self._columns.index(self._ranges.column)

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        domains = self._reader.catalog.layout(self.inner).domains
        keys = [OrderedColumn(place, domains[place]) for place in (*self._places, self._place)]
        summed = [self._columns.index(name) for name in self._summed()]
        made = self._backend.ordered_map(place_keys(keys, (), domains), 0, summed)
        try:
            made.load(rows[self.inner].codes(), rows[self.inner].weights)
        except self._backend.overflow as error:
            raise self._too_many() from error
        self._map = made

    def follow(self, on: bool) -> None:
        if on:
            message = "has parameters in a range, so that its changes cannot be followed; follow it without them"
            raise PlanError(f"view {self.name} {message}")

    # Requests

    def _span(self, inputs: Sequence[int]) -> tuple[Codes, Codes]:
        """The ranks between which a request's rows are; none if a parameter is NULL."""
        given = dict(zip(self._ranges.parameters, inputs, strict=True))
        if NULL_CODE in inputs:
            return np.zeros(1, np.int64), np.zeros(1, np.int64)
        equal = [given[name] for name, _ in self._ranges.equal]
        lower, upper = self._ranges.lower, self._ranges.upper
        first = self._rank([*equal, NULL_CODE], after=True)  # NULL is first, and in no range
        if lower is not None:
            first = self._rank([*equal, given[lower.parameter]], after=lower.strict)
        last = self._rank(equal, after=True)
        if upper is not None:
            last = self._rank([*equal, given[upper.parameter]], after=not upper.strict)
        return first, np.maximum(first, last)

    def _rank(self, codes: Sequence[int], *, after: bool) -> Codes:
        return self._ordered_map.ranks([np.array([code], np.int64) for code in codes], 1, after)

    @property
    def _ordered_map(self) -> OrderedMap:
        assert self._map is not None, "it is filled when it is made"
        return self._map

    def _sorted(self, inputs: Sequence[int]) -> tuple[list[Codes], Codes]:
        first, last = self._span(inputs)
        if self._ranges.totals:
            return self._totals(first, last), np.ones(1, np.int64)
        _, columns, copies = self._ordered_map.rows(first, last)
        if not self._order.keys and self._order.is_whole:
            return columns, copies
        rows = RowBatch(self._reader.catalog.layout(self.inner), copies, None, list(columns))
        kept = rows.kept(*arrange(rows.data, copies, self._order))
        return kept.codes(), kept.weights

    def _totals(self, first: Codes, last: Codes) -> list[Codes]:
        """The row of aggregates: one code for each."""
        sums, _ = self._ordered_map.totals(np.concatenate([first, last]))
        found = [_whole(words[1]) - _whole(words[0]) for words in (each.tolist() for each in sums)]
        wholes = dict(zip(self._summed(), found, strict=True))
        state = self._reader.catalog.views[self.name]
        codes = []
        for total, variable in zip(self._ranges.totals, self.enumerations[self.name].outputs, strict=True):
            type_ = state.typed.types[variable]
            whole = wholes[total.sums] if total.sums in wholes else self._scanned(total, type_, first, last)
            value = self._value(total, whole, wholes[total.counts], type_)
            codes.append(np.array([state.finisher.domain(variable).code_computed(value)], np.int64))
        return codes

    def _summed(self) -> list[str]:
        """The columns of partial sums and counts whose codes are their values, so that nodes add them up."""
        types = {column.name: column.type for column in self._reader.catalog.relation(self.inner).columns}
        names = [name for total in self._ranges.totals for name in (total.sums, total.counts) if name]
        return [name for name in names if (type_ := types[name]) is not None and type_.kind == "int"]

    def _scanned(self, total: Total, type_: Type, first: Codes, last: Codes) -> int:
        """The sum of decimals between two ranks, in their smallest unit; linear in the distinct values between."""
        if not total.sums:
            return 0
        place = self._columns.index(total.sums)
        _, columns, _ = self._ordered_map.rows(first, last)
        values = self._reader.catalog.layout(self.inner).domains[place].values(columns[place].tolist())
        return sum(int(value.scaleb(type_.scale or 0, DECIMALS)) for value in values if value is not None)

    def _value(self, total: Total, whole: int, count: int, type_: Type) -> Any:
        if total.function == "count":
            return count
        if not count:
            return None
        return (
            whole / count if total.function == "avg" else sum_value(whole, type_, f"{total.name} of view {self.name}")
        )

    # Verifying

    def verify(self, reader: Reader, state: ViewState) -> None:
        """Compares the rows of some requests with those that Python finds among all rows of the block."""
        rows = reader.all_rows(self.inner)
        whole = [row for row, n in zip(rows.rows(), rows.weights.tolist(), strict=True) for _ in range(n)]
        for values in self._samples(whole):
            domains = [state.finisher.domain(variable) for variable in state.typed.query.input]
            codes = [domain.encode_value(value) for domain, value in zip(domains, values, strict=True)]
            columns, copies = self._sorted(codes)
            outputs = [state.finisher.domain(variable) for variable in self.enumerations[self.name].outputs]
            found = zip(*(d.values(each.tolist()) for d, each in zip(outputs, columns, strict=True)), strict=True)
            expected = self._expected_rows([row for row in whole if self._is_in(row, values)], state)
            shown = counted(zip(found, copies.tolist(), strict=True))
            compare_rows(f"view {state.name} for {values!r}", counted((row, 1) for row in expected), shown)

    def _samples(self, rows: list[Row]) -> Iterator[Row]:
        """Requests whose ends are values of rows."""
        known = [row for row in rows if all(row[place] is not None for place in (*self._places, self._place))]
        for number in range(min(_SAMPLED, len(known))):
            low, high = known[number * 7919 % len(known)], known[number * 104729 % len(known)]
            ends = [(self._ranges.lower, low), (self._ranges.upper, high)]
            yield (*(low[place] for place in self._places), *(row[self._place] for end, row in ends if end is not None))

    def _is_in(self, row: Row, values: Row) -> bool:
        given = dict(zip(self._ranges.parameters, values, strict=True))
        value = row[self._place]
        if value is None or any(row[p] != given[n] for p, (n, _) in zip(self._places, self._ranges.equal, strict=True)):
            return False
        return _is_behind(self._ranges.lower, value, given, 1) and _is_behind(self._ranges.upper, value, given, -1)

    def _expected_rows(self, rows: list[Row], state: ViewState) -> list[Row]:
        if not self._ranges.totals:
            return first_rows(rows, self._order)
        found = []
        for total, variable in zip(self._ranges.totals, self.enumerations[self.name].outputs, strict=True):
            type_ = state.typed.types[variable]
            count = sum(row[self._columns.index(total.counts)] for row in rows)
            parts = [row[self._columns.index(total.sums)] for row in rows] if total.sums else []
            whole = sum(int(part * 10 ** (type_.scale or 0)) for part in parts if part is not None)
            found.append(self._value(total, whole, count, type_))
        return [tuple(found)]


def _is_behind(end: Bound | None, value: object, given: Mapping[str, object], sign: int) -> bool:
    if end is None:
        return True
    mine, other = in_order(value), in_order(given[end.parameter])
    is_like, is_greater = bool(mine == other), bool(mine > other)
    return not end.strict if is_like else is_greater == (sign > 0)


def _whole(words: Sequence[int]) -> int:
    return (words[1] << 64) + (words[0] % 2**64)
