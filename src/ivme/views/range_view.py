"""A view whose parameters are the ends of a range: `ts >= :since AND ts < :until`, behind equalities with others.

An ordered map (engine/ordered.py) has the rows of a block by the columns of the equalities and then by that of the
range: a request finds both ends in O(log N), and reads the rows between them. `name LIKE :begin || '%'` is a range too.
Of ranges of several columns, the first is found so, and the others are filters on its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domain import Domain
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.ordered import OrderedColumn, OrderedMap, place_keys
from ivme.engine.read.recompute import Row
from ivme.engine.read.verify import compare_rows, counted
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import DataError, PlanError
from ivme.query.model import Query
from ivme.query.nested import in_order
from ivme.query.order import Bound, Order, Ranges, Span
from ivme.views.ordered_rows import arrange, first_rows
from ivme.views.ordered_view import OrderedView

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
        self._spans = [(self._columns.index(span.column), span) for span in self._ranges.spans]

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        domains = self._reader.catalog.layout(self.inner).domains
        keys = [OrderedColumn(place, domains[place]) for place in (*self._places, self._spans[0][0])]
        summed = [self._columns.index(name) for name in self._summed()]
        made = self._backend.ordered_map(place_keys(keys, (), domains), 0, summed)
        try:
            made.load(rows[self.inner].codes(), rows[self.inner].weights)
        except self._backend.overflow as error:
            raise self._too_many() from error
        self._map = made

    def _summed(self) -> list[str]:
        """The columns that the nodes of the map add up."""
        return []

    def follow(self, on: bool) -> None:
        if on:
            message = "has parameters in a range, so its changes cannot be followed; follow it without them"
            raise PlanError(f"view {self.name} {message}")

    # Requests

    def _span(self, inputs: Sequence[int]) -> tuple[Codes, Codes]:
        """The ranks between which a request's rows are; none if a parameter is NULL."""
        given = dict(zip(self._ranges.parameters, inputs, strict=True))
        if NULL_CODE in inputs:
            return np.zeros(1, np.int64), np.zeros(1, np.int64)
        equal = [given[name] for name, _ in self._ranges.equal]
        place, span = self._spans[0]
        lower, upper = span.lower, span.upper
        first = self._rank([*equal, NULL_CODE], after=True)  # NULL is first, and in no range
        if lower is not None:
            first = self._rank([*equal, given[lower.parameter]], after=lower.strict)
        last = self._rank(equal, after=True)
        if upper is not None:
            last = self._rank([*equal, given[upper.parameter]], after=not upper.strict)
        if span.prefix is not None:
            begin = self._beginning(place, span.prefix, given)
            first = self._rank([*equal, given[span.prefix]], after=False)
            end = behind_prefix(begin)
            last = last if end is None else self._rank([*equal, self._domain(place).encode_value(end)], after=False)
        return first, np.maximum(first, last)

    def _requested_rows(self, inputs: Sequence[int]) -> tuple[list[Codes], Codes]:
        """The rows of a request and their copies: those between its ends that pass the filters."""
        _, columns, copies = self._ordered_map.rows(*self._span(inputs))
        given = dict(zip(self._ranges.parameters, inputs, strict=True))
        for place, span in self._spans[1:] if len(copies) else []:
            kept = self._passing(place, span, columns[place], given)
            columns, copies = [column[kept] for column in columns], copies[kept]
        return columns, copies

    def _passing(self, place: int, span: Span, codes: Codes, given: Mapping[str, int]) -> Codes:
        """Where the codes of a column are in a range; no parameter is NULL."""
        known, places = np.unique(codes, return_inverse=True)
        values = self._domain(place).values(known.tolist())
        ends: dict[str, object] = {name: self._domain(place).decode_value(given[name]) for name in span.parameters}
        if span.prefix is not None:
            self._beginning(place, span.prefix, given)
        return np.flatnonzero(np.array([_is_within(span, value, ends) for value in values], bool)[places.reshape(-1)])

    def _beginning(self, place: int, parameter: str, given: Mapping[str, int]) -> str:
        """What texts are to begin with."""
        begin: str = self._domain(place).decode_value(given[parameter])
        if any(sign in begin for sign in "%_\\"):
            message = "is what texts begin with, as written: it cannot have %, _ or \\, which LIKE takes as a pattern"
            raise DataError(f"parameter {parameter} of view {self.name} {message}")
        return begin

    def _rank(self, codes: Sequence[int], *, after: bool) -> Codes:
        return self._ordered_map.ranks([np.array([code], np.int64) for code in codes], 1, after)

    def _domain(self, place: int) -> Domain:
        """The codes of a column."""
        return self._reader.catalog.layout(self.inner).domains[place]

    @property
    def _ordered_map(self) -> OrderedMap:
        assert self._map is not None, "it is filled when it is made"
        return self._map

    def _sorted(self, inputs: Sequence[int]) -> tuple[list[Codes], Codes]:
        columns, copies = self._requested_rows(inputs)
        if not self._order.keys and self._order.is_whole:
            return columns, copies
        rows = RowBatch(self._reader.catalog.layout(self.inner), copies, None, list(columns))
        kept = rows.kept(*arrange(rows.data, copies, self._order))
        return kept.codes(), kept.weights

    # Reasons

    def _asked(self, values: Row) -> RowBatch:
        rows = self._reader.all_rows(self.inner)
        kept = np.array([number for number, row in enumerate(rows.rows()) if self._is_in(row, values)], np.int64)
        return rows.kept(kept, rows.weights[kept])

    def known_below(self, values: Row) -> tuple[dict[str, Any], dict[str, Any]]:
        given = dict(zip(self._ranges.parameters, values, strict=True))
        return {column: given[name] for name, column in self._ranges.equal}, {}

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
        compared = [*self._places, *(place for place, _ in self._spans)]
        known = [row for row in rows if all(row[place] is not None for place in compared)]
        for number in range(min(_SAMPLED, len(known))):
            low, high = known[number * 7919 % len(known)], known[number * 104729 % len(known)]
            values = []
            for place, span in self._spans:
                values += [row[place] for end, row in ((span.lower, low), (span.upper, high)) if end is not None]
                values += [] if span.prefix is None else [_plain_start(low[place])]
            yield (*(low[place] for place in self._places), *values)

    def _is_in(self, row: Row, values: Row) -> bool:
        given = dict(zip(self._ranges.parameters, values, strict=True))
        if any(row[p] != given[n] for p, (n, _) in zip(self._places, self._ranges.equal, strict=True)):
            return False
        return all(_is_within(span, row[place], given) for place, span in self._spans)

    def _expected_rows(self, rows: list[Row], state: ViewState) -> list[Row]:  # noqa: ARG002  totals have types
        return first_rows(rows, self._order)


def behind_prefix(begin: str) -> str | None:
    """The first text behind all that begin like this; None if there is none.

    >>> behind_prefix("ab"), behind_prefix("a\U0010ffff"), behind_prefix("")
    ('ac', 'b', None)
    """
    kept = begin.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)


def _plain_start(text: str) -> str:
    """The first characters of a text, up to one that LIKE takes as a pattern."""
    return re.split(r"[%_\\]", text, maxsplit=1)[0][:2]


def _is_within(span: Span, value: Any, given: Mapping[str, object]) -> bool:
    """Whether a value is in a range whose ends are given."""
    if value is None:
        return False
    if span.prefix is not None:
        return bool(value.startswith(given[span.prefix]))
    return _is_behind(span.lower, value, given, 1) and _is_behind(span.upper, value, given, -1)


def _is_behind(end: Bound | None, value: object, given: Mapping[str, object], sign: int) -> bool:
    if end is None:
        return True
    mine, other = in_order(value), in_order(given[end.parameter])
    is_like, is_greater = bool(mine == other), bool(mine > other)
    return not end.strict if is_like else is_greater == (sign > 0)
