"""A view with ORDER BY or LIMIT over the rows of a block.

With LIMIT, an ordered map (engine/ordered.py) has the block's rows in their order: a batch takes O(log N) for each row
that it changes, the rows that are shown are read without sorting, and what a batch changes of them is found at the
edges of the limit. Without LIMIT all rows are shown: they are sorted when they are read, unless reads are favoured, and
their changes are the block's. A view with parameters sorts the rows of each request. One whose block is recomputed
sorts all rows until it is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.backend import Block, Cursor, Listed
from ivme.engine.codes.dictionary import Codes
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.ordered import NO_LIMIT, OrderedColumn, OrderedMap, Ties, Window, place_keys
from ivme.engine.ranks import with_ranks
from ivme.engine.read.recompute import Row, recompute
from ivme.engine.read.verify import compare_rows, counted
from ivme.engine.runtime.distinct import Weighted
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.following import net
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.triggers import CountError
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import PlanError
from ivme.plan.ir.program import Enumeration
from ivme.query.model import Query
from ivme.query.order import Order, OrderKey
from ivme.views.ordered_rows import arrange, first_rows

_TIES = {"none": Ties.NONE, "last": Ties.LIKE_LAST, "values": Ties.VALUES}


class OrderedView(ExternalView):
    """The rows of the view `inner` in an order; `shape` is the query that they look like they come from."""

    takes_nan = True

    def __init__(self, shape: Query, inner: str, order: Order, reader: Reader) -> None:
        catalog = reader.catalog
        super().__init__(shape.name, ("ordered", shape.name), catalog.backend, catalog.domains, ())
        self.relations = (inner,)
        self.enumerations = {shape.name: Enumeration(tuple((v, v) for v in shape.input), shape.output, (), (), ())}
        self.inner = inner
        self._order = order.over(catalog.views[inner].table.column_names)
        self._reader = reader
        self._has_inputs = bool(shape.input)
        self._is_cut = (order.is_kept or not order.is_whole) and not self._has_inputs
        self.needs_changes = self._is_cut and not catalog.views[inner].lazy
        self._map: OrderedMap | None = None
        self._follows = False
        self._parts: list[tuple[list[Codes], Codes]] = []

    # Changes

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        """Fills the ordered map."""
        domains = self._reader.catalog.layout(self.inner).domains
        keys = [
            OrderedColumn(place, domains[place], key.descending, key.nulls_first)
            for key in self._order.keys
            if isinstance(place := key.column, int)
        ]
        groups = self._groups()
        made = self._backend.ordered_map(place_keys(keys, groups, domains), len(groups), self._summed_places())
        try:
            made.load(rows[self.inner].codes(), rows[self.inner].weights)
        except self._backend.overflow as error:
            raise self._too_many() from error
        self._map = made

    def fill(self) -> None:
        if self.needs_changes:
            self.build({self.inner: self._reader.all_rows(self.inner)})

    def _summed_places(self) -> list[int]:
        """The columns that the nodes of the map add up."""
        return []

    def _groups(self) -> list[int]:
        return list(dict.fromkeys(place for place in self._order.groups if isinstance(place, int)))

    def _window(self) -> tuple[int, int, int, int]:
        """What is shown of each group."""
        order = self._order
        groups = self._groups()
        known = {key.column for key in order.keys}.difference(groups)
        limit = NO_LIMIT if order.limit is None else order.limit
        return Window(order.offset, limit, _TIES[order.ties], len(groups) + len(known)).packed()

    def _too_many(self) -> CountError:
        return CountError(f"the number of rows behind view {self.name} does not fit 64 bits; nothing was changed")

    def apply(self, relation: str, rows: RowBatch) -> None:  # noqa: ARG002  it reads one
        codes = rows.codes()
        try:
            if self._map is None:
                self._parts += [(codes, rows.weights)] if self._follows else []
            elif self._follows and self._order.added:
                self._apply_ranked(self._map, codes, rows.weights)
            elif self._follows:
                self._parts.append(self._map.apply_shown(codes, rows.weights, self._window()))
            else:
                self._map.apply(codes, rows.weights)
        except self._backend.overflow as error:
            raise self._too_many() from error

    def _apply_ranked(self, ordered: OrderedMap, codes: list[Codes], weights: Codes) -> None:
        """Ranks of all rows behind a change may change: what is shown of its group is compared with what was shown."""
        groups = [codes[place] for place in self._groups()]
        if groups:
            groups, _ = self._backend.net(groups, np.ones(len(weights), np.int64))
        count = len(groups[0]) if groups else 1
        old, copies = self._ranked(ordered, *ordered.shown(groups, count, self._window()))
        self._parts.append((old, -copies))
        ordered.apply(codes, weights)
        self._parts.append(self._ranked(ordered, *ordered.shown(groups, count, self._window())))

    def _ranked(self, ordered: OrderedMap, first: Codes, last: Codes) -> tuple[list[Codes], Codes]:
        """The rows between ranks of the map, with their rank in their group if that is shown."""
        numbers, columns, copies = ordered.rows(first, last)
        if not self._order.rank:
            return columns, copies
        keys = [key.column for key in self._order.keys if isinstance(key.column, int)]
        return with_ranks(numbers, columns, copies, keys, _TIES[self._order.ties], self._order.offset)

    def commit(self) -> None:
        self._parts = []
        if self._map is not None:
            self._map.commit()

    def roll_back(self) -> None:
        self._parts = []
        if self._map is not None:
            self._map.roll_back()

    def follow(self, on: bool) -> None:
        if on and self._has_inputs:
            message = "has parameters and an order, so its changes cannot be followed; follow it without LIMIT"
            raise PlanError(f"view {self.name} {message}")
        if on and self._is_cut and self._map is None:
            self.build({self.inner: self._reader.all_rows(self.inner)})
        elif not on and not self.needs_changes:
            self._map = None
        self._follows = on

    def changed(self, layout: Layout) -> RowBatch:
        """The rows that enter what is shown, and those that leave it."""
        nothing = np.empty(0, np.int64)
        weights = np.concatenate([nothing, *(each for _, each in self._parts)])
        columns = [np.concatenate([nothing, *(part[i] for part, _ in self._parts)]) for i in self._shown()]
        columns, weights = net(self._backend, columns, weights)
        return RowBatch(layout, weights, None, list(columns))

    def _shown(self) -> list[int]:
        """The columns of the block that readers see."""
        names = self._reader.catalog.relation(self.inner).column_names
        shown = self._order.shown(names)
        return [place for place, name in enumerate((*names, *self._order.added)) if name in shown]

    # Reading

    def _sorted(self, inputs: Sequence[int]) -> tuple[list[Codes], Codes]:
        """The rows that are shown, in their order: all columns of the block, and the copies of each."""
        if self._map is not None:
            return self._ranked(self._map, *self._map.all_shown(self._window()))
        state = self._reader.catalog.views[self.inner]
        rows = self._reader.all_rows(self.inner) if not self._has_inputs else self._requested(state, inputs)
        kept = rows.kept(*arrange(rows.data, rows.weights, self._order))
        return kept.codes(), kept.weights

    @property
    def positions(self) -> int | None:
        """How many rows are shown, by the map; None if there is none. O(log N) for each group."""
        if self._map is None or self._has_inputs:
            return None
        first, last = self._map.all_shown(self._window())
        return int((last - first).sum())

    def between(self, start: int, stop: int, layout: Layout) -> list[Row]:
        """The shown rows from a position up to another, by the map; O(log N) for each group, and O(1) a row."""
        assert self._map is not None, "it has positions"
        first, last = self._map.all_shown(self._window())
        before = np.cumsum(last - first) - (last - first)
        low, high = np.clip(start - before, 0, last - first), np.clip(stop - before, 0, last - first)
        if self._order.added:
            columns, copies = self._sorted(())
            each = np.repeat(np.arange(len(copies)), copies)[start:stop]
            columns, copies = [column[each] for column in columns], np.ones(len(each), np.int64)
        else:
            _, columns, copies = self._map.rows(first + low, first + high)
        rows = RowBatch(layout, copies, None, [columns[place] for place in self._shown()])
        return [row for row, n in zip(rows.rows(), copies.tolist(), strict=True) for _ in range(n)]

    # Reasons

    @property
    def order(self) -> Order:
        """Its order, with the positions of columns of the block."""
        return self._order

    def rows_in_order(self, values: Row) -> list[Row]:
        """The rows of the block that have positions, copies included, for the values of the parameters."""
        rows = self._asked(values)
        pairs = zip(rows.rows(), rows.weights.tolist(), strict=True)
        return [row for row, weight in pairs for _ in range(weight)]

    def _asked(self, values: Row) -> RowBatch:
        if not self._has_inputs:
            return self._reader.all_rows(self.inner)
        state = self._reader.catalog.views[self.inner]
        domains = map(state.finisher.domain, state.typed.query.input)
        return self._requested(state, [d.encode_value(value) for d, value in zip(domains, values, strict=True)])

    def is_requested(self, row: Row, values: Row) -> bool:  # noqa: ARG002  all that have positions are
        """Whether a row that has a position is one of those that the values of the parameters ask for."""
        return True

    def shown_of(self, row: Row) -> Row:
        """What readers see of a row of the block, with the values that are added to it."""
        return tuple(row[place] for place in self._shown())

    def known_below(self, values: Row) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the values of parameters say of the block: of its columns, and of its inputs."""
        inputs = self._reader.catalog.views[self.inner].typed.written.input
        return {}, dict(zip(inputs, values, strict=True))

    def has_order(self, order: Order | None, *, places: bool) -> bool:
        """Whether its rows are in this order, or without one in its own; with `places`, whether any row has a place.

        Rows of groups are not in one order; what is ordered by and not shown tells no place.
        """
        is_one = self._map is not None and not self._groups() and not self._order.added
        is_shown = len(self._shown()) == len(self._reader.catalog.relation(self.inner).column_names)
        if order is None or not is_one:
            return is_one and (is_shown or not places)
        return is_shown and self._sequence(order) == self._sequence(self._order)

    def _sequence(self, order: Order) -> list[OrderKey]:
        """The keys of an order with all other columns behind them, which tell apart what is equal in these."""
        keys = list({key.column: key for key in reversed(order.keys)}.values())[::-1]
        count = len(self._reader.catalog.relation(self.inner).column_names)
        known = [key.column for key in keys]
        return [*keys, *(OrderKey(place, False, True) for place in range(count) if place not in known)]

    def page(self, limit: int | None, offset: int, after: Row | None, layout: Layout) -> pa.Table:
        """Rows in its order from a position on, or so many behind the place of a row; O(log N), and O(1) a row."""
        ordered = self._map
        assert ordered is not None, "it has an order"
        first, last = (int(each.sum()) for each in ordered.all_shown(self._window()))  # one group at most
        if after is not None:
            codes = [np.array([layout.domains[i].encode_value(after[i])], np.int64) for i in range(len(after))]
            places = [key.column for key in self._sequence(self._order) if isinstance(key.column, int)]
            first = max(first, int(ordered.ranks([codes[place] for place in places], 1, True)[0]))
        start = min(first + offset, last)
        stop = last if limit is None else min(start + limit, last)
        if start < stop < last:  # a page does not end between copies
            _, columns, _ = ordered.rows(np.array([stop - 1]), np.array([stop]))
            places = [key.column for key in self._sequence(self._order) if isinstance(key.column, int)]
            stop = min(last, int(ordered.ranks([columns[place] for place in places], 1, True)[0]))
        _, columns, copies = ordered.rows(np.array([start]), np.array([max(start, stop)]))
        each = np.repeat(np.arange(len(copies)), copies)
        shown: list[Codes | None] = [columns[place][each] for place in self._shown()]
        return RowBatch(layout, np.ones(len(each), np.int64), None, shown).data

    def arranged(self, parts: Sequence[Weighted], schema: pa.Schema) -> Weighted:
        """Rows of the inner view, as this one shows them."""
        counts = np.concatenate([np.empty(0, np.int64), *(each for _, each in parts)])
        if not parts:
            return pa.RecordBatch.from_pylist([], schema=schema), counts
        data = pa.Table.from_batches([batch for batch, _ in parts])
        order, weights = arrange(data, counts, self._order)
        rows = data.take(pa.array(order))
        shown = [rows.column(place).combine_chunks() for place in self._shown()]
        return pa.RecordBatch.from_arrays(shown, schema=schema), weights

    def _requested(self, state: ViewState, inputs: Sequence[int]) -> RowBatch:
        layout, nothing = self._reader.catalog.layout(self.inner), np.empty(0, np.int64)
        values = {
            variable: state.finisher.domain(variable).decode_value(code)
            for variable, code in zip(state.typed.query.input, inputs, strict=True)
        }
        parts, weights = [], [nothing]
        codes = dict(zip(state.typed.query.input, inputs, strict=True))
        wanted = tuple(codes[original] for _, original in state.group.enumerations[state.name].inputs)
        for block in self._reader.blocks(state, wanted):
            batch, counts = state.finisher.batch(block, values)
            parts.append(batch)
            weights.append(counts)
        return RowBatch(layout, np.concatenate(weights), pa.Table.from_batches(parts, schema=layout.schema))

    def all_rows(self, layout: Layout) -> RowBatch:
        columns, weights = self._sorted(())
        return RowBatch(layout, weights, None, [columns[place] for place in self._shown()])

    def open(self, view: str, inputs: Sequence[int], *, whole: bool = False) -> Cursor:  # noqa: ARG002
        return _Rows(*self._sorted(inputs))

    def request(self, view: str, inputs: Sequence[int], limit: int) -> Listed | None:  # noqa: ARG002
        return None

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:  # noqa: ARG002
        numbers, parts = [np.empty(0, np.int64)], []
        for number, inputs in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            parts.append(self._sorted(inputs))
            numbers.append(np.full(len(parts[-1][1]), number))
        width = len(self.enumerations[self.name].outputs)
        nothing = np.empty(0, np.int64)
        joined = [np.concatenate([nothing, *(part[i] for part, _ in parts)]) for i in range(width)]
        counts = np.concatenate([nothing, *(each for _, each in parts)])
        return np.concatenate(numbers), (joined, counts, [], [])

    def points(self, view: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:  # noqa: ARG002
        """The rows at whole keys: inputs, then outputs."""
        count = len(columns) - len(self.enumerations[self.name].outputs)
        numbers, block = self.request_many(self.name, columns[:count]) if count else (None, self._all())
        found = block[0]
        wanted = np.ones(len(block[1]), bool)
        for column, codes in zip(columns[count:], found, strict=True):
            wanted &= codes == (column[0] if numbers is None else column[numbers])
        places = np.flatnonzero(wanted)
        first = np.zeros(len(places), np.int64) if numbers is None else numbers[places]
        return first, ([codes[places] for codes in found], block[1][places], [], [])

    def _all(self) -> Block:
        columns, weights = self._sorted(())
        return columns, weights, [], []

    def held_codes(self) -> list[Codes]:
        parts = [codes for columns, _ in self._parts for codes in columns]
        return parts if self._map is None else [*parts, *self._map.codes()]

    def memory_bytes(self) -> int:
        return 0 if self._map is None else self._map.memory_bytes()

    @property
    def operations(self) -> int:
        """The comparisons of rows in the ordered map so far."""
        return 0 if self._map is None else self._map.operations

    def verify(self, reader: Reader, state: ViewState) -> None:
        """Compares the rows with those that Python sorts; of a view with parameters, those of some requests."""
        for inputs, rows in self._expected(reader):
            given = f" for {inputs!r}" if inputs else ""
            domains = [state.finisher.domain(variable) for variable in state.typed.query.input]
            codes = [domain.encode_value(value) for domain, value in zip(domains, inputs, strict=True)]
            columns, copies = self._sorted(codes)
            given_as = [state.finisher.domain(variable) for variable in self.enumerations[self.name].outputs]
            values = [domain.values(each.tolist()) for domain, each in zip(given_as, columns, strict=True)]
            found = zip(zip(*values, strict=True) if values else iter([()]), copies.tolist(), strict=False)
            expected = counted((row, 1) for row in self._plain(rows))
            compare_rows(f"view {state.name}{given}", expected, counted(found))

    def _plain(self, rows: list[Row]) -> list[Row]:
        """The rows that are shown, by Python."""
        return first_rows(rows, self._order)

    def _expected(self, reader: Reader) -> Iterator[tuple[Row, list[Row]]]:
        """Requests, each with all rows of the block that it has, repeated by their multiplicities."""
        if not self._has_inputs:
            rows = reader.all_rows(self.inner)
            pairs = zip(rows.rows(), rows.weights.tolist(), strict=True)
            yield (), [row for row, weight in pairs for _ in range(weight)]
            return
        query = reader.catalog.views[self.inner].typed.written
        groups: dict[Row, list[Row]] = {}
        for key, (row, count) in recompute(reader, query).items():
            groups.setdefault(key[: len(query.input)], []).extend([row] * count)
        yield from list(groups.items())[:_SAMPLED]


_SAMPLED = 64
"""How many requests are verified."""


class _Rows:
    """Rows in pages."""

    pinned = False

    def __init__(self, columns: list[Codes], counts: Codes) -> None:
        self._columns = columns
        self._counts = counts
        self._start = 0

    def next_block(self, max_rows: int = 8192) -> Block:
        end = self._start + max_rows
        columns = [codes[self._start : end] for codes in self._columns]
        counts = self._counts[self._start : end]
        self._start = end
        return columns, counts, [], []
