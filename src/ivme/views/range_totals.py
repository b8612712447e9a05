"""COUNT, SUM, AVG, MIN and MAX over a range of a parameter, by partial ones for each value of what is compared.

Without groups, counts and sums are the difference of what is before the two ends of a request, which the nodes of the
ordered map know: O(log N), however many rows are between; sums of decimals, whose codes may be those of a dictionary,
are added up value by value. With groups, MIN, MAX or a second range, the partial ones between the ends are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.read.recompute import Row
from ivme.engine.runtime.following import net
from ivme.engine.runtime.view_state import ViewState
from ivme.query.nested import in_order
from ivme.query.order import Total
from ivme.query.sql_values import DECIMALS
from ivme.query.totals import sum_value
from ivme.query.types import Type
from ivme.views.range_view import RangeView


class RangeTotals(RangeView):
    """The aggregates of the rows that are in a range."""

    def _summed(self) -> list[str]:
        """Those of partial sums and counts whose codes are their values."""
        if not self._ranges.is_summed:
            return []
        names = [name for total in self._ranges.totals for name in (total.sums, total.counts) if name]
        return [name for name in names if self._type(name).kind == "int"]

    def keys_of(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """What the group of a row has in the columns of the block, by those that it shows."""
        keys = (total for total in self._ranges.totals if total.function == "key")
        return {total.sums: columns[total.name] for total in keys if total.name in columns}

    def _type(self, name: str) -> Type:
        return self._reader.catalog.layout(self.inner).domains[self._columns.index(name)].type

    @property
    def _named(self) -> list[Total]:
        return [total for total in self._ranges.totals if total.name]

    def _sorted(self, inputs: Sequence[int]) -> tuple[list[Codes], Codes]:
        if self._ranges.is_grouped:
            return self._groups_of(*self._requested_rows(inputs))
        return self._row_between(*self._span(inputs)) if self._ranges.is_summed else self._row_of(inputs)

    def _row_between(self, first: Codes, last: Codes) -> tuple[list[Codes], Codes]:
        sums, _ = self._ordered_map.totals(np.concatenate([first, last]))
        found = [_whole(words[1]) - _whole(words[0]) for words in (each.tolist() for each in sums)]
        wholes = dict(zip(self._summed(), found, strict=True))
        for total in self._named:
            if total.sums and total.sums not in wholes:
                columns = self._ordered_map.rows(first, last)[1]
                wholes[total.sums] = sum(self._numbers(columns, total.sums))
        values = [[self._value(total, wholes.get(total.sums, 0), wholes[total.counts])] for total in self._named]
        return self._coded(values), np.ones(1, np.int64)

    def _row_of(self, inputs: Sequence[int]) -> tuple[list[Codes], Codes]:
        """The one row of a request, from the partial rows that it has."""
        columns, copies = self._requested_rows(inputs)
        places = np.zeros(len(copies), np.int64)
        codes = [self._aggregated(total, columns, places, 1) for total in self._named]
        return codes, np.ones(1, np.int64)

    def _groups_of(self, columns: list[Codes], copies: Codes) -> tuple[list[Codes], Codes]:
        keys = [columns[self._columns.index(total.sums)] for total in self._ranges.totals if total.function == "key"]
        if not len(copies):
            return [np.empty(0, np.int64) for _ in self._named], copies
        groups, places = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
        codes: list[Codes] = []
        number = 0
        for total in self._named:
            if total.function == "key":
                codes.append(np.ascontiguousarray(groups[:, number]))
                number += 1
                continue
            codes.append(self._aggregated(total, columns, places, len(groups)))
        ones = np.ones(len(groups), np.int64)
        return (codes, ones) if number == len(keys) else net(self._backend, codes, ones)  # some groups look the same

    def _aggregated(self, total: Total, columns: Sequence[Codes], places: Codes, count: int) -> Codes:
        """The codes of an aggregate for so many groups; `places` are the groups of partial rows."""
        if total.function in ("min", "max"):
            values = _extremes(self._values(columns, total.sums), places, count, total.function == "max")
        else:
            counts = _added(self._numbers(columns, total.counts), places, count)
            wholes = _added(self._numbers(columns, total.sums), places, count) if total.sums else counts
            values = [self._value(total, whole, n) for whole, n in zip(wholes, counts, strict=True)]
        return self._coded([values], [total])[0]

    def _values(self, columns: Sequence[Codes], name: str) -> list[Any]:
        place = self._columns.index(name)
        return self._domain(place).values(columns[place].tolist())

    def _numbers(self, columns: Sequence[Codes], name: str) -> list[int]:
        """Partial sums as whole numbers, of decimals in their smallest unit; 0 for NULL."""
        place, type_ = self._columns.index(name), self._type(name)
        if type_.kind == "int":
            return [0 if code == NULL_CODE else code for code in columns[place].tolist()]
        given = self._values(columns, name)
        return [0 if value is None else int(value.scaleb(type_.scale or 0, DECIMALS)) for value in given]

    def _value(self, total: Total, whole: int, count: int) -> Any:
        if total.function == "count":
            return count
        if not count:
            return None
        if total.function == "avg":
            return whole / count
        return sum_value(whole, self._type(total.sums), f"{total.name} of view {self.name}")

    def _coded(self, values: Sequence[Sequence[Any]], totals: Sequence[Total] | None = None) -> list[Codes]:
        """The codes of columns of values."""
        state = self._reader.catalog.views[self.name]
        domains = dict(zip(self._named, map(state.finisher.domain, self.enumerations[self.name].outputs), strict=True))
        pairs = zip(self._named if totals is None else totals, values, strict=True)
        return [np.array([domains[total].code_computed(each) for each in column], np.int64) for total, column in pairs]

    def _expected_rows(self, rows: list[Row], state: ViewState) -> list[Row]:  # noqa: ARG002
        keys = [self._columns.index(total.sums) for total in self._ranges.totals if total.function == "key"]
        groups: dict[Row, list[Row]] = {} if keys else {(): []}
        for row in rows:
            groups.setdefault(tuple(row[place] for place in keys), []).append(row)
        return [tuple(self._expected_value(total, group) for total in self._named) for group in groups.values()]

    def _expected_value(self, total: Total, rows: list[Row]) -> Any:
        if total.function == "key":
            return rows[0][self._columns.index(total.sums)]
        if total.function in ("min", "max"):
            given = [value for row in rows if (value := row[self._columns.index(total.sums)]) is not None]
            return (min if total.function == "min" else max)(given, key=in_order) if given else None
        count = sum(row[self._columns.index(total.counts)] for row in rows)
        parts = [row[self._columns.index(total.sums)] for row in rows] if total.sums else []
        unit = 10 ** (self._type(total.sums).scale or 0) if total.sums else 1
        return self._value(total, sum(int(part * unit) for part in parts if part is not None), count)


def _extremes(values: Iterable[Any], places: Codes, count: int, greatest: bool) -> list[Any]:
    """The least or the greatest of the values that are not NULL, by the group at their place."""
    found: list[Any] = [None] * count
    for value, place in zip(values, places.reshape(-1).tolist(), strict=True):
        held = found[place]
        if value is not None and (held is None or (in_order(value) > in_order(held)) == greatest):
            found[place] = value
    return found


def _added(numbers: Iterable[int], places: Codes, count: int) -> list[int]:
    """The sums of numbers by the group at their place."""
    found = [0] * count
    for number, place in zip(numbers, places.reshape(-1).tolist(), strict=True):
        found[place] += number
    return found


def _whole(words: Sequence[int]) -> int:
    return (words[1] << 64) + (words[0] % 2**64)
