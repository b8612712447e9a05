"""A view whose parameters say of which group the first rows are: `WHERE customer = :c ORDER BY amount DESC LIMIT 10`.

An ordered map has the rows of all groups. A request finds the ends of what is shown of its group in O(log N), and reads
the rows in between, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.read.recompute import Row
from ivme.views.ordered_view import OrderedView
from ivme.views.range_view import RangeView

_SAMPLED = 64
"""How many requests are verified."""


class FirstRowsView(RangeView):
    """The first rows of a group of the view `inner`, which the inputs name."""

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        OrderedView.build(self, rows)

    def _sorted(self, inputs: Sequence[int]) -> tuple[list[Codes], Codes]:
        if NULL_CODE in inputs:
            nothing = np.empty(0, np.int64)
            return [nothing for _ in self._columns], nothing
        groups = [np.array([code], np.int64) for code in inputs]
        _, columns, copies = self._ordered_map.rows(*self._ordered_map.shown(groups, 1, self._window()))
        return columns, copies

    def _samples(self, rows: list[Row]) -> Iterator[Row]:
        known = dict.fromkeys(tuple(row[place] for place in self._places) for row in rows)
        given = [values for values in known if None not in values]
        yield from given[:: max(1, len(given) // _SAMPLED)]

    def _is_in(self, row: Row, values: Row) -> bool:
        return tuple(row[place] for place in self._places) == values
