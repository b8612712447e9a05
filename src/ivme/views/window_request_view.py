"""A view of window functions whose parameters name the rows: the rank of a player, the running sum at an order.

Two ordered maps have the rows of a block: one by partition and order, as for every window (window_view.py), and one by
what the parameters are compared with. A request finds its rows in the second and their positions in the first, and with
these the values: O(log N) for each row (engine/window_positions.py). No value is stored, so that a batch takes O(log N)
for each row that it changes, although the ranks of all rows behind it change with it.
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
from ivme.engine.window_frames import LARGEST, code_offset
from ivme.engine.window_positions import Positions, is_found, value_of
from ivme.errors import PlanError
from ivme.query.model import Query
from ivme.query.order import Order
from ivme.query.windows import TOTALS, Edge
from ivme.views.window_view import Spans, WindowView

_SAMPLED = 64
"""How many requests are verified."""


class WindowRequestView(WindowView):
    """The rows of the view `inner` that the inputs name, each with the values of the window functions of an order."""

    def __init__(self, shape: Query, inner: str, order: Order, reader: Reader) -> None:
        super().__init__(shape, inner, order, reader)
        assert order.ranges is not None
        names = list(reader.catalog.views[inner].table.column_names)
        self._equal = [names.index(column) for _, column in order.ranges.equal]
        places = {name: place for place, name in enumerate((*names, *order.added))}
        self._items = [places[item.column] for item in order.ranges.shown_of(names)]
        self._by_key: OrderedMap | None = None
        self.needs_changes = True

    def _summed_places(self) -> list[int]:
        """Those of all frames: here, sums are the difference of two."""
        columns = [call.column for call in self._order.windows if call.function in TOTALS and call.is_by_position]
        return [place for place in dict.fromkeys(columns) if isinstance(place, int) and self._is_summed(place)]

    # Changes

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        super().build(rows)
        domains = self._reader.catalog.layout(self.inner).domains
        keys = [OrderedColumn(place, domains[place]) for place in self._equal]
        made = self._backend.ordered_map(place_keys(keys, (), domains), 0, [])
        made.load(rows[self.inner].codes(), rows[self.inner].weights)
        self._by_key = made

    def apply(self, relation: str, rows: RowBatch) -> None:
        super().apply(relation, rows)
        assert self._by_key is not None, "it is filled when it is made"
        self._by_key.apply(rows.codes(), rows.weights)

    def commit(self) -> None:
        super().commit()
        if self._by_key is not None:
            self._by_key.commit()

    def roll_back(self) -> None:
        super().roll_back()
        if self._by_key is not None:
            self._by_key.roll_back()

    def follow(self, on: bool) -> None:
        if on:
            message = "has parameters that name rows, so its changes cannot be followed; follow it without them"
            raise PlanError(f"view {self.name} {message}")

    def held_codes(self) -> list[Codes]:
        return [*super().held_codes(), *([] if self._by_key is None else self._by_key.codes())]

    def memory_bytes(self) -> int:
        return super().memory_bytes() + (0 if self._by_key is None else self._by_key.memory_bytes())

    @property
    def operations(self) -> int:
        """The comparisons of rows in both maps so far."""
        return super().operations + (0 if self._by_key is None else self._by_key.operations)

    # Requests

    def _sorted(self, inputs: Sequence[int]) -> tuple[list[Codes], Codes]:
        """The rows of a request, over the columns that are shown; each copy is a row if functions tell them apart."""
        assert self._by_key is not None
        assert self._map is not None
        given = [np.array([code], np.int64) for code in inputs]
        first, last = self._by_key.ranks(given, 1, False), self._by_key.ranks(given, 1, True)
        last = first if NULL_CODE in inputs else last
        _, columns, copies = self._by_key.rows(first, last)
        if not len(copies):
            return [np.empty(0, np.int64) for _ in self._items], copies
        number = np.zeros(len(copies), np.int64)
        if self._has_copies:
            each = np.repeat(np.arange(len(copies)), copies)
            number = np.arange(len(each)) - np.repeat(np.cumsum(copies) - copies, copies)
            columns, copies = [column[each] for column in columns], np.ones(len(each), np.int64)
        can_add = self._can_add(columns)
        whole = [*columns, *self._values_at(self._positions(self._map, columns, number), can_add=can_add)]
        return [whole[place] for place in self._items], copies

    def _positions(self, ordered: OrderedMap, columns: list[Codes], number: Codes) -> Positions:
        """Where rows are; `number` is that of each among its copies."""
        n, groups = len(number), [columns[place] for place in self._groups()]
        own = [columns[place] for place in self._places]
        like = own[: len(groups) + len(self._own_keys)]

        def near(edge: Edge) -> tuple[Codes, Codes]:
            offset = code_offset(self._keys[0], edge)
            assert offset is not None
            assert offset.denominator == 1
            return self._between(ordered, groups, columns[self._own_keys[0]], (int(offset), int(offset)))

        peers = ordered.ranks(like, n, False), ordered.ranks(like, n, True)
        partition = ordered.ranks(groups, n, False), ordered.ranks(groups, n, True)
        return Positions(ordered, ordered.ranks(own, n, False) + number, peers, partition, self._summed_places(), near)

    def _can_add(self, columns: list[Codes]) -> bool:
        """Whether keys are so small that the distance of a frame can be added to them in 64 bits."""
        keys = [columns[place] for place in self._own_keys]
        return all((np.abs(np.where(key == NULL_CODE, 0, key)) < LARGEST).all() for key in keys)

    def _values_at(self, rows: Positions, *, can_add: bool) -> list[Codes]:
        summed = self._summed_places()
        found = {
            number: value_of(call, rows)
            for number, call in enumerate(self._calls)
            if is_found(call, summed, has_near=can_add and self._has_whole_offsets(number))
        }
        if len(found) < len(self._calls):
            computed = [self._computed(rows, place) for place in range(len(rows.at))]
            for number in range(len(self._calls)):
                found.setdefault(number, np.array([values[number] for values in computed], np.int64))
        return [found[number] for number in range(len(self._calls))]

    def _has_whole_offsets(self, number: int) -> bool:
        """Whether the ends of a frame of values are at a distance that is a number of codes."""
        frame = self._order.windows[number].frame
        if frame is None or len(self._keys) != 1 or not self._own_keys:
            return False
        offsets = [code_offset(self._keys[0], edge) for edge in (frame.start, frame.end) if edge is not None]
        return all(each is not None and each.denominator == 1 and abs(each) < LARGEST for each in offsets)

    def _computed(self, rows: Positions, number: int) -> list[int]:
        """The values of a row that are computed from the rows around it: those like it, and what its frames need."""
        span = [each[number : number + 1] for each in (*rows.peers, *rows.partition)]
        columns, copies = self._values(rows.ordered, Spans(*span))
        place = int(np.searchsorted(np.cumsum(copies), rows.at[number] - span[0][0], "right"))
        return [int(column[place]) for column in columns[-len(self._calls) :]]

    # Reasons

    def _asked(self, values: Row) -> RowBatch:  # noqa: ARG002  other rows decide the values of those requested
        return self._reader.all_rows(self.inner)

    def is_requested(self, row: Row, values: Row) -> bool:
        return self._key(row) == values

    def shown_of(self, row: Row) -> Row:
        return tuple(row[place] for place in self._items)

    def known_below(self, values: Row) -> tuple[dict[str, Any], dict[str, Any]]:
        names = self._reader.catalog.views[self.inner].table.column_names
        return {names[place]: value for place, value in zip(self._equal, values, strict=True)}, {}

    # Verifying

    def verify(self, reader: Reader, state: ViewState) -> None:
        """Compares the rows of some requests with those that Python computes from all rows of the block."""
        rows = reader.all_rows(self.inner)
        whole = self._plain([row for row, n in zip(rows.rows(), rows.weights.tolist(), strict=True) for _ in range(n)])
        domains = [state.finisher.domain(variable) for variable in state.typed.query.input]
        outputs = [state.finisher.domain(variable) for variable in self.enumerations[self.name].outputs]
        for values in self._samples(whole):
            columns, copies = self._sorted([d.encode_value(value) for d, value in zip(domains, values, strict=True)])
            found = zip(*(d.values(each.tolist()) for d, each in zip(outputs, columns, strict=True)), strict=True)
            mine = [tuple(row[i] for i in self._items) for row in whole if self._key(row) == values]
            shown = counted(zip(found, copies.tolist(), strict=True))
            compare_rows(f"view {state.name} for {values!r}", counted((row, 1) for row in mine), shown)

    def _key(self, row: Row) -> Row:
        return tuple(row[place] for place in self._equal)

    def _samples(self, rows: list[Row]) -> Iterator[Row]:
        given = [values for values in dict.fromkeys(map(self._key, rows)) if None not in values]
        yield from given[:: max(1, len(given) // _SAMPLED)]
